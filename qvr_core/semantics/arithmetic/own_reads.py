"""What a step with indices reads of its own name: only earlier elements, `v[t - 1]`, are there to be read."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from qvr_core.semantics.arithmetic.indices import set_size, shift_of
from qvr_core.semantics.scope.environment import StepContext
from qvr_core.semantics.types.diagnostics import Edit, Fix
from qvr_core.semantics.types.program_codes import USED_BEFORE_BOUND
from qvr_core.syntax.tree import Arith, Binary, Binder, Comprehension, Gather, ParenArith, Variable
from qvr_core.syntax.walk import walk


def reads_itself(
    trees: Sequence[Arith], own: Collection[str], binders: Sequence[Binder], chain: str | None, ctx: StepContext
) -> bool:
    """Report the first place where a step reads the very element of `own` that it makes.

    `chain` is the index that lags behind, where one does.
    """
    if not own:
        return False
    nodes = [node for tree in trees for node in walk(tree)]
    inner = [binder for node in nodes if isinstance(node, Comprehension) for binder in node.binders]
    sizes = {binder.name.text: set_size(binder, ctx.scope) for binder in (*inner, *binders)}
    indexed = {id(node.base) for node in nodes if isinstance(node, Gather)}
    for node in nodes:
        if isinstance(node, Gather) and isinstance(node.base, Variable) and node.base.name.text in own:
            if not _is_earlier(node, sizes, len(binders), ctx):
                _report(node, node.base.name.text, binders, chain, ctx)
                return True
        elif isinstance(node, Variable) and node.name.text in own and id(node) not in indexed:
            _report(node, node.name.text, binders, chain, ctx)
            return True
    return False


def _is_earlier(node: Gather, sizes: Mapping[str, int | None], axes: int, ctx: StepContext) -> bool:
    """Whether what is read lies before what is made; an index that is computed or runs forward is told elsewhere."""
    shifts = [shift_of(index, sizes, ctx) for index in node.indices[:axes]]
    return any(shift is None or shift.least > 0 for shift in shifts)


def _report(node: Gather | Variable, name: str, binders: Sequence[Binder], chain: str | None, ctx: StepContext) -> None:
    back = chain or binders[-1].name.text
    put = _one_earlier(node, back, ctx) if isinstance(node, Gather) else None
    if put is None:
        places = [one.name.text + (" - 1" if one.name.text == back else "") for one in binders]
        put = f"{name}[{', '.join(places)}]"
    message = f"`{name}` reads itself at the same element; an earlier one is `{put}`"
    fix = Fix(f"Change to `{put}`", (Edit(ctx.scope.origin(node.span), put),), True)
    ctx.scope.report(USED_BEFORE_BOUND, message, node.span, fixes=(fix,))


def _one_earlier(node: Gather, back: str, ctx: StepContext) -> str | None:
    """The text of a gather, one element earlier along the index `back`."""
    for index in node.indices:
        first = index
        while isinstance(first, Binary | ParenArith):
            first = first.left if isinstance(first, Binary) else first.inner
        if isinstance(first, Variable) and first.name.text == back:
            return f"{ctx.text[node.span.start : first.span.end]} - 1{ctx.text[first.span.end : node.span.end]}"
    return None
