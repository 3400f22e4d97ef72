"""Arrows lifted to sequences and to plates: positions, or the elements of a plate, become rows and back."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext

from qvr_core.arrays.engine import Generator, Tensor, arrays
from qvr_core.runtime.arrows.combinators import no_density_words
from qvr_core.runtime.arrows.terms_in_parts import of_part
from qvr_core.runtime.arrows.training import along_a_sequence
from qvr_core.runtime.values import layout
from qvr_core.runtime.values.arrow import ArrowModule, Drawn, Noise, NoiseSpec, Term, Value
from qvr_core.runtime.values.errors import NoDensity
from qvr_core.runtime.values.leaves import adopt
from qvr_core.semantics.types.spaces import Named, has_seq


def flatten_time(value: Value) -> Value:
    """(B, L, …) to (B · L, …)."""
    return _flattened(value, 2)


def _flattened(value: Value, depth: int) -> Value:
    return layout.from_parts([part.flatten(0, depth - 1) for part in layout.parts(value)])


class LiftArrow(ArrowModule):
    """`body` at every position of a sequence, (B, L, …), or at every element of a plate.

    `depth` is the number of leading axes that become rows: the rows themselves, and one for the positions or one for
    each set of the plate.
    """

    def __init__(self, body: ArrowModule, domain: Named, codomain: Named, depth: int = 2) -> None:
        super().__init__()
        self.depth = depth
        self.domain, self.codomain = domain, codomain
        self._over_positions = has_seq(domain.space)
        self.body = (body,)
        self.sampled, self.has_density, self.paths = body.sampled, body.has_density, body.paths
        self.terms = body.terms
        adopt(self, [body])

    def as_innovation(self) -> ArrowModule:
        inner = self.body[0].as_innovation()
        return self if inner is self.body[0] else LiftArrow(inner, self.domain, self.codomain, self.depth)

    def _rows(self, value: Value) -> Value:
        return _flattened(value, self.depth)

    def _lead(self, x: Value) -> tuple[int, ...]:
        return tuple(layout.parts(x)[0].shape[: self.depth])

    def _over_time(self, value: Value, x: Value) -> Value:
        lead = self._lead(x)
        return layout.from_parts([arrays.unflatten(part, 0, lead) for part in layout.parts(value)])

    def forward(self, x: Value) -> Value:
        with self._sequence(x):
            return self._over_time(self.body[0](self._rows(x)), x)

    def _sequence(self, x: Value) -> AbstractContextManager[None]:
        """The positions of a sequence have one dropout mask; the elements of a plate are apart."""
        return along_a_sequence(self._lead(x)) if self._over_positions else nullcontext()

    def output_like(self, x: Value) -> Value:
        return self._over_time(self.body[0].output_like(self._rows(x)), x)

    def noise_specs(self, x: Value) -> list[NoiseSpec]:
        lead = self._lead(x)
        return [
            NoiseSpec(spec.path, (*lead, *spec.shape[1:]), spec.base, spec.final)
            for spec in self.body[0].noise_specs(self._rows(x))
        ]

    def draw(
        self,
        x: Value,
        noise: Noise | None = None,
        *,
        generator: Generator | None = None,
        want_log_prob: bool = True,
    ) -> Drawn:
        lead = self._lead(x)
        with self._sequence(x), self._of_body():
            drawn = self.body[0].draw(
                self._rows(x), self._flat(noise), generator=generator, want_log_prob=want_log_prob
            )
        return Drawn(
            self._over_time(drawn.value, x),
            {path: u.unflatten(0, lead) for path, u in drawn.noise.items()},
            *(
                None if each is None else each.view(lead).flatten(1).sum(1)
                for each in (drawn.log_prob, drawn.log_innovations, drawn.log_noise, drawn.score_log_prob)
            ),
            terms=self._terms(drawn, lead),
        )

    @staticmethod
    def _terms(drawn: Drawn, lead: tuple[int, ...]) -> dict[str, Term]:
        """The terms with the positions as axes behind the rows."""
        return {
            name: Term(
                arrays.unflatten(term.value, 0, lead),
                None if term.log_prob is None else term.log_prob.view(lead).flatten(1).sum(1),
                term.given,
            )
            for name, term in drawn.terms.items()
        }

    def _of_body(self) -> AbstractContextManager[None]:
        """What the body observes, where it observes anything."""
        return of_part(self._flat_data) if self.terms else nullcontext()

    def _flat_data(self, data: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """What the body observes, its positions as rows."""
        return {name: value.flatten(0, self.depth - 1) for name, value in data.items()}

    def _flat(self, noise: Noise | None) -> dict[str, Tensor] | None:
        if noise is None:
            return None
        return {path: u.flatten(0, self.depth - 1) for path, u in noise.items() if path in self.paths}

    def densities(self, x: Value, y: Value, innovations: Noise | None = None) -> tuple[Tensor, Tensor | None]:
        log_prob, inner = self.densities_by_position(x, y, innovations)
        return log_prob.flatten(1).sum(1), None if inner is None else inner.flatten(1).sum(1)

    def _conditioned(self, x: Value, y: Value, innovations: Noise | None = None) -> Drawn:
        lead = self._lead(x)
        with self._sequence(x), self._of_body():
            drawn = self.body[0].conditioned(self._rows(x), self._rows(y), self._flat(innovations))
        log_prob, inner = (
            None if each is None else each.view(lead).flatten(1).sum(1)
            for each in (drawn.log_prob, drawn.log_innovations)
        )
        return Drawn(y, {}, log_prob, inner, terms=self._terms(drawn, lead))

    def densities_by_position(
        self, x: Value, y: Value, innovations: Noise | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """`densities` before they are summed over positions, (B, L), or over the elements of a plate, (B, …)."""
        if not self.has_density:
            raise NoDensity(no_density_words(self))
        lead = self._lead(x)
        with self._sequence(x), self._of_body():
            log_prob, inner = self.body[0].densities(self._rows(x), self._rows(y), self._flat(innovations))
        return log_prob.view(lead), None if inner is None else inner.view(lead)

    def log_table_by_position(self, x: Value, innovations: Noise | None = None) -> Tensor:
        """Log-probabilities (B, L, n) of all values at every position; only where the body is tabular."""
        lead = self._lead(x)
        with self._sequence(x):
            return arrays.unflatten(self.body[0].log_table(self._rows(x), self._flat(innovations))[0], 0, lead)


def lifted(body: ArrowModule, domain: Named, codomain: Named) -> ArrowModule:
    """`body` over sequences; a pointwise arrow takes them as it is."""
    return body if body.pointwise else LiftArrow(body, domain, codomain)
