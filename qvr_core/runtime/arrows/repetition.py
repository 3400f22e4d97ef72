"""`repeat` at run time."""

from __future__ import annotations

from collections.abc import Generator as Yields
from contextlib import contextmanager
from contextvars import ContextVar

from qvr_core.arrays.engine import Generator, Tensor
from qvr_core.runtime.arrows.summation import compose
from qvr_core.runtime.arrows.terms_in_parts import in_steps
from qvr_core.runtime.values.arrow import ArrowModule, Drawn, Noise, NoiseSpec, Value
from qvr_core.runtime.values.leaves import adopt
from qvr_core.semantics.types.spaces import Named

_N_STEPS: ContextVar[int] = ContextVar("n_steps", default=1)


@contextmanager
def n_steps(count: int) -> Yields[None]:
    """Run every `repeat(f)` without a count of its own `count` times."""
    token = _N_STEPS.set(count)
    try:
        yield
    finally:
        _N_STEPS.reset(token)


def wanted_steps() -> int:
    """How often a `repeat(f)` without a count runs now."""
    return _N_STEPS.get()


class RepeatArrow(ArrowModule):
    """The same arrow `count` times; None: as often as `n_steps` says when it runs."""

    def __init__(self, body: ArrowModule, count: int | None, domain: Named, codomain: Named) -> None:
        super().__init__()
        self.domain, self.codomain = domain, codomain
        self.body = (body,)
        self.count = count
        self.sampled, self.pointwise, self.has_density = body.sampled, body.pointwise, body.has_density
        self.tabular, self.terms = body.tabular, body.terms
        self.unrolled: dict[int, ArrowModule] = {}
        self.paths = body.paths if count is None else self._times(count).paths
        adopt(self, [body])

    def _times(self, count: int) -> ArrowModule:
        if count not in self.unrolled:
            turns = [self.body[0]] * count
            self.unrolled[count] = in_steps(turns, lambda each: compose(each, self.domain, self.codomain))
        return self.unrolled[count]

    @property
    def chain(self) -> ArrowModule:
        """The composite of as many copies as wanted now."""
        return self._times(self.count if self.count is not None else wanted_steps())

    def forward(self, x: Value) -> Value:
        return self.chain(x)

    def output_like(self, x: Value) -> Value:
        return self.body[0].output_like(x)

    def noise_specs(self, x: Value) -> list[NoiseSpec]:
        return self.chain.noise_specs(x)

    def draw(
        self,
        x: Value,
        noise: Noise | None = None,
        *,
        generator: Generator | None = None,
        want_log_prob: bool = True,
    ) -> Drawn:
        return self.chain.draw(x, noise, generator=generator, want_log_prob=want_log_prob)

    def densities(self, x: Value, y: Value, innovations: Noise | None = None) -> tuple[Tensor, Tensor | None]:
        return self.chain.densities(x, y, innovations)

    def _conditioned(self, x: Value, y: Value, innovations: Noise | None = None) -> Drawn:
        return self.chain.conditioned(x, y, innovations)

    def log_table(self, x: Value, innovations: Noise | None = None) -> tuple[Tensor, Tensor | None]:
        return self.chain.log_table(x, innovations)

    def as_innovation(self) -> ArrowModule:
        inner = self.body[0].as_innovation()
        return self if inner is self.body[0] else RepeatArrow(inner, self.count, self.domain, self.codomain)
