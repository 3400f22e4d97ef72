"""`observe n[i : Row] <- Hurdle(p, Poisson(r[i]))`: a draw of counts with zeros of their own.

The step is checked as one of the family that both are together, whose arguments are the gate, then those of the counts.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from qvr_core.semantics.arithmetic.mixture_draws import report_no_family
from qvr_core.semantics.language.gates import GATED, gated_call, ungated
from qvr_core.semantics.scope.environment import StepContext
from qvr_core.semantics.scope.families import family_named, is_damaged
from qvr_core.semantics.types.codes import FAMILY_ARGUMENTS
from qvr_core.syntax.tree.arithmetic import Arith, ArithCall, ParenArith
from qvr_core.syntax.tree.names import Name
from qvr_core.syntax.tree.steps import ObserveStep, PredictStep, SampleStep

Drawn = TypeVar("Drawn", SampleStep, ObserveStep, PredictStep)


def is_gate(name: Name, ctx: StepContext) -> bool:
    """Whether the word means a gate: unless the file uses it for something else."""
    return name.text in GATED and ctx.scope.lookup(name.text) is None


def with_gate(step: Drawn, ctx: StepContext) -> Drawn:
    """The step with the family that a gate and a family of counts are together; as it is where they are none."""
    draw = step.draw
    if draw.expression is not None or not is_gate(draw.name, ctx):
        return step
    args = draw.args or ()
    gate = next((arg for arg in args if arg.key is not None or not _is_draw(arg.value, ctx)), None)
    rest = [arg for arg in args if arg is not gate]
    counts = _call(rest[0].value) if len(rest) == 1 else None
    if gate is None or counts is None:
        place = rest[0].value.span if gate is not None and len(rest) == 1 else draw.name.span
        what = f"`{draw.name.text}` is called as `{gated_call(draw.name.text)}`"
        ctx.scope.report(FAMILY_ARGUMENTS, f"{what}: a gate, and a family of counts with its arguments", place)
        return step
    family = family_named(counts.func.text, ctx.scope)
    if family is None:
        if not is_damaged(counts.func.text, ctx.scope):
            report_no_family(counts.func, ctx)
        return step
    if (why := ungated(family)) is not None:
        ctx.scope.report(FAMILY_ARGUMENTS, f"`{counts.func.text}` {why}", counts.func.span)
        return step
    name = replace(draw.name, text=f"{draw.name.text}({counts.func.text})")
    return replace(step, draw=replace(draw, name=name, args=(gate, *counts.args)))


def _is_draw(tree: Arith, ctx: StepContext) -> bool:
    """Whether an argument is a family with its arguments."""
    call = _call(tree)
    return call is not None and family_named(call.func.text, ctx.scope) is not None


def _call(tree: Arith) -> ArithCall | None:
    while isinstance(tree, ParenArith):
        tree = tree.inner
    return tree if isinstance(tree, ArithCall) else None
