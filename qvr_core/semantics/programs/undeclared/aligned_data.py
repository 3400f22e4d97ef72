"""Undeclared data beside values over a set: what `observe y : Row <- Normal(a[k] + b * x + matmul(z, beta), s)` says of
`k`, `x` and `z`.

A number for each row and one number for all are written alike, and so are data used over two sets: nothing is said
where uses differ, and what is given decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from qvr_core.semantics.arithmetic.broadcasting import Axis, axes, with_axes
from qvr_core.semantics.arithmetic.data_uses import check_uses
from qvr_core.semantics.language.builtins import BUILTINS, OPERATORS
from qvr_core.semantics.language.declared_families import facts_of_draw
from qvr_core.semantics.scope.scope import ObjectEntry, Scope
from qvr_core.semantics.types.axes import indexed
from qvr_core.semantics.types.diagnostics import Origin
from qvr_core.semantics.types.model.expressions import Bound, Builtin, Data, Expr, Index, ValueType
from qvr_core.semantics.types.model.families import FamilyDraw
from qvr_core.semantics.types.model.programs import DataName
from qvr_core.semantics.types.model.steps import (
    LetModel,
    ObserveModel,
    PredictModel,
    SampleModel,
    Site,
    StepModel,
)
from qvr_core.semantics.types.spaces import REAL_LINE, Finite, Real, Space
from qvr_core.syntax.immutable import immutable

_OPERATIONS = frozenset(OPERATORS.values()) | {"neg"}


@immutable
class Leaf:
    """What a value is computed from element by element: a data name, or the name of a `let` where `through`.

    `space` is what one element of the data is, `last` the axis that it has behind those of the value.
    """

    name: str
    origin: Origin
    through: bool = False
    space: Space = REAL_LINE
    last: Axis | None = None


@immutable
class Alongside:
    """What a step says: what each name that it binds is computed from, or what stands over the set of its plate."""

    names: tuple[str, ...]
    over: Finite | None
    leaves: tuple[Leaf, ...]


def alongside(model: StepModel | None) -> Alongside | None:
    """What a step says of the data that stand beside its values; None where it says nothing."""
    match model:
        case LetModel(names=(name,), value=value, indexed=None):
            found = Alongside((name,), None, tuple(_leaves(value)))
        case SampleModel(site=site) | ObserveModel(site=site) | PredictModel(site=site):
            over = _plate(site)
            bare = not isinstance(model, SampleModel)
            found = Alongside((), over, () if over is None else tuple(_of_site(site, bare)))
        case _:
            return None
    return found if found.leaves else None


def _plate(site: Site) -> Finite | None:
    """The one set whose elements a site draws, each of them a number."""
    space = None if site.elementwise is None else site.elementwise.space
    apart = site.via is not None or site.at is not None or bool(site.indices)
    if apart or not isinstance(site.draw, FamilyDraw):
        return None
    named = isinstance(space, Finite) and space.nominal is not None and not facts_of_draw(site.draw).event
    return space if named and isinstance(space, Finite) else None


def _of_site(site: Site, bare: bool) -> Iterator[Leaf]:
    """`bare`: an argument that is data as it stands counts; in a prior it may as well be one number for all."""
    assert isinstance(site.draw, FamilyDraw)
    own = {parameter.name: parameter for parameter in facts_of_draw(site.draw).parameters}
    for value in (value for name, value in site.draw.args if name in own and not own[name].rank):
        if bare or not isinstance(value, Data):
            yield from _leaves(value)


def _leaves(expr: Expr) -> Iterator[Leaf]:
    match expr:
        case Data(type=ValueType(space=None | Real() | Finite(), indexed=())):
            yield Leaf(expr.name, expr.origin)
        case Bound():
            yield Leaf(expr.name, expr.origin, through=True)
        case Builtin(function="matmul", args=(Data() as left, right)):
            found = axes(right.type)
            if found is not None and len(found) == 1 and _named(found[0]):
                yield Leaf(left.name, left.origin, last=found[0])
        case Builtin(function=function, args=args) if _pointwise(function):
            for arg in args:
                yield from _leaves(arg)
        case Index(base=base, indices=indices):
            found = axes(base.type)
            if found is not None and len(found) == len(indices):
                for (size, name), index in zip(found, indices, strict=True):
                    if isinstance(index, Data) and size is not None and name is not None and not index.type.indexed:
                        yield Leaf(index.name, index.origin, space=Finite(size, name))
        case _:
            pass


def _named(axis: Axis) -> bool:
    return axis[0] is not None and axis[1] is not None and not indexed(axis[1])


def _pointwise(function: str) -> bool:
    rule = BUILTINS[function].rule if function in BUILTINS else ""
    return function in _OPERATIONS or rule in ("pointwise", "compare")


# ---------------------------------------------------------------- the program as a whole


def without_aligned(item: DataName) -> DataName:
    """A data name with what else is known of it than what it stands beside."""
    if not item.aligned:
        return item
    space = item.type.space if isinstance(item.type.space, Finite) else None
    return replace(item, type=ValueType(space), over=(), aligned=False)


def with_aligned(data: Sequence[DataName], said: Iterable[Alongside], scope: Scope) -> tuple[DataName, ...]:
    """The data of a program, those that nothing else tells the type of with what they stand beside."""
    undeclared = {item.name: item for item in data if not item.declared and not item.type.rows}
    if not undeclared:
        return tuple(data)
    found: dict[str, list[tuple[Finite, Leaf]]] = {}
    steps = list(said)
    lets = {name: one for one in steps for name in one.names}
    for one in steps:
        if one.over is not None:
            for leaf in _reached(one.leaves, lets):
                if leaf.name in undeclared:
                    found.setdefault(leaf.name, []).append((one.over, leaf))
    return tuple(_typed(item, found.get(item.name, ()), scope) for item in data)


def _reached(leaves: Sequence[Leaf], lets: Mapping[str, Alongside]) -> Iterator[Leaf]:
    """The data at the end of all lets."""
    seen: set[str] = set()
    pending = list(reversed(leaves))
    while pending:
        leaf = pending.pop()
        if not leaf.through:
            yield leaf
        elif leaf.name not in seen and leaf.name in lets:
            seen.add(leaf.name)
            pending += reversed(lets[leaf.name].leaves)


def _typed(item: DataName, uses: Sequence[tuple[Finite, Leaf]], scope: Scope) -> DataName:
    if not uses or item.declared:
        return item
    kinds = [(_kind(over, leaf), over, leaf) for over, leaf in uses]
    if item.type.indexed:
        _check_indexed(item, kinds, scope)
        return item
    if item.type.space is not None and not isinstance(item.type.space, Finite | Real):
        return item
    elements = next((leaf.space for _, _, leaf in kinds if isinstance(leaf.space, Finite)), item.type.space)
    kind, over, leaf = next((one for one in kinds if one[2].last is not None), kinds[0])
    for other, _, where in kinds:
        contradicts = where.last is not None and where.last[1] != (leaf.last or (None, None))[1]
        if contradicts and not check_uses(item.name, kind, leaf.origin, other, where.origin, scope):
            return item
    if any(one[1].nominal != over.nominal or (one[2].last is None) != (leaf.last is None) for one in kinds):
        return item
    if isinstance(elements, Finite) and leaf.last is None:
        kind = replace(kind, space=elements)
    sets = (over,) if leaf.last is None else (over, _declared(leaf.last, scope))
    return replace(item, type=kind, over=sets, aligned=True)


def _kind(over: Finite, leaf: Leaf) -> ValueType:
    plates: list[Axis] = [(over.size, over.nominal)]
    return with_axes([*plates, *([leaf.last] if leaf.last is not None else [])], leaf.space, like=())


def _check_indexed(item: DataName, kinds: Sequence[tuple[ValueType, Finite, Leaf]], scope: Scope) -> None:
    """What is indexed over one set does not stand beside values over another."""
    for kind, _, leaf in kinds:
        plain = len(kind.indexed) == len(item.type.indexed) == 1
        if plain and not check_uses(item.name, item.type, item.origin, kind, leaf.origin, scope):
            return


def _declared(axis: Axis, scope: Scope) -> Finite:
    """The set of an axis, with its labels."""
    size, name = axis
    assert size is not None and name is not None
    entry = scope.lookup(name)
    space = entry.space.space if isinstance(entry, ObjectEntry) else None
    return space if isinstance(space, Finite) else Finite(size, name)
