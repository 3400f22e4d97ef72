/** The server in a worker of this page. */
import type {} from "./boot";
import type { Connection, Message, State } from "./connection";

export class WorkerConnection implements Connection {
  private worker: Worker | undefined;
  private take: (message: Message) => void = () => undefined;
  private tell: (state: State) => void = () => undefined;

  /** `folder` holds worker.js and what it loads. */
  constructor(private readonly folder: URL) {}

  listen(message: (message: Message) => void, state: (state: State) => void): void {
    this.take = message;
    this.tell = state;
    this.restart();
  }

  send(message: Message): void {
    this.worker?.postMessage(message);
  }

  restart(): void {
    this.worker?.terminate();
    if (typeof WebAssembly === "undefined") {
      this.tell({ kind: "failed", why: "This browser has no WebAssembly, which the checker runs in." });
      return;
    }
    this.tell({ kind: "loading", what: "the checker" });
    const early = globalThis.qvrEarly;
    globalThis.qvrEarly = undefined;
    const worker = early?.worker ?? new Worker(new URL("worker.js", this.folder), { name: "qvr-server" });
    this.worker = worker;
    worker.onmessage = ({ data }: MessageEvent<Message>) => {
      if (worker === this.worker) {
        this.receive(data);
      }
    };
    worker.onerror = (event) => {
      event.preventDefault();
      if (worker === this.worker) {
        this.tell({ kind: "failed", why: event.message || "its script could not be loaded" });
      }
    };
    early?.said.forEach((message) => this.receive(message));
  }

  private receive(message: Message): void {
    switch (message.method) {
      case "qvr/loading": {
        const { what, from } = message.params as { what: string | null; from?: "files" | "memory" };
        this.tell(what === null ? { kind: "ready", ...(from ? { from } : {}) } : { kind: "loading", what });
        break;
      }
      case "qvr/failed":
        this.tell({ kind: "failed", why: (message.params as { message: string }).message });
        break;
      default:
        this.take(message);
    }
  }
}
