"""`observe n[i : Row] <- Hurdle(p, Poisson(r[i]))`: a draw of counts with zeros of their own.

The step is checked as one of the family that both are together, whose arguments are the gate, then those of the counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from qvr_core.semantics.arithmetic.mixture_draws import is_mixture, report_no_family
from qvr_core.semantics.language.gates import GATED, gated_call, ungated
from qvr_core.semantics.scope.environment import StepContext
from qvr_core.semantics.scope.families import family_named, is_damaged
from qvr_core.semantics.types.codes import FAMILY_ARGUMENTS
from qvr_core.syntax.tree.arithmetic import Arith, ArithArg, ArithCall, ParenArith
from qvr_core.syntax.tree.names import Name
from qvr_core.syntax.tree.steps import ObserveStep, PredictStep, SampleStep

Drawn = TypeVar("Drawn", SampleStep, ObserveStep, PredictStep)


def is_gate(name: Name, ctx: StepContext) -> bool:
    """Whether the word means a gate: unless the file uses it for something else."""
    return name.text in GATED and ctx.scope.lookup(name.text) is None


def with_gate(step: Drawn, ctx: StepContext) -> Drawn:
    """The step with the family that a gate and a family of counts are together, the components of a mixture likewise;
    as it is where they are none."""
    draw = step.draw
    if draw.expression is not None:
        return step
    if is_mixture(draw.name, ctx):
        args = tuple(replace(arg, value=_component(arg.value, ctx)) for arg in draw.args or ())
        return replace(step, draw=replace(draw, args=args)) if draw.args else step
    if not is_gate(draw.name, ctx):
        return step
    found = _together(draw.name, draw.args or (), ctx)
    return step if found is None else replace(step, draw=replace(draw, name=found[0], args=found[1]))


def _component(tree: Arith, ctx: StepContext) -> Arith:
    call = _call(tree)
    if call is None or not is_gate(call.func, ctx):
        return tree
    found = _together(call.func, call.args, ctx)
    return tree if found is None else replace(call, func=found[0], args=found[1])


def _together(name: Name, args: Sequence[ArithArg], ctx: StepContext) -> tuple[Name, tuple[ArithArg, ...]] | None:
    """The name of the family that a gate and its counts are, with the arguments of both; None (reported) of others."""
    gate = next((arg for arg in args if arg.key is not None or not _is_draw(arg.value, ctx)), None)
    rest = [arg for arg in args if arg is not gate]
    counts = _call(rest[0].value) if len(rest) == 1 else None
    if gate is None or counts is None:
        place = rest[0].value.span if gate is not None and len(rest) == 1 else name.span
        what = f"`{name.text}` is called as `{gated_call(name.text)}`"
        ctx.scope.report(FAMILY_ARGUMENTS, f"{what}: a gate, and a family of counts with its arguments", place)
        return None
    if is_mixture(counts.func, ctx):
        inside = f"`Mixture(weights, {gated_call(name.text)}, …)`"
        ctx.scope.report(FAMILY_ARGUMENTS, f"a gate is of one family: put it before each, {inside}", counts.func.span)
        return None
    family = family_named(counts.func.text, ctx.scope)
    if family is None:
        if not is_damaged(counts.func.text, ctx.scope):
            report_no_family(counts.func, ctx)
        return None
    if (why := ungated(family)) is not None:
        ctx.scope.report(FAMILY_ARGUMENTS, f"`{counts.func.text}` {why}", counts.func.span)
        return None
    return replace(name, text=f"{name.text}({counts.func.text})"), (gate, *counts.args)


def _is_draw(tree: Arith, ctx: StepContext) -> bool:
    """Whether an argument is a family with its arguments."""
    call = _call(tree)
    return call is not None and family_named(call.func.text, ctx.scope) is not None


def _call(tree: Arith) -> ArithCall | None:
    while isinstance(tree, ParenArith):
        tree = tree.inner
    return tree if isinstance(tree, ArithCall) else None
