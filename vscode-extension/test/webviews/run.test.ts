// @vitest-environment jsdom
import { beforeAll, beforeEach, expect, it, vi } from "vitest";
import type { Element, Summary } from "../../src/runs/figures";
import type { ToRun } from "../../src/runs/messages";
import { emptyRun, take } from "../../src/runs/state";
import { axis } from "../../webviews/run/svg";

const sent: unknown[] = [];
let kept: unknown;
const root = () => document.getElementById("root") as HTMLElement;
const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));

async function show(...messages: ToRun[]): Promise<void> {
  messages.forEach((data) => window.dispatchEvent(new MessageEvent("message", { data })));
  await frame();
  await frame();
}

const number = (name: string, mean: number, more: Partial<Element> = {}): Element => ({
  name, mean, sd: 0.5, q05: mean - 1, median: mean, q95: mean + 1, r_hat: 1.001, ess: 900,
  density: { low: -4, high: 4, posterior: [1, 5, 1], prior: [2, 2, 2], prior_share: 0.5 }, ranks: [[1, 1], [1, 1]], ...more,
}); // prettier-ignore
const SUMMARY: Summary = {
  chains: 2,
  draws: 100,
  sites: [
    { name: "mu", size: 1, elements: [number("mu", 0.25)] },
    { name: "tau", size: 1, elements: [number("tau", 3, { r_hat: 1.04, ess: 60, unmixed: true })] },
    { name: "level", size: 70, elements: [number("level[Aitkin]", -2), number("level[Clay]", 1)] },
  ],
  drawn: ["mu", "tau", "level[Clay]"],
  traces: [0, 1].map((chain) => ({ draws: [0, 50], diverging: chain ? [1] : [], values: [[0, 1], [2, 3], [1, 2]] })),
  predictive: [{ name: "y", low: 0, high: 9, observed: [0.5, 0.5], posterior: { mean: [0.4, 0.6], low: [0, 0.1], high: [1, 0.9], outside: 0 } }],
};

const finished = () => {
  const run = emptyRun("20260102-085907-radon", "file:///radon.qvr", "/runs/r", "radon", "nuts");
  take(run, { event: "message", level: "info", text: "chains are compiled" });
  const check = { name: "R-hat", passed: false, grave: true, text: "largest 1.040, of tau", advice: "take more draws" };
  return take(run, { event: "finished", step: 100, seconds: 2, checks: [{ ...check, name: "tree depth", passed: true }, check] });
};

const tab = (name: string) => [...root().querySelectorAll<HTMLElement>("[role=tab]")].find((one) => one.textContent === name);
const names = () => [...root().querySelectorAll(".parameters tbody th")].map((one) => one.textContent);
const sort = (head: string) => [...root().querySelectorAll<HTMLElement>(".sort")].find((one) => one.textContent?.startsWith(head))?.click();

beforeAll(async () => {
  document.body.innerHTML = '<div id="root"></div>';
  vi.stubGlobal("acquireVsCodeApi", () => ({ postMessage: (message: unknown) => sent.push(message), getState: () => kept, setState: (next: unknown) => (kept = next) }));
  vi.stubGlobal("ResizeObserver", class { observe(): void {} });
  vi.stubGlobal("matchMedia", () => ({ addEventListener: () => undefined, addListener: () => undefined }));
  await import("../../webviews/run/main");
});

beforeEach(async () => {
  await show({ type: "run", run: finished() }, { type: "summary", summary: SUMMARY, others: [{ runId: "b", label: "radon · SVI · today 08:00, finished" }] });
});

it("shows the numbers first, each parameter in one row with its pictures", () => {
  expect([...root().querySelectorAll("[role=tab]")].map((one) => one.textContent)).toEqual(["Posterior", "Forest", "Pairs", "Predictive", "Compare"]);
  expect([...root().querySelectorAll("thead th")].map((one) => one.textContent)).toEqual(["parameter", "mean", "sd", "5 %", "95 %", "ESS", "R-hat", "density, trace"]);
  const [row] = root().querySelectorAll(".parameters tbody tr");
  expect([...(row?.children ?? [])].slice(0, 7).map((cell) => cell.textContent)).toEqual(["mu", "0.25", "0.50", "−0.75", "1.25", "900", "1.001"]);
  expect([...(row?.querySelectorAll("svg") ?? [])].map((one) => one.getAttribute("aria-label"))).toEqual(["density of mu", "trace of mu"]);
  expect(root().querySelector(".legend")?.textContent).toBe("chain 1chain 2divergedprior");
  expect(root().textContent).toContain("68 further numbers stand in posterior.nc.");
  expect(root().innerHTML).not.toMatch(/NaN|undefined/);
});

it("sorts by a head, the other way at the second click, and as written at the third", () => {
  sort("ESS");
  expect(names()).toEqual(["mu", "level[Aitkin]", "level[Clay]", "tau"]);
  expect(root().querySelector("[aria-sort=descending]")?.textContent).toBe("ESS ↓");
  sort("ESS");
  expect(names()[0]).toBe("tau");
  sort("ESS");
  expect(names()).toEqual(["mu", "tau", "level[Aitkin]", "level[Clay]"]);
});

it("filters by name, and says where there is none", () => {
  const filter = root().querySelector<HTMLInputElement>("input[type=search]") as HTMLInputElement;
  const type = (text: string) => {
    filter.value = text;
    filter.dispatchEvent(new Event("input"));
  };
  type("level");
  expect(names()).toEqual(["level[Aitkin]", "level[Clay]"]);
  type("beta");
  expect(root().textContent).toContain("No parameter has such a name.");
  type("");
});

it("marks chains that disagree, and tells failed checks with what to do", () => {
  expect(root().querySelector("tr.bad th")?.textContent).toBe("tau");
  expect(root().querySelector(".notes .error")?.textContent).toBe("R-hat: largest 1.040, of tau (take more draws)");
  expect(root().querySelector("[role=status]")?.textContent).toBe("finished, not to be trusted");
});

it("folds the messages away when the run has ended", () => {
  const folded = [...root().querySelectorAll("details")].find((one) => one.textContent?.includes("chains are compiled"));
  expect(folded?.open).toBe(false);
});

it("writes no number of an axis on another one, and more than one wherever there is room for two", () => {
  for (const [low, high, wide, count] of [[-0.9, -0.03, 64, 2], [-0.9, -0.03, 118, 4], [0.9, 1.31, 64, 2], [0, 1e-5, 64, 3], [-2e6, 3e6, 90, 6], [0, 0.82, 170, 4]] as const) {
    const labels = [...axis(low, high, 0, wide, 0, count).querySelectorAll("text")].map((text) => {
      const [x, half] = [Number(text.getAttribute("x")), ((text.textContent ?? "").length * 6.4) / 2]; // as wide as the widest of usual fonts
      const middle = { start: x + half, middle: x, end: x - half }[text.getAttribute("text-anchor") ?? ""] ?? Number.NaN;
      return [middle - half, middle + half] as const;
    });
    labels.slice(1).forEach(([left], before) => expect(left).toBeGreaterThan(labels[before]?.[1] ?? 0));
    expect(labels.length).toBeGreaterThan(wide > 100 ? 1 : 0);
  }
});

it("draws a forest on an axis, of a site, with a line to compare with", async () => {
  tab("Forest")?.click();
  await frame();
  await frame();
  expect([...root().querySelectorAll(".forest tbody th")].map((one) => one.textContent)).toEqual(["level[Aitkin]", "level[Clay]"]);
  expect(root().querySelectorAll(".forest .reference").length).toBe(2);
  const site = root().querySelector<HTMLSelectElement>("select[aria-label=Parameters]") as HTMLSelectElement;
  site.value = "mu";
  site.dispatchEvent(new Event("change"));
  await frame();
  await frame();
  expect([...root().querySelectorAll(".forest tbody th")].map((one) => one.textContent)).toEqual(["mu"]);
});

it("lets pairs be chosen, and shows divergences in red", async () => {
  tab("Pairs")?.click();
  await frame();
  await frame();
  const clouds = () => [...root().querySelectorAll(".pairs svg")].map((one) => one.getAttribute("aria-label")).filter((one) => one?.includes("against"));
  expect(clouds()).toEqual(["tau against mu", "level[Clay] against mu", "level[Clay] against tau"]);
  expect(root().querySelectorAll(".pairs .dot.diverging").length).toBe(3);
  root().querySelectorAll<HTMLInputElement>(".chooser input")[0]?.click();
  await frame();
  await frame();
  expect(clouds()).toEqual(["level[Clay] against tau"]);
});

it("has one name for the run and one place for what can be done with it", () => {
  expect(root().querySelector("h1")?.textContent).toMatch(/^radon · NUTS · /);
  const shown = [...root().querySelectorAll<HTMLElement>("[role=toolbar] button")].filter((one) => !one.hidden);
  expect(shown.map((one) => one.textContent)).toEqual(["More Draws…", "Rerun…", "Program", "Folder"]);
});
