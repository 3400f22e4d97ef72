"""Charts: the weights of all items that follow from weighted axioms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import wraps
from typing import ParamSpec, TypeVar

from qvr_core.arrays.engine import TORCH, Tensor, arrays
from qvr_core.semantics.deductions.closure import Hypergraph, levels

P = ParamSpec("P")
R = TypeVar("R")
NEVER = -1e30
"""log 0 that keeps gradients finite."""


@dataclass(frozen=True)
class Plan:
    """How the weights of a graph's items are computed: uses of rules in groups, each after those that it builds on."""

    premises: Tensor
    """Items of each use, (m, widest); a premise that is not there is the item behind the last, of weight one."""
    targets: Tensor
    """What each use concludes, (m,)."""
    groups: tuple[tuple[Tensor, Tensor, Tensor], ...] | None
    """The uses of a group, the items that they conclude, and which of these each one does; None where an item follows
    from itself, and only iteration finds its weight."""


def plan_of(graph: Hypergraph) -> Plan:
    """The plan of a graph; its cost is linear in the uses."""
    widest = max((len(edge.premises) for edge in graph.edges), default=0)
    none = len(graph.items)
    rows = [[*edge.premises, *(none,) * (widest - len(edge.premises))] for edge in graph.edges]
    premises = arrays.tensor(rows, dtype=arrays.int64).reshape(len(rows), widest)
    targets = arrays.tensor([edge.conclusion for edge in graph.edges], dtype=arrays.int64)
    found = levels(graph)
    if found is None:
        return Plan(premises, targets, None)
    groups: list[tuple[Tensor, Tensor, Tensor]] = []
    for edges in found:
        items = list(dict.fromkeys(graph.edges[number].conclusion for number in edges))
        place = {item: at for at, item in enumerate(items)}
        local = [place[graph.edges[number].conclusion] for number in edges]
        groups.append((arrays.tensor(edges), arrays.tensor(items), arrays.tensor(local)))
    return Plan(premises, targets, tuple(groups))


def item_weights(
    plan: Plan,
    axiom_weights: Tensor,
    edge_weights: Tensor,
    semiring: str,
    tolerance: float,
    max_iterations: int,
) -> tuple[Tensor, bool]:
    """The weight of every item (n,), and whether an iteration, where one was needed, came to rest.

    axiom_weights (n,): log weights, −∞ (as `NEVER`) for what is no axiom; edge_weights (m,): log weights of the uses.
    LogProb and Viterbi give log weights, Counting numbers of derivations, Boolean 0 or 1.
    """
    if semiring == "Boolean":
        return arrays.ones(len(axiom_weights)), True
    gather = _max_into if semiring == "Viterbi" else _sum_into
    weights, rest = axiom_weights, True

    def weighed(uses: Tensor | slice, known: Tensor) -> Tensor:
        below = arrays.cat([known, known.new_zeros(1)])[plan.premises[uses]].sum(-1)
        return (edge_weights[uses] + below).clamp(min=NEVER)

    if plan.groups is not None:
        for uses, items, local in plan.groups:
            weights = weights.index_copy(0, items, gather(axiom_weights[items], local, weighed(uses, weights)))
        return _finished(weights, semiring), True
    for _ in range(max_iterations):
        fresh = gather(axiom_weights, plan.targets, weighed(slice(None), weights))
        rest = bool(((fresh - weights).abs() <= tolerance).all())
        weights = fresh
        if rest:
            break
    return _finished(weights, semiring), rest


def on_the_processor(function: Callable[P, R]) -> Callable[P, R]:
    """While it runs numbers are made there: charts are many small steps, and their plans are kept from run to run,
    whatever device the numbers of a program lie on."""

    @wraps(function)
    def run(*args: P.args, **keywords: P.kwargs) -> R:
        with arrays.device("cpu") if TORCH else nullcontext():
            return function(*args, **keywords)

    return run


def gathered(items: int, places: Tensor, weights: Tensor, semiring: str) -> Tensor:
    """The log weight of each item (items,) of axioms, whose items are `places` (k,) and log weights `weights` (k,)."""
    start = arrays.full((items,), NEVER, dtype=weights.dtype)
    return (_max_into if semiring == "Viterbi" else _sum_into)(start, places, weights)


@dataclass(frozen=True)
class Groups:
    """Items in groups: their numbers and the group of each, (k,), and how many groups there are."""

    numbers: Tensor
    target: Tensor
    count: int


def grouped(groups: Sequence[Sequence[int]]) -> Groups:
    """Groups of these items."""
    numbers = arrays.tensor([number for group in groups for number in group], dtype=arrays.int64)
    target = arrays.tensor([at for at, group in enumerate(groups) for _ in group], dtype=arrays.int64)
    return Groups(numbers, target, len(groups))


def joined(weights: Tensor, groups: Groups, semiring: str) -> Tensor:
    """The weight of each group (g,): log 0 is −1e30, and no derivation counts 0."""
    found = weights[groups.numbers]
    if semiring in ("Counting", "Boolean"):
        start = arrays.zeros(groups.count, dtype=weights.dtype)
        if semiring == "Counting":
            return start.index_add(0, groups.target, found)
        return _max_into(start, groups.target, found)
    start = arrays.full((groups.count,), NEVER, dtype=weights.dtype)
    return (_max_into if semiring == "Viterbi" else _sum_into)(start, groups.target, found)


def _finished(weights: Tensor, semiring: str) -> Tensor:
    return weights.exp().round() if semiring == "Counting" else weights


def _sum_into(start: Tensor, target: Tensor, uses: Tensor) -> Tensor:
    """log(exp start + Σ exp uses) by target."""
    with arrays.no_grad():
        top = start.scatter_reduce(0, target, uses, "amax").clamp(min=NEVER)
    total = (start - top).exp().index_add(0, target, (uses - top[target]).exp())
    return top + total.log()


def _max_into(start: Tensor, target: Tensor, uses: Tensor) -> Tensor:
    return start.scatter_reduce(0, target, uses, "amax")
