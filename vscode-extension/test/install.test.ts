import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import * as path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { InstallProblem, PrivateEnvironment, progressOf, reason, type Run } from "../src/install";

let home: string;
let called: string[][];
const bundle = () => path.join(home, "dist");
const python = () => path.join(home, "store", "server", "bin", "python");
const never = new AbortController().signal;

/** Makes the environment as `venv` would; whatever holds `failing` ends badly. */
function environment(failing?: string, printed: string[] = [], gpu = false): PrivateEnvironment {
  const run: Run = (command, args, tell) => {
    called.push([path.basename(command), ...args]);
    if (args.includes("venv")) {
      mkdirSync(path.dirname(python()), { recursive: true });
      writeFileSync(python(), "");
    }
    if (failing && args.some((word) => word.includes(failing))) {
      printed.forEach(tell);
      return Promise.reject(new Error("ended with status 1"));
    }
    return Promise.resolve();
  };
  return new PrivateEnvironment(bundle(), path.join(home, "store"), "linux", run, gpu);
}

beforeEach(() => {
  home = mkdtempSync(path.join(tmpdir(), "qvr-install-"));
  called = [];
  mkdirSync(bundle());
  writeFileSync(path.join(bundle(), "qvr_lsp-0.1.0-py3-none-any.whl"), "wheel");
});
afterEach(() => rmSync(home, { recursive: true }));

describe("the environment of the extension", () => {
  it("is made from the user's interpreter, with the wheel that came along", async () => {
    const own = environment();
    expect(own.interpreter()).toBeUndefined();
    await own.install("python3", () => undefined, never);
    expect(own.interpreter()).toBe(python());
    expect(called.map(([command]) => command)).toEqual(["python3", "python3", "python"]);
    expect(called[2]?.at(-1)).toBe(path.join(bundle(), "qvr_lsp-0.1.0-py3-none-any.whl"));
  });

  it("of another version of the extension is not taken", async () => {
    const own = environment();
    await own.install("python3", () => undefined, never);
    writeFileSync(path.join(bundle(), "qvr_lsp-0.1.0-py3-none-any.whl"), "another wheel");
    expect(own.interpreter()).toBeUndefined();
  });

  it("that could not be made leaves nothing, and says why", async () => {
    const own = environment("whl", ["Collecting rich", "ERROR: No matching distribution found for rich>=13"]);
    const problem = await own.install("python3", () => undefined, never).catch((error: unknown) => error);
    expect(problem).toBeInstanceOf(InstallProblem);
    expect((problem as InstallProblem).message).toBe("The language server could not be installed: No matching distribution found for rich>=13");
    expect(existsSync(path.join(home, "store", "server"))).toBe(false);
    expect(own.interpreter()).toBeUndefined();
  });

  it("is not begun with an interpreter that is too old", async () => {
    const own = environment("import sys", ["Python 3.9 is too old: QVR needs 3.11 or newer"]);
    await expect(own.install("python3", () => undefined, never)).rejects.toThrow("The interpreter cannot be used: Python 3.9 is too old");
    expect(called.length).toBe(1);
  });

  it("that is no longer wanted is told as such", async () => {
    const abort = new AbortController();
    abort.abort();
    await expect(environment("whl").install("python3", () => undefined, abort.signal)).rejects.toThrow("cancelled");
  });

  it("takes what runs need where it stands", async () => {
    const own = environment();
    await own.install("python3", () => undefined, never);
    await own.installRuns(() => undefined, never);
    expect(called.at(-1)?.at(-1)).toBe(`${path.join(bundle(), "qvr_lsp-0.1.0-py3-none-any.whl")}[run]`);
    expect(called.at(-1)).toContain("https://download.pytorch.org/whl/cpu");
    expect(own.weight).toBe("1.3 GB");
  });

  it("takes PyTorch with CUDA only where there is a GPU, and says what it weighs", async () => {
    const own = environment(undefined, [], true);
    await own.install("python3", () => undefined, never);
    await own.installRuns(() => undefined, never);
    expect(called.at(-1)).not.toContain("https://download.pytorch.org/whl/cpu");
    expect(own.weight).toMatch(/^6\.2 GB/);
  });

  it("cannot be made by a build without a wheel", async () => {
    rmSync(path.join(bundle(), "qvr_lsp-0.1.0-py3-none-any.whl"));
    expect(environment().interpreter()).toBeUndefined();
    await expect(environment().install("python3", () => undefined, never)).rejects.toThrow("make vsix");
  });
});

it("gives pip's own reason, or the last lines", () => {
  expect(reason(["Collecting a", "ERROR: Could not find a", "ERROR: No matching distribution", "[notice] new pip"])).toBe("No matching distribution");
  expect(reason(["WARNING: Retrying after NewConnectionError('…')", "ERROR: No matching distribution"])).toBe("the package index cannot be reached; No matching distribution");
  expect(reason(["x", "The virtual environment was not created: apt install python3-venv", ""])).toBe("x The virtual environment was not created: apt install python3-venv");
});

it("shows what pip is at, in a few words", () => {
  expect(progressOf("Collecting networkx<4,>=3.3 (from qvr)")).toBe("collecting networkx<4,>=3.3");
  expect(progressOf("  Downloading https://x/y/networkx-3.4-py3-none-any.whl (1.7 MB)")).toBe("downloading networkx-3.4-py3-none-any.whl");
  expect(progressOf("Installing collected packages: a, b")).toBe("installing");
  expect(progressOf("Requirement already satisfied")).toBeUndefined();
});
