/** Once the first program is checked, everything that was loaded is kept: the next time needs no network. */
import type { Message, Served } from "../connections/connection";

/** Time for what the page does at first, before the next visit is thought of. */
const QUIET_MS = 2000;

let begun = false;

export function offline({ socket }: Served): void {
  if (begun || socket || !("serviceWorker" in navigator)) {
    return;
  }
  begun = true;
  void navigator.serviceWorker
    .register(new URL("store.js", document.baseURI))
    .then(() => navigator.serviceWorker.ready)
    .then(() => {
      document.documentElement.dataset["offline"] = "ready";
      setTimeout(keepMemory, QUIET_MS);
    })
    .catch(() => undefined); // a browser that stores nothing
}

/** What the server of the next visit starts from is made in a worker of its own: nobody waits for it. */
function keepMemory(): void {
  const worker = new Worker(new URL("server/worker.js", document.baseURI), { name: "qvr-memory" });
  worker.onmessage = ({ data }: MessageEvent<Message>) => {
    document.documentElement.dataset["memory"] = data.method === "qvr/kept" ? "kept" : "none";
  };
  worker.onerror = (event) => event.preventDefault(); // the next visit starts as this one did
}
