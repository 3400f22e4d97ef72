/** Times and counts in words, and back. */

export function duration(seconds: number): string {
  if (seconds < 60) {
    return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
  }
  const minutes = Math.floor(seconds / 60);
  return minutes < 60
    ? `${minutes} min ${Math.round(seconds % 60)} s`
    : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

export function count(number: number): string {
  return number.toLocaleString("en-US");
}

export const MOST_DRAWS = 1_000_000;

/** The number of draws that a text says; undefined for none. */
export function drawsOf(text: string): number | undefined {
  const plain = text.trim().replace(/[,_]/g, "");
  return /^\d{1,7}$/.test(plain) && Number(plain) > 0 && Number(plain) <= MOST_DRAWS ? Number(plain) : undefined;
}

/** What a run is called, everywhere. */
export interface Called {
  runId: string;
  program: string;
  algorithm: string;
}

/** `radon · NUTS · today 15:50`. */
export function runName(run: Called, now = new Date(), seconds = false): string {
  return [run.program || run.runId, run.algorithm.toUpperCase(), moment(run.runId, now, seconds)].filter(Boolean).join(" · ");
}

/** The names of several runs: those that began in one minute are told apart by their seconds. */
export function runNames(runs: readonly Called[], now = new Date()): string[] {
  const names = runs.map((run) => runName(run, now));
  return runs.map((run, at) => (names.filter((name) => name === names[at]).length > 1 ? runName(run, now, true) : (names[at] ?? "")));
}

/** When a run began, as its id says: `today 15:50`; empty where the id says nothing. */
function moment(runId: string, now: Date, seconds: boolean): string {
  const stamp = /^(\d{4})(\d\d)(\d\d)-(\d\d)(\d\d)(\d\d)/.exec(runId)?.slice(1).map(Number);
  if (!stamp) {
    return "";
  }
  const [year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0] = stamp;
  const two = (number: number) => String(number).padStart(2, "0");
  const clock = `${two(hour)}:${two(minute)}${seconds ? `:${two(second)}` : ""}`;
  const midnight = (date: Date) => new Date(date.getFullYear(), date.getMonth(), date.getDate()).getTime();
  const days = Math.round((midnight(now) - midnight(new Date(year, month - 1, day))) / 86_400_000);
  if (days === 0 || days === 1) {
    return `${days === 0 ? "today" : "yesterday"} ${clock}`;
  }
  const date = `${day} ${MONTHS[month - 1] ?? ""}`;
  return year === now.getFullYear() ? `${date} ${clock}` : `${date} ${year} ${clock}`;
}

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
