/** The prior of the program under the cursor: beside its text in a panel, and, where the setting asks for it, in the text. */
import * as vscode from "vscode";
import type { Server } from "../client";
import { PRIOR, type PriorAnswer, type PriorParams } from "../protocol";
import { revealStep } from "../reveal";
import { html, icons } from "../webview";
import { type SiteDensity, siteDensities } from "./densities";
import type { FromPrior, ToPrior } from "./messages";
import { type Outcome, type Place, Questions } from "./questions";

const SETTING = "qvr.prior.asYouType";

export class Priors implements vscode.Disposable {
  private panel: vscode.WebviewPanel | undefined;
  private shown: ToPrior | undefined;
  private of: { uri: string; program: string } | undefined;
  /** What the newest draws say of the text as it stands. */
  private drawn: { uri: string; program: string; densities: SiteDensity[] } | undefined;
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onDidChange = this.changed.event;
  private readonly questions = new Questions<PriorAnswer>(
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
      watcher.onDidChange(again),
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
        if (change.affectsConfiguration(SETTING)) {
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
      "Prior",
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
    panel.webview.html = html(panel.webview, this.extension, { script: "prior.js", title: "Prior" });
    this.questions.again(this.place());
  }

  /** The densities of the steps of a program, where the setting asks for them and its text is that which was drawn from. */
  densities(uri: string, program: string): SiteDensity[] {
    const same = this.drawn?.uri === uri && this.drawn.program === program;
    return this.drawn && same && asYouType() ? this.drawn.densities : [];
  }

  private keep(drawn: typeof this.drawn): void {
    this.drawn = drawn;
    this.changed.fire();
  }

  /** Where the cursor is, if the prior is wanted there. */
  private place(): Place | undefined {
    const wanted = this.panel !== undefined || asYouType();
    const editor = vscode.window.activeTextEditor ?? (this.panel?.active ? vscode.window.visibleTextEditors.find(isProgram) : undefined);
    if (!wanted || !vscode.workspace.isTrusted || !editor || !isProgram(editor)) {
      return undefined;
    }
    return { uri: editor.document.uri.toString(), version: editor.document.version, line: editor.selection.active.line };
  }

  private async ask(place: Place, signal: AbortSignal): Promise<PriorAnswer> {
    const client = await this.server.running();
    if (!client) {
      throw new Error("The language server is not running.");
    }
    const cancelling = new vscode.CancellationTokenSource();
    signal.addEventListener("abort", () => cancelling.cancel());
    const params: PriorParams = { textDocument: { uri: place.uri }, position: { line: place.line, character: 0 } };
    try {
      return await client.sendRequest<PriorAnswer>(PRIOR, params, cancelling.token);
    } finally {
      cancelling.dispose();
    }
  }

  private tell(outcome: Outcome<PriorAnswer>): void {
    if ("answer" in outcome) {
      this.of = { uri: outcome.place.uri, program: outcome.answer.program };
      this.shown = { type: "prior", answer: outcome.answer };
      this.keep({ ...this.of, densities: siteDensities(outcome.answer) });
    } else {
      this.shown = { type: "problem", text: outcome.problem };
      this.keep(undefined);
    }
    void this.panel?.webview.postMessage(this.shown);
  }

  dispose(): void {
    this.questions.stop();
    this.listening.dispose();
    this.panel?.dispose();
  }
}

function asYouType(): boolean {
  return vscode.workspace.getConfiguration().get<boolean>(SETTING, false);
}

function isProgram({ document }: vscode.TextEditor): boolean {
  return document.languageId === "qvr" && document.uri.scheme === "file";
}
