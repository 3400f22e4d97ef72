"""Types as text, for messages, hovers and inlays."""

from __future__ import annotations

from qvr_core.semantics.types.spaces import (
    Constrained,
    Dim,
    Finite,
    Linear,
    Named,
    Product,
    Real,
    Seq,
    Space,
    Terms,
    Unknown,
    is_real,
    width,
)
from qvr_core.semantics.types.subspace import interval


def dim_text(dim: Dim) -> str:
    """A size: '64', '_' where it is one unknown, '_ + 32' where it is a sum with one."""
    if not isinstance(dim, Linear):
        return str(int(dim))
    parts = [_term(name, count) for name, count in dim.terms]
    if dim.constant or not parts:
        parts.append(str(dim.constant))
    return " + ".join(parts)


def _term(name: str, count: int) -> str:
    written = name.lstrip("%") if name.lstrip("%").isidentifier() else "_"
    return written if count == 1 else f"{count}·{written}"


MOST_SPELT = 32
"""Factors of a product that are spelt out."""


def structure(space: Space) -> str:
    """A space spelt out, whatever it is called: 'FinSet 256', 'Real 64 * FinSet 3'."""
    match space:
        case Product(count=count) if count > MOST_SPELT:
            return f"{structure(space.head[0][1])} * … ({count:,} factors)"
        case Finite(labels=labels) if labels is not None:
            return "{" + ", ".join(labels) + "}"
        case Finite(size=size):
            return f"FinSet {dim_text(size)}"
        case Real(shape=shape):
            bounds = "" if space.low is None and space.high is None else " " + _bounds(space)
            return "Real " + " ".join(map(dim_text, shape)) + bounds
        case Constrained(kind=kind, size=size, low=low, high=high):
            return f"{kind} {dim_text(size)}" + ("" if low is None and high is None else " " + _bounds(space))
        case Product(factors=factors):
            return " * ".join(structure(factor) for factor in factors)
        case Seq(item=item):
            return f"Seq ({structure(item)})" if isinstance(item, Product) else f"Seq {structure(item)}"
        case Terms(name=name):
            return name
        case Unknown():
            return "?"


def _bounds(space: Real | Constrained) -> str:
    parts = [f"{key}={value:g}" for key, value in (("low", space.low), ("high", space.high)) if value is not None]
    return f"[{', '.join(parts)}]"


def size_text(space: Space) -> str:
    """How big a space is: '256' elements, '64', '64 + 32 = 96', '28 × 28 = 784'; '' where it says nothing."""
    match space:
        case Product(count=count) if count > MOST_SPELT:
            return f"{space.entries:,}" if is_real(space) else f"{count:,} factors"
        case Product(factors=factors) if is_real(space):
            parts = [dim_text(width(factor)) for factor in factors]
            total = width(space)
            return " + ".join(parts) + ("" if isinstance(total, Linear) else f" = {int(total)}")
        case Product(factors=factors):
            return " * ".join(structure(factor) for factor in factors)
        case Real(shape=shape) if space.low is not None or space.high is not None:
            return f"{' × '.join(map(dim_text, shape))} in {interval(space)}"
        case Real(shape=shape) if len(shape) > 1:
            total = width(space)
            return " × ".join(map(dim_text, shape)) + ("" if isinstance(total, Linear) else f" = {int(total)}")
        case Real():
            return dim_text(width(space))
        case Seq(item=item):
            return size_text(item)
        case Unknown():
            return ""
        case _:
            return structure(space)


def space_text(named: Named) -> str:
    """A space as the user wrote it, with its size: 'FwdHidden * BwdHidden (64 + 32 = 96)', 'Token (FinSet 256)'."""
    size = size_text(named.space)
    if not size or named.written == structure(named.space):
        return named.written
    return f"{named.written} ({size})"
