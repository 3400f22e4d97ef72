"""What the arguments of a call say of a template's objects and sizes: the parameters that nobody gives are solved.

`lstm(x, h, c)` says the spaces of the inputs, `lstm(gates=g)` those that an arrow joins.  Written factors are matched
one by one; where products have other factors their widths are, and what one width says is put into the next.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from qvr_core.semantics.scope.scope import Argument, ArrowEntry, ObjectEntry
from qvr_core.semantics.types.spaces import (
    Finite,
    Named,
    Real,
    Space,
    factors_of,
    is_real,
    is_unknown,
    item_of,
    width,
)
from qvr_core.semantics.types.type_text import structure
from qvr_core.syntax.immutable import immutable
from qvr_core.syntax.tree.declarations import Parameter, ProgramHeader
from qvr_core.syntax.tree.objects import FinSetExpr, ObjectExpr, ObjectRef, ParenObject, ProductExpr, SeqExpr, SpaceExpr

INFERRED = ("Object", "FinSet", "Nat")
"""The kinds of parameters that arguments may say."""

Said = tuple[ObjectExpr, Named]
"""A space of the header, and the one that an argument has there."""


@immutable
class Solved:
    """The parameters that the arguments say, and those that they would say, were their own spaces known."""

    values: Mapping[str, Argument]
    open: frozenset[str]


NOTHING_SOLVED = Solved({}, frozenset())


def solve(
    header: ProgramHeader, values: Mapping[str, Argument], wanted: Iterable[str], inputs: Sequence[Named]
) -> Solved:
    """The parameters `wanted`, from the arguments in `values` and the spaces of the inputs."""
    kinds = {one.name.text: one.kind.text for one in header.parameters or () if one.kind is not None}
    unifier = _Unifier(kinds, values, frozenset(wanted))
    for expr, given in (*_of_inputs(header, inputs), *_of_arrows(header.parameters or (), values)):
        unifier.match(expr, given)
    unifier.propagate()
    return Solved(unifier.found, frozenset(unifier.open - unifier.found.keys()))


def _of_inputs(header: ProgramHeader, inputs: Sequence[Named]) -> list[Said]:
    factors = _factors(header.domain)
    if len(factors) == len(inputs):
        return list(zip(factors, inputs, strict=True))
    return [(header.domain, inputs[0])] if len(inputs) == 1 else []


def _of_arrows(parameters: Iterable[Parameter], values: Mapping[str, Argument]) -> list[Said]:
    found: list[Said] = []
    for one in parameters:
        entry = values.get(one.name.text)
        if one.mor is not None and isinstance(entry, ArrowEntry):
            found += zip(one.mor, (entry.domain, entry.codomain), strict=True)
    return found


def _factors(expr: ObjectExpr) -> tuple[ObjectExpr, ...]:
    """The factors of a product as written, those of products inside of it included."""
    while isinstance(expr, ParenObject):
        expr = expr.inner
    if isinstance(expr, ProductExpr):
        return tuple(part for factor in expr.factors for part in _factors(factor))
    return (expr,)


@immutable
class _Width:
    """What the widths of some parameters add up to."""

    names: Mapping[str, int]
    total: int


class _Unifier:
    def __init__(self, kinds: Mapping[str, str], values: Mapping[str, Argument], wanted: frozenset[str]) -> None:
        self.kinds, self.values, self.wanted = kinds, values, wanted
        self.found: dict[str, Argument] = {}
        self.open: set[str] = set()
        self._widths: list[_Width] = []

    def match(self, expr: ObjectExpr, given: Named) -> None:
        """Take over what `given` in the place of `expr` says."""
        while isinstance(expr, ParenObject | SeqExpr):
            expr = expr.inner if isinstance(expr, ParenObject) else expr.item
        space = item_of(given.space)
        if is_unknown(space):
            self.open |= self.wanted.intersection(_names(expr))
            return
        match expr:
            case ObjectRef(name=name):
                self._bind(name.text, Named(space, given.written.removeprefix("Seq ")))
            case FinSetExpr(size=size):
                if isinstance(space, Finite) and isinstance(space.size, int):
                    self._count(size.value, int(space.size))
            case SpaceExpr():
                self._real(expr, space)
            case ProductExpr():
                self._product(expr, space)
            case _:
                pass

    def _bind(self, name: str, given: Named) -> None:
        if name not in self.wanted or name in self.found:
            return
        if self.kinds[name] == "Object" or (self.kinds[name] == "FinSet" and isinstance(given.space, Finite)):
            self.found[name] = ObjectEntry(name, given)

    def _count(self, name: object, value: int) -> None:
        if isinstance(name, str) and name in self.wanted and self.kinds[name] == "Nat":
            self.found.setdefault(name, value)

    def _real(self, expr: SpaceExpr, space: Space) -> None:
        if len(expr.sizes) == 1 and expr.kind.text == "Real":
            self._add((expr,), space)

    def _product(self, expr: ProductExpr, space: Space) -> None:
        parts, spaces = _factors(expr), factors_of(space)
        names = getattr(space, "names", (None,))
        if len(parts) == len(spaces):
            for part, one, name in zip(parts, spaces, names, strict=True):
                self.match(part, Named(one, name or structure(one)))
        else:
            self._add(parts, space)

    # ---------------------------------------------------------------- widths

    def _add(self, parts: Sequence[ObjectExpr], space: Space) -> None:
        """An equation between widths of real spaces."""
        total = width(space)
        if not is_real(space) or not isinstance(total, int):
            return
        names: Counter[str] = Counter()
        known = 0
        for part in parts:
            found = self._width_of(part)
            if found is None:
                return
            if isinstance(found, str):
                names[found] += 1
            else:
                known += found
        self._widths.append(_Width(names, int(total) - known))

    def _width_of(self, expr: ObjectExpr) -> int | str | None:
        """The width of a factor, or the parameter that it is; None where neither is known."""
        if isinstance(expr, ObjectRef):
            name: object = expr.name.text
        elif isinstance(expr, SpaceExpr) and len(expr.sizes) == 1:
            name = expr.sizes[0].value
        else:
            return None
        if not isinstance(name, str):
            return name if isinstance(name, int) else None
        if name in self.wanted:
            return name
        value = self.values.get(name)
        if isinstance(value, ObjectEntry):
            size = width(value.space.space)
            return int(size) if isinstance(size, int) and not is_unknown(value.space.space) else None
        return value if isinstance(value, int) else None

    def propagate(self) -> None:
        """Solve each equation that has one unknown left, until none has."""
        pending = self._widths
        while True:
            rest: list[_Width] = []
            for one in pending:
                total, left = one.total, dict[str, int]()
                for name, count in one.names.items():
                    size = self._size(name)
                    if size is None:
                        left[name] = count
                    else:
                        total -= count * size
                if len(left) == 1:
                    ((name, count),) = left.items()
                    if total > 0 and total % count == 0:
                        self._widen(name, total // count)
                        continue
                if left:
                    rest.append(one)
            if len(rest) == len(pending):
                return
            pending = rest

    def _size(self, name: str) -> int | None:
        value = self.found.get(name)
        if isinstance(value, ObjectEntry):
            size = width(value.space.space)
            return int(size) if isinstance(size, int) else None
        return value if isinstance(value, int) else None

    def _widen(self, name: str, size: int) -> None:
        if self.kinds[name] == "Nat":
            self.found[name] = size
        elif self.kinds[name] == "Object":
            self.found[name] = ObjectEntry(name, Named(Real((size,)), f"Real {size}"))


def _names(expr: ObjectExpr) -> set[str]:
    """The names in a space of the header."""
    found: set[str] = set()
    for part in _factors(expr):
        match part:
            case SeqExpr(item=item):
                found |= _names(item)
            case ObjectRef(name=name):
                found.add(name.text)
            case SpaceExpr(sizes=sizes):
                found.update(str(size.value) for size in sizes)
            case FinSetExpr(size=size):
                found.add(str(size.value))
            case _:
                pass
    return found
