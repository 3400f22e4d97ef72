/** One keystroke mends the problem at the cursor. */
import * as monaco from "monaco-editor/editor/editor.api.js";
import type { Transport } from "./transport";

interface Action {
  title: string;
  isPreferred?: boolean;
  edit?: { changes?: Record<string, { range: Place; newText: string }[]> };
}

interface Place {
  start: { line: number; character: number };
  end: { line: number; character: number };
}

/** `editor.action.autoFix` asks for what Monaco's client does not say of its provider. */
export function mendByKey(editor: monaco.editor.IStandaloneCodeEditor, program: monaco.editor.ITextModel, uri: string, transport: Transport): void {
  const mend = async (): Promise<void> => {
    const place = editor.getPosition();
    if (!place || editor.getModel() !== program) {
      return;
    }
    const position = { line: place.lineNumber - 1, character: place.column - 1 };
    const version = program.getVersionId();
    const context = { diagnostics: [], only: ["quickfix"] };
    const asked = { textDocument: { uri }, range: { start: position, end: position }, context };
    const found = await transport.request<Action[] | null>("textDocument/codeAction", asked).catch(() => null);
    const action = found?.find(({ isPreferred }) => isPreferred);
    if (!action || program.getVersionId() !== version) {
      await editor.getAction("editor.action.quickFix")?.run();
      return;
    }
    const edits = (action.edit?.changes?.[uri] ?? []).map(({ range: { start, end }, newText }) => ({
      range: new monaco.Range(start.line + 1, start.character + 1, end.line + 1, end.character + 1),
      text: newText,
    }));
    editor.pushUndoStop();
    editor.executeEdits("qvr", edits);
    editor.pushUndoStop();
  };
  editor.addAction({
    id: "qvr.mend",
    label: "Mend the problem here",
    keybindings: [monaco.KeyMod.Alt | monaco.KeyCode.Enter],
    contextMenuGroupId: "1_modification",
    run: mend,
  });
}
