/** Packs what the server's worker loads: Python's library, the server with what it imports; apart from it networkx, fetched when it is wanted, what samples, and pydantic for qvr.toml. */
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { loadPyodide } from "pyodide";

const here = fileURLToPath(new URL(".", import.meta.url));
const root = join(here, "..");
const wheels = join(here, ".cache", "wheels");
const own = join(root, ".venv", "bin", "python");
export const python = process.env.PYTHON ?? (existsSync(own) ? own : "python3");

/** The wheels that the server imports, and those that pydantic does beside them. */
const SERVER = ["graphviz-", "lark-", "pygls-", "lsprotocol-", "cattrs-", "attrs-", "typing_extensions-"];
const PYDANTIC = ["pydantic-", "pydantic_core-", "annotated_types-", "typing_inspection-"];

/** What fits and the command line need stays at home. */
const WITHOUT = [
  "qvr/", "qvr_core/cli/",
  ...["evaluation", "fit", "prepare", "python", "worker"].map((room) => `qvr_core/runs/${room}/`),
  "lark/__pyinstaller/", "lark/grammars/", "lark/tools/",
  "cattrs/preconf/", "pygls/cli.py", "pygls/client.py", "pygls/lsp/_base_client.py", "pygls/lsp/client.py",
]; // prettier-ignore

/** What samples, for a worker of its own, which loads it when it is wanted. */
const SAMPLING = ["qvr_core/arrays/", "qvr_core/codegen/", "qvr_core/inference/", "qvr_core/runtime/", "qvr_core/runs/page/", "qvr_core/dsl.py"];
/** What the compiler reads as source. */
const COMPILED = ["qvr_core/codegen/kernels/"];

/** Packages whose documentation is as long as their code. */
const BARE = ["lsprotocol/", "pygls/", "cattrs/", "attr/", "attrs/", "typing_extensions.py"];

/** Parts of Python's library that no page can use, or that only programmers of Python do. */
const UNUSED = [
  "ensurepip/", "idlelib/", "lib2to3/", "pydoc_data/", "pydoc.py", "test/", "tkinter/", "turtle", "unittest/", "venv/",
  "curses/", "dbm/", "sqlite3/", "xmlrpc/", "wsgiref/", "multiprocessing/", "_pyrepl/", "doctest.py", "pdb.py", "profiling/",
]; // prettier-ignore

function pip(...args) {
  execFileSync(python, ["-m", "pip", ...args, "--quiet", "--disable-pip-version-check"], { stdio: ["ignore", "inherit", "inherit"] });
}

/** Our own wheel anew; those of others once. */
function fetchWheels({ python: version, abi_version: abi }) {
  mkdirSync(wheels, { recursive: true });
  const named = (start) => readdirSync(wheels).filter((name) => name.startsWith(start) && name.endsWith(".whl"));
  for (const name of named("qvr_lsp-")) {
    rmSync(join(wheels, name));
  }
  pip("wheel", "--no-deps", "--wheel-dir", wheels, root);
  if (![...SERVER, ...PYDANTIC, "networkx-"].every((start) => named(start).length) || !named("pydantic_core-").some((name) => name.endsWith(`_${abi}_wasm32.whl`))) {
    pip(
      "download", "graphviz", "lark", "networkx", "pydantic", "pygls", "--constraint", join(root, "constraints.txt"), "--only-binary=:all:",
      "--implementation", "cp", "--python-version", version.split(".").slice(0, 2).join("."),
      "--platform", `pyemscripten_${abi}_wasm32`, "--dest", wheels,
    ); // prettier-ignore
  }
  return (...starts) => starts.flatMap(named).map((name) => `/wheels/${name}`);
}

/** Packs into a folder; the versions of what is packed. */
export async function pack(target) {
  const pyodide = join(here, "node_modules", "pyodide");
  const { version } = JSON.parse(readFileSync(join(pyodide, "package.json"), "utf8"));
  const { info } = JSON.parse(readFileSync(join(pyodide, "pyodide-lock.json"), "utf8"));
  const found = fetchWheels(info);
  const runtime = await loadPyodide({ indexURL: pyodide });
  for (const [place, folder] of Object.entries({ "/wheels": wheels, "/pyodide": pyodide, "/target": target })) {
    runtime.FS.mkdirTree(place);
    runtime.mountNodeFS(place, folder);
  }
  runtime.runPython(readFileSync(join(here, "archive.py"), "utf8"));
  const call = runtime.globals.get("pack");
  const packed = (sources, name, without, level) =>
    call(runtime.toPy(sources), `/target/${name}`, runtime.toPy(without), level, runtime.toPy([]), runtime.toPy({}));
  packed(["/pyodide/python_stdlib.zip"], "python.zip", UNUSED, 2);
  const helper = readFileSync(join(here, "compiled.py"), "utf8");
  const packServer = runtime.globals.get("pack_server");
  packServer(runtime.toPy(found("qvr_lsp-", ...SERVER)), "/target/server.zip", runtime.toPy([...WITHOUT, ...SAMPLING]), runtime.toPy(BARE), helper);
  call(runtime.toPy(found("qvr_lsp-")), "/target/sampling.zip", runtime.toPy([]), 2, runtime.toPy([]), runtime.toPy({}), runtime.toPy(SAMPLING), runtime.toPy(COMPILED));
  packed(found("networkx-"), "networkx.zip", [], 2);
  packed(found(...PYDANTIC), "pydantic.zip", ["pydantic/v1/"], 0);
  return { info, version };
}
