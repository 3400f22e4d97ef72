/** The server of this page: a process where one has served the page, else a worker. */
import type { Connection, Served } from "./connection";
import { WebSocketConnection } from "./websocket";
import { WorkerConnection } from "./worker";

export function choose(served: Served): Connection {
  return served.socket ? new WebSocketConnection(served.socket) : new WorkerConnection(new URL("server/", document.baseURI));
}
