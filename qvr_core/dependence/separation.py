"""Independence by d-separation, with deterministic nodes (Geiger, Verma and Pearl 1990)."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import groupby
from typing import TYPE_CHECKING

from qvr_core.dependence.algorithms import ancestors, descendants, minimal_separator, shortest_path
from qvr_core.dependence.graph import DETERMINISTIC, GIVEN, OBSERVED, RANDOM, NoAnswer, of_kind
from qvr_core.dependence.unrolled import Node, unrolled

if TYPE_CHECKING:
    import networkx as nx

    from qvr_core.dependence.graph import Graph


@dataclass(frozen=True, slots=True)
class Step:
    """A name on a way through the graph, and the arrow that leads to it: '→', '←', '' for the first.

    Where two arrows meet in it, `opened` is what is given: it, or what follows from it.
    """

    name: str
    arrow: str
    opened: str = ""


@dataclass(frozen=True, slots=True)
class Separation:
    """Whether names are independent.

    Where they need not be, `trail` is a shortest way by which one tells of the other, and `separator` the smallest
    further set of sites, or of sites and lets, that makes them independent, None where none does.  `determined` says
    that one of them is known from what is given.
    """

    independent: bool
    trail: tuple[Step, ...] = ()
    separator: tuple[str, ...] | None = None
    determined: bool = False


def separation(
    graph: Graph, first: str, second: str, given: Collection[str] = (), *, given_data: bool = False
) -> Separation:
    """Whether `first` is independent of `second` given the names `given`, in every program of this graph.

    It asks the prior: observed sites are given only where they are named, or all with `given_data`.  Names from outside
    are constants, a score is observed, a let is known where all that it reads is.  A name stands for all its elements.
    Raises `NoAnswer`.
    """
    for name in (first, second, *given):
        check_name(graph, name)
    for name in (first, second):
        _check_random(graph, name, given)
    if first == second:
        raise NoAnswer(f"`{first}` is asked about itself")
    dag = unrolled(graph)
    base = known(dag, given, given_data)
    start, end = elements(dag, [first]) - base, elements(dag, [second]) - base
    if not start or not end:
        return Separation(True, determined=True)
    import networkx as nx

    if nx.is_d_separator(dag, start, end, base):
        return Separation(True)
    return Separation(False, _trail(dag, start, end, base), _separator(dag, start, end, base))


def _separator(dag: nx.DiGraph[Node], start: set[Node], end: set[Node], base: set[Node]) -> tuple[str, ...] | None:
    """The fewest further sites that separate, or sites and lets where no sites do."""

    for kinds in (RANDOM, RANDOM | DETERMINISTIC):
        free = of_kind(dag, kinds) - start - end
        found = minimal_separator(dag, start, end, included=base, restricted=base | free)
        if found is not None:
            return tuple(sorted({name for name, _ in found - base}))
    return None


def known(dag: nx.DiGraph[Node], given: Iterable[str], given_data: bool) -> set[Node]:
    """What is known where `given` are, with all that this determines."""
    import networkx as nx

    found = elements(dag, given) | of_kind(dag, GIVEN) | (of_kind(dag, [OBSERVED]) if given_data else set[Node]())
    for node in nx.topological_sort(dag):
        if dag.nodes[node]["kind"] in DETERMINISTIC and all(one in found for one in dag.predecessors(node)):
            found.add(node)
    return found


def elements(dag: nx.DiGraph[Node], names: Iterable[str]) -> set[Node]:
    wanted = frozenset(names)
    return {node for node in dag if node[0] in wanted}


def check_name(graph: Graph, name: str) -> None:
    if name not in graph:
        near = get_close_matches(name, list(graph), n=1, cutoff=0.6)
        meant = f"; did you mean `{near[0]}`?" if near else f"; it has {', '.join(f'`{one}`' for one in graph)}"
        raise NoAnswer(f"`{graph.name}` has no `{name}`{meant}")


def _check_random(graph: Graph, name: str, given: Collection[str]) -> None:
    kind = graph.nodes[name]["kind"]
    if kind in GIVEN:
        what = "a score: always given, it is no variable" if kind == "score" else f"{kind}: a constant, no variable"
        raise NoAnswer(f"`{name}` is {what}")
    if name in given:
        raise NoAnswer(f"`{name}` is asked about and given as well")


def _trail(dag: nx.DiGraph[Node], start: set[Node], end: set[Node], base: set[Node]) -> tuple[Step, ...]:
    """A shortest way on which nothing is blocked.  The states of the search are a node and whether the way came to it
    along an arrow: through a node that is not given it goes on as it likes, but not from an arrow to another that meets
    it there; that needs the node, or what follows from it, to be given."""
    import networkx as nx

    opens = base.union(*(ancestors(dag, node) for node in base))
    ways: nx.DiGraph[tuple[Node, bool] | str] = nx.DiGraph()
    for node in dag:
        for along in (True, False):
            if node not in base:
                ways.add_edges_from(((node, along), (child, True)) for child in dag.successors(node))
            if (node in opens) if along else (node not in base):
                ways.add_edges_from(((node, along), (parent, False)) for parent in dag.predecessors(node))
    ways.add_edges_from(("from", (node, False)) for node in start)
    ways.add_edges_from(((node, along), "to") for node in end for along in (True, False))
    way = [state for state in shortest_path(ways, "from", "to")[1:-1] if not isinstance(state, str)]
    steps: list[Step] = []
    for place, (node, along) in enumerate(way):
        meets = place + 1 < len(way) and along and not way[place + 1][1]
        opened = min(descendants(dag, node) & base, default=node) if node not in base else node
        steps.append(Step(node[0], ("→" if along else "←") if place else "", opened[0] if meets else ""))
    # elements of one name behind each other are one place on the way
    return tuple(next(same) for _, same in groupby(steps, key=lambda step: step.name))
