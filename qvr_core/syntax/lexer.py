"""Text of a unit -> tokens.  One master regex, then a pass that tells apart what the grammar cannot."""

from __future__ import annotations

import math
import re
from functools import cache

from qvr_core.syntax.grammar import grammar
from qvr_core.syntax.problems import problem
from qvr_core.syntax.tokens import Token
from qvr_core.syntax.tree.names import Span
from qvr_core.syntax.tree.units import SyntaxProblem

SPACES = ("Real", "Simplex", "Ordered", "CholeskyFactor", "Covariance", "Correlation")
COMBINATORS = frozenset(
    {"fan", "scan", "stack", "repeat", "residual", "identity", "from_data", "last", "mean_over_time"}
)
# What may stand behind the dot of an arrow; any other name there is a factor's, or that of an imported file.
METHODS = frozenset({"dagger", "freeze", "trace", "marginalize", "change_base", "curry_left", "curry_right"})
# Fixed terminals that are ordinary names unless the place makes them special.
CONTEXTUAL = frozenset(
    {"factor", "in", "as", "atoms", "binders", "rule", "lexicon", "from"}
    | {"data", "predict", "param", "def", "family", "transformation", "type", "encoder", "decoder"}
    | {"for", "if", "import"}
)
# Those that open a line of their kind, unless one of the signs follows that make them the name of something.
OPENING: dict[str, dict[str, tuple[str, ...]]] = {
    "step": dict.fromkeys(("data", "predict", "param"), ("EQUAL", "DRAW", "TILDE")),
    "statement": dict.fromkeys(
        ("def", "family", "transformation", "encoder", "decoder", "import", "from"), ("EQUAL", "COLON")
    ),
}
DEDUCTION_ITEMS = frozenset({"atoms", "binders", "rule", "lexicon"})

OPENERS = {"LPAR": ")", "LSQB": "]", "BOUNDS": "]", "OPTIONS": "]", "ATTRIBUTES": "]", "LBRACE": "}"}
CLOSERS = {")": "RPAR", "]": "RSQB", "}": "RBRACE"}

# Signs of other languages, and characters that word processors and web pages put in place of ours.
FOREIGN = (":=", "=>", "**", "→", "←", "≤", "≥", "≠", "×", "−", "–", "⊗")
LOOKALIKES: dict[str, str] = dict(
    zip(FOREIGN, ("=", "->", "^", "->", "<-", "<=", ">=", "!=", "*", "-", "-", "@"), strict=True)
)

# Of a whole number: with so many it still is a finite float, and Python reads it.
MOST_DIGITS = 308

_MASTER = re.compile(
    r"""
    (?P<blank>[ \t\n\f\v\u00a0\ufeff]+)
  | (?P<comment>\#[^\n]*)
  | (?P<word>[^\W\d]\w*)
  | (?P<number>(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+)(?:[eE][+-]?[0-9]+)?(?![\w]|\.[0-9]))
  | (?P<malformed>\.?\d[\w.]*)
  | (?P<string>"(?:\\[^\n]|[^"\\\n])*")
  | (?P<quoted>'(?:\\[^\n]|[^'\\\n])*')
  | (?P<open>"[^\n]*)
  | (?P<foreign>:=|=>|\*\*|[→←≤≥≠×−–⊗])
  | (?P<operator>->|<-|>>|\|-|⊢|<=|>=|==|!=|[@+\-*/^<>=~()\[\]{},:.])
  | (?P<other>[^\s\w"'\#@+\-*/^<>=~()\[\]{},:.|!]+|.)
    """,
    re.VERBOSE,
)


@cache
def _kinds() -> tuple[dict[str, str], dict[str, str]]:
    """Terminals of words that are always special, and of operators."""
    literals = grammar().literals
    words = {text: kind for text, kind in literals.items() if text.isalpha() and text not in CONTEXTUAL}
    words |= dict.fromkeys(SPACES, "SPACE") | {"_": "UNDERSCORE"}
    operators = {text: kind for text, kind in literals.items() if not text[0].isalpha()}
    operators |= dict.fromkeys(("<", "<=", ">", ">=", "==", "!="), "COMPARISON") | {"⊢": "TURNSTILE"}
    return words, operators


def keyword_kinds() -> dict[str, str]:
    """Words that no declaration may take as its name, with their terminals; `_` is not among them."""
    return {text: kind for text, kind in _kinds()[0].items() if text != "_"}


def tokenize(text: str, start: str) -> tuple[list[Token], list[SyntaxProblem]]:
    """Tokens of a unit that is to be parsed from `start`, closed by `$END`; and what is wrong with its characters.

    What cannot be read is left out of the tokens, so that the rest can still be parsed.
    """
    words, operators = _kinds()
    deduction = start in ("deduction_item", "lexicon_entry")
    tokens: list[Token] = []
    problems: list[SyntaxProblem] = []
    position, length = 0, len(text)
    while position < length:
        match = _MASTER.match(text, position)
        assert match is not None  # `other` and `blank` together match any character
        kind, found, end = match.lastgroup, match[0], match.end()
        match kind:
            case "blank":
                pass
            case "word":
                if not found.isascii():
                    message = f"`{found}` is not a name: names consist of the letters a to z, digits and `_`"
                    problems.append(problem("invalid-character", message, Span(position, end)))
                tokens.append(Token("NAME" if deduction else words.get(found, "NAME"), found, position, end))
            case "operator" if found == "->" and _maps(tokens, start, "transformation"):
                span = Span(position, end)
                message = "a transformation maps the weights of one composition to those of another: `=>`"
                fix = ("Replace it with `=>`", ((span, "=>"),))
                problems.append(problem("invalid-character", message, span, fix))
                tokens.append(Token(operators["=>"], "=>", position, end))
            case "operator":
                tokens.append(Token(operators[found], found, position, end))
            case "number":
                kind = "INT" if found.isdigit() else "FLOAT"
                if message := _beyond_numbers(kind, found):
                    problems.append(problem("invalid-number", message, Span(position, end)))
                    # as large as numbers can be, so that nothing else is wrong with it either
                    found = found[:MOST_DIGITS] if kind == "INT" else "1e308"
                tokens.append(Token(kind, found, position, end))
            case "string":
                tokens.append(Token("STRING", found, position, end))
            case "comment":
                line = text.rfind("\n", 0, position) + 1
                if deduction and found.startswith("#[") and text[line:position].strip():
                    end = position + 2
                    tokens.append(Token("ATTRIBUTES", "#[", position, end))
            case "malformed":
                message = f"`{found}` is neither a number nor a name"
                problems.append(problem("invalid-number", message, Span(position, end)))
                tokens.append(Token("INT", "1", position, end))
            case "open":
                end = position + len(found.rstrip())
                problems.append(problem("unclosed-string", "this string is not closed", Span(position, end)))
                tokens.append(Token("STRING", found.rstrip() + '"', position, end))
            case "quoted":
                fix = ("Use double quotes", ((Span(position, end), '"' + found[1:-1].replace('"', '\\"') + '"'),))
                message = "strings stand in double quotes"
                problems.append(problem("invalid-character", message, Span(position, end), fix))
                tokens.append(Token("STRING", found, position, end))
            case "foreign" if found == "=>" and _maps(tokens, start, "trans"):
                tokens.append(Token(operators[found], found, position, end))
            case "foreign":
                span, meant = Span(position, end), LOOKALIKES[found]
                if deduction and meant == "->":
                    meant = "|-"
                fix = (f"Replace it with `{meant}`", ((span, meant),))
                problems.append(problem("invalid-character", f"`{found}` is written `{meant}`", span, fix))
                tokens.append(Token(operators[meant], meant, position, end))
            case "other" if found == "|" and start == "statement" and tokens and tokens[0].kind == "NAME":
                tokens.append(Token(operators[found], found, position, end))
            case _:
                shown = f"`{found}`" if found.isprintable() else " ".join([f"U+{ord(c):04X}" for c in found[:3]])
                problems.append(problem("invalid-character", f"{shown} has no meaning here", Span(position, end)))
        position = end
    tokens.append(Token("$END", "", length, length))
    if deduction:
        _mark_deduction(tokens)
    else:
        _join_data_type(tokens, start)
        _mark(tokens, start)
    return tokens, problems


def _join_data_type(tokens: list[Token], start: str) -> None:
    """Make one token of `data type`, which opens a statement; a line of a program may call its data `type`."""
    if start != "statement" or [token.text for token in tokens[:2]] != ["data", "type"]:
        return
    if tokens[2].kind not in ("COLON", "COMMA"):
        tokens[:2] = [Token("DATA_TYPE", "data type", tokens[0].start, tokens[1].end)]


def _maps(tokens: list[Token], start: str, opener: str) -> bool:
    """Whether these are the first words of a transformation, in front of its `=>`; its own word may be misspelt, or its
    colon left out."""
    if start != "statement" or len(tokens) < 3 or tokens[0].kind != "NAME" or tokens[1].kind != "NAME":
        return False
    first = tokens[0].text
    return first == "transformation" or (first.startswith(opener) and tokens[2].kind == "COLON")


def _beyond_numbers(kind: str, text: str) -> str:
    """What is wrong with a number that no computation could hold; nothing where one can."""
    if kind == "INT":
        many = f"this number has {len(text):,} digits, and none may have more than {MOST_DIGITS}"
        return many if len(text) > MOST_DIGITS else ""
    return "this number is too large: the largest is about 1.8e308" if math.isinf(float(text)) else ""


def _mark_deduction(tokens: list[Token]) -> None:
    """In a deduction only the first word of a line is special, and `from` after `lexicon`."""
    first = tokens[0]
    if first.text in DEDUCTION_ITEMS:
        tokens[0] = first.read_as(first.text.upper())
        if first.text == "lexicon" and tokens[1].text == "from":
            tokens[1] = tokens[1].read_as("FROM")


# What a value, or an object expression, may end with: only behind one can `for`, `if` and `from` be more than names.
_ENDS = frozenset({"NAME", "INT", "FLOAT", "STRING", "UNDERSCORE", "RPAR", "RSQB", "RBRACE"})


# Where `as` stands in front of what a statement claims to be.
_KIND_AT = {"COMPOSITION": 2, "TRANSFORMATION": 6}


def _mark(tokens: list[Token], start: str) -> None:
    """Give a token the terminal that its surroundings ask for."""
    first = tokens[0]
    if first.kind == "NAME" and tokens[1].kind not in OPENING.get(start, {}).get(first.text, (tokens[1].kind,)):
        tokens[0] = first.read_as(first.text.upper())
    opening = tokens[0].kind
    joint = "EQUAL" if opening in ("LET", "SCORE") else "DRAW"
    compared: list[int] = []
    brackets: _Brackets | None = None
    factors = 0
    joined = begun = False
    for i, token in enumerate(tokens):
        kind, text = token.kind, token.text
        if kind == "NAME":
            if text not in CONTEXTUAL:
                continue
            if text in ("for", "if", "from"):
                if i and _ends_value(tokens, i - 1):
                    brackets = brackets or _Brackets(tokens)
                    brackets.follow(i)
                    if text != "from":
                        special = brackets.takes(text)
                    else:
                        special = begun = start == "step" and joined and not begun and not brackets.open
                    if special:
                        tokens[i] = token.read_as(text.upper())
            elif text == "factor" and tokens[i + 1].kind == "NAME" and tokens[i + 2].kind == "COLON":
                tokens[i] = token.read_as("FACTOR")
                factors += 1
            elif text == "in" and factors:
                tokens[i] = token.read_as("IN")
                factors -= 1
            elif text == "as" and (i == _KIND_AT.get(opening) or (i > 1 and opening in ("IMPORT", "FROM"))):
                tokens[i] = token.read_as("AS")
            elif text == "import" and i == 2 and opening == "FROM":
                tokens[i] = token.read_as("IMPORT")
        elif kind == "LSQB":
            if i and tokens[i - 1].text == "Nat" and _only_bounds(tokens, i) and tokens[i + 2].kind == "EQUAL":
                tokens[i - 1] = tokens[i - 1].read_as("NAT")
            if _holds_bounds(tokens, i):
                tokens[i] = token.read_as("BOUNDS")
            elif begun and brackets is not None and joint == "DRAW":
                brackets.follow(i)
                if not brackets.open and _holds_options(tokens, i, brackets.closed):
                    tokens[i] = token.read_as("OPTIONS")
        elif kind == "EQUAL":
            joined = joined or joint == "EQUAL"
        elif kind == "DRAW":
            if joined and start == "step" and joint == "EQUAL":
                compared.append(i)
            elif not joined and _draws_expression(tokens, i + 1):
                tokens[i] = token.read_as("DRAW_EXPR")
            joined = True
    if compared:
        _split_comparisons(tokens, compared)


def _split_comparisons(tokens: list[Token], places: list[int]) -> None:
    """`x <-1` compares x with a negative number."""
    marked = set(places)
    split: list[Token] = []
    for i, token in enumerate(tokens):
        if i in marked:
            split.append(Token("COMPARISON", "<", token.start, token.start + 1))
            split.append(Token("MINUS", "-", token.start + 1, token.end))
        else:
            split.append(token)
    tokens[:] = split


class _Brackets:
    """The brackets that are open, followed from left to right as far as anyone has asked."""

    __slots__ = ("closed", "open", "seen", "tokens")

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens
        self.seen = 0
        self.open: list[tuple[int, str]] = []
        """Where each opens, with the last `FOR` or `IF` directly in it."""
        self.closed = ""
        """The kind of the one that was closed last."""

    def follow(self, i: int) -> None:
        """Go on to token `i`."""
        tokens, open_ = self.tokens, self.open
        for j in range(self.seen, i):
            kind = tokens[j].kind
            if kind in OPENERS:
                open_.append((j, ""))
            elif tokens[j].text in CLOSERS:
                self.closed = tokens[open_.pop()[0]].kind if open_ else ""
            elif kind in ("FOR", "IF") and open_:
                open_[-1] = (open_[-1][0], kind)
        self.seen = i

    def takes(self, word: str) -> bool:
        """Whether this `for` or `if` stands in the parentheses of a call; an `if`, behind a `for` there."""
        if not self.open:
            return False
        at, before = self.open[-1]
        if word == "if":
            return before == "FOR"
        return not before and self.tokens[at].kind == "LPAR" and at > 0 and self.tokens[at - 1].kind == "NAME"


def _holds_bounds(tokens: list[Token], i: int) -> bool:
    """Whether the bracket at `i` directly follows the sizes of a space and has no keys but `low` and `high`."""
    if i and tokens[i - 1].kind == "NAT":
        return True
    back = i - 1
    while back > 0 and tokens[back].kind in ("INT", "NAME", "UNDERSCORE"):
        back -= 1
    if back == i - 1 or tokens[back].kind != "SPACE":
        return False
    return _only_bounds(tokens, i)


def _only_bounds(tokens: list[Token], i: int) -> bool:
    """Whether the bracket at `i` has no keys but `low` and `high`."""
    if tokens[i + 1].text not in ("low", "high"):
        return False
    depth = 0
    for j in range(i, len(tokens)):
        kind = tokens[j].kind
        if kind in ("LSQB", "LPAR"):
            depth += 1
        elif kind in ("RSQB", "RPAR"):
            depth -= 1
            if depth == 0:
                return True
        elif depth == 1 and tokens[j - 1].kind in ("COMMA", "LSQB") and tokens[j].text not in ("low", "high"):
            return False
    return True


def _ends_value(tokens: list[Token], i: int) -> bool:
    # behind a dot every word is a name
    return tokens[i].kind in _ENDS or (i > 0 and tokens[i - 1].kind == "DOT")


def _holds_options(tokens: list[Token], i: int, closed: str) -> bool:
    """Whether the bracket at `i`, behind `from e`, holds options: a key with a value; or words, at the end of the line,
    behind a call, a tuple or other options.  Any other is an index of e."""
    if not tokens[i + 1].text.isidentifier() or not _ends_value(tokens, i - 1):
        return False
    behind = tokens[i + 2].kind
    if behind == "EQUAL":
        return True
    before = "OPTIONS" if tokens[i - 1].kind == "RSQB" and closed == "OPTIONS" else tokens[i - 1].kind
    if before not in ("RPAR", "OPTIONS") or behind not in ("RSQB", "COMMA", "$END"):
        return False
    depth = 0
    for j in range(i, len(tokens) - 1):
        depth += (tokens[j].kind in OPENERS) - (tokens[j].text in CLOSERS)
        if depth == 0:
            return tokens[j + 1].kind in ("$END", "LSQB", "COLON")
    return True


def _draws_expression(tokens: list[Token], i: int) -> bool:
    """Whether what follows `<-` is more than a name with arguments."""
    first = tokens[i]
    if first.kind == "LPAR" or first.text in COMBINATORS:
        return True
    if first.kind != "NAME":
        return False
    depth = 0
    # a name of another file
    qualified = tokens[i + 1].kind == "DOT" and tokens[i + 2].kind == "NAME" and tokens[i + 2].text not in METHODS
    for token in tokens[i + 3 if qualified else i + 1 :]:
        if token.kind in ("COMPOSE", "AT"):
            return True
        if token.text == "from" and depth == 0 and token.kind == "NAME":
            return False
        if token.kind in ("LPAR", "LSQB"):
            if token.kind == "LSQB" and depth == 0:
                return False
            depth += 1
        elif token.kind in ("RPAR", "RSQB"):
            depth -= 1
        elif token.kind == "DOT" and depth == 0:
            return True
    return False
