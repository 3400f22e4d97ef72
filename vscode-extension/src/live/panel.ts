/**
 * What the program under the cursor says while one types: its prior, or its posterior, beside its text in a panel and, where the
 * setting asks for it, in the text and its diagram. The server draws by itself then; without the setting the open panel asks.
 */
import * as vscode from "vscode";
import type { Server } from "../client";
import { LIVE, type LiveEvent, PRIOR, type PriorAnswer, type PriorParams } from "../protocol";
import { revealStep } from "../reveal";
import { html, icons } from "../webview";
import { type SiteDensity, siteDensities } from "./densities";
import type { FromPrior, ToPrior } from "./messages";
import { type Outcome, type Place, Questions } from "./questions";
import { LiveStatus } from "./status";

const SETTINGS = ["qvr.live", "qvr.prior.asYouType"];

export class Live implements vscode.Disposable {
  private panel: vscode.WebviewPanel | undefined;
  private shown: ToPrior | undefined;
  private of: { uri: string; program: string } | undefined;
  /** What the newest draws say of the text as it stands. */
  private drawn: { uri: string; program: string; densities: SiteDensity[] } | undefined;
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onDidChange = this.changed.event;
  private readonly status = new LiveStatus();
  private readonly questions = new Questions<PriorAnswer | undefined>(
    (place, signal) => this.ask(place, signal),
    (outcome) => this.tell(outcome),
  );
  private readonly listening: vscode.Disposable;

  constructor(
    private readonly extension: vscode.Uri,
    private readonly server: Server,
  ) {
    const look = () => this.questions.at(this.place());
    const watcher = vscode.workspace.createFileSystemWatcher("**/{qvr.toml,*.csv,*.parquet,*.ndjson,*.json,*.npz}");
    const again = () => this.questions.again(this.place());
    this.listening = vscode.Disposable.from(
      watcher,
      this.changed,
      this.status,
      watcher.onDidChange(again),
      server.onDidStart((client) => client.onNotification(LIVE, (event: LiveEvent) => this.take(event))),
      vscode.window.onDidChangeActiveTextEditor(look),
      vscode.window.onDidChangeTextEditorSelection(look),
      vscode.workspace.onDidChangeTextDocument(({ document, contentChanges }) => {
        if (contentChanges.length > 0 && document.uri.toString() === this.drawn?.uri) {
          this.keep(undefined);
        }
        look();
      }),
      vscode.workspace.onDidGrantWorkspaceTrust(look),
      vscode.workspace.onDidChangeConfiguration((change) => {
        if (SETTINGS.some((setting) => change.affectsConfiguration(setting))) {
          this.status.show(undefined);
          look();
          this.changed.fire();
        }
      }),
    );
    look();
  }

  /** Open the panel; it follows the cursor while it is open. */
  show(): void {
    if (this.panel) {
      this.panel.reveal(undefined, true);
      return;
    }
    const panel = vscode.window.createWebviewPanel(
      "qvr.prior",
      kind() === "posterior" ? "Live Posterior" : "Prior",
      { viewColumn: vscode.ViewColumn.Beside, preserveFocus: true },
      { enableScripts: true, localResourceRoots: [vscode.Uri.joinPath(this.extension, "dist")] },
    );
    this.panel = panel;
    panel.iconPath = icons(this.extension);
    panel.webview.onDidReceiveMessage((message: FromPrior) => {
      if (message.type === "ready") {
        void (this.shown && panel.webview.postMessage(this.shown));
      } else if (this.of) {
        void revealStep(vscode.Uri.parse(this.of.uri), this.of.program, message.site);
      }
    });
    panel.onDidDispose(() => {
      this.panel = undefined;
      this.questions.at(this.place());
    });
    panel.webview.html = html(panel.webview, this.extension, { script: "prior.js", title: panel.title });
    this.questions.again(this.place());
  }

  /** The densities of the steps of a program, where the setting asks for them and its text is that which was drawn from. */
  densities(uri: string, program: string): SiteDensity[] {
    const same = this.drawn?.uri === uri && this.drawn.program === program;
    return this.drawn && same && kind() !== "off" ? this.drawn.densities : [];
  }

  private keep(drawn: typeof this.drawn): void {
    this.drawn = drawn;
    this.changed.fire();
  }

  /** What the server has drawn, and how it stands. */
  private take(event: LiveEvent): void {
    const { uri, program, summary, state, text } = event;
    this.status.show(event);
    if (program !== null && summary) {
      const [notes, outside] = [event.notes ?? [], event.outside ?? {}];
      const answer: PriorAnswer = { program, version: event.version, data: event.data ?? "", problem: null, summary, notes, outside };
      this.present({ type: "prior", answer, ...(event.kind === "posterior" ? { live: text } : {}) }, { uri, program });
      this.keep({ uri, program, densities: siteDensities(answer, event.kind === "posterior") });
    } else if (state === "problem" || state === "waiting") {
      this.present({ type: "problem", text }, program === null ? undefined : { uri, program });
      this.keep(undefined);
    }
  }

  private present(shown: ToPrior, of: typeof this.of): void {
    [this.shown, this.of] = [shown, of];
    void this.panel?.webview.postMessage(shown);
  }

  /** Where the cursor is, if anything is wanted there. */
  private place(): Place | undefined {
    const wanted = this.panel !== undefined || kind() !== "off";
    const editor = vscode.window.activeTextEditor ?? (this.panel?.active ? vscode.window.visibleTextEditors.find(isProgram) : undefined);
    if (!wanted || !vscode.workspace.isTrusted || !editor || !isProgram(editor)) {
      return undefined;
    }
    return { uri: editor.document.uri.toString(), version: editor.document.version, line: editor.selection.active.line };
  }

  /** The prior there; undefined where the server draws by itself, and is told where the cursor is. */
  private async ask(place: Place, signal: AbortSignal): Promise<PriorAnswer | undefined> {
    const client = await this.server.running();
    if (!client) {
      throw new Error("The language server is not running.");
    }
    const cancelling = new vscode.CancellationTokenSource();
    signal.addEventListener("abort", () => cancelling.cancel());
    const params: PriorParams = { textDocument: { uri: place.uri }, position: { line: place.line, character: 0 } };
    try {
      if (kind() !== "off") {
        const said = await client.sendRequest<LiveEvent | null>(LIVE, params, cancelling.token);
        if (said?.version === place.version) {
          this.take(said);
        }
        return undefined;
      }
      return await client.sendRequest<PriorAnswer>(PRIOR, params, cancelling.token);
    } finally {
      cancelling.dispose();
    }
  }

  private tell(outcome: Outcome<PriorAnswer | undefined>): void {
    if ("problem" in outcome) {
      this.present({ type: "problem", text: outcome.problem }, undefined);
      this.keep(undefined);
    } else if (outcome.answer) {
      this.present({ type: "prior", answer: outcome.answer }, { uri: outcome.place.uri, program: outcome.answer.program });
    }
  }

  dispose(): void {
    this.questions.stop();
    this.listening.dispose();
    this.panel?.dispose();
  }
}

/** What is drawn while one types. */
function kind(): "off" | "prior" | "posterior" {
  const settings = vscode.workspace.getConfiguration("qvr");
  const now = settings.get<"off" | "prior" | "posterior">("live", "off");
  return now === "off" && settings.get("prior.asYouType", false) ? "prior" : now;
}

function isProgram({ document }: vscode.TextEditor): boolean {
  return document.languageId === "qvr" && document.uri.scheme === "file";
}
