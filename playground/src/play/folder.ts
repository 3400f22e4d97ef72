/** The folder of `qvr play`: its programs are opened and saved, its data are chosen. */
import type * as monaco from "monaco-editor/editor/editor.api.js";
import { KeyCode, KeyMod } from "monaco-editor/editor/editor.api.js";
import { el } from "../../../vscode-extension/webviews/dom";
import type { Transport } from "../language/transport";
import { say } from "../page/elements";

/** Answer of `play/folder`. */
export interface Listing {
  name: string;
  files: { path: string; uri: string; kind: "program" | "settings" }[];
  data: { path: string; file: string; source: string }[];
  whole: boolean;
  /** Why nothing can be fitted here, with the command that mends it. */
  lacks: string | null;
}

const NEW = "+";

export class Files {
  readonly menu = el("select", { id: "files", "aria-label": "Programs of the folder", change: () => void this.go() });
  readonly button = el("button", { id: "save", title: "Save the program (Ctrl+S)", click: () => void this.save() }, "Save");
  private saved: number;

  /** `stamp` is that of the text as it was opened; none for a file that is not there yet. */
  constructor(
    private readonly editor: monaco.editor.IStandaloneCodeEditor,
    private readonly program: monaco.editor.ITextModel,
    private readonly transport: Transport,
    private readonly path: string,
    private stamp: string | undefined,
  ) {
    this.saved = stamp === undefined ? -1 : program.getAlternativeVersionId();
    program.onDidChangeContent(() => this.show());
    editor.addCommand(KeyMod.CtrlCmd | KeyCode.KeyS, () => void this.save());
    this.show();
  }

  get changed(): boolean {
    return this.program.getAlternativeVersionId() !== this.saved;
  }

  fill({ name, files, whole }: Listing): void {
    const programs = files.filter(({ kind }) => kind === "program");
    const known = programs.some(({ path }) => path === this.path);
    const names = [...programs.map(({ path }) => path), ...(known ? [] : [this.path])];
    const options = names.map((path) => el("option", { value: path, selected: path === this.path }, path));
    this.menu.replaceChildren(
      el("optgroup", { label: whole ? name : `${name} (too large to list whole)` }, ...options),
      el("option", { value: NEW }, "New program …"),
    );
  }

  async save(): Promise<boolean> {
    const version = this.program.getAlternativeVersionId();
    const asked = { path: this.path, text: this.program.getValue() };
    try {
      await this.write(this.stamp === undefined ? { ...asked, new: true } : { ...asked, stamp: this.stamp });
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      if (!/has changed on the disk|is there already/.test(message) || !confirm(`${message}. Write over it?`)) {
        say(message, "error");
        return false;
      }
      await this.write(asked);
    }
    this.saved = version;
    this.show();
    say(`Saved ${this.path}.`);
    return true;
  }

  private async write(asked: object): Promise<void> {
    this.stamp = (await this.transport.request<{ stamp: string }>("play/save", asked)).stamp;
  }

  private show(): void {
    this.button.textContent = this.changed ? "Save •" : "Save";
    document.documentElement.dataset["saved"] = String(!this.changed);
  }

  /** Open another program: the page is loaded for it. */
  private async go(): Promise<void> {
    const wanted = this.menu.value;
    this.menu.value = this.path;
    const path = wanted === NEW ? await this.make() : wanted;
    if (path && path !== this.path) {
      const address = new URL(location.href);
      address.searchParams.set("file", path);
      location.assign(address);
    }
    this.editor.focus();
  }

  private async make(): Promise<string | undefined> {
    const named = prompt("Name of the program", "new.qvr")?.trim();
    if (!named) {
      return undefined;
    }
    const path = named.endsWith(".qvr") ? named : `${named}.qvr`;
    try {
      await this.transport.request("play/save", { path, text: "", new: true });
      return path;
    } catch (error) {
      say(error instanceof Error ? error.message : String(error), "error");
      return undefined;
    }
  }
}
