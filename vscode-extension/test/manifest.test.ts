import { existsSync, readFileSync } from "node:fs";
import * as path from "node:path";
import { describe, expect, it } from "vitest";

const root = path.join(__dirname, "..");
const json = (file: string) => JSON.parse(readFileSync(path.join(root, file), "utf8"));
const manifest = json("package.json");

describe("the manifest", () => {
  it("has no install scripts and no runtime dependencies", () => {
    expect(Object.keys(manifest.scripts).filter((name) => /install|prepare/.test(name))).toEqual([]);
    expect(manifest.dependencies ?? {}).toEqual({});
  });

  it("names only files that exist", () => {
    const { languages, grammars, snippets, walkthroughs, viewsContainers } = manifest.contributes;
    const files = [
      manifest.icon,
      ...languages.flatMap((one: any) => [one.configuration, one.icon.light, one.icon.dark]),
      ...grammars.map((one: any) => one.path),
      ...snippets.map((one: any) => one.path),
      ...walkthroughs.flatMap((one: any) => one.steps.map((step: any) => step.media.markdown)),
      ...viewsContainers.activitybar.map((one: any) => one.icon),
    ];
    expect(files.filter((file) => !existsSync(path.join(root, file)))).toEqual([]);
  });

  it("declares every command that its menus and walkthrough use", () => {
    const declared = new Set(manifest.contributes.commands.map((one: any) => one.command));
    const used = Object.values(manifest.contributes.menus).flatMap((entries: any) => entries.map((one: any) => one.command));
    expect(used.filter((command) => !declared.has(command))).toEqual([]);
  });

  it("registers every command that it declares, and the server's names are not among them", () => {
    const source = ["src/commands.ts", "src/runs/tree.ts"].map((file) => readFileSync(path.join(root, file), "utf8")).join("");
    const registered = new Set([...source.matchAll(/(?:register|registerCommand)\("(qvr\.\w+)"/g)].map((match) => match[1]));
    const declared = manifest.contributes.commands.map((one: any) => one.command);
    expect(declared.filter((command: string) => !registered.has(command))).toEqual([]);
    for (const taken of ["qvr.run", "qvr.cancelRun", "qvr.runs", "qvr.diagram", "qvr.exportDiagram", "qvr.restartWorker"]) {
      expect(registered.has(taken)).toBe(false);
    }
  });

  it("asks for trust before it starts what a workspace names", () => {
    const { supported, restrictedConfigurations } = manifest.capabilities.untrustedWorkspaces;
    expect(supported).toBe("limited");
    expect(restrictedConfigurations).toContain("qvr.interpreterPath");
    expect(restrictedConfigurations).toEqual(expect.arrayContaining(["qvr.live", "qvr.liveBudget", "qvr.prior.asYouType"]));
  });
});

describe("the grammar", () => {
  it("has patterns that compile", () => {
    const check = (rule: any): void => {
      for (const key of ["match", "begin", "end", "while"]) {
        if (rule[key]) {
          expect(() => new RegExp(rule[key].replace(/\(\?i:/g, "(?:").replace(/\\G/g, ""))).not.toThrow();
        }
      }
      Object.values(rule.repository ?? {}).forEach(check);
      (rule.patterns ?? []).forEach(check);
    };
    check(json("syntaxes/qvr.tmLanguage.json"));
    check(json("syntaxes/qvr-markdown.tmLanguage.json"));
  });
});
