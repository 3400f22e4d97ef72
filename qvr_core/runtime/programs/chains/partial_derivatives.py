"""Derivatives of the numbers of a graph with respect to what stands below them in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from qvr_core.arrays import operations as g
from qvr_core.arrays.derivatives import RULES
from qvr_core.arrays.graph import Array, known
from qvr_core.arrays.reverse_accumulation import add_slope, carry_back

assert RULES  # which `carry_back` goes by are those that this module has registered


def slopes_of(of: Array, leaves: Sequence[int]) -> dict[int, Array]:
    """The derivatives of (B, 1) with respect to leaves, beyond which nothing is looked at; zeros are left out."""
    graph, depends = of.graph, set(leaves)
    inside: set[int] = set()
    left = [of]
    while left:
        node = left.pop()
        if node.number not in inside and node.number not in depends and not node.constant:
            inside.add(node.number)
            left.extend(node.args)
    reached: list[Array] = []
    for number in sorted(inside):
        node = graph.nodes[number]
        if any(arg.number in depends for arg in node.args):
            depends.add(number)
            reached.append(node)
    slopes: dict[int, Array] = {}
    if of.number in depends:
        add_slope(slopes, of, g.expand(graph.constant(1.0), of.shape))
    carry_back(slopes, reversed(reached), depends)
    return {number: slopes[number] for number in leaves if number in slopes and known(slopes[number]) != 0.0}


def elements(value: Any) -> list[Array]:
    """(B, n) as n of (B, 1)."""
    return [g.cut(value, 1, at, at + 1) for at in range(value.shape[1])]
