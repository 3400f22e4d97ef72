"""`sample b : Real 1 [low=a, high=c[g]] <- Normal(0.0, 1.0)`: bounds of a step that are names of the program, or
computed.

The bounds are arguments of the truncated family, so they have plates as the others do; a name that runs over sets of
the step's indices is read at these, as what stands behind `mask=` is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import cast

from qvr_core.semantics.arithmetic.arithmetic import check_arith
from qvr_core.semantics.arithmetic.broadcasting import axes
from qvr_core.semantics.arithmetic.mixture_draws import family_of
from qvr_core.semantics.arrows.objects import check_object_expr
from qvr_core.semantics.language.mixtures import component_names
from qvr_core.semantics.language.truncated import HIGHEST, LOWEST, TRUNCATED
from qvr_core.semantics.programs.families.counts import COUNTS
from qvr_core.semantics.programs.typed_sites import TypedSite
from qvr_core.semantics.scope.environment import StepContext
from qvr_core.semantics.types.codes import FAMILY_MISMATCH, INVALID_OPTION
from qvr_core.semantics.types.diagnostics import Code, Severity, within
from qvr_core.semantics.types.model.families import FamilyDraw
from qvr_core.semantics.types.program_codes import DUPLICATE_AXIS, STEP_OPTION
from qvr_core.semantics.types.spaces import Finite, Unknown
from qvr_core.syntax.tree.arithmetic import Arith, ArithArg, Gather, Literal, Variable
from qvr_core.syntax.tree.names import Name, Span
from qvr_core.syntax.tree.objects import ObjectExpr, SpaceExpr
from qvr_core.syntax.tree.options import Formula, Number, Option, Word
from qvr_core.syntax.tree.steps import ObserveStep, PredictStep, SampleStep

Drawn = SampleStep | ObserveStep | PredictStep
_ENDS = {"low": LOWEST.name, "high": HIGHEST.name}


def has_named_bounds(step: Drawn) -> bool:
    """Whether a bound of the space beside the draw is more than a number."""
    return any(isinstance(option.value, Word | Formula) for option in _bounds(step))


def _bounds(step: Drawn) -> tuple[Option, ...]:
    space = step.space
    real = isinstance(space, SpaceExpr) and space.kind.text in ("Real", COUNTS) and space.options is not None
    items = space.options.items if real and isinstance(space, SpaceExpr) and space.options is not None else ()
    known = all(option.key.text in _ENDS and isinstance(option.value, Word | Number | Formula) for option in items)
    return items if known else ()


def bounded_site(step: Drawn, check: Callable[[Drawn, StepContext], TypedSite], ctx: StepContext) -> TypedSite:
    """The site of a step with such bounds: checked without them, then with them as arguments of its family."""
    space = step.space
    assert isinstance(space, SpaceExpr)
    told = len(ctx.scope.diagnostics)
    plain = replace(step, space=replace(space, options=None))
    found = check(plain, ctx)
    if any(one.code.severity is Severity.ERROR for one in ctx.scope.diagnostics[told:]):
        return found
    if family_of(step.draw, ctx) is None and ctx.scope.lookup(step.draw.name.text) is None:
        return found  # reported: the family is misspelt
    problem = _problem(step, found, ctx)
    if problem is not None:
        code, message, place = problem
        ctx.scope.report(code, message, place)
        return found
    ends = [_argument(option, step, ctx) for option in _bounds(step)]
    given = tuple(end for end in ends if end is not None)
    if len(given) < len(ends):
        return found
    name = replace(step.draw.name, text=f"{TRUNCATED}({step.draw.name.text})")
    told = len(ctx.scope.diagnostics)
    made = check(replace(plain, draw=replace(step.draw, name=name, args=(*(step.draw.args or ()), *given))), ctx)
    # what is to be said of the other arguments has been
    later = ctx.scope.diagnostics[told:]
    del ctx.scope.diagnostics[told:]
    places = [ctx.scope.origin(end.span) for end in given]
    ctx.scope.diagnostics.extend(one for one in later if any(within(one.place, place) for place in places))
    return made


def _problem(step: Drawn, found: TypedSite, ctx: StepContext) -> tuple[Code, str, Span] | None:
    """Why the draw cannot have such bounds, and what is to blame."""
    family = family_of(step.draw, ctx)
    assert step.space is not None
    bounds = _bounds(step)
    if len(bounds) > 1 and bounds[0].key.text == bounds[1].key.text:
        return INVALID_OPTION, f"`{bounds[1].key.text}` is given twice", bounds[1].key.span
    if family is None or not isinstance(found.site.draw, FamilyDraw):
        return FAMILY_MISMATCH, "bounds are of a draw from a family, which is truncated there", step.space.span
    if component_names(family.name) is not None or found.site.chain is not None or step.start is not None:
        what = "a chain" if component_names(family.name) is None else "a mixture"
        return INVALID_OPTION, f"bounds of {what} are numbers", _first(step)
    if family.event or family.support.kind not in ("real", "count") or len(_sizes(step)) != 1 or _sizes(step)[0] != 1:
        return INVALID_OPTION, "bounds that are not numbers are of single numbers: `Real 1`", _first(step)
    if not family.cdf and not family.improper:
        return FAMILY_MISMATCH, f"{family.name} has no cdf by which it could be truncated", step.space.span
    for option in step.options.items if step.options is not None else ():
        if option.key.text == "noncentred" or option.key.text.startswith("truncate_"):
            message = f"`{option.key.text}` does not go together with bounds beside the draw, which truncate it"
            return STEP_OPTION, message, option.key.span
    return None


def _first(step: Drawn) -> Span:
    return next(option.value.span for option in _bounds(step) if isinstance(option.value, Word | Formula))


def _sizes(step: Drawn) -> list[object]:
    return [size.value for size in step.space.sizes] if isinstance(step.space, SpaceExpr) else []


def _argument(option: Option, step: Drawn, ctx: StepContext) -> ArithArg | None:
    """A bound as an argument; None where it is no number for each element, which is reported."""
    value = option.value
    assert isinstance(value, Word | Number | Formula)
    key = Name(_ENDS[option.key.text], option.key.span)
    if isinstance(value, Number):
        return ArithArg(key, Literal(value.value, value.text, value.span), value.span)
    if isinstance(value, Formula):
        return ArithArg(key, cast("Arith", value.tree), value.span)
    tree: Arith = Variable(Name(value.text, value.span))
    told = len(ctx.scope.diagnostics)
    kind = check_arith(tree, ctx).type
    own_names = [step.name] if isinstance(step, ObserveStep | PredictStep) else step.pattern.names
    if len(ctx.scope.diagnostics) > told or isinstance(kind.space, Unknown):
        return None
    if any(own.text == value.text for own in own_names):
        return None  # reported: bound only here
    found = axes(kind)
    if found is None:
        message = f"nothing says what `{value.text}` runs over: declare it, `data {value.text} : …`"
        ctx.scope.report(INVALID_OPTION, message, value.span)
        return None
    indices: list[Arith] = []
    for _, name in found:
        fitting = [one for one in step.binders if name is not None and _set(one.space, ctx) == name]
        own = fitting[0] if fitting else None
        if len(fitting) > 1:
            both = " and ".join(f"`{one.name.text}`" for one in fitting)
            message = f"`{value.text}` runs over {name}, and so do {both}: give it a `let` with the index that is meant"
            ctx.scope.report(DUPLICATE_AXIS, message, value.span)
            return None
        if own is None:
            over = name or "several numbers"
            ctx.scope.report(INVALID_OPTION, f"`{value.text}` runs over {over}, and no index of this step", value.span)
            return None
        indices.append(Variable(Name(own.name.text, value.span)))
    if indices:
        tree = Gather(tree, tuple(indices), value.span)
    return ArithArg(key, tree, value.span)


def _set(space: ObjectExpr, ctx: StepContext) -> str | None:
    found = check_object_expr(space, ctx.scope).space
    return found.nominal if isinstance(found, Finite) else None
