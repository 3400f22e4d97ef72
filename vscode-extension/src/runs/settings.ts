/** qvr.toml as far as the editor reads and writes it: which data a program was last run on. */
import * as path from "node:path";

/** The program that a run without a name means: the first export, else the last program. */
export function mainProgram(text: string): string | undefined {
  const exported = /^export[ \t]+([A-Za-z_]\w*)[ \t]*(?:#.*)?$/m.exec(text)?.[1];
  return exported ?? [...text.matchAll(/^program[ \t]+([A-Za-z_]\w*)/gm)].at(-1)?.[1];
}

/** Where the settings of a file may stand: its folder and those above, the nearest first, as the server looks. */
export function settingsFolders(folder: string): string[] {
  const above = path.posix.dirname(folder);
  return above === folder ? [folder] : [folder, ...settingsFolders(above)];
}

/** Whether a text says that data are given to it: then nobody wants made-up ones unless he says so. */
export function declaresData(text: string): boolean {
  return /^[ \t]+data[ \t]+[A-Za-z_]/m.test(text);
}

/** The value of `data` in `[run.<program>]`, else in `[defaults]`. */
export function rememberedData(toml: string, program: string): string | undefined {
  return dataIn(toml, `run\\s*\\.\\s*"?${program}"?`) ?? dataIn(toml, "defaults");
}

function dataIn(toml: string, name: string): string | undefined {
  const table = findTable(toml.split("\n"), name);
  if (!table) {
    return undefined;
  }
  for (const line of toml.split("\n").slice(table.start + 1, table.end)) {
    const value = /^\s*data\s*=\s*("(?:[^"\\]|\\.)*"|'[^']*')/.exec(line)?.[1];
    if (value) {
      return value.startsWith('"') ? (JSON.parse(value) as string) : value.slice(1, -1);
    }
  }
  return undefined;
}

/** `toml` with `data` in `[run.<program>]`; every other line stays as it is. */
export function rememberData(toml: string, program: string, data: string): string {
  const line = `data = ${JSON.stringify(data)}`;
  const lines = toml.split("\n");
  const table = findTable(lines, `run\\s*\\.\\s*"?${program}"?`);
  if (!table) {
    const before = toml.trimEnd();
    return `${before === "" ? "" : `${before}\n\n`}[run.${program}]\n${line}\n`;
  }
  const at = lines.findIndex((text, index) => index > table.start && index < table.end && /^\s*data\s*=/.test(text));
  if (at >= 0) {
    lines[at] = line;
  } else {
    lines.splice(table.start + 1, 0, line);
  }
  return lines.join("\n");
}

function findTable(lines: string[], name: string): { start: number; end: number } | undefined {
  const start = lines.findIndex((line) => new RegExp(`^\\s*\\[\\s*${name}\\s*\\]`).test(line));
  if (start < 0) {
    return undefined;
  }
  const next = lines.findIndex((line, index) => index > start && /^\s*\[/.test(line));
  return { start, end: next < 0 ? lines.length : next };
}
