/** Monaco as this page has it. */
import * as monaco from "monaco-editor/editor/editor.api.js";

declare global {
  interface Window {
    MonacoEnvironment?: monaco.Environment;
    /** The editor, for the browser's console and for tests. */
    qvrEditor?: monaco.editor.IStandaloneCodeEditor;
  }
}

window.MonacoEnvironment = { getWorker: () => new Worker(new URL("editor.worker.js", document.baseURI)) };

export function openEditor(place: HTMLElement, model: monaco.editor.ITextModel): monaco.editor.IStandaloneCodeEditor {
  const editor = monaco.editor.create(place, {
    model,
    automaticLayout: true,
    ariaLabel: "QVR program",
    minimap: { enabled: false },
    fontSize: 14,
    wordWrap: "on",
    wrappingIndent: "deepIndent",
    scrollBeyondLastLine: false,
    "semanticHighlighting.enabled": true,
    inlayHints: { enabled: "on" },
    quickSuggestions: { other: true, comments: false, strings: true },
    wordBasedSuggestions: "off",
    lightbulb: { enabled: monaco.editor.ShowLightbulbIconMode.On },
    hover: { above: false },
    fixedOverflowWidgets: true,
    padding: { top: 8 },
    unicodeHighlight: { ambiguousCharacters: false },
  });
  window.qvrEditor = editor;
  return editor;
}
