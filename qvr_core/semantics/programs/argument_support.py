"""A site as a bare argument of a family: can what it is drawn from be what the family wants?

Only what is certain counts: the value as it was drawn, from a family whose support no argument changes.
"""

from __future__ import annotations

from qvr_core.semantics.language.families import FAMILIES
from qvr_core.semantics.language.family import Family
from qvr_core.semantics.scope.environment import StepContext
from qvr_core.semantics.types.diagnostics import Edit, Fix, Related
from qvr_core.semantics.types.model import Bound, Expr
from qvr_core.semantics.types.program_codes import ARGUMENT_SUPPORT
from qvr_core.semantics.types.spaces import Real, Space, item_of
from qvr_core.syntax.tree import Arith, ParenArith, Variable

# What is wanted, a family to draw it from, and the function from all numbers to it.
_WANTED = {
    "positive": ("must be above 0", "HalfNormal", "exp"),
    "positive vector": ("must be above 0", "HalfNormal", "exp"),
    "unit": ("must be between 0 and 1", "Beta", "sigmoid"),
    "simplex": ("must be a probability vector", "Dirichlet", "softmax"),
}


def check_support(family: Family, name: str, constraint: str, value: Expr, tree: Arith, ctx: StepContext) -> None:
    """Warn of an argument that is drawn from values which the parameter `name` cannot have."""
    while isinstance(tree, ParenArith):
        tree = tree.inner
    if constraint not in _WANTED or not isinstance(tree, Variable) or not isinstance(value, Bound):
        return
    site = value.name
    binding = ctx.find(site) if site == tree.name.text else None
    if binding is None or binding.family is None:
        return
    drawn = FAMILIES[binding.family]
    problem = _outside(drawn, binding.type.space, constraint)
    if problem is None:
        return
    must, better, function = _WANTED[constraint]
    call = f"{function}({site})"
    message = f"`{site}` {problem}, but `{name}` of `{family.name}` {must}: draw `{site}` from `{better}`"
    fixes: tuple[Fix, ...] = ()
    if _takes_any(drawn):
        message += f", or write `{call}` here"
        fixes = (Fix(f"Change to `{call}`", (Edit(ctx.scope.origin(tree.span), call),)),)
    related = (Related(f"`{site}` is drawn from `{drawn.name}` here", binding.origin),)
    ctx.scope.report(ARGUMENT_SUPPORT, message, tree.span, related, fixes)


def _outside(drawn: Family, space: Space | None, constraint: str) -> str | None:
    """What values of a draw cannot stand there, in words; None where all may."""
    # where data decides the shape there is no space, and no bounds but those of the family
    space = Real((1,)) if space is None else item_of(space)
    support = drawn.support
    if drawn.bounded_by is not None or support.kind not in ("real", "count") or not isinstance(space, Real):
        return None
    if (support.low is None or support.low < 0) and (space.low is None or space.low < 0):
        return "may be negative"
    if constraint == "unit" and (support.high is None or support.high > 1) and (space.high is None or space.high > 1):
        return "may be above 1"
    return None


def _takes_any(drawn: Family) -> bool:
    """True for draws that are any number, for which `exp` and its like are made."""
    return drawn.support.low is None
