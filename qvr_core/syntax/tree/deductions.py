"""The lines of a deduction: atoms, rules, its lexicon."""

from __future__ import annotations

from qvr_core.syntax.immutable import immutable
from qvr_core.syntax.tree.names import Name, Span
from qvr_core.syntax.tree.options import Number, Option, Options, String


@immutable
class Term:
    """`NP`, `3`, `span(I, K, X)`.  `args` is None without parentheses."""

    head: Name | Number
    args: tuple[Term, ...] | None
    span: Span


@immutable
class Attributes:
    """`#[learnable, init=0.5]`."""

    items: tuple[Option, ...]
    span: Span


@immutable
class AtomsItem:
    """`atoms a, b` or `binders Lam`."""

    keyword: str
    names: tuple[Name, ...]
    span: Span


@immutable
class RuleItem:
    name: Name
    premises: tuple[Term, ...]
    conclusion: Term
    attributes: Attributes | None
    span: Span


@immutable
class LexiconItem:
    """The line `lexicon` (entries are the unit's children), or `lexicon from "file" [options]`."""

    source: String | None
    options: Options | None
    span: Span


@immutable
class LexiconEntry:
    word: String
    category: Term
    form: Term
    attributes: Attributes | None
    span: Span
