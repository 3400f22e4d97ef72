/** The fixed parts of index.html. */
export function part<Element extends HTMLElement>(id: string): Element {
  const found = document.getElementById(id);
  if (!found) {
    throw new Error(`the page has no #${id}`);
  }
  return found as Element;
}

let clearing = 0;

/** Say something in the status line; what is no error goes away. */
export function say(text: string, kind: "info" | "error" = "info"): void {
  const status = part("status");
  clearTimeout(clearing);
  status.textContent = text;
  status.className = kind;
  if (kind === "info" && text) {
    clearing = window.setTimeout(() => (status.textContent = ""), 6_000);
  }
}

/** What is being loaded, until it is. */
export function busy(what: string): void {
  const bar = part("busy");
  bar.hidden = what === "";
  bar.textContent = what && `Loading ${what} …`;
}
