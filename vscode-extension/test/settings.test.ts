import { describe, expect, it } from "vitest";
import { rememberData } from "../src/runs/settings";

describe("qvr.toml", () => {
  it("gets a table for a program that has none, and keeps every other line", () => {
    const before = "# mine\n[run.other]\nsteps = 5\n";
    const after = rememberData(before, "lm", "text:book.txt");
    expect(after).toBe('# mine\n[run.other]\nsteps = 5\n\n[run.lm]\ndata = "text:book.txt"\n');
  });

  it("has its value replaced in place", () => {
    const before = "[run.lm]\nsteps = 5\ndata = 'synthetic'\n[run.other]\ndata = \"npz:a\"\n";
    expect(rememberData(before, "lm", "text:a b")).toBe('[run.lm]\nsteps = 5\ndata = "text:a b"\n[run.other]\ndata = "npz:a"\n');
  });

  it("starts from nothing", () => {
    expect(rememberData("", "lm", "synthetic")).toBe('[run.lm]\ndata = "synthetic"\n');
  });
});
