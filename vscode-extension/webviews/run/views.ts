/** The pictures of a fit: densities with their intervals, traces and ranks of chains, pairs, predictions beside the data. */
import type { Band, Element, Predictive, Summary } from "../../src/runs/figures";
import { el } from "../dom";
import { digits, scale, steps, svg } from "./svg";

export const CHAINS = ["blue", "green", "purple", "yellow", "orange", "red"].map((name) => `var(--vscode-charts-${name})`);
const MOST_SHOWN = 60;
const MOST_PAIRED = 4;

export type Choose = (site: string) => void;

export function elements(summary: Summary): Element[] {
  return summary.sites.flatMap((site) => site.elements);
}

/** The name of a number as a button that leads to its line. */
function name(label: string, choose: Choose): HTMLElement {
  const site = label.replace(/\[.*$/s, "");
  return el("button", { class: "link", title: `Go to ${site} in the program and its diagram`, click: () => choose(site) }, label);
}

/** How a page calls its densities, and what is said of the numbers that it does not show. */
export interface Called {
  density: string;
  rest: string;
}

const OF_A_RUN: Called = { density: "density (prior in outline)", rest: "stand in posterior.nc" };

/** A row for each number: its density (the prior's in outline), and its interval on the scale of all numbers of the page. */
export function posteriorView(summary: Summary, choose: Choose, called = OF_A_RUN): HTMLElement[] {
  const all = elements(summary).slice(0, MOST_SHOWN);
  const ends = all.flatMap((one) => [one.q05, one.q95]).filter((end): end is number => typeof end === "number");
  const at = scale(Math.min(...ends, 0), Math.max(...ends, 0), 6, 174);
  const rows = all.map((one) =>
    el("tr", { class: one.unmixed ? "bad" : "" }, el("th", { scope: "row" }, name(one.name, choose)), el("td", {}, density(one)), el("td", {}, interval(one, at)), el("td", { class: "words" }, words(one))),
  );
  const heads = ["", called.density, "90 % interval, mean", ""].map((head) => el("th", { scope: "col" }, head));
  return [el("table", { class: "densities" }, el("thead", {}, el("tr", {}, ...heads)), el("tbody", {}, ...rows)), ...more(summary, all.length, called.rest)];
}

function words(one: Element): string {
  const number = (value: number | null | undefined) => (typeof value === "number" ? digits(value) : "–");
  const mixing = typeof one.r_hat === "number" ? ` · R̂ ${one.r_hat.toFixed(2)} · ${Math.round(one.ess ?? 0)} effective` : "";
  return `${number(one.mean)} ± ${number(one.sd)}${mixing}`;
}

function more(summary: Summary, shown: number, words: string): HTMLElement[] {
  const rest = summary.sites.reduce((sum, site) => sum + site.size, 0) - shown;
  return rest > 0 ? [el("p", { class: "facts" }, `${rest} further numbers ${words}.`)] : [];
}

function density(one: Element, width = 170, height = 34): SVGSVGElement {
  const picture = svg("svg", { width, height: height + 12, role: "img", "aria-label": `density of ${one.name}` });
  const { density } = one;
  if (!density) {
    return picture;
  }
  const share = sum(density.posterior);
  const prior = density.prior ?? [];
  // Both as shares of their draws, so that the areas compare; what of the prior lies outside is not drawn.
  const total = density.prior_share ? sum(prior) / density.prior_share : 0;
  const most = Math.max(Math.max(...density.posterior) / share, total ? Math.max(...prior) / total : 0);
  picture.append(svg("path", { d: steps(density.posterior.map((count) => count / share), width, height, most), class: "posterior" }));
  if (total) {
    picture.append(svg("path", { d: steps(prior.map((count) => count / total), width, height, most), class: "prior" }));
  }
  picture.append(svg("text", { x: 0, y: height + 11 }, digits(density.low)), svg("text", { x: width, y: height + 11, "text-anchor": "end" }, digits(density.high)));
  return picture;
}

function interval(one: Element, at: (value: number) => number): SVGSVGElement {
  const picture = svg("svg", { width: 180, height: 24, role: "img", "aria-label": `interval of ${one.name}` }, svg("line", { x1: at(0), x2: at(0), y1: 0, y2: 24, class: "zero" }));
  if (typeof one.q05 === "number" && typeof one.q95 === "number" && typeof one.mean === "number") {
    picture.append(svg("line", { x1: at(one.q05), x2: at(one.q95), y1: 12, y2: 12, class: "interval" }), svg("circle", { cx: at(one.mean), cy: 12, r: 3.5, class: "mean" }));
  }
  return picture;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

/** Traces and ranks: of each number the values of each chain over its draws, and how often its draws have which rank. */
export function chainsView(summary: Summary, choose: Choose): HTMLElement[] {
  const all = new Map(elements(summary).map((one) => [one.name, one]));
  return (summary.drawn ?? []).map((label, number) =>
    el("section", { class: "trace" }, el("h3", {}, name(label, choose)), el("div", { class: "row" }, trace(summary, number), ranks(all.get(label)?.ranks ?? []))),
  );
}

function trace(summary: Summary, number: number, width = 460, height = 90): SVGSVGElement {
  const values = (summary.traces ?? []).flatMap((chain) => chain.values[number] ?? []).filter((value) => value !== null);
  const y = scale(Math.min(...values), Math.max(...values), height - 4, 4);
  const x = scale(0, Math.max(1, summary.draws - 1), 2, width - 2);
  const picture = svg("svg", { width, height, role: "img", "aria-label": `trace of ${summary.drawn?.[number] ?? ""}` });
  (summary.traces ?? []).forEach((chain, at) => {
    const places = chain.draws.flatMap((draw, index) => {
      const value = chain.values[number]?.[index];
      return typeof value === "number" ? [`${x(draw).toFixed(1)},${y(value).toFixed(1)}`] : [];
    });
    picture.append(svg("polyline", { points: places.join(" "), class: "curve", stroke: CHAINS[at % CHAINS.length] ?? "" }));
    for (const index of chain.diverging) {
      picture.append(svg("line", { x1: x(chain.draws[index] ?? 0), x2: x(chain.draws[index] ?? 0), y1: height - 5, y2: height, class: "diverging" }));
    }
  });
  return picture;
}

function ranks(chains: readonly number[][], width = 240, height = 90): SVGSVGElement {
  const picture = svg("svg", { width, height, role: "img", "aria-label": "ranks of each chain" });
  const each = height / Math.max(1, chains.length);
  const most = Math.max(1, ...chains.flat());
  chains.forEach((counts, at) => {
    picture.append(svg("path", { d: steps(counts, width, each - 3, most), transform: `translate(0,${(at * each).toFixed(1)})`, fill: CHAINS[at % CHAINS.length] ?? "", opacity: 0.75 }));
    const even = each - 3 - (sum(counts) / counts.length / most) * (each - 3);
    picture.append(svg("line", { x1: 0, x2: width, y1: at * each + even, y2: at * each + even, class: "zero" }));
  });
  return picture;
}

/** Each number against each other one; draws at which a chain diverged in red, above the others. */
export function pairsView(summary: Summary, chosen: readonly string[], choose: Choose): HTMLElement[] {
  const drawn = summary.drawn ?? [];
  const picked = chosen.filter((one) => drawn.includes(one));
  const shown = (picked.length > 1 ? picked : drawn).slice(0, MOST_PAIRED);
  const rows = shown.map((vertical) =>
    el("tr", {}, el("th", { scope: "row" }, name(vertical, choose)), ...shown.map((horizontal) => el("td", {}, vertical === horizontal ? marginal(summary, vertical) : cloud(summary, horizontal, vertical)))),
  );
  const heads = el("tr", {}, el("th", {}), ...shown.map((one) => el("th", { scope: "col" }, one)));
  const diverged = (summary.traces ?? []).reduce((count, chain) => count + chain.diverging.length, 0);
  const note = diverged ? `Red: ${diverged} draws at which a chain diverged.` : "No draw of these diverged.";
  return [el("p", { class: "facts" }, note), el("table", { class: "pairs" }, el("thead", {}, heads), el("tbody", {}, ...rows))];
}

const CELL = 112;

function marginal(summary: Summary, label: string): SVGSVGElement | string {
  const one = elements(summary).find((element) => element.name === label);
  return one ? density(one, CELL, CELL - 12) : "";
}

function cloud(summary: Summary, horizontal: string, vertical: string): SVGSVGElement {
  const [across, up] = [horizontal, vertical].map((label) => (summary.drawn ?? []).indexOf(label)) as [number, number];
  const points = (summary.traces ?? []).flatMap((chain) => {
    const bad = new Set(chain.diverging);
    return chain.draws.flatMap((_, at) => {
      const [x, y] = [chain.values[across]?.[at], chain.values[up]?.[at]];
      return typeof x === "number" && typeof y === "number" ? [{ x, y, bad: bad.has(at) }] : [];
    });
  });
  const [xs, ys] = [points.map(({ x }) => x), points.map(({ y }) => y)];
  const x = scale(Math.min(...xs), Math.max(...xs), 4, CELL - 4);
  const y = scale(Math.min(...ys), Math.max(...ys), CELL - 4, 4);
  const dots = [...points.filter(({ bad }) => !bad), ...points.filter(({ bad }) => bad)];
  return svg(
    "svg",
    { width: CELL, height: CELL, role: "img", "aria-label": `${vertical} against ${horizontal}` },
    ...dots.map((dot) => svg("circle", { cx: x(dot.x).toFixed(1), cy: y(dot.y).toFixed(1), r: dot.bad ? 2.2 : 1.3, class: dot.bad ? "dot diverging" : "dot" })),
  );
}

/** Of each observed step the data as bars, and what the program predicts of them: 90 % band and mean over the draws. */
export function predictiveView(summary: Summary, choose: Choose): HTMLElement[] {
  return (summary.predictive ?? []).map((one) =>
    el("section", { class: "predictive" }, el("h3", {}, name(one.name, choose)), el("div", { class: "row" }, ...([["posterior predictive", one.posterior], ["prior predictive", one.prior]] as const).flatMap(([title, band]) => (band ? [overlay(one, band, title)] : [])))),
  );
}

function overlay(one: Predictive, band: Band, title: string, width = 380, height = 150): HTMLElement {
  const most = Math.max(...one.observed, ...band.high);
  const y = scale(0, most, height - 2, 6);
  const wide = width / one.observed.length;
  const middle = (at: number) => ((at + 0.5) * wide).toFixed(1);
  const line = (values: readonly number[]) => values.map((value, at) => `${middle(at)},${y(value).toFixed(1)}`);
  const picture = svg(
    "svg",
    { width, height: height + 14, role: "img", "aria-label": `${title} of ${one.name}` },
    svg("path", { d: steps(one.observed, width, height - 2, most), class: "observed" }),
    svg("polygon", { points: [...line(band.high), ...line(band.low).reverse()].join(" "), class: "band" }),
    svg("polyline", { points: line(band.mean).join(" "), class: "curve predicted" }),
    svg("text", { x: 0, y: height + 12 }, digits(one.low)),
    svg("text", { x: width, y: height + 12, "text-anchor": "end" }, digits(one.high)),
  );
  const outside = band.outside > 0.005 ? `; ${(100 * band.outside).toFixed(0)} % of it lies outside` : "";
  return el("figure", {}, el("figcaption", {}, `${title} (band and line) against the data (bars)${outside}`), picture);
}
