"""Constructs that are read but not typed yet: each is refused by one error where it stands.

Whoever gives a construct its meaning takes its row out of `NOT_YET`, and what refuses it here.
"""

from __future__ import annotations

from qvr_core.semantics.scope.scope import Scope
from qvr_core.semantics.types.codes import UNSUPPORTED
from qvr_core.syntax.tree import Span

NOT_YET: dict[str, str] = {
    "chain of vectors": "a chain of ordered or otherwise constrained vectors that are drawn entry by entry",
    "chain of matrices": "a chain whose elements are matrices",
    "tuple": "a tuple in arithmetic",
}


def refuse(construct: str, span: Span, scope: Scope) -> bool:
    """Report a construct that has no meaning yet; false where it has one."""
    what = NOT_YET.get(construct)
    if what is not None:
        scope.report(UNSUPPORTED, f"{what} is not part of this version yet", span)
    return what is not None


def refuse_sequence(what: str, each: bool, span: Span, scope: Scope) -> None:
    """`text[i]` of sequences, one for each element, or `x[0]` of one: neither has a meaning among indices yet."""
    message = f"{what} holds a sequence for each element: only a program whose input they are reads several sequences"
    if not each:
        message = f"{what} is an element of a sequence, which no step with indices reads: take it in a step of its own"
    scope.report(UNSUPPORTED, message, span)
