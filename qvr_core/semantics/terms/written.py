"""Terms as they are written in data: nested JSON, `{"and": [{"atom": "p"}, "truth"]}` or `["and", ["atom", "p"],
"truth"]`, and s-expressions, `(and (atom p) truth)`.

A term becomes rows of whole numbers, one a node, of which the first is the root; a row holds its constructor's place in
the type, its depth below the root, then what stands at its places: the row of a tree, an element of a set, or the
numbers of a real space, each as the 64 bits of its double.  Rows are filled up with −1.
"""

from __future__ import annotations

import json
import re
import struct
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from qvr_core.semantics.language.spelling import closest
from qvr_core.semantics.types.spaces import Constrained, Finite, Real, Space, Terms, width

MOST_NODES = 10_000
"""Nodes of one term."""
DEEPEST = 1_000
"""How deep one may be: each level is a step of its encoder."""
SHOWN = 12
"""Names that a message lists."""
SUMS = 1e-4
"""How far shares may be from 1 together."""

CONSTRUCTOR, DEPTH, PLACES = 0, 1, 2
"""The columns of a node: its constructor, its depth, and the first of its places."""
NOTHING = -1

Table = list[tuple[int, ...]]
"""One row a node."""


@dataclass(frozen=True)
class TermProblem(Exception):
    """What is wrong with a written term, and what to do about it."""

    message: str
    remedy: str


def place_width(space: Space | None) -> int:
    """How many columns a place takes."""
    if space is None or isinstance(space, Finite):
        return 1
    size = width(space)
    assert isinstance(size, int)
    return int(size)


def table_width(space: Terms) -> int:
    """How many columns a node takes."""
    return PLACES + max((sum(map(place_width, places)) for _, places in space.constructors), default=0)


def term_table(value: object, space: Terms) -> Table:
    """The rows of one term: text (an s-expression or JSON), or lists, objects and text as JSON gives them.

    A node's row stands before those below it, and rows of one depth stand together.  Raises `TermProblem`.
    """
    return _Reader(space).table(_read(value) if isinstance(value, str) else value)


@dataclass(frozen=True, slots=True)
class _Node:
    """A tree that is still to be read: where its number goes, and where it stands, innermost first."""

    value: object
    depth: int
    parent: list[int] | None
    column: int
    inside: tuple[str, ...]


class _Reader:
    """Reads nested values level by level, so that nothing nests as deep as they do."""

    def __init__(self, space: Terms) -> None:
        self.space = space
        self.width = table_width(space)
        self.places = {name: (at, places) for at, (name, places) in enumerate(space.constructors)}

    def table(self, value: object) -> Table:
        rows: list[list[int]] = []
        waiting = deque([_Node(value, 0, None, 0, ())])
        while waiting:
            node = waiting.popleft()
            if node.parent is not None:
                node.parent[node.column] = len(rows)
            if node.depth >= min(DEEPEST, self.space.depth or DEEPEST):
                raise _too_deep(self.space)
            rows.append(self._row(node, waiting))
            if len(rows) + len(waiting) > MOST_NODES:
                raise TermProblem(f"the term has more than {MOST_NODES:,} nodes", "Leave the row out, or cut it down")
        return [tuple(row) for row in rows]

    def _row(self, node: _Node, waiting: deque[_Node]) -> list[int]:
        name, given = _applied(node.value, node.inside)
        if name not in self.places:
            raise self._unknown(name, node.inside)
        constructor, places = self.places[name]
        if len(given) != len(places):
            takes = "nothing" if not places else "1 argument" if len(places) == 1 else f"{len(places)} arguments"
            message = f"`{name}` takes {takes}, and {len(given) or 'none'} {_stands(len(given))}{_where(node.inside)}"
            raise TermProblem(message, f"It is `{self._written(name)}`")
        row = [constructor, node.depth]
        for number, (value, space) in enumerate(zip(given, places, strict=True), 1):
            inside = (f"argument {number} of `{name}`", *node.inside[:2])
            if space is None:
                waiting.append(_Node(value, node.depth + 1, row, len(row), inside))
                row.append(NOTHING)
            elif isinstance(space, Finite):
                row.append(_element(value, space, inside))
            else:
                row += _numbers(value, space, inside)
        row += [NOTHING] * (self.width - len(row))  # the same list, which those below it write to
        return row

    def _unknown(self, name: str, inside: tuple[str, ...]) -> TermProblem:
        near = closest(name, self.places)
        message = f"`{self.space.name}` has no constructor `{_short(name)}`{_where(inside)}"
        return TermProblem(message, f"Did you mean `{near}`?" if near else f"It has {_listed(self.places)}")

    def _written(self, name: str) -> str:
        """How a term of a constructor is written."""
        places = self.places[name][1]
        words = ("…" if space is None else _an_element(space) for space in places)
        return f"({name} {' '.join(words)})" if places else name


def _too_deep(space: Terms) -> TermProblem:
    if space.depth is None or space.depth >= DEEPEST:
        return TermProblem(f"the term is more than {DEEPEST:,} levels deep", "Leave the row out, or cut it down")
    levels = "1 level" if space.depth == 1 else f"{space.depth} levels"
    message = f"the term is deeper than {levels}, the most that its decoder makes"
    return TermProblem(message, "Raise the decoder's `depth`, or leave the row out")


def _stands(count: int) -> str:
    return "stand here" if count > 1 else "stands here"


def _where(inside: tuple[str, ...]) -> str:
    return f", in {', in '.join(inside)}" if inside else ""


def _short(text: object) -> str:
    shown = str(text)
    return shown if len(shown) <= 40 else f"{shown[:39]}…"


def _listed(names: Mapping[str, object] | Sequence[str]) -> str:
    shown = [f"`{name}`" for name in names]
    return ", ".join(shown[:SHOWN] + ([f"{len(shown) - SHOWN} more"] if len(shown) > SHOWN else []))


def _an_element(space: Space) -> str:
    if isinstance(space, Finite):
        return space.labels[0] if space.labels else "0"
    count = place_width(space)
    return "0.0" if count == 1 else f"({' '.join(['0.0'] * min(count, 3))}{' …' if count > 3 else ''})"


def _applied(value: object, inside: tuple[str, ...]) -> tuple[str, Sequence[object]]:
    """A constructor and its arguments, however they are written."""
    value = _inner(value, inside)
    if isinstance(value, str):
        return value.strip(), ()
    found = cast(Sequence[object], value) if isinstance(value, list | tuple) else ()
    if found and isinstance(found[0], str):
        return found[0], found[1:]
    held = _present(cast(Mapping[str, object], value)) if isinstance(value, dict) else {}
    if len(held) == 1:
        ((name, inner),) = held.items()
        given = _inner(inner, inside)
        return name, cast(Sequence[object], given) if isinstance(given, list | tuple) else (given,)
    if value is None:
        message = "there is no term"
    elif not value and isinstance(value, list | tuple | dict):
        message = "a term begins with its constructor, and nothing stands here"
    else:
        message = f"`{_short(cast(object, value))}` is no term"
    raise TermProblem(f"{message}{_where(inside)}", 'Write `(name …)`, `["name", …]` or `{"name": […]}`')


def _inner(value: object, inside: tuple[str, ...]) -> object:
    """What stands inside: tables write lists of different things as the text of their JSON."""
    if not isinstance(value, str) or value.lstrip()[:1] not in ("[", "{"):
        return value
    try:
        return _read(value)
    except TermProblem as problem:
        message = f"`{_short(value)}` is no argument, and no JSON{_where(inside)}"
        raise TermProblem(
            message, "An s-expression has round brackets and blanks: `(name first (name second))`"
        ) from problem


def _present(held: Mapping[str, object]) -> dict[str, object]:
    """An object without what is missing: a table has all keys of a column in each row."""
    return {name: value for name, value in held.items() if value is not None}


def _element(value: object, space: Finite, inside: tuple[str, ...]) -> int:
    """The element of a set: its label, or its number from 0."""
    size = space.size
    assert isinstance(size, int)
    text = str(value).strip()
    if space.labels is not None and text in space.labels:
        return space.labels.index(text)
    if not isinstance(value, bool) and re.fullmatch(r"\d{1,15}", text) and int(text) < size:
        return int(text)
    wanted = f"0 to {size - 1}" if space.labels is None else _listed(space.labels)
    near = closest(text, space.labels) if space.labels is not None else None
    name = f"`{space.nominal}`" if space.nominal is not None else "the set"
    message = f"`{_short(value)}` is no element of {name}{_where(inside)}"
    raise TermProblem(message, f"Did you mean `{near}`?" if near else f"Its elements are {wanted}")


def _numbers(value: object, space: Space, inside: tuple[str, ...]) -> list[int]:
    """The numbers of a real space as the bits of doubles."""
    count = place_width(space)
    value = _inner(value, inside)
    listed = cast(Sequence[object], value) if isinstance(value, list | tuple) else [value]
    if len(listed) != count:
        wanted = "1 number is" if count == 1 else f"{count} numbers are"
        raise TermProblem(f"{len(listed)} {_stands(len(listed))[:-5]}, and {wanted} wanted{_where(inside)}",
                          f"Write `{_an_element(space)}`")  # fmt: skip
    found: list[int] = []
    for one in listed:
        try:
            number = float(one) if isinstance(one, str | int | float) and not isinstance(one, bool) else None
        except (ValueError, OverflowError):
            number = None
        if number is None or "_" in str(one):
            raise TermProblem(f"`{_short(one)}` is not a number{_where(inside)}", "Correct it, or leave the row out")
        if number - number != 0:
            raise TermProblem(f"{number} is not finite{_where(inside)}", "Fill in a finite value")
        _check_inside(number, space, inside)
        found += struct.unpack("<q", struct.pack("<d", number))
    if isinstance(space, Constrained) and space.kind == "Simplex":
        total = sum(float(cast(str, one)) for one in listed)
        if abs(total - 1.0) > SUMS:
            raise TermProblem(f"the shares add up to {total:g}{_where(inside)}", "Give shares that add up to 1")
    return found


def _check_inside(number: float, space: Space, inside: tuple[str, ...]) -> None:
    low, high = (space.low, space.high) if isinstance(space, Real | Constrained) else (None, None)
    low = 0.0 if isinstance(space, Constrained) and space.kind == "Simplex" else low
    if (low is not None and number < low) or (high is not None and number > high):
        side = f"below {low:g}" if low is not None and number < low else f"above {high:g}"
        raise TermProblem(f"{number:g} is {side}{_where(inside)}", "Correct it, or leave the row out")


# ---------------------------------------------------------------- text

_TOKEN = re.compile(r'\s*(?:([()])|"((?:[^"\\]|\\.)*)"|([^\s()"]+))')


def _read(text: str) -> object:
    """A term in text, as nested lists: JSON where it begins as such, else an s-expression."""
    start = text.lstrip()[:1]
    if start in ("[", "{", '"'):
        try:
            return json.loads(text)
        except RecursionError:
            raise TermProblem("it is nested too deeply for JSON", "Write an s-expression, `(name …)`") from None
        except ValueError as error:
            raise TermProblem(
                f"this is no JSON: {error}", "Correct it, or write an s-expression: `(name first (name second))`"
            ) from None
    return _expression(text)


def _expression(text: str) -> object:
    """An s-expression as nested lists.  Raises `TermProblem` for brackets that do not match, and for what is left."""
    whole: list[object] = []
    opened: list[list[object]] = [whole]
    at, end = 0, len(text.rstrip())
    while at < end:
        found = _TOKEN.match(text, at, end)
        if found is None:
            raise TermProblem(f"a quote is not closed: `{_short(text[at:end].strip())}`", "Close it")
        at = found.end()
        bracket, quoted, word = found.groups()
        if bracket == "(":
            inner: list[object] = []
            opened[-1].append(inner)
            opened.append(inner)
        elif bracket == ")":
            if len(opened) == 1:
                raise TermProblem("a `)` closes nothing", "Leave it out, or open it")
            opened.pop()
        else:
            opened[-1].append(word if quoted is None else re.sub(r"\\(.)", r"\1", quoted))
    if len(opened) > 1:
        missing = len(opened) - 1
        raise TermProblem(f"{missing} `)` {'is' if missing == 1 else 'are'} missing at the end", "Close what is open")
    if not whole:
        raise TermProblem("there is no term", "Write one, `(name …)`, or leave the row out")
    if len(whole) > 1:
        shown = f"({whole[0]} …)" if isinstance(whole[0], str) else "(name …)"
        raise TermProblem("more than one term stands here", f"A constructor stands inside its brackets: `{shown}`")
    return whole[0]


def term_text(table: Sequence[Sequence[int]], space: Terms) -> str:
    """The s-expression of a term, the inverse of `term_table`: rows of a node each, of which those of −1 are none."""
    texts: list[str] = [""] * len(table)
    for at in reversed(range(len(table))):
        row = table[at]
        if row[CONSTRUCTOR] == NOTHING:
            continue
        name, places = space.constructors[row[CONSTRUCTOR]]
        words, column = [name], PLACES
        for place in places:
            size = place_width(place)
            if place is None:
                words.append(texts[row[column]])
            elif isinstance(place, Finite):
                words.append(str(row[column]) if place.labels is None else _quoted(place.labels[row[column]]))
            else:
                numbers = [repr(struct.unpack("<d", struct.pack("<q", one))[0]) for one in row[column : column + size]]
                words.append(numbers[0] if size == 1 else f"({' '.join(numbers)})")
            column += size
        texts[at] = f"({' '.join(words)})" if places else name
    return texts[0]


def _quoted(label: str) -> str:
    """A label as a word of an s-expression."""
    if re.fullmatch(r'[^\s()"]+', label):
        return label
    escaped = label.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
