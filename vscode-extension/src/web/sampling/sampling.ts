/** NUTS in VS Code for the web: chains of the program in a worker of the page, on files of the folder. */
import * as vscode from "vscode";
import { openProgram } from "../../program";
import { dataOf } from "./data";
import { LiveSampling } from "./live";
import type { Answer, Asked, Data, Finished } from "./request";
import type { Sampler } from "./sampler";
import { Summaries } from "./summary";
import { csvOf, short } from "./words";

const CHAINS = 4;
const [WARMUP, DRAWS] = [500, 1_000];
/** Of chains, whose numbers come from it. */
const SEED = 1;

interface Sampled {
  finished: Finished;
  version: number;
}

export class Sampling implements vscode.Disposable {
  private readonly found = new Map<string, Sampled>();
  private readonly changed = new vscode.EventEmitter<void>();
  private readonly summaries = new Summaries((finished) => this.save(finished));
  private readonly live: LiveSampling;
  private readonly parts: vscode.Disposable;
  private busy = false;

  constructor(private readonly sampler: Sampler) {
    this.live = new LiveSampling(
      sampler,
      async (document, warmup, draws) => {
        const found = await dataOf(document, sampler, false);
        return found && asked(document, found, warmup, draws);
      },
      () => this.busy,
      () => this.changed.fire(),
    );
    const hints = vscode.languages.registerInlayHintsProvider({ language: "qvr" }, {
      onDidChangeInlayHints: this.changed.event,
      provideInlayHints: (document) => this.hints(document),
    });
    const typed = vscode.workspace.onDidChangeTextDocument(({ document }) => {
      if (this.found.get(document.uri.toString())?.version !== document.version) {
        this.changed.fire();
      }
    });
    this.parts = vscode.Disposable.from(hints, typed, this.changed, this.summaries, this.live);
  }

  /** Sample the program that is open; a notification says how far it is, and cancels. */
  async sample(): Promise<void> {
    const document = openProgram();
    if (!document || this.busy) {
      return;
    }
    this.busy = true;
    try {
      const found = await dataOf(document, this.sampler, true);
      if (found) {
        await this.run(document, asked(document, found, WARMUP, DRAWS));
      }
    } catch (error) {
      void vscode.window.showErrorMessage(`QVR: ${error instanceof Error ? error.message : String(error)}`);
    } finally {
      this.busy = false;
    }
  }

  private async run(document: vscode.TextDocument, request: Asked): Promise<void> {
    const { version, uri } = document;
    const title = vscode.workspace.asRelativePath(uri);
    const options = { location: vscode.ProgressLocation.Notification, title: `QVR: NUTS of ${title}`, cancellable: true };
    const answer = await vscode.window.withProgress(options, (progress, token) => this.ended(request, progress, token));
    if (answer.kind === "problem") {
      void vscode.window.showErrorMessage(`QVR: ${answer.text}`);
    } else if (answer.kind === "finished") {
      this.found.set(uri.toString(), { finished: answer, version });
      this.changed.fire();
      this.summaries.show(title, answer);
    }
  }

  private ended(request: Asked, progress: vscode.Progress<{ message?: string; increment?: number }>, token: vscode.CancellationToken): Promise<Answer> {
    return new Promise((resolve) => {
      let done = 0;
      const take = (answer: Answer): void => {
        if (answer.kind === "loading") {
          progress.report({ message: `loading ${answer.what} …` });
        } else if (answer.kind === "progress") {
          progress.report({ message: `${answer.done.toLocaleString("en")} of ${answer.of.toLocaleString("en")} transitions`, increment: ((answer.done - done) / answer.of) * 100 });
          done = answer.done;
        } else {
          resolve(answer);
        }
      };
      token.onCancellationRequested(() => this.sampler.cancel(take));
      this.sampler.run(request, take);
    });
  }

  /** Draws of the text as it is, else what was drawn as one typed, behind each step. */
  private hints(document: vscode.TextDocument): vscode.InlayHint[] {
    const own = this.found.get(document.uri.toString());
    if (own?.version === document.version) {
      return behind(document, own.finished, "≈", "Posterior mean and sd of");
    }
    const live = this.live.of(document);
    return live ? behind(document, live, "live", "Live posterior, no run: mean and sd of") : [];
  }

  private async save(finished: Finished): Promise<void> {
    const folder = vscode.workspace.workspaceFolders?.[0]?.uri;
    const place = (name: string): vscode.Uri | undefined => folder && vscode.Uri.joinPath(folder, name);
    const filters = { NetCDF: ["nc"], csv: ["csv"] };
    const target = await vscode.window.showSaveDialog({ defaultUri: place("posterior.nc"), filters, title: "Save the draws (.nc or .csv)" });
    if (!target) {
      return;
    }
    try {
      const content = target.path.endsWith(".csv") ? new TextEncoder().encode(csvOf(finished)) : await this.sampler.reply({ netcdf: finished });
      await vscode.workspace.fs.writeFile(target, content);
    } catch (error) {
      void vscode.window.showErrorMessage(`QVR: the draws could not be saved: ${error instanceof Error ? error.message : String(error)}`);
    }
  }

  dispose(): void {
    this.parts.dispose();
    this.sampler.dispose();
  }
}

function asked(document: vscode.TextDocument, found: Data, warmup: number, draws: number): Asked {
  return { ...found, text: document.getText(), chains: CHAINS, warmup, draws, seed: SEED };
}

function behind(document: vscode.TextDocument, { rows: all, latents }: Finished, mark: string, what: string): vscode.InlayHint[] {
  const rows = new Map(all.map((row) => [row.name, row]));
  return latents.flatMap(({ name, shape, line }) => {
    const row = rows.get(name);
    if (line === null || line >= document.lineCount || !row || shape.length > 0) {
      return [];
    }
    const hint = new vscode.InlayHint(document.lineAt(line).range.end, `${mark} ${short(row.mean)} ± ${short(row.sd)}`);
    hint.paddingLeft = true;
    hint.tooltip = `${what} ${name}`;
    return [hint];
  });
}
