"""A graph on its way to loops: what each node has become, and the constants met."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from qvr_core.arrays.graph import Array
from qvr_core.codegen.loops import (
    Buffer,
    Call,
    Expression,
    Index,
    Linear,
    Literal,
    Load,
    Loops,
    Piece,
    Plan,
    Program,
    Statement,
    Strided,
    Value,
    contiguous,
    counters,
)
from qvr_core.codegen.vector_blocks import FEWEST_ROWS, LONGEST_INNER

MOST_COST = 40
"""Operations that are written out again where a number is read; what takes more is stored."""


class NoLoops(Exception):
    """What has no loops; the message ends a sentence."""


Rule = Callable[["Lowering", Array], Value]
RULES: dict[str, Rule] = {}


def lowers(*names: str) -> Callable[[Rule], Rule]:
    """Register a rule for operations of these names."""

    def register(rule: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, rule))
        return rule

    return register


class Lowering:
    """One graph: the nodes that its outputs need, in order."""

    def __init__(self, value: Array, gradient: Array) -> None:
        while gradient.op == "reshape":  # its numbers are written in a row, whatever its shape
            gradient = gradient.args[0]
        self.outputs = value, gradient
        self.nodes = _needed(self.outputs)
        self.uses = Counter(arg.number for node in self.nodes for arg in node.args)
        self.plan = Plan()
        self.values: dict[int, Value] = {}
        self.buffers: dict[tuple[str, int], Buffer] = {}
        """What routines fill, by their name and the node that they take."""
        self.reals: list[float] = []
        self.wholes: list[int] = []
        self.position = Buffer("q", 0)
        self.real_buffer, self.whole_buffer = Buffer("d", 0), Buffer("k", 0)

    def program(self) -> Program:
        """Loops that give the value and fill the gradient.  Raises `NoLoops`."""
        for node in self.nodes:
            self.lower(node)
        value, gradient = self.read(self.outputs[0]), self.raw(self.outputs[1])
        total = self.stored(value).at((Linear(),) * len(value.shape))
        # pieces go to their places at once: a copy of what was just stored waits for the stores
        self.stored(gradient, Buffer("g", gradient.numel))
        return Program(self.plan, total, self.reals, self.wholes, gradient.numel, self.real_buffer, self.whole_buffer)

    def lower(self, node: Array) -> None:
        """Make a value of a node whose arguments have theirs."""
        self.values[node.number] = self._lowered(node)

    def _lowered(self, node: Array) -> Value:
        if node.op == "constant":
            return self._constant(node)
        if node.op == "position":
            return self.lying(self.position, node.shape, "real")
        rule = RULES.get(node.op)
        if rule is None:
            raise NoLoops(f"the operation {node.op}")
        value = rule(self, node)
        assert value.shape == tuple(node.shape), (node, value.shape)
        uses = self.uses[node.number]
        if value.pieces:
            return self.stored(value) if uses > 1 else value
        most = 0 if uses > 1 else MOST_COST
        return self.stored(value) if value.cost > most else value

    # ------------------------------------------------------------ values

    def raw(self, node: Array) -> Value:
        """What a node has become; pieces may not be put together yet."""
        return self.values[node.number]

    def read(self, node: Array) -> Value:
        """What a node has become, its pieces put together, once for all readers."""
        value = self.raw(node)
        if value.pieces:
            value = self.values[node.number] = self.stored(value)
        return value

    def cheap(self, value: Value, times: int) -> Value:
        """Stored first where its numbers are wanted more than once each."""
        return self.stored(value) if value.cost > 0 and times > 1 else value

    @staticmethod
    def lying(buffer: Buffer, shape: tuple[int, ...], kind: str, offset: int = 0) -> Value:
        """The numbers of a buffer as an array."""
        return strided(Strided(buffer, offset, contiguous(shape)), shape, kind)

    def _constant(self, node: Array) -> Value:
        """As a literal where the program says one number, else in a buffer, without the axes along which it is
        repeated."""
        shape = tuple(node.shape)
        if not node.size:
            return Value(shape, node.kind, lambda _: Literal(0.0))
        number = node.graph.evaluate("known", [node.data], (), ()) if node.plain else None
        if node.kind == "real" and number is not None:
            literal = Literal(float(number))
            return Value(shape, "real", lambda _: literal)
        reals = node.kind == "real"
        target: list[Any] = self.reals if reals else self.wholes
        offset = len(target)
        small: Sequence[int] = node.graph.evaluate("unrepeated", [node.data], (), ())
        numbers: list[Any] = node.graph.evaluate("listed", [node.data], tuple(small), ())
        steps = contiguous(tuple(small))
        rows, columns = math.prod(small[:-1]), small[-1] if small else 1
        if reals and rows >= FEWEST_ROWS and rows in small and 1 < columns <= LONGEST_INNER:
            # a table of few columns, each in one piece: vectors run along the rows
            numbers = [number for column in range(columns) for number in numbers[column::columns]]
            steps = (*(1 for _ in small[:-1]), rows)
        target.extend(numbers if reals else map(int, numbers))
        strides = tuple(0 if size != kept else step for size, kept, step in zip(shape, small, steps, strict=True))
        buffer = self.real_buffer if reals else self.whole_buffer
        return strided(Strided(buffer, offset, strides), shape, node.kind)

    # ------------------------------------------------------------ statements

    def stored(self, value: Value, target: Buffer | None = None) -> Value:
        """The value in a buffer of its own."""
        if value.pieces:
            return self._assembled(value, target)
        if target is None and value.strided is not None:
            return value
        target = target or Buffer("w", value.numel)
        loops, index = counters("i", value.shape)
        expression = value.at(index)
        if value.kind == "truth":
            expression = Call("number", (expression,))
        found = self.lying(target, value.shape, value.kind)
        assert found.strided is not None
        self.plan.put(loops, Statement("store", target, found.strided.place(index), expression))
        return found

    def _assembled(self, value: Value, target: Buffer | None) -> Value:
        """Pieces put together: each at its place where they are blocks apart, added up otherwise."""
        blocks = [piece.box for piece in value.pieces]
        apart = all(box is not None for box in blocks) and _apart([box for box in blocks if box is not None])
        whole = apart and sum(piece.source.numel for piece in value.pieces) == value.numel
        target = replace(target, zeroed=not whole) if target else Buffer("w", value.numel, zeroed=not whole)
        found = self.lying(target, value.shape, value.kind)
        assert found.strided is not None
        for piece in value.pieces:
            loops, index = counters("i", piece.source.shape)
            place = found.strided.place(piece.where(index))
            kind = "store" if whole else "add"
            self.plan.put(loops, Statement(kind, target, place, piece.source.at(index)))
        return found

    def reduced(
        self,
        kept: Sequence[int],
        summed: Sequence[int],
        at: Callable[[Index, Index], Expression],
        joined_by: str = "+",
    ) -> Value:
        """at(kept index, summed index) joined over `summed`, of shape `kept`; loops over the larger of the two."""
        target_shape = tuple(kept)
        over = math.prod(summed)
        along = joined_by == "+" and over > math.prod(kept)
        target = Buffer("w", math.prod(kept), zeroed=along)
        found = self.lying(target, target_shape, "real")
        assert found.strided is not None
        outer, inner = ("j", "i") if along else ("i", "j")
        kept_loops, kept_index = counters(outer, kept)
        summed_loops, summed_index = counters(inner, summed)
        expression = at(kept_index, summed_index)
        place = found.strided.place(kept_index)
        if along:
            self.plan.put(summed_loops, Statement("add", target, place, expression, kept_loops))
        else:
            self.plan.put(kept_loops, Statement("reduce", target, place, expression, summed_loops, joined_by))
        return found

    def scanned(self, value: Value, axis: int, joined_by: str) -> Value:
        """Running sums, or products, along an axis."""
        shape = value.shape
        target = Buffer("w", value.numel)
        found = self.lying(target, shape, "real")
        assert found.strided is not None
        others = shape[:axis] + shape[axis + 1 :]
        loops, index = counters("i", others)
        inner: Loops = (("j0", shape[axis]),) if shape[axis] != 1 else ()
        step = Linear(0, (("j0", 1),)) if inner else Linear()
        whole = (*index[:axis], step, *index[axis:])
        self.plan.put(loops, Statement("scan", target, found.strided.place(whole), value.at(whole), inner, joined_by))
        return found


def _needed(outputs: Sequence[Array]) -> list[Array]:
    numbers: set[int] = set()
    left = list(outputs)
    graph = outputs[0].graph
    while left:
        node = left.pop()
        if node.number not in numbers:
            numbers.add(node.number)
            left.extend(node.args)
    return [graph.nodes[number] for number in sorted(numbers)]


def strided(lying: Strided, shape: tuple[int, ...], kind: str) -> Value:
    """Numbers that lie in a buffer."""

    def at(index: Index) -> Expression:
        load = Load(lying.buffer, lying.place(index))
        return Call("truth", (load,)) if kind == "truth" else load

    return Value(shape, kind, at, 0, lying)


def viewed(value: Value, shape: tuple[int, ...], where: Callable[[Index], Index]) -> Value:
    """An array whose number at an index is that of another at `where(index)`; where that lies in a buffer and the map
    is affine, so does this."""
    lying: Strided | None = None
    if value.strided is not None:
        zero = value.strided.place(where((Linear(),) * len(shape)))
        strides: list[int] = []
        for axis in range(len(shape)):
            unit = tuple(Linear(int(other == axis)) for other in range(len(shape)))
            strides.append(value.strided.place(where(unit)).constant - zero.constant)
        if zero.fixed:
            lying = Strided(value.strided.buffer, zero.constant, tuple(strides))
    return Value(shape, value.kind, lambda index: value.at(where(index)), value.cost, lying)


def gathered(value: Value, shape: tuple[int, ...], where: Callable[[Index], Index]) -> Value:
    """As `viewed`, by a map that is not affine."""
    return Value(shape, value.kind, lambda index: value.at(where(index)), value.cost)


def assembled(shape: tuple[int, ...], *pieces: Piece) -> Value:
    """The sum of pieces, not made yet."""

    def at(_: Index) -> Expression:
        raise AssertionError("pieces read before they are put together")

    return Value(shape, "real", at, 1, None, pieces)


def _apart(boxes: Sequence[tuple[tuple[int, int], ...]]) -> bool:
    return not any(
        all(left[0] < right[1] and right[0] < left[1] for left, right in zip(one, other, strict=True))
        for number, one in enumerate(boxes)
        for other in boxes[number + 1 :]
    )
