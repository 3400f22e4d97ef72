/** The page: an editor, what is wrong, a diagram, and the server that they ask. */
import * as monaco from "monaco-editor/editor/editor.api.js";
import { MonacoLspClient } from "monaco-lsp-client";
import { choose } from "./connections/choose";
import { type Message, type State, served } from "./connections/connection";
import { DiagramPanel } from "./diagram/panel";
import { openEditor } from "./editor";
import { colour, declareLanguage } from "./language/grammar";
import { dataOf, librariesIn, libraryFile, texts } from "./language/library";
import { mendByKey } from "./language/mend";
import { Transport } from "./language/transport";
import { offline } from "./offline/register";
import { busy, part, say } from "./page/elements";
import { showFailure } from "./page/failure";
import { FIRST, FIRST_DATA } from "./page/first";
import { keepEarlier, keepText, keptText } from "./page/kept";
import { fillMenu } from "./page/menu";
import { showProblems } from "./page/problems";
import { linkTo, programIn } from "./page/share";
import { followShade } from "./page/theme";
import { startPlay } from "./play/play";
import { NO_DATA, Sampling } from "./sampling/panel";

const here = served();
const URI = here.uri ?? "playground:/program.qvr";
const DIAGNOSTICS = "textDocument/publishDiagnostics";
/** Time without an edit after which the text is kept. */
const KEEP_MS = 300;

async function begin(): Promise<void> {
  declareLanguage();
  const uri = monaco.Uri.parse(URI);
  const program = monaco.editor.createModel(await firstText(), "qvr", uri);
  const editor = openEditor(part("editor"), program);
  const isProgram = (): boolean => editor.getModel() === program;
  const problems = showProblems(editor);
  void colour(new URL("onig.wasm", document.baseURI)).catch(() => undefined);

  const library = new Map<string, monaco.editor.ITextModel>();
  /** Files of the library that an answer leads to are opened before it is read. */
  const prepare = (message: Message): void => {
    for (const found of librariesIn(message.result)) {
      const text = standard.get(libraryFile(found) ?? "");
      if (text !== undefined && !library.has(found)) {
        library.set(found, monaco.editor.createModel(text, "qvr", monaco.Uri.parse(found)));
      }
    }
  };
  const standard = new Map<string, string>();
  void texts()
    .then((found) => found.forEach(({ name, text }) => standard.set(name, text)))
    .catch(() => undefined);

  const transport = new Transport(
    choose(here),
    URI,
    (wanted) => monaco.editor.getModels().find((model) => model.uri.toString(true).toLowerCase() === wanted)?.getValue(),
    prepare,
    { codeLens: { enable: false } },
    (state) => tellState(state, transport),
  );

  mendByKey(editor, program, URI, transport);

  const show = (model: monaco.editor.ITextModel): void => {
    if (editor.getModel() !== model) {
      editor.setModel(model);
      editor.updateOptions({ readOnly: model !== program });
    }
    part("back").hidden = isProgram();
    part("back-name").textContent = isProgram() ? "" : (libraryFile(model.uri.path) ?? "");
  };
  part("back-button").addEventListener("click", () => show(program));
  const reveal = (range: monaco.IRange, model: monaco.editor.ITextModel): void => {
    show(model);
    editor.setSelection(range);
    editor.revealRangeInCenterIfOutsideViewport(range);
    editor.focus();
  };
  monaco.editor.registerEditorOpener({
    openCodeEditor: (_source, resource, place) => {
      const model = monaco.editor.getModel(resource);
      if (!model) {
        return false;
      }
      const range = place && ("startLineNumber" in place ? place : monaco.Range.fromPositions(place));
      reveal(range ?? new monaco.Range(1, 1, 1, 1), model);
      return true;
    },
  });

  const diagram = new DiagramPanel(part<HTMLIFrameElement>("diagram"), editor, URI, transport, {
    reveal: (range, home) => {
      if (!range) {
        return;
      }
      const { start, end } = range;
      const to = new monaco.Range(start.line + 1, start.character + 1, end.line + 1, end.character + 1);
      const other = home === undefined ? program : library.get(home);
      if (other) {
        reveal(to, other);
      } else if (home !== undefined) {
        say(`This stands in ${libraryFile(home) ?? home}.`);
      }
    },
  });
  const paintRun = here.path === undefined ? undefined : startPlay({ path: here.path, stamp: here.stamp, uri: URI, editor, program, transport, drawn: (drawn) => diagram.densities(drawn) });
  followShade((shade) => {
    diagram.paint(shade);
    paintRun?.(shade);
  });
  transport.on<{ uri: string }>(DIAGNOSTICS, ({ uri }) => {
    if (uri.toLowerCase() === URI.toLowerCase()) {
      performance.mark("qvr-diagnostics");
      document.documentElement.dataset["checked"] = String(program.getVersionId());
      problems();
      diagram.later();
      offline(here);
    }
  });

  const replace = (text: string, name: string): void => {
    keepEarlier(program.getValue());
    diagram.forget();
    show(program);
    program.pushEditOperations([], [{ range: program.getFullModelRange(), text }], () => null);
    editor.setPosition({ lineNumber: 1, column: 1 });
    editor.setScrollTop(0);
    say(`Opened ${name}. What stood here is under “Earlier texts”.`);
    editor.focus();
  };
  // `qvr play` has runs of its own
  const sampling = here.path === undefined ? new Sampling(program) : undefined;
  if (program.getValue() === FIRST) {
    sampling?.use(FIRST_DATA);
  }
  fillMenu((text, name, from) => {
    replace(text, name);
    void dataOf(from)
      .catch(() => undefined)
      .then((found) => sampling?.use(found ?? NO_DATA));
  });
  keepWhatIsTyped(program);
  share(program);
  addEventListener("hashchange", () => void openLink(replace));

  transport.start();
  new MonacoLspClient(transport as never);
}

/** A link's program, else what was edited last, else a small example. */
async function firstText(): Promise<string> {
  if (here.socket) {
    return here.text ?? FIRST;
  }
  const kept = keptText();
  try {
    const linked = await programIn(location.hash);
    if (linked !== null) {
      if (kept !== null && kept !== linked) {
        keepEarlier(kept);
      }
      forgetLink();
      return linked;
    }
  } catch (error) {
    say(error instanceof Error ? error.message : String(error), "error");
    forgetLink();
  }
  return kept ?? FIRST;
}

async function openLink(replace: (text: string, name: string) => void): Promise<void> {
  try {
    const linked = await programIn(location.hash);
    if (linked !== null) {
      forgetLink();
      replace(linked, "the program of the link");
    }
  } catch (error) {
    forgetLink();
    say(error instanceof Error ? error.message : String(error), "error");
  }
}

/** The address is that of the page again: what is typed from now on is not in it. */
function forgetLink(): void {
  history.replaceState(null, "", location.pathname + location.search);
}

function keepWhatIsTyped(program: monaco.editor.ITextModel): void {
  if (here.socket) {
    return; // the file is the text's place
  }
  let timer = 0;
  let told = false;
  const keep = (): void => {
    clearTimeout(timer);
    if (!keepText(program.getValue()) && !told) {
      told = true;
      say("This browser does not keep the text: copy it, or make a link, before you close the page.", "error");
    }
  };
  program.onDidChangeContent(() => {
    clearTimeout(timer);
    timer = window.setTimeout(keep, KEEP_MS);
  });
  addEventListener("pagehide", keep);
  document.addEventListener("visibilitychange", keep);
}

function share(program: monaco.editor.ITextModel): void {
  const field = part<HTMLInputElement>("link");
  part("share").addEventListener("click", async () => {
    const link = await linkTo(program.getValue(), location.href);
    field.value = link;
    field.hidden = false;
    try {
      await navigator.clipboard.writeText(link);
      say("The link is copied. It holds the whole program; nothing was sent anywhere.");
    } catch {
      field.select();
      say("Copy the link from the field. It holds the whole program; nothing was sent anywhere.");
    }
  });
}

function tellState(state: State, transport: Transport): void {
  busy(state.kind === "loading" ? state.what : "");
  document.documentElement.dataset["server"] = state.kind;
  if (state.kind === "ready" && state.from) {
    document.documentElement.dataset["from"] = state.from;
  }
  const again = (): void => transport.restart();
  showFailure(state.kind === "failed" ? state.why : null, again);
}

begin().catch((error: unknown) => showFailure(String(error), () => location.reload()));
