"""What shields a site from all others, and where arrows meet."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from qvr_core.dependence.graph import DETERMINISTIC, RANDOM, SCORE

if TYPE_CHECKING:
    from qvr_core.dependence.graph import Graph


def blanket(graph: Graph, name: str) -> tuple[str, ...]:
    """The Markov blanket of a site: the sites that it depends on, those that depend on it, and what else these depend
    on, lets seen through.  Given them it is independent of every other site."""
    parents, after = set(_beyond(graph, name, graph.predecessors)), set(_beyond(graph, name, graph.successors))
    others = {one for child in after for one in _beyond(graph, child, graph.predecessors)}
    around = (parents | after | others) - {name}
    return tuple(one for one in graph if one in around and graph.nodes[one]["kind"] in RANDOM)


def colliders(graph: Graph) -> dict[str, tuple[str, ...]]:
    """Where arrows of sites meet that no arrow joins: given it, or what follows from it, they depend on each other."""
    found: dict[str, tuple[str, ...]] = {}
    for name in graph:
        kind = graph.nodes[name]["kind"]
        if kind in RANDOM or kind == SCORE:
            above = {one for one in _beyond(graph, name, graph.predecessors) if graph.nodes[one]["kind"] in RANDOM}
            above.discard(name)
            apart = {one for one in above if above - _neighbours(graph, one) - {one}}
            if apart:
                found[name] = tuple(one for one in graph if one in apart)
    return found


def _neighbours(graph: Graph, name: str) -> set[str]:
    return {*_beyond(graph, name, graph.predecessors), *_beyond(graph, name, graph.successors)}


def _beyond(graph: Graph, name: str, step: Callable[[str], Iterable[str]]) -> Iterator[str]:
    """The next nodes in one direction that are no lets."""
    seen: set[str] = set()
    pending = list(step(name))
    while pending:
        found = pending.pop()
        if found not in seen:
            seen.add(found)
            if graph.nodes[found]["kind"] in DETERMINISTIC:
                pending += step(found)
            else:
                yield found
