"""Hidden counts: `marginalize n[g : Site] <- DiscreteUniform(low[g], high[g])`, summed up to the largest bound.

The bounds are data, so that how many values there are is known before anything is fitted; each place has its own, and
values beyond it have probability 0.
"""

from __future__ import annotations

from qvr_core.semantics.arithmetic.indices import lags
from qvr_core.semantics.language.family import Family, support_words
from qvr_core.semantics.programs.family_draws import TypedFamily
from qvr_core.semantics.programs.observed.data_lets import read_by
from qvr_core.semantics.scope.environment import StepContext
from qvr_core.semantics.types.model.expressions import Arrange, Constant, Expr
from qvr_core.semantics.types.program_codes import CANNOT_MARGINALIZE
from qvr_core.syntax.tree.names import Name
from qvr_core.syntax.tree.steps import MarginalizeStep


def is_summable_count(family: Family) -> bool:
    """Whether it draws counts that one of its arguments bounds."""
    return family.support.kind == "count" and family.counts_to is not None and family.event == 0


def refuse_endless(name: Name, family: Family, ctx: StepContext) -> bool:
    """Report counts that nothing bounds; whether they are such."""
    endless = family.support.kind == "count" and family.counts_to is None and family.event == 0
    if endless:
        message = (
            f"`{name.text}` draws {support_words(family)} without end: sum over `DiscreteUniform(low, high)`, and "
        )
        message += "write what more is known of the counts as a `score` in the block"
        ctx.scope.report(CANNOT_MARGINALIZE, message, name.span)
    return endless


def refuse_past(step: MarginalizeStep, ctx: StepContext) -> bool:
    """Report a hidden count that looks back, whose bound would be another one at each element; whether it does."""
    lag = next(iter(lags([arg.value for arg in step.draw.args or ()], step.binders, ctx).values()), None)
    if lag is not None:
        message = f"the counts `{step.name.text}` do not depend on one another; a chain has a set of states, `: State`"
        ctx.scope.report(CANNOT_MARGINALIZE, message, lag.place)
    return lag is not None


def check_bounds(name: Name, drawn: TypedFamily, ctx: StepContext) -> None:
    """Report a bound that is no data: how many values there are would differ from draw to draw."""
    family = drawn.family
    bounds = {*(family.bounded_by or ()), family.counts_to}
    for argument in drawn.arguments:
        if argument.parameter.name in bounds and _below_zero(argument.value):
            message = f"`{name.text}` has numbers below 0 here, and only those from 0 are counted off"
            ctx.scope.report(CANNOT_MARGINALIZE, message, argument.tree.span)
            return
        why = read_by((argument.value,), (), ctx)[0] if argument.parameter.name in bounds else ""
        if why:
            message = f"the values of `{name.text}` are counted up to its bounds, and `{argument.parameter.name}` "
            message += f"depends on {why}: bounds are data"
            ctx.scope.report(CANNOT_MARGINALIZE, message, argument.tree.span)


def _below_zero(value: Expr) -> bool:
    while isinstance(value, Arrange):
        value = value.base
    return isinstance(value, Constant) and not isinstance(value.value, str) and value.value < 0
