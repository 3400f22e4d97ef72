"""What HMC and NUTS share: states, leapfrog steps, energies, and the search for a first step size.

Everything is (chains, …) in numpy, whose small arrays cost a fraction of torch's; only the density is torch's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import SupportsFloat

import numpy as np

from qvr_core.arrays.engine import arrays
from qvr_core.inference.mcmc.mass import Array, Generators, Mass
from qvr_core.inference.mcmc.potential import Potential
from qvr_core.runtime.values.errors import InputProblem

MAX_ENERGY_ERROR = 1000.0
"""A trajectory whose energy is off by more than this diverges (Stan's threshold)."""


@dataclass(slots=True)
class State:
    """Positions (C, D), their log density (C,) in double precision, and its gradient (C, D)."""

    q: Array
    log_density: Array
    gradient: Array


@dataclass(slots=True)
class Transition:
    """The state after a transition and what it was like, per chain.

    `acceptance` is the mean Metropolis acceptance statistic, `diverging` whether the energy ran away, `steps` the
    number of leapfrog steps, `depth` the depth of NUTS's tree (0 for HMC), `energy` the Hamiltonian that the trajectory
    began with.
    """

    state: State
    acceptance: Array
    diverging: Array
    steps: Array
    depth: Array
    energy: Array


def checked_step_size(kernel: str, step_size: object) -> float:
    """A kernel's first argument; whoever comes from elsewhere may give the model there."""
    if not isinstance(step_size, SupportsFloat):
        raise TypeError(
            f"{kernel}: step_size must be a number, not {type(step_size).__name__}; a kernel takes no model, that goes "
            "to `MCMC(kernel, …).run(model, x, observations)`"
        )
    return in_range(kernel, "step_size", float(step_size))


def in_range(kernel: str, name: str, value: float, low: float = 0.0, high: float = math.inf) -> float:
    """A kernel's setting between two ends that it cannot have.  Raises `InputProblem`."""
    if not low < value < high:
        wanted = f"greater than {low:g}" if high == math.inf else f"between {low:g} and {high:g}"
        raise InputProblem(f"{kernel}: {name} must be {wanted}, not {value:g}")
    return value


def at_least_one(kernel: str, name: str, value: int) -> int:
    """A kernel's count.  Raises `InputProblem`."""
    if value < 1:
        raise InputProblem(f"{kernel}: {name} must be at least 1, not {value}")
    return value


def state_at(potential: Potential, q: Array) -> State:
    """The state at positions (C, D); a density that is not a number counts as none."""
    value, gradient = potential.value_and_grad(arrays.from_numpy(q))
    log_density = value.numpy()
    return State(q, np.where(np.isnan(log_density), -np.inf, log_density), gradient.numpy())


def kinetic(momentum: Array, velocity: Array) -> Array:
    """½ pᵀ M⁻¹ p, (C,), in double precision."""
    return 0.5 * np.einsum("cd,cd->c", momentum, velocity, dtype=np.float64)


def leapfrog(potential: Potential, mass: Mass, state: State, momentum: Array, step: Array) -> tuple[State, Array]:
    """One leapfrog step of signed sizes (C, 1)."""
    half = momentum + (0.5 * step) * state.gradient
    new = state_at(potential, state.q + step * mass.velocity(half))
    return new, half + (0.5 * step) * new.gradient


def picked(mask: Array, new: Array, old: Array) -> Array:
    """`new` (C, …) for the chains of the mask, else `old`."""
    if mask.shape[0] == 1:
        return new if mask[0] else old
    return np.where(mask.reshape(-1, *(1,) * (new.ndim - 1)), new, old)


def chosen(mask: Array, new: State, old: State) -> State:
    """`new` for the chains of the mask, else `old`."""
    if mask.shape[0] == 1:
        return new if mask[0] else old
    return State(
        picked(mask, new.q, old.q),
        picked(mask, new.log_density, old.log_density),
        picked(mask, new.gradient, old.gradient),
    )


def uniforms(generators: Generators, mask: Array) -> Array:
    """One uniform number per chain (C,), drawn for the chains of the mask only: a chain's draws are its own."""
    return np.array([g.random() if going else 0.5 for g, going in zip(generators, mask, strict=True)])


def first_step_size(
    potential: Potential, mass: Mass, state: State, guess: Array, generators: Generators, target: float
) -> Array:
    """A step size (C,) whose single step is accepted about as often as wanted, by doubling or halving `guess`."""
    step = guess.copy()
    momentum = mass.momentum(generators)
    start = state.log_density - kinetic(momentum, mass.velocity(momentum))
    direction: Array | None = None
    done = np.zeros(len(step), dtype=bool)
    for _ in range(50):
        new, end = leapfrog(potential, mass, state, momentum, step[:, None].astype(momentum.dtype))
        change = new.log_density - kinetic(end, mass.velocity(end)) - start
        good = np.where(np.isnan(change), -np.inf, change) > math.log(target)
        here = np.where(good, 1.0, -1.0)
        if direction is None:
            direction = here
        done |= here != direction
        if done.all():
            break
        step = np.where(done, step, step * 2.0**direction)
    return step
