"""Draws on a smaller space than their family's own: `sample s : Real 1 [low=0.0] <- Normal(1.0, 2.0)`.

The ascription of the step truncates the family; a bound in a `data` line checks data and truncates nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from qvr_core.semantics.arithmetic.broadcasting import SCALAR, by_place
from qvr_core.semantics.language.families import FAMILIES
from qvr_core.semantics.language.family import Family, interval, support_words
from qvr_core.semantics.language.truncated import FLAT, FLAT_ON, HIGHEST, LOWEST, truncated
from qvr_core.semantics.programs.family_draws import FamilyArgument, TypedFamily
from qvr_core.semantics.programs.step_options import StepOptions
from qvr_core.semantics.scope.environment import StepContext
from qvr_core.semantics.types.codes import FAMILY_MISMATCH
from qvr_core.semantics.types.model.expressions import Constant, Expr
from qvr_core.semantics.types.model.families import FamilyDraw
from qvr_core.semantics.types.program_codes import STEP_OPTION
from qvr_core.semantics.types.spaces import Constrained, Named, Real, Space, item_of
from qvr_core.syntax.tree.arithmetic import Literal
from qvr_core.syntax.tree.names import Span

_ROUNDING = 1e-3
"""A bound of π is written with a few digits."""

Ends = tuple[float | None, float | None]


def family_on(family: Family, space: Named | None) -> Family:
    """The family that is meant beside a space: `Flat` is on vectors and matrices, too."""
    inner = None if space is None else item_of(space.space)
    if family is FAMILIES[FLAT] and isinstance(inner, Constrained) and inner.kind in FLAT_ON:
        return FAMILIES[f"{FLAT}({inner.kind})"]
    return family


def narrowed(
    drawn: TypedFamily, space: Named | None, place: Span | None, options: StepOptions | None, ctx: StepContext
) -> TypedFamily:
    """The draw on the space that stands at `place`, truncated where that is smaller than what its family draws from.

    Reports a family that cannot be truncated, bounds between which it draws nothing, and options beside them.
    """
    if space is None or place is None or (wanted := beyond(drawn, space)) is None:
        return drawn
    problem = _problem(drawn, space, wanted)
    if problem is not None:
        ctx.scope.report(FAMILY_MISMATCH, problem, place)
        return drawn
    if options is not None and (beside := _beside(drawn.family, space, options)) is not None:
        ctx.scope.report(STEP_OPTION, *beside)
        return drawn
    origin = ctx.scope.origin(place)
    family = truncated(drawn.family)
    ends = [(one, end) for one, end in zip((LOWEST, HIGHEST), wanted, strict=True) if end is not None]
    given = [
        FamilyArgument(one.name, one, Constant(type=SCALAR, origin=origin, value=end), Literal(end, f"{end:g}", place))
        for one, end in ends
    ]
    args = (*drawn.model.args, *((one.name, one.value) for one in given))
    model = replace(drawn.model, family=family.name, args=args)
    return replace(drawn, family=family, arguments=(*drawn.arguments, *given), model=model)


def has_places(draw: FamilyDraw, space: Space | None) -> bool:
    """Whether an ordered vector has a number of its own for each place."""
    if not isinstance(space, Constrained) or space.kind != "Ordered" or draw.declared:
        return False
    parameters = FAMILIES[draw.family].parameters
    ranks = {name: one.rank for one in parameters for name in (one.name, *dict(one.alternatives))}
    return any(by_place(value, ranks[name], space.size) for name, value in draw.args)


def without_bounds(space: Space) -> Space:
    """A space without the bounds that truncate what is drawn in it."""
    if isinstance(space, Real):
        return Real(space.shape)
    return replace(space, low=None, high=None) if isinstance(space, Constrained) else space


def beyond(drawn: TypedFamily, space: Named) -> Ends | None:
    """The bounds of a space beyond which the family may draw; None where it draws inside of all."""
    inner, family = item_of(space.space), drawn.family
    if not isinstance(inner, Real | Constrained) or family.event or family.support.kind not in ("real", "count"):
        return None
    low, high = own_ends(family, {one.name: one.value for one in drawn.arguments})
    below = inner.low is not None and (low is None or low < inner.low)
    above = inner.high is not None and (high is None or high > inner.high + _ROUNDING)
    found = (inner.low if below else None, inner.high if above else None)
    return None if found == (None, None) else found


def own_ends(family: Family, args: Mapping[str, Expr]) -> Ends:
    """Between which numbers the family draws, as far as its arguments are numbers."""
    low, high = family.support.low, family.support.high
    if family.bounded_by is not None:
        low, high = (_number(args.get(name), end) for name, end in zip(family.bounded_by, (low, high), strict=True))
    if family.above is not None:
        low = _number(args.get(family.above), low)
    if family.counts_to is not None:
        high = _number(args.get(family.counts_to), high)
    return low, high


def _number(value: Expr | None, otherwise: float | None) -> float | None:
    if not isinstance(value, Constant) or isinstance(value.value, str) or not math.isfinite(value.value):
        return otherwise
    return float(value.value)


def _problem(drawn: TypedFamily, space: Named, wanted: Ends) -> str | None:
    family = drawn.family
    inner = item_of(space.space)
    assert isinstance(inner, Real | Constrained)
    if not family.cdf and not family.improper:
        ends = inner.low, inner.high
        supports = [(one.name, one.support) for one in FAMILIES.values() if not one.event and not one.bounded_by]
        fitting = [name for name, own in supports if own.kind == "real" and (own.low, own.high) == ends]
        has = f"; {', '.join(fitting[:3])} draw from there" if fitting else ""
        return (
            f"{family.name} draws {support_words(family)} and has no cdf by which it could be truncated to "
            f"`{space.written}`{has}"
        )
    low, high = own_ends(family, {one.name: one.value for one in drawn.arguments})
    first = max((end for end in (low, wanted[0]) if end is not None), default=-math.inf)
    last = min((end for end in (high, wanted[1]) if end is not None), default=math.inf)
    empty = math.ceil(first) > math.floor(last) if family.discrete and _finite(first, last) else first > last
    if not empty and (family.discrete or first < last):
        return None
    return f"{family.name} draws nothing in `{space.written}`: its draws are {interval(low, high)}"


def _finite(first: float, last: float) -> bool:
    return math.isfinite(first) and math.isfinite(last)


def _beside(family: Family, space: Named, options: StepOptions) -> tuple[str, Span] | None:
    """What is wrong with an option beside bounds, and where it stands."""
    key = next((key for key in options.limits if key.startswith("truncate_")), None)
    if key is not None:
        message = f"`: {space.written}` truncates {family.name} already: write both bounds there, without `{key}`"
        return message, options.limits[key].key
    if options.noncentred is not None:
        message = f"`noncentred` is of a draw without bounds, and `: {space.written}` truncates {family.name}"
        return message, options.noncentred.key.span
    return None
