/** The texts of the page: examples with the library, and the pages about diagnostics as HTML. */
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { marked } from "marked";
import { python } from "./archive.mjs";

const FOLDERS = [
  ["", "Examples"],
  ["statistics", "Statistics"],
  ["analyses", "Analyses"],
  ["broken", "With a mistake"],
];

const read = (folder) =>
  readdirSync(folder)
    .filter((name) => /.\.qvr$/.test(name)) // `.qvr` itself holds runs
    .sort()
    .map((name) => [name, readFileSync(join(folder, name), "utf8")]);

const READ = /^(csv|json):/;

/** The files of data that the qvr.toml of a folder names for each program, as `Data` has them. */
function dataOf(folder) {
  const script = "import json, pathlib, sys, tomllib; print(json.dumps(tomllib.loads(pathlib.Path(sys.argv[1]).read_text('utf-8')).get('run', {})))";
  const runs = JSON.parse(execFileSync(python, ["-c", script, join(folder, "qvr.toml")], { encoding: "utf8" }));
  const file = (data) => data.replace(READ, "");
  return (program) => {
    const { data, tables = {}, columns = {} } = runs[program] ?? {};
    const used = [...(data ? [data] : []), ...Object.values(tables)];
    if (used.length === 0 || !used.every((one) => READ.test(one))) {
      return undefined;
    }
    const named = Object.fromEntries(Object.entries(tables).map(([name, one]) => [name, basename(file(one))]));
    const files = Object.fromEntries(used.map((one) => [basename(file(one)), readFileSync(join(folder, file(one)), "utf8")]));
    return { files, main: data ? basename(file(data)) : null, named, columns };
  };
}

/** What the first line of a text calls it: its comment up to the first stop. */
function titleOf(name, text) {
  const comment = /^# (?:Wrong(?:, [^:]*)?: )?(.+)$/m.exec(text)?.[1] ?? name;
  const [sentence] = comment.split(/(?<=\?)\s|[.:](?=\s|$)/);
  const short = sentence.length > 64 ? sentence.split(/[,;]\s/)[0] : sentence;
  return short.charAt(0).toUpperCase() + short.slice(1).replaceAll("`", "");
}

export function writeExamples(root, target) {
  const held = { "": dataOf(root), statistics: dataOf(join(root, "examples/statistics")) };
  const data = {};
  const texts = FOLDERS.flatMap(([folder, group]) =>
    read(join(root, "examples", folder)).map(([file, text]) => {
      const name = file.replace(".qvr", "");
      const own = held[folder]?.(name);
      if (own) {
        data[`${group}/${name}`] = own;
      }
      return { group, name, title: titleOf(name, text), text };
    }),
  );
  writeFileSync(join(target, "data.json"), JSON.stringify(data));
  const library = read(join(root, "qvr_core/std")).map(([name, text]) => ({ group: "Library", name: `std/${name}`, title: `${titleOf(name, text)} (std/${name})`, text }));
  writeFileSync(join(target, "examples.json"), JSON.stringify([...texts, ...library]));
}

export function writePages(root, target) {
  const folder = join(root, "docs/diagnostics");
  mkdirSync(join(target, "pages"), { recursive: true });
  for (const name of readdirSync(folder).filter((each) => each.endsWith(".md"))) {
    const body = marked.parse(readFileSync(join(folder, name), "utf8")).replaceAll(/href="(?:README|([a-z0-9-]+))\.md/g, (_, code) => `href="${code ?? "README"}.html`);
    const page = `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark"><title>${name.replace(".md", "")}</title><style>body{font:16px/1.5 system-ui,sans-serif;max-width:46em;margin:2em auto;padding:0 1em}pre{overflow:auto;padding:.7em;background:#8881;border-radius:5px}</style>${body}</html>`;
    writeFileSync(join(target, "pages", name.replace(".md", ".html")), page);
  }
}
