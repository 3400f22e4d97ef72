"""A program as its guides see it: the latents that they draw, and the data that they may read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from qvr_core.operations.intervals import ANYTHING
from qvr_core.semantics.scope.families import family_named
from qvr_core.semantics.scope.scope import (
    Scope,
)
from qvr_core.semantics.types.model.expressions import ValueType
from qvr_core.semantics.types.model.families import FamilyDraw
from qvr_core.semantics.types.model.programs import DataName, Guided, Latent
from qvr_core.semantics.types.model.steps import (
    ArrowDraw,
    MarginalizeModel,
    ObserveModel,
    SampleModel,
    Site,
    StepModel,
)
from qvr_core.semantics.types.spaces import Finite, Named, Seq, Space, Unknown
from qvr_core.semantics.types.walk import body, sites, walk


def guided(steps: Sequence[StepModel], data: Sequence[DataName], scope: Scope) -> Guided:
    """What a sampler would move of a program with these steps, and what may be read of it."""
    found = [_latent(site, inside, scope) for site, inside in _drawn(steps)]
    observed = list(sites(steps, ObserveModel))
    imputed = [
        _seen(site, "", imputed=True) for site in observed if site.missing is not None and site.missing.how == "impute"
    ]
    known = {item.name: item for item in data}
    for site in observed:
        if not site.of_let and site.name not in known and "." not in site.name:
            known[site.name] = _datum(site)
    latents = (*(one for one in found if one is not None), *imputed)
    return Guided(latents=latents, data=tuple(known.values()), observed=tuple(site.name for site in observed))


def _drawn(steps: Sequence[StepModel]) -> Iterable[tuple[Site, bool]]:
    """The sites of `sample` steps, and whether they stand in a `marginalize` block."""
    for step in steps:
        for inner in walk(step, body):
            if isinstance(inner, SampleModel):
                yield inner.site, isinstance(step, MarginalizeModel)


def _latent(site: Site, inside: bool, scope: Scope) -> Latent | None:
    """A latent; None for what an arrow without draws computes."""
    if site.density.kind == "deterministic":
        return None
    draw = site.draw
    whole = (site.range or ANYTHING).whole or isinstance(item_of_sequence(_type(site).space), Finite)
    family = family_named(draw.family, scope) if isinstance(draw, FamilyDraw) else None
    still = ""
    if site.density.kind == "none":
        still = "has no density"
    elif whole:
        still = "is discrete"
    elif family is not None and family.improper:
        still = "has an improper prior"
    elif family is not None and not family.drawn:
        still = "has a prior whose family does not say how to draw"
    elif inside and isinstance(draw, ArrowDraw):
        still = "is drawn from an arrow inside `marginalize`"
    return _seen(site, still)


def _seen(site: Site, still: str, *, imputed: bool = False) -> Latent:
    named = site.bound[0][1] if len(site.bound) == 1 else Named(_type(site).space or Unknown(), "")
    return Latent(
        name=site.name,
        type=_type(site),
        named=named,
        range=site.range or ANYTHING,
        origin=site.origin,
        still=still,
        lengths=site.lengths is not None,
        imputed=imputed,
    )


def _type(site: Site) -> ValueType:
    return site.type or ValueType(Unknown())


def _datum(site: Site) -> DataName:
    """An observed name without a declaration, as data of a guide."""
    kind = _type(site)
    known = kind.space is not None and not isinstance(kind.space, Unknown)
    over = tuple(Finite(size, name) for size, name in zip(kind.sizes, kind.indexed, strict=True) if size is not None)
    counts = known and (site.range or ANYTHING).whole and not isinstance(item_of_sequence(kind.space), Finite)
    return DataName(
        name=site.name,
        type=kind,
        origin=site.origin,
        declared=known,
        over=over if len(over) == len(kind.indexed) else (),
        numbers="count" if counts else "",
    )


def item_of_sequence(space: Space | None) -> Space | None:
    """What a sequence is one of; any other space itself."""
    return space.item if isinstance(space, Seq) else space
