"""Mistakes in indices, comprehensions and what follows `from`."""

from __future__ import annotations

from collections.abc import Callable

from qvr_core.syntax.mistakes.place import Mistake, Place, around, closing, opened, span_of
from qvr_core.syntax.tree.names import Span

JOINTS = frozenset({"EQUAL", "DRAW"})
COLON = frozenset({"COLON"})


def _names_index(p: Place) -> bool:
    """Whether the name before the place is that of an index."""
    opener = opened(p)
    since = p.tokens[opener + 1 : p.at]
    return opener >= 0 and (p.tokens[opener].kind == "LSQB" or any(token.kind == "FOR" for token in since))


def _in_for_colon(p: Place) -> Mistake | None:
    """`[t in Time]`, `for i in Row`, `data x in Row`."""
    if p.token.text != "in" or "COLON" not in p.expected or p.at == 0 or p.before.kind != "NAME":
        return None
    index = _names_index(p)
    if not index and p.tokens[0].kind != "DATA":
        return None
    behind = p.tokens[p.at + 1]
    if behind.text == "range" and p.tokens[p.at + 2].kind == "LPAR":
        return Mistake("an index runs over a declared set, such as `object I : FinSet 3`", span_of(behind))
    message = f"{'an index' if index else 'a data name'} and its set are joined by `:`, not `in`"
    text = ":" if p.before.end < p.token.start else " :"
    return Mistake(message, span_of(p.token), "Replace it with `:`", ((span_of(p.token), text),))


def _no_set(p: Place) -> Mistake | None:
    """`v[t]`, `for i)`."""
    closes = p.kind in ("RSQB", "RPAR", "COMMA", "EQUAL", "DRAW") or p.token.text == "if"
    if not closes or p.expected != COLON or p.before.kind != "NAME" or not _names_index(p):
        return None
    name = p.before.text
    if name[:1].isupper():
        start = Span(p.before.start, p.before.start)
        message = f"`{name}` stands alone, and an index has a name and a set: `i : {name}`"
        return Mistake(message, span_of(p.before), f"Change to `i : {name}`", ((start, "i : "),))
    return Mistake(f"`{name}` stands alone, and an index has a name and a set: `{name} : I`", span_of(p.before))


def _round_brackets(p: Place) -> Mistake | None:
    """`let v(t : Time) = …`."""
    if p.kind != "LPAR" or p.at != 2 or "LSQB" not in p.expected or not (p.expected & JOINTS):
        return None
    end = closing(p.tokens, p.at)
    if end is None or [token.kind for token in p.tokens[p.at + 1 : p.at + 3]] != ["NAME", "COLON"]:
        return None
    edits = ((span_of(p.token), "["), (span_of(end), "]"))
    message = f"indices stand in square brackets: `{p.before.text}[i : I]`"
    return Mistake(message, span_of(p.token), "Use square brackets", edits)


def _second_for(p: Place) -> Mistake | None:
    """`for i : I for j : J`."""
    if p.token.text != "for" or not _names_index(p) or p.tokens[opened(p)].kind != "LPAR":
        return None
    edits = ((Span(p.before.end, p.token.end), ","),)
    message = "several indices stand behind one `for`: `for i : I, j : J`"
    return Mistake(message, span_of(p.token), "Replace it with `,`", edits)


def _comma_before_if(p: Place) -> Mistake | None:
    """`for i : I, if c`."""
    if p.at < 2 or p.before.text != "if" or p.tokens[p.at - 2].kind != "COMMA" or p.expected != COLON:
        return None
    comma = span_of(p.tokens[p.at - 2])
    return Mistake("no comma stands before the `if` of a comprehension", comma, "Remove it", ((comma, ""),))


def _misplaced_for(p: Place) -> Mistake | None:
    """`[x[i] for i : I]`, `let v = x[i] for i : I`, `sum(x if c for i : I)`, `a if c else b`."""
    if p.token.text not in ("for", "if") or "CARET" not in p.expected:
        return None
    if p.token.text == "for":
        message = "`for` stands in the call of a reduction, as in `sum(… for i : I)`"
        return Mistake(message + "; a value for each element of a set is `let v[i : I] = …`", span_of(p.token))
    rest = [token.text for token in p.tokens[p.at :]]
    if "else" in rest:
        return Mistake("a choice between two values is `where(condition, a, b)`", span_of(p.token))
    if "for" in rest:
        return Mistake("the condition stands behind the indices: `sum(… for i : I if …)`", span_of(p.token))
    return None


def _from_before_value(p: Place) -> Mistake | None:
    """`let v[t : Time] from v0 = …`."""
    if p.token.text != "from" or p.start != "step" or not (p.expected & JOINTS):
        return None
    return Mistake("`from` stands at the end of its step, behind the value", span_of(p.token))


def _several_first_elements(p: Place) -> Mistake | None:
    """`from a, b`."""
    first = next((j for j, token in enumerate(p.tokens) if token.kind == "FROM"), p.at)
    if p.kind != "COMMA" or first >= p.at or opened(p) >= 0:
        return None
    last = next((token for token in p.tokens[p.at :] if token.kind in ("LSQB", "OPTIONS", "$END")), p.tokens[-1])
    end = p.tokens[p.tokens.index(last) - 1].end
    edits = around(Span(p.tokens[first + 1].start, end), "()")
    return Mistake("several first elements stand in parentheses", span_of(p.token), "Put them in parentheses", edits)


def _comma_before_from(p: Place) -> Mistake | None:
    """`let v[t : Time] = e, from v0`."""
    if p.kind != "COMMA" or "FROM" not in p.expected or p.tokens[p.at + 1].text != "from":
        return None
    return Mistake("no comma stands before `from`", span_of(p.token), "Remove it", ((span_of(p.token), ""),))


def _given_data(p: Place) -> Mistake | None:
    """`data x : Row = 3`."""
    if p.tokens[0].kind != "DATA" or p.kind not in ("EQUAL", "DRAW", "DRAW_EXPR", "TILDE") or "ARROW" not in p.expected:
        return None
    return Mistake("`data` only says what comes from outside: it gives no value", span_of(p.token))


INDEX_MISTAKES: tuple[Callable[[Place], Mistake | None], ...] = (
    _in_for_colon,
    _no_set,
    _round_brackets,
    _second_for,
    _comma_before_if,
    _misplaced_for,
    _from_before_value,
    _comma_before_from,
    _several_first_elements,
    _given_data,
)
