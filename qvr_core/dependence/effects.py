"""What has to be known beside two names to read the effect of one on the other: back door and front door (Pearl)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

from qvr_core.dependence.algorithms import ancestors, descendants, minimal_separator
from qvr_core.dependence.graph import GIVEN, OBSERVED, RANDOM, NoAnswer, of_kind
from qvr_core.dependence.separation import check_name, elements, known
from qvr_core.dependence.unrolled import Node, unrolled

if TYPE_CHECKING:
    import networkx as nx

    from qvr_core.dependence.graph import Graph

MOST_MEDIATORS = 3
"""Sites of a front door."""


@dataclass(frozen=True, slots=True)
class Adjustment:
    """`observed`: the smallest set of observed sites that blocks every back door; `latent`: where there is none, the
    smallest one with latents; `front`: observed sites through which the whole effect goes, and whose own back doors are
    blocked.  None where there is none."""

    affects: bool
    observed: tuple[str, ...] | None = None
    latent: tuple[str, ...] | None = None
    front: tuple[str, ...] | None = None


def adjustment(graph: Graph, cause: str, effect: str) -> Adjustment:
    """What the effect of `cause` on `effect` has to be adjusted for.  Raises `NoAnswer`."""

    for name in (cause, effect):
        check_name(graph, name)
        if graph.nodes[name]["kind"] == "score":
            raise NoAnswer(f"`{name}` is a score: always given, it is no variable")
    if cause == effect:
        raise NoAnswer(f"`{cause}` is asked about itself")
    dag = unrolled(graph)
    start, end = elements(dag, [cause]), elements(dag, [effect])
    below = set[Node]().union(*(descendants(dag, node) for node in start)) - start
    if not end & below:
        return Adjustment(affects=False)
    base = known(dag, (), False) - start - end
    observed = of_kind(dag, [OBSERVED]) - start - end - below
    sites = of_kind(dag, RANDOM) - start - end - below
    found = _back_door(dag, start, end, base, observed, below)
    if found is not None:
        return Adjustment(True, found)
    latent = _back_door(dag, start, end, base, sites, below)
    return Adjustment(True, None, latent, _front_door(dag, start, end, base))


def _back_door(
    dag: nx.DiGraph[Node],
    start: set[Node],
    end: set[Node],
    base: set[Node],
    free: set[Node],
    below: set[Node],
) -> tuple[str, ...] | None:
    """The smallest set among `free` that blocks every way into `start`, with `base` given anyway."""

    if base & below & of_kind(dag, GIVEN):
        return None  # a score below the cause chooses among its effects
    doors = dag.copy()
    doors.remove_edges_from(list(dag.out_edges(start)))
    fixed = base - below
    found = minimal_separator(doors, start, end, included=fixed, restricted=fixed | free)
    return None if found is None else tuple(sorted({name for name, _ in found - fixed}))


def _front_door(dag: nx.DiGraph[Node], start: set[Node], end: set[Node], base: set[Node]) -> tuple[str, ...] | None:
    import networkx as nx

    below = set[Node]().union(*(descendants(dag, node) for node in start))
    above = set[Node]().union(*(ancestors(dag, node) for node in end))
    names = sorted({name for name, _ in (below & above & of_kind(dag, [OBSERVED])) - start - end})
    for count in range(1, MOST_MEDIATORS + 1):
        for chosen in combinations(names, count):
            middle = elements(dag, chosen)
            rest = dag.copy()
            rest.remove_nodes_from(middle)
            whole = not any(nx.has_path(rest, one, other) for one in start for other in end)
            into, out = dag.copy(), dag.copy()
            into.remove_edges_from(list(dag.out_edges(start)))
            out.remove_edges_from(list(dag.out_edges(middle)))
            if (
                whole
                and nx.is_d_separator(into, start, middle, base - middle)
                and nx.is_d_separator(out, middle, end, (base - middle - end) | start)
            ):
                return chosen
    return None
