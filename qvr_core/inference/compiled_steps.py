"""Steps of SVI on a compiled log density, for programs whose latents all rows share.

Noise comes from torch's generator as the guides draw it, so a fit sees the numbers that it sees without.  With Adam the
whole step is machine code, on the memory of the guide's parameters and of the optimiser's state: these stay what a
checkpoint stores.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, Literal, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from qvr_core.codegen.calls import Compiled
from qvr_core.codegen.kernels import descent
from qvr_core.codegen.kernels.descent import FULL, MEAN_FIELD, POINT
from qvr_core.codegen.kinds import REAL
from qvr_core.inference.fit_memory import Memory
from qvr_core.inference.guides.base import CoordinateGuide, Guide
from qvr_core.inference.guides.delta import AutoDeltaGuide
from qvr_core.inference.guides.joint import AutoLaplaceGuide, AutoMultivariateNormalGuide
from qvr_core.inference.guides.normal import AutoNormalGuide
from qvr_core.inference.machine.density import MachineDensity, NotCompiled, machine_density
from qvr_core.inference.mcmc.potential import ProgramPotential
from qvr_core.inference.objectives import ELBO, IWAEBound
from qvr_core.runtime.programs.program import ProgramModule
from qvr_core.runtime.values.errors import RuntimeProblem

Engine = Literal["auto", "compiled", "plain"]
Array = NDArray[Any]
ValueAndGrad = Callable[[Tensor], tuple[Tensor, Tensor]]
"""Values (K,) and gradients (K, D) at latents (K, D)."""
KINDS: dict[type[Guide], int] = {
    AutoDeltaGuide: POINT,
    AutoLaplaceGuide: POINT,
    AutoNormalGuide: MEAN_FIELD,
    AutoMultivariateNormalGuide: FULL,
}
EVALUATE, CLIPPED = Compiled(descent.evaluate, REAL), Compiled(descent.clipped, REAL)


@dataclass(frozen=True, slots=True)
class Fitted:
    """What a fit consists of."""

    model: ProgramModule
    guide: Guide
    objective: object
    optimizer: torch.optim.Optimizer

    def potential(self, x: object, observations: Mapping[str, Any]) -> ProgramPotential:
        """The log density of the latents that the guide moves, in its order.  Raises `NotCompiled` where the bound is
        more than that density at draws of the guide."""
        if any(True for _ in self.model.parameters()):
            raise NotCompiled("its parameters are those of networks", surprising=False)
        if type(self.objective) not in (ELBO, IWAEBound) or self.objective.handlers:  # pyright: ignore[reportAttributeAccessIssue]
            raise NotCompiled("its objective sees a part of the rows", surprising=False)
        if not isinstance(self.guide, CoordinateGuide) or any(b.kind != "family" for b in self.guide.blocks):
            raise NotCompiled("its guide draws from the program", surprising=False)
        own = list(self.guide.parameters())
        if any(p.device.type != "cpu" for p in own) or len({p.dtype for p in own}) != 1:
            raise NotCompiled("its parameters are not on the processor", surprising=False)
        try:
            self.guide.check_observed(self.model, observations)
            potential = ProgramPotential(self.model, x, observations)
        except RuntimeProblem as problem:
            raise NotCompiled(f"chains could not move it ({problem})", surprising=False) from None
        moved = [(b.coordinate.site, b.shape) for b in potential.blocks]
        if potential.value is not None or moved != [(b.site, b.shape) for b in self.guide.blocks]:
            raise NotCompiled("its latents are those of rows, or share their parameters", surprising=False)
        return potential


class _LogDensity(torch.autograd.Function):
    """A log density (K,) of latents (K, D), whose gradient is known with it."""

    @staticmethod
    def forward(ctx: Any, z: Tensor, function: ValueAndGrad) -> Tensor:
        value, gradient = function(z.double())
        ctx.save_for_backward(gradient)
        ctx.kind = z.dtype
        return value

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor, None]:
        (gradient,) = ctx.saved_tensors
        return (grad_outputs[0].unsqueeze(-1) * gradient).to(ctx.kind), None


class DensityBound:
    """The objective of a fit as a loss, on a log density whose gradient comes with it."""

    def __init__(self, fitted: Fitted, function: ValueAndGrad) -> None:
        assert isinstance(fitted.guide, CoordinateGuide) and isinstance(fitted.objective, ELBO | IWAEBound)
        self.guide, self.objective, self.function = fitted.guide, fitted.objective, function

    def __call__(self) -> Tensor:
        """The loss, a scalar with a gradient."""
        particles = self.objective.num_particles
        proposal = self.guide.propose(particles, gradient=self.objective.gradient)
        z = torch.cat([proposal.unconstrained[b.site].reshape(particles, -1) for b in self.guide.blocks], -1)
        ratio: Tensor = _LogDensity.apply(z, self.function)  # pyright: ignore[reportAssignmentType]
        for term in proposal.terms:
            ratio = ratio + term
        if isinstance(self.objective, IWAEBound):
            return math.log(particles) - torch.logsumexp(ratio, 0)
        return -ratio.mean()


class Steps(Protocol):
    """A fit that goes on step by step."""

    def advance(self) -> tuple[float, float]:
        """One step of the optimiser: the loss and the norm of its gradient before it.  Where either is not finite
        nothing moves."""
        ...


class DensitySteps:
    """Steps whose bound torch differentiates down to the latents, and whose optimiser is torch's."""

    def __init__(self, fitted: Fitted, function: ValueAndGrad, clip: float | None) -> None:
        self.bound, self.optimizer = DensityBound(fitted, function), fitted.optimizer
        self.parameters, self.clip = list(fitted.guide.parameters()), math.inf if clip is None else clip

    def advance(self) -> tuple[float, float]:
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.bound()
        loss.backward()
        norm = float(nn.utils.clip_grad_norm_(self.parameters, self.clip))
        value = float(loss.detach())
        if math.isfinite(value) and math.isfinite(norm):
            self.optimizer.step()
        return value, norm if math.isfinite(value) else math.nan


def compiled_steps(fitted: Fitted, potential: ProgramPotential, clip: float | None) -> Steps:
    """Steps on the density as machine code, wholly compiled where the guide has loops.  Raises `NotCompiled`."""
    density = machine_density(potential, potential.initial(np.random.default_rng(0)).numpy())
    moved = {p for group in fitted.optimizer.param_groups for p in group["params"]}
    if type(fitted.guide) not in KINDS or moved != set(fitted.guide.parameters()):
        return DensitySteps(fitted, partial(_each, density), clip)
    try:
        return CompiledSteps(fitted, density, potential, clip)
    except Exception as error:
        raise NotCompiled(f"the compiler failed ({type(error).__name__}: {error})") from error


def _each(density: MachineDensity, z: Tensor) -> tuple[Tensor, Tensor]:
    """Value (K,) and gradient (K, D) at latents (K, D)."""
    values, gradients = zip(*(density(row) for row in z.detach().numpy()), strict=True)
    return torch.tensor(values, dtype=torch.float64), torch.from_numpy(np.stack(gradients))


@dataclass(frozen=True, slots=True)
class Choice:
    """The engine of a fit; `note` says in a sentence why it is not the one that was to be expected."""

    engine: Literal["compiled", "plain"]
    steps: Steps | None = None
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
        self, fitted: Fitted, density: MachineDensity, potential: ProgramPotential, clip: float | None
    ) -> None:
        self.guide, self.optimizer, self.density = fitted.guide, fitted.optimizer, density
        objective = fitted.objective
        assert isinstance(objective, ELBO | IWAEBound)
        self.kind = KINDS[type(fitted.guide)]
        particles = 1 if self.kind == POINT else objective.num_particles
        self.clip = math.inf if clip is None else clip
        self.memory = Memory(fitted.guide, fitted.optimizer)
        width = potential.width
        starts = [0, width] if self.kind == FULL else [block.start for block in potential.blocks] + [width]
        kind = self.memory.theta.dtype
        self._noise = torch.zeros(0 if self.kind == POINT else particles * width, dtype=kind)
        self._pieces = [self._noise[particles * a : particles * b] for a, b in pairwise(starts) if b > a]
        self._gradient = np.zeros(len(self.memory.theta))
        arguments = (
            density.address, np.zeros(max(density.room, 1)), density.reals, density.wholes, self.kind,
            objective.gradient == "sticking", isinstance(objective, IWAEBound), self.memory.theta.numpy(),
            np.array(starts), self._noise.numpy(), np.zeros((particles, width)), np.zeros((particles, width)),
            np.zeros(particles), self._gradient,
        )  # fmt: skip
        # the code is compiled, or read from disk, before the first step
        self._evaluate = EVALUATE.bound(*arguments)
        self._clipped = CLIPPED.bound(self._gradient, self.clip, self.memory.gradient_array)

    def differentiate(self) -> tuple[float, float]:
        """Draw noise; the loss, and the norm of its gradient, which stands clipped in the parameters' `grad`."""
        if self.kind != POINT:
            for piece in self._pieces:
                piece.normal_()
        self.memory.bind()
        return self._evaluate(), self._clipped()

    def advance(self) -> tuple[float, float]:
        """One step of the optimiser: loss and norm of the gradient before it.  Where either is not finite nothing
        moves."""
        loss, norm = self.differentiate()
        if math.isfinite(loss) and math.isfinite(norm):
            self.memory.move()
        return loss, norm if math.isfinite(loss) else math.nan
