/** Events of a run from its directory: `events.log`, one JSON object a line behind its CRC-32. */
import { readFile } from "node:fs/promises";
import * as path from "node:path";
import type { RunEvent } from "../protocol";

export function parseLog(text: string): RunEvent[] {
  const events: RunEvent[] = [];
  for (const line of text.split("\n").slice(0, -1)) {
    const start = line.indexOf("{");
    try {
      events.push(JSON.parse(line.slice(start)) as RunEvent);
    } catch {
      break; // a damaged line: what follows is not trusted either
    }
  }
  return events;
}

/** All events so far; none where the log is not there yet. */
export async function readEvents(directory: string): Promise<RunEvent[]> {
  try {
    return parseLog(await readFile(path.join(directory, "events.log"), "utf8"));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") {
      return [];
    }
    throw error;
  }
}
