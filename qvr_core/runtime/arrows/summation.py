"""Finite intermediates summed out: `a >> b` where the value between a and b is finite (docs/reference.md#densities)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from qvr_core.arrays.engine import Generator, Tensor, arrays
from qvr_core.runtime.arrows.combinators import ComposeArrow
from qvr_core.runtime.arrows.layers import EmbedArrow
from qvr_core.runtime.arrows.lifting import LiftArrow, flatten_time
from qvr_core.runtime.arrows.normal_scan import NormalScan
from qvr_core.runtime.arrows.scan import ScanArrow
from qvr_core.runtime.values import layout
from qvr_core.runtime.values.arrow import ArrowModule, Drawn, Noise, NoiseSpec, Value
from qvr_core.runtime.values.drawing import Parts, plus, require_innovations
from qvr_core.runtime.values.leaves import adopt
from qvr_core.semantics.types.density import MOST_SUMMED
from qvr_core.semantics.types.spaces import Named, Space, has_seq, sequence_of

MOST_NUMBERS = 2**24
"""Values × rows × downstream width up to which they are summed out."""


def compose(stages: Sequence[ArrowModule], domain: Named, codomain: Named) -> ArrowModule:
    """`a >> b >> …` with every finite intermediate summed out that can be.

    A finite value per row is summed by its table; finite states of a scan with `emit=all` by the forward algorithm; a
    finite sequence otherwise position by position, where what follows works on each position alone.
    """
    flat = _with_tables([inner for stage in stages for inner in stages_of(stage)])
    sequence = has_seq(domain.space)
    for cut, stage in enumerate(flat[:-1]):
        sequence = sequence if stage.pointwise else has_seq(stage.codomain.space)
        rest = flat[cut + 1 :]
        if not (stage.sampled and any(later.sampled for later in rest) and _finite(stage)):
            continue
        between = sequence_of(rest[0].domain.space) if sequence else rest[0].domain.space
        tail = compose(rest, Named(between, rest[0].domain.written), codomain)
        # what is scored behind a value is a term of the whole, and there is none for each value
        counted = stage.terms or tail.terms or not tail.has_density
        if counted or layout.total_elements(stage.codomain.space) * summed_values(tail) > MOST_SUMMED:
            continue
        before = Named(domain.space if cut == 0 else stage.domain.space, stage.domain.written)
        if isinstance(stage, ScanArrow) and stage.emit_all:
            if stage.tabular_cell and tail.pointwise:
                return _chain([*flat[:cut], HiddenMarkovArrow(stage, tail, before, codomain)], domain, codomain)
        elif stage.tabular and (not sequence or (stage.pointwise and tail.pointwise)):
            return _chain([*flat[:cut], SummedArrow(stage, tail, before, codomain)], domain, codomain)
    return _chain(flat, domain, codomain)


def _with_tables(stages: list[ArrowModule]) -> list[ArrowModule]:
    """A table in front of a fused scan becomes part of it."""
    merged: list[ArrowModule] = []
    for stage in stages:
        before = merged[-1] if merged else None
        if isinstance(stage, NormalScan) and stage.embedding[0] is None and isinstance(before, EmbedArrow):
            merged[-1] = stage.after(before)
        else:
            merged.append(stage)
    return merged


def stages_of(arrow: ArrowModule) -> tuple[ArrowModule, ...]:
    """The flat stages of a composite."""
    if type(arrow) is ComposeArrow:
        return tuple(inner for stage in arrow.stages for inner in stages_of(stage))
    if isinstance(arrow, SummedArrow):
        return (*stages_of(arrow.head[0]), *stages_of(arrow.tail[0]))
    return (arrow,)


def summed_values(arrow: ArrowModule) -> int:
    """Joint size of what an arrow sums out."""
    return arrow.values * summed_values(arrow.tail[0]) if isinstance(arrow, SummedArrow) else 1


def _finite(arrow: ArrowModule) -> bool:
    return all(block.finite for block in layout.blocks(arrow.codomain.space))


def _chain(stages: Sequence[ArrowModule], domain: Named, codomain: Named) -> ArrowModule:
    return stages[0] if len(stages) == 1 else ComposeArrow(stages, domain, codomain)


def repeat_each(value: Value, count: int) -> Value:
    """Every row `count` times in a row."""
    return layout.from_parts([part.repeat_interleave(count, 0) for part in layout.parts(value)])


def repeat_noise(noise: Noise | None, count: int) -> Noise | None:
    """Noise shared by the `count` values of every row."""
    return None if noise is None else {path: u.repeat_interleave(count, 0) for path, u in noise.items()}


class SummedArrow(ArrowModule):
    """`head >> tail` where head ends in one finite value per row: log p(y | x, u) = log Σ_z p(z | x, u) p(y | z, u).

    The innovations u are those of the head before z and of the tail, shared by all z.  z itself is neither in the
    noise nor in its specs, unless the sum would be too large for the rows at hand: then z is an innovation.
    """

    sampled = True

    def __init__(self, head: ArrowModule, tail: ArrowModule, domain: Named, codomain: Named) -> None:
        super().__init__()
        self.domain, self.codomain = domain, codomain
        self.head, self.tail = (head,), (tail,)
        self.parts = Parts([head, tail])
        self.between = head.codomain.space
        self.values = layout.total_elements(self.between)
        self.plain = (ComposeArrow([head, *stages_of(tail)], domain, codomain),)
        self.paths = tuple(dict.fromkeys((*self.parts.paths, *self.plain[0].paths)))
        self.tabular = tail.tabular
        self.pointwise = head.pointwise and tail.pointwise
        self.widest = max(layout.width(stage.codomain.space) for stage in stages_of(tail))
        adopt(self, [head, tail])

    def as_innovation(self) -> ArrowModule:
        return self.plain[0].as_innovation()

    def _as_rows(self, x: Value) -> ArrowModule | None:
        """What treats this `x` instead: positions as rows, or the plain composite where the sum would be too large."""
        if self.pointwise and len(layout.lead_shape(x, self.head[0].domain.space)) > 1:
            return LiftArrow(self, self.domain, self.codomain)
        rows = layout.parts(x)[0].shape[0]
        return None if self.values * rows * self.widest <= MOST_NUMBERS else self.plain[0]

    def output_like(self, x: Value) -> Value:
        return self.plain[0].output_like(x)

    def noise_specs(self, x: Value) -> list[NoiseSpec]:
        if (other := self._as_rows(x)) is not None:
            return other.noise_specs(x)
        before = [spec for spec in self.parts.specs(0, x, True) if not spec.final]
        return before + self.parts.specs(1, self.head[0].output_like(x), True)

    def draw(
        self,
        x: Value,
        noise: Noise | None = None,
        *,
        generator: Generator | None = None,
        want_log_prob: bool = True,
    ) -> Drawn:
        if (other := self._as_rows(x)) is not None:
            return other.draw(x, noise, generator=generator, want_log_prob=want_log_prob)
        drawn = _draw_hidden(self.parts, x, noise, generator, want_log_prob)
        if want_log_prob:
            drawn.log_prob, drawn.log_innovations = self.densities(x, drawn.value, drawn.noise)
        return drawn

    def densities(self, x: Value, y: Value, innovations: Noise | None = None) -> tuple[Tensor, Tensor | None]:
        if (other := self._as_rows(x)) is not None:
            return other.densities(x, y, innovations)
        require_innovations(self, x, innovations)
        table, each, inner = self._terms(
            x, innovations, lambda z, u: self.tail[0].densities(z, repeat_each(y, self.values), u)
        )
        return arrays.logsumexp(table + each.view_as(table), dim=1), inner

    def log_table(self, x: Value, innovations: Noise | None = None) -> tuple[Tensor, Tensor | None]:
        table, each, inner = self._terms(x, innovations, self.tail[0].log_table)
        return arrays.logsumexp(table.unsqueeze(2) + each.view(*table.shape, -1), 1), inner

    def _terms(
        self, x: Value, innovations: Noise | None, of_tail: Callable[[Value, Noise | None], Terms]
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """log p(z | x, u) (B, K), the tail's terms at every (row, z), and log p(u | x)."""
        rows = layout.parts(x)[0].shape[0]
        table, before = self.head[0].log_table(x, self.parts.noise_of(0, innovations))
        z = all_values(self.between, rows, layout.parts(x)[0])
        each, after = of_tail(z, repeat_noise(self.parts.noise_of(1, innovations), self.values))
        # the same u stands in each of a row's copies: its density counts once
        return table, each, plus(before, None if after is None else after.view(rows, self.values)[:, 0])


Terms = tuple[Tensor, Tensor | None]


def all_values(space: Space, rows: int, like: Tensor) -> Value:
    """Every element of a finite space, once for each of `rows` rows."""
    index = arrays.arange(layout.total_elements(space), device=like.device).repeat(rows)
    return layout.from_flat_index(index, space) if len(layout.blocks(space)) > 1 else index


def _draw_hidden(
    parts: Parts, x: Value, noise: Noise | None, generator: Generator | None, want_log_prob: bool
) -> Drawn:
    """A draw through both parts in which the last draw of the first leaves no trace in the noise."""
    head = parts.draw(0, x, noise, generator, want_log_prob)
    tail = parts.draw(1, head.value, noise, generator, want_log_prob)
    hidden = {spec.path for spec in parts.specs(0, x, True) if spec.final}
    made = {path: u for path, u in head.noise.items() if path not in hidden} | tail.noise
    drawn = Drawn(tail.value, made, None, None)
    drawn.score_log_prob = plus(head.score_log_prob, tail.score_log_prob)
    if want_log_prob:
        drawn.log_noise = plus(head.log_innovations, tail.log_noise)
    return drawn


class HiddenMarkovArrow(ArrowModule):
    """`scan(cell, emit=all) >> emission` with finite states: the states are summed out by the forward algorithm.

    The emission works at every position by itself; its innovations, where it has some, are shared by all states.
    """

    sampled = True

    def __init__(self, chain: ScanArrow, emission: ArrowModule, domain: Named, codomain: Named) -> None:
        super().__init__()
        self.domain, self.codomain = domain, codomain
        self.chain, self.emission = (chain,), (emission,)
        self.parts = Parts([chain, emission])
        self.values = layout.total_elements(chain.state)
        self.plain = (ComposeArrow([chain, *stages_of(emission)], domain, codomain),)
        self.paths = self.parts.paths
        adopt(self, [chain, emission])

    def as_innovation(self) -> ArrowModule:
        return self.plain[0].as_innovation()

    def output_like(self, x: Value) -> Value:
        return self.plain[0].output_like(x)

    def noise_specs(self, x: Value) -> list[NoiseSpec]:
        before = [spec for spec in self.parts.specs(0, x, True) if not spec.final]
        return before + self.parts.specs(1, self.chain[0].output_like(x), True)

    def draw(
        self,
        x: Value,
        noise: Noise | None = None,
        *,
        generator: Generator | None = None,
        want_log_prob: bool = True,
    ) -> Drawn:
        drawn = _draw_hidden(self.parts, x, noise, generator, want_log_prob)
        if want_log_prob:
            drawn.log_prob, drawn.log_innovations = self.densities(x, drawn.value, drawn.noise)
        return drawn

    def densities(self, x: Value, y: Value, innovations: Noise | None = None) -> tuple[Tensor, Tensor | None]:
        require_innovations(self, x, innovations)
        chain, count = self.chain[0], self.values
        rows, length = layout.parts(x)[0].shape[:2]
        states = all_values(chain.state, rows * length, layout.parts(x)[0])
        given = self.parts.noise_of(1, innovations) or {}
        own = {path: u.flatten(0, 1) for path, u in given.items() if path in self.emission[0].paths}
        observed = repeat_each(flatten_time(y), count)
        each, after = self.emission[0].densities(states, observed, repeat_noise(own, count))
        belief, before = chain.forward_algorithm(x, self.parts.noise_of(0, innovations), each.view(rows, length, count))
        once = None if after is None else after.view(rows, length, count)[..., 0].sum(1)
        return arrays.logsumexp(belief, 1), plus(before, once)
