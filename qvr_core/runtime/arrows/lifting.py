"""Arrows lifted to sequences: positions become rows and back."""

from __future__ import annotations

from torch import Generator, Tensor

from qvr_core.runtime.arrows.combinators import no_density_words
from qvr_core.runtime.values import layout
from qvr_core.runtime.values.arrow import ArrowModule, Drawn, Noise, NoiseSpec, Value
from qvr_core.runtime.values.errors import NoDensity
from qvr_core.runtime.values.leaves import adopt
from qvr_core.semantics.types.spaces import Named


def flatten_time(value: Value) -> Value:
    """(B, L, …) to (B · L, …)."""
    return layout.from_parts([part.flatten(0, 1) for part in layout.parts(value)])


class LiftArrow(ArrowModule):
    """`body` at every position of a sequence: positions become rows and back."""

    def __init__(self, body: ArrowModule, domain: Named, codomain: Named) -> None:
        super().__init__()
        self.domain, self.codomain = domain, codomain
        self.body = (body,)
        self.sampled, self.has_density, self.paths = body.sampled, body.has_density, body.paths
        adopt(self, [body])

    def as_innovation(self) -> ArrowModule:
        inner = self.body[0].as_innovation()
        return self if inner is self.body[0] else LiftArrow(inner, self.domain, self.codomain)

    def _over_time(self, value: Value, x: Value) -> Value:
        lead = layout.parts(x)[0].shape[:2]
        return layout.from_parts([part.unflatten(0, lead) for part in layout.parts(value)])

    def forward(self, x: Value) -> Value:
        return self._over_time(self.body[0](flatten_time(x)), x)

    def output_like(self, x: Value) -> Value:
        return self._over_time(self.body[0].output_like(flatten_time(x)), x)

    def noise_specs(self, x: Value) -> list[NoiseSpec]:
        lead = layout.parts(x)[0].shape[:2]
        return [
            NoiseSpec(spec.path, (*lead, *spec.shape[1:]), spec.base, spec.final)
            for spec in self.body[0].noise_specs(flatten_time(x))
        ]

    def draw(
        self,
        x: Value,
        noise: Noise | None = None,
        *,
        generator: Generator | None = None,
        want_log_prob: bool = True,
    ) -> Drawn:
        lead = layout.parts(x)[0].shape[:2]
        drawn = self.body[0].draw(flatten_time(x), self._flat(noise), generator=generator, want_log_prob=want_log_prob)
        return Drawn(
            self._over_time(drawn.value, x),
            {path: u.unflatten(0, lead) for path, u in drawn.noise.items()},
            *(
                None if each is None else each.view(lead).sum(1)
                for each in (drawn.log_prob, drawn.log_innovations, drawn.log_noise, drawn.score_log_prob)
            ),
        )

    def _flat(self, noise: Noise | None) -> dict[str, Tensor] | None:
        if noise is None:
            return None
        return {path: u.flatten(0, 1) for path, u in noise.items() if path in self.paths}

    def densities(self, x: Value, y: Value, innovations: Noise | None = None) -> tuple[Tensor, Tensor | None]:
        log_prob, inner = self.densities_by_position(x, y, innovations)
        return log_prob.sum(1), None if inner is None else inner.sum(1)

    def densities_by_position(
        self, x: Value, y: Value, innovations: Noise | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """`densities` before they are summed over positions, (B, L)."""
        if not self.has_density:
            raise NoDensity(no_density_words(self))
        lead = layout.parts(x)[0].shape[:2]
        log_prob, inner = self.body[0].densities(flatten_time(x), flatten_time(y), self._flat(innovations))
        return log_prob.view(lead), None if inner is None else inner.view(lead)

    def log_table_by_position(self, x: Value, innovations: Noise | None = None) -> Tensor:
        """Log-probabilities (B, L, n) of all values at every position; only where the body is tabular."""
        lead = layout.parts(x)[0].shape[:2]
        return self.body[0].log_table(flatten_time(x), self._flat(innovations))[0].unflatten(0, lead)


def lifted(body: ArrowModule, domain: Named, codomain: Named) -> ArrowModule:
    """`body` over sequences; a pointwise arrow takes them as it is."""
    return body if body.pointwise else LiftArrow(body, domain, codomain)
