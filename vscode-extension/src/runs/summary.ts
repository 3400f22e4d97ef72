/** `summary.json` of a run directory: what a fit says of every number; and what differs between two runs. */
import { readFile, stat } from "node:fs/promises";
import * as path from "node:path";
import { differ } from "./differences";
import type { Summary } from "./figures";

const MOST_BYTES = 8_000_000;

/** The summary of a run; undefined where it left none, or one that is no summary. */
export async function readSummary(directory: string): Promise<Summary | undefined> {
  return (await readJson(path.join(directory, "summary.json"))) as Summary | undefined;
}

/** What differs between two runs: their settings, and the lines that only one program has. */
export async function differences(one: string, other: string): Promise<string[]> {
  const [mine, theirs] = await Promise.all([one, other].map((folder) => readJson(path.join(folder, "job.json"))));
  const [own, foreign] = await Promise.all([one, other].map((folder) => text(path.join(folder, "program.qvr"))));
  return differ({ config: config(mine), program: own }, { config: config(theirs), program: foreign });
}

function config(job: unknown): Record<string, unknown> {
  return ((job as { config?: Record<string, unknown> } | undefined)?.config) ?? {};
}

async function text(file: string): Promise<string> {
  return readFile(file, "utf8").catch(() => "");
}

async function readJson(file: string): Promise<unknown> {
  try {
    return (await stat(file)).size > MOST_BYTES ? undefined : (JSON.parse(await readFile(file, "utf8")) as unknown);
  } catch {
    return undefined;
  }
}
