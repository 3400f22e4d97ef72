/** The texts of the page: examples with the library, and the pages about diagnostics as HTML. */
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { marked } from "marked";

const FOLDERS = [
  ["", "Examples"],
  ["statistics", "Statistics"],
  ["analyses", "Analyses"],
  ["broken", "With a mistake"],
];

const read = (folder) =>
  readdirSync(folder)
    .filter((name) => name.endsWith(".qvr"))
    .sort()
    .map((name) => [name, readFileSync(join(folder, name), "utf8")]);

export function writeExamples(root, target) {
  const texts = FOLDERS.flatMap(([folder, group]) =>
    read(join(root, "examples", folder)).map(([name, text]) => ({ group, name: name.replace(".qvr", ""), text })),
  );
  const library = read(join(root, "qvr_core/std")).map(([name, text]) => ({ group: "Library", name: `std/${name}`, text }));
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
