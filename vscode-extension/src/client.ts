/** The language client: started in the right interpreter, brought back when it dies, restarted on demand. */
import * as vscode from "vscode";
import {
  CloseAction,
  ErrorAction,
  LanguageClient,
  RevealOutputChannelOn,
  State,
  type LanguageClientOptions,
  type Middleware,
  type ServerOptions,
} from "vscode-languageclient/node";
import { findInterpreter, isFound, offerRuns, tellProblem } from "./environment";
import type { PrivateEnvironment } from "./install";
import { explain, SAFE_PATH } from "./interpreter";
import type { Serving } from "./serving";
import { settings } from "./settings";
import type { Status } from "./status";

/** Restarts within `WINDOW_MS` after which the server is left alone and the user is told. */
const MAXIMUM_RESTARTS = 5;
const WINDOW_MS = 180_000;

export class Server implements Serving, vscode.Disposable {
  private client: LanguageClient | undefined;
  private command: string | undefined;
  private crashes: number[] = [];
  private turn: Promise<void> = Promise.resolve();
  private readonly started = new vscode.EventEmitter<LanguageClient>();
  /** Fires after each start, the first one and every restart. */
  readonly onDidStart = this.started.event;

  constructor(
    private readonly log: vscode.LogOutputChannel,
    private readonly status: Status,
    private readonly middleware: Middleware,
    private readonly own: PrivateEnvironment,
  ) {}

  /** The interpreter that the server runs in. */
  get interpreter(): string | undefined {
    return this.command;
  }

  /** A run lacked a package: offer to install what runs need, where the server's environment is the extension's own. */
  offerRuns(message: string): boolean {
    if (this.command === undefined || this.command !== this.own.interpreter()) {
      return false;
    }
    void offerRuns(message, this.own, this.log, () => void this.restart());
    return true;
  }

  /** The running client; waits for a start that is under way. */
  async running(): Promise<LanguageClient | undefined> {
    await this.turn;
    return this.client?.state === State.Running ? this.client : undefined;
  }

  start(): Promise<void> {
    return this.next(() => this.startNow());
  }

  restart(): Promise<void> {
    this.crashes = [];
    return this.next(async () => {
      await this.stopNow();
      await this.startNow();
    });
  }

  stop(): Promise<void> {
    return this.next(() => this.stopNow());
  }

  private next(work: () => Promise<void>): Promise<void> {
    this.turn = this.turn.then(work, work);
    return this.turn;
  }

  private async startNow(): Promise<void> {
    if (!vscode.workspace.isTrusted) {
      this.status.show({ state: "untrusted" });
      return;
    }
    this.status.show({ state: "starting" });
    const found = await findInterpreter(this.own);
    if (!isFound(found)) {
      const { message } = explain(found);
      this.log.error(message);
      this.status.show({ state: "problem", message });
      void tellProblem(found, this.own, this.log, () => void this.restart());
      return;
    }
    this.log.info(`interpreter ${found.command} (from ${found.why}), qvr-lsp ${found.version}`);
    const client = new LanguageClient("qvr", "QVR", this.serverOptions(found.command), this.clientOptions());
    this.client = client;
    this.command = found.command;
    client.onDidChangeState(({ newState }) => {
      if (newState === State.Running) {
        this.status.show({ state: "ready", interpreter: found.command, why: found.why, version: found.version });
        this.started.fire(client);
      } else if (newState === State.Starting) {
        this.status.show({ state: "starting" });
      } else if (this.client === client) {
        this.status.show({ state: "problem", message: "the language server is not running" });
      }
    });
    try {
      await client.start();
    } catch (error) {
      const message = `QVR: the language server did not start: ${error instanceof Error ? error.message : String(error)}`;
      this.log.error(message);
      this.status.show({ state: "problem", message });
      const chosen = await vscode.window.showErrorMessage(message, "Show Log");
      if (chosen) {
        this.log.show();
      }
    }
  }

  private async stopNow(): Promise<void> {
    const client = this.client;
    this.client = undefined;
    await client?.dispose(3000).catch((error: unknown) => this.log.warn(String(error)));
  }

  private serverOptions(command: string): ServerOptions {
    const more = vscode.workspace.getConfiguration("qvr").get<string[]>("server.arguments", []);
    return { command, args: ["-m", "qvr_lsp.server", ...more], options: { env: { ...process.env, ...SAFE_PATH } } };
  }

  private clientOptions(): LanguageClientOptions {
    return {
      documentSelector: ["file", "untitled", "vscode-userdata", "vscode-notebook-cell"].flatMap((scheme) => [
        { scheme, language: "qvr" },
        ...(scheme === "file" ? [{ scheme, pattern: "**/qvr.toml" }] : []),
      ]),
      outputChannel: this.log,
      traceOutputChannel: this.log,
      revealOutputChannelOn: RevealOutputChannelOn.Never,
      initializationOptions: settings(),
      synchronize: { configurationSection: "qvr" },
      middleware: this.middleware,
      errorHandler: {
        error: () => ({ action: ErrorAction.Continue }),
        closed: () => this.closed(),
      },
    };
  }

  private closed(): { action: CloseAction; message?: string } {
    const now = Date.now();
    this.crashes = [...this.crashes.filter((time) => now - time < WINDOW_MS), now];
    if (this.crashes.length > MAXIMUM_RESTARTS) {
      const message = `QVR: the language server ended ${this.crashes.length} times within three minutes and stays down. 'QVR: Restart Language Server' tries again.`;
      this.status.show({ state: "problem", message });
      return { action: CloseAction.DoNotRestart, message };
    }
    this.log.warn("the language server ended; starting it again");
    return { action: CloseAction.Restart };
  }

  dispose(): void {
    this.started.dispose();
  }
}
