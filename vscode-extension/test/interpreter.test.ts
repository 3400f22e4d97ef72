import { describe, expect, it } from "vitest";
import { candidates, discover, explain, isFound, wheelAmong, type Sources } from "../src/interpreter";

const sources: Sources = { setting: "", pythonExtension: undefined, folders: ["/work/app"], platform: "linux" };

describe("the order of interpreters", () => {
  it("is Python extension, .venv, PATH", () => {
    const found = candidates({ ...sources, pythonExtension: "/opt/env/bin/python" });
    expect(found.map((one) => one.command)).toEqual(["/opt/env/bin/python", "/work/app/.venv/bin/python", "python3", "python"]);
  });

  it("has the environment of the extension before PATH", () => {
    const found = candidates({ ...sources, own: "/store/server/bin/python" });
    expect(found.map((one) => one.command)).toEqual(["/work/app/.venv/bin/python", "/store/server/bin/python", "python3", "python"]);
  });

  it("is the setting alone where there is one, with its variables filled in", () => {
    const found = candidates({ ...sources, setting: "${workspaceFolder}/env/bin/python", pythonExtension: "/opt/python" });
    expect(found).toEqual([{ command: "/work/app/env/bin/python", why: "the setting qvr.interpreterPath" }]);
  });

  it("looks into Scripts on Windows", () => {
    expect(candidates({ ...sources, platform: "win32" }).map((one) => one.command)).toContain("py");
  });
});

describe("discovery", () => {
  it("takes the first that has the package, and says where it comes from", async () => {
    const result = await discover(sources, (command) => Promise.resolve(command === "python3" ? "0.1.0" : undefined));
    expect(result).toEqual({ command: "python3", why: "PATH", version: "0.1.0" });
    expect(isFound(result)).toBe(true);
  });

  it("tells of a named interpreter that does not start, and offers to choose another", async () => {
    const result = await discover({ ...sources, setting: "/nowhere/python" }, () => Promise.reject(new Error("there is no such file")));
    expect(result).toMatchObject({ kind: "unusable" });
    const { message, actions } = explain(result as never);
    expect(message).toContain("/nowhere/python");
    expect(message).toContain("qvr.interpreterPath");
    expect(message).toContain("there is no such file");
    expect(actions[0]).toBe("select");
  });

  it("offers to install into the best interpreter that lacks the package", async () => {
    const probe = (command: string) =>
      command.includes(".venv") ? Promise.reject(new Error("ENOENT")) : Promise.resolve(undefined);
    const result = await discover(sources, probe);
    expect(result).toEqual({ kind: "no-package", candidate: { command: "python3", why: "PATH" } });
    expect(explain(result as never).actions[0]).toBe("install");
  });

  it("says so where there is no Python at all", async () => {
    const result = await discover(sources, () => Promise.reject(new Error("ENOENT")));
    expect(result).toEqual({ kind: "none" });
  });
});

it("installs the wheel that came along, and nothing from elsewhere", () => {
  expect(wheelAmong(["extension.js", "other-1.0.whl", "qvr_lsp-0.1.0-py3-none-any.whl"])).toBe("qvr_lsp-0.1.0-py3-none-any.whl");
  expect(wheelAmong(["extension.js"])).toBeUndefined();
});
