/** What `qvr play` adds to the page: a folder of programs and data, and runs. */
import type * as monaco from "monaco-editor/editor/editor.api.js";
import { parseOptions } from "../../../vscode-extension/src/runs/options";
import { runNames } from "../../../vscode-extension/src/runs/words";
import { type Algorithm, RUN_DATA, type RunData, type RunOverview } from "../../../vscode-extension/src/protocol";
import { el } from "../../../vscode-extension/webviews/dom";
import type { Transport } from "../language/transport";
import { part, say } from "../page/elements";
import type { Shade } from "../page/theme";
import { Files, type Listing } from "./folder";
import { type Drawn, PlayLive } from "./live";
import { PlayRuns, tell } from "./runs";

/** A document symbol, as far as a step is found by it. */
interface Outlined {
  name: string;
  selectionRange: { start: { line: number; character: number } };
  children?: Outlined[];
}

export interface Played {
  path: string;
  stamp: string | undefined;
  uri: string;
  editor: monaco.editor.IStandaloneCodeEditor;
  program: monaco.editor.ITextModel;
  transport: Transport;
  /** What is drawn as one types, for the diagram. */
  drawn: (drawn: Drawn | undefined) => void;
}

/** Adds its controls; what paints the panel. */
export function startPlay({ path, stamp, uri, editor, program, transport, drawn }: Played): (shade: Shade) => void {
  const frame = el("iframe", { id: "run", title: "Run", hidden: true });
  const diagram = part<HTMLIFrameElement>("diagram");
  diagram.after(frame);
  const views = el("button", { id: "views", hidden: true, click: () => show(frame.hidden) });
  const show = (run: boolean): void => {
    frame.hidden = !run;
    diagram.hidden = run;
    views.hidden = false;
    views.textContent = run ? "Show diagram" : "Show run";
  };

  const files = new Files(editor, program, transport, path, stamp);
  const data = el("select", { id: "data", "aria-label": "Data of the next run" });
  const settings = el("input", { id: "settings", "aria-label": "Settings of the next run", placeholder: "steps=2000 seed=1" });
  const runsMenu = el("select", { id: "runs", "aria-label": "Runs of the folder", change: () => void open() });

  const runs = new PlayRuns(frame, uri, transport, {
    front: () => show(true),
    reveal: (site) => void reveal(site).catch(tell),
    listed: (found) => list(found),
  });

  const live = new PlayLive(uri, editor, program, transport, drawn);

  const begin = async (algorithm: Algorithm): Promise<void> => {
    const options = parseOptions(settings.value);
    if (typeof options === "string") {
      say(options, "error");
      settings.focus();
      return;
    }
    if (!data.value && options["data"] === undefined) {
      const found = await transport.request<RunData>(RUN_DATA, { textDocument: { uri } });
      if (found.program && found.data === null && found.declared) {
        say(`Choose data: \`${found.program}\` declares some, and qvr.toml names none`, "error");
        data.focus();
        return;
      }
    }
    await runs.start(algorithm, data.value ? { data: data.value, ...options } : options);
  };
  const starter = (algorithm: Algorithm, title: string): HTMLButtonElement =>
    el("button", { id: algorithm, title, click: () => void begin(algorithm).catch(tell) }, `▶ ${algorithm.toUpperCase()}`);
  const starters = [starter("svi", "Fit the program by SVI"), starter("nuts", "Sample its posterior by NUTS")];

  const list = (found: RunOverview[]): void => {
    const names = runNames(found);
    const options = found.map(({ runId, status }, at) => el("option", { value: runId }, `${names[at]}, ${status}`));
    runsMenu.replaceChildren(el("option", { value: "", selected: true }, "Runs …"), ...options);
    runsMenu.disabled = found.length === 0;
  };
  const open = async (): Promise<void> => {
    const wanted = runsMenu.value;
    runsMenu.value = "";
    if (wanted) {
      await runs.show(wanted).catch(tell);
    }
  };
  const reveal = async (site: string | undefined): Promise<void> => {
    const found = site === undefined ? [] : await transport.request<Outlined[] | null>("textDocument/documentSymbol", { textDocument: { uri } });
    const step = (found ?? []).flatMap((one) => [one, ...(one.children ?? [])]).find(({ name }) => name === site);
    if (step) {
      const { line, character } = step.selectionRange.start;
      editor.setPosition({ lineNumber: line + 1, column: character + 1 });
      editor.revealLineInCenterIfOutsideViewport(line + 1);
    }
    editor.focus();
  };

  const fill = (listing: Listing): void => {
    files.fill(listing);
    const tables = listing.data.map((one) => el("option", { value: `${one.source}:${one.file}` }, one.path));
    data.replaceChildren(
      el("option", { value: "" }, "Data: as qvr.toml says"),
      ...(tables.length > 0 ? [el("optgroup", { label: "Files" }, ...tables)] : []),
      el("option", { value: "synthetic" }, "Synthetic data"),
    );
    for (const button of starters) {
      button.disabled = listing.lacks !== null;
      button.title = listing.lacks ?? button.title;
    }
    if (listing.lacks !== null) {
      say(listing.lacks, "error");
    }
  };

  part("tools").append(files.menu, files.button, data, settings, ...starters, runsMenu, views);
  part("count").after(el("p", { id: "live-row" }, live.choice, live.line));
  list([]);
  // its link would hold the token
  part("share").hidden = true;
  addEventListener("beforeunload", (event) => {
    if (files.changed || runs.going) {
      event.preventDefault();
    }
  });
  transport.initialized(() => {
    void transport.request<Listing>("play/folder", {}).then(fill).catch(tell);
    void runs.list().catch(tell);
  });
  return (shade) => runs.paint(shade);
}
