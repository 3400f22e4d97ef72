"""Where the numbers of a site lie: its family's support, the arguments that bound it, the space beside the draw."""

from __future__ import annotations

from dataclasses import replace

from qvr_core.operations import intervals
from qvr_core.operations.intervals import ANYTHING, INFINITE, UNIT, Interval
from qvr_core.semantics.arithmetic.ranges import range_of, within
from qvr_core.semantics.programs.family_draws import TypedFamily
from qvr_core.semantics.programs.typed_sites import TypedSite
from qvr_core.semantics.scope.environment import StepContext
from qvr_core.semantics.types.model.steps import ArrowDraw


def drawn_range(kind: str, site: TypedSite, ctx: StepContext) -> Interval:
    """The interval of a site's numbers; exact for what a `sample` step draws from a family of its own accord."""
    declared = within(site.type.space)
    if kind == "observe":  # data: bounded, but nobody's draws
        return replace(
            declared if site.family is None else _narrowed(support_of(site.family, ctx), declared), exact=False
        )
    if site.family is not None:
        found = _narrowed(support_of(site.family, ctx), declared)
        found = found if kind == "sample" else replace(found, exact=False)
    else:
        draw = site.site.draw
        args = (draw.args or ()) if isinstance(draw, ArrowDraw) else ()
        found = replace(declared, sources=intervals.every_source([range_of(arg, ctx) for arg in args]))
    own = Interval(sources=frozenset((site.site.name,)))
    return replace(found, sources=intervals.every_source((found, own)))


def part_of(whole: Interval) -> Interval:
    """What is known of one name of a pattern."""
    return Interval(sources=whole.sources)


def _narrowed(found: Interval, declared: Interval) -> Interval:
    low, high = max(found.low, declared.low), min(found.high, declared.high)
    return replace(found, low=low, high=high) if low <= high else replace(ANYTHING, sources=found.sources)


def support_of(typed: TypedFamily, ctx: StepContext) -> Interval:
    """The support of a family with these arguments; its sources are those of arguments that bound it."""
    family, support = typed.family, typed.family.support
    given = {argument.name: argument.value for argument in typed.arguments}
    if support.kind == "finite":
        most = INFINITE if support.high is None else support.high
        return Interval(0.0, most, whole=True, exact=support.high is not None)
    if support.kind == "count" and family.bounded_by is None:
        total = range_of(given[family.counts_to], ctx) if family.counts_to in given else ANYTHING
        return Interval(0.0, total.high, whole=True, exact=family.counts_to is None, sources=total.sources)
    if support.kind != "real":
        return UNIT if support.kind == "Simplex" else ANYTHING
    bounds = (*(family.bounded_by or ()), *((family.above,) if family.above is not None else ()))
    if not bounds:
        low = -INFINITE if support.low is None else support.low
        return Interval(low, INFINITE if support.high is None else support.high, exact=True)
    ends = {name: range_of(given[name], ctx) for name in bounds if name in given}
    low = ends[bounds[0]].low if bounds[0] in ends else -INFINITE
    high = ends[bounds[1]].high if len(bounds) > 1 and bounds[1] in ends else INFINITE
    exact = all(end.low == end.high for end in ends.values())
    return Interval(low, high, exact=exact, sources=intervals.every_source(ends.values()))
