"""Hamiltonian Monte Carlo with a fixed number of leapfrog steps."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Generator, Tensor

from qvr_core.inference.mcmc.hamiltonian import MAX_ENERGY_ERROR, State, Transition, chosen, kinetic, leapfrog, uniforms
from qvr_core.inference.mcmc.mass import Mass
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
        self.step_size = step_size
        self.num_steps = num_steps
        self.target_accept = target_accept
        self.trajectory_length = trajectory_length
        self.dense_mass = dense_mass
        self.adapt_step_size = adapt_step_size
        self.adapt_mass_matrix = adapt_mass_matrix

    def _steps(self, step_size: Tensor) -> int:
        if self.trajectory_length is None:
            return self.num_steps
        return max(1, min(1000, math.ceil(self.trajectory_length / float(step_size.median()))))

    def transition(
        self,
        potential: Potential,
        mass: Mass,
        state: State,
        step_size: Tensor,
        generators: Sequence[Generator],
    ) -> Transition:
        """One draw per chain."""
        # a step size that wavers a little keeps periodic trajectories apart
        everyone = torch.ones(len(generators), dtype=torch.bool)
        wobble = uniforms(generators, everyone)
        step = (step_size * (0.9 + 0.2 * wobble)).to(state.q.dtype).unsqueeze(-1)
        momentum = mass.momentum(generators)
        start = state.log_density - kinetic(momentum, mass.velocity(momentum))
        new, end = state, momentum
        count = self._steps(step_size)
        for _ in range(count):
            new, end = leapfrog(potential, mass, new, end, step)
        change = torch.nan_to_num(new.log_density - kinetic(end, mass.velocity(end)) - start, nan=-math.inf)
        taken = chosen(uniforms(generators, everyone).log() < change, new, state)
        chains = change.shape[0]
        return Transition(
            taken,
            change.clamp(max=0.0).exp(),
            change < -MAX_ENERGY_ERROR,
            torch.full((chains,), float(count), dtype=torch.float64),
            torch.zeros(chains, dtype=torch.long),
        )
