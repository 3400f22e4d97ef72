"""What evaluates the density of a chain: compiled loops with the sampler around them, or plain torch.

The same seed gives the same draws on one engine; engines round differently, so a result says which it was.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import repeat
from typing import Literal

import numpy as np

from qvr_core.arrays.engine import Tensor, arrays
from qvr_core.inference.machine.chain import Chain, Settings, compile_sampler
from qvr_core.inference.machine.compiled import MachineDensity
from qvr_core.inference.machine.density import NotCompiled, machine_density
from qvr_core.inference.mcmc.adaptation import EARLY_DEPTH, EARLY_DRAWS, is_early, window_ends
from qvr_core.inference.mcmc.draws import ChainsState, Slice
from qvr_core.inference.mcmc.hamiltonian import State
from qvr_core.inference.mcmc.hmc import HMCKernel
from qvr_core.inference.mcmc.interruptible import uninterrupted
from qvr_core.inference.mcmc.mass import Array
from qvr_core.inference.mcmc.potential import LiftedPotential, Potential, ProgramPotential
from qvr_core.inference.mcmc.torch_chains import Asked, start

Engine = Literal["auto", "compiled", "plain"]
ASKED_FOR = "as asked for"
SLICE = 25
LONG_SLICE = 0.5
"""Transitions of a chain between two looks at the world, and the seconds that they should take at most."""
MOST_AT_ONCE = 250
MOST_NUMBERS = 200_000
"""Draws, and numbers of data, for which the values of all sites are made in one execution."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The engine of a run; `note` says in a sentence why it is not the compiled one where that was to be expected."""

    engine: Literal["compiled", "plain"]
    density: MachineDensity | None = None
    note: str | None = None
    why: str | None = None
    """Why it is this one, in words that stand behind its name."""


def choose(potential: Potential, engine: Engine) -> Choice:
    """The engine that `engine` asks for, or the next best."""
    if engine == "plain":
        return Choice("plain", why=ASKED_FOR)
    try:
        return Choice("compiled", _compiled(potential), why=ASKED_FOR if engine == "compiled" else None)
    except NotCompiled as why:
        expected = engine == "compiled" or why.surprising
        note = f"the density runs as torch operations, not as machine code: {why}" if expected else None
        return Choice("plain", note=note, why=str(why))


def _compiled(potential: Potential) -> MachineDensity:
    generator = np.random.default_rng(0)
    if isinstance(potential, ProgramPotential):
        if potential.dtype != arrays.float64:
            raise NotCompiled("the program has parameters of single precision", surprising=False)
        density = machine_density(potential, potential.initial(generator).numpy())
    elif isinstance(potential, LiftedPotential):
        double = potential.in_double()
        try:
            start = double.find_initial_position(double.initial(generator)).numpy()
        except RuntimeError as error:
            raise NotCompiled(f"its networks compute in single precision ({error})", surprising=False) from None
        try:
            density = machine_density(double, start)
        except NotCompiled as why:
            raise NotCompiled(str(why), surprising=False) from None
    else:
        raise NotCompiled("it is no program", surprising=False)
    try:
        compile_sampler()
    except Exception as error:
        raise NotCompiled(f"the compiler failed ({type(error).__name__}: {error})") from error
    return density


def evaluated_by(density: MachineDensity) -> Callable[[Array], State]:
    """States at positions (C, D); a density that is not a number counts as none."""

    def at(q: Array) -> State:
        values, gradients = zip(*(density(row) for row in q), strict=True)
        log_density = np.array(values)
        return State(q, np.where(np.isnan(log_density), -np.inf, log_density), np.stack(gradients))

    return at


class Compiled:
    """Chains on the compiled engine, each with arrays of its own; they give a transition of all at a time."""

    def __init__(
        self,
        asked: Asked,
        density: MachineDensity,
        potential: Potential,
        seeds: Sequence[int],
        ended: Callable[[], bool],
        begun: ChainsState | None = None,
        starts: Array | None = None,
        *,
        every: int | None = None,
    ) -> None:
        kernel, warmup = asked.kernel, asked.num_warmup
        window_start, ends = window_ends(warmup)
        settings = Settings(
            warmup,
            window_start,
            tuple(ends),
            EARLY_DRAWS if is_early(0, warmup) else 0,
            EARLY_DEPTH,
            0 if isinstance(kernel, HMCKernel) else kernel.max_tree_depth,
            kernel.target_accept,
            kernel.step_size,
            kernel.dense_mass,
            kernel.adapt_step_size,
            kernel.adapt_mass_matrix,
            kernel.num_steps if isinstance(kernel, HMCKernel) else 0,
            (kernel.trajectory_length or 0.0) if isinstance(kernel, HMCKernel) else 0.0,
        )
        if begun is not None:
            self.first: Array = begun.arrays["first"]
        elif starts is not None:
            self.first = starts
        else:
            self.first = start(potential, seeds, evaluated_by(density)).q
            if warmup > 0:
                begins = arrays.from_numpy(self.first)
                self.first = np.stack([potential.find_initial_position(q).numpy() for q in begins])
        self.settings = settings
        self.chains: list[Chain] = []
        for q, seed in zip(self.first, seeds, strict=True):
            value, gradient = density(q)
            self.chains.append(Chain(density, settings, q, value, gradient, np.random.default_rng(seed)))
        if begun is not None:
            for number, chain in enumerate(self.chains):
                own = {name: array[number] for name, array in begun.arrays.items()}
                chain.restore({**own, "draw": begun.draw, "generator": begun.generators[number]})
        self.total = warmup + asked.num_samples
        self.done = 0 if begun is None else begun.draw
        """Transitions of each chain; those that are given out follow."""
        self.ended = ended
        self.every = every or self.total
        self.longest = LONG_SLICE
        """Seconds that a slice should take at most."""

    def slices(self) -> Iterator[Slice]:
        """The transitions of all chains that are still to be made, many at a time; fewer where `ended` says that it is
        enough.  Slices end at multiples of `every`, too."""
        threads = max(1, min(len(self.chains), arrays.get_num_threads()))
        with ThreadPoolExecutor(threads) if threads > 1 else contextlib.nullcontext() as pool:
            size = 1
            while self.done < self.total and not self.ended():
                count = min(size, self.until() - self.done)
                began = time.perf_counter()
                jobs = (self.chains, repeat(count, len(self.chains)))
                parts = list(map(Chain.advance, *jobs) if pool is None else pool.map(Chain.advance, *jobs))
                seconds = time.perf_counter() - began
                # how long slices are changes no draw
                size = max(1, size // 2) if seconds > self.longest else min(SLICE, size * 2)
                yield self.slice_of(np.stack([part[0] for part in parts]), np.stack([part[1] for part in parts]))

    def slice_of(self, positions: Array, reports: Array) -> Slice:
        """The transitions that the chains have just made, (chains, transitions, …), wherever they did."""
        self.done += positions.shape[1]
        return _slice(positions, reports)

    def until(self) -> int:
        """The transition where the chains must be looked at next."""
        return min(self.total, self.done + self.every - self.done % self.every)

    @property
    def step_size(self) -> Array:
        """That of each chain."""
        return np.array([chain.step_size for chain in self.chains])

    def whole(self) -> ChainsState:
        """The chains after the last whole transition."""
        states = [chain.state() for chain in self.chains]
        names = [name for name in states[0] if name not in ("draw", "generator")]
        stacked = {name: np.stack([state[name] for state in states]) for name in names}
        return ChainsState(self.done, {"first": self.first, **stacked}, {}, [state["generator"] for state in states])


def _slice(positions: Array, reports: Array) -> Slice:
    """(chains, transitions, D) and what `transition` reports of each."""
    acceptance, diverging, steps, depth, value, step_size, energy = np.moveaxis(reports, -1, 0).copy()
    columns = {
        "q": positions, "log_density": value, "acceptance": acceptance, "diverging": diverging > 0.0, "steps": steps,
        "depth": depth.astype(np.int64), "energy": energy,
    }  # fmt: skip
    return Slice(columns, step_size)


def reported(potential: Potential, positions: Array) -> dict[str, Tensor]:
    """Every latent by name at the draws (N, D) of one chain: (N, …), many draws in one execution."""
    at_once = MOST_AT_ONCE
    own = uninterrupted(potential)
    if isinstance(own, ProgramPotential):
        data = max((math.prod(v.shape) for v in own.observations.values() if isinstance(v, Tensor)), default=1)
        at_once = max(1, min(MOST_AT_ONCE, MOST_NUMBERS // max(data, positions.shape[1], 1)))
    parts = [potential.report(part) for part in arrays.split(arrays.from_numpy(positions), at_once)]
    return {name: arrays.cat([part[name] for part in parts]) for name in parts[0]}
