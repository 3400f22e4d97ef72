"""Draws as factors: `mask` and `lengths` say where one counts, `weight` how much; a chain is a factor for each of its
first elements, and one for those that follow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial, reduce

from qvr_core.lowered.axes import Axis, entry_axes, event_dims, plate_axes
from qvr_core.lowered.left_out import presence
from qvr_core.lowered.tails import ANY, call, number
from qvr_core.semantics.language.outcomes import computed_name
from qvr_core.semantics.language.truncated import FLAT, HIGHEST, LOWEST, truncated_name
from qvr_core.semantics.types.chain_starts import draws_of
from qvr_core.semantics.types.model.expressions import (
    Arrange,
    Bound,
    Builtin,
    Expr,
    Index,
    IndexValue,
    ValueType,
    Window,
)
from qvr_core.semantics.types.model.families import FamilyDraw
from qvr_core.semantics.types.model.steps import Chain, Site
from qvr_core.syntax.immutable import immutable_by_name


@immutable_by_name
class Factor:
    """A sum of log densities: Σ weight · log p(value | arguments) over the elements where `where` holds.

    `value` is what of the site has a density here: all of it, the elements of a chain behind its first ones, or one of
    those.  Its elements run over `axes`, and so do the arguments; `where` and `weight` run over the last of these, or
    are one for all elements; None is true, and 1.
    """

    site: Site
    draw: FamilyDraw
    value: Expr
    axes: tuple[Axis, ...]
    where: Expr | None
    weight: Expr | None
    limits: tuple[tuple[str, Expr], ...] = ()
    """The options that censor or truncate, by name."""

    @property
    def partial(self) -> bool:
        """Whether elements count otherwise than once each, by their own density."""
        computed = computed_name(self.draw.family) is not None
        return self.where is not None or self.weight is not None or bool(self.limits) or computed


def factors_of(site: Site) -> tuple[Factor, ...]:
    """The factors of a site that is drawn from a family."""
    assert isinstance(site.draw, FamilyDraw)
    plate = plate_axes(site)
    draw, bounds = untruncated(site.draw)
    whole = Factor(
        site=site,
        draw=draw,
        value=Bound(type=site.type or ANY, origin=site.origin, name=site.name),
        axes=(*plate, *entry_axes(site)),
        where=_where(site),
        weight=site.weight,
        limits=(*site.limits, *bounds),
    )
    if site.chain is None:
        return (whole,)
    starts = [untruncated(one)[0] for one in draws_of(site.chain.start)]
    firsts = range(site.chain.indices[site.chain.at].lag if starts else 0)
    begun = [_first(whole, site.chain, starts[min(at, len(starts) - 1)], at) for at in firsts]
    return (*begun, _later(whole, site.chain))


def untruncated(draw: FamilyDraw) -> tuple[FamilyDraw, tuple[tuple[str, Expr], ...]]:
    """A draw from the whole of its family, and the bounds of its step as options that truncate; `Flat`, which has no
    density to divide, as it is."""
    name = truncated_name(draw.family)
    if name is None or name == FLAT:
        return draw, ()
    keys = {LOWEST.name: "truncate_lower", HIGHEST.name: "truncate_upper"}
    args = tuple((key, value) for key, value in draw.args if key not in keys)
    return replace(draw, family=name, args=args), tuple((keys[key], one) for key, one in draw.args if key in keys)


def beside(factor: Factor, draw: FamilyDraw, new: int) -> Factor:
    """The same of another draw whose arguments have so many axes more behind those of the elements."""
    count = len(factor.axes)
    vector = len(event_dims(factor.site)) if len(plate_axes(factor.site)) == count else 0

    def wide(expr: Expr) -> Expr:
        own = count if expr is factor.value else len(expr.type.indexed)
        event = range(own, own + vector) if expr is factor.value else ()
        axes = (*range(own), *[None] * new, *event)
        return Arrange(type=expr.type, origin=expr.origin, base=expr, axes=axes) if own else expr

    where, weight = (None if one is None else wide(one) for one in (factor.where, factor.weight))
    limits = tuple((key, wide(one)) for key, one in factor.limits)
    return replace(factor, draw=draw, value=wide(factor.value), where=where, weight=weight, limits=limits)


def resting(site: Site) -> tuple[Factor, ...]:
    """What elements of a latent have that do not exist: a standard normal density, which sums to 1 and says nothing."""
    there = existing(site)
    if there is None:
        return ()
    (whole,) = factors_of(replace(site, chain=None))
    args = (("loc", number(0.0, there)), ("scale", number(1.0, there)))
    draw = FamilyDraw(family="Normal", args=args, origin=site.origin)
    return (replace(whole, draw=draw, where=replace(there, function="ge"), weight=None, limits=()),)


def existing(site: Site) -> Builtin | None:
    """Where an element exists: before the end of its sequence; None where all do."""
    lengths = site.lengths
    if lengths is None:
        return None
    if count := len(lengths.type.indexed):
        kind = ValueType(None, (None,) * (count + 1))
        lengths = Arrange(type=kind, origin=lengths.origin, base=lengths, axes=(*range(count), None))
    return call("lt", _place(plate_axes(site)[-1], lengths), lengths)


def drawn(site: Site) -> Expr | None:
    """Where something draws an element: where it exists, and is none of the first of a chain that has no start; None
    where something draws all."""
    chain, said = site.chain, [one for one in (existing(site),) if one is not None]
    if chain is not None and chain.start is None:
        axis = plate_axes(site)[chain.at]
        like = Bound(type=site.type or ANY, origin=site.origin, name=site.name)
        place = _widened(_place(axis, like), len(chain.indices) - 1 - chain.at)
        said.append(call("ge", place, chain.indices[chain.at].lag))
    return _all(said)


def _where(site: Site) -> Expr | None:
    """Where an element counts: where it exists, is not missing, and its mask is true."""
    said = [one for one in (existing(site), presence(site), site.mask) if one is not None]
    return _all(said)


def _all(conditions: Sequence[Expr]) -> Expr | None:
    """Where all of some conditions hold, of which data say 0 or 1."""
    if len(conditions) < 2:
        return next(iter(conditions), None)
    return reduce(partial(call, "logical_and"), [_truth(one) for one in conditions])


def _truth(condition: Expr) -> Expr:
    known = isinstance(condition, Builtin) and condition.function in ("lt", "ge", "logical_and")
    return condition if known else call("ne", condition, 0)


def _later(whole: Factor, chain: Chain) -> Factor:
    """The elements of a chain behind its first ones."""
    axis, lag = whole.axes[chain.at], chain.indices[chain.at].lag
    vector = len(event_dims(whole.site))

    def later(expr: Expr, shift: int = 0) -> Expr:
        place = chain.at - len(chain.indices) - (vector if expr is whole.value else 0)
        return Window(
            type=expr.type,
            origin=expr.origin,
            base=expr,
            axis=place,
            index=axis.name,
            shift=shift,
            first=lag,
            size=axis.size,
        )

    made = _cut(whole, chain, later, tuple(replace(one, first=lag) if one is axis else one for one in whole.axes))
    present, missing = presence(whole.site), whole.site.missing
    if present is None or missing is None or made.where is None:
        return made
    # nor does what reads a missing cell count
    return replace(made, where=_all([made.where, *(later(present, by) for by in missing.shifts)]))


def _first(whole: Factor, chain: Chain, draw: FamilyDraw, place: int) -> Factor:
    """One of the first elements of a chain, for each place of the other indices."""
    plates = whole.axes[: len(chain.indices)]
    along = plates[chain.at]

    def element(expr: Expr) -> Expr:
        over = plates if expr is whole.value else plates[len(plates) - len(expr.type.indexed) :]
        others = [axis for axis in over if axis is not along]
        indices: list[Expr] = []
        for axis in over:
            index = number(place, expr) if axis is along else _place(axis, expr)
            behind = 0 if axis is along else len(others) - 1 - others.index(axis)
            indices.append(_widened(index, behind))
        return Index(type=ANY, origin=expr.origin, base=expr, indices=tuple(indices))

    made = _cut(whole, chain, element, tuple(axis for axis in whole.axes if axis is not along))
    return replace(made, draw=draw)


def _cut(whole: Factor, chain: Chain, cut: Callable[[Expr], Expr], axes: tuple[Axis, ...]) -> Factor:
    """A part of a chain: `cut` says it of whatever has the chain's axis."""

    def option(expr: Expr | None) -> Expr | None:
        # an option has the last of the step's axes
        own = expr is not None and len(expr.type.indexed) >= len(chain.indices) - chain.at
        return cut(expr) if own and expr is not None else expr

    # bounds beside the draw are written for an element, as its arguments are
    said = dict(whole.site.limits)
    limits = tuple((key, option(one) or one) if key in said else (key, one) for key, one in whole.limits)
    where, weight = option(whole.where), option(whole.weight)
    return replace(whole, value=cut(whole.value), axes=axes, where=where, weight=weight, limits=limits)


def _widened(expr: Expr, behind: int) -> Expr:
    """The same with so many new axes behind its own one."""
    return Arrange(type=ANY, origin=expr.origin, base=expr, axes=(0, *[None] * behind)) if behind else expr


def _place(axis: Axis, like: Expr) -> IndexValue:
    """The places along an axis."""
    kind = ValueType(None, (None,), sizes=(axis.size,))
    return IndexValue(type=kind, origin=like.origin, name=axis.name, first=0, size=axis.size)
