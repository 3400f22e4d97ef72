/** The page of the run panel. */
import uplotCss from "uplot/dist/uPlot.min.css";
import type { FromRun, ToRun } from "../../src/runs/messages";
import type { Summary } from "../../src/runs/figures";
import { soFar } from "../../src/runs/drawn";
import { canExtend, canResume, gravePoints, isOver, lossName, summary, take, type RunState } from "../../src/runs/state";
import { count, duration } from "../../src/runs/words";
import { el, style } from "../dom";
import { Chart, type Line } from "./chart";
import { posteriorTable } from "./posterior";
import { compareView, type Other } from "./compare";
import { chainsView, pairsView, posteriorView, predictiveView } from "./views";
import css from "./run.css";

interface Kept {
  runId: string;
  log: boolean;
  smoothed: boolean;
  tab: Tab;
}

/** `first` is the loss of a fit, or the acceptance and the chains of a sampler. */
type Tab = "first" | "posterior" | "pairs" | "predictive" | "compare";

const vscode = acquireVsCodeApi<Kept>();
type Plain = Exclude<FromRun, { type: "site" } | { type: "compare" }>["type"];
const send = (type: Plain): void => vscode.postMessage({ type });

style(uplotCss);
style(css);
const button = (type: Plain, label: string, kind = "secondary") => el("button", { class: kind, click: () => send(type) }, label);
const toggle = (label: string, name: "log" | "smoothed") =>
  el("label", {}, el("input", { type: "checkbox", "data-name": name, change: (event) => keep({ [name]: (event.target as HTMLInputElement).checked }) }), ` ${label}`);

const title = el("h1", {});
const status = el("span", { class: "status", role: "status" });
const facts = el("p", { class: "facts" });
const bar = el("progress", { max: "1", value: "0", "aria-label": "Progress" });
const line = el("p", { class: "line", "aria-live": "polite" });
const cancel = button("cancel", "Cancel", "primary");
const resume = button("resume", "Resume", "primary");
const more = button("more", "More Draws…");
const charts = el("div", { class: "chart" });
const tabs = el("nav", { class: "tabs", role: "tablist" });
const pages = el("section", { class: "page", role: "tabpanel" });
const controls = el("div", { class: "controls" }, toggle("log scale", "log"), toggle("smoothed only", "smoothed"));
const figures = el("section", { class: "figures" });
const table = el("section", {});
const write = el("button", { class: "secondary", click: () => generate() }, "Generate text");
const written = el("pre", { class: "written", hidden: true, "aria-live": "polite" });
const notes = el("ul", { class: "notes" });
document.getElementById("root")?.append(
  el("header", {}, title, status, el("span", { class: "space" }), cancel, resume, more, button("rerun", "Rerun…"), button("source", "Program"), button("folder", "Folder")),
  facts,
  bar,
  line,
  tabs,
  controls,
  charts,
  figures,
  pages,
  table,
  el("p", {}, write),
  written,
  notes,
);

const chart = new Chart(charts);
let run: RunState | undefined;
let summarised: Summary | undefined;
let others: { runId: string; label: string }[] = [];
let other: Other | undefined;

window.addEventListener("message", ({ data }: MessageEvent<ToRun>) => {
  switch (data.type) {
    case "run":
      run = data.run;
      keep({ runId: run.runId });
      break;
    case "events":
      data.events.forEach((event) => run && take(run, event));
      if (data.events.some(({ event }) => event === "started")) {
        summarised = undefined; // it goes on: what was said of it at its end is old
        drawnPage = "";
      }
      break;
    case "summary":
      ({ summary: summarised, others } = data);
      drawnPage = "";
      break;
    case "compared":
      other = data;
      drawnPage = "";
      break;
    case "sample":
      write.disabled = false;
      written.hidden = false;
      written.textContent = data.text;
      written.classList.toggle("error", data.failed);
      return;
    case "status":
      if (run) {
        run.status = data.status;
        run.ending = isOver(run) ? run.ending : null;
      }
      break;
  }
  requestDraw();
});
new MutationObserver(requestDraw).observe(document.body, { attributes: true, attributeFilter: ["class"] });
for (const box of document.querySelectorAll<HTMLInputElement>("input[data-name]")) {
  box.checked = state()[box.dataset["name"] as "log" | "smoothed"];
}
send("ready");

let waiting = false;
function requestDraw(): void {
  if (!waiting) {
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      if (run) {
        draw(run);
      }
    });
  }
}

function draw(shown: RunState): void {
  title.textContent = `${shown.program || shown.runId} · ${shown.algorithm.toUpperCase()}`;
  const doubtful = gravePoints(shown.ending).length > 0;
  status.textContent = doubtful ? "finished, not to be trusted" : shown.status;
  status.className = `status ${doubtful ? "doubtful" : shown.status}`;
  cancel.hidden = isOver(shown);
  cancel.disabled = shown.status === "cancelling";
  resume.hidden = !canResume(shown.status);
  more.hidden = !canExtend(shown.algorithm, shown.status);
  facts.textContent = [
    shown.data,
    shown.parameters ? `${count(shown.parameters)} parameters` : "",
    shown.device,
  ].filter(Boolean).join(" · ");
  bar.hidden = isOver(shown) && shown.status !== "cancelled";
  bar.max = Math.max(1, shown.steps);
  bar.value = shown.step;
  line.textContent = progressLine(shown);
  drawTabs(shown);
  const first = currentTab(shown) === "first";
  if (first) {
    drawChart(shown);
  } else {
    charts.hidden = controls.hidden = true;
  }
  figures.hidden = table.hidden = !first;
  drawPage(shown);
  figures.replaceChildren(...figureTiles(shown));
  // Only text runs know the entropies of their text.
  write.hidden = shown.baselines === null || !["finished", "cancelled"].includes(shown.status);
  table.replaceChildren(...posteriorTable(shown.posterior));
  notes.replaceChildren(...shown.notes.map((note) => el("li", { class: note.level }, note.text)), ...log(shown));
}

function tabsOf(shown: RunState): [Tab, string][] {
  const found: [Tab, string][] = [["first", shown.algorithm === "nuts" ? "Chains" : "Loss"]];
  if (summarised && summarised.sites.length > 0) {
    found.push(["posterior", "Posterior"]);
  }
  if ((summarised?.drawn?.length ?? 0) > 1) {
    found.push(["pairs", "Pairs"]);
  }
  if ((summarised?.predictive?.length ?? 0) > 0) {
    found.push(["predictive", "Predictive"]);
  }
  if (others.length > 0 && isOver(shown)) {
    found.push(["compare", "Compare"]);
  }
  return found;
}

function currentTab(shown: RunState): Tab {
  const { tab } = state();
  return tabsOf(shown).some(([name]) => name === tab) ? tab : "first";
}

function drawTabs(shown: RunState): void {
  const found = tabsOf(shown);
  const current = currentTab(shown);
  tabs.hidden = found.length < 2;
  tabs.replaceChildren(
    ...found.map(([name, label]) => el("button", { role: "tab", "aria-selected": String(name === current), class: name === current ? "tab current" : "tab", click: () => keep({ tab: name }) }, label)),
  );
}

/** What stands on the page, so that events of a run do not draw it again. */
let drawnPage = "";

function drawPage(shown: RunState): void {
  const tab = currentTab(shown);
  const watched = tab === "first" && !summarised ? (shown.drawn?.chains.map((chain) => chain.draws.at(-1)).join() ?? "") : "";
  if (drawnPage === `${tab} ${watched}`) {
    return;
  }
  drawnPage = `${tab} ${watched}`;
  const choose = (site: string): void => vscode.postMessage({ type: "site", site });
  pages.replaceChildren(...page(shown, tab, choose));
}

function page(shown: RunState, tab: Tab, choose: (site: string) => void): HTMLElement[] {
  if (tab === "compare") {
    return [picker(), ...(other ? compareView(shown, summarised, other) : [])];
  }
  if (!summarised) {
    return tab === "first" && shown.drawn ? chainsView(soFar(shown.drawn), choose) : [];
  }
  switch (tab) {
    case "first":
      return chainsView(summarised, choose);
    case "posterior":
      return posteriorView(summarised, choose);
    case "pairs":
      return pairsView(summarised, [], choose);
    case "predictive":
      return predictiveView(summarised, choose);
  }
}

function picker(): HTMLElement {
  const options = others.map((one) => el("option", { value: one.runId, selected: one.runId === other?.run.runId }, one.label));
  const change = (event: Event): void => vscode.postMessage({ type: "compare", runId: (event.target as HTMLSelectElement).value });
  return el("label", {}, "Compare with ", el("select", { change, "aria-label": "Compare with" }, el("option", { value: "" }, "…"), ...options));
}

function generate(): void {
  write.disabled = true;
  written.hidden = false;
  written.textContent = "…";
  send("sample");
}

function progressLine(shown: RunState): string {
  if (isOver(shown)) {
    return shown.seconds ? `${summary(shown)} · ${duration(shown.seconds)}` : summary(shown);
  }
  if (shown.steps === 0) {
    return "Starting: the program is built and the data is read.";
  }
  return [
    `${count(shown.step)} of ${count(shown.steps)} ${shown.algorithm === "nuts" ? "draws" : "steps"}`,
    shown.phase ?? "",
    duration(shown.seconds),
    shown.eta === null ? "" : `${duration(shown.eta)} to go`,
    shown.stepTime === null ? "" : `${Number((shown.stepTime * 1000).toPrecision(2))} ms a step`,
  ].filter(Boolean).join(" · ");
}

function drawChart(shown: RunState): void {
  const { log: logScale, smoothed } = state();
  const { series } = shown;
  const nuts = shown.algorithm === "nuts";
  charts.hidden = series.steps.length < 2;
  controls.hidden = charts.hidden || nuts;
  if (charts.hidden) {
    return;
  }
  const raw: Line = { label: "−ELBO", values: series.loss, colour: "--vscode-charts-blue", width: 1, faint: true };
  const lines: Line[] = nuts
    ? [{ label: "acceptance", values: series.acceptance, colour: "--vscode-charts-green", width: 1.6 }]
    : [...(smoothed ? [] : [raw]), { label: "smoothed", values: series.smoothed, colour: "--vscode-charts-purple", width: 2 }];
  chart.draw(series.steps, lines, logScale && !nuts, nuts ? "acceptance" : `${lossName(shown)}, nats`);
}

function figureTiles(shown: RunState): HTMLElement[] {
  const tiles: HTMLElement[] = [];
  const tile = (label: string, value: string, hint = "") =>
    tiles.push(el("div", { class: "tile", title: hint }, el("b", {}, value), el("span", {}, label)));
  const last = shown.series.smoothed.at(-1) ?? shown.series.loss.at(-1);
  const heldOut = shown.heldOut.at(-1) ?? (shown.ending?.event === "finished" ? shown.ending.held_out : undefined);
  if (last !== null && last !== undefined && !heldOut) {
    tile(lossName(shown), last.toFixed(3), "smoothed; nats");
  }
  if (heldOut) {
    tile("bits per byte, held out", heldOut.bits_per_byte.toFixed(3), `${heldOut.rows} rows, ${heldOut.draws} draws each`);
    tile("one-sample bound", heldOut.bound.toFixed(3));
    tile("unigram entropy", heldOut.unigram.toFixed(3), "of the text itself");
    tile("bigram entropy", heldOut.bigram.toFixed(3), "of the text itself");
  }
  if (shown.divergences !== null) {
    tile("divergences", String(shown.divergences));
  }
  if (shown.stepSize !== null) {
    tile("step size", shown.stepSize.toPrecision(3));
  }
  if (shown.treeDepth !== null) {
    tile("tree depth", String(shown.treeDepth));
  }
  return tiles;
}

function log(shown: RunState): HTMLElement[] {
  const { ending } = shown;
  if (ending?.event === "failed") {
    return [
      el("li", { class: "error" }, `${ending.message}${ending.site ? ` (site ${ending.site})` : ""}`),
      ...(ending.fixes ?? []).map((fix) => el("li", {}, fix)),
      ...(ending.log?.length ? [el("li", {}, el("pre", {}, ending.log.join("\n")))] : []),
    ];
  }
  return ending?.event === "crashed" && ending.log?.length ? [el("li", { class: "error" }, el("pre", {}, ending.log.join("\n")))] : [];
}

function state(): Kept {
  return { ...{ runId: "", log: false, smoothed: false, tab: "first" as Tab }, ...vscode.getState() };
}

function keep(more: Partial<Kept>): void {
  vscode.setState({ ...state(), ...more });
  requestDraw();
}
