"""The shapes that types give a site: of what it is repeated over, and of one draw."""

from __future__ import annotations

from qvr_core.runtime.families.family import RuntimeFamily
from qvr_core.semantics.arithmetic.broadcasting import axes, by_place
from qvr_core.semantics.language.family import Family
from qvr_core.semantics.types.model.families import FamilyDraw
from qvr_core.semantics.types.model.steps import Site
from qvr_core.semantics.types.spaces import Constrained, Finite, Product, Real, Space


def sizes(space: Space) -> tuple[int, ...]:
    """The shape that a space's values keep: `Real 3 4` is (3, 4), `I * J` of finite sets (|I|, |J|)."""
    match space:
        case Finite(size=int() as size):
            return (int(size),)
        case Real(shape=shape):
            return tuple(int(size) for size in shape if isinstance(size, int))
        case Constrained(size=int() as size):
            return (int(size),) if space.vector else (int(size), int(size))
        case Product(factors=factors):
            return tuple(size for factor in factors for size in sizes(factor))
        case _:
            return ()


def plate_shape(site: Site) -> tuple[int, ...]:
    """The sizes of the plate."""
    return () if site.plate is None else sizes(site.plate.space)


def own_batch(site: Site, family: Family) -> tuple[int, ...]:
    """The shape that the arguments of a draw without an ascription give it, as far as their types tell."""
    if site.element is not None or site.plate is not None or not isinstance(site.draw, FamilyDraw):
        return ()
    ranks = {name: own.rank for own in family.parameters for name, _ in ((own.name, ""), *own.alternatives)}
    found: tuple[int, ...] = ()
    for name, value in site.draw.args:
        own = axes(value.type) or []
        known = tuple(size for size, _ in own[: max(0, len(own) - ranks.get(name, 0))] if isinstance(size, int))
        found = known if len(known) > len(found) else found
    return found


def places(draw: FamilyDraw, family: RuntimeFamily, space: Constrained) -> frozenset[str]:
    """The arguments that give each place of an ordered vector its own number."""
    parameters = {name: one.rank for one in family.facts.parameters for name in (one.name, *dict(one.alternatives))}
    return frozenset(name for name, value in draw.args if by_place(value, parameters[name], space.size))


def event_shape(rank: int, site: Site, space: Space | None) -> tuple[int, ...] | None:
    """The shape of one draw, where the types tell."""
    if rank == 0:
        return ()
    if site.over is not None:
        return sizes(site.over.space) * rank
    if isinstance(space, Constrained):
        return sizes(space)
    if isinstance(space, Real) and len(sizes(space)) == rank:
        return sizes(space)
    return None


def event_free(family: Family, space: Space | None) -> bool:
    """True for a family of numbers whose site names a real space: the value has that shape."""
    return family.event == 0 and isinstance(space, Real)


def entries_of(site: Site, family: Family) -> tuple[int, ...]:
    """The entries of one element of a step with indices, where they are drawn one by one (`v[t : Time] : Real 2`)."""
    named = site.element is not None and site.element.space
    shape = sizes(named) if named and site.indices and event_free(family, named) else ()
    return () if shape == (1,) else shape


def entry_batch(site: Site, batch: tuple[int, ...]) -> tuple[int, ...]:
    """The batch shape of draws of single numbers whose value is ascribed; `batch` is that of the arguments."""
    shape = sizes(site.element.space) if site.element is not None else ()
    plate = plate_shape(site)
    laid = bool(site.indices) and bool(plate)
    return (*plate, *shape) if shape != (1,) and (laid or all(size == 1 for size in batch)) else batch
