/** The posterior as one types (`qvr.live`): short chains once the typing rests; the language status says how they stand. */
import * as vscode from "vscode";
import { LiveStatus } from "../../live/status";
import type { Answer, Asked, Finished } from "./request";
import type { Sampler } from "./sampler";

const PAUSE_MS = 300;
const [WARMUP, DRAWS] = [200, 500];

type Request = (document: vscode.TextDocument, warmup: number, draws: number) => Promise<Asked | undefined>;

export class LiveSampling implements vscode.Disposable {
  private readonly status = new LiveStatus();
  private readonly listening: vscode.Disposable;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private drawn: { document: vscode.TextDocument; version: number; finished: Finished } | undefined;
  private take: ((answer: Answer) => void) | undefined;

  /** `request` is what a run would ask, `busy` whether one goes on; `changed` is called when there are other figures. */
  constructor(
    private readonly sampler: Sampler,
    private readonly request: Request,
    private readonly busy: () => boolean,
    private readonly changed: () => void,
  ) {
    this.listening = vscode.Disposable.from(
      vscode.workspace.onDidChangeTextDocument(({ document, contentChanges }) => contentChanges.length > 0 && this.rest(document)),
      vscode.window.onDidChangeActiveTextEditor((editor) => editor && this.rest(editor.document)),
      vscode.workspace.onDidChangeConfiguration((event) => {
        const document = vscode.window.activeTextEditor?.document;
        if (event.affectsConfiguration("qvr.live") && document) {
          this.rest(document);
        }
      }),
    );
  }

  /** The figures of a text as it is. */
  of(document: vscode.TextDocument): Finished | undefined {
    const { drawn } = this;
    return drawn?.document === document && drawn.version === document.version ? drawn.finished : undefined;
  }

  private rest(document: vscode.TextDocument): void {
    clearTimeout(this.timer);
    if (this.take) {
      // Python cannot be interrupted while it makes the module, and would take seconds to start again
      this.sampler.cancel(this.take, true);
    }
    if (document.languageId !== "qvr" || vscode.workspace.getConfiguration("qvr").get("live") !== "posterior" || !vscode.workspace.isTrusted) {
      this.status.show(undefined);
      return;
    }
    this.timer = setTimeout(() => void this.start(document), PAUSE_MS);
  }

  private async start(document: vscode.TextDocument): Promise<void> {
    const { version } = document;
    const say = (state: "drawing" | "drawn" | "problem", text: string): void =>
      this.status.show({ kind: "posterior", state, text } as Parameters<LiveStatus["show"]>[0]);
    if (this.busy() || this.of(document)) {
      return;
    }
    try {
      const asked = await this.request(document, WARMUP, DRAWS);
      if (!asked || version !== document.version) {
        return;
      }
      const budget = 1_000 * (vscode.workspace.getConfiguration("qvr").get<number>("liveBudget") ?? 2);
      const take = (answer: Answer): void => {
        if (version !== document.version) {
          return;
        }
        if (answer.kind === "loading") {
          say("drawing", `loading ${answer.what} …`);
        } else if (answer.kind === "problem") {
          say("problem", answer.text);
        } else if (answer.kind === "finished") {
          const { chains, draws, prepared, sampled } = answer;
          say("drawn", `${chains} chains of ${draws} draws in ${((prepared + sampled) / 1_000).toFixed(1)} s`);
          this.drawn = { document, version, finished: answer };
          this.changed();
        }
      };
      this.take = take;
      this.sampler.run({ ...asked, budget }, take);
    } catch (error) {
      say("problem", error instanceof Error ? error.message : String(error));
    }
  }

  dispose(): void {
    clearTimeout(this.timer);
    this.listening.dispose();
    this.status.dispose();
  }
}
