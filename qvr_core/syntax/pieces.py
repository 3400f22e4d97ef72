"""Small pieces that the builder's functions share: what some rules make that is no node, and how to read children."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from qvr_core.syntax.tokens import Token
from qvr_core.syntax.tree.arithmetic import Arith, Binder, FactorCase
from qvr_core.syntax.tree.names import Name, Span
from qvr_core.syntax.tree.objects import ObjectExpr
from qvr_core.syntax.tree.options import Options

_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "0": "\0"}


class Arguments(NamedTuple):
    """What stands between the parentheses of a call."""

    items: tuple[Any, ...]


class Ascription(NamedTuple):
    """Marks an object expression that was written after a step's name."""

    space: ObjectExpr


class Binders(NamedTuple):
    """The bracket of indices behind a step's name."""

    items: tuple[Binder, ...]
    span: Span


class Start(NamedTuple):
    """What follows `from`."""

    value: Arith


class Condition(NamedTuple):
    """What follows `if` in a comprehension."""

    value: Arith


class Default(NamedTuple):
    """What follows the `=` of a parameter."""

    value: Arith


class TrailingColon(NamedTuple):
    """A colon at the end of a header: accepted, with a hint."""

    span: Span


class Bounds(NamedTuple):
    """The bracket of a space's bounds."""

    options: Options


class Cases(NamedTuple):
    """The braces of a factor's table."""

    items: tuple[FactorCase, ...]


class Kind(NamedTuple):
    """What follows the colon of a parameter."""

    name: Name
    mor: tuple[ObjectExpr, ObjectExpr] | None


def name(token: Token) -> Name:
    return Name(token.text, Span(token.start, token.end))


def token_span(token: Token) -> Span:
    return Span(token.start, token.end)


def number_value(text: str) -> int | float:
    """The value of a number as written: an int only where no point and no exponent stand."""
    try:
        return int(text)
    except ValueError:
        return float(text)


def string_value(text: str) -> str:
    """The value of a quoted string: its escapes resolved, an unknown escape standing for its character."""

    def resolve(match: re.Match[str]) -> str:
        escape = match[1]
        if len(escape) == 5:
            return chr(int(escape[1:], 16))
        return _ESCAPED.get(escape, escape)

    body = text[1:-1]
    return _ESCAPE.sub(resolve, body) if "\\" in body else body


def names_of(children: list[Any]) -> tuple[Name, ...]:
    return tuple([name(c) for c in children])


def one(children: list[Any], kind: type[Any]) -> Any:
    """The child of that type, or None."""
    for child in children:
        if type(child) is kind:
            return child
    return None


def joined_options(children: list[Any]) -> Options | None:
    """All brackets of a declaration as one."""
    found: list[Options] = [c for c in children if type(c) is Options]
    if len(found) < 2:
        return found[0] if found else None
    items = tuple([item for options in found for item in options.items])
    return Options(items, Span(found[0].span.start, found[-1].span.end))
