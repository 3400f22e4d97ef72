/** The menu of texts: examples, the library, and what stood here before. */
import { el } from "../../../vscode-extension/webviews/dom";
import { type Text, texts } from "../language/library";
import { part, say } from "./elements";
import { earlier } from "./kept";

export function fillMenu(open: (text: string, name: string, from: Text) => void): void {
  const menu = part<HTMLSelectElement>("examples");
  let shown: Text[] = [];
  const fill = (found: Text[]): void => {
    const before = earlier().map(({ when, text }) => ({ group: "Earlier texts in this browser", name: when, title: when, text }));
    shown = [...found, ...before];
    const groups = new Map<string, HTMLElement[]>();
    shown.forEach(({ group, name, title }, at) => {
      groups.set(group, [...(groups.get(group) ?? []), el("option", { value: String(at), title: name }, title)]);
    });
    const parts = [...groups].map(([label, options]) => el("optgroup", { label }, ...options));
    menu.replaceChildren(el("option", { value: "", selected: true }, "Examples …"), ...parts);
  };
  const refresh = async (): Promise<void> => {
    try {
      fill(await texts());
    } catch (error) {
      fill([]);
      say(`${String(error)}. Load the page again to get them.`, "error");
    }
  };
  menu.addEventListener("change", () => {
    const found = shown[Number(menu.value)];
    if (menu.value && found) {
      open(found.text, found.name, found);
    }
    void refresh();
  });
  void refresh();
}
