"""`x[i]`, `x[school[i], f]`, `x[t - 1]` where indices run: an index names an axis, everything else picks elements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from qvr_core.semantics.arithmetic.alignment import align, arrange
from qvr_core.semantics.arithmetic.broadcasting import SCALAR, Axis, axes, from_axes, is_data, joint_axes, with_axes
from qvr_core.semantics.arithmetic.data_uses import check_uses
from qvr_core.semantics.arithmetic.elements import neighbours
from qvr_core.semantics.arithmetic.elements.index_fixes import declared_over, lookups
from qvr_core.semantics.arithmetic.elements.real_indices import check_index
from qvr_core.semantics.arithmetic.elementwise import Check, words
from qvr_core.semantics.arithmetic.indices import Shift, elements_of, index_value, length, mentions, shift_of
from qvr_core.semantics.scope.environment import Binding, Hidden, Running, StepContext
from qvr_core.semantics.scope.unsupported import refuse_sequence
from qvr_core.semantics.types.axes import indexed
from qvr_core.semantics.types.diagnostics import Edit, Fix, Origin, Related
from qvr_core.semantics.types.hidden_counts import is_counts
from qvr_core.semantics.types.model.expressions import Bound, Constant, Data, Expr, Index, IndexValue, ValueType, Window
from qvr_core.semantics.types.program_codes import FUTURE_SHIFT, INDEX_MISMATCH
from qvr_core.semantics.types.spaces import REAL_LINE, Dim, Finite, Real, Seq, Unknown
from qvr_core.syntax.immutable import immutable
from qvr_core.syntax.tree.arithmetic import Arith, Binary, Gather, ParenArith, Variable
from qvr_core.syntax.tree.names import Name, Span
from qvr_core.syntax.tree_to_text import to_text


@immutable
class Place:
    """One index of a bracket: what runs along its axis, or what picks elements of it; its tree."""

    shift: Shift | None
    picked: Expr | None
    tree: Arith
    near: neighbours.Neighbour | None = None


def gather(expr: Gather, base: Expr, label: Mapping[int, Expr], ctx: StepContext, check: Check) -> Expr:
    """`base[…]` in a step whose indices run; `label` holds the indices that are labels."""
    places = [_place(tree, label.get(at), expr, base, ctx, check) for at, tree in enumerate(expr.indices)]
    base = _inferred(base, places, ctx)
    shape = None if isinstance(base.type.space, Seq) else axes(base.type)
    if shape is None:
        return _of_unknown(expr, base, places, ctx)
    free = [at for at, (_, name) in enumerate(shape) if name is None or not indexed(name)]
    if len(places) > len(free):
        return _too_many(expr, base, len(free), ctx)
    if not _all_fit([shape[at] for at in free], places, expr, ctx):
        return replace(base, type=ValueType(Unknown(), rows=base.type.rows))
    return _taken(expr, base, shape, dict(zip(free, places, strict=False)), ctx)


def hidden_state(expr: Gather, hidden: Hidden, ctx: StepContext, check: Check) -> Expr:
    """`z[g, t]` of a chain that is summed out: all values of the state, along their own axis; notes the place."""
    places = [_place(tree, None, expr, None, ctx, check) for tree in expr.indices]
    sets = [(None, None) if one.space is None else (one.space.size, one.space.nominal) for one in hidden.indices]
    origin = ctx.scope.origin(expr.span)
    if len(places) != len(sets):
        message = f"`{hidden.name}` has {_indices(len(sets))}, not {len(places)}"
        ctx.scope.report(INDEX_MISMATCH, message, expr.span)
        return _unknown_state(hidden, origin)
    if not _all_fit(sets, places, expr, ctx):
        return _unknown_state(hidden, origin)
    back = places[-1].shift.most if places[-1].shift is not None else 0
    values = tuple(place.picked or _as_value(place, ctx) for place in places)
    if hidden.states is None:
        (ctx.outer_reads if hidden.outer else ctx.hidden_reads).append((_place_text(places), values))
        return _unknown_state(hidden, origin)
    if hidden.outer and back:
        message = f"a block inside that of `{hidden.name}` reads it where it is, not before"
        ctx.scope.report(INDEX_MISMATCH, message, expr.span)
        return _unknown_state(hidden, origin)
    if back > 1 or any(one.shift is not None and one.shift.most for one in places[:-1]):
        return _unknown_state(hidden, origin)
    return _all_states(hidden, hidden.states, back, (_place_text(places), values), origin, ctx)


def bare_state(name: Name, hidden: Hidden, ctx: StepContext) -> Expr:
    """`z` without an index: the one that there is, or a mistake where it has indices."""
    origin = ctx.scope.origin(name.span)
    if hidden.indices:
        running = [next((i for i in ctx.indices.values() if i.space == one.space), None) for one in hidden.indices]
        found = [one.name for one in running if one is not None]
        whole = len(found) == len(running) == len(set(found))
        put = f"{name.text}[{', '.join(found)}]"
        message = f"`{name.text}` has {_indices(len(running))}" + (f"; did you mean `{put}`?" if whole else "")
        fixes = (Fix(f"Change to `{put}`", (Edit(origin, put),), True),) if whole else ()
        ctx.scope.report(INDEX_MISMATCH, message, name.span, fixes=fixes)
    if hidden.indices or hidden.states is None:
        return _unknown_state(hidden, origin)
    only = Constant(type=SCALAR, origin=origin, value=0)
    return _all_states(hidden, hidden.states, 0, ("", (only,)), origin, ctx)


def _indices(count: int) -> str:
    return f"{count} {'index' if count == 1 else 'indices'}"


def _unknown_state(hidden: Hidden, origin: Origin) -> Expr:
    return Data(type=ValueType(Unknown()), origin=origin, name=hidden.name)


def _all_states(
    hidden: Hidden, states: Finite, back: int, place: tuple[str, tuple[Expr, ...]], origin: Origin, ctx: StepContext
) -> Expr:
    """Every value of the state, along its axis now or one back; the step reads this place of it."""
    value = Real((1,), 0.0) if is_counts(states) else states
    if hidden.outer:
        ctx.outer_reads.append(place)
        return Bound(type=ValueType(value), origin=origin, name=hidden.name)
    ctx.hidden_reads.append(place)
    axis = hidden.axes[back]
    kind = ValueType(value, (axis,), False, (states.size,))
    return IndexValue(type=kind, origin=origin, name=axis, first=0, size=states.size)


def _place_text(places: Sequence[Place]) -> str:
    """A place of a chain as text: what is shifted stands at its index."""
    return ", ".join(place.shift.index if place.shift is not None else to_text(place.tree) for place in places)


def _place(tree: Arith, label: Expr | None, expr: Gather, base: Expr | None, ctx: StepContext, check: Check) -> Place:
    if label is not None:
        return Place(None, label, tree)
    if (near := neighbours.neighbour(tree, base, ctx)) is not None:
        return Place(None, check(tree, ctx), tree, near)
    shift = shift_of(tree, {name: _size(one) for name, one in ctx.indices.items()}, ctx)
    alone = shift is not None and not any(
        shift.index in mentions(other, ctx.indices) for other in expr.indices if other is not tree
    )
    if shift is not None and shift.constant and alone:
        return Place(shift, None, tree)
    if shift is None and (found := _future(tree, ctx)) is not None:
        name, put = found
        message = f"`{name}` runs forward: an element can read those before it, not those that come later"
        fix = Fix(f"Change to `{put}`", (Edit(ctx.scope.origin(tree.span), put),))
        ctx.scope.report(FUTURE_SHIFT, message, tree.span, fixes=(fix,) if ctx.looks_back else ())
    return Place(None, check(tree, ctx), tree)


def _size(one: Running) -> int | None:
    return None if one.space is None else elements_of(one.space)


def _future(tree: Arith, ctx: StepContext) -> tuple[str, str] | None:
    """The index that `t + 1`, `t + 1 + j` shifts into the future, and the text of the shift into the past."""
    parts: list[Arith] = []
    first = tree
    while isinstance(first, ParenArith) or (isinstance(first, Binary) and first.operator == "+"):
        if isinstance(first, Binary):
            parts.append(first.right)
        first = first.left if isinstance(first, Binary) else first.inner
    terms = [first, *reversed(parts)]
    at = next((at for at, term in enumerate(terms) if _is_index(term, ctx)), None)
    if at is None or len(terms) == 1 or (at and len(terms) > 2):
        return None
    texts = [ctx.text[term.span.start : term.span.end] for term in (terms[at], *terms[:at], *terms[at + 1 :])]
    return texts[0], " - ".join(texts)


def _is_index(tree: Arith, ctx: StepContext) -> bool:
    return isinstance(tree, Variable) and tree.name.text in ctx.indices


# ---------------------------------------------------------------- data without a type


def _inferred(base: Expr, places: Sequence[Place], ctx: StepContext) -> Expr:
    """Undeclared data are numbers over the sets of their indices."""
    if not isinstance(base, Data) or not is_data(base.type) or isinstance(base.type.space, Unknown):
        return base
    found = [_axis_of(place, ctx) for place in places]
    if any(name is None for _, name in found):
        return base
    kind = with_axes(found, REAL_LINE, like=())
    ctx.data[base.name] = (kind, ctx.data.get(base.name, (kind, base.origin))[1])
    return replace(base, type=kind)


def _axis_of(place: Place, ctx: StepContext) -> Axis:
    """The axis that an index implies."""
    if place.shift is not None:
        space = ctx.indices[place.shift.index].space
    else:
        found = None if place.picked is None else place.picked.type.space
        space = found if isinstance(found, Finite) else None
    return (None, None) if space is None else (space.size, space.nominal)


def note_elements(index: Expr | None, size: Dim | None, name: str | None, ctx: StepContext) -> None:
    """Undeclared data that index an axis hold elements of its set."""
    while isinstance(index, Window | Index):
        index = index.base
    if not isinstance(index, Data) or size is None or index.name in ctx.bindings:
        return
    known, origin = ctx.data.get(index.name, (index.type, index.origin))
    if known.space == REAL_LINE and known.indexed:
        ctx.data[index.name] = (replace(known, space=Finite(size, name)), origin)
    else:
        check_uses(index.name, known, origin, replace(known, space=Finite(size, name)), index.origin, ctx.scope)


def _declared_numbers(index: Expr, ctx: StepContext) -> Binding | None:
    """The declaration of data that are numbers, which an index picks from."""
    while isinstance(index, Window | Index):
        index = index.base
    found = ctx.bindings.get(index.name) if isinstance(index, Data) else None
    numbers = found is not None and found.kind == "data" and isinstance(found.type.space, Real) and not found.numbers
    return found if numbers else None


def _of_unknown(expr: Gather, base: Expr, places: Sequence[Place], ctx: StepContext) -> Expr:
    """What data decide: the indices are all the axes that it has."""
    if isinstance(base.type.space, Seq):
        what = f"`{ctx.text[expr.base.span.start : expr.base.span.end]}[…]`"
        refuse_sequence(what, bool(base.type.indexed), expr.span, ctx.scope)
    if isinstance(base.type.space, Unknown | Seq):
        return replace(base, type=ValueType(Unknown(), rows=base.type.rows))
    picked = [place.picked or neighbours.earlier(_as_value(place, ctx), place.shift) for place in places]
    aligned = align(picked, [""] * len(picked), ctx.scope.origin(expr.span), ctx, apart=True).values
    joint = joint_axes(aligned)
    kind = with_axes(joint, REAL_LINE, like=[base.type])
    return Index(type=kind, origin=ctx.scope.origin(expr.span), base=base, indices=tuple(aligned), whole=True)


# ---------------------------------------------------------------- what an index may be


def _too_many(expr: Gather, base: Expr, rank: int, ctx: StepContext) -> Expr:
    name, axis = words(expr.base, "the value"), "axis" if rank == 1 else "axes"
    many = f"{name} has {rank} {axis}, but {len(expr.indices)} indices"
    message = many if rank else f"{name} is a single number and cannot be indexed"
    ctx.scope.report(INDEX_MISMATCH, message, expr.indices[rank].span if rank else expr.span)
    return replace(base, type=ValueType(Unknown(), rows=base.type.rows))


def _all_fit(shape: Sequence[Axis], places: Sequence[Place], expr: Gather, ctx: StepContext) -> bool:
    """Whether each index is of the set that it stands for; two that have changed places are one mistake."""
    wrong = [at for at, (axis, place) in enumerate(zip(shape, places, strict=False)) if _is_other(axis[1], place, ctx)]
    if len(wrong) == 2 and not any(_is_other(shape[at][1], places[other], ctx) for at, other in (wrong, wrong[::-1])):
        _report_swapped(shape, places, wrong, expr, ctx)
        return False
    return all([_fits(axis, place, expr, ctx) for axis, place in zip(shape, places, strict=False)])


def _is_other(name: str | None, place: Place, ctx: StepContext) -> bool:
    """Whether an index is certainly an element of another set."""
    _, own = _axis_of(place, ctx)
    return name is not None and own is not None and own != name


def _report_swapped(
    shape: Sequence[Axis], places: Sequence[Place], wrong: Sequence[int], expr: Gather, ctx: StepContext
) -> None:
    texts = [ctx.text[tree.span.start : tree.span.end] for tree in expr.indices]
    first, second = wrong
    texts[first], texts[second] = texts[second], texts[first]
    put = f"{ctx.text[expr.base.span.start : expr.base.span.end]}[{', '.join(texts)}]"
    sets = " * ".join(str(name) for _, name in shape if name is not None)
    place = Span(places[first].tree.span.start, places[second].tree.span.end)
    message = f"{words(expr.base, 'the value')} is indexed by {sets}, in this order; did you mean `{put}`?"
    fix = Fix(f"Change to `{put}`", (Edit(ctx.scope.origin(expr.span), put),), True)
    ctx.scope.report(INDEX_MISMATCH, message, place, fixes=(fix,))


def _fits(axis: Axis, place: Place, expr: Gather, ctx: StepContext) -> bool:
    size, name = axis
    if name is not None:
        ctx.plates.add(name)
    if place.shift is None:
        return _picks(axis, place, expr, ctx)
    one = ctx.indices[place.shift.index]
    if one.space is None:
        return False
    named = name is not None and one.space.nominal is not None
    if one.space.nominal == name if named else _same_size(size, one.space.size):
        one.uses.fits = True
        return True
    if neighbours.beside_a_neighbour(expr, one, size, ctx):
        return True
    one.uses.wanted.append(name)
    if len(one.uses.wanted) > 1:
        return False
    base = words(expr.base, "the value")
    message = f"{base} has {_count(size)} elements, `{one.name}` runs through {_count(one.space.size)}"
    if named:
        message = f"{base} is indexed by {name}, `{one.name}` is a {one.named.written}"
    found = lookups(name, one, place.tree, ctx)
    declared = ctx.bindings.get(expr.base.name.text) if isinstance(expr.base, Variable) else None
    wrong = not found and declared is not None and declared.over_place is not None
    related = (Related("it is declared here", declared.origin),) if declared is not None and wrong else ()
    fixes = found or declared_over(declared, base, one)
    ctx.scope.report(INDEX_MISMATCH, message, place.tree.span, related, fixes)
    one.uses.told = ctx.scope.diagnostics[-1]
    return False


def _same_size(left: Dim | None, right: Dim) -> bool:
    return left is None or not isinstance(left, int) or not isinstance(right, int) or int(left) == int(right)


def _count(size: Dim | None) -> str:
    return str(int(size)) if isinstance(size, int) else "_"


def _picks(axis: Axis, place: Place, expr: Gather, ctx: StepContext) -> bool:
    """An index that is computed: an element of the axis's set."""
    size, name = axis
    index = place.picked
    assert index is not None
    base = words(expr.base, "the value")
    if place.near is not None:
        return neighbours.stays_inside(place.near, size, place.tree, base, ctx)
    if isinstance(index, Constant) and isinstance(index.value, int):
        if isinstance(size, int) and not -size <= index.value < size:
            message = f"{base} has {int(size)} elements, so the last index is {int(size) - 1}"
            ctx.scope.report(INDEX_MISMATCH, message, place.tree.span)
            return False
        return True
    space = index.type.space
    check_index(index, place.tree, ctx)
    declared = _declared_numbers(index, ctx)
    if declared is not None:
        remedy = f": declare it with `-> {name}`" if name else ""
        message = f"{words(place.tree, 'the index')} is declared as numbers, and {base} takes an index{remedy}"
        ctx.scope.report(INDEX_MISMATCH, message, place.tree.span, (Related("it is declared here", declared.origin),))
        return False
    told = len(ctx.scope.diagnostics)
    note_elements(index, size, name, ctx)
    if not isinstance(space, Finite) or len(ctx.scope.diagnostics) > told:
        return not isinstance(space, Unknown)
    if name is not None and space.nominal is not None and space.nominal != name:
        what = words(place.tree, "the index")
        message = f"{base} is indexed by {name}, {what} is a {space.nominal}"
        along = [one for one in ctx.indices.values() if (one.axis,) == index.type.indexed]
        fixes = lookups(name, along[0], place.tree, ctx) if along else ()
        ctx.scope.report(INDEX_MISMATCH, message, place.tree.span, fixes=fixes)
        return False
    if name is None and not _same_size(size, space.size):
        what = words(place.tree, "the index")
        message = f"{base} has {_count(size)} elements, {what} takes {_count(space.size)} values"
        ctx.scope.report(INDEX_MISMATCH, message, place.tree.span)
        return False
    return True


# ---------------------------------------------------------------- the elements


def _taken(expr: Gather, base: Expr, shape: Sequence[Axis], places: dict[int, Place], ctx: StepContext) -> Expr:
    kind, found = base.type, list(shape)
    plates = len(kind.indexed)
    result = base
    name = expr.base.name.text if isinstance(expr.base, Variable) else None
    for at, place in places.items():
        if place.shift is None:
            continue
        one = ctx.indices[place.shift.index]
        assert one.space is not None
        begun = ctx.begun(name, at)
        again = begun.lag if begun is not None and place.shift.most > one.lag else 0
        result = Window(
            type=kind,
            origin=ctx.scope.origin(expr.span),
            base=result,
            axis=at - len(found),
            index=one.name,
            shift=place.shift.most,
            first=one.lag,
            size=one.space.size,
            again=again,
        )
        found[at] = (length(one), one.axis)
    result = replace(result, type=_relabelled(kind, found, plates, max(places, default=-1)))
    picks = {at: (place.picked, place.near) for at, place in places.items() if place.picked is not None}
    picked = {at: neighbours.kept_inside(index, near, found[at][0], ctx) for at, (index, near) in picks.items()}
    for at, index in picked.items():
        if (begun := ctx.begun(name, at)) is not None and begun.before:
            picked[at] = neighbours.from_the_first(index, places[at].tree, begun.lag, ctx)
    return _picked(result, found, picked, expr, ctx) if picked else result


def _relabelled(kind: ValueType, found: Sequence[Axis], plates: int, last: int) -> ValueType:
    """The type with axes named by indices; an index along the element's own axis makes it an axis of scalars."""
    if last < plates:
        return with_axes(found[:plates], kind.space or Unknown(), like=[kind], event=kind.event)
    return from_axes(found, len(found), like=[kind])


def _picked(base: Expr, shape: Sequence[Axis], picked: dict[int, Expr], expr: Gather, ctx: StepContext) -> Expr:
    """The elements that computed indices pick: their axes come first, then those that are left."""
    values = dict(picked)
    for at, (_, name) in enumerate(shape):
        taken = {axis for value in picked.values() for _, axis in axes(value.type) or []}
        if at not in values and name is not None and indexed(name) and name in taken:
            values[at] = _running_value(name, ctx)
    order = sorted(values)
    rest = [at for at in range(len(shape)) if at not in values]
    origin = ctx.scope.origin(expr.span)
    aligned = align([values[at] for at in order], [""] * len(order), origin, ctx, apart=True).values
    joint = joint_axes(aligned)
    laid = arrange(base, [*order, *rest])
    left = [shape[at] for at in rest]
    own = len(base.type.indexed)
    whole = all(at < own for at in order)
    events = len(shape) - own
    plates = [*joint, *(left[: len(left) - events] if whole else left)]
    kind = (
        with_axes(
            plates, base.type.space or Unknown(), like=[base.type, *(v.type for v in aligned)], event=base.type.event
        )
        if whole
        else from_axes(plates, len(plates), like=[base.type])
    )
    return Index(type=kind, origin=origin, base=laid, indices=tuple(aligned))


def _as_value(place: Place, ctx: StepContext) -> Expr:
    assert place.shift is not None
    return _running_value(ctx.indices[place.shift.index].axis, ctx)


def _running_value(axis: str, ctx: StepContext) -> Expr:
    """The index that runs along an axis, as a value."""
    one = next(one for one in ctx.indices.values() if one.axis == axis)
    return index_value(one, ctx)
