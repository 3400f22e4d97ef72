declare module "worker:*" {
  const source: string;
  export default source;
}

declare module "*.css" {
  const source: string;
  export default source;
}

interface VsCode<State> {
  postMessage(message: unknown): void;
  getState(): State | undefined;
  setState(state: State): void;
}

declare function acquireVsCodeApi<State>(): VsCode<State>;
