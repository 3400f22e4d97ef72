/** The diagram beside the text: asked for when the text has changed, lit where the cursor stands. */
import type * as monaco from "monaco-editor/editor/editor.api.js";
import type { FromDiagram, ToDiagram } from "../../../vscode-extension/src/diagram/messages";
import type { SiteDensity } from "../../../vscode-extension/src/live/densities";
import { nodesAt } from "../../../vscode-extension/src/nodes";
import { DIAGRAM, type DiagramAnswer, type DiagramParams } from "../../../vscode-extension/src/protocol";
import type { Transport } from "../language/transport";
import { say } from "../page/elements";
import type { Shade } from "../page/theme";

/** Time without an edit after which the picture is asked for again. */
const DELAY_MS = 150;

export interface Opener {
  /** Shows a place of the program, or of another file. */
  reveal(range: DiagramAnswer["nodes"][number]["range"], uri: string | undefined): void;
}

export class DiagramPanel {
  private answer: DiagramAnswer | undefined;
  private name: string | undefined;
  private opened: string[] = [];
  private asked = 0;
  private timer = 0;
  private drawn = "";
  private ready = false;
  private live: { program: string; densities: SiteDensity[] } | undefined;
  private shade: Shade = "light";

  constructor(
    private readonly frame: HTMLIFrameElement,
    private readonly editor: monaco.editor.IStandaloneCodeEditor,
    private readonly uri: string,
    private readonly transport: Transport,
    private readonly opener: Opener,
  ) {
    addEventListener("message", ({ source, data }: MessageEvent<FromDiagram>) => {
      if (source === frame.contentWindow) {
        this.receive(data);
      }
    });
    editor.onDidChangeCursorPosition(() => this.follow());
    frame.src = new URL("diagram.html", document.baseURI).href;
  }

  paint(shade: Shade): void {
    this.shade = shade;
    this.send({ type: "shade", shade });
  }

  /** Ask again soon; several calls become one. */
  later(): void {
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => void this.refresh(), DELAY_MS);
  }

  /** Another program: nothing of the one before is wanted. */
  forget(): void {
    this.name = undefined;
    this.opened = [];
  }

  /** Show what is drawn as one types at the nodes of its program; nothing takes it away. */
  densities(drawn: { program: string; densities: SiteDensity[] } | undefined): void {
    this.live = drawn;
    this.send({ type: "densities", densities: drawn && drawn.program === this.answer?.name ? drawn.densities : [] });
  }

  private async refresh(): Promise<void> {
    if (!this.ready) {
      return;
    }
    const turn = ++this.asked;
    const params: DiagramParams = { textDocument: { uri: this.uri }, name: this.name, opened: this.opened };
    try {
      const answer = await this.transport.request<DiagramAnswer>(DIAGRAM, params);
      if (turn === this.asked) {
        this.show(answer);
      }
    } catch (error) {
      if (turn !== this.asked) {
        return;
      }
      if (this.name !== undefined) {
        this.forget(); // it may have been renamed or removed
        this.later();
      }
      this.send({ type: "problem", message: error instanceof Error ? error.message : String(error) });
    }
  }

  private show(answer: DiagramAnswer): void {
    this.answer = answer;
    const state = { uri: this.uri, name: this.name, follow: true, opened: this.opened };
    this.send({ type: "diagram", answer, state, wireLabels: true });
    this.densities(this.live);
    this.follow();
  }

  private follow(): void {
    const place = this.editor.getPosition();
    if (this.answer && place && this.editor.getModel()?.uri.toString(true) === this.uri) {
      const position = { line: place.lineNumber - 1, character: place.column - 1 };
      this.send({ type: "highlight", nodes: nodesAt(this.answer.nodes, position) });
    }
  }

  private receive(message: FromDiagram): void {
    switch (message.type) {
      case "ready":
        this.ready = true;
        this.paint(this.shade);
        void this.refresh();
        break;
      case "reveal": {
        const node = this.answer?.nodes.find(({ id }) => id === message.node);
        this.opener.reveal(node?.home?.range ?? node?.range ?? null, node?.home?.uri);
        break;
      }
      case "open":
        this.opened = [...this.opened, message.box];
        void this.refresh();
        break;
      case "name":
        this.name = message.name;
        this.opened = [];
        void this.refresh();
        break;
      case "drawn":
        this.drawn = message.svg;
        break;
      case "save":
        this.save();
        break;
    }
  }

  private save(): void {
    if (!this.drawn) {
      say("There is no diagram to save yet.");
      return;
    }
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([this.drawn], { type: "image/svg+xml" }));
    link.download = `${this.answer?.name ?? "diagram"}.svg`;
    link.click();
    URL.revokeObjectURL(link.href);
  }

  private send(message: ToDiagram | { type: "shade"; shade: Shade }): void {
    if (this.ready) {
      this.frame.contentWindow?.postMessage(message, location.origin);
    }
  }
}
