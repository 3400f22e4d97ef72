"""From a recorded graph of ATen operations to loops."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, fx
from torch.fx.node import map_arg

from qvr_core.codegen.loops import (
    Buffer,
    Call,
    Expression,
    Index,
    Linear,
    Literal,
    Load,
    Loops,
    Plan,
    Program,
    Statement,
    Strided,
    Value,
    contiguous,
    counters,
)

MOST_COST = 40
"""Operations that are written out again where a number is read; what takes more is stored."""
MOST_PRODUCTS = 2_000_000
"""Multiplications of one matrix product; larger ones are torch's."""

WRITTEN_OUT = tuple(f"folded_{name}" for name in ("new_", "zeros", "ones", "full", "scalar_tensor", "lift_fresh"))
"""Names of constants that are the program's, not the data's."""


class Unknown(Exception):
    """An operation, or a use of one, that has no loops."""


Lower = Callable[["Lowering", fx.Node], Any]
OPERATIONS: dict[str, Lower] = {}


def lowers(*names: str) -> Callable[[Lower], Lower]:
    """Register a rule for operations of these names."""

    def register(rule: Lower) -> Lower:
        OPERATIONS.update(dict.fromkeys(names, rule))
        return rule

    return register


class Lowering:
    """One graph on its way: what each node has become, and the constants met."""

    def __init__(self, module: fx.GraphModule, seen: dict[fx.Node, Any], *, repeats: bool = False) -> None:
        self.module, self.seen = module, seen
        self.repeats = repeats
        """Steps should become the same statements: all is stored that is made, single numbers are no literals."""
        self.plan = Plan()
        self.values: dict[fx.Node, Any] = {}
        self.reals: list[Tensor] = []
        self.wholes: list[Tensor] = []
        self.fixed: set[fx.Node] = set()
        """Nodes that do not depend on the position."""
        self.position = Buffer("q", 0)
        self.real_buffer, self.whole_buffer = Buffer("d", 0), Buffer("k", 0)
        self._constants: dict[str, Value] = {}
        self.held: list[Tensor] = []

    def program(self) -> Program:
        """The whole graph, whose outputs are a value (1,) and a gradient (1, D).  Raises `Unknown`."""
        for node in self.module.graph.nodes:
            self._lower(node)
        output = next(node for node in self.module.graph.nodes if node.op == "output")
        value, gradient = (self.read(argument) for argument in output.args[0])
        if value.numel != 1:
            raise Unknown("a density of several chains")
        total = self.stored(value).at((Linear(),) * len(value.shape))
        self.stored(gradient, Buffer("g", gradient.numel))
        reals = [number for part in self.reals for number in part.tolist()]
        wholes = [number for part in self.wholes for number in part.tolist()]
        return Program(self.plan, total, reals, wholes, gradient.numel, self.real_buffer, self.whole_buffer)

    def _lower(self, node: fx.Node) -> None:
        if node.op == "placeholder":
            shape = tuple(self.seen[node].shape)
            value = self.lying(self.position, shape, "real")
            # where numbers of the position and made ones take turns, they must lie in one buffer
            self.values[node] = self.stored(value, Buffer("w", value.numel)) if self.repeats else value
        elif node.op == "get_attr":
            self.fixed.add(node)
            self.values[node] = self.constant(str(node.target), self.seen[node])
        elif node.op == "call_function":
            if all(source in self.fixed for source in node.all_input_nodes):
                self.fixed.add(node)
                if isinstance(self.seen[node], Tensor):
                    self.values[node] = self.constant(node.name, self.seen[node])
                return
            if node.target is operator.getitem:
                source: Any = node.args[0]
                self.values[node] = self.values[source][node.args[1]]
                return
            name = str(getattr(node.target, "__name__", node.target)).split(".")[0]
            rule = OPERATIONS.get(name)
            if rule is None:
                raise Unknown(f"the operation {name}")
            made = rule(self, node)
            self.values[node] = self._kept(node, made) if isinstance(made, Value) else made

    def _kept(self, node: fx.Node, value: Value) -> Value:
        """Stored at once where it is read more than once."""
        shape = tuple(self.seen[node].shape)
        if value.shape != shape:
            raise Unknown(f"{node.target}: {value.shape} for {shape}")
        uses = sum(user.all_input_nodes.count(node) + _again(user, node) for user in node.users)
        if value.pieces:
            return self.stored(value) if uses > 1 else value
        most = 0 if self.repeats or uses > 1 else MOST_COST
        return self.stored(value) if value.cost > most else value

    # ------------------------------------------------------------ values

    def read(self, argument: Any) -> Value:
        """A tensor or a number as a value, its pieces put together."""
        value = self.raw(argument)
        return self.stored(value) if value.pieces else value

    def raw(self, argument: Any) -> Value:
        """As `read`, pieces left as they are."""
        if isinstance(argument, fx.Node):
            value = self.values[argument]
            if not isinstance(value, Value):
                raise Unknown(f"{argument} as a tensor")
            return value
        if isinstance(argument, bool | int | float):
            literal = Literal(float(argument))
            return Value((), "real", lambda _: literal)
        raise Unknown(f"an argument {argument!r}")

    def shape(self, node: fx.Node) -> tuple[int, ...]:
        """The shape that a node gave."""
        return tuple(self.seen[node].shape)

    @staticmethod
    def lying(buffer: Buffer, shape: tuple[int, ...], kind: str, offset: int = 0) -> Value:
        """The numbers of a buffer as a tensor."""
        return strided(Strided(buffer, offset, contiguous(shape)), shape, kind)

    def constant(self, name: str, tensor: Tensor) -> Value:
        """A constant: as a literal where all its numbers are one, without the axes along which it repeats itself."""
        if name not in self._constants:
            self._constants[name] = self._registered(name, tensor.detach())
        return self._constants[name]

    def _registered(self, name: str, tensor: Tensor) -> Value:
        kind = "truth" if tensor.dtype == torch.bool else "real" if tensor.is_floating_point() else "whole"
        if tensor.is_complex():
            raise Unknown("complex numbers")
        shape = tuple(tensor.shape)
        flat = tensor.reshape(-1)
        known = len(flat) > 1 or not self.repeats or name.startswith(WRITTEN_OUT)
        if kind == "real" and known and len(flat) and bool((flat == flat[0]).all()):
            literal = Literal(float(flat[0]))
            return Value(shape, kind, lambda _: literal)
        small = tensor
        for axis, size in enumerate(shape):
            if size > 1 and bool((small == small.narrow(axis, 0, 1)).all()):
                small = small.narrow(axis, 0, 1)
        strides = tuple(
            0 if size != kept else step
            for size, kept, step in zip(shape, small.shape, contiguous(tuple(small.shape)), strict=True)
        )
        parts, buffer = (self.reals, self.real_buffer) if kind == "real" else (self.wholes, self.whole_buffer)
        offset = sum(len(part) for part in parts)
        parts.append(small.reshape(-1).to(torch.float64 if kind == "real" else torch.int64))
        return strided(Strided(buffer, offset, strides), shape, kind)

    def whole_constant(self, argument: Any) -> Tensor:
        """The numbers of an index that does not depend on the position."""
        if argument not in self.fixed:
            raise Unknown("an index that depends on the position")
        return self.seen[argument]

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
        """Σ over `summed` of at(kept index, summed index), of shape `kept`; loops over the larger of the two."""
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

    def scanned(self, value: Value, axis: int, joined_by: str = "+") -> Value:
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

    def cheap(self, value: Value, times: int) -> Value:
        """Stored first where its numbers are wanted more than once each."""
        return self.stored(value) if value.cost > 0 and times > 1 else value


def _again(user: fx.Node, node: fx.Node) -> int:
    """How often a node is an argument beyond the first time."""
    found = 0

    def count(argument: Any) -> Any:
        nonlocal found
        found += argument is node
        return argument

    map_arg((user.args, user.kwargs), count)
    return max(found - 1, 0)


def strided(lying: Strided, shape: tuple[int, ...], kind: str) -> Value:
    """Numbers that lie in a buffer as a tensor."""

    def at(index: Index) -> Expression:
        load = Load(lying.buffer, lying.place(index))
        return Call("truth", (load,)) if kind == "truth" else load

    return Value(shape, kind, at, 0, lying)


def viewed(value: Value, shape: tuple[int, ...], where: Callable[[Index], Index]) -> Value:
    """A tensor whose number at an index is that of another at `where(index)`; where that lies in a buffer and the map
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


def _apart(boxes: Sequence[tuple[tuple[int, int], ...]]) -> bool:
    return not any(
        all(left[0] < right[1] and right[0] < left[1] for left, right in zip(one, other, strict=True))
        for number, one in enumerate(boxes)
        for other in boxes[number + 1 :]
    )
