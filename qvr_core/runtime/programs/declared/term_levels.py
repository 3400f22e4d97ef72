"""The nodes of all terms of a batch by level and constructor: what a case of an encoder or a decoder is evaluated on at
once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, cast

from qvr_core.arrays.engine import Tensor, arrays
from qvr_core.runtime.programs.arithmetic import Evaluate
from qvr_core.runtime.programs.execution import Request
from qvr_core.runtime.programs.frame import Frame
from qvr_core.runtime.values.cells import Cell, as_one, with_rows
from qvr_core.runtime.values.precision import precision
from qvr_core.semantics.terms.written import CONSTRUCTOR, DEPTH


class Group(NamedTuple):
    """Nodes of one constructor at one level: their rows in the flat table, and where the first stands in its level."""

    constructor: int
    nodes: Tensor
    start: int


class Levels:
    """The nodes of tables (B, nodes, columns) in the order of their levels, and of their constructors in each."""

    def __init__(self, tables: Tensor, constructors: int) -> None:
        rows, self.nodes = tables.shape[:2]
        self.flat = tables.flatten(0, 1)
        live = (self.flat[:, CONSTRUCTOR] >= 0).nonzero().squeeze(1)
        group = self.flat[live, DEPTH] * constructors + self.flat[live, CONSTRUCTOR]
        self.order = live[group.argsort(stable=True)]
        counts = cast("list[int]", arrays.bincount(group).tolist())
        counts += [0] * (-len(counts) % constructors)
        self.sizes = [counts[at : at + constructors] for at in range(0, len(counts), constructors)]
        # where each node stands among those of its level
        depth = self.flat[self.order, DEPTH]
        firsts = arrays.searchsorted(depth, depth)
        self.place = arrays.zeros(rows * self.nodes, dtype=arrays.int64, device=tables.device)
        self.place[self.order] = arrays.arange(len(self.order), device=tables.device) - firsts

    def groups(self, level: int) -> Iterator[Group]:
        """The nodes of a level by constructor."""
        end = sum(map(sum, self.sizes[:level]))
        first = end
        for constructor, size in enumerate(self.sizes[level]):
            if size:
                yield Group(constructor, self.order[end : end + size], end - first)
            end += size

    def places(self, nodes: Tensor) -> Tensor:
        """For each column of these nodes, (n, columns), where the node that it names stands in its level."""
        named = (nodes // self.nodes * self.nodes).unsqueeze(1) + self.flat[nodes]
        return self.place[named.clamp(0, len(self.place) - 1)]


def case_frame(name: str, rows: int, like: Tensor, bound: dict[str, Cell]) -> Frame:
    """A frame for a case on that many nodes."""
    device = None if like.device.type == "cpu" else like.device
    frame = Frame(name, Request(), rows, None, True, {}, device=device)
    frame.bound.update(bound)
    return frame


def numbers(body: Evaluate, frame: Frame, width: int) -> Tensor:
    """What a case computes of each node, (n, width)."""
    value = with_rows(as_one(body(frame)), frame.rows).reshape(frame.rows, -1)
    return (value if value.is_floating_point() else value.to(precision())).expand(frame.rows, width)


def real_numbers(bits: Tensor) -> Tensor:
    """The numbers whose doubles have these bits, int64 (n, width)."""
    return bits.contiguous().view(arrays.float64).to(precision())


def bits_of(numbers: Tensor) -> Tensor:
    """The inverse of `real_numbers`."""
    return numbers.detach().to(arrays.float64).contiguous().view(arrays.int64)
