"""Families in the formula of a draw: `draw = loc + scale * Normal(0, 1)` draws once for each that stands there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from qvr_core.semantics.language.family import Family
from qvr_core.semantics.programs.family_draws import check_family
from qvr_core.semantics.programs.site_ranges import support_of
from qvr_core.semantics.scope.environment import Binding, StepContext
from qvr_core.semantics.types.model.expressions import Bound, Builtin, Expr, ValueType
from qvr_core.semantics.types.model.families import InnerDraw
from qvr_core.semantics.types.program_codes import FAMILY_FORMULA, SAMPLED_IN_LET
from qvr_core.semantics.types.spaces import Named, Unknown
from qvr_core.syntax.tree.arithmetic import ArithCall
from qvr_core.syntax.tree.steps import Draw

Drawing = Callable[[ArithCall, Family], Expr]


def refused(ctx: StepContext) -> Drawing:
    """What the call of a family comes to where nothing is drawn."""

    def report(call: ArithCall, family: Family) -> Expr:
        message = f"`{family.name}` is drawn from, and only `draw = …` draws"
        ctx.scope.report(SAMPLED_IN_LET, message, call.func.span)
        return Builtin(type=ValueType(Unknown()), origin=ctx.scope.origin(call.span), function=family.name, args=())

    return report


@dataclass(slots=True)
class InnerDraws:
    """The draws that a formula makes, in the order in which they are made."""

    made: list[InnerDraw] = field(default_factory=list[InnerDraw])

    def at(self, ctx: StepContext) -> Drawing:
        """What a call of a family comes to in this formula."""

        def drawn(call: ArithCall, family: Family) -> Expr:
            return self._drawn(call, family, ctx)

        return drawn

    def _drawn(self, call: ArithCall, family: Family, ctx: StepContext) -> Expr:
        scope = ctx.scope
        if family.improper or not family.drawn:
            why = "has no draws" if family.improper else "does not say how to draw"
            scope.report(FAMILY_FORMULA, f"`{family.name}` {why}", call.func.span)
        typed = check_family(Draw(call.func, call.args, None, call.span), family, None, ctx)
        name = f"draw {len(self.made) + 1}"
        origin = scope.origin(call.span)
        self.made.append(InnerDraw(name, typed.model, typed.type))
        space = typed.type.space
        named = Named(Unknown() if space is None else space, family.name)
        ctx.bindings[name] = Binding("sample", typed.type, named, origin, range=support_of(typed, ctx))
        return Bound(type=typed.type, origin=origin, name=name)
