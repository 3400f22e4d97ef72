/** What a program says while it is written: a choice, and a line that says how it stands. The server draws; its inlays come with the others. */
import type * as monaco from "monaco-editor/editor/editor.api.js";
import { type SiteDensity, siteDensities } from "../../../vscode-extension/src/live/densities";
import { LIVE, type LiveEvent } from "../../../vscode-extension/src/protocol";
import { el } from "../../../vscode-extension/webviews/dom";
import type { Transport } from "../language/transport";

type Kind = "off" | "prior" | "posterior";
const KINDS: [Kind, string][] = [["off", "Live: off"], ["prior", "Live prior"], ["posterior", "Live posterior"]]; // prettier-ignore
const KEY = "qvr-live";
/** Time for which the cursor rests before the server is told where it is. */
const REST_MS = 300;

export interface Drawn {
  program: string;
  densities: SiteDensity[];
}

export class PlayLive {
  /** Chooses what is drawn; kept in this browser. */
  readonly choice = el("select", { id: "live", "aria-label": "What is drawn as you type", change: () => this.choose() });
  readonly line = el("span", { id: "live-line" });
  private timer = 0;

  /** `show` gets what the diagram shows at its nodes; nothing where the text has changed. */
  constructor(
    private readonly uri: string,
    private readonly editor: monaco.editor.IStandaloneCodeEditor,
    private readonly program: monaco.editor.ITextModel,
    private readonly transport: Transport,
    private readonly show: (drawn: Drawn | undefined) => void,
  ) {
    this.choice.append(...KINDS.map(([value, title]) => el("option", { value }, title)));
    this.choice.value = kept();
    transport.on<LiveEvent>(LIVE, (event) => this.take(event));
    transport.initialized(() => this.tell());
    program.onDidChangeContent(() => this.show(undefined));
    editor.onDidChangeCursorPosition(() => this.rest());
  }

  private choose(): void {
    keep(this.choice.value);
    this.line.textContent = "";
    this.show(undefined);
    this.tell();
  }

  private tell(): void {
    this.transport.notify("workspace/didChangeConfiguration", { settings: { qvr: { live: this.choice.value } } });
  }

  private rest(): void {
    clearTimeout(this.timer);
    const place = this.editor.getPosition();
    if (this.choice.value !== "off" && place && this.editor.getModel() === this.program) {
      const params = { textDocument: { uri: this.uri }, position: { line: place.lineNumber - 1, character: place.column - 1 } };
      this.timer = window.setTimeout(() => void this.transport.request(LIVE, params).catch(() => undefined), REST_MS);
    }
  }

  private take(event: LiveEvent): void {
    if (this.choice.value === "off") {
      return;
    }
    this.line.textContent = event.text;
    document.documentElement.dataset["live"] = event.state;
    if (event.program !== null && event.summary) {
      const drawn = { summary: event.summary, outside: event.outside ?? {} };
      this.show({ program: event.program, densities: siteDensities(drawn, event.kind === "posterior") });
    } else if (event.state !== "drawing") {
      this.show(undefined);
    }
  }
}

function kept(): Kind {
  try {
    const found = localStorage.getItem(KEY);
    return KINDS.find(([kind]) => kind === found)?.[0] ?? "off";
  } catch {
    return "off"; // a browser that keeps nothing
  }
}

function keep(kind: string): void {
  try {
    localStorage.setItem(KEY, kind);
  } catch {
    // then it is off the next time
  }
}
