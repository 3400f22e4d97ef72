/** The numbers of a fit, and their names as ways to the program. */
import type { Element, Summary } from "../../src/runs/figures";
import { el } from "../dom";

export type Choose = (site: string) => void;

export function elements(summary: Summary): Element[] {
  return summary.sites.flatMap((site) => site.elements);
}

/** The step that a number belongs to: `level` of `level[Aitkin]`. */
export function siteOf(label: string): string {
  return label.replace(/\[.*$/s, "");
}

/** The name of a number as a button that leads to its line. */
export function link(label: string, choose: Choose): HTMLElement {
  const site = siteOf(label);
  return el("button", { class: "link", title: `Go to ${site} in the program and its diagram`, click: () => choose(site) }, label);
}

export function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
