"""`u.tau`: the latent `tau` of a template drawn as `u`, as a guide names it."""

from __future__ import annotations

from qvr_core.semantics.scope.environment import StepContext
from qvr_core.syntax.tree.arithmetic import Arith, Field, Variable


def site_name(expr: Arith, ctx: StepContext) -> str | None:
    """The name under which an expression's field is bound; None where it is a factor of a value."""
    parts: list[str] = []
    while isinstance(expr, Field):
        parts.append(expr.field.text)
        expr = expr.base
    if not parts or not isinstance(expr, Variable):
        return None
    name = ".".join((expr.name.text, *reversed(parts)))
    return name if name in ctx.bindings else None
