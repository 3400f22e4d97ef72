/** What this browser keeps: the text that is edited, and those that it was before. */
const TEXT = "qvr-playground-text";
const EARLIER = "qvr-playground-earlier";
const MOST_EARLIER = 10;

export interface Earlier {
  when: string;
  text: string;
}

export function keptText(): string | null {
  return read(TEXT);
}

/** Whether the browser keeps it. */
export function keepText(text: string): boolean {
  return write(TEXT, text);
}

export function earlier(): Earlier[] {
  try {
    const found: unknown = JSON.parse(read(EARLIER) ?? "[]");
    return Array.isArray(found) ? found.filter((one): one is Earlier => typeof one?.text === "string") : [];
  } catch {
    return [];
  }
}

/** Remember a text that another one is about to replace; the oldest ones make room. */
export function keepEarlier(text: string): void {
  if (!text.trim()) {
    return;
  }
  const others = earlier().filter((one) => one.text !== text);
  const all = [{ when: new Date().toLocaleString(), text }, ...others].slice(0, MOST_EARLIER);
  while (all.length > 0 && !write(EARLIER, JSON.stringify(all))) {
    all.pop();
  }
}

function read(key: string): string | null {
  try {
    return localStorage.getItem(key);
  } catch {
    return null; // a browser that keeps nothing
  }
}

function write(key: string, value: string): boolean {
  try {
    localStorage.setItem(key, value);
    return true;
  } catch {
    return false;
  }
}
