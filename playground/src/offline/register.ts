/** Once the first program is checked, everything that was loaded is kept: the next time needs no network. */
import type { Served } from "../connections/connection";

let begun = false;

export function offline({ socket }: Served): void {
  if (begun || socket || !("serviceWorker" in navigator)) {
    return;
  }
  begun = true;
  void navigator.serviceWorker
    .register(new URL("store.js", document.baseURI))
    .then(() => navigator.serviceWorker.ready)
    .then(() => (document.documentElement.dataset["offline"] = "ready"))
    .catch(() => undefined); // a browser that stores nothing
}
