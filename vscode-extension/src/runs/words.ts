/** Times and counts in words, and back. */

export function ago(iso: string, now: number = Date.now()): string {
  const seconds = Math.max(0, Math.round((now - Date.parse(iso)) / 1000));
  if (Number.isNaN(seconds)) {
    return "";
  }
  if (seconds < 60) {
    return "just now";
  }
  const minutes = Math.round(seconds / 60);
  if (minutes < 60) {
    return `${minutes} min ago`;
  }
  const hours = Math.round(minutes / 60);
  return hours < 24 ? `${hours} h ago` : `${Math.round(hours / 24)} d ago`;
}

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
