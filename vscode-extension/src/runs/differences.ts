/** What differs between two runs: their settings, and the lines that only one program has. */

/** What was asked of a run. */
export interface Asked {
  config: Record<string, unknown>;
  program: string;
}

export function differ(mine: Asked, theirs: Asked): string[] {
  const [own, foreign] = [mine.program.split("\n"), theirs.program.split("\n")];
  return [...settings(mine.config, theirs.config), ...onlyIn(own, foreign, "only here"), ...onlyIn(foreign, own, "only there")];
}

function settings(mine: Record<string, unknown>, theirs: Record<string, unknown>): string[] {
  const keys = [...new Set([...Object.keys(mine), ...Object.keys(theirs)])];
  const text = (value: unknown) => JSON.stringify(value ?? null);
  return keys.filter((key) => text(mine[key]) !== text(theirs[key])).map((key) => `${key}: ${text(mine[key])} here, ${text(theirs[key])} there`);
}

function onlyIn(these: string[], those: string[], where: string): string[] {
  return these.filter((line) => line.trim() && !those.includes(line)).map((line) => `${where}: ${line.trim()}`);
}
