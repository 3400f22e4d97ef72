/** Two runs beside each other: losses in one chart, intervals one above the other, what differs in settings and programs. */
import type { RunState } from "../../src/runs/state";
import { summary as headline } from "../../src/runs/state";
import type { Element, Summary } from "../../src/runs/figures";
import { el } from "../dom";
import { scale, svg } from "./svg";
import { elements } from "./views";

export interface Other {
  run: RunState;
  summary: Summary | undefined;
  differences: string[];
}

const COLOURS = ["var(--vscode-charts-blue)", "var(--vscode-charts-orange)"];
const MOST = 40;

export function compareView(mine: RunState, summary: Summary | undefined, other: Other): HTMLElement[] {
  const heads = [mine, other.run].map((run, at) => el("p", {}, el("b", { style: `color: ${COLOURS[at] ?? ""}` }, run.runId), `: ${headline(run)}`));
  const differ = other.differences.length > 0 ? other.differences : ["Settings and program are the same."];
  const parts: HTMLElement[] = [...heads, el("h3", {}, "What differs"), el("ul", {}, ...differ.map((line) => el("li", {}, el("code", {}, line))))];
  const curves = losses([mine, other.run]);
  if (curves) {
    parts.push(el("h3", {}, "Loss over the steps"), el("figure", {}, curves));
  }
  if (summary && other.summary) {
    parts.push(el("h3", {}, "90 % intervals"), forest(elements(summary), elements(other.summary)));
  }
  return parts;
}

function losses(runs: RunState[], width = 620, height = 180): SVGSVGElement | undefined {
  const curves = runs.map(({ series }) => series.steps.flatMap((step, at) => {
    const value = series.smoothed[at] ?? series.loss[at];
    return typeof value === "number" ? [{ step, value }] : [];
  }));
  if (curves.some((curve) => curve.length < 2)) {
    return undefined;
  }
  const all = curves.flat();
  const values = all.map(({ value }) => value);
  const x = scale(0, Math.max(...all.map(({ step }) => step)), 2, width - 2);
  const y = scale(Math.min(...values), Math.max(...values), height - 4, 4);
  const lines = curves.map((curve, at) => svg("polyline", { class: "curve", stroke: COLOURS[at] ?? "", points: curve.map(({ step, value }) => `${x(step).toFixed(1)},${y(value).toFixed(1)}`).join(" ") }));
  return svg("svg", { width, height, role: "img", "aria-label": "losses of both runs" }, ...lines);
}

function forest(mine: Element[], theirs: Element[]): HTMLElement {
  const others = new Map(theirs.map((one) => [one.name, one]));
  const shared = mine.filter((one) => others.has(one.name)).slice(0, MOST);
  const ends = shared.flatMap((one) => [one, others.get(one.name)]).flatMap((one) => [one?.q05, one?.q95]).filter((end): end is number => typeof end === "number");
  const at = scale(Math.min(...ends), Math.max(...ends), 6, 354);
  const rows = shared.map((one) => {
    const picture = svg("svg", { width: 360, height: 26, role: "img", "aria-label": `intervals of ${one.name}` });
    [one, others.get(one.name)].forEach((each, row) => {
      if (typeof each?.q05 === "number" && typeof each.q95 === "number" && typeof each.mean === "number") {
        const y = 8 + 10 * row;
        const stroke = COLOURS[row] ?? "";
        picture.append(svg("line", { x1: at(each.q05), x2: at(each.q95), y1: y, y2: y, stroke, "stroke-width": 2 }), svg("circle", { cx: at(each.mean), cy: y, r: 3, fill: stroke }));
      }
    });
    return el("tr", {}, el("th", { scope: "row" }, one.name), el("td", {}, picture));
  });
  return el("table", { class: "forest" }, el("tbody", {}, ...rows));
}
