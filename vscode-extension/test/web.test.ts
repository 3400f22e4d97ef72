import { readFileSync } from "node:fs";
import * as path from "node:path";
import { describe, expect, it } from "vitest";
import { fromServer, toServer } from "../src/web/names";

const root = path.join(__dirname, "..");
const manifest = JSON.parse(readFileSync(path.join(root, "package.json"), "utf8"));

describe("names of documents for a server in a worker", () => {
  const documents = [
    { scheme: "vscode-vfs", authority: "github", path: "/owner/repository/a.qvr" },
    { scheme: "vscode-remote", authority: "localhost:8080", path: "/home/me/ü b/a.qvr" },
    { scheme: "vscode-test-web", authority: "mount", path: "/a.qvr" },
    { scheme: "file", authority: "", path: "/home/me/a.qvr" },
    { scheme: "memfs", authority: "", path: "/a.qvr" },
  ];

  it.each(documents)("$scheme is a file, and itself again on the way back", (document) => {
    const sent = toServer(document);
    expect([sent.scheme, sent.authority]).toEqual(["file", ""]);
    expect(sent.path.endsWith(document.path)).toBe(true);
    expect(fromServer(sent)).toEqual(document);
  });

  it("keeps siblings beside each other, so that one imports the other by its file name", () => {
    const [one, other] = ["a.qvr", "b.qvr"].map((name) => toServer({ scheme: "vscode-vfs", authority: "github", path: `/o/r/${name}` }).path);
    expect(path.posix.resolve(path.posix.dirname(one ?? ""), "b.qvr")).toBe(other);
  });

  it("leaves alone what has no place, and what the server itself names", () => {
    const untitled = { scheme: "untitled", authority: "", path: "Untitled-1" };
    expect(toServer(untitled)).toEqual(untitled);
    const library = { scheme: "file", authority: "", path: "/lib/python3.14/site-packages/qvr_core/std/recurrent.qvr" };
    expect(fromServer(library)).toEqual(library);
  });
});

describe("the entry for the web", () => {
  const source = readFileSync(path.join(root, "src/web/extension.ts"), "utf8");

  it("answers every command that the manifest declares, be it by a sentence", () => {
    const declared: string[] = manifest.contributes.commands.map((one: { command: string }) => one.command);
    expect(declared.filter((command) => !source.includes(`"${command}"`))).toEqual([]);
  });

  it("is announced, and virtual folders are not refused", () => {
    expect(manifest.browser).toBe("./dist/web/extension.js");
    expect(manifest.capabilities.virtualWorkspaces.supported).toBe("limited");
  });
});
