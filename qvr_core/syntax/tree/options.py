"""Option lists in brackets, and the values that options have."""

from __future__ import annotations

from typing import Protocol

from qvr_core.syntax.immutable import immutable
from qvr_core.syntax.tree.names import Name, Span


@immutable
class Number:
    """A number with its sign; `text` keeps the user's spelling."""

    value: int | float
    text: str
    span: Span


@immutable
class String:
    """A string; `value` has its escapes resolved."""

    value: str
    text: str
    span: Span


@immutable
class Word:
    """A bare word as an option's value (`role=embed`)."""

    text: str
    span: Span


@immutable
class ListValue:
    """`[a, b]` as an option's value."""

    items: tuple[Value, ...]
    span: Span


@immutable
class ValueArg:
    """An argument of a call in an option's value."""

    key: Name | None
    value: Value
    span: Span


@immutable
class CallValue:
    """`Normal(0.0, scale=1.0)` as an option's value."""

    func: Name
    args: tuple[ValueArg, ...]
    span: Span


class _Node(Protocol):
    @property
    def span(self) -> Span: ...


@immutable
class Formula:
    """Arithmetic as a bound, `Real 1 [low=a[g]]`: an `Arith`, whose module reads this one."""

    tree: _Node
    span: Span


Value = Number | String | Word | ListValue | CallValue | Formula


@immutable
class Option:
    """`key=value`, or a bare `key`."""

    key: Name
    value: Value | None
    span: Span


@immutable
class Options:
    """A bracketed option list with the brackets' span."""

    items: tuple[Option, ...]
    span: Span
