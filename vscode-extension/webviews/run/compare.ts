/** Two runs beside each other: losses in one chart, intervals one above the other, what differs in settings and programs. */
import type { RunState } from "../../src/runs/state";
import { summary as headline } from "../../src/runs/state";
import type { Summary } from "../../src/runs/figures";
import { runNames } from "../../src/runs/words";
import { el } from "../dom";
import { forest } from "./forest";
import { elements, type Choose } from "./names";
import { axis, digits, picture, scale, svg } from "./svg";

export interface Other {
  run: RunState;
  summary: Summary | undefined;
  differences: string[];
}

const COLOURS = ["var(--vscode-charts-blue)", "var(--vscode-charts-purple)"];

export function compareView(mine: RunState, summary: Summary | undefined, other: Other, choose: Choose): HTMLElement[] {
  const runs = [mine, other.run];
  const names = runNames(runs);
  const heads = runs.map((run, at) => el("p", {}, el("i", { class: "swatch chain", style: `background: ${COLOURS[at] ?? ""}` }), el("b", {}, names[at] ?? ""), `: ${headline(run)}`));
  const differ = other.differences.length > 0 ? other.differences : ["Settings and program are the same."];
  const parts: HTMLElement[] = [...heads, el("h2", {}, "What differs"), el("ul", {}, ...differ.map((line) => el("li", {}, el("code", {}, line))))];
  const curves = losses(runs);
  if (curves) {
    parts.push(el("h2", {}, "Loss over the steps"), el("figure", {}, curves));
  }
  if (summary && other.summary) {
    parts.push(el("h2", {}, "Posteriors"), forest([elements(summary), elements(other.summary)], 0, COLOURS, choose));
  }
  return parts;
}

function losses(runs: RunState[], width = 580, height = 180): SVGSVGElement | undefined {
  const left = 50;
  const curves = runs.map(({ series }) => series.steps.flatMap((step, at) => {
    const value = series.smoothed[at] ?? series.loss[at];
    return typeof value === "number" ? [{ step, value }] : [];
  }));
  if (curves.some((curve) => curve.length < 2)) {
    return undefined;
  }
  const all = curves.flat();
  const values = all.map(({ value }) => value);
  const last = Math.max(...all.map(({ step }) => step));
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const x = scale(0, last, left, width - 2);
  const y = scale(low, high, height - 4, 4);
  const lines = curves.map((curve, at) => svg("polyline", { class: "curve", stroke: COLOURS[at] ?? "", points: curve.map(({ step, value }) => `${x(step).toFixed(1)},${y(value).toFixed(1)}`).join(" ") }));
  const ends = [svg("text", { x: left - 4, y: 10, "text-anchor": "end" }, digits(high)), svg("text", { x: left - 4, y: height, "text-anchor": "end" }, digits(low))];
  return picture("losses of both runs", width, height + 15, svg("line", { x1: left, x2: left, y1: 0, y2: height, class: "axis" }), ...ends, ...lines, axis(0, last, left, width - 2, height, 5));
}
