/** The page of the run panel. */
import uplotCss from "uplot/dist/uPlot.min.css";
import type { FromRun, ToRun } from "../../src/runs/messages";
import type { Summary } from "../../src/runs/figures";
import { soFar } from "../../src/runs/drawn";
import { canExtend, canResume, failedChecks, gravePoints, isOver, lossName, summary, take, type RunState } from "../../src/runs/state";
import { count, duration, runName } from "../../src/runs/words";
import { el, style } from "../dom";
import { Chart, type Line } from "./chart";
import { compareView, type Other } from "./compare";
import { forestView, type ForestOf } from "./forest";
import { pairsView } from "./pairs";
import { AS_WRITTEN, type Arrangement, ParameterTable } from "./parameters";
import { predictiveView } from "./predictive";
import css from "./run.css";

/** What the page remembers of how it is looked at. */
interface Kept {
  runId: string;
  log: boolean;
  smoothed: boolean;
  tab: Tab | undefined;
  table: Arrangement;
  forest: ForestOf | undefined;
  pairs: string[];
}

/** `loss` is that of a fit; chains have their posterior from the first draw on. */
type Tab = "loss" | "posterior" | "forest" | "pairs" | "predictive" | "compare";

const vscode = acquireVsCodeApi<Kept>();
type Plain = Exclude<FromRun, { type: "site" } | { type: "compare" }>["type"];
const send = (type: Plain): void => vscode.postMessage({ type });
const choose = (site: string): void => vscode.postMessage({ type: "site", site });

style(uplotCss);
style(css);
const button = (type: Plain, label: string, title: string, kind = "secondary") => el("button", { class: kind, title, click: () => send(type) }, label);
const toggle = (label: string, name: "log" | "smoothed") =>
  el("label", {}, el("input", { type: "checkbox", "data-name": name, change: (event) => keep({ [name]: (event.target as HTMLInputElement).checked }) }), ` ${label}`);

const title = el("h1", {});
const status = el("span", { class: "status", role: "status" });
const facts = el("p", { class: "facts" });
const bar = el("progress", { max: "1", value: "0", "aria-label": "Progress" });
const line = el("p", { class: "line", "aria-live": "polite" });
const cancel = button("cancel", "Cancel", "End the run; what it has reached is kept", "primary");
const resume = button("resume", "Resume", "Go on from the last checkpoint", "primary");
const more = button("more", "More Draws…", "Let the chains go on where they ended");
const write = el("button", { class: "secondary", title: "Let the fitted model write text", click: () => generate() }, "Generate Text");
const actions = el(
  "div",
  { class: "actions", role: "toolbar", "aria-label": "Actions" },
  cancel,
  resume,
  more,
  button("rerun", "Rerun…", "Run it again, with other settings"),
  write,
  button("source", "Program", "Go to the program"),
  button("folder", "Folder", "Show what the run has left on the disk"),
);
const checks = el("ul", { class: "notes" });
const charts = el("div", { class: "chart" });
const tabs = el("nav", { class: "tabs", role: "tablist", "aria-label": "Views of the run" });
const controls = el("div", { class: "controls" }, toggle("log scale", "log"), toggle("smoothed only", "smoothed"));
const figures = el("div", { class: "figures" });
const fitting = el("div", {}, controls, charts, figures);
const adaptation = el("details", { class: "folded" }, el("summary", {}, "Adaptation of the sampler"));
const pages = el("section", { class: "page", role: "tabpanel", "aria-label": "The chosen view" });
const written = el("pre", { class: "written", hidden: true, "aria-live": "polite" });
const messages = el("ul", { class: "notes" });
const ended = el("details", { class: "folded" }, el("summary", {}, "Messages of the run"));
const root = document.getElementById("root") as HTMLElement;
root.append(el("header", {}, title, status, el("span", { class: "space" }), actions), facts, bar, line, checks, written, tabs, pages, adaptation, ended);

const table = new ParameterTable(state().table, choose, (arrangement) => keep({ table: arrangement }));
const chart = new Chart(charts);
let run: RunState | undefined;
let summarised: Summary | undefined;
let others: { runId: string; label: string }[] = [];
let other: Other | undefined;

window.addEventListener("resize", () => run && drawPage(run));
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
  title.textContent = runName(shown);
  const doubtful = gravePoints(shown.ending).length > 0;
  status.textContent = doubtful ? "finished, not to be trusted" : shown.status;
  status.className = `status ${doubtful ? "doubtful" : shown.status}`;
  cancel.hidden = isOver(shown);
  cancel.disabled = shown.status === "cancelling";
  resume.hidden = !canResume(shown.status);
  more.hidden = !canExtend(shown.algorithm, shown.status);
  // Only text runs know the entropies of their text.
  write.hidden = shown.baselines === null || !["finished", "cancelled"].includes(shown.status);
  facts.textContent = [
    shown.data && `Data: ${shown.data}`,
    shown.parameters ? `${count(shown.parameters)} weights` : "",
    shown.device && shown.device !== "cpu" ? `on ${shown.device}` : "",
  ].filter(Boolean).join(" · ");
  bar.hidden = isOver(shown) && shown.status !== "cancelled";
  bar.max = Math.max(1, shown.steps);
  bar.value = shown.step;
  line.textContent = progressLine(shown);
  checks.replaceChildren(...failedChecks(shown.ending).map(({ name, text, advice, grave }) => el("li", { class: grave ? "error" : "warning" }, `${name}: ${text}${advice ? ` (${advice})` : ""}`)), ...failure(shown));
  drawTabs(shown);
  figures.replaceChildren(...figureTiles(shown));
  drawFitting(shown);
  drawPage(shown);
  drawMessages(shown);
}

/** While a run goes on its messages stand open; at its end the checks say what matters, and they fold away. */
function drawMessages(shown: RunState): void {
  messages.replaceChildren(...shown.notes.map((note) => el("li", { class: note.level }, note.text)));
  ended.hidden = !isOver(shown) || shown.notes.length === 0;
  if (ended.hidden) {
    ended.before(messages);
  } else {
    ended.append(messages);
  }
}

function tabsOf(shown: RunState): [Tab, string][] {
  const found: [Tab, string][] = shown.algorithm === "nuts" ? [["posterior", "Posterior"]] : [["loss", "Loss"]];
  if (!summarised) {
    return found;
  }
  const numbers = summarised.sites.reduce((total, site) => total + site.elements.length, 0);
  if (numbers > 0 && shown.algorithm !== "nuts") {
    found.push(["posterior", "Posterior"]);
  }
  if (numbers > 1) {
    found.push(["forest", "Forest"]);
  }
  if ((summarised.drawn?.length ?? 0) > 1) {
    found.push(["pairs", "Pairs"]);
  }
  if ((summarised.predictive?.length ?? 0) > 0) {
    found.push(["predictive", "Predictive"]);
  }
  if (others.length > 0 && isOver(shown)) {
    found.push(["compare", "Compare"]);
  }
  return found;
}

/** What was chosen, where the run has it; else the numbers, once there are any. */
function currentTab(shown: RunState): Tab {
  const there = tabsOf(shown).map(([name]) => name);
  const { tab } = state();
  return tab && there.includes(tab) ? tab : there.includes("posterior") && isOver(shown) ? "posterior" : (there[0] ?? "posterior");
}

function drawTabs(shown: RunState): void {
  const found = tabsOf(shown);
  const current = currentTab(shown);
  tabs.hidden = found.length < 2;
  const focused = document.activeElement?.getAttribute("data-tab");
  tabs.replaceChildren(
    ...found.map(([name, label]) =>
      el("button", {
        role: "tab",
        "aria-selected": String(name === current),
        "data-tab": name,
        tabindex: name === current ? "0" : "-1",
        class: name === current ? "tab current" : "tab",
        click: () => keep({ tab: name }),
        keydown: (event) => turn(event as KeyboardEvent, found.map(([one]) => one), name),
      }, label),
    ),
  );
  if (focused) {
    tabs.querySelector<HTMLElement>(`[data-tab="${focused}"]`)?.focus();
  }
}

/** Arrows go from tab to tab, as everywhere. */
function turn(event: KeyboardEvent, names: Tab[], from: Tab): void {
  const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  const next = by && names[(names.indexOf(from) + by + names.length) % names.length];
  if (next) {
    event.preventDefault();
    keep({ tab: next });
    requestAnimationFrame(() => tabs.querySelector<HTMLElement>(`[data-tab="${next}"]`)?.focus());
  }
}

/** What stands on the page, so that events of a run do not draw it again. */
let drawnPage = "";

function drawPage(shown: RunState): void {
  const tab = currentTab(shown);
  const watched = summarised ? "" : (shown.drawn?.chains.map((chain) => chain.draws.at(-1)).join() ?? "");
  const { forest, pairs } = state();
  const wide = tab === "pairs" ? document.documentElement.clientWidth : 0;
  const now = JSON.stringify([tab, watched, forest, pairs, wide]);
  if (drawnPage !== now) {
    drawnPage = now;
    pages.replaceChildren(...page(shown, tab));
  }
}

function page(shown: RunState, tab: Tab): HTMLElement[] {
  const known = summarised ?? (shown.drawn ? soFar(shown.drawn) : undefined);
  switch (tab) {
    case "compare":
      return [picker(), ...(other ? compareView(shown, summarised, other, choose) : [])];
    case "loss":
      return [fitting];
    case "posterior":
      if (known) {
        table.show(known);
      }
      return known ? [table.element] : [];
    case "forest":
      return known ? forestView(known, state().forest, choose, (forest) => keep({ forest })) : [];
    case "pairs":
      return known ? pairsView(known, state().pairs, choose, (pairs) => keep({ pairs })) : [];
    case "predictive":
      return known ? predictiveView(known, choose) : [];
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

const PHASES: Record<string, string> = { warmup: "warming up", sampling: "sampling" };

function progressLine(shown: RunState): string {
  if (isOver(shown)) {
    // What is wrong stands below, check by check.
    const grave = gravePoints(shown.ending).length > 0 || shown.ending?.event === "failed";
    const draws = summarised && shown.algorithm === "nuts" ? `${summarised.chains} chains of ${count(summarised.draws)} draws` : "";
    return [draws, grave ? "" : summary(shown), shown.seconds ? duration(shown.seconds) : ""].filter(Boolean).join(" · ");
  }
  if (shown.steps === 0) {
    return "Starting: the program is built and the data is read.";
  }
  return [
    `${count(shown.step)} of ${count(shown.steps)} ${shown.algorithm === "nuts" ? "draws" : "steps"}`,
    shown.phase ? PHASES[shown.phase] ?? shown.phase : "",
    shown.divergences ? `${count(shown.divergences)} divergences` : "",
    duration(shown.seconds),
    shown.eta === null ? "" : `${duration(shown.eta)} to go`,
    shown.stepTime === null ? "" : `${Number((shown.stepTime * 1000).toPrecision(2))} ms a step`,
  ].filter(Boolean).join(" · ");
}

/** Whether chains have no draws yet, so that how they adapt is all there is to see. */
let adapting = false;

/** The loss of a fit; of chains how the sampler adapts, which folds away once there are draws to look at. */
function drawFitting(shown: RunState): void {
  const { log: logScale, smoothed } = state();
  const { series } = shown;
  const nuts = shown.algorithm === "nuts";
  adaptation.hidden = !nuts || currentTab(shown) !== "posterior" || series.steps.length < 2;
  const early = nuts && !isOver(shown) && !shown.drawn;
  if (nuts && (fitting.parentElement !== adaptation || early !== adapting)) {
    adaptation.append(fitting);
    adaptation.open = adapting = early;
  }
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
  if (shown.stepSize !== null) {
    tile("step size", shown.stepSize.toPrecision(3));
  }
  if (shown.treeDepth !== null) {
    tile("tree depth", String(shown.treeDepth));
  }
  return tiles;
}

function failure(shown: RunState): HTMLElement[] {
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
  return { ...{ runId: "", log: false, smoothed: false, tab: undefined, table: AS_WRITTEN, forest: undefined, pairs: [] }, ...vscode.getState() };
}

function keep(more: Partial<Kept>): void {
  vscode.setState({ ...state(), ...more });
  requestDraw();
}
