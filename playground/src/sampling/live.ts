/** The posterior as one types: short chains once the typing rests, for so many seconds; a line says how they stand. */
import type * as monaco from "monaco-editor/editor/editor.api.js";
import { el } from "../../../vscode-extension/webviews/dom";
import type { Answer, Asked, Finished } from "../../../vscode-extension/src/web/sampling/request";
import type { Sampler } from "../../../vscode-extension/src/web/sampling/sampler";

const PAUSE_MS = 300;
const BUDGET_MS = 2_000;
const [WARMUP, DRAWS] = [200, 500];

export class LiveSampling {
  readonly choice = el("select", { id: "live", "aria-label": "What is drawn as you type", change: () => this.rest() });
  readonly line = el("span", { id: "live-line" });
  /** The last draws, and of which version of the text they are. */
  found: { finished: Finished; version: number } | undefined;
  private timer = 0;
  private version = -1;

  /** `asked` is what a run of the text would ask, `busy` whether one goes on; `changed` is called when there are other figures. */
  constructor(
    private readonly program: monaco.editor.ITextModel,
    private readonly sampler: Sampler,
    private readonly asked: (warmup: number, draws: number) => Asked,
    private readonly busy: () => boolean,
    private readonly changed: () => void,
  ) {
    this.choice.append(el("option", { value: "off" }, "Live: off"), el("option", { value: "posterior" }, "Live posterior"));
    program.onDidChangeContent(() => this.rest());
  }

  /** The text, or the data, are others: draw again in a moment. */
  rest(): void {
    clearTimeout(this.timer);
    // Python cannot be interrupted while it makes the module, and would take seconds to start again
    this.sampler.cancel(this.take, true);
    if (this.choice.value === "off") {
      this.line.textContent = "";
      this.show(undefined);
    } else {
      this.timer = window.setTimeout(() => this.start(), PAUSE_MS);
    }
  }

  private start(): void {
    if (this.busy()) {
      return;
    }
    this.version = this.program.getVersionId();
    this.sampler.run({ ...this.asked(WARMUP, DRAWS), budget: BUDGET_MS }, this.take);
  }

  private readonly take = (answer: Answer): void => {
    if (this.choice.value === "off" || this.version !== this.program.getVersionId()) {
      return;
    }
    switch (answer.kind) {
      case "loading":
        this.line.textContent = `loading ${answer.what} …`;
        break;
      case "problem":
        this.line.textContent = answer.text;
        this.show(undefined);
        break;
      case "finished": {
        const { chains, draws, divergences, prepared, sampled } = answer;
        const diverged = divergences ? `, ${divergences} diverged` : "";
        this.line.textContent = `live posterior: ${chains} chains of ${draws} draws in ${((prepared + sampled) / 1_000).toFixed(1)} s${diverged}`;
        this.show({ finished: answer, version: this.version });
      }
    }
  };

  private show(found: typeof this.found): void {
    if (found !== this.found) {
      this.found = found;
      this.changed();
    }
  }
}
