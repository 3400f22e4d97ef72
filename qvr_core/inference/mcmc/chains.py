"""Running chains: warm-up with windows, sampling, reports, in one process or one process a chain."""

from __future__ import annotations

import contextlib
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
import torch
from torch import Generator, Tensor

from qvr_core.inference.lifting import LiftedModel
from qvr_core.inference.machine.density import MachineDensity
from qvr_core.inference.mcmc import pathfinder
from qvr_core.inference.mcmc.adaptation import DualAveraging, is_early, window_ends
from qvr_core.inference.mcmc.engines import Choice, Compiled, Engine, choose, reported
from qvr_core.inference.mcmc.hamiltonian import State, Transition, first_step_size, state_at
from qvr_core.inference.mcmc.hmc import HMCKernel
from qvr_core.inference.mcmc.mass import Array, DenseMass, DiagonalMass
from qvr_core.inference.mcmc.nuts import NUTSKernel
from qvr_core.inference.mcmc.potential import LiftedPotential, Potential, potential_of
from qvr_core.inference.mcmc.processes import in_processes
from qvr_core.inference.mcmc.result import MCMCResult
from qvr_core.inference.pointwise import Given
from qvr_core.runtime.programs.program import ProgramModule
from qvr_core.runtime.values.errors import InputProblem, NonFinite

Kernel = HMCKernel | NUTSKernel
Schedule = Literal["together", "processes", "sequential"]
Init = Literal["random", "pathfinder"]
START_ATTEMPTS = 100
PATHS = 1
"""Set in front of a chain's seed: the numbers of its path are not those of its transitions."""
STUCK = 0.01
"""A chain that has moved less than this part of the prior's standard deviation is reported."""


@dataclass(frozen=True, slots=True)
class Progress:
    """One transition of all chains, for those who watch; watching changes no draw."""

    draw: int
    total: int
    warmup: bool
    acceptance: Tensor
    diverging: Tensor
    step_size: Tensor
    depth: Tensor
    steps: Tensor


Watch = Callable[[Progress], None]


class Enough(Exception):
    """Raised by a watch, or inside a density, to end the chains with the draws made so far."""


class MCMC:
    """`num_chains` chains of `num_warmup` + `num_samples` transitions of `kernel`.

    Each chain has its own generator (seeded from `seed`, or from torch's global one) and its own adaptation.  `chains`
    says how they run: 'together' (all in one execution, the default where the model allows), 'processes' or
    'sequential'.  The schedule does not change the seeds.

    `engine` is what evaluates the density.  'auto' takes machine code ('compiled') for long chains of NUTS where the
    program allows: seconds of compiling at first, which later runs find on disk, then a hundredth of the time.
    'replay' records the operations of torch and repeats them without autograd, 'plain' runs the program each time.
    `compile` hands what 'replay' records to torch's compiler.

    `init` is where chains start: 'random', noise from its prior and unconstrained values uniform on (−2, 2), or
    'pathfinder', draws of Normal approximations on the way up from there.  Such starts lie close together: R-hat then
    says less of modes that no path has found.
    """

    def __init__(
        self,
        kernel: Kernel,
        num_warmup: int,
        num_samples: int,
        num_chains: int = 1,
        seed: int | None = None,
        *,
        chains: Schedule | None = None,
        compile: bool = False,
        engine: Engine = "auto",
        init: Init = "random",
    ) -> None:
        if num_samples < 1 or num_chains < 1 or num_warmup < 0:
            raise InputProblem("num_samples and num_chains must be at least 1, num_warmup at least 0")
        self.kernel = kernel
        self.num_warmup, self.num_samples, self.num_chains = num_warmup, num_samples, num_chains
        self.seed = seed
        self.schedule = chains
        self.compile = compile
        self.engine: Engine = "replay" if compile and engine == "auto" else engine
        self.choice: Choice | None = None
        self.init: Init = init
        self.starts: dict[int, Array] | None = None
        """Where the chain of each seed starts, once that is found."""
        self.start_gradients = 0
        """Evaluations that have found the starts."""

    def run(
        self,
        model: ProgramModule | LiftedModel,
        x: object = None,
        observations: Mapping[str, Any] | None = None,
        *,
        watch: Watch | None = None,
    ) -> MCMCResult:
        """Draw from the posterior of every latent.

        Raises `DiscreteLatent` where a latent cannot move, `NonFinite` where no start has a finite density.
        """
        potential = potential_of(model, x, observations, compiled=self.compile)
        if (note := self.choose(potential).note) is not None:
            warnings.warn(note, stacklevel=2)
        seeds = self.seeds()
        schedule = self.schedule or ("together" if potential.vectorised else "sequential")
        if schedule == "together" or self.num_chains == 1:
            groups = [seeds]
        else:
            groups = [[seed] for seed in seeds]
        if schedule == "processes" and self.num_chains > 1:
            runs = in_processes([partial(self.chains_of, potential, group, None) for group in groups])
        else:
            runs = [self.chains_of(potential, group, watch) for group in groups]
        given = observations if observations is not None else getattr(model, "observations", None)
        return replace(joined(runs), given=Given(model, x, dict(given or {})))

    def seeds(self) -> list[int]:
        """A seed for each chain."""
        base = self.seed if self.seed is not None else int(torch.randint(0, 2**31 - 1, ()))
        # not base, base + 1, …: runs of neighbouring seeds must not share chains
        return [int(word) for word in np.random.SeedSequence(base).generate_state(self.num_chains)]

    def choose(self, potential: Potential) -> Choice:
        """Decide what evaluates a density, and have it compiled where that is to be; for all that follows."""
        self.choice = choose(self, potential, self.engine)
        if self.init == "pathfinder":
            self._find_starts(potential)
        return self.choice

    def _find_starts(self, potential: Potential) -> None:
        """Those of all chains, wherever they run.  None where no path has found a start."""
        if isinstance(potential, LiftedPotential):
            raise InputProblem("init = pathfinder is for programs without the parameters of networks")
        seeds, density = self.seeds(), self.choice and self.choice.density
        begins = start(potential, [Generator().manual_seed(seed) for seed in seeds]).q.astype(np.float64)
        generators = [np.random.default_rng((PATHS, seed)) for seed in seeds]
        counted = pathfinder.Counted(density or partial(_alone, potential))
        with np.errstate(all="ignore"):
            found = pathfinder.starts(counted, list(begins), generators)
        self.start_gradients = counted.calls
        self.starts = None if found is None else dict(zip(seeds, found, strict=True))
        if found is None and self.choice is not None:
            why = "no path of pathfinder has found a Normal near the posterior: chains start at random"
            self.choice = replace(self.choice, note=self.choice.note or why)

    def _state(self, potential: Potential, seeds: Sequence[int]) -> State:
        """Where chains start."""
        if self.starts is None:
            return start(potential, [Generator().manual_seed(seed) for seed in seeds])
        q = np.stack([self.starts[seed] for seed in seeds])
        return state_at(potential, torch.from_numpy(q).to(potential.dtype).numpy())

    def chains_of(
        self,
        potential: Potential,
        seeds: Sequence[int],
        watch: Watch | None,
        ended: Callable[[], bool] = lambda: False,
    ) -> MCMCResult:
        """The chains of these seeds, all in one execution, on the engine that was chosen.  `ended` is asked between
        slices of transitions.  Raises `Enough` where it was enough before any draw."""
        choice = self.choice or self.choose(potential)
        # a trajectory that runs away meets infinities on its way to being called divergent
        with np.errstate(all="ignore"):
            if choice.density is not None:
                result = self._compiled(choice.density, potential, seeds, watch, ended)
            else:
                result = self._chains(potential, seeds, watch)
        return replace(result, engine=choice.engine)

    def _compiled(
        self,
        density: MachineDensity,
        potential: Potential,
        seeds: Sequence[int],
        watch: Watch | None,
        ended: Callable[[], bool],
    ) -> MCMCResult:
        state = self._state(potential, seeds)
        running = Compiled(self, density, state, [np.random.default_rng(seed) for seed in seeds], ended)
        kept = _Kept(potential)
        step_size, last, total = np.full(len(seeds), self.kernel.step_size), state.q, running.total
        with contextlib.suppress(Enough):
            for draw, (transition, step_size) in enumerate(running.transitions()):
                last = transition.state.q
                if draw >= self.num_warmup:
                    kept.transitions.append(transition)
                if watch is not None:
                    watch(_progress(draw, total, draw < self.num_warmup, transition, step_size))
        if not kept.transitions:
            raise Enough
        kept.report_all()
        return kept.result(step_size, _stuck(state.q, last))

    def _chains(self, potential: Potential, seeds: Sequence[int], watch: Watch | None) -> MCMCResult:
        kernel, chains = self.kernel, len(seeds)
        generators = [np.random.default_rng(seed) for seed in seeds]
        state = self._state(potential, seeds)
        if self.num_warmup > 0 and self.starts is None:
            found = [potential.find_initial_position(q).numpy() for q in torch.from_numpy(state.q)]
            state = state_at(potential, np.stack(found))
        first = state.q
        mass = (DenseMass if kernel.dense_mass else DiagonalMass)(chains, potential.width, state.q.dtype)
        step_size = np.full(chains, kernel.step_size)
        averaging = DualAveraging(step_size, kernel.target_accept)
        if kernel.adapt_step_size and self.num_warmup > 0:
            step_size = first_step_size(potential, mass, state, step_size, generators, kernel.target_accept)
            averaging.restart(step_size)
        window_start, ends = window_ends(self.num_warmup)
        kept = _Kept(potential)
        total = self.num_warmup + self.num_samples
        with contextlib.suppress(Enough):
            for draw in range(total):
                warmup = draw < self.num_warmup
                early = is_early(draw, self.num_warmup)
                transition = kernel.transition(potential, mass, state, step_size, generators, early=early)
                state = transition.state
                if warmup and kernel.adapt_step_size:
                    averaging.update(transition.acceptance)
                    step_size = averaging.step_size
                if warmup and kernel.adapt_mass_matrix and ends and window_start <= draw < ends[-1]:
                    mass.observe(state.q)
                    if draw + 1 in ends:
                        mass.update()
                        if kernel.adapt_step_size:
                            step_size = first_step_size(
                                potential, mass, state, step_size, generators, kernel.target_accept
                            )
                            averaging.restart(step_size)
                if draw + 1 == self.num_warmup and kernel.adapt_step_size:
                    step_size = averaging.final
                if not warmup:
                    kept.add(transition)
                if watch is not None:
                    watch(_progress(draw, total, warmup, transition, step_size))
        if not kept.transitions:
            raise Enough
        return kept.result(step_size, _stuck(first, state.q))


def _progress(draw: int, total: int, warmup: bool, transition: Transition, step_size: Array) -> Progress:
    return Progress(
        draw,
        total,
        warmup,
        torch.tensor(transition.acceptance),
        torch.tensor(transition.diverging),
        torch.tensor(step_size),
        torch.tensor(transition.depth),
        torch.tensor(transition.steps),
    )


def _alone(potential: Potential, q: Array) -> tuple[float, Array]:
    """Log density and gradient at one position (D,)."""
    state = state_at(potential, torch.from_numpy(q).to(potential.dtype).unsqueeze(0).numpy())
    return float(state.log_density[0]), state.gradient[0].astype(np.float64)


def start(potential: Potential, generators: Sequence[Generator]) -> State:
    """A position of finite density and gradient for each chain."""
    q = np.stack([potential.initial(g).numpy() for g in generators])
    good = np.zeros(len(generators), dtype=bool)
    for _ in range(START_ATTEMPTS):
        state = state_at(potential, q)
        good = np.isfinite(state.log_density) & np.isfinite(state.gradient).all(-1)
        if good.all():
            return state
        q = np.stack([q[i] if good[i] else potential.initial(g).numpy() for i, g in enumerate(generators)])
    problem = potential.blame(torch.from_numpy(q[int(np.argmin(good))]))
    reason = problem or "an observed value lies outside its support, or a scale is zero or negative"
    message = f"no start with a finite log density in {START_ATTEMPTS} attempts: {reason}"
    if problem is None:
        raise NonFinite(message)
    raise NonFinite(message, site=problem.site, origin=problem.origin).at(problem.place)


class _Kept:
    """Draws and statistics while they come."""

    def __init__(self, potential: Potential) -> None:
        self.potential = potential
        self.samples: dict[str, list[Tensor]] = {}
        self.reported: dict[str, Tensor] = {}
        self.transitions: list[Transition] = []

    def add(self, transition: Transition) -> None:
        for name, value in self.potential.report(torch.from_numpy(transition.state.q)).items():
            self.samples.setdefault(name, []).append(value)
        self.transitions.append(transition)

    def report_all(self) -> None:
        """The values at all draws at once, chain by chain: no chain's depend on which others run beside it."""
        positions = np.stack([transition.state.q for transition in self.transitions], 1)
        each = [reported(self.potential, of_chain) for of_chain in positions]
        self.reported = {name: torch.stack([values[name] for values in each]) for name in each[0]}

    def result(self, step_size: Array, remarks: list[str]) -> MCMCResult:
        def stacked(attribute: str) -> Tensor:
            return torch.from_numpy(np.stack([getattr(t, attribute) for t in self.transitions], 1))

        diverging, acceptance = stacked("diverging"), stacked("acceptance")
        return MCMCResult(
            self.reported or {name: torch.stack(values, 1) for name, values in self.samples.items()},
            acceptance.mean(1),
            diverging.sum(1),
            torch.tensor(step_size),
            stacked("depth"),
            stacked("steps").long(),
            diverging,
            torch.from_numpy(np.stack([t.state.log_density for t in self.transitions], 1)),
            acceptance,
            remarks,
            "raise target_accept" + (f", or {self.potential.advice}" if self.potential.advice else ""),
            energy=stacked("energy"),
        )


def _stuck(first: Array, last: Array) -> list[str]:
    moved = np.sqrt(np.square((last - first).astype(np.float64)).mean(-1))
    return [
        f"chain {index} has moved only {float(distance):.2%} of the prior's standard deviation since its start: run a "
        "longer warm-up, allow deeper trees (max_tree_depth), or a larger step_size"
        for index, distance in enumerate(moved)
        if float(distance) < STUCK
    ]


def joined(runs: Sequence[MCMCResult]) -> MCMCResult:
    """The chains of several runs side by side; each run has as many draws."""
    if len(runs) == 1:
        return runs[0]

    def together(attribute: str) -> Tensor:
        return torch.cat([getattr(run, attribute) for run in runs])

    return MCMCResult(
        {name: torch.cat([run.samples[name] for run in runs]) for name in runs[0].samples},
        together("acceptance_rates"),
        together("divergence_counts"),
        together("step_sizes"),
        together("tree_depths"),
        together("leapfrog_steps"),
        together("diverging"),
        together("log_density"),
        together("acceptance"),
        list(_remarks(runs)),
        runs[0].advice,
        runs[0].engine,
        energy=together("energy") if all(run.energy is not None for run in runs) else None,
    )


def _remarks(runs: Sequence[MCMCResult]) -> Iterator[str]:
    """The remarks of runs side by side: a chain's number counts those of the runs before."""
    before = 0
    for run in runs:
        for remark in run.remarks:
            yield re.sub(r"^chain (\d+)", lambda found, start=before: f"chain {start + int(found[1])}", remark)
        before += len(run.acceptance_rates)
