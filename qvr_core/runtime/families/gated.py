"""Counts with zeros of their own: `ZeroInflated(gate, …)` and `Hurdle(gate, …)` of any family of counts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from qvr_core.arrays.engine import Generator, Tensor, arrays
from qvr_core.arrays.engine import functional as F
from qvr_core.runtime.families.counts import bernoulli_draw
from qvr_core.runtime.families.cumulative.quantiles import truncated_draw
from qvr_core.runtime.families.cumulative.tails import Tails, from_smaller, zero_or
from qvr_core.runtime.families.family import RuntimeFamily
from qvr_core.runtime.families.links import Params
from qvr_core.runtime.families.parametrisations import canonical
from qvr_core.runtime.families.random_draws import Shape, open_uniforms
from qvr_core.runtime.values.errors import RuntimeProblem
from qvr_core.semantics.language.family import Family, Support
from qvr_core.semantics.language.gates import GATE, HURDLE, gated

_GATE_ALONE = Family("gate", (GATE,), Support("finite"), "value", "")
_GATES = (GATE.name, GATE.alternatives[0][0])
MOST_TRIES = 10_000
"""Draws of counts of which none is above 0."""


@dataclass(frozen=True, slots=True)
class GatedFamily(RuntimeFamily):
    """Counts behind a gate; the parameters are the gate's logit, then those of the counts."""

    counts: RuntimeFamily | None = None

    @property
    def ranks(self) -> tuple[int, ...]:
        """Those of the runtime's parameters."""
        return (0, *_counts(self).ranks)

    def canonical(self, arguments: Mapping[str, Tensor]) -> Params:
        """The gate's logit, then the counts' arguments in their own form."""
        own = {name: value for name, value in arguments.items() if name not in _GATES}
        gate = canonical(_GATE_ALONE, {name: value for name, value in arguments.items() if name in _GATES}, {})
        return (*gate, *_counts(self).canonical(own))

    def _ends(self, parameters: Params) -> tuple[Tensor, Tensor]:
        """The least and the greatest value."""
        return _counts(self)._ends(parameters[1:])


def _counts(family: GatedFamily) -> RuntimeFamily:
    assert family.counts is not None
    return family.counts


def gated_family(kind: str, counts: RuntimeFamily) -> RuntimeFamily:
    """The family of counts from `counts` behind a gate."""
    facts = gated(kind, counts.facts)
    hurdle = kind == HURDLE

    def log_above(like: Tensor, parameters: Params) -> Tensor:
        """log P(X > 0) of the counts."""
        zero = counts.log_prob(arrays.zeros_like(like), *parameters)
        possible = zero < 0.0
        return arrays.where(possible, (-arrays.expm1(arrays.where(possible, zero, -1.0))).log(), math.inf)

    def log_prob(value: Tensor, gate: Tensor, *parameters: Tensor) -> Tensor:
        value = value if value.is_floating_point() else value.to(gate.dtype)
        density = F.logsigmoid(-gate) + counts.log_prob(value, *parameters)
        if hurdle:
            return arrays.where(value == 0, F.logsigmoid(gate), density - log_above(value, parameters))
        return arrays.where(value == 0, arrays.logaddexp(F.logsigmoid(gate), density), density)

    def above_zero(shape: Shape, generator: Generator | None, gate: Tensor, parameters: Params) -> Tensor:
        if counts.tails is not None:
            return truncated_draw(
                counts, open_uniforms(shape, gate, generator), arrays.ones_like(gate), None, parameters
            )
        found = arrays.zeros(shape, dtype=gate.dtype, device=gate.device)
        for _ in range(MOST_TRIES):
            if bool((found > 0).all()):
                return found
            more = counts.value_of(counts.fresh_noise(shape, generator, parameters), parameters)
            found = arrays.where(found > 0, found, more.to(found.dtype))
        raise RuntimeProblem(f"{facts.name}: of {MOST_TRIES:,} draws of {counts.name} some are always 0")

    def draw(shape: Shape, generator: Generator | None, gate: Tensor, *parameters: Tensor) -> Tensor:
        closed = bernoulli_draw(shape, generator, gate)
        if hurdle:
            found = above_zero(shape, generator, gate, parameters)
        else:
            found = counts.value_of(counts.fresh_noise(shape, generator, parameters), parameters)
        return arrays.where(closed > 0, 0.0, found.to(closed.dtype))

    def tails(value: Tensor, gate: Tensor, *parameters: Tensor) -> Tails:
        opened, closed = F.logsigmoid(-gate), F.logsigmoid(gate)
        if not hurdle:
            return zero_or(counts.log_tails(value, *parameters), opened, closed)
        whole = log_above(value, parameters)
        lower = opened + counts.log_between(arrays.zeros_like(value), value, *parameters) - whole
        upper = opened + counts.log_tails(value, *parameters)[1] - whole
        return from_smaller(arrays.logaddexp(closed.expand_as(lower), lower), upper)

    return GatedFamily(
        replace(facts, cdf=counts.tails is not None),
        log_prob,
        draw=draw,
        reparameterised=False,
        conversions=counts.conversions,
        tails=tails if counts.tails is not None else None,
        counts=counts,
    )
