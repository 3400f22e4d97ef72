"""Recursions that are affine in what they read of themselves, solved for all elements at once.

`v[t] = a0 + a1 * y[t - 1]^2 + b1 * v[t - 1]` is a chain of affine maps; those are composed two by two, so a series of T
elements takes log2 T operations on whole tensors (Kogge and Stone 1973; Blelloch 1990), forward and backward.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

from qvr_core.arrays.engine import Tensor, arrays, broadcasting
from qvr_core.runtime.programs.arithmetic import Evaluate, Parts, compile_expr
from qvr_core.runtime.programs.chains.elements import State, element_read
from qvr_core.runtime.programs.frame import Frame
from qvr_core.runtime.programs.indexed import Growing, full
from qvr_core.runtime.values.cells import Cell
from qvr_core.runtime.values.indices import in_transform, recording
from qvr_core.runtime.values.precision import precision
from qvr_core.semantics.types.axes import axis_of
from qvr_core.semantics.types.model.expressions import Arrange, Bound, Builtin, Expr, Window
from qvr_core.semantics.types.model.steps import IndexedValue, RunningIndex
from qvr_core.semantics.types.walk import operands, walk

MOST_STATES = 4
"""Numbers of the recursion's state; composing two maps of m numbers takes m³ products."""


class Probe(Growing):
    """A name of the recursion, looked at for all elements at once: what its earlier elements stand for.

    `now` are the elements at the same place, once they are computed.
    """

    def __init__(self, axis: int, index: str, lag: int, shape: tuple[int, ...]) -> None:
        super().__init__(axis, index)
        self.lag = lag
        self.shape = shape
        self.ones: int | None = None
        self.now: Tensor | None = None

    def runs_along(self, axis: int) -> bool:
        return axis + len(self.shape) == self.axis

    def window(self, first: int, count: int) -> Tensor:
        back = self.lag - first
        if back == 0 and self.now is not None:
            return self.now
        shape = (1, *self.shape) if self.rows else self.shape
        return arrays.full((), float(back == self.ones), dtype=precision()).expand(shape)


@dataclass(frozen=True)
class LinearRecursion:
    """A `let` over indices whose names are affine in their earlier elements, the `states`."""

    names: tuple[str, ...]
    constants: list[Evaluate]
    slopes: list[Evaluate | None]
    states: tuple[State, ...]
    axis: int
    index: str
    lag: int

    def solve(self, frame: Frame, first: Sequence[Sequence[Cell]], sizes: Sequence[int]) -> list[Cell] | None:
        """All elements of each name; None where they overflow on the way, which only their order tells apart.

        `first` are the first elements of each name, with an axis of length 1 for them.
        """
        count = sizes[self.axis] - self.lag
        if count < 1:
            return None
        shape = tuple(count if at == self.axis else size for at, size in enumerate(sizes))
        constants = self._evaluated(frame, self.constants, shape, None)
        if any(cell.value.ndim - int(cell.rows) != len(shape) for cell in constants):
            return None
        columns = [self._evaluated(frame, self.slopes, shape, state) for state in self.states]
        early = [cell for cells in first for cell in cells]
        cells = [*early, *constants, *(cell for column in columns for cell in column)]
        rows = any(cell.rows for cell in cells)
        dtype = precision()
        for cell in cells:
            dtype = arrays.promote_types(dtype, cell.value.dtype)

        def laid(cell: Cell) -> Tensor:
            """(B or 1, …, T) with time last."""
            value = cell.value if cell.rows else cell.value.unsqueeze(0)
            return value.to(dtype).movedim(self.axis + 1, -1)

        slopes = [[laid(columns[j][i]) for j in range(len(self.states))] for i in range(len(self.names))]
        known = [arrays.cat(broadcasting.broadcast_tensors(*[laid(cell) for cell in own]), -1) for own in first]
        found = self._solved([laid(cell) for cell in constants], slopes, known)
        if not (recording() or in_transform()) and not all(bool(value.isfinite().all()) for value in found):
            return None
        whole = [value.movedim(-1, self.axis + 1) for value in found]
        return [Cell(value if rows else value.squeeze(0), rows) for value in whole]

    def _evaluated(
        self, frame: Frame, values: Sequence[Evaluate | None], shape: tuple[int, ...], state: State | None
    ) -> list[Cell]:
        """What each name is where all earlier elements are 0, but `state`, which is 1."""
        probes = {name: Probe(self.axis, self.index, self.lag, shape) for name in self.names}
        if state is not None:
            probes[state[0]].ones = state[1]
        frame.bound.update({name: Cell(probe, False) for name, probe in probes.items()})
        found: list[Cell] = []
        for name, value in zip(self.names, values, strict=True):
            cell = Cell(arrays.zeros((), dtype=precision()), False) if value is None else value(frame)
            cell = Cell(full(cell.value, shape, cell.rows), cell.rows)
            probes[name].now, probes[name].rows = cell.value, cell.rows
            frame.bound[name] = Cell(probes[name], cell.rows)
            found.append(cell)
        return found

    def _solved(self, constants: list[Tensor], slopes: list[list[Tensor]], known: list[Tensor]) -> list[Tensor]:
        """The elements of each name, (B or 1, …, T): known ones first."""
        own = [i for i, name in enumerate(self.names) if any(state == name for state, _ in self.states)]
        depth = {i: max(back for name, back in self.states if name == self.names[i]) for i in own}
        if list(depth.values()) == [1]:
            (i,) = own
            j = next(j for j, (name, _) in enumerate(self.states) if name == self.names[i])
            start = constants[i][..., :1] + slopes[i][j][..., :1] * known[i][..., -1:]
            later = {i: _composed(slopes[i][j], arrays.cat(_wide(start, constants[i][..., 1:]), -1))}
        else:
            later = self._of_many(constants, slopes, known, depth)
        series = {i: arrays.cat(_wide(known[i], later[i]), -1) for i in own}
        for i, constant in enumerate(constants):
            if i not in series:
                for j, (name, back) in enumerate(self.states):
                    whole = series[self.names.index(name)]
                    constant = constant + slopes[i][j] * whole[..., self.lag - back : whole.shape[-1] - back]
                series[i] = arrays.cat(_wide(known[i], constant), -1)
        return [series[i] for i in range(len(self.names))]

    def _of_many(
        self, constants: list[Tensor], slopes: list[list[Tensor]], known: list[Tensor], depth: dict[int, int]
    ) -> dict[int, Tensor]:
        """The later elements of names that are read, by maps of all states together (a companion form)."""
        place = {(self.names[i], back): at for at, (i, back) in enumerate(
            (i, back) for i, most in depth.items() for back in range(1, most + 1)
        )}  # fmt: skip
        size = len(place)
        shape = broadcasting.broadcast_shapes(
            *(value.shape for i in depth for value in (constants[i], *slopes[i])),
            *((*known[i].shape[:-1], 1) for i in depth),
        )
        like = constants[next(iter(depth))]
        nothing, one = like.new_zeros(()).expand(shape), like.new_ones(()).expand(shape)
        maps = [[nothing] * size for _ in range(size)]
        added = [nothing] * size
        for (name, back), at in place.items():
            if back > 1:
                maps[at][place[name, back - 1]] = one
                continue
            i = self.names.index(name)
            added[at] = constants[i].expand(shape)
            for j, state in enumerate(self.states):
                maps[at][place[state]] = slopes[i][j].expand(shape)
        matrices = arrays.stack([arrays.stack(row, -1) for row in maps], -2)
        start = arrays.stack(
            [known[self.names.index(name)][..., self.lag - back].expand(shape[:-1]) for name, back in place], -1
        )
        offsets = arrays.stack(added, -1)
        first = offsets[..., :1, :] + (matrices[..., :1, :, :] @ start[..., None, :, None]).squeeze(-1)
        found = _composed_maps(matrices, arrays.cat([first, offsets[..., 1:, :]], -2))
        return {i: found[..., place[self.names[i], 1]] for i in depth}


def _wide(left: Tensor, right: Tensor) -> list[Tensor]:
    """Two values over time, their other axes repeated to each other's."""
    shape = broadcasting.broadcast_shapes(left.shape[:-1], right.shape[:-1])
    return [left.expand(*shape, left.shape[-1]), right.expand(*shape, right.shape[-1])]


def _composed(slopes: Tensor, offsets: Tensor) -> Tensor:
    """x[t] = slope[t] x[t - 1] + offset[t] with x[-1] = 0, along the last axis."""
    reach, count = 1, offsets.shape[-1]
    maps = slopes[..., 1:]
    while reach < count:
        later = offsets[..., reach:] + maps * offsets[..., :-reach]
        offsets = arrays.cat([offsets[..., :reach], later], -1)
        maps = maps[..., reach:] * maps[..., :-reach]
        reach *= 2
    return offsets


def _composed_maps(maps: Tensor, offsets: Tensor) -> Tensor:
    """The same of vectors, (…, T, m), by matrices (…, T, m, m)."""
    reach, count = 1, offsets.shape[-2]
    maps = maps[..., 1:, :, :]
    while reach < count:
        later = offsets[..., reach:, :] + (maps @ offsets[..., :-reach, :, None]).squeeze(-1)
        offsets = arrays.cat([offsets[..., :reach, :], later], -2)
        maps = maps[..., reach:, :, :] @ maps[..., : max(maps.shape[-3] - reach, 0), :, :]
        reach *= 2
    return offsets


# ---------------------------------------------------------------- which recursions are linear


class _NotAffine(Exception):
    """An expression is no affine function of a recursion's earlier elements."""


def linear_recursion(names: tuple[str, ...], model: IndexedValue, parts: Parts) -> LinearRecursion | None:
    """The recursion of a `let`; None where a name is not affine in earlier elements at its own place, or where there
    are many of them."""
    at = next((at for at, index in enumerate(model.indices) if index.lag), None)
    if at is None or not model.recursive:
        return None
    return affine_in(names, model.values, model.indices, at, parts, model.longest)


def affine_in(
    names: tuple[str, ...], values: Sequence[Expr], indices: Sequence[RunningIndex], at: int, parts: Parts, lag: int
) -> LinearRecursion | None:
    """The recursion of names whose elements are `values`, along the index `at`, behind the first `lag`."""
    axes = tuple(axis_of(getattr(index.space, "nominal", None), index.name) for index in indices)
    reads = _Reads(frozenset(names), axes)
    try:
        linear = [reads.linear(value) for value in values]
    except _NotAffine:
        return None
    states = tuple(dict.fromkeys(state for state in reads.found if state[1]))
    depth = [max(back for one, back in states if one == name) for name in names if name in dict(states)]
    if not states or sum(depth) > MOST_STATES:
        return None
    return LinearRecursion(
        names,
        [compile_expr(value, parts) for value in values],
        [None if value is None else compile_expr(value, parts) for value in linear],
        states,
        at,
        indices[at].name,
        lag,
    )


@dataclass
class _Reads:
    """What expressions read of the names of a recursion."""

    names: Collection[str]
    axes: tuple[str, ...]
    found: list[State] = field(default_factory=list[State])

    def linear(self, expr: Expr) -> Expr | None:
        """The part of an affine expression that is proportional to what is read; None where nothing is."""
        if not any(isinstance(part, Bound) and part.name in self.names for part in walk(expr, operands)):
            return None
        match expr:
            case Window():
                return self._read(expr)
            case Arrange(base=base):
                return replace(expr, base=self._some(base))
            case Builtin(function="neg", args=(inner,), keywords=()):
                return replace(expr, args=(self._some(inner),))
            case Builtin(function="add" | "sub", args=(left, right), keywords=()):
                first, second = self.linear(left), self.linear(right)
                if second is None:
                    return first
                if first is None:
                    return second if expr.function == "add" else replace(expr, function="neg", args=(second,))
                return replace(expr, args=(first, second))
            case Builtin(function="mul", args=(left, right), keywords=()):
                first, second = self.linear(left), self.linear(right)
                if first is not None and second is not None:
                    raise _NotAffine
                return replace(expr, args=(first or left, second or right))
            case Builtin(function="div", args=(left, right), keywords=()):
                if self.linear(right) is not None:
                    raise _NotAffine
                return replace(expr, args=(self._some(left), right))
            case _:
                raise _NotAffine

    def _some(self, expr: Expr) -> Expr:
        found = self.linear(expr)
        if found is None:
            raise _NotAffine
        return found

    def _read(self, expr: Window) -> Expr:
        """An element of a name at its own place, or earlier."""
        element = element_read(expr, self.axes)
        if element is None:
            raise _NotAffine
        self.found.append(element)
        return expr
