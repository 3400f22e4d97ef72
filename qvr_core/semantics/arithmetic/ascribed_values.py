"""`let c : Row * School = a + b`: the axes of a value, said by the step; values over other sets make a table there."""

from __future__ import annotations

from collections.abc import Sequence

from qvr_core.semantics.arithmetic.alignment import arrange
from qvr_core.semantics.arithmetic.arithmetic import check_arith
from qvr_core.semantics.arithmetic.broadcasting import axes, is_data
from qvr_core.semantics.arithmetic.elementwise import named_value
from qvr_core.semantics.arrows.objects import check_object_expr
from qvr_core.semantics.scope.environment import StepContext
from qvr_core.semantics.types.model.expressions import Expr
from qvr_core.semantics.types.program_codes import ASCRIPTION_MISMATCH
from qvr_core.semantics.types.spaces import Finite, Named, Unknown, factors_of
from qvr_core.syntax.tree.names import Span
from qvr_core.syntax.tree.objects import ObjectExpr
from qvr_core.syntax.tree.steps import LetStep


def ascribed_value(step: LetStep, space: ObjectExpr, ctx: StepContext) -> Expr:
    """The value of a `let` with its axes in the order of the ascription; reports where it has others."""
    named = check_object_expr(space, ctx.scope)
    sets = _sets(named)
    ctx.table = frozenset(sets or ())
    value = check_arith(step.value, ctx)
    ctx.table = frozenset()
    if isinstance(named.space, Unknown) or isinstance(value.type.space, Unknown):
        return value
    if sets is None:
        ctx.scope.require_fit(
            named_value(value, ctx), named, space.span, ASCRIPTION_MISMATCH, "the value is", "the type here is"
        )
        return value
    ctx.plates.update(sets)
    return _laid_out(value, sets, named, space.span, ctx)


def _sets(named: Named) -> Sequence[str] | None:
    """The sets of a product of finite sets; None for a space of real numbers."""
    found = [factor.nominal for factor in factors_of(named.space) if isinstance(factor, Finite)]
    names = [name for name in found if name is not None]
    return names if len(names) == len(factors_of(named.space)) else None


def _laid_out(value: Expr, sets: Sequence[str], named: Named, place: Span, ctx: StepContext) -> Expr:
    found = axes(value.type)
    if found is None or is_data(value.type):
        message = "the axes of the value are not known here: declare the data that it reads"
        ctx.scope.report(ASCRIPTION_MISMATCH, message, place)
        return value
    names = [name for _, name in found]
    plain = [name for name in names if name is not None]
    if sorted(plain) != sorted(sets) or len(set(plain)) < len(plain):
        runs = f"runs over {' * '.join(plain)}" if plain else "is the same for all"
        ctx.scope.report(ASCRIPTION_MISMATCH, f"the value {runs}, and `{named.written}` is written here", place)
        return value
    rest = [at for at, name in enumerate(names) if name is None]
    return arrange(value, [*(names.index(name) for name in sets), *rest])
