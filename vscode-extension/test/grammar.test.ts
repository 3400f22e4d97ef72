import { readFileSync } from "node:fs";
import * as path from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { createOnigScanner, createOnigString, loadWASM } from "vscode-oniguruma";
import { INITIAL, Registry, type IGrammar } from "vscode-textmate";

const root = path.join(__dirname, "..");
const program = `
object Rate : Real 1 [low=0.0]
object Cell : Hidden * Memory
morphism attend : Hidden -> Hidden [role=attention, heads=4, causal=true]
morphism head : Hidden -> Token [scale=0.1, param_source=linear] ~ Categorical
let backbone = embed >> scan(cell, emit=all, direction=backward) >> residual(attend)
let back = weights.dagger
composition log_prob
program lm(x, mean) : Token -> Token [effects=[Sample, Score]]
    sample h : Group <- Normal(loc=0.0, scale=mean) [via=group]
    let (i, j) = chunk(logcumsumexp(h), 2)
    let k = digamma(mean[i]) + where(h > 0.0, i, j)
    let weight = chart.weight(h)
    observe y : Token <- head(h) [mask=counted]
    return y
deduction D : A -> B [semiring=Viterbi]
    atoms S, NP
    rule fwd : span(I, K) |- span(I, K)  #[learnable]
    lexicon from "words.tsv"
def logistic(x, k = 1.0) = 1 / (1 + exp(-k * x))
family Skew(loc, scale : Real 1 [low=0.0]) : Real 1
    density(x) = -x
program radon : House -> House
    data county : House -> County
    data floor, log_radon : House
    let eta[i : House] = sum(b[f] * x[i, f] for f : Floor if f > 0)
    sample trend[t : Time] <- Normal(trend[t - 1], s) from Normal(0.0, s)
    sample level[t : Time] <- Normal(level[t - 1], s)
        from Normal(1.0, s)
    predict ahead[h : Ahead] <- Normal(eta[h], data)
    let from = data + predict
object Open : Real 2 [low=0.0
object Next : Simplex 3
`;

let grammar: IGrammar;

beforeAll(async () => {
  const wasm = readFileSync(path.join(root, "node_modules/vscode-oniguruma/release/onig.wasm"));
  await loadWASM(wasm.buffer.slice(wasm.byteOffset, wasm.byteOffset + wasm.byteLength));
  const file = JSON.parse(readFileSync(path.join(root, "syntaxes/qvr.tmLanguage.json"), "utf8"));
  const registry = new Registry({
    onigLib: Promise.resolve({ createOnigScanner, createOnigString }),
    loadGrammar: async () => file,
  });
  grammar = (await registry.loadGrammar("source.qvr"))!;
});

/** The innermost scope of `word` in the line of the program that begins with `start`. */
function scope(start: string, word: string): string {
  let state = INITIAL;
  for (const line of program.split("\n")) {
    const { tokens, ruleStack } = grammar.tokenizeLine(line, state);
    state = ruleStack;
    if (line.trim().startsWith(start)) {
      const behind = start === word ? 0 : line.indexOf(start) + start.length;
      const column = behind + new RegExp(`(?<!\\w)${word}(?!\\w)`).exec(line.slice(behind))!.index;
      return tokens.find((one) => one.startIndex <= column && column < one.endIndex)!.scopes.at(-1)!;
    }
  }
  throw new Error(`no line begins with ${start}`);
}

describe("the grammar, read by VS Code's own engine", () => {
  it.each([
    ["object Rate", "Real", "support.type.space.qvr"],
    ["object Rate", "low", "variable.parameter.option.qvr"],
    ["morphism attend", "role", "variable.parameter.option.qvr"],
    ["morphism attend", "attention", "support.constant.role.qvr"],
    ["morphism attend", "true", "support.constant.option.qvr"],
    ["morphism head", "scale", "variable.parameter.option.qvr"],
    ["morphism head", "linear", "support.constant.option.qvr"],
    ["morphism head", "Categorical", "support.class.family.qvr"],
    ["let backbone", "scan", "support.function.combinator.qvr"],
    ["let backbone", "emit", "variable.parameter.option.qvr"],
    ["let backbone", "backward", "support.constant.option.qvr"],
    ["let back =", "dagger", "support.function.combinator.qvr"],
    ["composition", "log_prob", "support.constant.composition.qvr"],
    ["program", "Sample", "support.constant.option.qvr"],
    ["program", "Token", "source.qvr"],
    ["sample h", "Normal", "support.class.family.qvr"],
    ["sample h", "scale", "variable.parameter.argument.qvr"],
    ["sample h", "via", "variable.parameter.option.qvr"],
    ["sample h", "mean", "source.qvr"],
    ["let (i", "chunk", "support.function.builtin.qvr"],
    ["let (i", "logcumsumexp", "support.function.builtin.qvr"],
    ["let k", "digamma", "support.function.builtin.qvr"],
    ["let k", "where", "support.function.builtin.qvr"],
    ["let k", "mean", "source.qvr"],
    ["let weight", "weight", "source.qvr"],
    ["observe y", "mask", "variable.parameter.option.qvr"],
    ["observe y", "counted", "source.qvr"],
    ["deduction", "semiring", "variable.parameter.option.qvr"],
    ["deduction", "Viterbi", "support.constant.option.qvr"],
    ["rule fwd", "learnable", "entity.other.attribute-name.qvr"],
    ["lexicon", "from", "keyword.control.deduction.qvr"],
    ["def", "logistic", "entity.name.function.qvr"],
    ["def logistic", "exp", "support.function.builtin.qvr"],
    ["family", "Skew", "entity.name.class.qvr"],
    ["family Skew", "Real", "support.type.space.qvr"],
    ["data", "county", "variable.other.qvr"],
    ["data floor", "log_radon", "variable.other.qvr"],
    ["data floor", "House", "source.qvr"],
    ["let eta", "for", "keyword.control.comprehension.qvr"],
    ["let eta", "if", "keyword.control.comprehension.qvr"],
    ["let eta", "sum", "support.function.builtin.qvr"],
    ["sample trend", "from", "keyword.control.comprehension.qvr"],
    ["from", "from", "keyword.control.from.qvr"],
    ["from", "Normal", "support.class.family.qvr"],
    ["predict", "ahead", "variable.other.qvr"],
    ["predict ahead", "data", "source.qvr"],
    ["let from", "data", "source.qvr"],
    ["let from", "predict", "source.qvr"],
    ["object Next", "Simplex", "support.type.space.qvr"],
  ])("in `%s …`, `%s` is %s", (start, word, expected) => {
    expect(scope(start, word)).toContain(expected);
  });

  it.each(["object", "morphism", "composition", "program", "deduction", "def", "family"])("`%s` opens a statement", (word) => {
    expect(scope(word, word)).toContain("keyword.declaration.qvr");
  });
});
