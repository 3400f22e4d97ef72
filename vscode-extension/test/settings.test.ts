import { describe, expect, it } from "vitest";
import { mainProgram, rememberData, rememberedData } from "../src/runs/settings";

describe("qvr.toml", () => {
  it("gets a table for a program that has none, and keeps every other line", () => {
    const before = "# mine\n[run.other]\nsteps = 5\n";
    const after = rememberData(before, "lm", "text:book.txt");
    expect(after).toBe('# mine\n[run.other]\nsteps = 5\n\n[run.lm]\ndata = "text:book.txt"\n');
    expect(rememberedData(after, "lm")).toBe("text:book.txt");
    expect(rememberedData(after, "other")).toBeUndefined();
  });

  it("has its value replaced in place", () => {
    const before = "[run.lm]\nsteps = 5\ndata = 'synthetic'\n[run.other]\ndata = \"npz:a\"\n";
    expect(rememberedData(before, "lm")).toBe("synthetic");
    expect(rememberData(before, "lm", "text:a b")).toBe('[run.lm]\nsteps = 5\ndata = "text:a b"\n[run.other]\ndata = "npz:a"\n');
  });

  it("starts from nothing", () => {
    expect(rememberData("", "lm", "synthetic")).toBe('[run.lm]\ndata = "synthetic"\n');
  });
});

describe("the program that a run without a name means", () => {
  it("is the first export", () => {
    expect(mainProgram("program a : A -> A\nprogram b : A -> A\nexport a\n")).toBe("a");
  });

  it("is the last program without an export", () => {
    expect(mainProgram("program a : A -> A\nprogram b(x) : A -> A\n")).toBe("b");
  });
});
