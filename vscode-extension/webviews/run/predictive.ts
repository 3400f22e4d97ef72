/** Of each observed step the data as bars, and what the program predicts of them: 90 % band and mean over the draws. */
import type { Band, Predictive, Summary } from "../../src/runs/figures";
import { el } from "../dom";
import { link, type Choose } from "./names";
import { axis, picture, scale, steps, svg } from "./svg";

export function predictiveView(summary: Summary, choose: Choose): HTMLElement[] {
  const shown = summary.predictive ?? [];
  if (shown.length === 0) {
    return [];
  }
  const legend = el("p", { class: "legend" }, el("span", {}, el("i", { class: "swatch observed" }), "data"), el("span", {}, el("i", { class: "swatch band" }), "predicted: mean and 90 % band"));
  return [
    legend,
    ...shown.map((one) =>
      el("section", { class: "predictive" }, el("h2", {}, link(one.name, choose)), el("div", { class: "row" }, ...([["posterior predictive", one.posterior], ["prior predictive", one.prior]] as const).flatMap(([title, band]) => (band ? [overlay(one, band, title)] : [])))),
    ),
  ];
}

function overlay(one: Predictive, band: Band, title: string, width = 380, height = 150): HTMLElement {
  const most = Math.max(...one.observed, ...band.high);
  const y = scale(0, most, height, 6);
  const wide = width / one.observed.length;
  const middle = (at: number) => ((at + 0.5) * wide).toFixed(1);
  const line = (values: readonly number[]) => values.map((value, at) => `${middle(at)},${y(value).toFixed(1)}`);
  const drawn = picture(
    `${title} of ${one.name}`,
    width,
    height + 15,
    svg("path", { d: steps(one.observed, width, height - 6, most), transform: "translate(0,6)", class: "observed" }),
    svg("polygon", { points: [...line(band.high), ...line(band.low).reverse()].join(" "), class: "band" }),
    svg("polyline", { points: line(band.mean).join(" "), class: "curve predicted" }),
    axis(one.low, one.high, 0, width, height, 6),
  );
  const outside = band.outside > 0.005 ? `; ${(100 * band.outside).toFixed(0)} % of it lies outside` : "";
  return el("figure", {}, el("figcaption", {}, `${title}${outside}`), drawn);
}
