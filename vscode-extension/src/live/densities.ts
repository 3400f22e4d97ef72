/** What a diagram shows of draws: one small density for each step, whatever the number of its elements. */
import type { PriorAnswer } from "../protocol";

/** Shares in bins of equal width between `low` and `high`; `numbers` of the step's `size` numbers are in it. */
export interface SiteDensity {
  site: string;
  low: number;
  high: number;
  shares: number[];
  numbers: number;
  size: number;
  /** Of the posterior, as one types, and not of the prior. */
  posterior?: boolean;
  /** Why the data of an observed step do not go together with it. */
  outside?: string | undefined;
}

/** A diagram with more of them would be slow, and too small to read. */
export const MOST_SITES = 60;
const BINS = 24;

interface Bins {
  low: number;
  high: number;
  counts: readonly number[];
}

/** Of each step what is drawn; where data are known, what is predicted of all of them: at most `MOST_SITES`, in the order of the steps. */
export function siteDensities({ summary, outside }: Pick<PriorAnswer, "summary" | "outside">, posterior = false): SiteDensity[] {
  const drawn = (summary?.sites ?? []).map(({ name, size, elements }) => {
    const all = elements.flatMap(({ density }) => (density ? [{ ...density, counts: density.posterior }] : []));
    return one(name, all, size);
  });
  const predicted = (summary?.predictive ?? []).map(({ name, low, high, prior }) => one(name, prior ? [{ low, high, counts: prior.mean }] : [], 1, outside[name]));
  const found = [...drawn, ...predicted].flatMap((density) => (density ? [[density.site, density] as const] : []));
  return [...new Map(found).values()].slice(0, MOST_SITES).map((density) => (posterior ? { ...density, posterior } : density));
}

function one(site: string, all: readonly Bins[], size: number, outside?: string): SiteDensity | undefined {
  const drawn = all.filter(({ low, high, counts }) => Number.isFinite(low) && Number.isFinite(high) && counts.some((count) => count > 0));
  const [only] = drawn;
  if (!only) {
    return undefined;
  }
  const { low, high, counts } = drawn.length === 1 ? only : pooled(drawn);
  const total = sum(counts);
  return { site, low, high, shares: counts.map((count) => count / total), numbers: drawn.length, size, outside };
}

/** All in the bins of their common range; a bin that lies in several of those is shared out by how far it lies in each. */
function pooled(all: readonly Bins[]): Bins {
  const low = Math.min(...all.map((bins) => bins.low));
  const high = Math.max(...all.map((bins) => bins.high));
  const wide = (high - low) / BINS;
  const counts = Array.from({ length: BINS }, () => 0);
  for (const bins of all) {
    const own = (bins.high - bins.low) / bins.counts.length;
    const total = sum(bins.counts);
    bins.counts.forEach((count, at) => {
      const [from, to] = [bins.low + at * own, bins.low + (at + 1) * own];
      const first = place(from, low, wide);
      const last = place(to, low, wide);
      for (let bin = first; bin <= last; bin += 1) {
        const within = Math.min(to, low + (bin + 1) * wide) - Math.max(from, low + bin * wide);
        const share = first === last ? 1 : Math.max(0, within) / own;
        counts[bin] = (counts[bin] ?? 0) + (share * count) / total;
      }
    });
  }
  return { low, high, counts };
}

/** The bin that holds a value. */
function place(value: number, low: number, wide: number): number {
  return wide > 0 ? Math.min(BINS - 1, Math.max(0, Math.floor((value - low) / wide))) : 0;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
