"""What is drawn after the fit: `predict` steps and the lets that read them; nothing that a fit needs may."""

from __future__ import annotations

from dataclasses import replace

from qvr_core.semantics.language.family import Family
from qvr_core.semantics.scope.environment import Binding, StepContext
from qvr_core.semantics.scope.scope import Scope
from qvr_core.semantics.types.codes import UNSUPPORTED
from qvr_core.semantics.types.diagnostics import Origin, Related
from qvr_core.semantics.types.model.expressions import Bound
from qvr_core.semantics.types.model.steps import StepModel
from qvr_core.semantics.types.program_codes import PREDICTED_VALUE
from qvr_core.semantics.types.walk import all_steps, operands, values, walk
from qvr_core.syntax.tree.declarations import Item
from qvr_core.syntax.tree.names import Span
from qvr_core.syntax.tree.steps import LetStep, PredictStep

Bindings = list[tuple[str, Binding]]


def follow_predictions(node: Item | None, model: StepModel | None, binds: Bindings, ctx: StepContext) -> Bindings:
    """What a step binds, marked where it is only known after the fit; reports a step that must be known before."""
    found = {name: binding for name, binding in ctx.reads.items() if binding is not None and binding.predicted}
    if isinstance(node, PredictStep) or (found and isinstance(node, LetStep)):
        return [(name, replace(binding, predicted=True)) for name, binding in binds]
    for name, binding in list(found.items())[:1]:
        report_predicted(name, _place(name, model), binding, ctx.scope)
    return binds


def report_predicted(name: str, place: Origin | None, binding: Binding, scope: Scope) -> None:
    """A value that is drawn after the fit, read where only the fit itself may be."""
    drawn = "is drawn" if binding.kind == "predict" else "depends on what is drawn"
    message = f"`{name}` {drawn} after the fit, so only `predict` and `let` may read it"
    related = (Related(f"`{name}` is bound here", binding.origin),)
    scope.report(PREDICTED_VALUE, message, place or binding.origin, related)


def report_predict_inside(step: PredictStep, ctx: StepContext) -> None:
    """A `predict` inside `marginalize`."""
    message = "what is drawn after the fit has no place inside `marginalize`: move this line below the block"
    ctx.scope.report(PREDICTED_VALUE, message, Span(step.span.start, step.span.start + len("predict")))


def report_undrawn(step: PredictStep, family: Family, ctx: StepContext) -> None:
    """A `predict` step of a family that has no draws."""
    if family.improper:
        why, remedy = "is improper and has no draws", "name one that has a distribution"
    elif not family.drawn:
        why, remedy = "does not say how it is drawn", "add a line `draw = …` to it"
    else:
        return
    message = f"`predict` draws, and `{step.draw.name.text}` {why}: {remedy}"
    ctx.scope.report(UNSUPPORTED, message, step.draw.name.span)


def _place(name: str, model: StepModel | None) -> Origin | None:
    """Where a step reads a name."""
    for step in all_steps(() if model is None else (model,)):
        for value in values(step):
            for part in walk(value, operands):
                if isinstance(part, Bound) and part.name == name:
                    return part.origin
    return None
