"""The text of one element of a value: which names of an expression take which indices."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set

from qvr_core.semantics.language.builtins import BUILTINS, OPERATORS
from qvr_core.semantics.types.axes import set_of
from qvr_core.semantics.types.model.expressions import Bound, Builtin, Data, Expr, Index, ListOf, ValueType
from qvr_core.semantics.types.spaces import Constrained, Dim, Real, Unknown
from qvr_core.syntax.immutable import immutable
from qvr_core.syntax.tree.arithmetic import (
    Arith,
    ArithCall,
    Comprehension,
    FactorExpr,
    Gather,
    Lambda,
    ListArith,
    Literal,
    ParenArith,
    Variable,
)
from qvr_core.syntax.tree.names import Span
from qvr_core.syntax.walk import children, walk

Axis = tuple[str | None, Dim | None]
"""The set that an axis runs over, None of one that has none, and its length."""


@immutable
class Change:
    """What is written in place of a stretch of a unit's text."""

    span: Span
    text: str


class NotByElement(Exception):
    """What the step computes has no text for one element; says why."""


@immutable
class Plate:
    """A set that a step runs over, by the index that it has there."""

    name: str | None
    size: Dim | None
    index: str

    def runs_along(self, axis: Axis, *, nameless: bool) -> bool:
        name, size = axis
        if name is not None and self.name is not None:
            return name == self.name
        return nameless and isinstance(size, int) and size > 1 and size == self.size


@immutable
class Picked:
    """`via=`: the elements of the set `name` are looked up by `index`."""

    name: str | None
    index: str


def axes_of_type(kind: ValueType) -> tuple[Axis, ...] | None:
    """The axes of a value, those of its event behind its plates; None where data decide them."""
    plates = tuple(
        (None if name is None else set_of(name), size)
        for name, size in zip(kind.indexed, kind.sizes or [None] * len(kind.indexed), strict=False)
    )
    if kind.space is None or isinstance(kind.space, Unknown):
        return plates or None
    event = None if kind.event is None else set_of(kind.event)
    if isinstance(kind.space, Real):
        shape = () if kind.space.shape == (1,) and event is None else kind.space.shape
        return (*plates, *((event, size) for size in shape))
    own = isinstance(kind.space, Constrained) and event is not None
    return (*plates, (event, kind.space.size)) if own and isinstance(kind.space, Constrained) else plates


class Axes:
    """The axes of what a program computes.  `data` are its data, whose uses may say more than one of them does alone;
    `lets` the names whose type data decide, and that are written with indices now."""

    def __init__(self, data: Mapping[str, ValueType], lets: dict[str, tuple[Axis, ...]]) -> None:
        self._data = data
        self.lets = lets

    def unknown(self, name: str) -> bool:
        """Whether nothing is known of data."""
        kind = self._data.get(name)
        return kind is not None and not kind.rows and not kind.indexed and not isinstance(kind.space, Real)

    def of(self, expr: Expr) -> tuple[Axis, ...] | None:
        """None where they are not known."""
        match expr:
            case Data(name=name) if name in self._data:
                return axes_of_type(self._data[name]) or ()
            case Bound(name=name) if name in self.lets:
                return self.lets[name]
            case Builtin(function=function, args=args) if is_pointwise(function):
                return _together(self.of(arg) for arg in args)
            case Builtin(function=function, args=(left, right)) if _rule(function) == "matmul":
                rows, columns = self.of(left), self.of(right)
                return None if not rows or not columns else (*rows[:-1], *columns[1:])
            case Builtin(function=function, args=(arg,), keywords=()) if _rule(function) == "reduce":
                found = self.of(arg)
                return found[:-1] if found else None
            case ListOf(items=items):
                inner = _together(self.of(item) for item in items)
                return None if inner is None else (*inner, (None, len(items)))
            case Index(base=base, indices=indices):
                found, over = self.of(base), _together(self.of(index) for index in indices)
                if found is None or over is None:
                    return None
                return (*over, *found[len(indices) :])
            case _:
                return axes_of_type(expr.type)


def _together(parts: Iterable[tuple[Axis, ...] | None]) -> tuple[Axis, ...] | None:
    found: list[Axis] = []
    for part in parts:
        if part is None:
            return None
        found += [axis for axis in part if axis not in found]
    return tuple(found)


def _rule(function: str) -> str:
    return BUILTINS[function].rule if function in BUILTINS else ""


def is_pointwise(function: str) -> bool:
    return function in (*OPERATORS.values(), "neg") or _rule(function) in ("pointwise", "compare")


class Elements:
    """What one step says of an element: `plates` are the sets that it runs over."""

    def __init__(
        self,
        typed: Mapping[Span, Expr],
        axes: Axes,
        plates: Sequence[Plate],
        picked: Picked | None = None,
        hidden: Mapping[str, str] | None = None,
        *,
        nameless: bool,
        unknown: bool = False,
        by_element: Set[str],
        letter: Callable[[str], str],
    ) -> None:
        """`typed` has the expressions of the step by their places, `hidden` the element of a state that the step reads
        by its name.  Where `nameless`, axes of lists and vectors run along plates of their length; where `unknown`,
        data of which nothing is known run over the step's own set.  `by_element` are what may be called for
        one element; `letter` gives an index of a sum over a set."""
        self._by_element, self._letter = by_element, letter
        self._typed, self._axes, self._plates = typed, axes, plates
        self._picked, self._hidden, self._nameless, self._unknown = picked, hidden or {}, nameless, unknown

    def inside(self, tree: Arith, event: Sequence[Axis] = ()) -> Iterator[Change]:
        """What is inserted into an expression; the last axes that are those of `event` are the element's own."""
        yield from self._inside(tree, event, frozenset())

    def _inside(self, tree: Arith, event: Sequence[Axis], local: frozenset[str]) -> Iterator[Change]:
        if not self._along(tree, event):
            return
        match tree:
            case Literal():
                return
            case Variable(name=name):
                if name.text not in local:
                    yield from self._element(tree, name.text, event)
            case Gather(base=base, indices=indices):
                for index in indices:
                    yield from self._looked_up(index, local)
                yield from self._rest(base, len(indices), tree.span.end - 1, event, local)
            case ListArith(items=items):
                found = [one for item in items for one in self._inside(item, (), local)]
                own = self._axes.of(self._typed[tree.span]) if tree.span in self._typed else None
                if not found and own is not None and not any(item for item in items if isinstance(item, ListArith)):
                    found = [*self._written(tree.span.end, self._indices(own, event, "a list"))]
                yield from found
            case Lambda(parameter=parameter, body=body):
                yield from self._inside(body, event, local | {parameter.text})
            case Comprehension(body=body, binders=binders, condition=condition):
                inner = local | {binder.name.text for binder in binders}
                yield from self._inside(body, (), inner)
                if condition is not None:
                    yield from self._inside(condition, (), inner)
            case FactorExpr():
                raise NotByElement("a `factor` has no text for one element")
            case ArithCall(func=func, args=args):
                if _rule(func.text) == "reduce" and self._reduces_plate(tree):
                    raise NotByElement(f"`{func.text}` goes over a set that the step runs over")
                product = self._product(tree, local)
                if product is not None:
                    yield product
                    return
                if func.text not in self._by_element and any(self._moves(arg.value, local) for arg in args):
                    raise NotByElement(f"`{func.text}` may read more than one element: compute it in a `let` above")
                if self._unknown and not (_keeps(func.text) or func.text == "matmul") and self._reads_unknown(tree):
                    raise NotByElement(f"nothing says what stands in `{func.text}` here: declare the data")
                for arg in args:
                    if arg.key is None or not (func.text in BUILTINS and arg.key.text in ("over", "dim")):
                        yield from self._inside(arg.value, event if _keeps(func.text) else (), local)
            case _:
                for child in children(tree):
                    if isinstance(child, Arith):
                        yield from self._inside(child, event, local)

    def _looked_up(self, index: Arith, local: frozenset[str]) -> Iterator[Change]:
        """An index; data of which nothing else is known are an element of each of the step's own."""
        typed = self._typed.get(index.span)
        if self._is_unknown(typed) and self._picked is None:
            yield _behind(index.span.end, f"[{self._plates[0].index}]")
        else:
            yield from self._inside(index, (), local)

    def _is_unknown(self, typed: Expr | None) -> bool:
        """Whether data may run over the step's one set, for all that is known of them."""
        return isinstance(typed, Data) and self._axes.unknown(typed.name) and len(self._plates) == 1

    def _along(self, tree: Arith, event: Sequence[Axis]) -> bool:
        """False where an expression surely is the same for all elements of the plates: it then stays as it is."""
        typed = self._typed.get(tree.span)
        if not isinstance(tree, ArithCall) or typed is None or _reads(tree, self._hidden):
            return True
        found = self._axes.of(typed)
        if found is None:
            return True
        front = found[: _own(found, event)]
        return any(self._plate(axis, self._plates) is not None or self._is_picked(axis) for axis in front)

    def _moves(self, tree: Arith, local: frozenset[str]) -> bool:
        return any(True for _ in self._inside(tree, (), local))

    def _product(self, tree: ArithCall, local: frozenset[str]) -> Change | None:
        """`matmul(x, b)` of data over the step's sets and one more: the sum over that."""
        trees = [arg.value for arg in tree.args]
        if _rule(tree.func.text) != "matmul" or len(trees) != 2:
            return None
        names = [one.name.text for one in trees if isinstance(one, Variable) and one.name.text not in local]
        found = [None if (one := self._typed.get(part.span)) is None else self._axes.of(one) for part in trees]
        left, right = found
        if len(names) != 2 or left is None or right is None or len(right) != 1 or len(left) < 2:
            return None
        over = right[0][0]
        plates = [self._plate(axis, self._plates) for axis in left[:-1]]
        if over is None or left[-1][0] != over or None in plates or self._plate(right[0], self._plates) is not None:
            return None
        index = self._letter(over)
        first = ", ".join([*(plate.index for plate in plates if plate is not None), index])
        return Change(tree.span, f"sum({names[0]}[{first}] * {names[1]}[{index}] for {index} : {over})")

    def _reads_unknown(self, tree: ArithCall) -> bool:
        return any(isinstance(part, Variable) and self._is_unknown(self._typed.get(part.span)) for part in walk(tree))

    def _reduces_plate(self, tree: ArithCall) -> bool:
        first = tree.args[0].value if tree.args else None
        typed = None if first is None else self._typed.get(first.span)
        found = None if typed is None else self._axes.of(typed)
        if not found or any(arg.key is not None for arg in tree.args):
            return False
        return self._plate(found[-1], self._plates) is not None

    def _element(self, tree: Variable, name: str, event: Sequence[Axis]) -> Iterator[Change]:
        if name in self._hidden:
            if self._hidden[name]:
                yield _behind(tree.span.end, self._hidden[name])
            return
        typed = self._typed.get(tree.span)
        if self._unknown and self._is_unknown(typed):
            yield _behind(tree.span.end, f"[{self._plates[0].index}]")
            return
        found = None if typed is None else self._axes.of(typed)
        if found:
            yield from self._written(tree.span.end, self._indices(found, event, f"`{name}`"))

    def _rest(self, base: Arith, given: int, at: int, event: Sequence[Axis], local: frozenset[str]) -> Iterator[Change]:
        """The indices that a value lacks which has some already."""
        if isinstance(base, ParenArith):
            base = base.inner
        if not isinstance(base, Variable) or base.name.text in local:
            return
        typed = self._typed.get(base.span)
        found = None if typed is None else self._axes.of(typed)
        if found is not None and len(found) > given:
            more = self._indices(found[given:], event, f"`{base.name.text}`")
            if more:
                yield _behind(at, f", {', '.join(more)}")

    def _written(self, at: int, indices: Sequence[str]) -> Iterator[Change]:
        if indices:
            yield _behind(at, f"[{', '.join(indices)}]")

    def _indices(self, found: Sequence[Axis], event: Sequence[Axis], what: str) -> list[str]:
        front = found[: _own(found, event)]
        left, indices = list(self._plates), list[str]()
        for at, axis in enumerate(front):
            plate = self._plate(axis, left)
            if plate is not None:
                left.remove(plate)
                indices.append(plate.index)
            elif self._is_picked(axis) and self._picked is not None:
                indices.append(self._picked.index)
            elif any(self._plate(other, left) is not None for other in front[at:]):
                raise NotByElement(f"{what} runs over another set before that of the step")
            else:
                break
        return indices

    def _plate(self, axis: Axis, among: Sequence[Plate]) -> Plate | None:
        exact = next((one for one in among if one.name is not None and one.name == axis[0]), None)
        return exact or next((one for one in among if one.runs_along(axis, nameless=self._nameless)), None)

    def _is_picked(self, axis: Axis) -> bool:
        return self._picked is not None and (self._picked.name is None or axis[0] == self._picked.name)


def _behind(at: int, text: str) -> Change:
    return Change(Span(at, at), text)


def _own(found: Sequence[Axis], event: Sequence[Axis]) -> int:
    """How many axes stand in front of those that are the event's."""
    for count in range(len(event), 0, -1):
        tail = event[-count:]
        if len(found) >= count and [name for name, _ in found[-count:]] == [name for name, _ in tail]:
            return len(found) - count
    return len(found)


def _keeps(function: str) -> bool:
    """Whether the axes of a function's value are those of its arguments."""
    return _rule(function) in ("pointwise", "compare", "keep")


def _reads(tree: Arith, names: Mapping[str, str]) -> bool:
    return any(isinstance(part, Variable) and part.name.text in names for part in walk(tree))
