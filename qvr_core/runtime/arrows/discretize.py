"""`role=discretize`: a bounded real cut into bins of equal width."""

from __future__ import annotations

import math

from qvr_core.arrays.engine import Generator, Tensor, arrays
from qvr_core.runtime.values import layout
from qvr_core.runtime.values.arrow import ArrowModule, Drawn, Noise, NoiseSpec, Value
from qvr_core.runtime.values.errors import RuntimeProblem
from qvr_core.semantics.types.model.arrows import Discretize
from qvr_core.semantics.types.spaces import Real


class DiscretizeArrow(ArrowModule):
    """All mass on the bin that x lies in; values beyond the bounds go to the nearest bin."""

    sampled = True
    pointwise = True
    tabular = True

    def __init__(self, node: Discretize, path: str) -> None:
        super().__init__()
        self.domain, self.codomain = node.domain, node.codomain
        self.path = path
        self.paths = (path,)
        self.bins = node.bins
        bounds = [f for f in layout.factors(node.domain.space) if isinstance(f, Real)]
        if len(bounds) != 1 or layout.width(node.domain.space) != 1:
            raise RuntimeProblem(f"`{node.name}`: `discretize` cuts one number into bins, not {node.domain.written}")
        low, high = bounds[0].low, bounds[0].high
        if low is None or high is None:
            raise RuntimeProblem(f"`{node.name}`: `discretize` wants a bounded domain")
        self.low, self.high = low, high

    def bin_of(self, x: Value) -> Tensor:
        """The index of the bin, without the value's own axis."""
        share = (layout.parts(x)[0].detach().squeeze(-1) - self.low) / (self.high - self.low)
        return (share * self.bins).floor().long().clamp(0, self.bins - 1)

    def output_like(self, x: Value) -> Value:
        return self.bin_of(x)

    def noise_specs(self, x: Value) -> list[NoiseSpec]:
        return [NoiseSpec(self.path, tuple(layout.parts(x)[0].shape[:-1]), "discrete", final=True)]

    def draw(
        self,
        x: Value,
        noise: Noise | None = None,
        *,
        generator: Generator | None = None,
        want_log_prob: bool = True,
    ) -> Drawn:
        value = self.bin_of(x)
        certain = arrays.zeros(value.shape[0], device=value.device) if want_log_prob else None
        return Drawn(value, {self.path: value}, certain, None, certain)

    def densities(self, x: Value, y: Value, innovations: Noise | None = None) -> tuple[Tensor, Tensor | None]:
        same = self.bin_of(x) == layout.parts(y)[0]
        each = arrays.where(same, 0.0, -math.inf)
        return each if each.dim() == 1 else each.flatten(1).sum(1), None

    def log_table(self, x: Value, innovations: Noise | None = None) -> tuple[Tensor, Tensor | None]:
        chosen = arrays.nn.functional.one_hot(self.bin_of(x), self.bins)
        return arrays.where(chosen == 1, 0.0, -math.inf), None
