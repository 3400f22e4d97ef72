"""Charts: the weights of all items that follow from weighted axioms."""

from __future__ import annotations

from qvr_core.arrays.engine import Tensor, arrays
from qvr_core.semantics.deductions.closure import Hypergraph

_NEVER = -1e30
"""log 0 that keeps gradients finite."""


def item_weights(
    graph: Hypergraph,
    axiom_weights: Tensor,
    edge_weights: Tensor,
    semiring: str,
    tolerance: float,
    max_iterations: int,
) -> tuple[Tensor, bool]:
    """The weight of every item (n,), and whether the iteration came to rest.

    axiom_weights (n,): log weights, −∞ (as `_NEVER`) for what is no axiom; edge_weights (m,): log weights of the uses.
    LogProb and Viterbi give log weights, Counting numbers of derivations, Boolean 0 or 1.
    """
    if semiring == "Boolean":
        return arrays.ones(len(graph.items)), True
    if not graph.edges:
        return _finished(axiom_weights, semiring), True
    widest = max(len(edge.premises) for edge in graph.edges)
    # a premise that is not there has weight one: it looks up an extra last item of log weight zero
    none = len(graph.items)
    premises = arrays.tensor([[*edge.premises, *(none,) * (widest - len(edge.premises))] for edge in graph.edges])
    target = arrays.tensor([edge.conclusion for edge in graph.edges])
    weights = axiom_weights
    gather = _max_into if semiring == "Viterbi" else _sum_into
    rest = False
    for _ in range(max_iterations):
        known = arrays.cat([weights, weights.new_zeros(1)])
        uses = edge_weights + (known[premises].sum(-1) if widest else 0.0)
        fresh = gather(axiom_weights, target, uses.clamp(min=_NEVER))
        rest = bool(((fresh - weights).abs() <= tolerance).all())
        weights = fresh
        if rest:
            break
    return _finished(weights, semiring), rest


def _finished(weights: Tensor, semiring: str) -> Tensor:
    return weights.exp().round() if semiring == "Counting" else weights


def _sum_into(start: Tensor, target: Tensor, uses: Tensor) -> Tensor:
    """log(exp start + Σ exp uses) by target."""
    with arrays.no_grad():
        top = start.scatter_reduce(0, target, uses, "amax").clamp(min=_NEVER)
    total = (start - top).exp().index_add(0, target, (uses - top[target]).exp())
    return top + total.log()


def _max_into(start: Tensor, target: Tensor, uses: Tensor) -> Tensor:
    return start.scatter_reduce(0, target, uses, "amax")
