"""What mends an index over another set than the value's: a name that looks it up, or another declaration."""

from __future__ import annotations

from qvr_core.semantics.scope.environment import Binding, Running, StepContext
from qvr_core.semantics.types.diagnostics import Edit, Fix
from qvr_core.semantics.types.spaces import Finite
from qvr_core.syntax.tree.arithmetic import Arith


def lookups(name: str | None, one: Running, tree: Arith, ctx: StepContext) -> tuple[Fix, ...]:
    """`school[i]` for each value in sight that has an element of the set for each element of the index's."""
    found: list[Fix] = []
    own = one.space.nominal if one.space is not None else None
    for text, binding in ctx.bindings.items():
        space = binding.type.space
        if isinstance(space, Finite) and space.nominal == name is not None and binding.type.indexed == (own,):
            put = f"{text}[{one.name}]"
            found.append(Fix(f"Change to `{put}`", (Edit(ctx.scope.origin(tree.span), put),), True))
    return tuple(found)


def declared_over(declared: Binding | None, base: str, one: Running) -> tuple[Fix, ...]:
    """Data that nothing looks up may be declared over the wrong set."""
    if declared is None or declared.over_place is None:
        return ()
    return (Fix(f"Declare {base} over {one.named.written}", (Edit(declared.over_place, one.named.written),)),)
