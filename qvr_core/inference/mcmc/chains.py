"""Running chains: warm-up with windows, sampling, reports, in one process or one process a chain."""

from __future__ import annotations

import contextlib
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from qvr_core.arrays.engine import Tensor, arrays
from qvr_core.inference.lifting import LiftedModel
from qvr_core.inference.mcmc import pathfinder
from qvr_core.inference.mcmc.collected import Collected, Watch, each_transition
from qvr_core.inference.mcmc.draws import Keeper, Slice
from qvr_core.inference.mcmc.engines import Choice, Compiled, Engine, choose, evaluated_by
from qvr_core.inference.mcmc.hamiltonian import state_at
from qvr_core.inference.mcmc.hmc import HMCKernel
from qvr_core.inference.mcmc.interruptible import Enough
from qvr_core.inference.mcmc.mass import Array
from qvr_core.inference.mcmc.nuts import NUTSKernel
from qvr_core.inference.mcmc.potential import LiftedPotential, Potential, potential_of
from qvr_core.inference.mcmc.processes import in_processes
from qvr_core.inference.mcmc.result import MCMCResult
from qvr_core.inference.mcmc.torch_chains import Stepwise, start
from qvr_core.inference.pointwise import Given
from qvr_core.runtime.programs.program import ProgramModule
from qvr_core.runtime.values.errors import InputProblem

if TYPE_CHECKING:
    from distributed import Client

    from qvr_core.cluster.dispatch import Dealer

Kernel = HMCKernel | NUTSKernel
Schedule = Literal["together", "processes", "sequential"]
Init = Literal["random", "pathfinder"]
PATHS = 1
"""Set in front of a chain's seed: the numbers of its path are not those of its transitions."""


class MCMC:
    """`num_chains` chains of `num_warmup` + `num_samples` transitions of `kernel`.

    Each chain has its own generator (seeded from `seed`, or from torch's global one) and its own adaptation.  `chains`
    says how they run: 'together' (all in one execution, the default where the model allows), 'processes' or
    'sequential'.  The schedule does not change the seeds.

    `engine` is what evaluates the density.  'auto' and 'compiled' take machine code where the program allows: a tenth
    of a second of compiling at first, which later runs find on disk, then a hundredth of the time.  'plain' runs the
    program each time, and torch differentiates it.

    `init` is where chains start: 'random', noise from its prior and unconstrained values uniform on (−2, 2), or
    'pathfinder', draws of Normal approximations on the way up from there.  Such starts lie close together: R-hat then
    says less of modes that no path has found.

    `client` is a `distributed.Client`: the chains run as machine code on its cluster, slice by slice on whichever
    worker is free.  On machines of one kind the draws are those of a run without it, bit for bit.
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
        engine: Engine = "auto",
        init: Init = "random",
        client: Client | None = None,
    ) -> None:
        if num_samples < 1 or num_chains < 1 or num_warmup < 0:
            raise InputProblem("num_samples and num_chains must be at least 1, num_warmup at least 0")
        self.kernel = kernel
        self.num_warmup, self.num_samples, self.num_chains = num_warmup, num_samples, num_chains
        self.seed = seed
        self.schedule = chains
        self.client = client
        self.engine: Engine = engine
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
        program = model.model if isinstance(model, LiftedModel) else model
        observations = None if observations is None else program.taken(observations)
        potential = potential_of(model, x, observations)
        if (note := self.choose(potential).note) is not None:
            warnings.warn(note, stacklevel=2)
        seeds = self.seeds()
        given = observations if observations is not None else getattr(model, "observations", None)
        told = Given(model, x, dict(given or {}))
        if self.client is not None:
            from qvr_core.cluster.dispatch import Dealer

            dealer = Dealer(self.client, lambda text: warnings.warn(text, stacklevel=2))
            return replace(joined(self.on_cluster(dealer, potential, seeds)), given=told)
        schedule = self.schedule or ("together" if potential.vectorised else "sequential")
        if schedule == "together" or self.num_chains == 1:
            groups = [seeds]
        else:
            groups = [[seed] for seed in seeds]
        if schedule == "processes" and self.num_chains > 1:
            runs = in_processes([partial(self.chains_of, potential, group, None) for group in groups])
        else:
            runs = [self.chains_of(potential, group, watch) for group in groups]
        return replace(joined(runs), given=told)

    def seeds(self) -> list[int]:
        """A seed for each chain."""
        base = self.seed if self.seed is not None else int(arrays.randint(0, 2**31 - 1, ()))
        # not base, base + 1, …: runs of neighbouring seeds must not share chains
        return [int(word) for word in np.random.SeedSequence(base).generate_state(self.num_chains)]

    def choose(self, potential: Potential) -> Choice:
        """Decide what evaluates a density, and have it compiled where that is to be; for all that follows."""
        self.choice = choose(potential, self.engine)
        if self.init == "pathfinder":
            self._find_starts(potential)
        return self.choice

    def _find_starts(self, potential: Potential) -> None:
        """Those of all chains, wherever they run.  None where no path has found a start."""
        if isinstance(potential, LiftedPotential):
            raise InputProblem("init = pathfinder is for programs without the parameters of networks")
        seeds, density = self.seeds(), self.choice and self.choice.density
        evaluated = None if density is None else evaluated_by(density)
        begins = start(potential, seeds, evaluated).q.astype(np.float64)
        generators = [np.random.default_rng((PATHS, seed)) for seed in seeds]
        counted = pathfinder.Counted(density or partial(_alone, potential))
        with np.errstate(all="ignore"):
            found = pathfinder.starts(counted, list(begins), generators)
        self.start_gradients = counted.calls
        self.starts = None if found is None else dict(zip(seeds, found, strict=True))
        if found is None and self.choice is not None:
            why = "no path of pathfinder has found a Normal near the posterior: chains start at random"
            self.choice = replace(self.choice, note=self.choice.note or why)

    def begins(self, potential: Potential, seeds: Sequence[int]) -> Array | None:
        """Where chains start, where that was found beforehand."""
        if self.starts is None:
            return None
        q = np.stack([self.starts[seed] for seed in seeds])
        return arrays.from_numpy(q).to(potential.dtype).numpy()

    def chains_of(
        self,
        potential: Potential,
        seeds: Sequence[int],
        watch: Watch | None,
        ended: Callable[[], bool] = lambda: False,
        keeper: Keeper | None = None,
    ) -> MCMCResult:
        """The chains of these seeds, all in one execution, on the engine that was chosen.  `ended` is asked between
        slices of transitions; chains that `keeper` has kept go on from there.  Raises `Enough` where it was enough
        before any draw."""
        choice = self.choice or self.choose(potential)
        # a trajectory that runs away meets infinities on its way to being called divergent
        with np.errstate(all="ignore"):
            result = self._chains(choice, potential, seeds, watch, ended, keeper)
        return replace(result, engine=choice.engine)

    def on_cluster(
        self,
        dealer: Dealer,
        potential: Potential,
        seeds: Sequence[int],
        watch: Callable[[int, int, Slice], None] = lambda number, first, part: None,
        ended: Callable[[], bool] = lambda: False,
        keeper: Callable[[int], Keeper | None] = lambda number: None,
        tell: Callable[[str], None] = warnings.warn,
    ) -> list[MCMCResult]:
        """The chains of these seeds that have draws, each run by itself on a cluster.  `watch` sees the slices of each
        by its number, with that of the first transition, and `keeper` is who keeps it.  Raises `LostCluster`,
        `UnitFailed`, and `InputProblem` where the density is no machine code."""
        from qvr_core.inference.mcmc.clustered import Placed, run_on  # which runs without a cluster do not load

        choice = self.choice or self.choose(potential)
        density = choice.density
        if density is None:
            why = f": {choice.why}" if choice.why else ""
            raise InputProblem(f"a cluster runs chains as machine code, which these are not{why}")
        placed: list[Placed] = []
        for number, seed in enumerate(seeds):
            own = keeper(number)
            begun = own.begun() if own is not None else None
            starts = self.begins(potential, [seed]) if begun is None else None
            every = own.every if own is not None else None
            running = Compiled(self, density, potential, [seed], ended, begun and begun[0], starts, every=every)
            collected = Collected(running, self.num_warmup, None, partial(watch, number), own, begun)
            placed.append(Placed(running, collected))
        run_on(dealer, density, placed, ended, tell)
        drawn = [one.collected.result(potential) for one in placed if one.collected.draws.count]
        return [replace(result, engine=choice.engine) for result in drawn]

    def _chains(
        self,
        choice: Choice,
        potential: Potential,
        seeds: Sequence[int],
        watch: Watch | None,
        ended: Callable[[], bool],
        keeper: Keeper | None,
    ) -> MCMCResult:
        begun = keeper.begun() if keeper is not None else None
        state = begun and begun[0]
        every = keeper.every if keeper is not None else None
        starts = self.begins(potential, seeds) if begun is None else None
        running: Compiled | Stepwise
        if choice.density is not None:
            running, report = Compiled(self, choice.density, potential, seeds, ended, state, starts, every=every), None
        else:
            running, report = Stepwise(self, potential, seeds, state, starts), potential.report
        seen = None if watch is None else each_transition(watch, running.total, self.num_warmup)
        collected = Collected(running, self.num_warmup, report, seen, keeper, begun)
        with contextlib.suppress(Enough):
            for part in running.slices():
                collected.take(part)
        collected.close()
        return collected.result(potential)


def _alone(potential: Potential, q: Array) -> tuple[float, Array]:
    """Log density and gradient at one position (D,)."""
    state = state_at(potential, arrays.from_numpy(q).to(potential.dtype).unsqueeze(0).numpy())
    return float(state.log_density[0]), state.gradient[0].astype(np.float64)


def joined(runs: Sequence[MCMCResult]) -> MCMCResult:
    """The chains of several runs side by side; each run has as many draws."""
    if len(runs) == 1:
        return runs[0]

    def together(attribute: str) -> Tensor:
        return arrays.cat([getattr(run, attribute) for run in runs])

    return MCMCResult(
        {name: arrays.cat([run.samples[name] for run in runs]) for name in runs[0].samples},
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
