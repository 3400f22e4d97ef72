"""What a step with indices reads of its own name: only earlier elements, `v[t - 1]`, which are like the first ones."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from qvr_core.semantics.arithmetic.broadcasting import Axis, axes, is_data
from qvr_core.semantics.arithmetic.elements.site_names import site_name
from qvr_core.semantics.arithmetic.indices import set_size, shift_of
from qvr_core.semantics.arithmetic.read_cycles import makes_element, unconditional
from qvr_core.semantics.scope.environment import StepContext
from qvr_core.semantics.scope.scope import ObjectEntry
from qvr_core.semantics.types.diagnostics import Edit, Fix, Origin
from qvr_core.semantics.types.model.expressions import Constant, Expr
from qvr_core.semantics.types.program_codes import AXES_MISMATCH, USED_BEFORE_BOUND
from qvr_core.semantics.types.spaces import Finite
from qvr_core.syntax.tree.arithmetic import Arith, Binary, Binder, Comprehension, Field, Gather, ParenArith, Variable
from qvr_core.syntax.tree.names import Name
from qvr_core.syntax.tree.objects import ObjectRef
from qvr_core.syntax.walk import walk


def reads_itself(
    trees: Sequence[Arith],
    own: Collection[str],
    binders: Sequence[Binder],
    chain: str | None,
    ctx: StepContext,
    *,
    started: bool,
) -> bool:
    """Report the first place where a step reads the very element of `own` that it makes.

    `chain` is the index that lags behind, where one does; `started`: the step says what the first elements are.
    """
    if not own:
        return False
    nodes = [node for tree in trees for node in walk(tree)]
    inner = [binder for node in nodes if isinstance(node, Comprehension) for binder in node.binders]
    sizes = {binder.name.text: set_size(binder, ctx.scope) for binder in (*inner, *binders)}
    indexed = {id(node.base) for node in nodes if isinstance(node, Gather)}
    indexed |= {id(node.base) for node in nodes if isinstance(node, Field) and site_name(node, ctx) is not None}
    always = {id(node) for tree in trees for node in unconditional(tree)}
    for node in nodes:
        if isinstance(node, Gather) and isinstance(node.base, Variable) and node.base.name.text in own:
            if not _is_earlier(node, sizes, len(binders), ctx):
                name = node.base.name.text
            elif id(node) in always and makes_element(node.indices, binders, binders, ctx.scope):
                put = ctx.text[node.span.start : node.span.end]
                message = f"`{put}` is among the elements that this step makes, so that one of them reads itself"
                ctx.scope.report(USED_BEFORE_BOUND, message, node.span)
                return True
            else:
                name = None
        else:
            bare = isinstance(node, Variable) and node.name.text in own and id(node) not in indexed
            name = node.name.text if bare and isinstance(node, Variable) else None
        if name is not None and isinstance(node, Gather | Variable):
            if chain is None and not started and _unordered(binders[-1:], ctx):
                message = f"`{name}` reads itself at the same element"
                ctx.scope.report(USED_BEFORE_BOUND, message, node.span)
            else:
                _report(node, name, binders, chain, ctx)
            return True
    return False


def _unordered(binders: Sequence[Binder], ctx: StepContext) -> bool:
    """Whether elements come in no order that anything has said: those of an enumeration, or of an open set."""
    for binder in binders:
        entry = ctx.scope.lookup(binder.space.name.text) if isinstance(binder.space, ObjectRef) else None
        space = entry.space.space if isinstance(entry, ObjectEntry) else None
        if isinstance(space, Finite) and (space.labels is not None or not isinstance(space.size, int)):
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


def check_alike(
    name: Name, starts: Sequence[Expr], value: Expr, indices: int, recursive: bool, ctx: StepContext
) -> None:
    """Report first elements that have other axes than the later ones; both have those of `indices` in front, first
    elements one fewer.

    What does not read itself may start from one number for all entries.
    """
    later = _own_axes(value, indices)
    for start in starts:
        first = _own_axes(start, indices - 1)
        if first is None or later is None or (not recursive and not first):
            continue
        sets = [own for _, own in later if own is not None]
        put = _repeated(start, sets[0], ctx) if not first and len(later) == len(sets) == 1 else None
        if not check_elements(name, first, later, start.origin, ctx, put):
            return


def check_elements(
    name: Name, first: Sequence[Axis], later: Sequence[Axis], where: Origin, ctx: StepContext, put: str | None = None
) -> bool:
    """Whether the first element has the axes of later ones; `put` is what may stand in its place."""
    if len(first) == len(later) and all(map(_same, first, later)):
        return True
    message = f"`{name.text}` starts as {_like(first)}, but each later element is {_like(later)}"
    fixes: tuple[Fix, ...] = ()
    if put is not None:
        message += f"; did you mean `from {put}`?"
        fixes = (Fix(f"Change to `{put}`", (Edit(where, put),), True),)
    ctx.scope.report(AXES_MISMATCH, message, where, fixes=fixes)
    return False


def _own_axes(value: Expr, indices: int) -> list[Axis] | None:
    found = axes(value.type)
    return None if found is None or is_data(value.type) else found[indices:]


def _same(left: Axis, right: Axis) -> bool:
    if left[1] is not None and right[1] is not None:
        return left[1] == right[1]
    return not (isinstance(left[0], int) and isinstance(right[0], int)) or int(left[0]) == int(right[0])


def _like(own: Sequence[Axis]) -> str:
    """`a single number`, `a vector over State`, `a vector of 3 numbers`."""
    if not own:
        return "a single number"
    kind = "a vector" if len(own) == 1 else "values"
    if all(name is not None for _, name in own):
        return f"{kind} over {' * '.join(str(name) for _, name in own)}"
    return f"{kind} of {' * '.join(str(int(size)) if isinstance(size, int) else '_' for size, _ in own)} numbers"


def _repeated(start: Expr, name: str, ctx: StepContext) -> str:
    """The text of a vector of one number."""
    if isinstance(start, Constant) and start.value == 0:
        return f"zeros({name})"
    return f"{ctx.text[start.origin.span.start : start.origin.span.end]} * ones({name})"
