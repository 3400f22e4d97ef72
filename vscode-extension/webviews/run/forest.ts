/** Intervals one above the other on one scale, with its axis and a line to compare with. */
import type { Element, Summary } from "../../src/runs/figures";
import { count } from "../../src/runs/words";
import { el } from "../dom";
import { elements, link, type Choose } from "./names";
import { axis, picture, scale, svg } from "./svg";

const MOST = 80;
const WIDTH = 420;
const EDGE = 8;

/** Which site is drawn (all where it is empty), and where the line stands. */
export interface ForestOf {
  site: string;
  reference: number;
}

export function forestView(summary: Summary, of: ForestOf | undefined, choose: Choose, change: (of: ForestOf) => void): HTMLElement[] {
  const sites = summary.sites.filter((site) => site.elements.length > 0);
  // Of several sites each has its own scale: the largest is what a forest is asked for.
  const largest = sites.reduce((a, b) => (b.elements.length > a.elements.length ? b : a), sites[0] ?? { name: "", elements: [] as Element[] });
  const chosen = of ?? { site: largest.elements.length > 1 ? largest.name : "", reference: 0 };
  const rows = elements({ ...summary, sites: chosen.site ? sites.filter(({ name }) => name === chosen.site) : sites });
  const site = el(
    "select",
    { "aria-label": "Parameters", change: (event) => change({ ...chosen, site: (event.target as HTMLSelectElement).value }) },
    el("option", { value: "", selected: chosen.site === "" }, "All parameters"),
    ...sites.map(({ name, elements }) => el("option", { value: name, selected: name === chosen.site }, `${name} (${elements.length})`)),
  );
  const reference = el("input", {
    type: "number",
    step: "any",
    value: String(chosen.reference),
    change: (event) => change({ ...chosen, reference: Number((event.target as HTMLInputElement).value) || 0 }),
  });
  const controls = el("div", { class: "controls" }, site, el("label", {}, "Line at ", reference));
  return [controls, forest([rows], chosen.reference, ["var(--vscode-charts-blue)"], choose)];
}

/** Of each run the intervals of the same numbers, in a colour each. */
export function forest(runs: Element[][], reference: number, colours: string[], choose: Choose): HTMLElement {
  const [first = []] = runs;
  const others = runs.map((rows) => new Map(rows.map((one) => [one.name, one])));
  const shared = first.filter((one) => others.every((rows) => rows.has(one.name)));
  const shown = shared.slice(0, MOST);
  const ends = [reference, ...shown.flatMap((one) => others.flatMap((rows) => [rows.get(one.name)?.q05, rows.get(one.name)?.q95])).filter((end): end is number => typeof end === "number")];
  const [low, high] = [Math.min(...ends), Math.max(...ends)];
  const at = scale(low, high, EDGE, WIDTH - EDGE);
  const height = 10 + 10 * runs.length;
  const rows = shown.map((one) => {
    const drawn = picture(`90 % interval of ${one.name}`, WIDTH, height, svg("line", { x1: at(reference), x2: at(reference), y1: 0, y2: height, class: "reference" }));
    others.forEach((known, row) => {
      const each = known.get(one.name);
      if (typeof each?.q05 === "number" && typeof each.q95 === "number" && typeof each.mean === "number") {
        const [y, stroke] = [10 + 10 * row, colours[row] ?? ""];
        drawn.append(svg("line", { x1: at(each.q05), x2: at(each.q95), y1: y, y2: y, stroke, "stroke-width": 2.5 }), svg("circle", { cx: at(each.mean), cy: y, r: 3.5, fill: stroke }));
      }
    });
    return el("tr", { class: one.unmixed ? "bad" : "" }, el("th", { scope: "row" }, link(one.name, choose)), el("td", {}, drawn));
  });
  const scaleRow = () => el("tr", {}, el("td", {}), el("td", {}, picture(`axis from ${low} to ${high}`, WIDTH, 18, axis(low, high, EDGE, WIDTH - EDGE, 1, 6))));
  const head = el("tr", {}, el("th", { scope: "col" }, "parameter"), el("th", { scope: "col" }, "mean and 90 % interval"));
  const rest = shared.length > shown.length ? [el("p", { class: "facts" }, `${count(shared.length - shown.length)} further parameters are not drawn: choose a site.`)] : [];
  return el("div", {}, el("table", { class: "forest" }, el("thead", {}, head), el("tbody", {}, scaleRow(), ...rows, ...(shown.length > 12 ? [scaleRow()] : []))), ...rest);
}
