/** The server of a local process: one message a frame. */
import type { Connection, Message, State } from "./connection";

export class WebSocketConnection implements Connection {
  private socket: WebSocket | undefined;
  private waiting: string[] = [];
  private take: (message: Message) => void = () => undefined;
  private tell: (state: State) => void = () => undefined;

  constructor(private readonly address: string) {}

  listen(message: (message: Message) => void, state: (state: State) => void): void {
    this.take = message;
    this.tell = state;
    this.restart();
  }

  send(message: Message): void {
    const text = JSON.stringify(message);
    if (this.socket?.readyState === WebSocket.OPEN) {
      this.socket.send(text);
    } else {
      this.waiting.push(text);
    }
  }

  restart(): void {
    this.tell({ kind: "loading", what: "the connection to qvr play" });
    const socket = new WebSocket(this.address);
    this.socket = socket;
    socket.onopen = () => {
      this.tell({ kind: "ready" });
      this.waiting.splice(0).forEach((text) => socket.send(text));
    };
    socket.onmessage = ({ data }: MessageEvent<string>) => this.take(JSON.parse(data) as Message);
    socket.onclose = () => {
      this.waiting = [];
      this.tell({ kind: "failed", why: "`qvr play` has ended, or its address has changed." });
    };
  }
}
