"""What every guide offers: latents for one execution, and how their density compares with the model's."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Self

from qvr_core.arrays.engine import Generator, Tensor, arrays, is_tensor, nn
from qvr_core.arrays.random_state import random_state_kept
from qvr_core.inference.coordinates import Coordinate, coordinates, measured, standard_normal
from qvr_core.runtime.arrows.drawn_weights import initial
from qvr_core.runtime.programs.execution import Execution, Request
from qvr_core.runtime.programs.handlers import condition, densities, replay, substitute, unconstrained
from qvr_core.runtime.programs.program import ProgramModule
from qvr_core.runtime.values.arrow import Noise, NoiseSpec, Value
from qvr_core.runtime.values.errors import InputProblem
from qvr_core.runtime.values.module_recipes import Remade

SiteNoise = Mapping[str, Tensor] | Callable[[Sequence[NoiseSpec]], Noise]
"""Noise of an arrow's draws by their path, or how to make it for what the arrow asks."""
Gradient = Literal["sampled", "analytic", "sticking"]
"""How log p − log q enters: as it is for the latents drawn; by its closed-form mean where there is one (the same bound
with less variance); or without the score of log q (sticking the landing, Roeder et al. 2017)."""


@dataclass(frozen=True)
class Inputs:
    """What latents are proposed for: the model with its input in normal form and its observations, `rows` rows each."""

    model: ProgramModule
    value: Value | None
    observations: Mapping[str, Any]

    @property
    def request(self) -> Request:
        """A request that knows the observations alone."""
        request = Request()
        condition(self.observations)(request)
        return request


@dataclass(slots=True)
class Proposal:
    """Latents for one execution of the model.

    As a handler it gives `noise` and `unconstrained`, and asks for the density of the arrow sites `scored`, where a
    draw inside has no standard noise.  `terms` collects log p − log q while the model runs.  `values` are latents by
    site, whose own log p the model adds; `scores` are log densities of proposed draws whose gradient is the score's.
    """

    noise: dict[str, SiteNoise] = field(default_factory=dict[str, SiteNoise])
    unconstrained: dict[str, Tensor] = field(default_factory=dict[str, Tensor])
    scored: set[str] = field(default_factory=set[str])
    values: dict[str, Value] = field(default_factory=dict[str, Value])
    scores: list[Tensor] = field(default_factory=list[Tensor])
    terms: list[Tensor] = field(default_factory=list[Tensor])

    def __call__(self, request: Request) -> None:
        replay(self.noise)(request)
        unconstrained(self.unconstrained)(request)
        substitute(self.values)(request)
        request.scored = {*request.scored, *self.scored}

    def log_ratio(self, run: Execution) -> Tensor | float:
        """log p(latents) − log q(latents), (B,), after the run; what observed sites add is not in it."""
        terms: list[Tensor | float] = [*self.terms]
        for name in self.unconstrained:
            site = run.sites[name]
            assert site.log_prob is not None
            terms.append(site.log_prob)
            if site.log_jacobian is not None:
                terms.append(site.log_jacobian)
        terms += [_value_density(run, name) for name in self.scored]
        # not from a zero: each operation on a row's numbers costs a small network as much as one of its layers
        return sum(terms[1:], terms[0]) if terms else 0.0


def _value_density(run: Execution, name: str) -> Tensor:
    """log density of a site's final draws in noise space."""
    site = run.sites[name]
    assert site.log_noise is not None
    return site.log_noise if site.log_innovations is None else site.log_noise - site.log_innovations


@dataclass(frozen=True)
class GuideOf:
    """How a guide is made again: its class, and what it was made with."""

    kind: type[nn.Module]
    first: tuple[Any, ...]
    arguments: Mapping[str, Any]

    def __call__(self) -> nn.Module:
        return self.kind(*self.first, **self.arguments)


class Guide(Remade):
    """Base of all guides.  `observed_names` are the sites that data will give."""

    def __new__(cls, *first: Any, **arguments: Any) -> Self:
        made = super().__new__(cls)
        if first:
            made.__dict__["recipe"] = GuideOf(cls, first, arguments)
        return made

    def __init__(self, model: ProgramModule, observed_names: Collection[str] = ()) -> None:
        super().__init__()
        if not isinstance(model, ProgramModule):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputProblem(
                f"a guide is made for a program, not for a {type(model).__name__}; a lifted model is for `MCMC`"
            )
        model.check_names(observed_names, "observed_names")
        self.observed = frozenset(observed_names)
        self.model_name = model.name
        self._noted = False

    def propose(
        self,
        rows: int,
        generator: Generator | None = None,
        *,
        gradient: Gradient = "sampled",
        inputs: Inputs | None = None,
    ) -> Proposal:
        """Latents for `rows` rows; `gradient` says how log p − log q is estimated.  A guide that reads data takes them
        from `inputs`; the automatic ones do without."""
        raise NotImplementedError

    def check_observed(self, model: ProgramModule, observations: Collection[str]) -> None:
        """A latent that the guide proposes must not be given, and one that was to be given must be."""
        if model.name != self.model_name:
            raise InputProblem(f"the guide was made for `{self.model_name}`, and the model is `{model.name}`")
        model.check_names(observations, "observations")
        if not self._noted:
            self._noted = True
            model.note_unobserved(observations)
        for name in self.observed:
            if name in model.sites and name not in observations and name not in model.data:
                raise InputProblem(
                    f"`{model.name}`: the guide was made with observed_names={{'{name}'}}, but the observations have "
                    f"no `{name}`",
                    site=name,
                )


class CoordinateGuide(Guide):
    """A guide on the coordinates of the latents, one density per block.

    With `x` or `observations` the shapes are those of a run on them, so that every position of a sequence has its own
    parameters; without, positions share theirs.  `apart` is False where log q is that of all blocks together.
    """

    apart = True

    def __init__(
        self,
        model: ProgramModule,
        observed_names: Collection[str] = (),
        *,
        x: object = None,
        observations: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(model, observed_names)
        self.gradient: Gradient = "sampled"
        self.through: Callable[[Tensor], Tensor] | None = None
        observations = None if observations is None else model.taken(observations)
        missing = self._missing(model, observations)
        purpose = type(self).__name__
        self.blocks = coordinates(model, self.observed, innovations=False, purpose=purpose, missing=missing)
        if x is not None or observations is not None:
            lying = (*model.parameters(), *filter(is_tensor, (observations or {}).values()))
            device = next((each.device for each in lying), default_tensor(model).device)
            with arrays.no_grad(), random_state_kept(device):
                zeros = {name: arrays.zeros(1, *shape, device=device) for name, shape in missing.items()}
                run = model.execute(x, condition(observations), unconstrained(zeros), densities(False))
            self.blocks = measured(self.blocks, run)

    def _missing(self, model: ProgramModule, observations: Mapping[str, Any] | None) -> dict[str, tuple[int, ...]]:
        """The shapes of what moves missing cells; the values that have them must be known."""
        for name in () if observations is not None else model.imputed:
            if name not in model.data:
                raise InputProblem(
                    f"`{model.name}`: `{name}` may have missing cells, each a latent: give the guide the observations",
                    site=name,
                )
        return model.missing_shapes(observations or {})

    def start_of(self, block: Coordinate, model: ProgramModule) -> Tensor:
        """Where a block's mean starts: weights with a prior as `initial` says, all else at 0."""
        zeros = default_tensor(model).new_zeros(self.shape_of(block))
        if block.site not in model.drawn_weights or block.support.kind != "real":
            return zeros
        return zeros + initial(model.leaves[block.site]).reshape(zeros.shape)

    def shape_of(self, block: Coordinate) -> tuple[int, ...]:
        """A block's shape without rows; where only data tells it, one number shared by all its elements."""
        return block.shape if block.shape is not None else ()

    def draw_block(
        self, block: Coordinate, shape: tuple[int, ...], generator: Generator | None
    ) -> tuple[Tensor, Tensor]:
        """A block's value of `shape`, and log p − log q (B,) with log p the standard normal where the block has that
        prior, else 0."""
        raise NotImplementedError

    def drawn_block(
        self, block: Coordinate, shape: tuple[int, ...], generator: Generator | None
    ) -> tuple[Tensor, Tensor]:
        """As `draw_block`; what an objective has set as `through` is done to the gradient of the value."""
        z, term = self.draw_block(block, shape, generator)
        self.hook(z)
        return z, term

    def hook(self, drawn: Tensor) -> None:
        """Let the gradient of what was drawn, of log p and of log q together, go through `through`."""
        if self.through is not None and drawn.requires_grad:
            drawn.register_hook(self.through)

    def propose(
        self,
        rows: int,
        generator: Generator | None = None,
        *,
        gradient: Gradient = "sampled",
        inputs: Inputs | None = None,
    ) -> Proposal:
        """Latents block by block (`draw_block`), of (rows, …); blocks of noise become values as their sites run."""
        if gradient != self.gradient:  # setting an attribute of a module takes microseconds
            self.gradient = gradient
        proposal = Proposal()
        by_site: dict[str, list[Coordinate]] = {}
        for block in self.blocks:
            if block.kind == "family":
                z, term = self.drawn_block(block, (rows, *self.shape_of(block)), generator)
                proposal.unconstrained[block.site] = z
                proposal.terms.append(term)
            else:
                by_site.setdefault(block.site, []).append(block)
        for site, blocks in by_site.items():
            if any(not block.standard for block in blocks):
                proposal.scored.add(site)
            proposal.noise[site] = self._source(blocks, proposal, generator)
        return proposal

    def _source(
        self, blocks: list[Coordinate], proposal: Proposal, generator: Generator | None
    ) -> Callable[[Sequence[NoiseSpec]], Noise]:
        """Called by the site when it runs, since only then the shapes (a length, say) are known."""
        by_path = {block.path: block for block in blocks}

        def noise(specs: Sequence[NoiseSpec]) -> Noise:
            made: dict[str, Tensor] = {}
            for spec in specs:
                block = by_path.get(spec.path)
                if block is None:
                    continue
                shape = tuple(spec.shape)
                if not block.standard:
                    shape = (shape[0], *self.shape_of(block))
                z, term = self.drawn_block(block, shape, generator)
                value, log_jacobian = block.noise(z)
                made[spec.path] = value
                if self.apart and spec.made is not None and block.standard and block.site not in proposal.scored:
                    # what nothing reads is drawn from the prior, as far as the bound goes
                    term = arrays.where(spec.made, term, arrays.zeros_like(term))
                proposal.terms.append(term if log_jacobian is None else term + log_jacobian)
                if block.kind == "normal" and block.site in proposal.scored:
                    # the site's own density has this block's prior already
                    proposal.terms.append(-standard_normal(z))
            return made

        return noise


def default_tensor(model: nn.Module) -> Tensor:
    """A tensor of the model's dtype and device, for a guide's parameters."""
    for parameter in model.parameters():
        if parameter.is_floating_point():
            return parameter.detach()
    return arrays.zeros(())
