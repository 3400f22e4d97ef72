/** What is said when the checker cannot be had, with what helps. */
import { el } from "../../../vscode-extension/webviews/dom";
import { part } from "./elements";

const DEEP = /call stack|recursion|stack size/i;
const MEMORY = /memory/i;

export function remedy(why: string): string {
  if (/no WebAssembly/.test(why)) {
    return `${why} Open the page in a current Firefox, Chrome, Edge or Safari, with WebAssembly allowed.`;
  }
  if (DEEP.test(why)) {
    return "The checker ran out of stack: something in this text is nested too deeply. Name parts of it, then start the checker again.";
  }
  if (MEMORY.test(why)) {
    return "The checker ran out of memory. Close other pages or shorten the text, then start the checker again.";
  }
  return `The checker could not be loaded or has stopped (${why}). Look whether this machine is online, then start it again; your text is kept.`;
}

/** Show it, with a button that tries again; null takes it away. */
export function showFailure(why: string | null, again: () => void): void {
  const box = part("failure");
  box.hidden = why === null;
  box.replaceChildren(...(why === null ? [] : [el("span", {}, remedy(why)), el("button", { click: again }, "Start again")]));
}
