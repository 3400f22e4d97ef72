// No circle of files, types included: what a file is built on never leads back to it.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { preProcessFile } from "typescript";
import { expect, it } from "vitest";

const ROOT = join(__dirname, "..");

/** The files of ours that each file imports, by their paths below the extension. */
function imports(): Map<string, string[]> {
  const below = (folder: string) => readdirSync(join(ROOT, folder), { encoding: "utf8", recursive: true }).map((name) => join(folder, name));
  const files = ["src", "webviews"].flatMap(below).filter((name) => name.endsWith(".ts"));
  const named = (from: string, target: string) => {
    const path = normalize(join(dirname(from), target));
    return [`${path}.ts`, join(path, "index.ts")].find((file) => existsSync(join(ROOT, file)));
  };
  return new Map(
    files.map((file) => {
      const { importedFiles } = preProcessFile(readFileSync(join(ROOT, file), "utf8"));
      const own = importedFiles.map((each) => each.fileName).filter((name) => name.startsWith("."));
      return [file, own.map((name) => named(file, name)).filter((path) => path !== undefined)];
    }),
  );
}

/** A way from a file back to itself; undefined where none leads there. */
function circle(graph: Map<string, string[]>, start: string): string[] | undefined {
  const ways = [[start]];
  const seen = new Set<string>();
  for (let way = ways.shift(); way !== undefined; way = ways.shift()) {
    for (const next of graph.get(way[way.length - 1] ?? "") ?? []) {
      if (next === start) {
        return [...way, next];
      }
      if (!seen.has(next)) {
        seen.add(next);
        ways.push([...way, next]);
      }
    }
  }
  return undefined;
}

it("has no circle of files, an import of types included", () => {
  const graph = imports();
  expect(graph.size).toBeGreaterThan(50);
  expect([...graph.keys()].map((file) => circle(graph, file)).filter((way) => way !== undefined)).toEqual([]);
});
