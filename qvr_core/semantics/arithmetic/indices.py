"""Indices that run over a set: the binders of a step or of a comprehension, and shifts along them.

Inside the step an index makes an axis of its own (`Row#i`), so that two indices over one set stay apart.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from qvr_core.semantics.arrows.objects import check_object_expr
from qvr_core.semantics.scope.environment import Binding, Running, StepContext
from qvr_core.semantics.scope.scope import RIGID, ObjectEntry, Scope
from qvr_core.semantics.types.axes import axis_of
from qvr_core.semantics.types.diagnostics import Edit, Fix
from qvr_core.semantics.types.model.expressions import Expr, IndexValue, ValueType
from qvr_core.semantics.types.program_codes import BOUND_TWICE, INDEX_MISMATCH
from qvr_core.semantics.types.spaces import Dim, Finite, Unknown, add
from qvr_core.syntax.immutable import immutable
from qvr_core.syntax.tree.arithmetic import Arith, Binary, Binder, Comprehension, Gather, Literal, ParenArith, Variable
from qvr_core.syntax.tree.names import Span
from qvr_core.syntax.tree.objects import ObjectRef
from qvr_core.syntax.walk import walk


@immutable
class Lag:
    """The greatest shift of an index in a step, and where it stands."""

    count: int
    place: Span


NO_LAG = Lag(0, Span(0, 0))


@contextmanager
def running(binders: Sequence[Binder], behind: Mapping[str, Lag], ctx: StepContext) -> Generator[list[Running]]:
    """The indices in force; those that lag behind leave out their first elements."""
    before, names = ctx.indices, ctx.locals
    found = [_running(binder, behind.get(binder.name.text, NO_LAG), ctx) for binder in binders]
    _check_distinct(binders, ctx)
    ctx.indices = {**before, **{one.name: one for one in found}}
    ctx.locals = {**names, **{one.name: _binding(one, ctx) for one in found}}
    try:
        yield found
        for binder, one in zip(binders, found, strict=True):
            _check_set(binder, one, ctx)
    finally:
        ctx.indices, ctx.locals = before, names


def _check_set(binder: Binder, one: Running, ctx: StepContext) -> None:
    """An index that fits nowhere, and would everywhere over another set: that set is meant."""
    wanted = next(iter(one.uses.wanted), None)
    if wanted is None or one.uses.fits or len(one.uses.wanted) < 2 or set(one.uses.wanted) != {wanted}:
        return
    told = one.uses.told
    ctx.scope.diagnostics[:] = [found for found in ctx.scope.diagnostics if found is not told]
    message = f"`{one.name}` is a {one.named.written}, but all that it indexes here is indexed by {wanted}"
    fix = Fix(f"Change to `{wanted}`", (Edit(ctx.scope.origin(binder.space.span), wanted),), True)
    ctx.scope.report(INDEX_MISMATCH, message, binder.space.span, fixes=(fix,))


def _running(binder: Binder, lag: Lag, ctx: StepContext) -> Running:
    named = check_object_expr(binder.space, ctx.scope)
    space = named.space
    if not isinstance(space, Finite):
        if not isinstance(space, Unknown):
            message = f"an index runs over a finite set, but `{named.written}` is none"
            ctx.scope.report(INDEX_MISMATCH, message, binder.space.span)
        return Running(binder.name.text, None, named, axis_of(None, binder.name.text), lag.count, binder.name.span)
    ctx.plates.update(name for name in (space.nominal,) if name is not None)
    axis = axis_of(space.nominal, binder.name.text)
    if isinstance(space.size, int) and lag.count > space.size:
        message = f"`{named.written}` has {space.size} elements, and this looks {lag.count} back"
        ctx.scope.report(INDEX_MISMATCH, message, lag.place)
    return Running(binder.name.text, space, named, axis, lag.count, binder.name.span)


def _check_distinct(binders: Sequence[Binder], ctx: StepContext) -> None:
    seen: set[str] = set()
    for binder in binders:
        if binder.name.text in seen:
            ctx.scope.report(BOUND_TWICE, f"`{binder.name.text}` is bound already", binder.name.span)
        seen.add(binder.name.text)


def _binding(one: Running, ctx: StepContext) -> Binding:
    return Binding("index", index_type(one), one.named, ctx.scope.origin(one.span))


def index_type(one: Running) -> ValueType:
    """The type of an index: an element of its set for each element that it runs through."""
    return ValueType(one.space or Unknown(), (one.axis,), False, (length(one),))


def length(one: Running) -> Dim | None:
    """How many elements an index runs through."""
    if one.space is None:
        return None
    return add((one.space.size, -one.lag)) if one.lag else one.space.size


def index_value(one: Running, ctx: StepContext, place: Span | None = None) -> Expr:
    """An index as a number: its element's place, from 0."""
    size = one.space.size if one.space is not None else 0
    origin = ctx.scope.origin(place or one.span)
    return IndexValue(type=index_type(one), origin=origin, name=one.name, first=one.lag, size=size)


# ---------------------------------------------------------------- shifts


@immutable
class Shift:
    """`t - c`: the index, the least and the greatest number of elements back."""

    index: str
    least: int
    most: int

    @property
    def constant(self) -> bool:
        return self.least == self.most


def shift_of(tree: Arith, indices: Mapping[str, int | None], ctx: StepContext) -> Shift | None:
    """What `t`, `t - 1`, `t - 1 - j` means; None for anything else.

    `indices` are the indices in force with the sizes of their sets.
    """
    tree = _bare(tree)
    if isinstance(tree, Variable):
        return Shift(tree.name.text, 0, 0) if tree.name.text in indices else None
    if not isinstance(tree, Binary) or tree.operator != "-":
        return None
    base, back = shift_of(tree.left, indices, ctx), _steps_back(tree.right, indices, ctx)
    if base is None or back is None:
        return None
    return Shift(base.index, base.least + back[0], base.most + back[1])


def _steps_back(tree: Arith, indices: Mapping[str, int | None], ctx: StepContext) -> tuple[int, int] | None:
    tree = _bare(tree)
    if isinstance(tree, Literal):
        return (tree.value, tree.value) if isinstance(tree.value, int) and tree.value >= 0 else None
    if isinstance(tree, Variable):
        if tree.name.text in indices:
            size = indices[tree.name.text]
            return None if size is None else (0, max(size - 1, 0))
        binding = ctx.bindings.get(tree.name.text)
        constant = None if binding is None else binding.constant
        return (constant, constant) if isinstance(constant, int) and constant >= 0 else None
    if isinstance(tree, Binary) and tree.operator == "+":
        left, right = _steps_back(tree.left, indices, ctx), _steps_back(tree.right, indices, ctx)
        return None if left is None or right is None else (left[0] + right[0], left[1] + right[1])
    return None


def _bare(tree: Arith) -> Arith:
    while isinstance(tree, ParenArith):
        tree = tree.inner
    return tree


@immutable
class ShiftedRead:
    """`x[t - c]` with an index of the step: the name, None where it is none, the index, and how many of the step's
    first elements lack it."""

    name: str | None
    index: str
    count: int
    place: Span


def shifted_reads(tree: Arith, binders: Sequence[Binder], ctx: StepContext) -> Iterator[ShiftedRead]:
    """What an expression reads at earlier elements of the step's indices."""
    known = {binder.name.text: set_size(binder, ctx.scope) for binder in binders}
    nodes = list(walk(tree))
    inner = [binder for node in nodes if isinstance(node, Comprehension) for binder in node.binders]
    sizes = {**{binder.name.text: set_size(binder, ctx.scope) for binder in inner}, **known}
    for node in (node for node in nodes if isinstance(node, Gather)):
        name = node.base.name.text if isinstance(node.base, Variable) else None
        for at, index in enumerate(node.indices):
            shift = shift_of(index, sizes, ctx)
            if shift is not None and shift.most and shift.index in known:
                yield ShiftedRead(name, shift.index, _lacking(name, at, shift.most, ctx), index.span)


@immutable
class OpenShift:
    """`t - 1 - j` with a j over an open set: how far back it looks only the data say."""

    written: str
    set_name: str
    place: Span


def open_shift(trees: Sequence[Arith], binders: Sequence[Binder], ctx: StepContext) -> OpenShift | None:
    """The first shift of a step's indices whose size is that of an open set."""
    own = {binder.name.text for binder in binders}
    nodes = [node for tree in trees for node in walk(tree)]
    open_sets = {
        binder.name.text: binder.space.name.text
        for node in nodes if isinstance(node, Comprehension) for binder in node.binders
        if isinstance(binder.space, ObjectRef) and set_size(binder, ctx.scope) is None
    }  # fmt: skip
    for index in (index for node in nodes if isinstance(node, Gather) for index in node.indices):
        first: Arith = index
        while isinstance(first, Binary) and first.operator == "-":
            first = _bare(first.left)
        by = mentions(index, open_sets)
        if first is not index and by and isinstance(first, Variable) and first.name.text in own:
            written = ctx.text[index.span.start : index.span.end]
            return OpenShift(written, open_sets[min(by)], index.span)
    return None


def _lacking(name: str | None, at: int, shift: int, ctx: StepContext) -> int:
    """How many first elements of a step lack what it reads so far back."""
    begun = ctx.begun(name, at)
    if begun is None:
        return shift
    return max(shift - begun.before, min(shift, begun.lag - begun.before))


def lags(trees: Sequence[Arith], binders: Sequence[Binder], ctx: StepContext) -> dict[str, Lag]:
    """The lag of each index of a step that has one."""
    found: dict[str, Lag] = {}
    for read in (read for tree in trees for read in shifted_reads(tree, binders, ctx)):
        before = found.get(read.index)
        if before is None or read.count > before.count:
            found[read.index] = Lag(read.count, read.place)
    return found


def lags_by_name(
    trees: Sequence[Arith], names: Sequence[str], binders: Sequence[Binder], index: str, ctx: StepContext
) -> list[Lag]:
    """The lag of each name of a recursion along an index: how far back it is read, or what its own elements read of
    others; that of the name that begins first where there is neither."""
    found = dict.fromkeys(names, NO_LAG)
    for name, tree in zip(names, trees, strict=True):
        for read in shifted_reads(tree, binders, ctx):
            begins = read.name if read.name in found else name
            if read.index == index and read.count > found[begins].count:
                found[begins] = Lag(read.count, read.place)
    least = min((lag for lag in found.values() if lag.count), key=lambda lag: lag.count, default=NO_LAG)
    return [found[name] if found[name].count else least for name in names]


def set_size(binder: Binder, scope: Scope) -> int | None:
    """The number of elements of a binder's set, where it is a declared one of known size."""
    entry = scope.lookup(binder.space.name.text) if isinstance(binder.space, ObjectRef) else None
    space = entry.space.space if isinstance(entry, ObjectEntry) else None
    return elements_of(space) if isinstance(space, Finite) else None


SYMBOLIC = 2
"""Elements of a set that is a template's parameter, while the body is checked with symbols: enough to look back by."""


def elements_of(space: Finite) -> int | None:
    """The number of elements of a set, where it is known."""
    if isinstance(space.size, int):
        return int(space.size)
    return SYMBOLIC if any(name.startswith(RIGID) for name, _ in space.size.terms) else None


@contextmanager
def beginning(one: Running | None, lag: int, ctx: StepContext) -> Generator[None]:
    """An index that leaves out another number of first elements."""
    before, names = ctx.indices, ctx.locals
    if one is not None and lag != one.lag:
        later = replace(one, lag=lag)
        ctx.indices = {**before, one.name: later}
        ctx.locals = {**names, one.name: _binding(later, ctx)}
    try:
        yield
    finally:
        ctx.indices, ctx.locals = before, names


@contextmanager
def without(one: Running | None, ctx: StepContext) -> Generator[None]:
    """The other indices in force."""
    before, names = ctx.indices, ctx.locals
    if one is not None:
        ctx.indices = {name: other for name, other in before.items() if name != one.name}
        ctx.locals = {name: binding for name, binding in names.items() if name != one.name}
    try:
        yield
    finally:
        ctx.indices, ctx.locals = before, names


def mentions(tree: Arith, names: Mapping[str, object]) -> set[str]:
    """The names among `names` that stand in an expression."""
    return {node.name.text for node in walk(tree) if isinstance(node, Variable) and node.name.text in names}
