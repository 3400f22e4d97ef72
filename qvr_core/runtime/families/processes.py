"""Vectors whose entries depend on their neighbours: in time, or on a map."""

from __future__ import annotations

from qvr_core.arrays.engine import Tensor, arrays, linalg
from qvr_core.runtime.families.bijectors import Standardised
from qvr_core.runtime.families.densities import inside, normal_log_prob
from qvr_core.runtime.families.family import RuntimeFamily
from qvr_core.runtime.families.parameters import REAL, SCALE
from qvr_core.runtime.values.errors import InputProblem
from qvr_core.runtime.values.indices import in_transform, recording
from qvr_core.semantics.language.family import Family, Parameter


def random_walk_transform(noise: Tensor, scale: Tensor, drift: Tensor, start: Tensor) -> Tensor:
    steps = arrays.arange(noise.shape[-1], dtype=noise.dtype, device=noise.device)
    return start.unsqueeze(-1) + drift.unsqueeze(-1) * steps + scale.unsqueeze(-1) * noise.cumsum(-1)


def random_walk_log_prob(value: Tensor, scale: Tensor, drift: Tensor, start: Tensor) -> Tensor:
    """x₁ ~ Normal(start, scale), x_t ~ Normal(x_(t−1) + drift, scale)."""
    first = normal_log_prob(value[..., 0], start, scale)
    steps = normal_log_prob(value[..., 1:] - value[..., :-1], drift.unsqueeze(-1), scale.unsqueeze(-1))
    return first + steps.sum(-1)


def _path(z: Tensor, scale: Tensor, drift: Tensor, start: Tensor) -> tuple[Tensor, Tensor]:
    return random_walk_transform(z, scale, drift, start), z.shape[-1] * scale.log()


def _of_unit_steps(scale: Tensor, drift: Tensor, start: Tensor) -> tuple[Tensor, ...]:
    return arrays.ones_like(scale), arrays.zeros_like(drift), arrays.zeros_like(start)


GAUSSIAN_RANDOM_WALK = RuntimeFamily(
    Family(
        "GaussianRandomWalk",
        (SCALE, Parameter("drift", aliases=("mu",), default=0.0), Parameter("start", aliases=("init",), default=0.0)),
        REAL,
        "normal",
        "a path from Normal(start, scale) by steps of Normal(drift, scale); its length comes from the type or `over`",
        event=1,
        step_only=True,
    ),
    random_walk_log_prob,
    random_walk_transform,
    noise_event=lambda parameters, event: event or None,
    standardised=Standardised(lambda scale, drift, start: (start, scale), _of_unit_steps, path=_path),
)


# ---------------------------------------------------------------- neighbours on a map


class _Checked:
    """Edges that have been looked at, for the size that they were looked at with."""

    last: tuple[Tensor, int] | None = None


def _pairs(edges: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """The two ends of each edge.  Raises `InputProblem` for edges that are no connected graph of `size` areas."""
    known = _Checked.last
    if not (recording() or in_transform() or (known is not None and known[0] is edges and known[1] == size)):
        problem = _graph_problem(edges, size)
        if problem is not None:
            raise InputProblem(f"`edges` of ICAR {problem}")
        _Checked.last = (edges, size)
    first, second = edges.long().unbind(-1)
    return first, second


def _graph_problem(edges: Tensor, size: int) -> str | None:
    if edges.ndim != 2 or edges.shape[-1] != 2:
        return f"has shape {tuple(edges.shape)}: it is a table of two columns, one row a pair of neighbours"
    if bool((edges != edges.round()).any() if edges.is_floating_point() else False):
        return "has fractions: it numbers areas from 0"
    low, high = (int(end) for end in arrays.aminmax(edges)) if len(edges) else (0, 0)
    if low < 0 or high >= size:
        return f"names area {low if low < 0 else high}, and there are areas 0 … {size - 1}"
    first, second = (part.long() for part in edges.unbind(-1))
    if bool((first == second).any()):
        return f"has area {int(first[first == second][0])} as a neighbour of itself"
    pair = arrays.minimum(first, second) * size + arrays.maximum(first, second)
    if _different(pair) < len(pair):
        return "has a pair twice (in either order): each pair of neighbours counts once"
    parts = _parts(first, second, size)
    if parts > 1:
        return (
            f"leaves {parts} parts with no way between them: what they differ by would have no prior; give each its own"
        )
    return None


def _different(numbers: Tensor) -> int:
    ordered = numbers.sort().values
    return 1 + int((ordered[1:] != ordered[:-1]).sum()) if len(ordered) else 0


def _parts(first: Tensor, second: Tensor, size: int) -> int:
    """How many connected parts a graph has: each area takes the least label in its reach."""
    label = arrays.arange(size, device=first.device)
    while True:
        least = arrays.minimum(label[first], label[second])
        spread = label.scatter_reduce(0, first, least, "amin").scatter_reduce(0, second, least, "amin")
        spread = spread[spread]
        if arrays.equal(spread, label):
            return _different(label)
        label = spread


def icar_log_prob(value: Tensor, edges: Tensor) -> Tensor:
    """−½ Σ (x_i − x_j)² over neighbours, on vectors that sum to 0 (Besag, York & Mollié 1991); up to a constant that
    only the edges decide."""
    first, second = _pairs(edges, value.shape[-1])
    density = -0.5 * (value[..., first] - value[..., second]).square().sum(-1)
    near = 1e-4 * (1.0 + value.detach().abs().amax(-1))
    return inside(value.detach().mean(-1).abs() < near, density)


def icar_transform(noise: Tensor, edges: Tensor) -> Tensor:
    """A draw of the Normal whose precision, on vectors that sum to 0, is the graph's Laplacian."""
    size = noise.shape[-1]
    first, second = _pairs(edges, size)
    laplacian = noise.new_zeros(size, size)
    one = noise.new_ones(len(first))
    for i, j, sign in ((first, second, -1.0), (second, first, -1.0), (first, first, 1.0), (second, second, 1.0)):
        laplacian.index_put_((i, j), sign * one, accumulate=True)
    values, vectors = linalg.eigh(laplacian)
    # the first direction is that of the mean, which is 0
    return ((noise @ vectors)[..., 1:] * values[1:].rsqrt()) @ vectors[:, 1:].mT


ICAR = RuntimeFamily(
    Family(
        "ICAR",
        (Parameter("edges", "matrix", "natural", raw="none", apart=True),),
        REAL,
        "normal",
        "a number for each area, like its neighbours', summing to 0; edges are pairs of areas, numbered from 0",
        event=1,
        step_only=True,
    ),
    icar_log_prob,
    icar_transform,
    noise_event=lambda parameters, event: event or None,
    bijector="zero sum",
)
