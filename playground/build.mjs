/** Builds the page into dist/, and what the server's worker loads into dist/server/. */
import { build } from "esbuild";
import { createHash } from "node:crypto";
import { copyFileSync, cpSync, mkdirSync, readFileSync, readdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { pack } from "./archive.mjs";
import { writeExamples, writePages } from "./texts.mjs";

const here = fileURLToPath(new URL(".", import.meta.url));
const root = join(here, "..");
const modules = join(here, "node_modules");
const dist = join(here, "dist");
const server = join(dist, "server");

/** What is not kept for a visit without a network: index.html goes by its folder, only `qvr play` edits a qvr.toml and has runs, and few want a file of HDF5. */
const NOT_KEPT = ["index.html", "netcdf.js", "run.css", "run.html", "run.js", "server/pydantic.zip", "store.js"];

rmSync(dist, { recursive: true, force: true });
mkdirSync(server, { recursive: true });

const { info, version } = await pack(server);
for (const name of ["pyodide.asm.mjs", "pyodide.asm.wasm"]) {
  copyFileSync(join(modules, "pyodide", name), join(server, name));
}
cpSync(join(here, "static"), dist, { recursive: true });
copyFileSync(join(modules, "vscode-oniguruma/release/onig.wasm"), join(dist, "onig.wasm"));
writeExamples(root, dist);
writePages(root, dist);

const virtual = (name, value) => ({
  name: `virtual-${name}`,
  setup(plugin) {
    plugin.onResolve({ filter: new RegExp(`^virtual:${name}$`) }, ({ path }) => ({ path, namespace: "virtual" }));
    plugin.onLoad({ filter: new RegExp(`^virtual:${name}$`), namespace: "virtual" }, () => ({ contents: JSON.stringify(value()), loader: "json" }));
  },
});

/** Monaco's client is no part of what its package exports; a page of VS Code brings its worker as text. */
const places = {
  name: "places",
  setup(plugin) {
    plugin.onResolve({ filter: /^monaco-lsp-client$/ }, () => ({ path: join(modules, "monaco-editor/esm/external/monaco-lsp-client/out/index.js") }));
    // packages that both have are ours, wherever the file that imports them stands
    plugin.onResolve({ filter: /^(@hpcc-js\/wasm-graphviz|uplot(\/.*)?)$/ }, ({ path, pluginData }) =>
      pluginData === "ours" ? undefined : plugin.resolve(path, { kind: "import-statement", resolveDir: here, pluginData: "ours" }),
    );
    plugin.onResolve({ filter: /^worker:/ }, ({ path, resolveDir }) => ({
      path: join(resolveDir, path.slice("worker:".length)),
      namespace: "worker-text",
    }));
    plugin.onLoad({ filter: /.*/, namespace: "worker-text" }, async ({ path }) => {
      const result = await build({ ...common, entryPoints: [path], format: "iife", write: false });
      return { contents: result.outputFiles[0].text, loader: "text" };
    });
  },
};

// Where Pyodide runs in Node it imports what a browser has not.
const NODE_ONLY = ["node:*", "ws"];
const common = { absWorkingDir: here, bundle: true, minify: true, logLevel: "warning", target: "es2022", external: NODE_ONLY };
// A memory that was kept fits what it was made from, and nothing else.
const content = createHash("sha256");
readdirSync(server).sort().forEach((name) => content.update(name).update(readFileSync(join(server, name)))); // prettier-ignore
const versions = { ...info, version, content: content.digest("hex").slice(0, 16) };
common.plugins = [places, virtual("versions", () => versions)];

const entries = (entryPoints, outdir, more = {}) => build({ ...common, entryPoints, outdir, format: "iife", ...more });
await entries({ worker: "src/server/worker.ts", sampling: "src/sampling/worker.ts" }, server);
await entries({ boot: "src/connections/boot.ts" }, dist);
await entries({ main: "src/main.ts" }, dist, { loader: { ".ttf": "file" } });
await entries({ "editor.worker": "monaco-editor/editor/editor.worker.js" }, dist);
await entries({ diagram: "src/diagram/frame.ts", run: "src/play/frame.ts" }, dist, { loader: { ".css": "text" } });
await entries({ netcdf: "src/sampling/netcdf.ts" }, dist, { format: "esm" });
// for tests: the same in Node
await entries({ start: "src/server/start.ts" }, join(here, ".cache"), { format: "esm", platform: "node", outExtension: { ".js": ".mjs" } });

const names = readdirSync(dist, { recursive: true }).filter((name) => statSync(join(dist, name)).isFile()).sort(); // prettier-ignore
const hash = createHash("sha256");
names.forEach((name) => hash.update(name).update(readFileSync(join(dist, name))));
const built = { version: hash.digest("hex").slice(0, 16), files: names.filter((name) => !NOT_KEPT.includes(name)) };
await entries({ store: "src/offline/store.ts" }, dist, { plugins: [virtual("built", () => built)] });
