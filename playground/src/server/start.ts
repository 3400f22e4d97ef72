/** Pyodide with the server in it; the same in a worker and, for tests, in Node. */
import { loadPyodide } from "pyodide";
import versions from "virtual:versions";

const SITE = "/lib/python3.14/site-packages";

export interface Wanted {
  /** The address of the folder with Pyodide and the archives; it ends in a slash. */
  base: string;
  /** What stands there, where nothing may be fetched. */
  files?: Record<string, ArrayBuffer> | undefined;
  settings: boolean;
  send: (message: string) => void;
  end: () => void;
  loading: (what: string) => void;
  /** Reads a file of the folder. */
  read?: (address: string) => Promise<ArrayBuffer>;
}

/** What takes a message of the client, as JSON. */
export async function start(wanted: Wanted): Promise<(message: string) => void> {
  const { base, files, loading } = wanted;
  if (files) {
    answerFrom(base, files);
  }
  const read = wanted.read ?? fetched;
  const names = ["server.zip", ...(wanted.settings ? ["pydantic.zip"] : [])];
  const archives = Promise.all(names.map((name) => read(base + name)));
  archives.catch(() => undefined); // told below, after Pyodide's own failure
  loading("Python");
  const python = await loadPyodide({
    indexURL: base,
    stdLibURL: `${base}python.zip`,
    // no package of Pyodide's own is used
    lockFileContents: { info: versions, packages: {} } as never,
    ...(files ? { createPyodideModule: await moduleOf(files["pyodide.asm.mjs"]) } : {}),
    env: { HOME: "/home/pyodide", PYTHONDONTWRITEBYTECODE: "1" },
  });
  loading("the language server");
  for (const archive of await archives) {
    python.unpackArchive(new Uint8Array(archive), "zip", { extractDir: SITE });
  }
  const page = python.pyimport("qvr_lsp.page");
  return page.connect(wanted.send, wanted.end);
}

const TYPES: Record<string, string> = { wasm: "application/wasm" };

/** Let `fetch` find the files of a folder that is nowhere. */
function answerFrom(base: string, files: Record<string, ArrayBuffer>): void {
  const outside = fetch.bind(globalThis);
  globalThis.fetch = async (wanted, options) => {
    const address = wanted instanceof Request ? wanted.url : String(wanted);
    const name = address.slice(base.length);
    const content = address.startsWith(base) ? files[name] : undefined;
    if (!content) {
      return outside(wanted, options);
    }
    return new Response(content, { headers: { "Content-Type": TYPES[name.split(".").at(-1) ?? ""] ?? "application/octet-stream" } });
  };
}

async function moduleOf(script: ArrayBuffer | undefined): Promise<never> {
  const address = URL.createObjectURL(new Blob([script ?? ""], { type: "text/javascript" }));
  try {
    return ((await import(address)) as { default: never }).default;
  } finally {
    URL.revokeObjectURL(address);
  }
}

async function fetched(address: string): Promise<ArrayBuffer> {
  const answer = await fetch(address);
  if (!answer.ok) {
    throw new Error(`${address} could not be loaded (${answer.status} ${answer.statusText})`);
  }
  return answer.arrayBuffer();
}
