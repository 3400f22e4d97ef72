"""`: Nat [low=1] <- Poisson(r)`: counts as the space of one draw, with bounds or without."""

from __future__ import annotations

from dataclasses import replace

from qvr_core.semantics.arithmetic.mixture_draws import family_of
from qvr_core.semantics.language.family import support_words
from qvr_core.semantics.scope.environment import StepContext
from qvr_core.semantics.types.codes import FAMILY_MISMATCH, INVALID_OPTION
from qvr_core.syntax.tree.names import Name
from qvr_core.syntax.tree.objects import ObjectExpr, ObjectRef, Size, SpaceExpr
from qvr_core.syntax.tree.options import Number
from qvr_core.syntax.tree.steps import ObserveStep, PredictStep, SampleStep

COUNTS = "Nat"


def on_counts(step: SampleStep | ObserveStep | PredictStep, ctx: StepContext) -> SampleStep | ObserveStep | PredictStep:
    """The step with `Nat` as the space of its draw; reports a family that draws other numbers.

    A file that declares an object `Nat` means that.
    """
    space = _counts(step.space)
    if space is None or ctx.scope.lookup(COUNTS) is not None:
        return step
    family = family_of(step.draw, ctx)
    if family is not None and family.support.kind != "count":
        message = f"`{COUNTS}` are whole numbers from 0, and {family.name} draws {support_words(family)}"
        ctx.scope.report(FAMILY_MISMATCH, message, space.kind.span)
        return replace(step, space=None)
    for option in () if space.options is None else space.options.items:
        value = option.value
        if isinstance(value, Number) and (value.value < 0 or value.value != int(value.value)):
            message = f"`{option.key.text}` of `{COUNTS}` is a whole number from 0"
            ctx.scope.report(INVALID_OPTION, message, value.span)
    return replace(step, space=space)


def _counts(space: ObjectExpr | None) -> SpaceExpr | None:
    if isinstance(space, ObjectRef) and space.name.text == COUNTS:
        return SpaceExpr(Name(COUNTS, space.span), (Size(1, space.span),), None, space.span)
    if isinstance(space, SpaceExpr) and space.kind.text == COUNTS and not space.sizes:
        return replace(space, sizes=(Size(1, space.kind.span),))
    return None
