/** The language client of VS Code for the web: the server is a worker of this page. */
import * as vscode from "vscode";
import { LanguageClient, RevealOutputChannelOn, type LanguageClientOptions, type Middleware } from "vscode-languageclient/browser";
import type { Serving } from "../serving";
import { settings } from "../settings";
import type { Status } from "../status";
import { fromServer, toServer } from "./names";
import { SERVER, startWorker } from "./worker";

/** The document that the server means. */
export function fromProtocol(text: string): vscode.Uri {
  const uri = vscode.Uri.parse(text);
  return uri.with(fromServer(uri));
}

/** Programs of the folders that are given to the server, so that files can import one another. */
const MOST_PROGRAMS = 200;

export class WebServer implements Serving, vscode.Disposable {
  private client: LanguageClient | undefined;
  private worker: Worker | undefined;
  private turn: Promise<void> = Promise.resolve();
  private readonly started = new vscode.EventEmitter<LanguageClient>();
  readonly onDidStart = this.started.event;

  constructor(
    private readonly folder: vscode.Uri,
    private readonly log: vscode.LogOutputChannel,
    private readonly status: Status,
    private readonly middleware: Middleware,
  ) {}

  async running(): Promise<LanguageClient | undefined> {
    await this.turn;
    return this.client;
  }

  restart(): Promise<void> {
    this.turn = this.turn.then(async () => {
      await this.stop();
      await this.start();
    });
    return this.turn;
  }

  private async start(): Promise<void> {
    this.status.show({ state: "starting" });
    try {
      const worker = await startWorker(this.folder, SERVER);
      this.worker = worker;
      const failed = new Promise<never>((_, reject) => {
        worker.addEventListener("error", (event) => reject(new Error(event.message || "the worker could not be loaded")));
        worker.addEventListener("message", ({ data }: MessageEvent<{ method?: string; params?: { message?: string } }>) => {
          if (data.method === "qvr/failed") {
            const message = data.params?.message ?? "unknown";
            this.tell(message);
            reject(new Error(message));
          }
        });
      });
      failed.catch(() => undefined); // told where it is waited for, and by `tell` afterwards
      const client = new LanguageClient("qvr", "QVR", worker, this.options());
      await Promise.race([client.start(), failed]);
      this.client = client;
      const version = client.initializeResult?.serverInfo?.version ?? "";
      this.status.show({ state: "ready", interpreter: "in this page", why: "the extension: fits by SVI need VS Code on your machine", version });
      this.started.fire(client);
      await this.openPrograms();
    } catch (error) {
      this.tell(error instanceof Error ? error.message : String(error));
    }
  }

  private tell(problem: string): void {
    const message = `the language server ended: ${problem}`;
    this.log.error(message);
    this.status.show({ state: "problem", message });
  }

  private async openPrograms(): Promise<void> {
    const found = await vscode.workspace.findFiles("**/*.qvr", "**/{node_modules,.venv,.qvr}/**", MOST_PROGRAMS);
    await Promise.allSettled(found.map((uri) => vscode.workspace.openTextDocument(uri)));
  }

  private options(): LanguageClientOptions {
    return {
      documentSelector: [{ language: "qvr" }],
      outputChannel: this.log,
      traceOutputChannel: this.log,
      revealOutputChannelOn: RevealOutputChannelOn.Never,
      initializationOptions: settings(),
      synchronize: { configurationSection: "qvr" },
      middleware: this.middleware,
      uriConverters: {
        code2Protocol: (uri) => uri.with(toServer(uri)).toString(),
        protocol2Code: fromProtocol,
      },
    };
  }

  private async stop(): Promise<void> {
    const { client, worker } = this;
    this.client = this.worker = undefined;
    await client?.dispose(1000).catch((error: unknown) => this.log.warn(String(error)));
    worker?.terminate();
  }

  dispose(): void {
    this.worker?.terminate();
    this.started.dispose();
  }
}
