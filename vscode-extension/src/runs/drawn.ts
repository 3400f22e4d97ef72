/** Draws of chains as they come: put together from events, and as the summary that a whole fit leaves, so that both are drawn alike. */
import type { RunEvent } from "../protocol";
import type { ChainDraws, Element, Summary } from "./figures";

/** The numbers that are watched, how many draws each chain shall make, and the draws so far by chain. */
export interface Drawn {
  names: string[];
  total: number;
  chains: ({ chain: number } & ChainDraws)[];
}

/** Draws of one chain that are held; above it every other one goes. */
export const MOST_HELD = 2000;
const RANK_BINS = 20;

/** The draws of an event behind those that are known. A chain that went on from a checkpoint draws some of them again. */
export function joined(known: Drawn | null, event: Extract<RunEvent, { event: "draws" }>): Drawn {
  const same = known && known.names.join("\n") === event.names.join("\n") ? known.chains : [];
  const chains = new Map(same.map((one) => [one.chain, one]));
  for (const more of event.chains) {
    chains.set(more.chain, behind(chains.get(more.chain), more));
  }
  return { names: event.names, total: event.total, chains: [...chains.values()].sort((a, b) => a.chain - b.chain) };
}

function behind(known: Drawn["chains"][number] | undefined, more: Drawn["chains"][number]): Drawn["chains"][number] {
  const first = more.draws[0] ?? 0;
  const kept = known?.draws.filter((draw) => draw < first).length ?? 0;
  const both: Drawn["chains"][number] = {
    chain: more.chain,
    draws: [...(known?.draws.slice(0, kept) ?? []), ...more.draws],
    diverging: [...(known?.diverging.filter((at) => at < kept) ?? []), ...more.diverging.map((at) => at + kept)],
    values: more.values.map((values, number) => [...(known?.values[number]?.slice(0, kept) ?? []), ...values]),
  };
  return both.draws.length > MOST_HELD ? thinned(both) : both;
}

function thinned(chain: Drawn["chains"][number]): Drawn["chains"][number] {
  const even = <T>(values: T[]): T[] => values.filter((_, at) => at % 2 === 0);
  const diverging = even(chain.draws.map((_, at) => chain.diverging.includes(at)));
  return {
    chain: chain.chain,
    draws: even(chain.draws),
    diverging: diverging.flatMap((bad, at) => (bad ? [at] : [])),
    values: chain.values.map(even),
  };
}

/** As a summary of what there is so far: traces over all draws that are to come, and the ranks of those that came. */
export function soFar(drawn: Drawn): Summary {
  const sites = drawn.names.map((name, number) => {
    const chains = drawn.chains.map((chain) => chain.values[number] ?? []);
    const element: Element = { name, ...figuresOf(chains.flat()), ranks: ranksOf(chains) };
    return { name, size: 1, elements: [element] };
  });
  return { chains: drawn.chains.length, draws: drawn.total, sites, drawn: drawn.names, traces: drawn.chains };
}

/** Mean, standard deviation and quantiles of what there is. */
function figuresOf(values: (number | null)[]): Omit<Element, "name"> {
  const known = values.filter((value) => value !== null).sort((a, b) => a - b);
  if (known.length < 2) {
    return { mean: null, sd: null, q05: null, median: null, q95: null };
  }
  const mean = known.reduce((total, value) => total + value, 0) / known.length;
  const square = known.reduce((total, value) => total + (value - mean) ** 2, 0);
  const quantile = (share: number) => {
    const place = share * (known.length - 1);
    const [low, high] = [known[Math.floor(place)] ?? 0, known[Math.ceil(place)] ?? 0];
    return low + (high - low) * (place - Math.floor(place));
  };
  return { mean, sd: Math.sqrt(square / (known.length - 1)), q05: quantile(0.05), median: quantile(0.5), q95: quantile(0.95) };
}

/** How many ranks of each chain's values among all of them lie in bins of equal width; none for a single chain. */
export function ranksOf(chains: (number | null)[][]): number[][] {
  const all = chains.flatMap((values, chain) => values.flatMap((value) => (value === null ? [] : [{ value, chain }])));
  if (chains.length < 2 || all.length < RANK_BINS) {
    return [];
  }
  const counts = chains.map(() => Array.from({ length: RANK_BINS }, () => 0));
  all.sort((a, b) => a.value - b.value).forEach(({ chain }, rank) => {
    const bin = Math.min(RANK_BINS - 1, Math.floor((rank * RANK_BINS) / all.length));
    (counts[chain] as number[])[bin] = ((counts[chain] as number[])[bin] ?? 0) + 1;
  });
  return counts;
}
