/** Text that a fitted language model writes: `qvr sample` in a process of its own. */
import { execFile } from "node:child_process";
import * as path from "node:path";
import { SAFE_PATH } from "../interpreter";

const TOKENS = 300;

/** The command's arguments; the run store is found from the folder that holds `.qvr`. */
export function sampleCommand(runId: string, seed: number): string[] {
  return ["-m", "qvr_core.cli", "sample", runId, "-n", String(TOKENS), "--seed", String(seed)];
}

/** Draw from a run. Rejects with the command's own words. */
export function sample(python: string, runId: string, directory: string, seed: number): Promise<string> {
  const cwd = path.resolve(directory, "..", "..", "..");
  const env = { ...process.env, ...SAFE_PATH };
  return new Promise((resolve, reject) => {
    execFile(python, sampleCommand(runId, seed), { cwd, env, timeout: 120_000 }, (error, stdout, stderr) => {
      if (error) {
        reject(new Error(stderr.trim().split("\n").at(-1) || error.message));
      } else {
        resolve(stdout.trimEnd());
      }
    });
  });
}
