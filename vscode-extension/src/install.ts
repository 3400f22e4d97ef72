/**
 * The language server in an environment of its own: made from an interpreter that the user has, with the wheel that came
 * with the extension. Nothing here knows the editor, so that it is tested without one.
 */
import { spawn } from "node:child_process";
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import * as path from "node:path";
import { SAFE_PATH, wheelAmong } from "./interpreter";

/** Runs a command; every line that it prints goes to `tell`. Rejects with `InstallProblem`. */
export type Run = (command: string, args: string[], tell: (line: string) => void, signal: AbortSignal) => Promise<void>;

/** Why there is no environment: in words for the screen, and the last lines of what was printed. */
export class InstallProblem extends Error {
  constructor(
    message: string,
    readonly printed: readonly string[] = [],
  ) {
    super(message);
  }
}

const OLDEST = "3.11";
const AGE = `import sys; sys.exit(0 if sys.version_info >= (${OLDEST.replace(".", ", ")}) else "Python %d.%d is too old: QVR needs ${OLDEST} or newer" % sys.version_info[:2])`;
const PIP = ["-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--progress-bar", "off"];
/** On Linux, PyPI's own build of PyTorch brings CUDA; a version of this index is called `+cpu`, which pip takes for the newer one. */
const CPU_INDEX = ["--extra-index-url", "https://download.pytorch.org/whl/cpu"];
const STAMP = "wheel.json";
const MOST_LINES = 400;

export class PrivateEnvironment {
  /** `bundle` is the folder with the wheel, `storage` one that is the extension's own. */
  constructor(
    private readonly bundle: string,
    private readonly storage: string,
    private readonly platform: NodeJS.Platform = process.platform,
    private readonly run: Run = runProcess,
    private readonly gpu: boolean = existsSync("/proc/driver/nvidia/version"),
  ) {}

  private get folder(): string {
    return path.join(this.storage, "server");
  }

  private get python(): string {
    return this.platform === "win32" ? path.join(this.folder, "Scripts", "python.exe") : path.join(this.folder, "bin", "python");
  }

  /** The interpreter of the environment, where it is there and holds the wheel of this version of the extension. */
  interpreter(): string | undefined {
    try {
      const stamp = readFileSync(path.join(this.folder, STAMP), "utf8");
      return stamp === this.stamp() && existsSync(this.python) ? this.python : undefined;
    } catch {
      return undefined;
    }
  }

  /** Make it, with what the server needs: the checker, no torch. */
  async install(base: string, tell: (line: string) => void, signal: AbortSignal): Promise<void> {
    const wheel = this.wheel();
    await this.step("The interpreter cannot be used", base, ["-c", AGE], tell, signal);
    rmSync(this.folder, { recursive: true, force: true });
    await mkdir(this.storage, { recursive: true });
    try {
      tell("making an environment");
      await this.step("No environment could be made", base, ["-m", "venv", this.folder], tell, signal);
      await this.step("The language server could not be installed", this.python, [...PIP, wheel], tell, signal);
      writeFileSync(path.join(this.folder, STAMP), this.stamp());
    } catch (error) {
      rmSync(this.folder, { recursive: true, force: true });
      throw error;
    }
  }

  /** What runs need, on the disk: PyTorch with CUDA only where there is a GPU for it. */
  get weight(): string {
    return this.platform === "linux" && this.gpu ? "6.2 GB, with CUDA for the GPU that is here" : "1.3 GB";
  }

  /** Add what runs need: PyTorch and the rest. */
  async installRuns(tell: (line: string) => void, signal: AbortSignal): Promise<void> {
    await this.step("What runs need could not be installed", this.python, [...PIP, ...(this.platform === "linux" && !this.gpu ? CPU_INDEX : []), `${this.wheel()}[run]`], tell, signal);
  }

  private async step(what: string, command: string, args: string[], tell: (line: string) => void, signal: AbortSignal): Promise<void> {
    const printed: string[] = [];
    const note = (line: string) => {
      printed.push(line);
      printed.splice(0, printed.length - MOST_LINES);
      tell(line);
    };
    try {
      await this.run(command, args, note, signal);
    } catch (error) {
      if (signal.aborted) {
        throw new InstallProblem("cancelled");
      }
      const why = reason(printed) || (error instanceof Error ? error.message : String(error));
      throw new InstallProblem(`${what}: ${why}`, printed);
    }
  }

  private wheel(): string {
    const wheel = existsSync(this.bundle) ? wheelAmong(readdirSync(this.bundle)) : undefined;
    if (wheel === undefined) {
      throw new InstallProblem("This build of the extension brings no language server; `make vsix` makes one that does.");
    }
    return path.join(this.bundle, wheel);
  }

  private stamp(): string {
    const wheel = this.wheel();
    const { size, mtimeMs } = statSync(wheel);
    return JSON.stringify({ wheel: path.basename(wheel), size, time: Math.round(mtimeMs) });
  }
}

const UNREACHABLE = /NewConnectionError|ConnectTimeout|ReadTimeout|SSLError|ProxyError|NameResolutionError|Failed to establish a new connection/;

/** The last line of pip's that begins with ERROR, else the last lines; and whether the package index could be reached. */
export function reason(printed: readonly string[]): string {
  const errors = printed.map((line) => line.trim()).filter((line) => /^ERROR:/i.test(line));
  const last = errors.at(-1)?.replace(/^ERROR:\s*/i, "");
  const told = last ?? printed.filter((line) => line.trim() !== "").slice(-2).join(" ");
  const unreachable = printed.some((line) => UNREACHABLE.test(line)) ? "the package index cannot be reached; " : "";
  return `${unreachable}${told}`.slice(0, 500);
}

/** What of pip's output is worth showing while it works. */
export function progressOf(line: string): string | undefined {
  const found = /^\s*(Collecting|Downloading|Using cached|Processing|Installing collected packages:)\s+(\S+)/.exec(line);
  if (!found) {
    return line.startsWith("making ") ? line : undefined;
  }
  return found[1]?.startsWith("Installing") ? "installing" : `${(found[1] ?? "").toLowerCase()} ${path.basename(found[2] ?? "")}`;
}

const runProcess: Run = (command, args, tell, signal) =>
  new Promise((resolve, reject) => {
    const child = spawn(command, args, { env: { ...process.env, ...SAFE_PATH }, signal, windowsHide: true });
    let rest = "";
    const take = (chunk: Buffer) => {
      const lines = (rest + chunk.toString()).split(/\r?\n/);
      rest = lines.pop() ?? "";
      lines.forEach(tell);
    };
    child.stdout.on("data", take);
    child.stderr.on("data", take);
    child.on("error", reject);
    child.on("close", (code) => {
      if (rest) {
        tell(rest);
      }
      if (code === 0) {
        resolve();
      } else {
        reject(new Error(`${path.basename(command)} ended with status ${code ?? "unknown"}`));
      }
    });
  });
