import { expect, it } from "vitest";
import { MOST_SITES, siteDensities } from "../src/live/densities";
import type { PriorAnswer } from "../src/protocol";
import type { Density, Predictive } from "../src/runs/figures";

const number = (name: string, density?: Density) => ({ name, mean: 0, sd: 1, q05: -1, median: 0, q95: 1, ...(density ? { density } : {}) });
const answer = (sites: [string, number, Density[]][], predictive: Predictive[] = [], outside = {}): PriorAnswer => ({
  program: "p",
  version: 1,
  data: "",
  problem: null,
  notes: [],
  outside,
  summary: { chains: 1, draws: 10, predictive, sites: sites.map(([name, size, all]) => ({ name, size, elements: all.map((one) => number(name, one)) })) },
});
const total = (shares: readonly number[]) => shares.reduce((sum, share) => sum + share, 0);

it("gives one number as it was drawn, as shares", () => {
  const [found] = siteDensities(answer([["mu", 1, [{ low: -4, high: 4, posterior: [1, 2, 1] }]]]));
  expect(found).toEqual({ site: "mu", low: -4, high: 4, shares: [0.25, 0.5, 0.25], numbers: 1, size: 1, outside: undefined });
});

it("pools the numbers of a step over their common range, each counting alike", () => {
  const [found] = siteDensities(answer([["theta", 9, [{ low: 0, high: 1, posterior: [30, 30] }, { low: 1, high: 4, posterior: [1, 1, 1] }]]]));
  expect(found).toMatchObject({ low: 0, high: 4, numbers: 2, size: 9 });
  expect(total(found?.shares ?? [])).toBeCloseTo(1, 12);
  // Between 0 and 1, a quarter of the range, lies half of all; the other half is even over what is left.
  expect(total(found?.shares.slice(0, 6) ?? [])).toBeCloseTo(0.5, 12);
  found?.shares.slice(6).forEach((share) => expect(share).toBeCloseTo(0.5 / 18, 12));
});

it("takes what is predicted of an observed step, and what does not go together with its data", () => {
  const prior = { mean: [0.125, 0.375], low: [0, 0], high: [1, 1], outside: 0.6 };
  const predicted = [{ name: "y", low: 0, high: 2, observed: [1, 0], prior }, { name: "z", low: 0, high: 2, observed: [1, 0] }];
  const found = siteDensities(answer([["y", 1, [{ low: -9, high: 9, posterior: [1] }]]], predicted, { y: "most of `y` lies outside" }));
  expect(found).toMatchObject([{ site: "y", shares: [0.25, 0.75], outside: "most of `y` lies outside" }]);
});

it("shows nothing where nothing was drawn, stands still at one value, and is bounded", () => {
  expect(siteDensities({ ...answer([]), summary: null })).toEqual([]);
  expect(siteDensities(answer([["a", 1, []], ["b", 1, [{ low: 0, high: 1, posterior: [0, 0] }]]]))).toEqual([]);
  const still = { low: 3, high: 3, posterior: [5] };
  const [found] = siteDensities(answer([["c", 2, [still, still]]]));
  expect(total(found?.shares ?? [])).toBeCloseTo(1, 12);
  const many = Array.from({ length: MOST_SITES + 9 }, (_, at): [string, number, Density[]] => [`s${at}`, 1, [still]]);
  expect(siteDensities(answer(many))).toHaveLength(MOST_SITES);
});

it("marks what is of the posterior as one types", () => {
  const of = answer([["mu", 1, [{ low: -4, high: 4, posterior: [1, 2, 1] }]]]);
  expect(siteDensities(of, true)[0]).toMatchObject({ site: "mu", posterior: true });
  expect(siteDensities(of)[0]).not.toHaveProperty("posterior");
});
