"""Chains whose density is torch's: all move together, one transition after another, with the warm-up around them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import numpy as np

from qvr_core.arrays.engine import arrays
from qvr_core.inference.mcmc.adaptation import DualAveraging, is_early, window_ends
from qvr_core.inference.mcmc.draws import ChainsState, Slice
from qvr_core.inference.mcmc.hamiltonian import State, Transition, first_step_size, state_at
from qvr_core.inference.mcmc.hmc import HMCKernel
from qvr_core.inference.mcmc.interruptible import uninterrupted
from qvr_core.inference.mcmc.mass import Array, DenseMass, DiagonalMass
from qvr_core.inference.mcmc.nuts import NUTSKernel
from qvr_core.inference.mcmc.potential import Potential, ProgramPotential
from qvr_core.inference.nonfinite_slopes import BOTH_BRANCHES, blamed_slope
from qvr_core.runtime.values.errors import NonFinite

START_ATTEMPTS = 100
STARTS = 2
"""Set in front of a chain's seed: the numbers of its start are not those of its transitions."""


class Asked(Protocol):
    """What is asked of the chains."""

    kernel: HMCKernel | NUTSKernel
    num_warmup: int
    num_samples: int


class Stepwise:
    """Chains of one execution; between two transitions they may be kept, and go on from there later."""

    def __init__(
        self,
        asked: Asked,
        potential: Potential,
        seeds: Sequence[int],
        begun: ChainsState | None = None,
        starts: Array | None = None,
    ) -> None:
        self.kernel, self.warmup = asked.kernel, asked.num_warmup
        self.potential = potential
        self.total = asked.num_warmup + asked.num_samples
        self.generators = [np.random.default_rng(seed) for seed in seeds]
        self.window_start, self.ends = window_ends(self.warmup)
        mass = DenseMass if self.kernel.dense_mass else DiagonalMass
        self.mass = mass(len(seeds), potential.width, np.dtype(str(potential.dtype).removeprefix("torch.")))
        self.step_size = np.full(len(seeds), self.kernel.step_size)
        self.averaging = DualAveraging(self.step_size, self.kernel.target_accept)
        self.done = 0
        if begun is None:
            self._start(seeds, starts)
        else:
            self._restore(begun)
        self._whole = self._state()

    def _start(self, seeds: Sequence[int], starts: Array | None) -> None:
        if starts is not None:
            self.state = state_at(self.potential, starts)
        else:
            self.state = start(self.potential, seeds)
        if self.warmup > 0 and starts is None:
            found = [self.potential.find_initial_position(q).numpy() for q in arrays.from_numpy(self.state.q)]
            self.state = state_at(self.potential, np.stack(found))
        self.first = self.state.q
        if self.kernel.adapt_step_size and self.warmup > 0:
            self._find_step_size()

    def _find_step_size(self) -> None:
        self.step_size = first_step_size(
            self.potential, self.mass, self.state, self.step_size, self.generators, self.kernel.target_accept
        )
        self.averaging.restart(self.step_size)

    def slices(self) -> Iterator[Slice]:
        """The transitions of all chains that are still to be made, one by one."""
        while self.done < self.total:
            transition = self._move(self.done)
            self.done += 1
            self._whole = self._state()
            yield Slice.of(transition, self.step_size)

    def _move(self, draw: int) -> Transition:
        kernel, warmup = self.kernel, draw < self.warmup
        early = is_early(draw, self.warmup)
        transition = kernel.transition(
            self.potential, self.mass, self.state, self.step_size, self.generators, early=early
        )
        self.state = transition.state
        if warmup and kernel.adapt_step_size:
            self.averaging.update(transition.acceptance)
            self.step_size = self.averaging.step_size
        if warmup and kernel.adapt_mass_matrix and self.ends and self.window_start <= draw < self.ends[-1]:
            self.mass.observe(self.state.q)
            if draw + 1 in self.ends:
                self.mass.update()
                if kernel.adapt_step_size:
                    self._find_step_size()
        if draw + 1 == self.warmup and kernel.adapt_step_size:
            self.step_size = self.averaging.final
        return transition

    def whole(self) -> ChainsState:
        """The chains after the last whole transition, also where one was broken off."""
        return self._whole

    def _state(self) -> ChainsState:
        held = {
            "q": self.state.q, "log_density": self.state.log_density, "gradient": self.state.gradient,
            "first": self.first, "step": self.step_size, **self.mass.arrays(), **self.averaging.arrays(),
        }  # fmt: skip
        common = {"seen": self.mass.count, "updates": self.averaging.count}
        return ChainsState(self.done, held, common, [dict(g.bit_generator.state) for g in self.generators])

    def _restore(self, begun: ChainsState) -> None:
        held, common = begun.arrays, begun.common
        self.done = begun.draw
        self.state = State(held["q"], held["log_density"], held["gradient"])
        self.first, self.step_size = held["first"], held["step"]
        self.mass.restore(held, common["seen"])
        self.averaging.restore(held, common["updates"])
        for generator, state in zip(self.generators, begun.generators, strict=True):
            generator.bit_generator.state = dict(state)


def start(potential: Potential, seeds: Sequence[int], at: Callable[[Array], State] | None = None) -> State:
    """A position of finite density and gradient for the chain of each seed; `at` evaluates them where the potential
    itself does not."""
    generators = [np.random.default_rng((STARTS, seed)) for seed in seeds]
    q = np.stack([potential.initial(g).numpy() for g in generators])
    good = np.zeros(len(generators), dtype=bool)
    for _ in range(START_ATTEMPTS):
        state = state_at(potential, q) if at is None else at(q)
        good = np.isfinite(state.log_density) & np.isfinite(state.gradient).all(-1)
        if good.all():
            return state
        q = np.stack([q[i] if good[i] else potential.initial(g).numpy() for i, g in enumerate(generators)])
    worst = int(np.argmin(good))
    problem, what = potential.blame(arrays.from_numpy(q[worst])), "log density"
    reason = "an observed value lies outside its support, or a scale is zero or negative"
    state = state_at(potential, q) if at is None else at(q)
    if problem is None and np.isfinite(state.log_density[worst]):
        what, reason = "gradient", BOTH_BRANCHES
        inner = uninterrupted(potential)
        problem = blamed_slope(inner, q[worst]) if isinstance(inner, ProgramPotential) else None
    message = f"no start with a finite {what} in {START_ATTEMPTS} attempts: {problem or reason}"
    if problem is None:
        raise NonFinite(message)
    raise NonFinite(message, site=problem.site, origin=problem.origin).at(problem.place)
