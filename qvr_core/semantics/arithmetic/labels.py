"""Elements of an enumeration by their labels, and names that look like one misspelt."""

from __future__ import annotations

from qvr_core.semantics.arithmetic.broadcasting import SCALAR
from qvr_core.semantics.language.spelling import closest, distance
from qvr_core.semantics.scope.environment import StepContext
from qvr_core.semantics.types.diagnostics import Edit, Fix
from qvr_core.semantics.types.model import Constant, Expr
from qvr_core.semantics.types.program_codes import POSSIBLE_TYPO
from qvr_core.semantics.types.spaces import Finite, Space
from qvr_core.syntax.tree import Name


def labelled(name: Name, space: Space | None, ctx: StepContext) -> Expr | None:
    """The element of a set that a name says; one that is not bound and nearly says one is told."""
    if not isinstance(space, Finite) or space.labels is None:
        return None
    if name.text in space.labels:
        return Constant(type=SCALAR, origin=ctx.scope.origin(name.span), value=space.labels.index(name.text))
    bound = (ctx.bindings, ctx.locals, ctx.aliases, ctx.indices, ctx.hidden)
    if not any(name.text in names for names in bound) and ctx.scope.lookup(name.text) is None:
        _note_misspelt(name, space.labels, ctx)
    return None


def _note_misspelt(name: Name, labels: tuple[str, ...], ctx: StepContext) -> None:
    near = closest(name.text, labels)
    shorter = 0 if near is None else min(len(near), len(name.text))
    limit = 2 if shorter >= 6 else 1
    if near is None or shorter < 4 or distance(name.text, near, limit) > limit:
        return
    place = ctx.scope.origin(name.span)
    message = f"`{name.text}` is data that the program must be given; did you mean the element `{near}`?"
    ctx.scope.report(POSSIBLE_TYPO, message, place, fixes=(Fix(f"Change to `{near}`", (Edit(place, near),)),))
