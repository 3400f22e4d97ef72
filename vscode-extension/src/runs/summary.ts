/** `summary.json` of a run directory: what a fit says of every number; and what differs between two runs. */
import { readFile, stat } from "node:fs/promises";
import * as path from "node:path";
import type { Summary } from "./figures";

const MOST_BYTES = 8_000_000;

/** The summary of a run; undefined where it left none, or one that is no summary. */
export async function readSummary(directory: string): Promise<Summary | undefined> {
  return (await readJson(path.join(directory, "summary.json"))) as Summary | undefined;
}

/** What differs between two runs: their settings, and the lines that only one program has. */
export async function differences(one: string, other: string): Promise<string[]> {
  const [mine, theirs] = await Promise.all([one, other].map((folder) => readJson(path.join(folder, "job.json"))));
  const [own, foreign] = await Promise.all([one, other].map((folder) => lines(path.join(folder, "program.qvr"))));
  return [...settings(config(mine), config(theirs)), ...onlyIn(own, foreign, "only here"), ...onlyIn(foreign, own, "only there")];
}

export function settings(mine: Record<string, unknown>, theirs: Record<string, unknown>): string[] {
  const keys = [...new Set([...Object.keys(mine), ...Object.keys(theirs)])];
  const text = (value: unknown) => JSON.stringify(value ?? null);
  return keys.filter((key) => text(mine[key]) !== text(theirs[key])).map((key) => `${key}: ${text(mine[key])} here, ${text(theirs[key])} there`);
}

function onlyIn(these: string[] = [], those: string[] = [], where: string): string[] {
  return these.filter((line) => line.trim() && !those.includes(line)).map((line) => `${where}: ${line.trim()}`);
}

function config(job: unknown): Record<string, unknown> {
  return ((job as { config?: Record<string, unknown> } | undefined)?.config) ?? {};
}

async function lines(file: string): Promise<string[]> {
  return readFile(file, "utf8").then((text) => text.split("\n"), () => []);
}

async function readJson(file: string): Promise<unknown> {
  try {
    return (await stat(file)).size > MOST_BYTES ? undefined : (JSON.parse(await readFile(file, "utf8")) as unknown);
  } catch {
    return undefined;
  }
}
