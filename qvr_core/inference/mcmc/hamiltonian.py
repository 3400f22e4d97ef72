"""What HMC and NUTS share: states, leapfrog steps, energies, and the search for a first step size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from qvr_core.inference.mcmc.mass import Mass
from qvr_core.inference.mcmc.potential import Potential

MAX_ENERGY_ERROR = 1000.0
"""A trajectory whose energy is off by more than this diverges (Stan's threshold)."""


@dataclass(slots=True)
class State:
    """Positions (C, D), their log density (C,) in double precision, and its gradient (C, D)."""

    q: Tensor
    log_density: Tensor
    gradient: Tensor


@dataclass(slots=True)
class Transition:
    """The state after a transition and what it was like, per chain.

    `acceptance` is the mean Metropolis acceptance statistic, `diverging` whether the energy ran away, `steps` the
    number of leapfrog steps, `depth` the depth of NUTS's tree (0 for HMC).
    """

    state: State
    acceptance: Tensor
    diverging: Tensor
    steps: Tensor
    depth: Tensor


def kinetic(momentum: Tensor, velocity: Tensor) -> Tensor:
    """½ pᵀ M⁻¹ p, (C,), in double precision."""
    return 0.5 * (momentum.double() * velocity.double()).sum(-1)


def leapfrog(potential: Potential, mass: Mass, state: State, momentum: Tensor, step: Tensor) -> tuple[State, Tensor]:
    """One leapfrog step of signed sizes (C, 1)."""
    half = momentum + 0.5 * step * state.gradient
    q = state.q + step * mass.velocity(half)
    log_density, gradient = potential.value_and_grad(q)
    log_density = torch.nan_to_num(log_density, nan=-math.inf, posinf=-math.inf)
    return State(q, log_density, gradient), half + 0.5 * step * gradient


def chosen(mask: Tensor, new: State, old: State) -> State:
    """`new` for the chains of the mask, else `old`."""
    if len(mask) == 1:
        return new if bool(mask) else old
    wide = mask.unsqueeze(-1)
    return State(
        torch.where(wide, new.q, old.q),
        torch.where(mask, new.log_density, old.log_density),
        torch.where(wide, new.gradient, old.gradient),
    )


def picked(mask: Tensor, new: Tensor, old: Tensor) -> Tensor:
    """`new` (C, …) for the chains of the mask, else `old`."""
    if len(mask) == 1:
        return new if bool(mask) else old
    return torch.where(mask.reshape(-1, *(1,) * (new.ndim - 1)), new, old)


def uniforms(generators: Sequence[Generator], mask: Tensor) -> Tensor:
    """One uniform number per chain (C,), drawn for the chains of the mask only: a chain's draws are its own."""
    return torch.tensor(
        [
            float(torch.rand((), generator=generator, dtype=torch.float64)) if going else 0.5
            for generator, going in zip(generators, mask.tolist(), strict=True)
        ],
        dtype=torch.float64,
    )


def first_step_size(
    potential: Potential, mass: Mass, state: State, guess: Tensor, generators: Sequence[Generator], target: float
) -> Tensor:
    """A step size (C,) whose single step is accepted about as often as wanted, by doubling or halving `guess`."""
    step = guess.clone()
    momentum = mass.momentum(generators)
    start = state.log_density - kinetic(momentum, mass.velocity(momentum))
    direction: Tensor | None = None
    done = torch.zeros_like(step, dtype=torch.bool)
    for _ in range(50):
        new, end = leapfrog(potential, mass, state, momentum, step.unsqueeze(-1).to(momentum.dtype))
        change = new.log_density - kinetic(end, mass.velocity(end)) - start
        good = torch.nan_to_num(change, nan=-math.inf) > math.log(target)
        here = torch.where(good, 1.0, -1.0).to(step.dtype)
        if direction is None:
            direction = here
        done |= here != direction
        if bool(done.all()):
            break
        step = torch.where(done, step, step * 2.0**direction)
    return step
