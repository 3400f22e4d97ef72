import { describe, expect, it } from "vitest";
import type { RunEvent } from "../src/protocol";
import { parseLog } from "../src/runs/history";
import { canExtend, emptyRun, isOver, lossName, summary, take } from "../src/runs/state";
import { drawsOf, duration, runName, runNames } from "../src/runs/words";

const started: RunEvent = {
  event: "started", run_id: "r", program: "lm", algorithm: "svi", directory: "/d", pid: 1, device: "cpu", parameters: 132352,
  steps: 100, data: "text", baselines: { unigram: 4.5, bigram: 3.4 },
}; // prettier-ignore
const step = (number: number, loss: number): RunEvent => ({
  event: "progress", step: number, steps: 100, seconds: number / 10, loss, smoothed_loss: loss,
}); // prettier-ignore
const fresh = () => take(emptyRun("r", "file:///a.qvr", "", "", ""), started);

describe("a run folded from its events", () => {
  it("collects the loss over the steps", () => {
    const run = [step(1, 5.5), step(2, 5), step(2, 4.9)].reduce(take, fresh());
    expect(run.series.steps).toEqual([1, 2]);
    expect(run.series.loss).toEqual([5.5, 4.9]);
    expect(summary(run)).toBe("2/100 · −ELBO 4.900");
  });

  it("a5: calls a loss that of all data where it is not one of a row", () => {
    expect(lossName(fresh())).toBe("−ELBO per row");
    expect(lossName(take(fresh(), { ...started, per_row: false }))).toBe("−ELBO");
  });

  it("never calls a fit finished whose chains disagree", () => {
    const bad = { name: "R-hat", passed: false, grave: true, text: "largest 1.070, of tau" };
    const rough = { name: "bulk ESS", passed: false, grave: false, text: "least 90" };
    const run = take(fresh(), { event: "finished", step: 100, seconds: 1, checks: [bad, rough] });
    expect(summary(run)).toBe("not to be trusted: R-hat: largest 1.070, of tau");
    expect(summary(take(fresh(), { event: "finished", step: 100, seconds: 1, checks: [rough] }))).toBe("finished");
  });

  it("drops what came after the checkpoint it is resumed from", () => {
    const run = [step(1, 5.5), step(2, 5), step(3, 4)].reduce(take, fresh());
    take(run, { event: "crashed", signal: "SIGKILL" });
    expect(isOver(run)).toBe(true);
    take(run, { ...started, resumed_from: 2 });
    take(run, step(3, 4.5));
    expect(run.series.loss).toEqual([5.5, 5, 4.5]);
    expect(run.status).toBe("running");
  });

  it("keeps saying that it is being cancelled while the last steps come in", () => {
    const run = fresh();
    run.status = "cancelling";
    expect(take(run, step(4, 4)).status).toBe("cancelling");
    expect(take(run, { event: "cancelled", step: 4, seconds: 1 }).status).toBe("cancelled");
  });

  it("sums up a finished text run by its held-out figure", () => {
    const held = { step: 100, rows: 4096, draws: 16, bits_per_byte: 2.0731, bound: 2.2, unigram: 4.5, bigram: 3.4 };
    const run = take(fresh(), { event: "finished", step: 100, seconds: 12, held_out: held });
    expect(summary(run)).toBe("2.073 bits per byte held out");
  });

  it("tells how often a run on sentence pairs is right", () => {
    const site = { count: 900, low: 0.28, high: 0.31, baseline: 0.067, commonest: "the" };
    const sites = [
      { ...site, site: "masked_token", accuracy: 0.293 },
      { ...site, site: "follows", accuracy: 0.624, baseline: 0.5, commonest: "next" },
    ];
    const accuracies = { step: 100, seconds: 12, rows: 900, sites };
    const run = take(fresh(), { event: "accuracies", ...accuracies });
    expect(run.notes.map((note) => note.text)).toEqual([
      "masked_token: 29.3 % right (95 % interval 28.0 % to 31.0 %); always “the”: 6.7 %",
      "follows: 62.4 % right (95 % interval 28.0 % to 31.0 %); always “next”: 50.0 %",
    ]);
    expect(summary(take(run, { event: "finished", step: 100, seconds: 12, accuracies }))).toBe(
      "masked_token 29.3 % right · follows 62.4 % right",
    );
  });

  it("sums up a sampled run by its mixing", () => {
    const row = { name: "mu", mean: 4.4, sd: 3, q05: -1, median: 4, q95: 10, r_hat: 1.005, ess: 900 };
    const posterior = [row, { ...row, name: "tau", r_hat: 1.012 }];
    expect(take(fresh(), { event: "cancelled", step: 9, seconds: 1, posterior }).posterior).toEqual(posterior);
    const run = take(fresh(), { event: "finished", step: 100, seconds: 12, posterior, divergences: 2 });
    expect(summary(run)).toBe("largest R-hat 1.012 · 2 divergences");
  });

  it("says what a crash was", () => {
    expect(summary(take(fresh(), { event: "crashed", signal: "SIGKILL" }))).toBe("ended by SIGKILL");
  });
});

describe("the event log of a run directory", () => {
  it("is read past the checksums, up to a half-written line", () => {
    const log = `00000000 ${JSON.stringify(started)}\n1234abcd ${JSON.stringify(step(1, 5))}\n99999999 {"event":"prog`;
    expect(parseLog(log).map((event) => event.event)).toEqual(["started", "progress"]);
  });
});

it("tells times in words", () => {
  expect(duration(3.14)).toBe("3.1 s");
  expect(duration(125)).toBe("2 min 5 s");
});

it("calls a run by its program, its algorithm and its time", () => {
  const now = new Date(2026, 0, 2, 9, 0);
  const name = (runId: string) => runName({ runId, program: "radon", algorithm: "nuts" }, now);
  expect(name("20260102-085907-radon")).toBe("radon · NUTS · today 08:59");
  expect(name("20260101-235907-radon")).toBe("radon · NUTS · yesterday 23:59");
  expect(name("20251231-155000-radon")).toBe("radon · NUTS · 31 Dec 2025 15:50");
  expect(name("20260102-085907-radon-2")).toBe("radon · NUTS · today 08:59");
  expect(name("elsewhere")).toBe("radon · NUTS");
});

it("tells runs of one minute apart", () => {
  const runs = ["20260102-085907-m", "20260102-085931-m", "20260102-085731-m"].map((runId) => ({ runId, program: "m", algorithm: "svi" }));
  expect(runNames(runs, new Date(2026, 0, 2, 9))).toEqual(["m · SVI · today 08:59:07", "m · SVI · today 08:59:31", "m · SVI · today 08:57"]);
});

it("reads a number of draws, and nothing else", () => {
  expect(["200", " 1,000 ", "1_000_000"].map(drawsOf)).toEqual([200, 1000, 1_000_000]);
  expect(["", "0", "-5", "2.5", "1e3", "many", "1000001"].map(drawsOf)).toEqual([undefined, undefined, undefined, undefined, undefined, undefined, undefined]);
});

it("offers more draws of chains that have ended, and of nothing else", () => {
  expect(canExtend("nuts", "finished")).toBe(true);
  expect([canExtend("svi", "finished"), canExtend("nuts", "running"), canExtend("nuts", "cancelled")]).toEqual([false, false, false]);
});
