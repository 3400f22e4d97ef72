/** The wire between Monaco's own client and the server: adds what that client does not know, and survives a new server. */
import type { Connection, Message, State } from "../connections/connection";

type Id = number | string;
type Asked = { resolve: (result: unknown) => void; reject: (error: Error) => void };

const RESTARTED = { code: -32803, message: "the checker was started again" };

/** What a client does and Monaco's own does not say of itself. */
const ABLE = {
  textDocument: {
    completion: { completionItem: { snippetSupport: true, documentationFormat: ["markdown", "plaintext"] } },
    rename: { prepareSupport: true },
  },
};

export class Transport {
  readonly state = { value: { state: "open" } as const, onChange: () => ({ dispose: () => undefined }) };
  private listener: ((message: never) => void) | undefined;
  private before: Message[] = [];
  private initialize: Message | undefined;
  private readonly opened = new Set<string>();
  private readonly pending = new Set<Id>();
  private readonly asked = new Map<Id, Asked>();
  private readonly heard = new Map<string, (params: never) => void>();
  private readonly begun: (() => void)[] = [];
  private count = 0;

  /** `uri` is the address of the program, `text` that of an open document now, by its address in small letters; `prepared` sees each answer before Monaco does. */
  constructor(
    private readonly connection: Connection,
    private readonly uri: string,
    private readonly text: (uri: string) => string | undefined,
    private readonly prepared: (message: Message) => void,
    private readonly options: object,
    private readonly tell: (state: State) => void,
  ) {}

  start(): void {
    this.connection.listen((message) => this.receive(message), (state) => this.changed(state));
  }

  // ------------------------------------------------------------ Monaco's side

  setListener(listener: ((message: never) => void) | undefined): void {
    this.listener = listener;
    this.before.splice(0).forEach((message) => listener?.(message as never));
  }

  async send(sent: unknown): Promise<void> {
    const message = sent as Message;
    if (message.method === "initialize") {
      const params = message.params as { capabilities: object };
      message.params = { ...params, initializationOptions: this.options, capabilities: merged(params.capabilities, ABLE) };
      this.initialize = message;
    }
    const document = (message.params as { textDocument?: { uri: string } } | null)?.textDocument;
    const uri = document?.uri.toLowerCase();
    if (uri && message.method === "textDocument/didOpen") {
      this.opened.add(uri);
    } else if (uri && message.method === "textDocument/didClose") {
      this.opened.delete(uri);
    }
    if (message.method && message.id !== undefined && message.id !== null) {
      if (uri && !this.opened.has(uri)) {
        this.receive({ jsonrpc: "2.0", id: message.id, result: null }); // it asks before it opens
        return;
      }
      this.pending.add(message.id);
    }
    if (document && uri === this.uri.toLowerCase()) {
      document.uri = this.uri; // it writes addresses in small letters
    }
    this.connection.send(message);
    if (message.method === "initialized") {
      this.begun.splice(0).forEach((act) => act());
    }
  }

  // ------------------------------------------------------------ ours

  /** Do it once the server takes requests. */
  initialized(act: () => void): void {
    this.begun.push(act);
  }

  /** A request that LSP does not have. */
  request<Result>(method: string, params: object): Promise<Result> {
    const id = `page-${++this.count}`;
    return new Promise((resolve, reject) => {
      this.asked.set(id, { resolve: resolve as Asked["resolve"], reject });
      this.connection.send({ jsonrpc: "2.0", id, method, params });
    });
  }

  /** A notification of this page's own. */
  notify(method: string, params: object): void {
    this.connection.send({ jsonrpc: "2.0", method, params });
  }

  on<Params>(method: string, hear: (params: Params) => void): void {
    this.heard.set(method, hear as (params: never) => void);
  }

  /** Start a server anew and tell it what the one before knew. */
  restart(): void {
    this.connection.restart();
    if (!this.initialize) {
      return;
    }
    if (this.pending.has(this.initialize.id as Id)) {
      this.connection.send(this.initialize); // the first one was never answered
      return;
    }
    void this.request("initialize", this.initialize.params as object).catch(() => undefined);
    this.connection.send({ jsonrpc: "2.0", method: "initialized", params: {} });
    for (const uri of this.opened) {
      const text = this.text(uri);
      if (text !== undefined) {
        const textDocument = { uri: uri === this.uri.toLowerCase() ? this.uri : uri, languageId: "qvr", version: 0, text };
        this.connection.send({ jsonrpc: "2.0", method: "textDocument/didOpen", params: { textDocument } });
      }
    }
  }

  private changed(state: State): void {
    if (state.kind === "failed") {
      for (const id of [...this.pending].filter((one) => one !== this.initialize?.id)) {
        this.receive({ jsonrpc: "2.0", id, result: null });
      }
      for (const id of [...this.asked.keys()]) {
        this.receive({ jsonrpc: "2.0", id, error: RESTARTED });
      }
    }
    this.tell(state);
  }

  private receive(message: Message): void {
    const id = message.id ?? "";
    const ours = message.method ? undefined : this.asked.get(id);
    if (ours) {
      this.asked.delete(id);
      if (message.error) {
        ours.reject(new Error(message.error.message));
      } else {
        ours.resolve(message.result);
      }
      return;
    }
    if (!message.method) {
      this.pending.delete(id);
    }
    this.prepared(message);
    if (this.listener) {
      this.listener(message as never);
    } else {
      this.before.push(message);
    }
    if (message.method) {
      this.heard.get(message.method)?.(message.params as never);
    }
  }
}

function merged(one: object, other: object): object {
  const result: Record<string, unknown> = { ...one };
  for (const [key, value] of Object.entries(other)) {
    const held = result[key];
    const both = isObject(held) && isObject(value);
    result[key] = both ? merged(held, value) : value;
  }
  return result;
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
