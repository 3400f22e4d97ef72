/** The versions of Python and of its system interface, as Pyodide's lock file names them, and a number of what the worker loads (build.mjs). */
declare module "virtual:versions" {
  const versions: { abi_version: string; arch: string; platform: string; python: string; version: string; content: string };
  export default versions;
}

/** This build: a number of its own, and the files that a visit needs. */
declare module "virtual:built" {
  const built: { version: string; files: string[] };
  export default built;
}

declare module "*.css" {
  const source: string;
  export default source;
}

declare module "worker:*" {
  const source: string;
  export default source;
}

interface VsCode<State> {
  postMessage(message: unknown): void;
  getState(): State | undefined;
  setState(state: State): void;
}

declare function acquireVsCodeApi<State>(): VsCode<State>;
