/** What the page adds to sample in it: data, a run, its summary, posterior inlays, and draws to download. */
import * as monaco from "monaco-editor/editor/editor.api.js";
import { el } from "../../../vscode-extension/webviews/dom";
import { part, say } from "../page/elements";
import { LiveSampling } from "./live";
import type { Answer, Asked, Data, Finished } from "../../../vscode-extension/src/web/sampling/request";
import { Sampler } from "../../../vscode-extension/src/web/sampling/sampler";
import { HEADS, cellsOf, csvOf, endOf, short } from "../../../vscode-extension/src/web/sampling/words";

const CHAINS = 4;
const MOST_SHOWN = 400;
/** Of chains, whose numbers come from it. */
const SEED = 1;

export const NO_DATA: Data = { files: {}, main: null, named: {}, columns: {} };

export class Sampling {
  private readonly run = el("button", { id: "sample", title: "Sample the posterior by NUTS in this page", click: () => this.start() }, "▶ NUTS");
  private readonly view = el("button", { id: "view", hidden: true, click: () => this.show(this.pane.hidden) });
  private readonly draws = el("input", { id: "draws", type: "number", min: "10", max: "20000", value: "1000", "aria-label": "Draws of each chain" });
  private readonly cells = el("textarea", {
    id: "cells", spellcheck: "false", "aria-label": "Data as csv", placeholder: "Paste a csv with a header, or open a file.",
    input: () => this.typed(),
  }); // prettier-ignore
  private readonly file = el("input", { id: "open-data", type: "file", accept: ".csv,.json,text/csv,application/json", "aria-label": "Open data", change: () => void this.open() });
  private readonly which = el("select", { id: "which", "aria-label": "File of data", change: () => this.showFile() });
  private readonly bar = el("progress", { id: "sampled", max: "1", value: "0", hidden: true });
  private readonly cancel = el("button", { id: "cancel", hidden: true, click: () => this.sampler.cancel(this.take) }, "Cancel");
  private readonly told = el("p", { id: "told", role: "status" });
  private readonly summary = el("div", { id: "summary" });
  private readonly save = el("button", { id: "save-draws", hidden: true, click: () => this.download() }, "Draws as csv");
  private readonly saveFile = el("button", { id: "save-posterior", hidden: true, click: () => void this.downloadFile() }, "posterior.nc");
  private readonly pane = el("section", { id: "sampling", "aria-label": "Sampling", hidden: true });
  private readonly diagram = part<HTMLIFrameElement>("diagram");
  private data: Data = NO_DATA;
  private readonly sampler = new Sampler(() => new Worker(new URL("server/sampling.js", document.baseURI), { name: "qvr-sampling" }));
  private readonly live: LiveSampling;
  private found: Finished | undefined;
  /** The text that was sampled. */
  private version = -1;
  private readonly changed = new monaco.Emitter<void>();

  constructor(private readonly program: monaco.editor.ITextModel) {
    const files = el("div", { class: "row" }, el("h2", {}, "Data"), this.which, this.file);
    const runs = el("div", { class: "row" }, el("label", {}, `${CHAINS} chains of `, this.draws, " draws"), this.cancel, this.save, this.saveFile);
    this.pane.append(files, this.cells, runs, this.bar, this.told, this.summary);
    this.diagram.after(this.pane);
    const data = el("button", { id: "data-button", title: "The data of the program", click: () => this.show(true) }, "Data");
    const asked = (warmup: number, draws: number): Asked => this.asked(warmup, draws);
    this.live = new LiveSampling(program, this.sampler, asked, () => !this.cancel.hidden, () => this.changed.fire());
    part("tools").append(data, this.run, this.view);
    part("count").after(el("p", { id: "live-row" }, this.live.choice, this.live.line));
    monaco.languages.registerInlayHintsProvider("qvr", {
      onDidChangeInlayHints: this.changed.event,
      provideInlayHints: (model) => ({ hints: model === this.program ? this.hints() : [], dispose: () => undefined }),
    });
    program.onDidChangeContent(() => this.changed.fire());
  }

  /** The data that belong to the text that was opened. */
  use(data: Data): void {
    this.data = data;
    this.fill();
    this.live.rest();
  }

  private fill(): void {
    const names = Object.keys(this.data.files);
    this.which.replaceChildren(...names.map((name) => el("option", { value: name }, name)));
    this.which.hidden = names.length < 2;
    this.showFile();
  }

  private showFile(): void {
    this.cells.value = this.data.files[this.which.value || this.data.main || ""] ?? "";
  }

  private typed(): void {
    const name = this.which.value || this.data.main || "pasted.csv";
    this.data = { ...this.data, main: this.data.main ?? name, files: { ...this.data.files, [name]: this.cells.value } };
    this.live.rest();
  }

  private async open(): Promise<void> {
    const chosen = this.file.files?.[0];
    if (chosen) {
      this.data = { ...NO_DATA, main: chosen.name, files: { [chosen.name]: await chosen.text() } };
      this.fill();
      this.live.rest();
    }
  }

  private show(pane: boolean): void {
    this.pane.hidden = !pane;
    this.diagram.hidden = pane;
    this.view.hidden = false;
    this.view.textContent = pane ? "Show diagram" : "Show run";
  }

  private start(): void {
    this.show(true);
    const draws = Math.round(Number(this.draws.value));
    if (!(draws >= 10 && draws <= 20_000)) {
      say("Between 10 and 20,000 draws of each chain", "error");
      this.draws.focus();
      return;
    }
    this.version = this.program.getVersionId();
    this.going(true);
    this.summary.replaceChildren();
    this.found = undefined;
    this.changed.fire();
    this.sampler.run(this.asked(Math.max(draws >> 1, 200), draws), this.take);
  }

  private asked(warmup: number, draws: number): Asked {
    const main = this.data.main !== null && this.data.files[this.data.main]?.trim() ? this.data.main : null;
    return { ...this.data, main, text: this.program.getValue(), chains: CHAINS, warmup, draws, seed: SEED };
  }

  private going(now: boolean): void {
    this.run.disabled = now;
    this.cancel.hidden = !now;
    this.bar.hidden = !now;
    this.bar.removeAttribute("value");
    this.save.hidden = this.saveFile.hidden = true;
    this.told.className = "";
    document.documentElement.dataset["sampling"] = now ? "going" : "idle";
  }

  private readonly take = (answer: Answer): void => {
    switch (answer.kind) {
      case "loading":
        this.told.textContent = `Loading ${answer.what} …`;
        break;
      case "progress":
        this.bar.value = answer.done / answer.of;
        this.told.textContent = `${answer.done.toLocaleString("en")} of ${answer.of.toLocaleString("en")} transitions`;
        break;
      case "problem":
        this.going(false);
        this.told.textContent = answer.text;
        this.told.className = "error";
        break;
      case "cancelled":
        this.going(false);
        this.told.textContent = "Cancelled";
        break;
      case "finished":
        this.going(false);
        this.finish(answer);
    }
  };

  private finish(found: Finished): void {
    const { rows } = found;
    this.found = found;
    this.save.hidden = this.saveFile.hidden = false;
    this.told.textContent = endOf(found);
    const shown = rows.slice(0, MOST_SHOWN);
    const body = shown.map((row) => el("tr", {}, el("th", { scope: "row" }, row.name), ...cellsOf(row).map((text) => el("td", {}, text))));
    const head = el("tr", {}, ...HEADS.map((text) => el("th", { scope: "col" }, text)));
    this.summary.replaceChildren(el("table", {}, el("thead", {}, head), el("tbody", {}, ...body)));
    if (rows.length > shown.length) {
      this.summary.append(el("p", {}, `and ${(rows.length - shown.length).toLocaleString("en")} more, in the draws as csv`));
    }
    this.changed.fire();
  }

  /** The posterior behind each step: of a run of the text as it is, else what was drawn as one typed. */
  private hints(): monaco.languages.InlayHint[] {
    const version = this.program.getVersionId();
    if (this.found && this.version === version) {
      return this.behind(this.found, "≈", "Posterior mean and sd of");
    }
    const { found } = this.live;
    return found?.version === version ? this.behind(found.finished, "live", "Live posterior, no run: mean and sd of") : [];
  }

  private behind({ rows: all, latents }: Finished, mark: string, what: string): monaco.languages.InlayHint[] {
    const rows = new Map(all.map((row) => [row.name, row]));
    return latents.flatMap(({ name, shape, line }) => {
      const row = rows.get(name);
      if (line === null || line >= this.program.getLineCount() || !row || shape.length > 0) {
        return [];
      }
      const position = { lineNumber: line + 1, column: this.program.getLineMaxColumn(line + 1) };
      return [{ label: `${mark} ${short(row.mean)} ± ${short(row.sd)}`, position, paddingLeft: true, tooltip: `${what} ${name}` }];
    });
  }

  private download(): void {
    const { found } = this;
    if (!found) {
      return;
    }
    saved(new Blob([csvOf(found)], { type: "text/csv" }), "draws.csv");
  }

  private async downloadFile(): Promise<void> {
    const { found } = this;
    if (!found) {
      return;
    }
    this.saveFile.disabled = true;
    try {
      saved(new Blob([(await this.sampler.reply({ netcdf: found })) as BlobPart], { type: "application/x-netcdf" }), "posterior.nc");
    } catch (error) {
      say(`The file could not be made (${error instanceof Error ? error.message : String(error)}). What writes it is fetched at the first click: is this machine online?`, "error");
    } finally {
      this.saveFile.disabled = false;
    }
  }
}

function saved(content: Blob, name: string): void {
  const address = URL.createObjectURL(content);
  el("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
