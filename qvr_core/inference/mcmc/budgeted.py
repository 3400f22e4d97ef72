"""Chains that have so many seconds and no more: warm from what the last ones have learned, and in place of those that
do not get through their warm-up a Normal approximation (Pathfinder)."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from qvr_core.inference.machine.compiled import MachineDensity
from qvr_core.inference.mcmc import pathfinder
from qvr_core.inference.mcmc.chains import PATHS, Kernel
from qvr_core.inference.mcmc.draws import Columns
from qvr_core.inference.mcmc.engines import Compiled, evaluated_by
from qvr_core.inference.mcmc.mass import Array
from qvr_core.inference.mcmc.nuts import NUTSKernel
from qvr_core.inference.mcmc.potential import ProgramPotential
from qvr_core.inference.mcmc.torch_chains import start

CHAINS = 4
COLD, WARM = 300, 100
"""Draws of the warm-up: of chains that know nothing, and of those that know each latent's place and scale."""
WARMING, PATHFINDING = 0.5, 0.25
"""The parts of the budget in which a warm-up is over, or never is, and in which an approximation is found before it."""
FIRST = 25
"""Draws of each chain when they are first told; then at four times as many, and so on."""
SLICE = 0.02
"""Seconds between two looks at the clock."""
PATH_DRAWS, APPROXIMATE = 100, 200
"""Draws of the approximation that a path has found, and those that are taken of all paths'."""
CLIMBING = 0.7
"""The part of the time for an approximation in which it is looked for; then it is drawn from."""
LONG = 0.3
"""Seconds of warm-up for which an approximation is told meanwhile."""
SMALLEST = 1e-10
"""Variance."""
LEAPFROGS = 16
"""Of a transition of the warm-up, for a guess how long that takes."""

Method = Literal["nuts", "pathfinder"]
Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Latent:
    """What chains know of the numbers of a latent: where each was last, (chains, n), and the variances, (n,)."""

    positions: Array
    variances: Array


@dataclass(frozen=True, slots=True)
class Learned:
    """What chains leave to the next ones, of this program or of one that is much like it."""

    latents: Mapping[str, Latent] = field(default_factory=dict[str, Latent])
    step_size: float | None = None
    """None where no chain has come through its warm-up."""


@dataclass(frozen=True, slots=True)
class Found:
    """Draws so far: positions `q` (chains, draws, D) and, of chains, what transitions to them were like."""

    method: Method
    columns: Columns
    last: bool
    learned: Learned


class OutOfTime(Exception):
    """The budget is used up."""


def sampled(
    potential: ProgramPotential,
    density: MachineDensity,
    kernel: NUTSKernel,
    *,
    draws: int,
    seed: int,
    budget: float,
    learned: Learned,
    clock: Clock = time.perf_counter,
) -> Iterator[Found]:
    """Draws of `CHAINS` chains while they come, in at most `budget` seconds; where these do not suffice for the
    warm-up, those of an approximation.  Raises `OutOfTime` where there is neither, `NonFinite` where there is nowhere
    to start."""
    with np.errstate(all="ignore"):
        yield from _Budgeted(potential, density, kernel, draws, seed, budget, learned, clock).found()


@dataclass(slots=True)
class _Asked:
    kernel: Kernel
    num_warmup: int
    num_samples: int


class _Budgeted:
    def __init__(
        self,
        potential: ProgramPotential,
        density: MachineDensity,
        kernel: NUTSKernel,
        draws: int,
        seed: int,
        budget: float,
        learned: Learned,
        clock: Clock,
    ) -> None:
        self.potential, self.density, self.kernel, self.draws = potential, density, kernel, draws
        self.seeds = [int(word) for word in np.random.SeedSequence(seed).generate_state(CHAINS)]
        self.clock, self.began, self.budget = clock, clock(), budget
        self.places = dict(_places(potential))
        self.known = {
            name: one
            for name, one in learned.latents.items()
            if name in self.places and one.positions.shape == (CHAINS, len(self.places[name]))
        }
        """Of the latents that are there still."""
        self.step_size = learned.step_size if len(self.known) == len(self.places) else None
        self.metric = np.ones(potential.width)

    def until(self, part: float) -> float:
        """The time at which a part of the budget is used up."""
        return self.began + part * self.budget

    def found(self) -> Iterator[Found]:
        begins = self._begins()
        approximate: Found | None = None
        if self.step_size is None and self._seconds_of_an_evaluation(begins) * CHAINS * COLD * LEAPFROGS > LONG:
            approximate = self._approximated(begins, self.until(PATHFINDING))
            if approximate is not None:
                begins = approximate.columns["q"][0, :CHAINS]
                self.metric = np.maximum(approximate.columns["q"][0].var(0), SMALLEST)
                yield approximate
        ended = False
        for one in self._chains(begins):
            ended = one.last
            yield one
        if not ended:
            approximate = approximate or self._approximated(begins, self.until(1.0))
            if approximate is None:
                raise OutOfTime
            yield Found("pathfinder", approximate.columns, last=True, learned=approximate.learned)

    def _seconds_of_an_evaluation(self, begins: Array) -> float:
        began = self.clock()
        for q in begins:
            self.density(q)
        return (self.clock() - began) / len(begins)

    # ------------------------------------------------------------ starts

    def _begins(self) -> Array:
        """Where chains were last, and elsewhere where they usually start; (chains, D)."""
        fresh = start(self.potential, self.seeds, evaluated_by(self.density)).q.astype(np.float64)
        begins = fresh.copy()
        for name, one in self.known.items():
            begins[:, self.places[name]] = one.positions
            self.metric[self.places[name]] = one.variances
        for number, q in enumerate(begins):
            if self.known and not math.isfinite(self.density(q)[0]):
                begins[number] = fresh[number]
        return begins

    # ------------------------------------------------------------ chains

    def _chains(self, begins: Array) -> Iterator[Found]:
        """Draws behind the warm-up; none where it does not end in time."""
        warmup = COLD if self.step_size is None else WARM
        kernel = NUTSKernel(
            self.step_size or self.kernel.step_size, self.kernel.max_tree_depth, self.kernel.target_accept
        )

        def is_over() -> bool:
            warming = running.done < warmup
            return self.clock() >= self.until(WARMING if warming else 1.0)

        asked = _Asked(kernel, warmup, self.draws)
        running = Compiled(asked, self.density, self.potential, self.seeds, is_over, None, begins)
        running.longest = SLICE
        for chain in running.chains:
            chain.inverse[0] = self.metric
        parts: list[Columns] = []
        made, due = 0, FIRST
        for part in running.slices():
            columns = part.behind(max(0, warmup - (running.done - len(part))))
            if new := columns["q"].shape[1]:
                parts.append(columns)
                made += new
            if due <= made < self.draws:
                due = 4 * made
                yield self._of_chains(parts, running, last=False)
        if made:
            yield self._of_chains(parts, running, last=True)

    def _of_chains(self, parts: list[Columns], running: Compiled, *, last: bool) -> Found:
        columns = {name: np.concatenate([part[name] for part in parts], 1) for name in parts[0]}
        step_size = float(running.step_size.mean())
        return Found("nuts", columns, last, self._learned(columns["q"][:, -1], columns["q"], step_size))

    # ------------------------------------------------------------ the approximation

    def _approximated(self, begins: Array, until: float) -> Found | None:
        """Draws of the best Normals on the ways up from where chains begin, as far as these lead in the time; None
        where it is up before there are any."""
        began = self.clock()

        def density(q: Array) -> tuple[float, Array]:
            if self.clock() >= until:
                raise OutOfTime
            return self.density(q)

        def on_the_way(q: Array) -> tuple[float, Array]:
            if self.clock() >= began + CLIMBING * (until - began) * (len(pools) + 1) / CHAINS:
                raise pathfinder.Ended
            return self.density(q)

        generators = [np.random.default_rng((PATHS, seed)) for seed in self.seeds]
        pools: list[tuple[Array, Array]] = []
        with contextlib.suppress(OutOfTime):
            for q, generator in zip(begins, generators, strict=True):
                pools.append(pathfinder.path(density, q, generator, PATH_DRAWS, on_the_way))
        count = min(APPROXIMATE, sum(len(positions) for positions, _ in pools) // 2)
        drawn = pathfinder.resampled(pools, count, generators[0]) if count >= CHAINS else None
        if drawn is None:
            return None
        return Found("pathfinder", {"q": drawn[None]}, last=False, learned=self._learned(drawn[:CHAINS], drawn, None))

    def _learned(self, positions: Array, draws: Array, step_size: float | None) -> Learned:
        variances = np.maximum(draws.reshape(-1, draws.shape[-1]).var(0), SMALLEST)
        latents = {name: Latent(positions[:, at], variances[at]) for name, at in self.places.items()}
        return Learned(latents, step_size)


def _places(potential: ProgramPotential) -> Iterator[tuple[str, Array]]:
    """Of each latent, and each part of what it is made of, which of the coordinates are its own."""
    each = potential.width // potential.rows
    for block in potential.blocks:
        one = block.coordinate
        own = np.arange(block.start, block.stop)
        yield f"{one.site}/{one.path}/{one.kind}", (each * np.arange(potential.rows)[:, None] + own).ravel()
