import { readFileSync, readdirSync } from "node:fs";
import * as path from "node:path";
import { JSDOM } from "jsdom";
import { beforeAll, expect, it } from "vitest";

const folder = path.join(__dirname, "mermaid");
let mermaid: (typeof import("mermaid"))["default"];

beforeAll(async () => {
  const { window } = new JSDOM("");
  Object.assign(globalThis, { window, document: window.document });
  mermaid = (await import("mermaid")).default;
});

// tests/diagrams/test_golden.py writes these files and keeps them true.
it.each(readdirSync(folder))("Mermaid itself reads %s", async (file) => {
  const parsed = await mermaid.parse(readFileSync(path.join(folder, file), "utf8"));
  expect(parsed).toMatchObject({ diagramType: "flowchart-v2" });
});
