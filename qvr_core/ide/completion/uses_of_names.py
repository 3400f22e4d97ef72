"""What the lines of the program at a cursor say of its names: who reads whom, what nothing reads yet, what is read of
earlier elements, and which indices a formula has used without having named them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from qvr_core.ide.completion.context import Context
from qvr_core.ide.hovers.words import bound_names
from qvr_core.ide.names import names_of
from qvr_core.syntax.placing import units_of
from qvr_core.syntax.tokens import Token

_LAGGED = re.compile(r"\b([A-Za-z_]\w*)\[[^\[\]]*[A-Za-z_]\w*\s*-")
_WORD = re.compile(r"[A-Za-z_]\w*")
READ = ("value", "data", "returned")
"""The parts in which a line reads a name."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a program: its first word, the names that it binds, and those that it reads; `now` are those of which
    it reads the same element, not an earlier one."""

    word: str
    binds: tuple[str, ...]
    reads: frozenset[str]
    now: frozenset[str]
    text: str
    before: bool
    """Whether it stands above the cursor."""


def lines_of(place: Context) -> list[Line]:
    """All lines of the program but the one at the cursor."""
    found: list[Line] = []
    before = True
    for placed in () if place.statement is None else units_of(place.statement):
        if place.placed is not None and placed.uid == place.placed.uid:
            before = False
            continue
        reads = frozenset(each.text for each in names_of(placed.unit) if each.part in READ)
        binds = tuple(bound_names(placed.unit.node)) if placed.unit.keyword not in ("program", "return") else ()
        still = set(_WORD.findall(_LAGGED.sub("", placed.unit.text)))
        found.append(Line(placed.unit.keyword, binds, reads, reads & still, placed.unit.text, before))
    return found


def own_names(place: Context) -> tuple[str, ...]:
    """The names that the line at a cursor binds."""
    found: list[str] = []
    for token in place.tokens[1:]:
        if token.kind == "NAME":
            found.append(token.text)
        elif token.text not in ("(", ","):
            break
    return tuple(found)


def dependents(lines: Sequence[Line], own: Sequence[str]) -> frozenset[str]:
    """What is computed or drawn with names, directly or by way of others: reading it would go in a circle."""
    found, pending = set(own), list(own)
    while pending:
        name = pending.pop()
        for line in lines:
            if name in line.now:
                new = set(line.binds) - found
                found |= new
                pending += new
    return frozenset(found - set(own))


def unread(lines: Sequence[Line], *, returned: bool = True) -> frozenset[str]:
    """What no line reads; a `return` may count as none."""
    read: set[str] = set()
    for line in lines:
        if returned or line.word != "return":
            read |= line.reads
    return frozenset(name for line in lines for name in line.binds if name not in read)


def lagged(lines: Sequence[Line], place: Context) -> frozenset[str]:
    """The names of which some line reads earlier elements: `y` of `y[t - 1]`."""
    return frozenset(name for text in (*(line.text for line in lines), place.text) for name in _LAGGED.findall(text))


def in_order(place: Context) -> bool:
    """Whether the line at a cursor already reads earlier elements; behind `from` there are none."""
    return bool(_LAGGED.search(place.text)) and not any(token.kind == "FROM" for token in place.tokens)


SUMS = ("sum", "prod", "mean", "logsumexp", "max", "min")
"""Functions over the elements of a comprehension."""


def pending_indices(
    place: Context, axes: Mapping[str, Sequence[str | None]], known: Sequence[str]
) -> dict[str, str | None]:
    """Indices that the innermost open call has read values at and nobody has named yet: `f` of `sum(beta[f] * x[i, f]`,
    each with the set of its axis."""
    calls = (one for one in reversed(place.brackets) if one.kind == "LPAR" and one.before is not None)
    call = next((one for one in calls if one.before is not None and one.before.text in SUMS), None)
    if call is None:
        return {}
    found: dict[str, str | None] = {}
    for name, position, index in _indexed(place.tokens[call.start + 1 :]):
        if index in known or index in axes:
            continue
        own = axes.get(name, ())
        over = own[position] if position < len(own) else None
        found[index] = found.get(index) or over
    return found


def _indexed(tokens: Sequence[Token]) -> Iterator[tuple[str, int, str]]:
    """Name, position and index of `x[i, j]`, for indices that stand alone."""
    stack: list[tuple[str, int]] = []
    for at, token in enumerate(tokens):
        if token.kind == "LSQB":
            stack.append((tokens[at - 1].text if at else "", 0))
        elif token.kind == "RSQB" and stack:
            stack.pop()
        elif token.kind == "COMMA" and stack:
            stack[-1] = (stack[-1][0], stack[-1][1] + 1)
        elif token.kind == "NAME" and stack:
            behind = tokens[at + 1].kind if at + 1 < len(tokens) else ""
            if behind not in ("LSQB", "LPAR"):
                yield (*stack[-1], token.text)
