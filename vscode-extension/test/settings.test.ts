import { describe, expect, it } from "vitest";
import { declaresData, mainProgram, rememberData, rememberedData, settingsFolders } from "../src/runs/settings";

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

describe("the data of a program", () => {
  it("are looked for in its own folder first, then above", () => {
    expect(settingsFolders("/home/a/study")).toEqual(["/home/a/study", "/home/a", "/home", "/"]);
  });

  it("may stand among the defaults", () => {
    const toml = '[defaults]\ndata = "csv:all.csv"\n[run.lm]\nsteps = 5\n[run.own]\ndata = "csv:own.csv"\n';
    expect(rememberedData(toml, "lm")).toBe("csv:all.csv");
    expect(rememberedData(toml, "own")).toBe("csv:own.csv");
  });

  it("are asked for where it declares some", () => {
    expect(declaresData("program m : R -> R\n    data x, y : R\n    return x\n")).toBe(true);
    expect(declaresData("# data are none of its own\nprogram m : R -> R\n    sample x <- Normal(0.0, 1.0)\n")).toBe(false);
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
