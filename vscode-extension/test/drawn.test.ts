import { describe, expect, it } from "vitest";
import type { RunEvent } from "../src/protocol";
import { MOST_HELD, joined, ranksOf, soFar } from "../src/runs/drawn";

type Draws = Extract<RunEvent, { event: "draws" }>;
const event = (draws: number[], ...chains: number[]): Draws => ({
  event: "draws",
  names: ["mu", "tau"],
  total: 100,
  chains: chains.map((chain) => ({ chain, draws, diverging: [0], values: [draws.map((draw) => draw + chain), draws.map(() => null)] })),
});

describe("draws of chains as they come", () => {
  it("stand one behind the other, chain by chain", () => {
    const drawn = joined(joined(joined(null, event([0, 2], 1)), event([0, 2], 0)), event([4, 6], 0, 1));
    expect(drawn.chains.map((chain) => chain.chain)).toEqual([0, 1]);
    expect(drawn.chains[1]).toEqual({ chain: 1, draws: [0, 2, 4, 6], diverging: [0, 2], values: [[1, 3, 5, 7], [null, null, null, null]] });
  });

  it("that a resumed chain makes again replace those it had made", () => {
    const drawn = joined(joined(null, event([0, 2, 4, 6], 0)), event([4, 6, 8], 0));
    expect(drawn.chains[0]).toEqual({ chain: 0, draws: [0, 2, 4, 6, 8], diverging: [0, 2], values: [[0, 2, 4, 6, 8], [null, null, null, null, null]] });
  });

  it("are thinned where there are very many", () => {
    const many = Array.from({ length: MOST_HELD + 2 }, (_, draw) => draw);
    const [chain] = joined(null, event(many, 0)).chains;
    expect(chain?.draws.length).toBe(MOST_HELD / 2 + 1);
    expect(chain?.values[0]).toEqual(chain?.draws);
    expect(chain?.diverging).toEqual([0]);
  });

  it("of other numbers begin anew", () => {
    expect(joined(joined(null, event([0], 0)), { ...event([1], 0), names: ["a", "b"] }).chains[0]?.draws).toEqual([1]);
  });

  it("have ranks among those of all chains", () => {
    const low = Array.from({ length: 20 }, (_, at) => at);
    const high = low.map((value) => value + 100);
    const [first, second] = ranksOf([low, high]);
    expect(first).toEqual([...Array.from({ length: 10 }, () => 2), ...Array.from({ length: 10 }, () => 0)]);
    expect(second).toEqual([...first as number[]].reverse());
    expect(ranksOf([low])).toEqual([]);
  });

  it("are drawn as those of a whole fit", () => {
    const summary = soFar(joined(null, event([0, 2], 0, 1)));
    expect(summary.drawn).toEqual(["mu", "tau"]);
    expect(summary.draws).toBe(100);
    expect(summary.traces?.[1]?.values[0]).toEqual([1, 3]);
    // 0, 2, 1, 3: the figures of what there is
    expect(summary.sites[0]?.elements[0]).toMatchObject({ mean: 1.5, median: 1.5, sd: Math.sqrt(5 / 3) });
    expect(summary.sites[0]?.elements[0]?.q05).toBeCloseTo(0.15);
    expect(summary.sites[1]?.elements[0]).toMatchObject({ mean: null, sd: null });
  });
});
