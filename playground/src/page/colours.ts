/** Colours of the text: the same for the grammar's scopes and for the types that the server names. */
import type * as monaco from "monaco-editor/editor/editor.api.js";

type Rules = monaco.editor.ITokenThemeRule[];

interface Palette {
  comment: string;
  keyword: string;
  space: string;
  arrow: string;
  program: string;
  site: string;
  family: string;
  option: string;
  number: string;
  string: string;
  data: string;
}

function rules(of: Palette): Rules {
  const rows: [string, string, string?][] = [
    ["comment", of.comment],
    ["comment.line.documentation", of.comment, "italic"],
    ["keyword", of.keyword],
    ["storage", of.keyword],
    ["type", of.space],
    ["entity.name.type", of.space],
    ["support.type", of.space],
    ["typeParameter", of.space, "italic"],
    ["function", of.arrow],
    ["entity.name.function", of.arrow],
    ["method", of.program, "bold"],
    ["namespace", of.program],
    ["class", of.family],
    ["support.class", of.family],
    ["support.function", of.family],
    ["variable", of.site],
    ["variable.observed", of.site, "bold"],
    ["parameter", of.site],
    ["data", of.data],
    ["property", of.option],
    ["entity.other.attribute-name", of.option],
    ["variable.parameter", of.option],
    ["enumMember", of.number],
    ["constant", of.number],
    ["number", of.number],
    ["string", of.string],
  ];
  return rows.map(([token, foreground, fontStyle]) => ({ token, foreground, ...(fontStyle ? { fontStyle } : {}) }));
}

export const LIGHT: monaco.editor.IStandaloneThemeData = {
  base: "vs",
  inherit: true,
  rules: rules({
    comment: "57606a", keyword: "8a3ffc", space: "0b6e6e", arrow: "0550ae", program: "7a3e00", site: "5a2a83",
    family: "9a4a00", option: "6e4f00", number: "0a6b34", string: "a31515", data: "8b1a6b",
  }), // prettier-ignore
  colors: {
    "editor.background": "#ffffff", "editorInlayHint.foreground": "#57606a", "editorInlayHint.background": "#f3f4f6",
    "editorLineNumber.foreground": "#57606a", "editorLineNumber.dimmedForeground": "#57606a",
  }, // prettier-ignore
};

export const DARK: monaco.editor.IStandaloneThemeData = {
  base: "vs-dark",
  inherit: true,
  rules: rules({
    comment: "8b949e", keyword: "c8a2ff", space: "6fd3d3", arrow: "86b8ff", program: "ffc27a", site: "d8b4fe",
    family: "ffb27a", option: "dcc48a", number: "9be0a8", string: "f2a3a3", data: "f5a8dd",
  }), // prettier-ignore
  colors: {
    "editor.background": "#16181d", "editorInlayHint.foreground": "#9aa4b0", "editorInlayHint.background": "#1e2128",
    "editorLineNumber.foreground": "#8b949e", "editorLineNumber.dimmedForeground": "#8b949e",
  }, // prettier-ignore
};
