import { expect, it } from "vitest";
import { sampleCommand } from "../src/runs/sample";

it("asks the command line to go on from a run", () => {
  expect(sampleCommand("20260101-000000-lm", 7).join(" ")).toBe("-m qvr_core.cli sample 20260101-000000-lm -n 300 --seed 7");
});
