"""All operations, and what the rooms ask of them."""

from __future__ import annotations

from collections.abc import Mapping

from qvr_core.operations.along_axes import ALONG_AN_AXIS
from qvr_core.operations.numbers import NUMBERS
from qvr_core.operations.operation import Group, Node, Operation
from qvr_core.operations.whole_values import WHOLE_VALUES

OPERATIONS: Mapping[str, Operation] = {each.name: each for each in (*NUMBERS, *ALONG_AN_AXIS, *WHOLE_VALUES)}
"""By the name that programs call it, or the graph where programs cannot."""

NODES: Mapping[str, Node] = {
    each.node.name or each.name: each.node for each in OPERATIONS.values() if each.node is not None
}
"""The operations of the graph, by its names."""


def nodes(*groups: Group) -> frozenset[str]:
    """The graph's names of the operations of groups."""
    return frozenset(name for name, node in NODES.items() if node.group in groups)


def nodes_that_are(trait: str) -> frozenset[str]:
    """The graph's names of the operations with a trait of `Node.traits`."""
    return frozenset(name for name, node in NODES.items() if trait in node.traits)


def having(trait: str) -> frozenset[str]:
    """The functions with a trait of `TRAITS`."""
    return frozenset(
        name for name, each in OPERATIONS.items() if each.function is not None and trait in each.function.traits
    )


def templates(target: str) -> dict[str, str]:
    """What a target of `Targets` prints for each operation that it has."""
    found = {name: each.template(target) for name, each in OPERATIONS.items()}
    return {name: text for name, text in found.items() if text}
