/** Figures of a posterior in words, as the page and VS Code for the web show them. */
import type { Finished, Row } from "./request";

export const HEADS = ["", "mean", "sd", "5 %", "50 %", "95 %", "R-hat", "ESS bulk", "ESS tail"];

/** A number with three digits and a true minus, as the run panel writes it. */
export function short(value: number): string {
  const text = Math.abs(value) >= 1e5 || (value !== 0 && Math.abs(value) < 1e-3) ? value.toExponential(2) : Number(value.toPrecision(3)).toString();
  return text.replaceAll("-", "−");
}

/** The cells of a number of the posterior, below `HEADS` from the second on. */
export function cellsOf({ mean, sd, low, median, high, rHat, bulk, tail }: Row): string[] {
  return [...[mean, sd, low, median, high].map(short), rHat.toFixed(3), bulk.toFixed(0), tail.toFixed(0)];
}

/** How many draws, how long they took, how many diverged. */
export function endOf({ chains, draws, divergences, sampled }: Finished): string {
  const diverged = divergences === 1 ? "1 divergence" : `${divergences || "no"} divergences`;
  return `${chains} × ${draws.toLocaleString("en")} draws in ${(sampled / 1_000).toFixed(2)} s, ${diverged}`;
}

/** One line a draw, with its chain and its number. */
export function csvOf({ chains, draws, rows, values }: Finished): string {
  const quoted = rows.map(({ name }) => (name.includes(",") ? `"${name}"` : name));
  const lines = [["chain", "draw", ...quoted].join(",")];
  for (let at = 0; at < chains * draws; at += 1) {
    lines.push([Math.floor(at / draws), at % draws, ...rows.map((_, place) => values[place * chains * draws + at])].join(","));
  }
  return `${lines.join("\n")}\n`;
}
