/** Pyodide with the server in it; the same in a worker and, for tests, in Node. */
import { type PyodideAPI, type PyodideConfig, loadPyodide } from "pyodide";
import versions from "virtual:versions";
import { filesIn } from "./archive";

/** The folder of files that were given. */
export const NOWHERE = "https://qvr.invalid/";

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
  /** The same, while Python waits. */
  readNow?: (address: string) => ArrayBuffer;
  /** What `memoryOf` made of the same files: the server goes on from it. */
  memory?: Promise<ArrayBuffer> | undefined;
}

/** What takes a message of the client, as JSON. */
export async function start(wanted: Wanted): Promise<(message: string) => void> {
  const python = await booted(wanted, {});
  python.pyimport("compiled");
  bringLater(python, wanted, "networkx");
  const page = python.pyimport("qvr_lsp.page");
  performance.mark("qvr-server");
  return page.connect(wanted.send, wanted.end);
}

/** Python with what an archive of the folder holds beside the server. */
export async function pythonWith(wanted: Wanted, archive: string): Promise<PyodideAPI> {
  const booting = booted(wanted, {}); // from here on `fetch` finds files that were given
  const more = (wanted.read ?? fetched)(wanted.base + archive);
  more.catch(() => undefined); // told below
  const python = await booting;
  bringLater(python, wanted, "networkx");
  unpack(python, await more);
  return python;
}

/** The memory of a server that was asked nothing, with everything loaded: `Wanted.memory` of a later start. */
export async function memoryOf(wanted: Wanted): Promise<Uint8Array<ArrayBuffer>> {
  const python = await booted(wanted, { _makeSnapshot: true });
  python.pyimport("compiled");
  python.pyimport("qvr_lsp.page").prepare();
  return python.makeMemorySnapshot() as Uint8Array<ArrayBuffer>;
}

/** Has a library's archive fetched while nobody waits for it, or when Python imports it before it is there. */
function bringLater(python: PyodideAPI, { base, files, read = fetched, readNow = fetchedNow }: Wanted, name: string): void {
  const file = `${name}.zip`;
  let archive = files?.[file];
  if (!archive) {
    read(base + file).then((content) => { archive = content; }, () => undefined); // prettier-ignore
  }
  python.pyimport("qvr_core.fetched_libraries").fetch_when_imported(name, () => unpack(python, archive ?? readNow(base + file)));
}

async function booted(wanted: Wanted, more: PyodideConfig): Promise<PyodideAPI> {
  const { base, files, loading, memory } = wanted;
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
    ...(files ? { createPyodideModule: (await moduleOf<{ default: never }>(files["pyodide.asm.mjs"])).default } : {}),
    ...(memory ? { _loadSnapshot: memory, createPyodideModule: roomFor(base, memory) } : {}),
    ...more,
    env: { HOME: "/home/pyodide", PYTHONDONTWRITEBYTECODE: "1" },
  });
  performance.mark("qvr-python");
  loading("the language server");
  // files are no part of a kept memory
  for (const archive of await archives) {
    unpack(python, archive);
  }
  performance.mark("qvr-unpacked");
  return python;
}

function unpack(python: PyodideAPI, archive: ArrayBuffer): void {
  for (const [path, content] of filesIn(archive)) {
    const target = `${SITE}/${path}`;
    python.FS.mkdirTree(target.slice(0, target.lastIndexOf("/")));
    python.FS.writeFile(target, content, { canOwn: true });
  }
}

interface Module {
  HEAP8: Int8Array;
  memory: WebAssembly.Memory;
  _emscripten_notify_memory_growth(index: number): void;
}

const PAGE = 65_536;

/** Pyodide puts a kept memory into the one that its module begins with, which may be smaller. */
function roomFor(base: string, memory: Promise<ArrayBuffer>): never {
  const make = async (settings: unknown): Promise<Module> => {
    const { default: create } = (await import(`${base}pyodide.asm.mjs`)) as { default: (settings: unknown) => Promise<Module> };
    const [module, kept] = await Promise.all([create(settings), memory]);
    const missing = Math.ceil((kept.byteLength - module.HEAP8.length) / PAGE);
    if (missing > 0) {
      module.memory.grow(missing);
      module._emscripten_notify_memory_growth(0);
    }
    return module;
  };
  return make as never;
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

/** A script that was given, as a module. */
export async function moduleOf<Module>(script: ArrayBuffer | undefined): Promise<Module> {
  const address = URL.createObjectURL(new Blob([script ?? ""], { type: "text/javascript" }));
  try {
    return (await import(address)) as Module;
  } finally {
    URL.revokeObjectURL(address);
  }
}

/** Only a worker may wait like this. */
function fetchedNow(address: string): ArrayBuffer {
  const request = new XMLHttpRequest();
  request.open("GET", address, false);
  request.responseType = "arraybuffer";
  request.send();
  if (request.status !== 200) {
    throw new Error(`${address} could not be loaded (${request.status} ${request.statusText})`);
  }
  return request.response as ArrayBuffer;
}

async function fetched(address: string): Promise<ArrayBuffer> {
  const answer = await fetch(address);
  if (!answer.ok) {
    throw new Error(`${address} could not be loaded (${answer.status} ${answer.statusText})`);
  }
  return answer.arrayBuffer();
}
