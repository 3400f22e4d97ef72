"""Gathers: `theta[school]`, `phi[z, w]`, `x[0]`."""

from __future__ import annotations

from collections.abc import Sequence

from qvr_core.semantics.arithmetic.alignment import align
from qvr_core.semantics.arithmetic.broadcasting import Axis, axes, from_axes, is_data, plate_axes, with_axes
from qvr_core.semantics.arithmetic.data_uses import check_uses
from qvr_core.semantics.arithmetic.elements.real_indices import check_index
from qvr_core.semantics.arithmetic.elements.sizes import with_sizes, without_sizes
from qvr_core.semantics.arithmetic.elementwise import Check, broadcast_shape, words
from qvr_core.semantics.arithmetic.indexing import gather, hidden_state
from qvr_core.semantics.arithmetic.labels import label_at
from qvr_core.semantics.scope.environment import StepContext
from qvr_core.semantics.scope.scope import ObjectEntry
from qvr_core.semantics.types.axes import indexed
from qvr_core.semantics.types.diagnostics import Edit, Fix, Related
from qvr_core.semantics.types.model.expressions import Constant, Data, Expr, Index, ValueType
from qvr_core.semantics.types.program_codes import INDEX_MISMATCH, INDEX_NOT_INTEGER, UNKNOWN_LABEL
from qvr_core.semantics.types.spaces import Constrained, Dim, Finite, Real, Seq, Unknown
from qvr_core.semantics.types.subspace import fit
from qvr_core.syntax.tree.arithmetic import Arith, Binary, Gather, Literal, Variable
from qvr_core.syntax.tree.names import Span


def check_gather(expr: Gather, ctx: StepContext, check: Check) -> Expr:
    """`base[i, …]`: the leading axes of `base` are indexed; what the indices run over takes their place."""
    if isinstance(expr.base, Variable) and expr.base.name.text in ctx.hidden:
        return hidden_state(expr, ctx.hidden[expr.base.name.text], ctx, check)
    for tree in expr.indices:
        _check_whole(tree, ctx)
    value = check(expr.base, ctx)
    base = with_sizes(value, len(expr.indices), ctx.scope.origin(expr.base.span))
    picked = _running(expr, base, ctx, check) if ctx.indices else _picked(expr, base, ctx, check)
    return (
        picked if base is value else without_sizes(picked, value.type, len(expr.indices), ctx.scope.origin(expr.span))
    )


def _picked(expr: Gather, base: Expr, ctx: StepContext, check: Check) -> Expr:
    """The same in a step without running indices."""
    runs = [] if isinstance(base.type.space, Seq) else axes(base.type) or []
    sets = [*(name for _, name in runs), *[None] * len(expr.indices)]
    named = zip(expr.indices, sets, strict=False)
    indices = tuple(
        _label(tree, over, ctx) or _nameless(tree, at, runs, expr, base, ctx) or check(tree, ctx)
        for at, (tree, over) in enumerate(named)
    )
    origin = ctx.scope.origin(expr.span)
    for index, tree in zip(indices, expr.indices, strict=True):
        check_index(index, tree, ctx)
    checked = _type(expr, base, indices, ctx)
    if len(indices) == 1 or isinstance(checked.space, Unknown):
        return Index(type=checked, origin=origin, base=base, indices=indices)
    # several indices meet by the names of their axes, as any two operands do
    texts = [words(tree, "the index") for tree in expr.indices]
    aligned = align(indices, texts, origin, ctx)
    if aligned.failed:
        return Index(type=ValueType(Unknown(), rows=checked.rows), origin=origin, base=base, indices=indices)
    if any(one is not other for one, other in zip(aligned.values, indices, strict=True)):
        met = broadcast_shape(list(zip(aligned.values, texts, strict=True)), origin, ctx)
        checked = _behind(axes(met) or [], base.type, axes(base.type) or [], len(indices), checked.rows)
    return Index(type=checked, origin=origin, base=base, indices=tuple(aligned.values))


def _check_whole(tree: Arith, ctx: StepContext) -> None:
    """A number that lies between two elements, alone or added to an index."""
    while isinstance(tree, Binary) and tree.operator in ("+", "-"):
        _check_whole(tree.right, ctx)
        tree = tree.left
    if isinstance(tree, Literal) and isinstance(tree.value, float) and not tree.value.is_integer():
        message = f"{tree.text} is no whole number, and an index is the place of an element"
        ctx.scope.report(INDEX_MISMATCH, message, tree.span)


def _running(expr: Gather, base: Expr, ctx: StepContext, check: Check) -> Expr:
    """The same in a step whose indices run."""
    runs = [] if isinstance(base.type.space, Seq) else axes(base.type) or []
    sets = [name for _, name in runs if name is None or not indexed(name)]
    free = [(None, name) for name in sets]
    found = {
        at: _label(tree, over, ctx) or _nameless(tree, at, free, expr, base, ctx)
        for at, (tree, over) in enumerate(zip(expr.indices, [*sets, *[None] * len(expr.indices)], strict=False))
    }
    return gather(expr, base, {at: label for at, label in found.items() if label is not None}, ctx, check)


def _label(tree: Arith, over: str | None, ctx: StepContext) -> Expr | None:
    """An index that names an element of the set that the axis runs over (`u[dog]`); bound names hide labels."""
    entry = ctx.scope.lookup(over) if over is not None and isinstance(tree, Variable | Literal) else None
    return label_at(tree, entry.space.space if isinstance(entry, ObjectEntry) else None, ctx)


def _nameless(
    tree: Arith, at: int, runs: Sequence[Axis], expr: Gather, base: Expr, ctx: StepContext
) -> Constant | None:
    """A text in quotes where no set says which element it is: a mistake, and what stands for it then."""
    if not isinstance(tree, Literal) or not isinstance(tree.value, str) or isinstance(base.type.space, Unknown):
        return None
    known = bool(runs) or not (is_data(base.type) or isinstance(base.type.space, Seq))
    if known and (at >= len(runs) or runs[at][1] is not None):
        return None
    what = words(expr.base, "the value")
    message = f"no set says which element of {what} `{tree.value}` is"
    advice = "its elements are numbered from 0" if known else "declare over which set it runs"
    ctx.scope.report(UNKNOWN_LABEL, f"{message}: {advice}", tree.span)
    return Constant(type=ValueType(Unknown()), origin=ctx.scope.origin(tree.span), value=0)


def _type(expr: Gather, base: Expr, indices: tuple[Expr, ...], ctx: StepContext) -> ValueType:
    kind = base.type
    rows = kind.rows or any(index.type.rows for index in indices)
    if isinstance(kind.space, Seq) and not kind.indexed and _whole(indices[0]) is not None:
        inner = ValueType(kind.space.item, rows=rows)
        return inner if len(indices) == 1 else ValueType(None, rows=rows)
    shape = None if isinstance(kind.space, Seq) else axes(kind)
    if shape is None:
        return ValueType(Unknown() if isinstance(kind.space, Unknown) else None, rows=rows)
    if len(indices) > len(shape):
        _too_many(expr, len(shape), ctx)
        return ValueType(Unknown(), rows=rows)
    for axis, index, tree in zip(shape, indices, expr.indices, strict=False):
        _check_axis(axis, index, tree, expr, ctx)
    return _remaining(kind, shape, indices, rows)


def _too_many(expr: Gather, rank: int, ctx: StepContext) -> None:
    base = words(expr.base, "the value")
    kept = expr.indices[rank - 1].span.end if rank else expr.base.span.end
    end = expr.indices[-1].span.end if rank else expr.span.end
    surplus = len(expr.indices) - rank
    title = "Remove the index" if rank == 0 or surplus == 1 else f"Remove the last {surplus} indices"
    fix = Fix(title, (Edit(ctx.scope.origin(Span(kept, end)), ""),), True)
    if rank == 0:
        message = f"{base} is a single number and cannot be indexed"
    else:
        message = f"{base} has {rank} {'axis' if rank == 1 else 'axes'}, but {len(expr.indices)} indices"
    place = expr.indices[rank].span if rank else expr.span
    ctx.scope.report(INDEX_MISMATCH, message, place, fixes=(fix,))


def _whole(index: Expr) -> int | None:
    return index.value if isinstance(index, Constant) and isinstance(index.value, int) else None


def _check_axis(axis: Axis, index: Expr, tree: Arith, expr: Gather, ctx: StepContext) -> None:
    size, name = axis
    if name is not None:
        ctx.plates.add(name)
    base = words(expr.base, "the value")
    literal = _whole(index)
    if literal is not None:
        if isinstance(size, int) and not -size <= literal < size:
            message = f"{base} has {int(size)} elements, so the last index is {int(size) - 1}"
            ctx.scope.report(INDEX_MISMATCH, message, tree.span)
        return
    declared = ctx.bindings.get(index.name) if isinstance(index, Data) else None
    if isinstance(index, Data) and (declared is None or declared.kind != "data"):
        _note_data(index, size, name, ctx)
        return
    space = index.type.space
    if declared is not None and isinstance(space, Real) and not declared.numbers:
        remedy = f": declare it with `-> {name}`" if name else ""
        message = f"{words(tree, 'the index')} is declared as numbers, and {base} takes an index{remedy}"
        ctx.scope.report(INDEX_MISMATCH, message, tree.span, (Related("it is declared here", declared.origin),))
        return
    if isinstance(space, Finite) and size is not None:
        result = fit(space, Finite(size, name))
        what = words(tree, "the index")
        if result.problem is not None:
            ctx.scope.report(
                INDEX_MISMATCH, f"{base} runs over `{name}`, but {what} is in `{space.nominal}`", tree.span
            )
        elif result.widths == "wrong":
            message = f"{base} has {_count(size)} elements, but {what} takes {_count(space.size)} values"
            ctx.scope.report(INDEX_MISMATCH, message, tree.span)
    elif isinstance(space, Constrained):
        message = f"{words(tree, 'the index')} is a vector of real numbers, not an index"
        ctx.scope.report(INDEX_NOT_INTEGER, message, tree.span)


def _count(size: Dim) -> str:
    return str(int(size)) if isinstance(size, int) else "_"


def _note_data(index: Data, size: Dim | None, name: str | None, ctx: StepContext) -> None:
    """Data used as an index holds elements of the set that the axis runs over."""
    known, origin = ctx.data.get(index.name, (index.type, index.origin))
    if known.space is None and size is not None:
        ctx.data[index.name] = (ValueType(Finite(size, name)), origin)
    elif size is not None:
        check_uses(index.name, known, origin, ValueType(Finite(size, name)), index.origin, ctx.scope)


def _remaining(kind: ValueType, shape: list[Axis], indices: tuple[Expr, ...], rows: bool) -> ValueType:
    front: list[Axis] = []
    for index in indices:
        if is_data(index.type) or isinstance(index.type.space, Seq):
            front = [(None, None)] if not isinstance(index, Constant) and not front else front
        else:
            found = axes(index.type) or []
            front = found if len(found) > len(front) else front
    return _behind(front, kind, shape, len(indices), rows)


def _behind(front: Sequence[Axis], kind: ValueType, shape: Sequence[Axis], count: int, rows: bool) -> ValueType:
    """What is left of a value behind the axes of its first `count` indices."""
    plates = [*front, *plate_axes(kind)[count:]]
    like = [ValueType(None, rows=rows)]
    if count <= len(kind.indexed) and kind.space is not None:
        return with_axes(plates, kind.space, like=like, event=kind.event)
    return from_axes([*front, *shape[count:]], len(front), like=like)
