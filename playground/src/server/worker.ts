/**
 * The language server in a web worker: each message of LSP, an object, in and out by `postMessage`.
 *
 * What it loads stands in one folder, that of this script.  Where the script was started from a blob, or where qvr.toml is
 * edited too, a first message says so: `{ "start": { "base": "https://…/server/", "settings": true } }`; without `?wait` in
 * its address the worker starts by itself.  Until the server is there, `qvr/loading` tells what comes; `qvr/failed` tells
 * in a sentence why there will be none.  A worker by the name of `qvr-memory` is no server: it leaves in this browser's
 * store what the next one starts from, and says `qvr/kept`.
 */
import "./classic";
import { forget, keep, kept } from "./memory";
import { NOWHERE, memoryOf, start } from "./start";

interface Start {
  /** The address of the folder. */
  base?: string;
  /** What stands in the folder, where nothing may be fetched: then `base` is only a name. */
  files?: Record<string, ArrayBuffer>;
  /** Whether qvr.toml is to be checked: it takes pydantic, 2 MB more. */
  settings?: boolean;
}

interface Broken {
  readonly error?: unknown;
  readonly reason?: unknown;
  preventDefault(): void;
}

interface Scope {
  readonly name: string;
  readonly location: { readonly href: string; readonly protocol: string };
  onmessage: ((event: { data: unknown }) => void) | null;
  postMessage(message: unknown): void;
  addEventListener(type: "error" | "unhandledrejection", listener: (event: Broken) => void): void;
  close(): void;
}

const scope = globalThis as unknown as Scope;
const waiting: string[] = [];
let receive: ((message: string) => void) | undefined;
let begun = false;
let failed = false;
/** A server that ended may have come from a memory that was no good. */
let drop = (): void => undefined;

scope.onmessage = ({ data }) => {
  if (isStart(data)) {
    begin(data.start);
    return;
  }
  const message = JSON.stringify(data);
  if (receive) {
    take(message);
  } else {
    waiting.push(message);
  }
};

const here = scope.location.href;
if (scope.name === "qvr-memory") {
  void keepMemory(new URL(".", here).href);
} else if (scope.location.protocol !== "blob:" && !here.includes("?wait")) {
  begin({});
}

function begin({ files, base = files ? NOWHERE : new URL(".", here).href, settings = false }: Start): void {
  if (begun) {
    return;
  }
  begun = true;
  const end = (): void => scope.close();
  const send = (message: string): void => scope.postMessage(JSON.parse(message));
  const wanted = { base, files, settings, send, end, loading: (what: string) => notify("qvr/loading", { what }) };
  const plain = async (): Promise<void> => ready(await start(wanted), "files");
  // a memory that was kept has no pydantic
  const fromMemory = async (): Promise<void> => {
    const found = files || settings ? undefined : await kept(base);
    if (!found) {
      return plain();
    }
    drop = () => void forget(base);
    try {
      const memory = found();
      memory.catch(() => undefined); // told by `start`
      ready(await start({ ...wanted, memory }), "memory");
    } catch {
      await forget(base);
      await plain();
    }
  };
  fromMemory().catch(fail);
}

function ready(found: (message: string) => void, from: "files" | "memory"): void {
  receive = found;
  notify("qvr/loading", { what: null, from });
  waiting.splice(0).forEach(take);
}

async function keepMemory(base: string): Promise<void> {
  try {
    if (!(await kept(base))) {
      const nothing = (): void => undefined;
      await keep(base, await memoryOf({ base, settings: false, send: nothing, end: nothing, loading: nothing }));
    }
    notify("qvr/kept", {});
  } finally {
    scope.close();
  }
}

function take(message: string): void {
  try {
    receive?.(message);
  } catch (error) {
    fail(error);
  }
}

// An error that gets through to here has ended Python: no answer is to be expected any more.
for (const type of ["error", "unhandledrejection"] as const) {
  scope.addEventListener(type, (event) => {
    event.preventDefault();
    fail(event.error ?? event.reason);
  });
}

function fail(error: unknown): void {
  if (failed) {
    return;
  }
  failed = true;
  receive = () => undefined;
  drop();
  notify("qvr/failed", { message: error instanceof Error ? error.message : String(error) });
}

function notify(method: string, params: object): void {
  scope.postMessage({ jsonrpc: "2.0", method, params });
}

function isStart(data: unknown): data is { start: Start } {
  return typeof data === "object" && data !== null && "start" in data && !("jsonrpc" in data);
}
