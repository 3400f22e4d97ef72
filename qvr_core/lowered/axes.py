"""The axes of a site's elements: those of its plate, outermost first, then those of one element."""

from __future__ import annotations

from qvr_core.semantics.language.declared_families import facts_of_draw
from qvr_core.semantics.types.model.families import FamilyDraw
from qvr_core.semantics.types.model.steps import Site
from qvr_core.semantics.types.spaces import Constrained, Dim, Finite, Product, Real, Space
from qvr_core.syntax.immutable import immutable


@immutable
class Axis:
    """An axis that elements run over: the index that is written for it ('' without one), and how many first elements
    it leaves out."""

    name: str
    size: Dim
    first: int = 0


def plate_dims(site: Site) -> tuple[Dim, ...]:
    """The sizes of the plate of a site, outermost first."""
    return () if site.plate is None or site.each_row else _finite(site.plate.space)


def event_dims(site: Site) -> tuple[Dim, ...]:
    """The sizes of one element: () for a number."""
    return space_dims(site.bound[0][1].space) if site.bound else ()


def space_dims(space: Space | None) -> tuple[Dim, ...]:
    """The axes of one element of a space."""
    match space:
        case Real(shape=shape):
            return () if shape == (1,) else shape
        case Constrained(size=size):
            return (size,) if space.vector else (size, size)
        case _:
            return ()


def plate_axes(site: Site) -> tuple[Axis, ...]:
    """The axes of the plate."""
    names = [index.name for index in site.indices]
    sizes = plate_dims(site)
    return tuple(Axis(name, size) for name, size in zip([*names, *[""] * len(sizes)], sizes, strict=False))


def entry_axes(site: Site) -> tuple[Axis, ...]:
    """The axes of one element where its entries are drawn one by one: numbers whose value is a vector."""
    family = facts_of_draw(site.draw) if isinstance(site.draw, FamilyDraw) else None
    return tuple(Axis("", size) for size in event_dims(site)) if family is not None and not family.event else ()


def _finite(space: Space) -> tuple[Dim, ...]:
    parts = space.factors if isinstance(space, Product) else (space,)
    return tuple(part.size for part in parts if isinstance(part, Finite))
