/** The posterior as a table; rows whose chains disagree stand out. */
import type { PosteriorRow } from "../../src/runs/figures";
import { el } from "../dom";

const MANY = 200;

export function posteriorTable(rows: readonly PosteriorRow[]): HTMLElement[] {
  if (rows.length === 0) {
    return [];
  }
  const chains = rows.some((row) => row.r_hat !== undefined && row.r_hat !== null);
  const heads = ["", "mean", "sd", "5 %", "median", "95 %", ...(chains ? ["R-hat", "ESS"] : [])];
  const body = rows.slice(0, MANY).map((row) => {
    const cells = [row.mean, row.sd, row.q05, row.median, row.q95].map(figure);
    const mixing = chains ? [figure(row.r_hat), row.ess === undefined || row.ess === null ? "–" : row.ess.toFixed(0)] : [];
    return el(
      "tr",
      { class: row.unmixed ? "bad" : "" },
      el("th", { scope: "row" }, row.name),
      ...[...cells, ...mixing].map((text) => el("td", {}, text)),
    );
  });
  const more = rows.length > MANY ? [el("p", { class: "facts" }, `${rows.length - MANY} further rows stand in posterior.nc.`)] : [];
  return [
    el("h2", {}, "Posterior"),
    el("table", {}, el("thead", {}, el("tr", {}, ...heads.map((head) => el("th", { scope: "col" }, head)))), el("tbody", {}, ...body)),
    ...more,
  ];
}

function figure(value: number | null | undefined): string {
  return value === null || value === undefined ? "–" : value.toPrecision(4);
}
