/** qvr.toml as far as the editor writes it: which data a program was last run on. What it says the server reads. */

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
