"""Simulation-based calibration: are the posteriors of data drawn from a program spread as its prior is?

Talts, Betancourt, Simpson, Vehtari & Gelman (2018).  Of each replicate latents and data are drawn from the prior; the
rank of the latents among thinned draws of their posterior is uniform where program, fit and sampler agree.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qvr_core.arrays.engine import Tensor, arrays
from qvr_core.inference.axes import axes_of, element_names
from qvr_core.inference.machine.compiled import MachineDensity
from qvr_core.inference.machine.density import NotCompiled, machine_density
from qvr_core.inference.mcmc import MCMC, NUTSKernel
from qvr_core.inference.mcmc.engines import Choice
from qvr_core.inference.mcmc.potential import ProgramPotential
from qvr_core.inference.pointwise import Given
from qvr_core.runtime.programs.program import ProgramModule
from qvr_core.runtime.values.cells import Cell
from qvr_core.runtime.values.errors import InputProblem

DRAWS = 63
"""Thinned draws of a replicate: a rank is one of 0 … 63."""
THIN = 6
"""Transitions between two of them."""
WARMUP = 250
SURE = 0.01
"""How often a program that is right is called wrong, over all of its numbers together."""
MOST_DEPTH = 8
FEWEST = 5
"""Expected ranks on either side of a place where the distribution functions are compared."""
SIMULATED = 20_000
"""Uniform samples that the envelope of their distribution function is read off."""

Array = NDArray[Any]
Watch = Callable[[int, int], None]
"""Is told how much is done, and of how much."""
Elsewhere = Callable[[Mapping[str, Tensor], Sequence[int]], dict[str, Tensor]]
"""Gives the thinned draws (replicates, DRAWS, …) of the latents, of what is observed in each replicate and the seeds of
their chains."""


class ReplicatePotential(ProgramPotential):
    """The density of a program whose chains have data of their own: chain i sees replicate i."""

    def __init__(self, model: ProgramModule, data: Mapping[str, Any], observed: Mapping[str, Tensor]) -> None:
        super().__init__(model, None, {**data, **{name: value[0] for name, value in observed.items()}})
        self.replicates = {name: Cell(_real(value, self.dtype), True) for name, value in observed.items()}
        self.count = len(next(iter(observed.values())))

    def one(self, observed: Mapping[str, Tensor]) -> ReplicatePotential:
        """The density of a single chain given other values of what is observed."""
        found = copy.copy(self)
        found.observations, found.count = {**self.observations, **observed}, 0
        found._expanded = {}
        return found

    def _inputs(self, chains: int) -> tuple[Any, Mapping[str, Any]]:
        value, given = super()._inputs(chains)
        return value, {**given, **self.replicates} if chains == self.count else given


def _real(value: Tensor, dtype: arrays.dtype) -> Tensor:
    return value.to(dtype) if value.is_floating_point() else value


def _unwatched(done: int, total: int) -> None:
    """Nobody asks how far the chains are."""


@dataclass(frozen=True)
class Rank:
    """The ranks of one number over all replicates, each 0 … `draws`, and how they differ from uniform ones.

    `distance` is the greatest standardised distance of their distribution function from the uniform one, `limit` what
    uniform ranks stay below with the probability that the verdict asks for (Säilynoja, Bürkner & Vehtari 2022);
    `lean` and `spread` say how they differ: the mean rank as a share, and the sd as a share of the uniform one.
    """

    name: str
    ranks: tuple[int, ...]
    draws: int
    distance: float
    limit: float

    @property
    def passed(self) -> bool:
        """Whether the ranks are those of a sampler that draws from the posterior."""
        return self.distance <= self.limit

    @property
    def lean(self) -> float:
        """0.5 where posteriors lie neither too low nor too high."""
        return float(np.mean(self.ranks)) / self.draws

    @property
    def spread(self) -> float:
        """1 for uniform ranks; more where posteriors are too narrow, less where they are too wide."""
        return float(np.std(self.ranks)) / (self.draws * np.sqrt((1 + 2 / self.draws) / 12))

    def histogram(self, bins: int) -> list[int]:
        """How many ranks fall into each of as many bins of equal width."""
        return np.histogram(self.ranks, bins=bins, range=(-0.5, self.draws + 0.5))[0].tolist()


def calibrate(
    model: ProgramModule,
    data: Mapping[str, Any],
    observed: Mapping[str, Tensor],
    replicates: int,
    *,
    fitted: ProgramModule | None = None,
    seed: int = 0,
    watch: Watch | None = None,
    elsewhere: Elsewhere | None = None,
) -> list[Rank]:
    """The ranks of all latents of a program without an input, each element by its place.

    `observed` are values of the observed steps, of which only the shapes count.  `fitted` is the program whose
    posterior is asked for, the same one by default.  Each replicate is a chain of the same machine code, with its data;
    where there is none for it, all replicates are chains of one execution.  `elsewhere` samples them in its stead.
    Raises `InputProblem` where a latent has no prior to draw from or cannot be moved.
    """
    if model.program.uses_input or any(True for _ in model.parameters()):
        raise InputProblem(f"`{model.name}` has an input or fitted parameters: calibration is of priors on latents")
    latents, drawn = Given(model, None, {**data, **observed}).prior(replicates, seed)
    other = fitted or model
    seen, told = {name: drawn[name] for name in observed}, watch or _unwatched
    chains = _chains(replicates, seed)
    try:
        samples = (elsewhere or partial(Replicates(other, data, seen).some, watch=told))(seen, chains.seeds())
    except NotCompiled:
        potential = ReplicatePotential(other, data, seen)
        together = chains.chains_of(potential, chains.seeds(), lambda now: told(now.draw + 1, now.total))
        samples = _thinned(together.samples)
    names = [name for name in samples if name in latents]
    found = [(name, at, ranks) for name in names for at, ranks in _ranks(latents[name], samples[name])]
    limit = envelope(replicates, DRAWS, SURE / max(len(found), 1))
    axes = axes_of(model, data)
    called = {name: element_names(name, latents[name].shape[1:], axes.get(name, ())) for name in names}
    return [Rank(called[n][at], tuple(r.tolist()), DRAWS, distance(r, DRAWS), limit) for n, at, r in found]


def _chains(count: int, seed: int) -> MCMC:
    return MCMC(NUTSKernel(max_tree_depth=MOST_DEPTH), WARMUP, DRAWS * THIN, count, seed=seed, engine="plain")


def _thinned(samples: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: value[:, ::THIN] for name, value in samples.items()}


class Replicates:
    """Chains of the same machine code, one for each replicate, which is a function of its data and its seed."""

    def __init__(self, model: ProgramModule, data: Mapping[str, Any], observed: Mapping[str, Tensor]) -> None:
        """`observed` (replicates, …), of which only the shapes and kinds count."""
        self.potential = ReplicatePotential(model, data, observed)
        self.start = self.potential.initial(np.random.default_rng(0)).numpy()
        self.made: MachineDensity | None = None

    def draws(self, observed: Mapping[str, Tensor], seed: int) -> dict[str, Tensor]:
        """The thinned draws (1, DRAWS, …) of the posterior of what is observed.  Raises `NotCompiled`."""
        one = self.potential.one({name: _real(value, self.potential.dtype) for name, value in observed.items()})
        self.made = machine_density(one, self.start, like=self.made)
        chain = _chains(1, seed)
        chain.choice = Choice("compiled", self.made)
        return _thinned(chain.chains_of(one, [seed], None).samples)

    def some(
        self, observed: Mapping[str, Tensor], seeds: Sequence[int], watch: Watch = _unwatched
    ) -> dict[str, Tensor]:
        """Those of several, (replicates, DRAWS, …).  Raises `NotCompiled`."""
        found: list[dict[str, Tensor]] = []
        for at, seed in enumerate(seeds):
            found.append(self.draws({name: value[at] for name, value in observed.items()}, seed))
            watch(len(found), len(seeds))
        return {name: arrays.cat([each[name] for each in found]) for name in found[0]}


def _ranks(truth: Tensor, thinned: Tensor) -> list[tuple[int, Array]]:
    """Of each element that its prior leaves free its ranks (replicates,) among thinned draws (replicates, draws, …)."""
    thinned = thinned.flatten(2) if thinned.ndim > 2 else thinned.unsqueeze(-1)
    drawn = truth.reshape(len(truth), 1, -1)
    below = (thinned < drawn).sum(1).cpu().numpy()
    # the corner of a Cholesky factor, and what stands above its diagonal, are no numbers that a posterior could miss
    free = (drawn != drawn[:1]).any(0)[0].cpu().numpy()
    return [(at, below[:, at]) for at in range(below.shape[1]) if free[at]]


def distance(ranks: Array, draws: int) -> float:
    """max |F̂(r) − F(r)| / √(F(r) (1 − F(r)) / N) over the ranks r, with F uniform on 0 … `draws`."""
    return float(distances(np.asarray(ranks)[None], draws)[0])


def distances(ranks: Array, draws: int) -> Array:
    """`distance` of each row of ranks."""
    count = ranks.shape[1]
    cells = ranks + np.arange(len(ranks))[:, None] * (draws + 1)
    counts = np.bincount(cells.ravel(), minlength=len(ranks) * (draws + 1)).reshape(len(ranks), -1)
    below = counts.cumsum(1)[:, :-1] / count
    exact = np.arange(1, draws + 1) / (draws + 1)
    # the outermost ranks have too few expected ranks on one side for a scale
    inner = (exact * count >= FEWEST) & ((1 - exact) * count >= FEWEST)
    return (np.abs(below - exact) / np.sqrt(exact * (1 - exact) / count))[:, inner].max(1)


@lru_cache(maxsize=16)
def _simulated(count: int, draws: int) -> Array:
    generator = np.random.default_rng(0)
    parts = [distances(generator.integers(0, draws + 1, (1000, count)), draws) for _ in range(SIMULATED // 1000)]
    return np.sort(np.concatenate(parts))


def envelope(count: int, draws: int, level: float) -> float:
    """The distance that `count` uniform ranks exceed with probability `level`, by simulation."""
    return float(np.quantile(_simulated(count, draws), 1 - level))


def verdict(rank: Rank) -> str:
    """What the ranks say, in words."""
    if rank.passed:
        return "uniform"
    # in standard errors of uniform ranks, whose kurtosis is 1.8
    off = abs(rank.lean - 0.5) * (12 * len(rank.ranks)) ** 0.5
    if abs(rank.spread - 1) * 2 * (len(rank.ranks) / 0.8) ** 0.5 > off:
        return f"not uniform: the posterior is too {'narrow' if rank.spread > 1 else 'wide'}"
    side = "low" if rank.lean > 0.5 else "high"
    return f"not uniform: the posterior lies too {side}"
