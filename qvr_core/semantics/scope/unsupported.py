"""Constructs that are read and have no meaning: each is refused by one error where it stands, which says what has."""

from __future__ import annotations

from qvr_core.semantics.scope.scope import Scope
from qvr_core.semantics.types.codes import UNSUPPORTED
from qvr_core.semantics.types.spaces import Constrained
from qvr_core.syntax.tree.names import Span


def refuse_matrices(family: str, span: Span, scope: Scope) -> None:
    """A chain whose elements a family of matrices draws."""
    message = f"`{family}` draws matrices, and an element that reads earlier ones is a number or a vector: let a chain "
    message += "with an index for its entries carry what changes, and make each matrix of it by a `let`"
    scope.report(UNSUPPORTED, message, span)


def refuse_matrix_entries(name: str, span: Span, scope: Scope) -> None:
    """A chain whose elements are matrices, drawn entry by entry."""
    message = "an element that reads earlier ones is no matrix: "
    message += f"give rows and columns indices, `{name}[…, i : I, j : J]`"
    scope.report(UNSUPPORTED, message, span)


def refuse_tied_entries(space: Constrained, span: Span, scope: Scope) -> None:
    """A chain of vectors that are drawn entry by entry, and whose entries a condition ties together."""
    message = f"entries that are drawn around earlier ones do not make an element of `{space.kind}`: "
    if space.kind == "Ordered":
        size = int(space.size) if isinstance(space.size, int) else "…"
        message += f"draw the chain `: Real {size}`, and let `cumsum(exp(…))` of each element ascend"
    else:
        message += "draw the chain `: Real …`, and map each element there by a `let`"
    scope.report(UNSUPPORTED, message, span)


def refuse_sequence(what: str, each: bool, span: Span, scope: Scope) -> None:
    """`text[i]` of sequences, one for each element, or `x[0]` of one: neither has a meaning among indices yet."""
    message = f"{what} holds a sequence for each element: only a program whose input they are reads several sequences"
    if not each:
        message = f"{what} is an element of a sequence, which no step with indices reads: take it in a step of its own"
    scope.report(UNSUPPORTED, message, span)
