"""The No-U-Turn sampler: multinomial, with iterative trees, all chains at once.

Betancourt (2017), "A conceptual introduction to Hamiltonian Monte Carlo", with the checkpoints of Phan, Pradhan &
Jankowiak (2019), "Composable effects for flexible and accelerated probabilistic programming in NumPyro".
"""

from __future__ import annotations

import numpy as np

from qvr_core.inference.mcmc.adaptation import EARLY_DEPTH
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
    picked,
    uniforms,
)
from qvr_core.inference.mcmc.mass import Array, Generators, Mass
from qvr_core.inference.mcmc.potential import Potential


class NUTSKernel:
    """Settings of NUTS.  `step_size` is where the search for a step size begins; the mass matrix is diagonal unless
    `dense_mass`."""

    def __init__(
        self,
        step_size: float = 0.1,
        max_tree_depth: int = 10,
        target_accept: float = 0.8,
        *,
        dense_mass: bool = False,
        adapt_step_size: bool = True,
        adapt_mass_matrix: bool = True,
    ) -> None:
        self.step_size = checked_step_size(type(self).__name__, step_size)
        self.max_tree_depth = at_least_one(type(self).__name__, "max_tree_depth", max_tree_depth)
        self.target_accept = in_range(type(self).__name__, "target_accept", target_accept, 0.0, 1.0)
        self.dense_mass = dense_mass
        self.adapt_step_size = adapt_step_size
        self.adapt_mass_matrix = adapt_mass_matrix

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
        """One draw per chain; `early` in the warm-up by a short tree."""
        depth = min(self.max_tree_depth, EARLY_DEPTH) if early else self.max_tree_depth
        return _Tree(potential, mass, state, step_size, generators).grow(depth)


def _turning(mass: Mass, left: Array, right: Array, total: Array) -> Array:
    """The generalised U-turn criterion on momenta (C, D): has either end stopped to move outwards?"""
    outward = mass.velocity(total - 0.5 * (left + right))
    return (np.einsum("cd,cd->c", left, outward) <= 0) | (np.einsum("cd,cd->c", right, outward) <= 0)


class _Tree:
    """The trajectories of one transition.  Everything is per chain; chains that have stopped are masked."""

    def __init__(
        self, potential: Potential, mass: Mass, state: State, step_size: Array, generators: Generators
    ) -> None:
        self.potential, self.mass, self.generators = potential, mass, generators
        self.step = step_size.astype(state.q.dtype)[:, None]
        momentum = mass.momentum(generators)
        self.start = state.log_density - kinetic(momentum, mass.velocity(momentum))
        self.left, self.left_momentum = state, momentum
        self.right, self.right_momentum = state, momentum
        self.total = momentum
        self.proposal = state
        chains = state.q.shape[0]
        self.log_weight = np.zeros(chains)
        self.going = np.ones(chains, dtype=bool)
        self.diverging = np.zeros(chains, dtype=bool)
        self.accepted = np.zeros(chains)
        self.steps = np.zeros(chains)
        self.depth = np.zeros(chains, dtype=np.int64)

    def grow(self, max_depth: int) -> Transition:
        """Double the trajectory until it turns, diverges or is as deep as allowed."""
        for depth in range(max_depth):
            self._double(depth)
            if not self.going.any():
                break
        rate = self.accepted / np.maximum(self.steps, 1.0)
        return Transition(self.proposal, rate, self.diverging, self.steps, self.depth, -self.start)

    def _double(self, depth: int) -> None:
        before = self.going
        forward = uniforms(self.generators, before) < 0.5
        end = chosen(forward, self.right, self.left)
        momentum = picked(forward, self.right_momentum, self.left_momentum)
        signed = picked(forward, self.step, -self.step)
        end, momentum, subtree, weight, total, ok = self._subtree(end, momentum, signed, depth)
        # biased progressive sampling between the old trajectory and the new half
        grown = before & ok
        take = grown & (np.log(uniforms(self.generators, before)) < weight - self.log_weight)
        self.proposal = chosen(take, subtree, self.proposal)
        self.log_weight = picked(grown, np.logaddexp(self.log_weight, weight), self.log_weight)
        self.total = picked(grown, self.total + total, self.total)
        goes_right, goes_left = before & forward, before & ~forward
        self.right = chosen(goes_right, end, self.right)
        self.left = chosen(goes_left, end, self.left)
        self.right_momentum = picked(goes_right, momentum, self.right_momentum)
        self.left_momentum = picked(goes_left, momentum, self.left_momentum)
        self.depth = self.depth + before
        self.going = grown & ~_turning(self.mass, self.left_momentum, self.right_momentum, self.total)

    def _subtree(
        self, state: State, momentum: Array, signed: Array, depth: int
    ) -> tuple[State, Array, State, Array, Array, Array]:
        """2^depth further steps.  The last state and momentum, a multinomial draw from the new states, their log
        weight and momentum sum, and which chains came through without turning or diverging."""
        alive = self.going
        weight = np.full(len(alive), -np.inf)
        total = np.zeros_like(momentum)
        subtree = state
        checkpoints: list[tuple[Array, Array]] = [(momentum, total)] * (depth + 1)
        for leaf in range(2**depth):
            new, next_momentum = leapfrog(self.potential, self.mass, state, momentum, signed)
            change = new.log_density - kinetic(next_momentum, self.mass.velocity(next_momentum)) - self.start
            change = np.where(np.isnan(change), -np.inf, change)
            self.accepted = self.accepted + np.where(alive, np.exp(np.minimum(change, 0.0)), 0.0)
            self.steps = self.steps + alive
            bad = alive & (change < -MAX_ENERGY_ERROR)
            self.diverging = self.diverging | bad
            state = chosen(alive, new, state)
            momentum = picked(alive, next_momentum, momentum)
            total = picked(alive, total + next_momentum, total)
            joint = np.logaddexp(weight, change)
            take = alive & (np.log(uniforms(self.generators, alive)) < change - joint)
            subtree = chosen(take, new, subtree)
            weight = picked(alive, joint, weight)
            alive = alive & ~bad & ~self._turned(checkpoints, leaf, momentum, total)
            if not alive.any():
                break
        return state, momentum, subtree, weight, total, alive

    def _turned(self, checkpoints: list[tuple[Array, Array]], leaf: int, momentum: Array, total: Array) -> Array:
        """Has any balanced subtree that ends at this leaf turned?  Even leaves begin subtrees, odd ones end some."""
        turned = np.zeros(len(momentum), dtype=bool)
        top = (leaf >> 1).bit_count()
        if leaf % 2 == 0:
            checkpoints[top] = (momentum, total)
            return turned
        trailing = (~leaf & (leaf + 1)).bit_length() - 1
        for index in range(top, top - trailing, -1):
            first, sum_then = checkpoints[index]
            turned = turned | _turning(self.mass, first, momentum, total - sum_then + first)
        return turned
