/** The small pictures of one number: its density, the values of each chain over its draws, and their ranks. */
import type { Element, Summary } from "../../src/runs/figures";
import { sum } from "./names";
import { axis, digits, picture, scale, steps, svg } from "./svg";

export const CHAINS = ["blue", "green", "purple", "yellow", "red", "orange"].map((name) => `var(--vscode-charts-${name})`);

/** Room for the least and the largest value beside a picture: seven letters of any font. */
const LEFT = 50;

export function chainColour(chain: number): string {
  return CHAINS[chain % CHAINS.length] ?? "";
}

/** The draws as bars, the prior in outline, and the axis under them. */
export function density(one: Element, width = 170, height = 36): SVGSVGElement {
  const { density } = one;
  const drawn = picture(`density of ${one.name}`, width, height + 15);
  if (!density) {
    return drawn;
  }
  const share = sum(density.posterior);
  const prior = density.prior ?? [];
  // Both as shares of their draws, so that the areas compare; what of the prior lies outside is not drawn.
  const total = density.prior_share ? sum(prior) / density.prior_share : 0;
  const most = Math.max(Math.max(...density.posterior) / share, total ? Math.max(...prior) / total : 0);
  drawn.append(svg("path", { d: steps(density.posterior.map((count) => count / share), width, height, most), class: "posterior" }));
  if (total) {
    drawn.append(svg("path", { d: steps(prior.map((count) => count / total), width, height, most), class: "prior" }));
  }
  drawn.append(axis(density.low, density.high, 0, width, height, 4));
  return drawn;
}

/** The values of each chain over its draws, with the least and the largest beside them; divergences as marks below. */
export function trace(summary: Summary, label: string, width = 270, height = 36): SVGSVGElement | string {
  const number = (summary.drawn ?? []).indexOf(label);
  if (number < 0) {
    return "";
  }
  const left = LEFT;
  const values = (summary.traces ?? []).flatMap((chain) => chain.values[number] ?? []).filter((value) => value !== null);
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const y = scale(low, high, height - 3, 3);
  const x = scale(0, Math.max(1, summary.draws - 1), left, width);
  const drawn = picture(`trace of ${label}`, width, height + 15);
  if (values.length > 0) {
    drawn.append(
      svg("text", { x: left - 4, y: 9, "text-anchor": "end" }, digits(high)),
      ...(high > low ? [svg("text", { x: left - 4, y: height, "text-anchor": "end" }, digits(low))] : []),
    );
  }
  drawn.append(svg("line", { x1: left, x2: left, y1: 0, y2: height, class: "axis" }));
  (summary.traces ?? []).forEach((chain, at) => {
    const places = chain.draws.flatMap((draw, index) => {
      const value = chain.values[number]?.[index];
      return typeof value === "number" ? [`${x(draw).toFixed(1)},${y(value).toFixed(1)}`] : [];
    });
    drawn.append(svg("polyline", { points: places.join(" "), class: "curve", stroke: chainColour(at) }));
    for (const index of chain.diverging) {
      const place = x(chain.draws[index] ?? 0);
      drawn.append(svg("line", { x1: place, x2: place, y1: height - 6, y2: height, class: "diverging" }));
    }
  });
  drawn.append(axis(0, summary.draws, left, width, height));
  return drawn;
}

/** How often the draws of each chain have which rank among all: level where the chains agree. */
export function ranks(one: Element, width = 270, height = 36): SVGSVGElement | string {
  const chains = one.ranks ?? [];
  if (chains.length < 2) {
    return "";
  }
  const left = LEFT;
  const drawn = picture(`ranks of ${one.name} by chain`, width, height + 15);
  const most = Math.max(1, ...chains.flat());
  const each = (width - left) / chains.length;
  chains.forEach((counts, at) => {
    const from = left + at * each;
    drawn.append(svg("path", { d: steps(counts, each - 4, height, most), transform: `translate(${from.toFixed(1)},0)`, fill: chainColour(at), opacity: 0.75 }));
    const even = height - (sum(counts) / counts.length / most) * height;
    drawn.append(svg("line", { x1: from, x2: from + each - 4, y1: even, y2: even, class: "zero" }), svg("text", { x: from, y: height + 12 }, `chain ${at + 1}`));
  });
  return drawn;
}
