"""Lifting to sequences: which arrow is applied at every position (docs/reference.md#sequences)."""

from __future__ import annotations

from qvr_core.semantics.types.model.arrows import Arrow, Lift
from qvr_core.semantics.types.spaces import Named, Product, has_seq, has_terms, sequence_of


def as_sequence(named: Named) -> Named:
    """`Seq A`, as hovers write it."""
    if has_seq(named.space):
        return named
    inner = f"({named.written})" if isinstance(named.space, Product) and " " in named.written else named.written
    return Named(sequence_of(named.space), f"Seq {inner}")


def can_lift(arrow: Arrow) -> bool:
    """True where `arrow` works on one element, and so on every element of a sequence; there are none of terms."""
    given = arrow.codomain.space
    return not has_seq(arrow.domain.space) and not has_seq(given) and not has_terms(given)


def lift(arrow: Arrow) -> Arrow:
    """`arrow` at every position."""
    if not can_lift(arrow):
        return arrow
    return Lift(
        domain=as_sequence(arrow.domain),
        codomain=as_sequence(arrow.codomain),
        sort=arrow.sort,
        origin=arrow.origin,
        density=arrow.density,
        arrow=arrow,
    )
