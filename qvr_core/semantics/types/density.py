"""How the density of a composite arrow is computed (docs/reference.md#densities)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from qvr_core.semantics.types.model.arrows import Density
from qvr_core.semantics.types.spaces import Finite, Space, factors_of, is_finite, item_of

DETERMINISTIC = Density("deterministic")
EXACT = Density("exact", draws=1)

MOST_SUMMED = 4096
"""Finite intermediates, and hidden values of one element, of a larger joint size are not summed out."""


def then(first: Density, between: Space, second: Density) -> Density:
    """The density of `first >> second` with `between` in the middle."""
    if first.kind == "deterministic":
        return second
    if second.kind == "deterministic":
        return Density("none", first.draws, first.summed, first.draws)
    if first.kind == "score" or second.kind == "score":
        return Density("score", first.draws + second.innovations, 1, first.draws + second.draws)
    if second.kind == "none":
        return Density("none", first.draws + second.draws, 1, first.draws + second.draws)
    draws = first.draws + second.draws
    if is_finite(item_of(between)):
        summed = first.summed * second.summed * _cardinality(item_of(between))
        innovations = first.innovations + second.innovations
        return Density("summed" if summed <= MOST_SUMMED else "score", innovations, summed, draws)
    innovations = first.draws + second.innovations
    summed = first.summed * second.summed
    return Density("summed" if summed > 1 else "conditional", innovations, summed, draws)


def beside(parts: Sequence[Density]) -> Density:
    """The density of a fan or a tensor product: one last draw per branch."""
    if all(part.kind == "deterministic" for part in parts):
        return DETERMINISTIC
    draws = sum(part.draws for part in parts)
    innovations = sum(part.innovations for part in parts)
    summed = math.prod(part.summed for part in parts)
    kinds = {part.kind for part in parts}
    if "deterministic" in kinds or "none" in kinds:
        return Density("none", draws, summed, draws)
    kind = "score" if "score" in kinds else "summed" if summed > 1 else "conditional" if innovations else "exact"
    return Density(kind, innovations, summed, draws)


def repeated(body: Density, space: Space, count: int) -> Density:
    """`count` applications of an endomorphism, one after the other."""
    before, result = body, body
    for done in range(1, count):
        before, result = result, then(result, space, body)
        if done > 2 and (before.kind, before.summed) == (result.kind, result.summed):
            # from here on each application adds the same
            left = count - 1 - done
            innovations = result.innovations + left * (result.innovations - before.innovations)
            draws = result.draws + left * (result.draws - before.draws)
            return Density(result.kind, innovations, result.summed, draws)
    return result


def scanned(cell: Density, state: Space, *, emit_all: bool) -> Density:
    """A scan counts its cell's draws once: every position makes them."""
    if cell.kind == "deterministic":
        return cell
    if is_finite(state) and not emit_all and cell.kind == "exact":
        return Density("summed", 0, _cardinality(state), cell.draws)
    if emit_all:
        return cell
    if cell.kind in ("none", "score"):
        return cell
    kind = "summed" if cell.summed > 1 else "conditional"
    return Density(kind, cell.innovations + 1, cell.summed, cell.draws + 1)


def along_trees(last: Sequence[Density], before: Sequence[Density], *, nested: bool) -> Density:
    """An encoder counts the draws of its cases once: every node makes those of its case.

    `last` are the draws that cases end in, `before` the others; where terms are `nested` others read the last ones,
    too.  It has a density where a case ends in a draw: given all draws below the root, that of the root's.
    """
    inside = [*last, *before] if nested else before
    draws = sum(part.draws for part in (*last, *before))
    if not last and not before:
        return DETERMINISTIC
    dense = [part for part in last if part.kind != "none"]
    if not dense:
        return Density("none", draws, 1, draws)
    if any(part.kind == "score" for part in (*dense, *before)) or any(part.summed > 1 for part in inside):
        return Density("score", draws, 1, draws)
    innovations = sum(part.draws for part in inside) if nested else sum(part.draws for part in before)
    innovations += 0 if nested else sum(part.innovations for part in last)
    summed = max(part.summed for part in dense)
    return Density("summed" if summed > 1 else "conditional" if innovations else "exact", innovations, summed, draws)


def _cardinality(space: Space) -> int:
    return math.prod(
        int(factor.size) if isinstance(factor, Finite) and isinstance(factor.size, int) else 1
        for factor in factors_of(space)
    )
