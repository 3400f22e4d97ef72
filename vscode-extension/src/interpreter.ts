/**
 * Which Python runs the language server: setting → Python extension → `.venv` → the extension's own environment → PATH.
 *
 * Nothing here knows the editor, so that it is tested without one.
 */
import { execFile } from "node:child_process";
import * as os from "node:os";
import * as path from "node:path";

export interface Candidate {
  command: string;
  /** Where it comes from, in the user's words: shown in the status item and in messages. */
  why: string;
}

export interface Found extends Candidate {
  version: string;
}

export type Problem =
  | { kind: "unusable"; candidate: Candidate; reason: string }
  | { kind: "no-package"; candidate: Candidate }
  | { kind: "none" };

export interface Sources {
  setting: string;
  pythonExtension: string | undefined;
  folders: readonly string[];
  /** The interpreter of the environment that the extension has made, where it has. */
  own?: string | undefined;
  platform: NodeJS.Platform;
}

/** Answers the version of qvr-lsp in an interpreter; `undefined` without the package. Rejects where it does not start. */
export type Probe = (command: string) => Promise<string | undefined>;

const PROBE_SCRIPT = [
  "import importlib.util, sys",
  "found = importlib.util.find_spec('qvr_lsp') is not None",
  "from importlib import metadata",
  "version = ''",
  "try: version = metadata.version('qvr-lsp')",
  "except metadata.PackageNotFoundError: version = 'source'",
  "print('qvr', version if found else '-')",
].join("\n");

/** In the order in which they are tried. A setting excludes all others: what the user names is what is used. */
export function candidates(sources: Sources): Candidate[] {
  if (sources.setting.trim() !== "") {
    return [{ command: expand(sources.setting.trim(), sources.folders), why: "the setting qvr.interpreterPath" }];
  }
  const found: Candidate[] = [];
  if (sources.pythonExtension) {
    found.push({ command: sources.pythonExtension, why: "the Python extension's environment" });
  }
  const windows = sources.platform === "win32";
  for (const folder of sources.folders) {
    const place = windows ? path.join(".venv", "Scripts", "python.exe") : path.join(".venv", "bin", "python");
    found.push({ command: path.join(folder, place), why: `.venv in ${path.basename(folder)}` });
  }
  if (sources.own) {
    found.push({ command: sources.own, why: "the environment that Install made" });
  }
  for (const name of windows ? ["python", "py"] : ["python3", "python"]) {
    found.push({ command: name, why: "PATH" });
  }
  return found.filter((one, index) => found.findIndex((other) => other.command === one.command) === index);
}

export function expand(setting: string, folders: readonly string[]): string {
  return setting
    .replace(/^~(?=$|[\\/])/, os.homedir())
    .replace(/\$\{workspaceFolder\}/g, folders[0] ?? "")
    .replace(/\$\{env:(\w+)\}/g, (_, name: string) => process.env[name] ?? "");
}

/**
 * The first candidate that has the package; otherwise the one problem to tell: a named interpreter that does not start,
 * or the best interpreter, which lacks the package.
 */
export async function discover(sources: Sources, probe: Probe): Promise<Found | Problem> {
  let lacking: Candidate | undefined;
  for (const candidate of candidates(sources)) {
    try {
      const version = await probe(candidate.command);
      if (version !== undefined) {
        return { ...candidate, version };
      }
      lacking ??= candidate;
    } catch (error) {
      if (sources.setting.trim() !== "") {
        return { kind: "unusable", candidate, reason: error instanceof Error ? error.message : String(error) };
      }
    }
  }
  return lacking ? { kind: "no-package", candidate: lacking } : { kind: "none" };
}

export function isFound(result: Found | Problem): result is Found {
  return "version" in result;
}

/** What the user reads, and the buttons under it. */
export function explain(problem: Problem): { message: string; actions: ("install" | "settings" | "select")[] } {
  switch (problem.kind) {
    case "unusable":
      return {
        message: `QVR: '${problem.candidate.command}', named by ${problem.candidate.why}, does not start (${problem.reason}). Programs are only coloured until it does.`,
        actions: ["select", "settings"],
      };
    case "no-package":
      return {
        message: `QVR: the interpreter '${problem.candidate.command}' (from ${problem.candidate.why}) has no QVR language server. Install makes an environment of its own for the one that came with this extension (some 20 MB, without PyTorch).`,
        actions: ["install", "select"],
      };
    case "none":
      return {
        message: "QVR: no Python interpreter was found. Choose one, and install the language server that came with this extension into it.",
        actions: ["select", "settings"],
      };
  }
}

/** The wheel of the language server among the files that came with the extension. */
export function wheelAmong(files: readonly string[]): string | undefined {
  return files.find((name) => /^qvr_lsp-.*\.whl$/.test(name));
}

/** Keeps the working directory out of Python's path: files of the workspace never stand in for Python's modules. */
export const SAFE_PATH = { PYTHONSAFEPATH: "1" };

/** Asks an interpreter, without running any code of the workspace. */
export const probeInterpreter: Probe = (command) =>
  new Promise((resolve, reject) => {
    const env = { ...process.env, ...SAFE_PATH };
    execFile(command, ["-c", PROBE_SCRIPT], { timeout: 20_000, env, cwd: os.homedir() }, (error, stdout, stderr) => {
      if (error) {
        const code = (error as NodeJS.ErrnoException).code;
        const line = stderr.trim().split("\n").at(-1);
        reject(new Error(code === "ENOENT" ? "there is no such file" : line || error.message.split("\n")[0]));
        return;
      }
      const answer = /^qvr (\S+)/m.exec(stdout)?.[1];
      resolve(answer === undefined || answer === "-" ? undefined : answer);
    });
  });
