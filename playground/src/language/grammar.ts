/** Colours while nothing is checked yet: the TextMate grammar of the VS Code extension. */
import * as monaco from "monaco-editor/editor/editor.api.js";
import { createOnigScanner, createOnigString, loadWASM } from "vscode-oniguruma";
import { INITIAL, Registry, type StateStack } from "vscode-textmate";
import configuration from "../../../vscode-extension/language-configuration.json";
import grammar from "../../../vscode-extension/syntaxes/qvr.tmLanguage.json";

export const QVR = "qvr";

/** Lines longer than this stay plain. */
const LONGEST = 5_000;

export function declareLanguage(): void {
  monaco.languages.register({ id: QVR, extensions: [".qvr"], aliases: ["QVR"] });
  const { wordPattern, indentationRules, onEnterRules, brackets, folding, ...rest } = configuration;
  monaco.languages.setLanguageConfiguration(QVR, {
    ...rest,
    brackets: brackets as [string, string][],
    colorizedBracketPairs: rest.colorizedBracketPairs as [string, string][],
    surroundingPairs: rest.surroundingPairs.map(([open = "", close = ""]) => ({ open, close })),
    wordPattern: new RegExp(wordPattern, "g"),
    folding,
    indentationRules: {
      increaseIndentPattern: new RegExp(indentationRules.increaseIndentPattern),
      decreaseIndentPattern: new RegExp(indentationRules.decreaseIndentPattern),
    },
    onEnterRules: onEnterRules.map(({ beforeText, action }) => ({
      beforeText: new RegExp(beforeText),
      action: { indentAction: INDENT[action.indent] ?? 0, ...("appendText" in action ? { appendText: action.appendText } : {}) },
    })),
  });
}

const INDENT: Record<string, monaco.languages.IndentAction> = {
  none: monaco.languages.IndentAction.None,
  indent: monaco.languages.IndentAction.Indent,
  outdent: monaco.languages.IndentAction.Outdent,
};

class Line implements monaco.languages.IState {
  constructor(readonly stack: StateStack) {}

  clone(): Line {
    return this;
  }

  equals(other: monaco.languages.IState): boolean {
    return other instanceof Line && other.stack.equals(this.stack);
  }
}

/** Colour by the grammar; without its engine the text stays plain until the server has answered. */
export async function colour(engine: URL): Promise<void> {
  await loadWASM(await (await fetch(engine)).arrayBuffer());
  const registry = new Registry({
    onigLib: Promise.resolve({ createOnigScanner, createOnigString }),
    loadGrammar: async (scope) => (scope === grammar.scopeName ? (grammar as never) : null),
  });
  const found = await registry.loadGrammar(grammar.scopeName);
  if (found) {
    monaco.languages.setTokensProvider(QVR, {
      getInitialState: () => new Line(INITIAL),
      tokenize: (line, state) => {
        if (line.length > LONGEST) {
          return { tokens: [], endState: state };
        }
        const { tokens, ruleStack } = found.tokenizeLine(line, (state as Line).stack);
        const scopes = tokens.map(({ startIndex, scopes }) => ({ startIndex, scopes: scopes.at(-1) ?? "" }));
        return { tokens: scopes, endState: new Line(ruleStack) };
      },
    });
  }
}
