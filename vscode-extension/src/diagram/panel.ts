/** The diagram beside the editor: live, and linked both ways with the cursor. */
import * as vscode from "vscode";
import { nodesAt } from "../nodes";
import type { SiteDensity } from "../live/densities";
import { DIAGRAM, type DiagramAnswer, type DiagramParams } from "../protocol";
import { named, type Serving } from "../serving";
import { html, icons } from "../webview";
import type { FromDiagram, ToDiagram } from "./messages";
import { saveDiagram } from "./save";

interface Shown {
  uri: string;
  name: string | undefined;
  /** True while the panel draws what the cursor stands in. */
  follow: boolean;
  opened: string[];
}

/** What was drawn from a program. */
interface Densities {
  densities(uri: string, program: string): SiteDensity[];
  readonly onDidChange: vscode.Event<void>;
}

/** Time without an edit after which the picture is asked for again. */
const DELAY_MS = 150;

class DiagramPanel {
  private answer: DiagramAnswer | undefined;
  private asked = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private svg = "";

  constructor(
    readonly panel: vscode.WebviewPanel,
    readonly shown: Shown,
    private readonly server: Serving,
    private readonly live: Densities | undefined,
    extension: vscode.Uri,
  ) {
    panel.webview.options = { enableScripts: true, localResourceRoots: [vscode.Uri.joinPath(extension, "dist")] };
    panel.iconPath = icons(extension);
    panel.webview.onDidReceiveMessage((message: FromDiagram) => void this.receive(message));
    panel.webview.html = html(panel.webview, extension, { script: "diagram.js", title: "Diagram", worker: true });
  }

  get uri(): vscode.Uri {
    return vscode.Uri.parse(this.shown.uri);
  }

  show(name: string | undefined): void {
    this.shown.name = name;
    this.shown.opened = [];
    void this.refresh();
  }

  /** Ask again soon; several calls become one. */
  later(): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.refresh(), DELAY_MS);
  }

  async refresh(): Promise<void> {
    const turn = ++this.asked;
    const client = await this.server.running();
    if (!client) {
      this.send({ type: "problem", message: "The language server is not running." });
      return;
    }
    const params: DiagramParams = { textDocument: { uri: named(client, this.uri) }, name: this.shown.name, opened: this.shown.opened };
    try {
      await vscode.workspace.openTextDocument(this.uri);
      const answer = await client.sendRequest<DiagramAnswer>(DIAGRAM, params);
      if (turn !== this.asked) {
        return;
      }
      this.answer = answer;
      this.panel.title = `◫ ${answer.name}`;
      this.send({ type: "diagram", answer, state: this.shown, wireLabels: option("wireLabels") });
      this.densities();
      this.follow(this.editor()?.selection.active);
    } catch (error) {
      if (turn === this.asked) {
        this.send({ type: "problem", message: error instanceof Error ? error.message : String(error) });
      }
    }
  }

  /** Show what was drawn at the nodes, or take away what is not any more. */
  densities(): void {
    if (this.answer) {
      this.send({ type: "densities", densities: this.live?.densities(this.uri.toString(), this.answer.name) ?? [] });
    }
  }

  /** Highlight what stands at `position`. */
  follow(position: vscode.Position | undefined): void {
    if (!this.answer || !position || !option("followCursor")) {
      return;
    }
    this.send({ type: "highlight", nodes: nodesAt(this.answer.nodes, position) });
  }

  async save(): Promise<void> {
    if (this.answer) {
      await saveDiagram(this.server, this.shown.uri, this.answer, this.svg);
    }
  }

  private editor(): vscode.TextEditor | undefined {
    return vscode.window.visibleTextEditors.find((editor) => editor.document.uri.toString() === this.uri.toString());
  }

  private async receive(message: FromDiagram): Promise<void> {
    switch (message.type) {
      case "ready":
        await this.refresh();
        break;
      case "reveal":
        await this.reveal(message.node);
        break;
      case "open":
        this.shown.opened = [...this.shown.opened, message.box];
        await this.refresh();
        break;
      case "name":
        this.show(message.name);
        break;
      case "drawn":
        this.svg = message.svg;
        break;
      case "save":
        await this.save();
        break;
    }
  }

  private async reveal(id: string): Promise<void> {
    const node = this.answer?.nodes.find((node) => node.id === id);
    const range = node?.home?.range ?? node?.range;
    if (!range) {
      return;
    }
    const client = await this.server.running();
    const uri = node?.home && client ? client.protocol2CodeConverter.asUri(node.home.uri) : this.uri;
    const selection = new vscode.Range(range.start.line, range.start.character, range.end.line, range.end.character);
    const column = this.editor()?.viewColumn ?? vscode.ViewColumn.One;
    const document = await vscode.workspace.openTextDocument(uri);
    await vscode.window.showTextDocument(document, { viewColumn: column, selection });
  }

  private send(message: ToDiagram): void {
    void this.panel.webview.postMessage(message);
  }

  dispose(): void {
    clearTimeout(this.timer);
  }
}

export class DiagramPanels implements vscode.Disposable, vscode.WebviewPanelSerializer<Shown> {
  private readonly panels = new Set<DiagramPanel>();
  private readonly disposables: vscode.Disposable[];

  constructor(
    private readonly context: vscode.ExtensionContext,
    private readonly server: Serving,
    private readonly live?: Densities,
  ) {
    this.disposables = [
      vscode.window.registerWebviewPanelSerializer("qvr.diagram", this),
      vscode.workspace.onDidChangeTextDocument(({ document }) => this.of(document.uri, (panel) => panel.later())),
      vscode.window.onDidChangeTextEditorSelection(({ textEditor, selections }) =>
        this.of(textEditor.document.uri, (panel) => panel.follow(selections[0]?.active)),
      ),
      vscode.workspace.onDidChangeConfiguration((event) => {
        if (event.affectsConfiguration("qvr.diagram")) {
          this.panels.forEach((panel) => panel.later());
        }
      }),
      ...(live ? [live.onDidChange(() => this.panels.forEach((panel) => panel.densities()))] : []),
      server.onDidStart(() => this.panels.forEach((panel) => panel.later())),
    ];
  }

  /** Open the diagram of a file, or bring it to the front. */
  async show(uri: string, name?: string): Promise<void> {
    const known = [...this.panels].find((panel) => panel.shown.uri === uri);
    if (known) {
      known.panel.reveal(undefined, true);
      known.show(name ?? known.shown.name);
      return;
    }
    const panel = vscode.window.createWebviewPanel(
      "qvr.diagram",
      "◫ Diagram",
      { viewColumn: vscode.ViewColumn.Beside, preserveFocus: true },
      { enableScripts: true, retainContextWhenHidden: false },
    );
    this.add(panel, { uri, name, follow: true, opened: [] });
  }

  async save(): Promise<void> {
    const active = [...this.panels].find((panel) => panel.panel.active) ?? [...this.panels][0];
    if (active) {
      await active.save();
      return;
    }
    const document = vscode.window.activeTextEditor?.document;
    const client = await this.server.running();
    if (document?.languageId === "qvr" && client) {
      const answer = await client.sendRequest<DiagramAnswer>(DIAGRAM, { textDocument: { uri: named(client, document.uri) } });
      await saveDiagram(this.server, document.uri.toString(), answer, "");
    }
  }

  deserializeWebviewPanel(panel: vscode.WebviewPanel, state: Shown | undefined): Promise<void> {
    if (state?.uri) {
      this.add(panel, { ...state });
    } else {
      panel.dispose();
    }
    return Promise.resolve();
  }

  private add(panel: vscode.WebviewPanel, shown: Shown): void {
    const added = new DiagramPanel(panel, shown, this.server, this.live, this.context.extensionUri);
    this.panels.add(added);
    panel.onDidDispose(() => {
      added.dispose();
      this.panels.delete(added);
    });
  }

  private of(uri: vscode.Uri, act: (panel: DiagramPanel) => void): void {
    for (const panel of this.panels) {
      if (panel.uri.toString() === uri.toString()) {
        act(panel);
      }
    }
  }

  dispose(): void {
    vscode.Disposable.from(...this.disposables).dispose();
    this.panels.forEach((panel) => panel.panel.dispose());
  }
}

function option(name: "followCursor" | "wireLabels"): boolean {
  return vscode.workspace.getConfiguration("qvr").get(`diagram.${name}`, true);
}
