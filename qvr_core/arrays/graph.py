"""A graph of arrays of known shape: what is done to a position, written down as it is done.

An `Array` is one operation on others; equal operations on equal arrays are one node, and what depends on constants
alone is computed at once.  The operations are a closed list, each with a record in `qvr_core.operations`: `derivatives`
has a rule for each, `evaluate` computes each on numbers, and `codegen.lowering` makes loops of each.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Literal

from qvr_core.arrays.shapes import Shape
from qvr_core.operations.table import nodes

Kind = Literal["real", "whole", "truth"]

UNARY, BINARY = nodes("unary"), nodes("binary")
COMPARISONS, LOGICAL = nodes("comparison"), nodes("logical")
CASTS: dict[str, Kind] = {"real": "real", "whole": "whole", "truth": "truth"}
POINTWISE = UNARY | BINARY | COMPARISONS | LOGICAL | frozenset(CASTS) | {"where"}
REDUCTIONS, STRUCTURAL, MATRICES = nodes("reduction"), nodes("structural"), nodes("matrix")
OPERATIONS = POINTWISE | REDUCTIONS | STRUCTURAL | MATRICES | {"position", "constant", "turn", "loop", "until", "tied"}
"""`turn` is what one turn of a loop reads, of `recurrences`; `loop` is the loop; `until` and `tied` are of the
module `while_loops`."""


class Unsupported(Exception):
    """What an array that depends on the position cannot do; the message ends a sentence."""


class Array:
    """One node: an operation of `OPERATIONS` on arrays, with parameters that are plain values; `data` of a constant."""

    __slots__ = ("args", "data", "graph", "kind", "number", "op", "params", "plain", "shape")

    def __init__(
        self, graph: Graph, op: str, args: tuple[Array, ...], params: tuple[Any, ...], shape: Shape, kind: Kind
    ) -> None:
        self.graph: Graph = graph
        self.op: str = op
        self.args: tuple[Array, ...] = args
        self.params: tuple[Any, ...] = params
        self.kind: Kind = kind
        self.shape: Shape = graph.shape_type(shape)
        self.data: Any = None
        """Of a constant its numbers; of what a turn reads those of all turns, where they are known."""
        self.plain = False
        """Of a constant: whether the program says it, not the data."""
        self.number = graph.register(self)

    @property
    def rank(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """How many numbers it has."""
        return math.prod(self.shape)

    @property
    def constant(self) -> bool:
        """Whether it does not depend on the position."""
        return self.op == "constant"

    def __repr__(self) -> str:
        return f"{self.op}{self.params or ''}{list(self.shape)}"


Evaluate = Callable[[str, Sequence[Any], tuple[Any, ...], Shape], Any]
"""An operation on numbers: its name, its arguments, its parameters, the shape of what it gives."""


class Graph:
    """The nodes of one recording, in the order in which they were made."""

    kept = True
    """Whether nodes are kept; those of numbers alone are not."""

    def __init__(
        self,
        evaluate: Evaluate,
        read: Callable[[Any], tuple[Any, Shape, Kind]],
        shape_type: Callable[[Shape], Shape] = tuple,
        array_type: type[Array] | None = None,
    ) -> None:
        self.nodes: list[Array] = []
        self.evaluate = evaluate
        self.read = read
        self.shape_type, self.array_type = shape_type, array_type or Array
        """From what a program holds (a tensor, a number) to the numbers that `evaluate` takes."""
        self._made: dict[Any, Array] = {}
        self._held: list[Any] = []

    def register(self, node: Array) -> int:
        """The number of a node that is new."""
        self.nodes.append(node)
        return len(self.nodes) - 1

    def position(self, size: int) -> Array:
        """The place at which the density is taken, (size,)."""
        return self._node("position", (), (), (size,), "real")

    def constant(self, value: Any) -> Array:
        """Numbers that are known."""
        if isinstance(value, bool | int | float):
            key: Any = (type(value), value, math.copysign(1.0, value))
        else:
            key = id(value)
            self._held.append(value)
        found = self._made.get(key)
        if found is None:
            found = self._made[key] = self._constant(*self.read(value))
            found.plain = isinstance(value, bool | int | float | range | list)
        return found

    def _constant(self, data: Any, shape: Shape, kind: Kind) -> Array:
        node = self.array_type(self, "constant", (), (), shape, kind)
        node.data = data
        return node

    def make(self, op: str, args: tuple[Array, ...], params: tuple[Any, ...], shape: Shape, kind: Kind) -> Array:
        """The node of an operation; a constant where it depends on constants alone."""
        if not all(is_known(arg) for arg in args):
            return self._node(op, args, params, shape, kind)
        key = (op, params, *(arg.number for arg in args))
        found = self._made.get(key)
        if found is None:
            if any(arg.op == "turn" for arg in args):
                found = self._of_turns(op, args, params, shape, kind)
            else:
                found = self._constant(self.evaluate(op, [arg.data for arg in args], params, shape), shape, kind)
                found.plain = all(arg.plain for arg in args)
            self._made[key] = found
        return found

    def turn(self, family: int, data: Any, shape: Shape, kind: Kind) -> Array:
        """What a turn of a loop of a family reads; `data`, where it is known, has an axis of turns in front."""
        node = self.array_type(self, "turn", (), (family,), shape, kind)
        node.data = data
        return node

    def rows_of(self, turn: Array) -> Array:
        """What is known for each turn, of all turns: with an axis of them in front."""
        return self._constant(turn.data, (len(turn.data), *turn.shape), turn.kind)

    def _of_turns(self, op: str, args: tuple[Array, ...], params: tuple[Any, ...], shape: Shape, kind: Kind) -> Array:
        """An operation on numbers that are known for each turn, done for all of them."""
        turns = [arg for arg in args if arg.op == "turn"]
        count = len(turns[0].data)
        if op in POINTWISE:
            laid = [
                self.evaluate("reshape", [arg.data], (), (count, *(1,) * (len(shape) - arg.rank), *arg.shape))
                if arg.op == "turn"
                else arg.data
                for arg in args
            ]
            data = self.evaluate("expand", [self.evaluate(op, laid, params, ())], (), (count, *shape))
        else:
            each = [
                self.evaluate(op, [arg.data[at] if arg.op == "turn" else arg.data for arg in args], params, shape)
                for at in range(count)
            ]
            rows = [self.evaluate("reshape", [one], (), (1, *shape)) for one in each]
            data = self.evaluate("cat", rows, (0,), (count, *shape))
        return self.turn(turns[0].params[0], data, shape, kind)

    def _node(self, op: str, args: tuple[Array, ...], params: tuple[Any, ...], shape: Shape, kind: Kind) -> Array:
        key = (op, params, *(arg.number for arg in args))
        found = self._made.get(key)
        if found is None:
            found = self._made[key] = self.array_type(self, op, args, params, shape, kind)
        return found


_CURRENT: ContextVar[Graph | None] = ContextVar("graph", default=None)


@contextmanager
def recording_into(graph: Graph) -> Generator[Graph]:
    """Inside, operations on its arrays are written into `graph`, and values are not looked at."""
    token = _CURRENT.set(graph)
    try:
        yield graph
    finally:
        _CURRENT.reset(token)


def current() -> Graph | None:
    """The graph that is being recorded."""
    return _CURRENT.get()


def is_known(value: Array) -> bool:
    """Whether it is a number, or one of each turn of a loop, that does not depend on the position."""
    return value.op == "constant" or (value.op == "turn" and value.data is not None)


def known(value: Array) -> float | None:
    """The one number of a constant that the program says; None where they differ, or where data say it."""
    if value.op != "constant" or value.size == 0 or not value.plain:
        return None
    return value.graph.evaluate("known", [value.data], (), ())
