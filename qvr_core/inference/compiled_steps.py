"""Steps of SVI on a compiled log density, for programs whose latents all rows share.

With Adam the whole step is machine code, on the memory of the guide's parameters and of the optimiser's state: these
stay what a checkpoint stores.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from qvr_core.arrays.engine import arrays
from qvr_core.codegen.calls import Compiled
from qvr_core.codegen.kernels import svi_step
from qvr_core.codegen.kernels.svi_step import FULL, MEAN_FIELD, POINT
from qvr_core.codegen.kinds import REAL
from qvr_core.inference.fit_memory import Memory
from qvr_core.inference.guides.base import CoordinateGuide, Guide
from qvr_core.inference.guides.delta import AutoDeltaGuide
from qvr_core.inference.guides.full_rank_and_laplace import (
    AutoLaplaceGuide,
    AutoLowRankMultivariateNormalGuide,
    AutoMultivariateNormalGuide,
)
from qvr_core.inference.guides.normal import AutoNormalGuide
from qvr_core.inference.low_rank_bound import LowRankBound
from qvr_core.inference.machine.compiled import MachineDensity
from qvr_core.inference.machine.density import NotCompiled, machine_density
from qvr_core.inference.mcmc.potential import ProgramPotential
from qvr_core.inference.nonfinite_latents import first_not_finite_at
from qvr_core.inference.objectives import ELBO, IWAEBound, RenyiBound
from qvr_core.runtime.arrows.training import training_layers
from qvr_core.runtime.programs.program import ProgramModule
from qvr_core.runtime.values.errors import NonFinite, RuntimeProblem

Engine = Literal["auto", "compiled", "plain"]
Array = NDArray[Any]
LOW_RANK = 3
"""Beside the guides of `descent`."""
KINDS: dict[type[Guide], int] = {
    AutoDeltaGuide: POINT,
    AutoLaplaceGuide: POINT,
    AutoNormalGuide: MEAN_FIELD,
    AutoMultivariateNormalGuide: FULL,
    AutoLowRankMultivariateNormalGuide: LOW_RANK,
}
EVALUATE = Compiled(svi_step.evaluate, REAL)  # pyright: ignore[reportUnknownArgumentType]
CLIPPED = Compiled(svi_step.clipped, REAL)  # pyright: ignore[reportUnknownArgumentType]


@dataclass(frozen=True, slots=True)
class Fitted:
    """What a fit consists of."""

    model: ProgramModule
    guide: Guide
    objective: object
    optimizer: arrays.optim.Optimizer

    def potential(self, x: object, observations: Mapping[str, Any]) -> ProgramPotential:
        """The log density of the latents that the guide moves, in its order.  Raises `NotCompiled` where the bound is
        more than that density at draws of the guide."""
        if any(True for _ in self.model.parameters()):
            raise NotCompiled("its parameters are those of networks", surprising=False)
        if training_layers((self.model,)):
            raise NotCompiled("it has layers that do something else in training", surprising=False)
        if type(self.objective) not in (ELBO, RenyiBound, IWAEBound):
            raise NotCompiled("its objective is one of its own", surprising=False)
        assert isinstance(self.objective, ELBO | RenyiBound)
        if isinstance(self.objective, RenyiBound) and self.objective.doubly:
            raise NotCompiled("its gradient is weighted at each draw", surprising=False)
        if not isinstance(self.guide, CoordinateGuide) or any(b.kind != "family" for b in self.guide.blocks):
            raise NotCompiled("its guide draws from the program", surprising=False)
        own = list(self.guide.parameters())
        moved = {id(p) for group in self.optimizer.param_groups for p in group["params"]}
        if type(self.guide) not in KINDS:
            raise NotCompiled("its guide is a network, or one of its own", surprising=False)
        if moved != {id(p) for p in own}:
            raise NotCompiled("its optimiser moves other parameters than the guide's", surprising=False)
        if any(p.device.type != "cpu" for p in own) or len({p.dtype for p in own}) != 1:
            raise NotCompiled("its parameters are not on the processor", surprising=False)
        try:
            self.guide.check_observed(self.model, observations)
            potential = ProgramPotential(self.model, x, observations, self.objective.handlers)
        except RuntimeProblem as problem:
            raise NotCompiled(f"chains could not move it ({problem})", surprising=False) from None
        moving = [(b.coordinate.site, b.shape) for b in potential.blocks]
        if potential.value is not None or moving != [(b.site, b.shape) for b in self.guide.blocks]:
            raise NotCompiled("its latents are those of rows, or share their parameters", surprising=False)
        return potential


def compiled_steps(fitted: Fitted, potential: ProgramPotential, clip: float | None) -> CompiledSteps:
    """Steps on the density as machine code.  Raises `NotCompiled`."""
    density = machine_density(potential, potential.initial(np.random.default_rng(0)).numpy())
    try:
        return CompiledSteps(fitted, density, potential, clip)
    except Exception as error:
        raise NotCompiled(f"the compiler failed ({type(error).__name__}: {error})") from error


@dataclass(frozen=True, slots=True)
class Choice:
    """The engine of a fit; `note` says in a sentence why it is not the one that was to be expected."""

    engine: Literal["compiled", "plain"]
    steps: CompiledSteps | None = None
    """None where the program runs step by step."""
    note: str | None = None


def choose(
    fitted: Fitted, x: object, observations: Mapping[str, Any], engine: Engine, clip: float | None = None
) -> Choice:
    """The engine that `engine` asks for, or the next best."""
    if engine == "plain":
        return Choice("plain")
    try:
        potential = fitted.potential(x, observations)
    except NotCompiled as why:
        return Choice("plain", note=_note(why) if engine != "auto" else None)
    try:
        return Choice("compiled", compiled_steps(fitted, potential, clip))
    except NotCompiled as why:
        return Choice("plain", note=_note(why) if engine == "compiled" or why.surprising else None)


def _note(why: NotCompiled) -> str:
    return f"the density runs as torch operations, not as machine code: {why}"


class CompiledSteps:
    """One fit, step by step; `clip` is the largest norm of a gradient that is taken as it is."""

    def __init__(
        self,
        fitted: Fitted,
        density: MachineDensity,
        potential: ProgramPotential,
        clip: float | None = None,
        memory: Memory | None = None,
    ) -> None:
        self.fitted, self.density, self.potential, self.clip = fitted, density, potential, clip
        objective, guide = fitted.objective, fitted.guide
        assert isinstance(objective, ELBO | RenyiBound)
        kind = KINDS[type(guide)]
        particles = 1 if kind == POINT else objective.num_particles
        self.memory = memory or Memory(guide, fitted.optimizer)
        width, theta = potential.width, self.memory.theta
        joint = kind in (FULL, LOW_RANK)
        starts = [0, width] if joint else [block.start for block in potential.blocks] + [width]
        ends = [*starts, width + guide.rank] if isinstance(guide, AutoLowRankMultivariateNormalGuide) else starts
        self.noise = np.zeros(0 if kind == POINT else particles * ends[-1], theta.dtype)
        """Standard normal numbers of a step: those of each block, (particles, size), one after the other."""
        self._pieces = [
            arrays.from_numpy(self.noise[particles * a : particles * b]) for a, b in pairwise(ends) if b > a and kind
        ]
        self._gradient, self._latents = np.zeros(len(theta)), np.zeros((particles, width))
        sticking = objective.gradient == "sticking"
        power = 1.0 - objective.alpha if isinstance(objective, RenyiBound) else 0.0
        # the code is compiled, or read from disk, before the first step
        if kind == LOW_RANK:
            own = (theta, self.noise, self._latents, self._gradient)
            weigh = partial[float](svi_step.weighed, power)
            self._evaluate = LowRankBound(density, weigh, *own, sticking=sticking)
        else:
            self._evaluate = EVALUATE.bound(
                density.address, np.zeros(max(density.room, 1)), density.reals, density.wholes, kind, sticking, power,
                theta, np.array(starts), self.noise, self._latents, np.zeros((particles, width)), np.zeros(particles),
                self._gradient,
            )  # fmt: skip
        most = math.inf if clip is None else clip
        self._clipped = CLIPPED.bound(self._gradient, most, self.memory.gradient)

    def with_data(self, observations: Mapping[str, Any]) -> CompiledSteps:
        """The same steps, on the same parameters, for other data.  Raises `NotCompiled`."""
        potential = self.fitted.potential(None, observations)
        start = potential.initial(np.random.default_rng(0)).numpy()
        density = machine_density(potential, start, like=self.density)
        if density.source != self.density.source or density.room != self.density.room:
            return CompiledSteps(self.fitted, density, potential, self.clip, self.memory)
        # the code is the same, and reads its constants from these arrays
        self.density.reals[:], self.density.wholes[:] = density.reals, density.wholes
        self.potential = potential
        return self

    def by_elbo(self, particles: int) -> CompiledSteps:
        """The ELBO with so many draws and its whole gradient, on the same parameters."""
        objective = copy.copy(self.fitted.objective)
        assert isinstance(objective, ELBO | RenyiBound)
        if isinstance(objective, RenyiBound):
            objective = ELBO(reduction=objective.reduction, handlers=objective.handlers)
        objective.num_particles = particles
        return CompiledSteps(
            replace(self.fitted, objective=objective), self.density, self.potential, memory=self.memory
        )

    def differentiate(self, noise: Array | None = None) -> tuple[float, float]:
        """The loss at `noise`, by default drawn from the engine's generator as the guides draw it; and the norm of its
        gradient, which stands clipped in the parameters' `grad`."""
        if noise is not None:
            self.noise[:] = noise
        else:
            for piece in self._pieces:
                piece.normal_()
        self.memory.bind()
        return self._evaluate(), self._clipped()

    def advance(self, noise: Array | None = None) -> tuple[float, float]:
        """One step of the optimiser: loss and norm of the gradient before it.  Where either is not finite nothing
        moves."""
        loss, norm = self.differentiate(noise)
        if math.isfinite(loss) and math.isfinite(norm):
            self.memory.move()
        return loss, norm if math.isfinite(loss) else math.nan

    def blame(self) -> NonFinite:
        """What stopped the last evaluation from being finite."""
        return first_not_finite_at(self.potential, self.fitted.guide, self._latents)
