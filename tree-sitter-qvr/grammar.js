/**
 * The layout of a QVR text, and its tokens.  What a line may say stands in rules.js, which is made from
 * qvr_core/syntax/grammar.lark (`python -m scripts.tree_sitter`); which lines belong together is told by src/scanner.c.
 *
 * Every line is read twice at once: by the grammar, and as a `damaged` run of tokens, which is kept only where the
 * grammar fails.  So a mistake never reaches beyond its line, and no text has an ERROR node.
 */
const {words, contextual, rules} = require('./rules.js');

const FOREIGN = [':=', '=>', '**', '→', '←', '≤', '≥', '≠', '×', '−', '–', '⊗'];
const SIGNS = ['->', '<-', '>>', '@', '+', '-', '*', '/', '^', '<', '<=', '>', '>=', '==', '!=', '=', '~', '|-', '⊢', '|',
  '(', ')', '[', ']', '{', '}', ',', ':', '.'];

/** The kinds of lines, each with its rule. */
const KINDS = {
  statement: '_statement',
  step: '_step',
  deduction_item: '_deduction_item',
  lexicon_entry: 'lexicon_entry',
  composition_rule: 'composition_rule',
};
const IN_BLOCKS = Object.keys(KINDS).slice(1);

/** A line of a kind: `begin` forks the parser, the readable line wins. */
const line = ($, kind) => choice(
  seq($[`_read_${kind}`], $[KINDS[kind]], $._line_end),
  seq($[`_skip_${kind}`], $.damaged, $._line_end),
);

const forks = Object.fromEntries(Object.keys(KINDS).flatMap(kind => [
  [`_read_${kind}`, $ => $[`_begin_${kind}`]],
  [`_skip_${kind}`, $ => $[`_begin_${kind}`]],
]));

module.exports = grammar({
  name: 'qvr',

  externals: $ => [
    ...Object.keys(KINDS).map(kind => $[`_begin_${kind}`]),
    $._line_end, $._indent, $._dedent, $._statement_end,
    $._newline, $.comment,
    $._bounds_bracket, $._expression_arrow, $._options_bracket, $._attributes_bracket,
  ],

  extras: $ => [/[ \t\f\v\u00a0\ufeff\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\u0085\x1c-\x1f]/, $._newline, $.comment],

  word: $ => $.name,

  reserved: {
    global: _ => words,
    free: _ => [],
  },

  conflicts: $ => Object.keys(KINDS).map(kind => [$[`_read_${kind}`], $[`_skip_${kind}`]]),

  rules: {
    source_file: $ => repeat($.statement),

    statement: $ => seq($._statement_line, optional($.block), $._statement_end),
    block: $ => seq($._indent, repeat1(seq($._block_line, optional($.block))), $._dedent),

    _statement_line: $ => line($, 'statement'),
    _block_line: $ => choice(...IN_BLOCKS.map(kind => line($, kind))),

    ...forks,
    ...rules,

    damaged: $ => prec.dynamic(-1, repeat1(choice(
      $.name, $.integer, $.float, $.string, $._unclosed_string, $._quoted_string, $._other,
      alias($._attributes_bracket, '#['), ...words, ...contextual, ...SIGNS, ...FOREIGN,
    ))),

    name: _ => /[A-Za-z_][A-Za-z0-9_]*/,
    integer: _ => /[0-9]+/,
    float: _ => /([0-9]+\.[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+/,
    string: _ => /"(\\[^\r\n]|[^"\\\r\n])*"/,
    _unclosed_string: _ => /"((\\[^\r\n]|[^"\\\r\n])*[^"\s])?/,
    _quoted_string: _ => /'(\\[^\r\n]|[^'\\\r\n])*'/,
    _other: _ => token(prec(-1, /[^\r\n]/)),
  },
});
