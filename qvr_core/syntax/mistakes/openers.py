"""The word that a line starts with, where it is none that may: what was meant."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from qvr_core.syntax.grammar import grammar
from qvr_core.syntax.layout import ITEM_WORDS, STATEMENT_WORDS, STEP_WORDS
from qvr_core.syntax.problems import problem
from qvr_core.syntax.tokens import Token
from qvr_core.syntax.tree.names import Span
from qvr_core.syntax.tree.units import SyntaxProblem

KEYWORDS = {"statement": STATEMENT_WORDS, "step": STEP_WORDS, "deduction_item": ITEM_WORDS}
NOUNS = {"statement": "statement", "step": "step", "deduction_item": "line of a deduction"}


ELSEWHERE_CALLED = {
    **dict.fromkeys(("function", "func", "fn", "fun"), "def"),
    **dict.fromkeys(("distribution", "dist"), "family"),
    **dict.fromkeys(("model", "sub", "procedure"), "program"),
    **dict.fromkeys(("space", "type", "set", "domain"), "object"),
    **dict.fromkeys(("arrow", "layer", "network", "kernel"), "morphism"),
    **dict.fromkeys(("include", "require", "use"), "import"),
}
"""What other languages, and the field, call that which a statement declares here."""


def near_word(word: str, words: Sequence[str]) -> str:
    """The one of `words` that a misspelt word, or a word of another language, means; '' if it is like none."""
    if word.lower() in words:
        return word.lower()
    if (meant := ELSEWHERE_CALLED.get(word.lower(), "")) in words:
        return meant
    near = get_close_matches(word, words, n=1, cutoff=0.7)
    return near[0] if near else ""


def opener(tokens: list[Token], start: str) -> tuple[SyntaxProblem, str]:
    """The problem of a unit that starts with no keyword, and the keyword that was meant ('' if none is near)."""
    first = tokens[0]
    span = Span(first.start, first.end)
    if is_foreign_block(tokens, start):
        if first.text in _ELSEWHERE:
            return problem("unknown-statement", _ELSEWHERE[first.text], span), ""
        message = "this is a block of Stan: here a `program` has its data, draws and observations, each on a line"
        return problem("unknown-statement", f"{message} (`data`, `sample`, `observe`)", span), ""
    meant = "data type" if _is_data_type(tokens, start) else near_word(first.text, KEYWORDS[start])
    if meant and meant != first.text and _could_open(meant, tokens):
        tokens[0] = first.read_as(grammar().literals[meant], meant)
        fix = (f"Replace it with `{meant}`", ((span, meant),))
        message = f"`{first.text}` is no {NOUNS[start]}; did you mean `{meant}`?"
        return problem("unknown-statement", message, span, fix), meant
    if start == "step" and first.text in _ELSEWHERE:
        return problem("unknown-statement", _ELSEWHERE[first.text], span), ""
    if start == "statement" and first.text in STEP_WORDS:
        message = f"`{first.text}` is a step and stands in the body of a program"
        return problem("misplaced-step", message, span), ""
    meant = _left_out(tokens, start) if first.kind in ("NAME", "LPAR") else ""
    if meant:
        at = first.start
        tokens.insert(0, Token(grammar().literals[meant], meant, at, at))
        edits = [(Span(at, at), f"{meant} ")]
        tilde = next((i for i, token in enumerate(tokens) if start == "step" and token.kind == "TILDE"), None)
        if tilde is not None:
            edits.append((Span(tokens[tilde].start, tokens[tilde].end), "<-"))
            tokens[tilde] = tokens[tilde].read_as("DRAW", "<-")
        title = f"Write `{meant}` before it" if tilde is None else f"Write `{meant} {first.text} <- …`"
        fix = (title, tuple(edits))
        message = f"a {NOUNS[start]} starts with a word that says what it does; is `{meant}` left out?"
        return problem("unknown-statement", message, span, fix), meant
    listed = ", ".join([f"`{word}`" for word in KEYWORDS[start]])
    return problem("unknown-statement", f"a {NOUNS[start]} starts with one of {listed}", span), ""


LOOPS = ("for", "while", "if")
"""What opens a block in other languages: none of its lines is looked at."""

_ELSEWHERE = {
    "for": "there are no loops: an index behind a name runs over its set, as in `let v[t : Time] = …`",
    "while": "there are no loops: an index behind a name runs over its set, as in `let v[t : Time] = …`",
    "if": "there is no step of this kind: `where(condition, a, b)` chooses between two values",
    "def": "a function is declared outside of programs, in the first column",
    "family": "a family is declared outside of programs, in the first column",
    "from": "`from` goes on with the `let`, `sample`, `observe`, `predict` or `marginalize` above it",
}
"""Words of other languages, or of another place, that start a line as if they were steps."""

_STAN = frozenset(("functions", "data", "transformed", "parameters", "model", "generated"))


def is_foreign_block(tokens: Sequence[Token], start: str) -> bool:
    """Whether a unit is a block of another language, `parameters { … }`, `for (…) { … }`: its lines mean nothing."""
    kinds = [token.kind for token in tokens[:3]]
    if start == "statement" and tokens[0].text in _STAN and "LBRACE" in kinds[1:]:
        return True
    loop = start in ("statement", "step") and tokens[0].text in LOOPS
    return loop and any(token.kind == "LBRACE" for token in tokens)


_NEEDS = {
    "data": ("COLON",),
    "param": ("COLON",),
    "predict": ("DRAW", "DRAW_EXPR", "TILDE"),
    "def": ("LPAR",),
    "family": ("LPAR",),
    "transformation": ("COLON",),
    "encoder": ("COLON",),
    "decoder": ("COLON",),
}
"""Of the words that are names elsewhere, the sign that the third token of their line is, or that stands in it."""


def _is_data_type(tokens: list[Token], start: str) -> bool:
    """Whether a line is a data type without one of its two words, `data Tree = leaf | node(Tree, Tree)`."""
    named = (
        start == "statement"
        and tokens[0].text in ("data", "type")
        and [t.kind for t in tokens[1:3]] == ["NAME", "EQUAL"]
    )
    return named and any(token.kind == "BAR" for token in tokens)


def _could_open(word: str, tokens: list[Token]) -> bool:
    """Whether a line may be meant to start with that word."""
    kinds = [token.kind for token in tokens]
    if word == "data type":
        return kinds[1:3] == ["NAME", "EQUAL"]
    if tokens[0].text.lower() in ELSEWHERE_CALLED and kinds[1] != ("STRING" if word == "import" else "NAME"):
        return False
    return word not in _NEEDS or (kinds[1] == "NAME" and any(kind in kinds for kind in _NEEDS[word]))


def _left_out(tokens: list[Token], start: str) -> str:
    """The keyword that would make sense of a unit which starts without one, by the signs it has."""
    kinds = [token.kind for token in tokens]
    has = set(kinds)
    if start == "step":
        if has & {"DRAW", "DRAW_EXPR", "TILDE"}:
            return "sample"
        if "EQUAL" in has and kinds[1] in ("EQUAL", "COMMA", "NAME"):
            return "let"
        return "return" if kinds == ["NAME", "$END"] or (kinds[0] == "LPAR" and kinds[-2] == "RPAR") else ""
    if start == "statement" and kinds[1] == "EQUAL":
        return "let"
    if start == "statement" and "COLON" in has:
        if "ARROW" not in has:
            return "object"
        return "morphism" if has & {"LSQB", "TILDE"} else "program"
    return "rule" if "TURNSTILE" in has else ""
