/** Light and dark: as the system has it, until the switch says otherwise. */
import * as monaco from "monaco-editor/editor/editor.api.js";
import { DARK, LIGHT } from "./colours";
import { part } from "./elements";

export type Shade = "light" | "dark";
const KEY = "qvr-playground-shade";
const system = matchMedia("(prefers-color-scheme: dark)");

function chosen(): Shade | null {
  try {
    const found = localStorage.getItem(KEY);
    return found === "light" || found === "dark" ? found : null;
  } catch {
    return null;
  }
}

export function shade(): Shade {
  return chosen() ?? (system.matches ? "dark" : "light");
}

/** Paint now and whenever it changes; `painted` hears of it. */
export function followShade(painted: (shade: Shade) => void): void {
  monaco.editor.defineTheme("qvr-light", LIGHT);
  monaco.editor.defineTheme("qvr-dark", DARK);
  const button = part<HTMLButtonElement>("shade");
  const paint = (): void => {
    const now = shade();
    document.documentElement.dataset["shade"] = now;
    monaco.editor.setTheme(`qvr-${now}`);
    const other = now === "dark" ? "light" : "dark";
    button.textContent = now === "dark" ? "☀" : "☾";
    button.title = `Use ${other} colours`;
    button.setAttribute("aria-label", button.title);
    painted(now);
  };
  button.addEventListener("click", () => {
    const other: Shade = shade() === "dark" ? "light" : "dark";
    try {
      // the system's own is not kept: it may change
      const same = (other === "dark") === system.matches;
      same ? localStorage.removeItem(KEY) : localStorage.setItem(KEY, other);
    } catch {
      document.documentElement.dataset["shade"] = other;
    }
    paint();
  });
  system.addEventListener("change", paint);
  paint();
}
