/** The numbers of a fit as a table that sorts and filters: each parameter one row, its figures first, then its pictures. */
import type { Element, Summary } from "../../src/runs/figures";
import { count } from "../../src/runs/words";
import { el } from "../dom";
import { elements, link, sum, type Choose } from "./names";
import { chainColour, density, ranks, trace } from "./pictures";

/** Rows that are drawn; the filter finds the others. */
const MOST_SHOWN = 100;
/** Below this width the pictures of a parameter stand under its figures. */
const WIDE = 1000;

type Key = "name" | "mean" | "sd" | "q05" | "q95" | "ess" | "r_hat";

interface Column {
  key: Key;
  head: string;
  title: string;
}

const NAME: Column = { key: "name", head: "parameter", title: "In the order of the program; a click sorts by name" };
const FIGURES: Column[] = [
  { key: "mean", head: "mean", title: "Mean of the draws" },
  { key: "sd", head: "sd", title: "Standard deviation of the draws" },
  { key: "q05", head: "5 %", title: "Lower end of the 90 % interval" },
  { key: "q95", head: "95 %", title: "Upper end of the 90 % interval" },
];
const MIXING: Column[] = [
  { key: "ess", head: "ESS", title: "Effective sample size: how many independent draws these are worth" },
  { key: "r_hat", head: "R-hat", title: "1.00 where the chains agree; above 1.01 they do not yet" },
];

/** How the table is shown; a page keeps it. */
export interface Arrangement {
  filter: string;
  key: Key | undefined;
  down: boolean;
  picture: "trace" | "ranks";
}

export const AS_WRITTEN: Arrangement = { filter: "", key: undefined, down: false, picture: "trace" };

export class ParameterTable {
  private readonly filter = el("input", { type: "search", placeholder: "Filter parameters", "aria-label": "Filter parameters", input: () => this.arrange({ filter: this.filter.value }) });
  private readonly which = el("select", { "aria-label": "Picture of the chains", change: () => this.arrange({ picture: this.which.value as Arrangement["picture"] }) }, el("option", { value: "trace" }, "Traces"), el("option", { value: "ranks" }, "Ranks"));
  private readonly legend = el("span", { class: "legend" });
  private readonly table = el("table", { class: "parameters" });
  private readonly rest = el("p", { class: "facts" });
  readonly element = el("div", {}, el("div", { class: "controls" }, this.filter, this.which, this.legend), this.table, this.rest);
  private summary: Summary | undefined;
  private wide = true;

  /** `elsewhere` says where the numbers are that a summary leaves out. */
  constructor(
    private arrangement: Arrangement,
    private readonly choose: Choose,
    private readonly keep: (arrangement: Arrangement) => void,
    private readonly elsewhere = "stand in posterior.nc",
  ) {
    this.filter.value = arrangement.filter;
    this.which.value = arrangement.picture;
    if (typeof ResizeObserver !== "undefined") {
      new ResizeObserver(() => this.fit()).observe(this.element);
    }
  }

  show(summary: Summary): void {
    this.summary = summary;
    this.draw();
  }

  private fit(): void {
    const wide = this.element.clientWidth >= WIDE;
    if (wide !== this.wide && this.element.clientWidth > 0) {
      this.wide = wide;
      this.draw();
    }
  }

  private arrange(change: Partial<Arrangement>): void {
    this.arrangement = { ...this.arrangement, ...change };
    this.keep(this.arrangement);
    this.draw();
  }

  private draw(): void {
    const { summary, arrangement } = this;
    if (!summary) {
      return;
    }
    const all = elements(summary);
    const columns = [NAME, ...FIGURES, ...(all.some((one) => typeof one.r_hat === "number") ? MIXING : [])];
    const words = arrangement.filter.trim().toLowerCase();
    const found = sorted(all.filter((one) => one.name.toLowerCase().includes(words)), arrangement);
    const shown = found.slice(0, MOST_SHOWN);
    const chained = summary.chains > 1 || (summary.traces?.length ?? 0) > 0;
    const prior = shown.some((one) => (one.density?.prior ?? []).length > 0);
    this.which.hidden = !chained || !all.some((one) => (one.ranks?.length ?? 0) > 1);
    this.filter.hidden = all.length < 2;
    this.legend.replaceChildren(...(chained ? legend(summary) : []), ...(prior ? [el("span", {}, swatch("prior"), "prior")] : []));
    const pictures = (one: Element): HTMLElement => {
      const chains = arrangement.picture === "ranks" && !this.which.hidden ? ranks(one) : trace(summary, one.name);
      return el("div", { class: "pictures" }, ...(one.density ? [density(one)] : []), chains);
    };
    const heads = columns.map((column) => this.head(column));
    const extra = this.wide ? [el("th", { scope: "col" }, chained ? `density, ${arrangement.picture === "ranks" && !this.which.hidden ? "ranks" : "trace"}` : "density")] : [];
    const rows = shown.map((one) => {
      const cells = [el("th", { scope: "row" }, link(one.name, this.choose)), ...figures(one, columns.slice(1).map(({ key }) => key))];
      const head = { class: one.unmixed ? "bad" : "", ...(one.unmixed ? { title: "The chains disagree about this one." } : {}) };
      return this.wide
        ? el("tbody", {}, el("tr", head, ...cells, el("td", {}, pictures(one))))
        : el("tbody", {}, el("tr", head, ...cells), el("tr", { class: "under" }, el("td", { colspan: String(columns.length) }, pictures(one))));
    });
    this.table.replaceChildren(el("thead", {}, el("tr", {}, ...heads, ...extra)), ...rows);
    this.rest.textContent = remainder(summary, all.length, found.length, shown.length, this.elsewhere);
    this.rest.hidden = this.rest.textContent === "";
  }

  /** A head that sorts: downwards first, since what is large is what one looks for; a name upwards. */
  private head({ key, head, title }: Column): HTMLElement {
    const { key: current, down } = this.arrangement;
    const first = key !== "name";
    const next = key !== current ? { key, down: first } : down === first ? { key, down: !first } : { key: undefined, down: false };
    const order = key !== current ? "none" : down ? "descending" : "ascending";
    const mark = key !== current ? "" : down ? " ↓" : " ↑";
    return el("th", { scope: "col", "aria-sort": order }, el("button", { class: "sort", title, click: () => this.arrange(next) }, head + mark));
  }
}

function sorted(rows: Element[], { key, down }: Arrangement): Element[] {
  if (key === undefined) {
    return rows;
  }
  const sign = down ? -1 : 1;
  return [...rows].sort((a, b) => {
    const [one, other] = [a[key], b[key]];
    if (typeof one === "string" && typeof other === "string") {
      return sign * one.localeCompare(other, "en", { numeric: true });
    }
    // What has no figure stands last, whichever way.
    return (typeof one === "number" ? 0 : 1) - (typeof other === "number" ? 0 : 1) || sign * (Number(one) - Number(other));
  });
}

/** Figures to the second digit of the standard deviation, so that those of a row compare. */
function figures(one: Element, keys: Key[]): HTMLElement[] {
  const sd = typeof one.sd === "number" && one.sd > 0 ? one.sd : Math.abs(one.mean ?? 0);
  const decimals = Math.min(6, Math.max(0, 1 - Math.floor(Math.log10(sd || 1))));
  return keys.map((key) => {
    const value = one[key];
    if (typeof value !== "number") {
      return el("td", {}, "–");
    }
    const text = key === "ess" ? count(Math.round(value)) : key === "r_hat" ? value.toFixed(3) : plain(value, decimals);
    return el("td", {}, text);
  });
}

function plain(value: number, decimals: number): string {
  const large = Math.abs(value);
  const text = large >= 1e6 || (large > 0 && large < 1e-4) ? value.toExponential(2) : value.toFixed(decimals);
  return text.replace(/^-(?=[0.]*$)/, "").replace("-", "−");
}

function legend(summary: Summary): HTMLElement[] {
  const chains = (summary.traces ?? []).map((_, at) => el("span", {}, swatch("chain", chainColour(at)), `chain ${at + 1}`));
  const diverged = (summary.traces ?? []).some((chain) => chain.diverging.length > 0);
  return chains.length > 1 ? [...chains, ...(diverged ? [el("span", {}, swatch("diverged"), "diverged")] : [])] : [];
}

function swatch(kind: string, colour?: string): HTMLElement {
  return el("i", { class: `swatch ${kind}`, ...(colour ? { style: `background: ${colour}` } : {}) });
}

/** Traces of the first parameters travel to the panel; rows without one say why. */
function withoutTrace(summary: Summary, all: number): string {
  const drawn = summary.drawn?.length ?? 0;
  return drawn > 0 && drawn < all ? `Traces of ${count(drawn)} parameters are at hand here; posterior.nc has all draws.` : "";
}

function remainder(summary: Summary, all: number, found: number, shown: number, elsewhere: string): string {
  const left = sum(summary.sites.map((site) => site.size)) - all;
  return [
    found > shown ? `${count(shown)} of ${count(found)} parameters are shown: the filter finds the others.` : "",
    found === 0 && all > 0 ? "No parameter has such a name." : "",
    left > 0 ? `${count(left)} further numbers ${elsewhere}.` : "",
    withoutTrace(summary, all),
  ].filter(Boolean).join(" ");
}
