/** Starts the server before anything else of the page is read; what it says is kept until the page listens. */
import type { Message } from "./connection";
import { served } from "./connection";

export interface Early {
  worker: Worker;
  said: Message[];
}

declare global {
  var qvrEarly: Early | undefined;
}

if (!served().socket && typeof WebAssembly !== "undefined") {
  const worker = new Worker(new URL("server/worker.js", document.baseURI), { name: "qvr-server" });
  const said: Message[] = [];
  worker.onmessage = ({ data }: MessageEvent<Message>) => said.push(data);
  worker.onerror = (event) => {
    event.preventDefault();
    said.push({ jsonrpc: "2.0", method: "qvr/failed", params: { message: event.message || "its script could not be loaded" } });
  };
  globalThis.qvrEarly = { worker, said };
}
