"""Hamiltonian Monte Carlo with a fixed number of leapfrog steps."""

from __future__ import annotations

import math

import numpy as np

from qvr_core.inference.mcmc.hamiltonian import (
    MAX_ENERGY_ERROR,
    State,
    Transition,
    at_least_one,
    checked_step_size,
    chosen,
    in_range,
    kinetic,
    leapfrog,
    uniforms,
)
from qvr_core.inference.mcmc.mass import Array, Generators, Mass
from qvr_core.inference.mcmc.potential import Potential


class HMCKernel:
    """Settings of HMC: `num_steps` leapfrog steps a draw, or as many as fill `trajectory_length`."""

    def __init__(
        self,
        step_size: float = 0.1,
        num_steps: int = 10,
        target_accept: float = 0.8,
        *,
        trajectory_length: float | None = None,
        dense_mass: bool = False,
        adapt_step_size: bool = True,
        adapt_mass_matrix: bool = True,
    ) -> None:
        self.step_size = checked_step_size(type(self).__name__, step_size)
        self.num_steps = at_least_one(type(self).__name__, "num_steps", num_steps)
        self.target_accept = in_range(type(self).__name__, "target_accept", target_accept, 0.0, 1.0)
        if trajectory_length is not None:
            in_range(type(self).__name__, "trajectory_length", trajectory_length)
        self.trajectory_length = trajectory_length
        self.dense_mass = dense_mass
        self.adapt_step_size = adapt_step_size
        self.adapt_mass_matrix = adapt_mass_matrix

    def _steps(self, step_size: Array) -> Array:
        if self.trajectory_length is None:
            return np.full(len(step_size), self.num_steps)
        return np.clip(np.ceil(self.trajectory_length / step_size), 1, 1000).astype(np.int64)

    def transition(
        self,
        potential: Potential,
        mass: Mass,
        state: State,
        step_size: Array,
        generators: Generators,
        *,
        early: bool = False,
    ) -> Transition:
        """One draw per chain; `early` in the warm-up changes nothing."""
        everyone = np.ones(len(generators), dtype=bool)
        # a step size that wavers a little keeps periodic trajectories apart
        step = (step_size * (0.9 + 0.2 * uniforms(generators, everyone))).astype(state.q.dtype)[:, None]
        momentum = mass.momentum(generators)
        start = state.log_density - kinetic(momentum, mass.velocity(momentum))
        new, end = state, momentum
        counts = self._steps(step_size)
        for index in range(int(counts.max())):
            going = index < counts
            here, there = leapfrog(potential, mass, new, end, step)
            new = chosen(going, here, new)
            end = np.where(going[:, None], there, end)
        change = new.log_density - kinetic(end, mass.velocity(end)) - start
        change = np.where(np.isnan(change), -math.inf, change)
        taken = chosen(np.log(uniforms(generators, everyone)) < change, new, state)
        return Transition(
            taken,
            np.exp(np.minimum(change, 0.0)),
            change < -MAX_ENERGY_ERROR,
            counts.astype(np.float64),
            np.zeros(len(generators), dtype=np.int64),
            -start,
        )
