"""Mistakes that many make: what they look like, what to say, and the edits that fix them."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from itertools import pairwise

from qvr_core.syntax.grammar import grammar
from qvr_core.syntax.lexer import CLOSERS, COMBINATORS, OPENERS, SPACES
from qvr_core.syntax.mistakes.indices import INDEX_MISTAKES
from qvr_core.syntax.mistakes.place import Mistake, Place, around, closing, span_of
from qvr_core.syntax.tokens import Token
from qvr_core.syntax.tree.names import Span


def mistake_at(place: Place) -> Mistake | None:
    """The mistake that was made at a place, if it is a known one."""
    return next((mistake for look in MISTAKES if (mistake := look(place)) is not None), None)


def _hole(p: Place) -> Mistake | None:
    if p.kind != "UNDERSCORE":
        return None
    return Mistake("`_` stands for an open size or a dropped name, nothing else", span_of(p.token))


def _bare_options(p: Place) -> Mistake | None:
    if p.kind != "NAME" or p.tokens[p.at + 1].kind != "EQUAL" or not {"LSQB", "$END"} <= p.expected:
        return None
    edits = around(Span(p.token.start, p.tokens[-1].start), "[]")
    return Mistake("options stand in brackets: `[key=value]`", span_of(p.token), "Put it in brackets", edits)


def _options_in_wrong_brackets(p: Place) -> Mistake | None:
    keyed = p.kind in ("LPAR", "LBRACE") and [t.kind for t in p.tokens[p.at + 1 : p.at + 3]] == ["NAME", "EQUAL"]
    end = closing(p.tokens, p.at)
    if not keyed or end is None or not {"LSQB", "$END"} <= p.expected:
        return None
    edits = ((span_of(p.token), "["), (span_of(end), "]"))
    return Mistake("options stand in square brackets", span_of(p.token), "Use square brackets", edits)


def _return_of_more_than_names(p: Place) -> Mistake | None:
    if p.tokens[0].kind != "RETURN" or p.at < 2 or p.tokens[1].kind == "LPAR":
        return None
    if p.kind != "COMMA":
        return Mistake("`return` takes a name: give the expression one with `let`", span_of(p.token))
    edits = around(Span(p.tokens[1].start, p.tokens[-2].end), "()")
    return Mistake("several values are returned in parentheses", span_of(p.token), "Put them in parentheses", edits)


def _several_bound_names(p: Place) -> Mistake | None:
    joint = {"SAMPLE": ("DRAW", "DRAW_EXPR", "COLON"), "LET": ("EQUAL",)}.get(p.tokens[0].kind, ())
    if p.kind != "COMMA" or p.start != "step" or p.at != 2 or not joint:
        return None
    last = next((i for i, token in enumerate(p.tokens) if token.kind in joint), None)
    if last is None:
        return None
    together = around(Span(p.tokens[1].start, p.tokens[last - 1].end), "()")
    family = next((p.tokens[i + 1].text for i in range(last, len(p.tokens) - 2) if p.tokens[i].kind == "DRAW"), "")
    # families are written with a capital letter, and a draw from one gives one value; an arrow may give several
    if not family[:1].isupper() or p.tokens[0].kind != "SAMPLE":
        return Mistake("several names are bound in parentheses", span_of(p.token), "Put them in parentheses", together)
    message = f"a draw from `{family}` gives one value: one step binds one name"
    return Mistake(message, span_of(p.token), "Write one step each", _one_step_each(p.tokens, last), together)


def _one_step_each(tokens: list[Token], last: int) -> tuple[tuple[Span, str], ...]:
    """`sample a <- N(0, 1)` and below it `sample b <- N(0, 1)`, for `sample a, b <- N(0, 1)`."""
    first, *others = (token.text for token in tokens[1:last] if token.kind != "COMMA")
    end = next((i for i, token in enumerate(tokens) if token.kind == "$END"), len(tokens))
    rest = _as_written(tokens[last - 1 : end])
    lines = "".join(f"\n{tokens[0].text} {name}{rest}" for name in others)
    behind = tokens[end - 1].end
    return (Span(tokens[1].start, tokens[last - 1].end), first), (Span(behind, behind), lines)


def _as_written(tokens: list[Token]) -> str:
    """The tokens behind the first one with the spaces before each."""
    return "".join(" " * (token.start - before.end) + token.text for before, token in pairwise(tokens))


def _unquoted_word(p: Place) -> Mistake | None:
    if p.start != "lexicon_entry" or p.at != 0 or p.kind != "NAME":
        return None
    span = span_of(p.token)
    return Mistake("a word of a lexicon stands in quotes", span, "Put it in quotes", around(span, '""'))


def _product_with_comma(p: Place) -> Mistake | None:
    if p.kind != "COMMA" or not {"STAR", "PLUS"} <= p.expected or "CARET" in p.expected:
        return None
    span = span_of(p.token)
    return Mistake("a product of objects is written `A * B`", span, "Replace it with `*`", ((span, " *"),))


def _size_in_brackets(p: Place) -> Mistake | None:
    space = p.before if p.at else None
    if space is None or space.kind not in ("FINSET", "SPACE") or p.kind not in ("LPAR", "LSQB"):
        return None
    end = closing(p.tokens, p.at)
    if end is None:
        return None
    edits = ((Span(space.end, p.token.end), " "), (span_of(end), ""))
    message = f"a size stands without brackets: `{space.text} n`"
    return Mistake(message, span_of(p.token), "Remove the brackets", edits)


# What spaces are called elsewhere.
_OTHER_WORDS = {
    "fin": "FinSet", "finite": "FinSet", "set": "FinSet", "enum": "FinSet", "int": "FinSet",
    "vector": "Real", "float": "Real", "tensor": "Real", "sequence": "Seq", "list": "Seq",
}  # fmt: skip


def _misspelt_space(p: Place) -> Mistake | None:
    """A name where a size or an object follows: the name was to be that of a space."""
    follows = ("INT", "NAME", "UNDERSCORE", "FINSET", "SPACE", "LPAR")
    if p.at == 0 or p.before.kind != "NAME" or p.kind not in follows or not {"STAR", "PLUS"} <= p.expected:
        return None
    words = ("FinSet", *SPACES) if p.kind in ("INT", "UNDERSCORE") else ("Seq", "FinSet", *SPACES)
    words = words if p.kind not in ("FINSET", "SPACE", "LPAR") else ("Seq",)
    spelt = {word.casefold(): word for word in words}
    written = p.before.text.casefold()
    near = get_close_matches(written, spelt, n=1, cutoff=0.6)
    meant = _OTHER_WORDS.get(written) or (spelt[near[0]] if near else None)
    if meant is None or meant not in words:
        return None
    span = span_of(p.before)
    edits = ((span, meant),)
    return Mistake(f"`{p.before.text}` is no space; did you mean `{meant}`?", span, f"Replace it with `{meant}`", edits)


# A value in arithmetic that an operator may follow ends, or starts, with one of these.
_VALUE_ENDS = ("NAME", "INT", "FLOAT", "RPAR", "RSQB")


def _matrix_product(p: Place) -> Mistake | None:
    """`X @ beta` in arithmetic, where `@` joins no values."""
    if p.kind != "AT" or "CARET" not in p.expected:
        return None
    tokens = p.tokens
    first = _value_start(tokens, p.at - 1)
    at = p.at
    edits: list[tuple[Span, str]] = []
    while tokens[at].kind == "AT":
        last = _value_end(tokens, at + 1)
        if last is None:
            return None
        edits.append((Span(tokens[at - 1].end, tokens[at + 1].start), "), " if edits else ", "))
        at = last + 1
    start, end = tokens[first].start, tokens[at - 1].end
    edits = [(Span(start, start), "matmul(" * len(edits)), *edits, (Span(end, end), ")")]
    message = "`@` joins arrows; the product of two matrices is `matmul(a, b)`"
    return Mistake(message, span_of(p.token), "Write `matmul`", tuple(edits))


def _value_start(tokens: list[Token], at: int) -> int:
    """The first token of the value that ends at `at`: a name or number with its calls, indices and fields."""
    while True:
        if tokens[at].text in CLOSERS:
            depth = 0
            while at > 0:
                depth += (tokens[at].text in CLOSERS) - (tokens[at].kind in OPENERS)
                if depth == 0:
                    break
                at -= 1
            if tokens[at - 1].kind not in _VALUE_ENDS:
                return at
            at -= 1
        elif tokens[at - 1].kind == "DOT":
            at -= 2
        else:
            return at


def _value_end(tokens: list[Token], at: int) -> int | None:
    """The last token of the value that starts at `at`; None where none does."""
    if tokens[at].kind in ("LPAR", "LSQB"):
        at -= 1
    elif tokens[at].kind not in _VALUE_ENDS:
        return None
    while tokens[at + 1].kind in ("LPAR", "LSQB", "DOT"):
        if tokens[at + 1].kind == "DOT":
            at += 2
            continue
        end = closing(tokens, at + 1)
        if end is None:
            return None
        at = tokens.index(end)
    return at


def _arguments_without_parentheses(p: Place) -> Mistake | None:
    if p.at == 0 or p.before.text not in COMBINATORS or "COMPOSE" not in p.expected:
        return None
    message = f"the arguments of `{p.before.text}` stand in parentheses"
    if p.kind == "LSQB" and (end := closing(p.tokens, p.at)) is not None:
        return Mistake(message, span_of(p.token), "Use parentheses", ((span_of(p.token), "("), (span_of(end), ")")))
    return Mistake(message, span_of(p.token))


def _combinator_applied(p: Place) -> Mistake | None:
    """`scan(cell)(x)`: what a program calls has a name, and outside of programs nothing is called."""
    first = _combinator_before(p) if p.kind == "LPAR" and p.at and p.before.kind == "RPAR" else None
    if first is None:
        return None
    name, *inside = p.tokens[first : p.at]
    if p.start != "step":
        message = f"arrows are joined, not called: `x >> {name.text}(…)` reads `x` and then runs the `{name.text}`"
        return Mistake(message, span_of(p.token))
    own = next((f"{token.text}_{name.text}" for token in inside if token.kind == "NAME"), "whole")
    written = name.text + _as_written(p.tokens[first : p.at])
    # a step cannot write above its program: the edit is the user's
    message = f"a program calls arrows by name: write `let {own} = {written}` above it and `{own}(…)` here"
    return Mistake(message, span_of(p.token))


def _combinator_before(p: Place) -> int | None:
    """The index of the combinator whose call ends before a place."""
    depth = 0
    for at in range(p.at - 1, 0, -1):
        depth += (p.tokens[at].text in CLOSERS) - (p.tokens[at].kind in OPENERS)
        if depth == 0:
            return at - 1 if p.tokens[at - 1].text in COMBINATORS else None
    return None


def _missing_sign(p: Place) -> Mistake | None:
    """A sign that the grammar leaves open, but that a name in this place asks for."""
    if p.kind != "NAME" or "$END" not in p.expected:
        return None
    sign = next((sign for sign in ("TILDE", "AS", "COMMA") if sign in p.expected), None)
    if sign is None:
        return None
    text = next(text for text, kind in grammar().literals.items() if kind == sign)
    at = Span(p.before.end, p.before.end)
    message = f"expected `{text}` after `{p.before.text}`, not `{p.token.text}`"
    return Mistake(message, span_of(p.token), f"Insert `{text}`", ((at, "," if sign == "COMMA" else f" {text}"),))


def _parameters_left_out(p: Place) -> Mistake | None:
    opening = p.tokens[0]
    if opening.kind not in ("DEF", "FAMILY") or p.at != 2 or p.expected != frozenset({"LPAR"}):
        return None
    name = p.tokens[1].text
    return Mistake(f"the parameters of `{name}` stand in parentheses: `{opening.text} {name}(x)`", span_of(p.before))


def _typed_function(p: Place) -> Mistake | None:
    """`def f(x) : Real = x`."""
    if p.tokens[0].kind != "DEF" or p.at < 3 or p.before.kind != "COLON" or p.tokens[p.at - 2].kind != "RPAR":
        return None
    end = next((token for token in p.tokens[p.at :] if token.kind == "EQUAL"), p.tokens[-1])
    type_end = p.tokens[p.tokens.index(end) - 1].end
    edits = ((Span(p.tokens[p.at - 2].end, type_end), ""),)
    message = "a function has no type of its own: it is typed where it is called"
    return Mistake(message, Span(p.token.start, type_end), "Remove the type", edits)


def _default_without_kind(p: Place) -> Mistake | None:
    """`program p(sd = 1.0)`."""
    if p.kind != "EQUAL" or p.tokens[0].kind != "PROGRAM" or p.before.kind != "NAME" or "COLON" not in p.expected:
        return None
    kind = {"INT": "Nat", "FLOAT": "Real"}.get(p.tokens[p.at + 1].kind)
    message = f"a parameter with a default says its kind: `{p.before.text} : {kind or 'Real'} = …`"
    if kind is None:
        return Mistake(message, span_of(p.token))
    at = Span(p.before.end, p.before.end)
    return Mistake(message, span_of(p.token), f"Insert `: {kind}`", ((at, f" : {kind}"),))


MISTAKES: tuple[Callable[[Place], Mistake | None], ...] = (
    *INDEX_MISTAKES,
    _parameters_left_out,
    _typed_function,
    _default_without_kind,
    _bare_options,
    _misspelt_space,
    _hole,
    _options_in_wrong_brackets,
    _return_of_more_than_names,
    _several_bound_names,
    _unquoted_word,
    _product_with_comma,
    _size_in_brackets,
    _matrix_product,
    _arguments_without_parentheses,
    _combinator_applied,
    _missing_sign,
)
