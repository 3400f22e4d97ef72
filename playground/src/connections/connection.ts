/** What the page talks with the language server through. */

/** A message of JSON-RPC. */
export interface Message {
  jsonrpc: "2.0";
  id?: number | string | null;
  method?: string;
  params?: unknown;
  result?: unknown;
  error?: { code: number; message: string };
}

export type State =
  /** What is being loaded. */
  | { kind: "loading"; what: string }
  /** A worker says what its server came from. */
  | { kind: "ready"; from?: "files" | "memory" }
  /** Why there is no server, or none any more. */
  | { kind: "failed"; why: string };

export interface Connection {
  send(message: Message): void;
  /** Who hears messages and how the server is; one listener. */
  listen(message: (message: Message) => void, state: (state: State) => void): void;
  /** Begin anew after a failure: a server that knows nothing. */
  restart(): void;
}

/** What a local process writes into `<script type="application/json" id="qvr-play">` (`qvr play`); empty on a static page. */
export interface Served {
  /** The WebSocket of a server, with its token; without it the server runs in a worker of this page. */
  socket?: string;
  /** The address and the text of the file that is edited. */
  uri?: string;
  text?: string;
  /** Its path in the folder, and what tells its content from another; no stamp for a file that is not there yet. */
  path?: string;
  stamp?: string;
}

export function served(): Served {
  try {
    return JSON.parse(document.getElementById("qvr-play")?.textContent || "{}") as Served;
  } catch {
    return {};
  }
}
