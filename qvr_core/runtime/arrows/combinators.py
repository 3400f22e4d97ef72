"""Sequential and parallel composition at run time: `>>`, `@`, `fan`, `residual`, a named factor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from qvr_core.arrays.engine import Generator, Tensor, is_tensor
from qvr_core.runtime.arrows.normal_chain import NormalStage, draw_chain, normal_stage, standard_density
from qvr_core.runtime.values import layout
from qvr_core.runtime.values.arrow import ArrowModule, Drawn, Noise, NoiseSpec, Term, Value
from qvr_core.runtime.values.drawing import Parts, plus, require_innovations
from qvr_core.runtime.values.errors import NoDensity
from qvr_core.runtime.values.leaves import adopt
from qvr_core.semantics.types.spaces import Named


class ComposeArrow(ArrowModule):
    """`a >> b >> …`.  The draws of all stages but the last sampled one are innovations."""

    def __init__(self, stages: Sequence[ArrowModule], domain: Named, codomain: Named) -> None:
        super().__init__()
        self.domain, self.codomain = domain, codomain
        flat = [inner for stage in stages for inner in (stage.stages if type(stage) is ComposeArrow else (stage,))]
        last = max((index for index, stage in enumerate(flat) if stage.sampled), default=0)
        flat[:last] = [stage.as_innovation() for stage in flat[:last]]
        self.stages = tuple(flat)
        self.parts = Parts(flat)
        self.paths = self.parts.paths
        sampled = [index for index, stage in enumerate(flat) if stage.sampled]
        self.sampled = bool(sampled)
        self.last_sampled = sampled[-1] if sampled else -1
        self.has_density = self.sampled and self.last_sampled == len(flat) - 1 and flat[-1].has_density
        self.pointwise = all(stage.pointwise for stage in flat)
        self.tabular = self.has_density and flat[-1].tabular
        self.terms = {name: word for stage in flat for name, word in stage.terms.items()}
        self.chains = self._find_chains()
        adopt(self, flat)

    def as_innovation(self) -> ArrowModule:
        changed = [stage.as_innovation() for stage in self.stages]
        if all(new is old for new, old in zip(changed, self.stages, strict=True)):
            return self
        return ComposeArrow(changed, self.domain, self.codomain)

    def _find_chains(self) -> dict[int, list[NormalStage]]:
        """Runs of stages that go as one function, by their first index."""
        found: dict[int, list[NormalStage]] = {}
        run: list[NormalStage] = []
        for index, arrow in enumerate(self.stages):
            stage = stage_of(arrow)
            if stage is None:
                run = []
                continue
            if not run:
                found[index] = run
            run.append(replace(stage, paths=self.parts.outer_paths(index, stage.paths)))
        return found

    def forward(self, x: Value) -> Value:
        for stage in self.stages:
            x = stage(x)
        return x

    def factor(self, x: Value, index: int) -> Value:
        for stage in self.stages[:-1]:
            x = stage(x)
        return factor_of(self.stages[-1], x, index)

    def output_like(self, x: Value) -> Value:
        for stage in self.stages:
            x = stage.output_like(x)
        return x

    def noise_specs(self, x: Value) -> list[NoiseSpec]:
        specs: list[NoiseSpec] = []
        for index, stage in enumerate(self.stages[: self.last_sampled + 1]):
            specs.extend(self.parts.specs(index, x, self.has_density and index == self.last_sampled))
            if index < self.last_sampled:
                x = stage.output_like(x)
        return specs

    def draw(
        self,
        x: Value,
        noise: Noise | None = None,
        *,
        generator: Generator | None = None,
        want_log_prob: bool = True,
    ) -> Drawn:
        if not want_log_prob or not self.has_density:
            return self.draw_inside(x, noise, generator=generator, want_log_prob=want_log_prob)
        last = len(self.stages) - 1
        before = self._through(x, last, noise, generator, True)
        drawn = self.parts.draw(last, before.value, noise, generator, True)
        return Drawn(
            drawn.value,
            before.noise | drawn.noise,
            drawn.log_prob,
            plus(before.log_noise, drawn.log_innovations),
            plus(before.log_noise, drawn.log_noise),
            plus(before.score_log_prob, drawn.score_log_prob),
            before.terms | drawn.terms,
        )

    def draw_inside(
        self,
        x: Value,
        noise: Noise | None = None,
        *,
        generator: Generator | None = None,
        want_log_prob: bool = True,
    ) -> Drawn:
        drawn = self._through(x, len(self.stages), noise, generator, want_log_prob)
        if not self.has_density:
            drawn.log_innovations = drawn.log_noise
        return drawn

    def _through(
        self, x: Value, stop: int, noise: Noise | None, generator: Generator | None, want_log_noise: bool
    ) -> Drawn:
        """The value before stage `stop`, with the noise on its way and its log density."""
        made: dict[str, Tensor] = {}
        log_noise: Tensor | None = None
        score: Tensor | None = None
        terms: dict[str, Term] = {}
        index = 0
        while index < stop:
            chain = self.chains.get(index, [])[: stop - index]
            # one kernel alone is faster as it is (measured: 137 against 194 us at 4 rows)
            if sum(stage.shape.kernels for stage in chain) > 1 and is_tensor(x) and x.dim() == 2:
                values, fresh = draw_chain([chain], [x], [noise], generator)
                x, index = values[0], index + len(chain)
                inner = standard_density(fresh) if want_log_noise else None
            else:
                drawn = self.parts.draw(index, x, noise, generator, want_log_noise, inside=True)
                x, fresh, inner = drawn.value, drawn.noise, drawn.log_noise
                score = plus(score, drawn.score_log_prob)
                terms.update(drawn.terms)
                index += 1
            made.update(fresh)
            log_noise = plus(log_noise, inner)
        return Drawn(x, made, None, None, log_noise, score, terms)

    def _conditioned(self, x: Value, y: Value, innovations: Noise | None = None) -> Drawn:
        if not self.has_density:
            raise NoDensity(no_density_words(self))
        last = len(self.stages) - 1
        before = self._before_last(x, innovations)
        drawn = self.stages[last].conditioned(before.value, y, self.parts.noise_of(last, innovations))
        drawn.log_innovations = plus(before.log_noise, drawn.log_innovations)
        drawn.terms = before.terms | drawn.terms
        return drawn

    def densities(self, x: Value, y: Value, innovations: Noise | None = None) -> tuple[Tensor, Tensor | None]:
        drawn = self._conditioned(x, y, innovations)
        assert drawn.log_prob is not None
        return drawn.log_prob, drawn.log_innovations

    def log_table(self, x: Value, innovations: Noise | None = None) -> tuple[Tensor, Tensor | None]:
        last = len(self.stages) - 1
        before = self._before_last(x, innovations)
        table, inner = self.stages[last].log_table(before.value, self.parts.noise_of(last, innovations))
        return table, plus(before.log_noise, inner)

    def _before_last(self, x: Value, innovations: Noise | None) -> Drawn:
        """The value that reaches the last stage, and the log density of the noise on its way."""
        before = self.stages[:-1]
        if any(stage.sampled for stage in before) and not _given(self.parts.paths, innovations):
            require_innovations(self, x, innovations)
        return self._through(x, len(before), innovations, None, True)


@dataclass(frozen=True, slots=True)
class Lane:
    """A branch that is a chain after deterministic arrows."""

    before: tuple[ArrowModule, ...]
    stages: list[NormalStage]

    def input(self, x: Value) -> Value:
        """What reaches the chain."""
        for arrow in self.before:
            x = arrow(x)
        return x


def stage_of(arrow: ArrowModule) -> NormalStage | None:
    """A kernel, or a fan of kernels of one shape, as a stage of a chain."""
    if isinstance(arrow, ParallelArrow):
        return normal_stage(arrow.branches, arrow.paths) if arrow.shared_input else None
    return normal_stage([arrow], arrow.paths)


def lane_of(branch: ArrowModule) -> Lane | None:
    """A branch as a lane."""
    stages = branch.stages if isinstance(branch, ComposeArrow) else (branch,)
    count = next((index for index, stage in enumerate(stages) if stage.sampled), len(stages))
    if isinstance(branch, ComposeArrow):
        chain = branch.chains.get(count, [])
    else:
        alone = stage_of(branch)
        chain = [] if alone is None else [alone]
    return Lane(stages[:count], chain) if chain and count + len(chain) == len(stages) else None


def _given(paths: Sequence[str], innovations: Noise | None) -> bool:
    return innovations is not None and all(path in innovations for path in paths)


def no_density_words(arrow: ArrowModule) -> str:
    """Why an arrow has no density."""
    if not arrow.sampled:
        return "this arrow is deterministic: it has no density"
    return (
        "a sampled arrow is followed by a deterministic one here, so the value has no density of its own; "
        "let the last stage be a kernel, or observe a later site"
    )


class ParallelArrow(ArrowModule):
    """Branches side by side: `fan` gives all of them the same input, `@` cuts the input for them.

    Each branch ends in a last draw of its own; the density is the product.
    """

    def __init__(self, branches: Sequence[ArrowModule], domain: Named, codomain: Named, shared_input: bool) -> None:
        super().__init__()
        self.domain, self.codomain = domain, codomain
        self.branches = tuple(branches)
        self.shared_input = shared_input
        self.parts = Parts(self.branches)
        self.paths = self.parts.paths
        self.sampled = any(branch.sampled for branch in self.branches)
        # a deterministic branch beside a sampled one leaves a value that has no density
        self.has_density = self.sampled and all(branch.sampled and branch.has_density for branch in self.branches)
        self.pointwise = all(branch.pointwise for branch in self.branches)
        self.tabular = self.has_density and all(branch.tabular for branch in self.branches)
        self.terms = {name: word for branch in self.branches for name, word in branch.terms.items()}
        self.lanes = self._find_lanes()
        adopt(self, self.branches)

    def _find_lanes(self) -> list[Lane] | None:
        """The branches as lanes of one chain, where all of them are chains of the same shapes."""
        lanes = [lane_of(branch) for branch in self.branches]
        known = [lane for lane in lanes if lane is not None]
        if len(known) < len(lanes) or len({tuple(stage.shape for stage in lane.stages) for lane in known}) != 1:
            return None
        return [
            replace(lane, stages=[replace(s, paths=self.parts.outer_paths(index, s.paths)) for s in lane.stages])
            for index, lane in enumerate(known)
        ]

    def draw_inside(
        self,
        x: Value,
        noise: Noise | None = None,
        *,
        generator: Generator | None = None,
        want_log_prob: bool = True,
    ) -> Drawn:
        if self.lanes is None:
            return self._draw_each(x, noise, generator, want_log_prob, inside=True)
        inputs = [lane.input(part) for lane, part in zip(self.lanes, self.inputs(x), strict=True)]
        flat = [value for value in inputs if is_tensor(value) and value.dim() == 2]
        if len(flat) < len(inputs):
            return self._draw_each(x, noise, generator, want_log_prob, inside=True)
        values, made = draw_chain([lane.stages for lane in self.lanes], flat, [noise] * len(flat), generator)
        log_noise = standard_density(made) if want_log_prob else None
        return Drawn(layout.join(values), made, None, None, log_noise)

    def as_innovation(self) -> ArrowModule:
        changed = [branch.as_innovation() for branch in self.branches]
        if all(new is old for new, old in zip(changed, self.branches, strict=True)):
            return self
        return ParallelArrow(changed, self.domain, self.codomain, self.shared_input)

    def log_table(self, x: Value, innovations: Noise | None = None) -> tuple[Tensor, Tensor | None]:
        table: Tensor | None = None
        log_innovations: Tensor | None = None
        for index, (branch, part) in enumerate(zip(self.branches, self.inputs(x), strict=True)):
            each, inner = branch.log_table(part, self.parts.noise_of(index, innovations))
            table = each if table is None else (table.unsqueeze(-1) + each.unsqueeze(-2)).flatten(-2)
            log_innovations = plus(log_innovations, inner)
        assert table is not None
        return table, log_innovations

    def inputs(self, x: Value) -> list[Value]:
        """The input of each branch."""
        if self.shared_input:
            return [x] * len(self.branches)
        return layout.regroup(x, [branch.domain.space for branch in self.branches])

    def forward(self, x: Value) -> Value:
        return layout.join([branch(part) for branch, part in zip(self.branches, self.inputs(x), strict=True)])

    def output_like(self, x: Value) -> Value:
        pairs = zip(self.branches, self.inputs(x), strict=True)
        return layout.join([branch.output_like(part) for branch, part in pairs])

    def noise_specs(self, x: Value) -> list[NoiseSpec]:
        return [
            spec
            for index, part in enumerate(self.inputs(x))
            for spec in self.parts.specs(index, part, self.has_density)
        ]

    def draw(
        self,
        x: Value,
        noise: Noise | None = None,
        *,
        generator: Generator | None = None,
        want_log_prob: bool = True,
    ) -> Drawn:
        if not want_log_prob:
            return self.draw_inside(x, noise, generator=generator, want_log_prob=False)
        return self._draw_each(x, noise, generator, True, inside=False)

    def _draw_each(
        self, x: Value, noise: Noise | None, generator: Generator | None, want_log_prob: bool, *, inside: bool
    ) -> Drawn:
        made: dict[str, Tensor] = {}
        values: list[Value] = []
        total = Drawn(x, made, None, None)
        for index, part in enumerate(self.inputs(x)):
            drawn = self.parts.draw(index, part, noise, generator, want_log_prob, inside=inside)
            values.append(drawn.value)
            made.update(drawn.noise)
            total.log_prob = plus(total.log_prob, drawn.log_prob)
            total.log_innovations = plus(total.log_innovations, drawn.log_innovations)
            total.log_noise = plus(total.log_noise, drawn.log_noise)
            total.score_log_prob = plus(total.score_log_prob, drawn.score_log_prob)
            total.terms.update(drawn.terms)
        total.value = layout.join(values)
        if not self.has_density:
            total.log_prob, total.log_innovations = None, total.log_noise
        return total

    def _conditioned(self, x: Value, y: Value, innovations: Noise | None = None) -> Drawn:
        if not self.has_density:
            raise NoDensity(no_density_words(self))
        values = layout.regroup(y, [branch.codomain.space for branch in self.branches])
        total = Drawn(y, {}, None, None)
        for index, (branch, part) in enumerate(zip(self.branches, self.inputs(x), strict=True)):
            drawn = branch.conditioned(part, values[index], self.parts.noise_of(index, innovations))
            total.log_prob = plus(total.log_prob, drawn.log_prob)
            total.log_innovations = plus(total.log_innovations, drawn.log_innovations)
            total.terms.update(drawn.terms)
        return total

    def densities(self, x: Value, y: Value, innovations: Noise | None = None) -> tuple[Tensor, Tensor | None]:
        drawn = self._conditioned(x, y, innovations)
        assert drawn.log_prob is not None
        return drawn.log_prob, drawn.log_innovations


class ResidualArrow(ArrowModule):
    """`x + body(x)` for a deterministic body."""

    def __init__(self, body: ArrowModule, domain: Named, codomain: Named) -> None:
        super().__init__()
        self.domain, self.codomain = domain, codomain
        self.body = (body,)
        self.pointwise = body.pointwise
        adopt(self, [body])

    def forward(self, x: Value) -> Value:
        changed = self.body[0](x)
        assert is_tensor(x) and is_tensor(changed)
        return x + changed

    def output_like(self, x: Value) -> Value:
        return x


def factor_of(arrow: ArrowModule, x: Value, index: int) -> Value:
    """Of the value of a deterministic arrow the factor at `index` of its codomain."""
    made = arrow.factor(x, index)
    return layout.take_factor(arrow.codomain.space, arrow(x), index) if made is None else made


class TakeFactorArrow(ArrowModule):
    """The factor at `index` of the codomain of `base`.  Since the rest of the draw is dropped it has no density."""

    def __init__(self, base: ArrowModule, index: int, domain: Named, codomain: Named) -> None:
        super().__init__()
        self.domain, self.codomain = domain, codomain
        self.base = (base,)
        self.index = index
        self.sampled, self.pointwise, self.paths = base.sampled, base.pointwise, base.paths
        self.terms = base.terms
        self.has_density = False
        adopt(self, [base])

    def _take(self, value: Value) -> Value:
        return layout.take_factor(self.base[0].codomain.space, value, self.index)

    def forward(self, x: Value) -> Value:
        return factor_of(self.base[0], x, self.index)

    def output_like(self, x: Value) -> Value:
        return self._take(self.base[0].output_like(x))

    def noise_specs(self, x: Value) -> list[NoiseSpec]:
        specs = self.base[0].noise_specs(x)
        return [NoiseSpec(spec.path, spec.shape, spec.base, final=False) for spec in specs]

    def draw(
        self,
        x: Value,
        noise: Noise | None = None,
        *,
        generator: Generator | None = None,
        want_log_prob: bool = True,
    ) -> Drawn:
        drawn = self.base[0].draw(x, noise, generator=generator, want_log_prob=want_log_prob)
        value = self._take(drawn.value)
        return Drawn(value, drawn.noise, None, drawn.log_noise, drawn.log_noise, drawn.score_log_prob, drawn.terms)

    def densities(self, x: Value, y: Value, innovations: Noise | None = None) -> tuple[Tensor, Tensor | None]:
        raise NoDensity(
            "one factor of a sampled product has no density of its own here: observe or sample the whole product"
        )
