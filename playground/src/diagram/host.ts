/** What VS Code gives the pages of its panels, for a frame: messages to the page around it, and a state. */
let state: unknown;

function acquireVsCodeApi(): unknown {
  return {
    postMessage: (message: unknown) => parent.postMessage(message, location.origin),
    getState: () => state,
    setState: (next: unknown) => (state = next),
  };
}

Object.assign(globalThis, { acquireVsCodeApi });

addEventListener("message", ({ data }: MessageEvent<{ type?: string; shade?: string }>) => {
  if (data.type === "shade" && data.shade) {
    document.documentElement.dataset["shade"] = data.shade;
  }
});
