/** Each number against each other one; draws at which a chain diverged in red, above the others. */
import type { Summary } from "../../src/runs/figures";
import { el } from "../dom";
import { elements, link, type Choose } from "./names";
import { density } from "./pictures";
import { axis, digits, picture, scale, svg } from "./svg";

const FIRST = 4;
const MOST = 6;
/** Pixels of a picture; it is drawn as large as it is shown, as letters of one that shrinks would be small. */
const [SMALL, CELL] = [78, 130];
const LEFT = 50;
/** Beside the pictures: the edges of the page, the names of the rows, and the room between pictures. */
const [EDGES, NAMES, ROOM] = [54, 100, 6];

export function pairsView(summary: Summary, chosen: readonly string[], choose: Choose, change: (chosen: string[]) => void): HTMLElement[] {
  const drawn = summary.drawn ?? [];
  const picked = chosen.filter((one) => drawn.includes(one));
  const shown = picked.length > 1 ? picked : drawn.slice(0, FIRST);
  const chooser = drawn.map((one) => {
    const checked = shown.includes(one);
    const box = el("input", {
      type: "checkbox",
      checked,
      disabled: checked ? shown.length <= 2 : shown.length >= MOST,
      change: () => change(checked ? shown.filter((other) => other !== one) : drawn.filter((other) => other === one || shown.includes(other))),
    });
    return el("label", {}, box, ` ${one}`);
  });
  const room = (document.documentElement.clientWidth - EDGES - NAMES) / shown.length - ROOM;
  const cell = Math.floor(Math.min(Math.max(room, SMALL), CELL));
  const rows = shown.map((vertical, row) =>
    el(
      "tr",
      {},
      el("th", { scope: "row" }, link(vertical, choose)),
      ...shown.slice(0, row + 1).map((horizontal) => el("td", {}, vertical === horizontal ? marginal(summary, vertical, cell) : cloud(summary, horizontal, vertical, cell))),
    ),
  );
  const heads = el("tr", {}, el("td", {}), ...shown.map((one) => el("th", { scope: "col" }, one)));
  const diverged = (summary.traces ?? []).reduce((count, chain) => count + chain.diverging.length, 0);
  // draws of a guide end in none
  const none = summary.chains > 1 ? ["None of the draws shown ended in a divergence."] : [];
  const note = diverged ? [el("i", { class: "swatch diverged" }), `${diverged} of the draws shown ended in a divergence.`] : none;
  const left = drawn.length < elements(summary).length ? ` Draws of ${drawn.length} parameters are at hand here; posterior.nc has all.` : "";
  return [
    el("fieldset", { class: "chooser" }, el("legend", {}, `Parameters (2 to ${MOST})`), ...chooser),
    el("p", { class: "facts" }, ...note, left),
    el("table", { class: "pairs" }, el("tbody", {}, ...rows), el("tfoot", {}, heads)),
  ];
}

function marginal(summary: Summary, label: string, cell: number): SVGSVGElement | string {
  const one = elements(summary).find((element) => element.name === label);
  return one ? density(one, cell, cell - 30) : "";
}

function cloud(summary: Summary, horizontal: string, vertical: string, cell: number): SVGSVGElement {
  const [across, up] = [horizontal, vertical].map((label) => (summary.drawn ?? []).indexOf(label)) as [number, number];
  const points = (summary.traces ?? []).flatMap((chain) => {
    const bad = new Set(chain.diverging);
    return chain.draws.flatMap((_, at) => {
      const [x, y] = [chain.values[across]?.[at], chain.values[up]?.[at]];
      return typeof x === "number" && typeof y === "number" ? [{ x, y, bad: bad.has(at) }] : [];
    });
  });
  const [xs, ys] = [points.map(({ x }) => x), points.map(({ y }) => y)];
  const [left, right, low, high] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  const bottom = cell - 16;
  const x = scale(left, right, LEFT + 4, cell - 4);
  const y = scale(low, high, bottom - 4, 4);
  const dots = [...points.filter(({ bad }) => !bad), ...points.filter(({ bad }) => bad)];
  return picture(
    `${vertical} against ${horizontal}`,
    cell,
    cell,
    ...dots.map((dot) => svg("circle", { cx: x(dot.x).toFixed(1), cy: y(dot.y).toFixed(1), r: dot.bad ? 2.4 : 1.3, class: dot.bad ? "dot diverging" : "dot" })),
    svg("line", { x1: LEFT, x2: LEFT, y1: 0, y2: bottom, class: "axis" }),
    svg("text", { x: LEFT - 3, y: 9, "text-anchor": "end" }, digits(high)),
    svg("text", { x: LEFT - 3, y: bottom, "text-anchor": "end" }, digits(low)),
    axis(left, right, LEFT, cell, bottom, 2),
  );
}
