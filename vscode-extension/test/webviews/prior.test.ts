// @vitest-environment jsdom
import { beforeAll, beforeEach, expect, it, vi } from "vitest";
import type { ToPrior } from "../../src/live/messages";
import type { PriorAnswer } from "../../src/protocol";

const sent: unknown[] = [];
const density = (posterior: number[]) => ({ low: -4, high: 4, posterior });
const ANSWER: PriorAnswer = {
  program: "schools",
  version: 3,
  data: "csv:d.csv",
  problem: null,
  notes: [],
  outside: { y: "`y`: 80% of its data lie outside" },
  summary: {
    chains: 1,
    draws: 200,
    sites: [
      { name: "mu", size: 1, elements: [{ name: "mu", mean: 0.5, sd: 2, q05: -3, median: 0.4, q95: 4, density: density([1, 5, 1]) }] },
      { name: "theta", size: 9, elements: [{ name: "theta[0]", mean: 1, sd: 2, q05: -3, median: 1, q95: 4, density: density([2, 2, 2]) }] },
    ],
    predictive: [{ name: "y", low: 0, high: 9, observed: [0.5, 0.5], prior: { mean: [0.4, 0.6], low: [0, 0.1], high: [1, 0.9], outside: 0 } }],
  },
};

const root = () => document.getElementById("root") as HTMLElement;
const show = (message: ToPrior) => window.dispatchEvent(new MessageEvent("message", { data: message }));

beforeAll(async () => {
  document.body.innerHTML = '<div id="root"></div>';
  vi.stubGlobal("acquireVsCodeApi", () => ({ postMessage: (message: unknown) => sent.push(message) }));
  await import("../../webviews/prior/main");
});

beforeEach(() => show({ type: "prior", answer: ANSWER }));

it("asks for what is known when it is there", () => {
  expect(sent[0]).toEqual({ type: "ready" });
});

it("shows the figures and the density of each number, and predictions beside the data", () => {
  expect(root().querySelector("h1")?.textContent).toBe("Prior of schools");
  expect(root().textContent).toContain("csv:d.csv · 200 draws");
  expect([...root().querySelectorAll("svg")].map((one) => one.getAttribute("aria-label"))).toEqual([
    "density of mu", "density of theta[0]", "prior predictive of y",
  ]); // prettier-ignore
  const row = root().querySelector("tbody tr");
  expect([...(row?.children ?? [])].slice(0, 5).map((cell) => cell.textContent)).toEqual(["mu", "0.5", "2.0", "−3.0", "4.0"]);
  expect(root().textContent).toContain("8 further numbers are not shown.");
  expect(root().innerHTML).not.toMatch(/NaN|undefined/);
});

it("notes data that the prior leaves out", () => {
  expect(root().querySelector("li.warning")?.textContent).toBe("`y`: 80% of its data lie outside");
});

it("leads from a number to its step", () => {
  [...root().querySelectorAll("button")].find((button) => button.textContent === "theta[0]")?.click();
  expect(sent.at(-1)).toEqual({ type: "site", site: "theta" });
});

it("says why there is nothing to show", () => {
  show({ type: "prior", answer: { ...ANSWER, problem: "`mu` has no prior", summary: null } });
  expect(root().querySelector("[role=alert]")?.textContent).toBe("`mu` has no prior");
  show({ type: "problem", text: "the program has errors" });
  expect(root().textContent).toBe("the program has errors");
});

it("says what it shows of a posterior as one types, and how that stands", () => {
  show({ type: "prior", answer: { ...ANSWER, data: "" }, live: "live posterior of `schools`: 4 chains of 25 draws in 0.1 s" });
  expect(root().querySelector("h1")?.textContent).toBe("Live posterior of schools");
  expect(root().querySelector("header .facts")?.textContent).toBe("live posterior of `schools`: 4 chains of 25 draws in 0.1 s");
});
