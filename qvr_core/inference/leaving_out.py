"""Chains that do not see some of the observations, and how well they predict them: refits of cross-validation.

What is left out adds nothing to the density that a chain explores; all else stands as it is.  So a latent that only
left-out observations tell of keeps its prior given the other latents: the effect of a group without data is drawn from
its population, and the log predictive density, a mean over draws, integrates over it.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qvr_core.arrays.engine import Tensor, arrays
from qvr_core.inference.axes import element_names
from qvr_core.inference.diagnostics.convergence import ess_mean
from qvr_core.inference.mcmc import MCMC, MCMCResult
from qvr_core.inference.mcmc.potential import ProgramPotential
from qvr_core.inference.pointwise import Given, name_of
from qvr_core.runtime.programs.chain_site import ChainSite
from qvr_core.runtime.programs.execution import Execution, SiteRecord
from qvr_core.runtime.programs.forward_algorithm import HiddenChain
from qvr_core.runtime.programs.handlers import pointwise
from qvr_core.runtime.programs.labelled.axes import Axis, site_axes
from qvr_core.runtime.programs.program import ProgramModule
from qvr_core.runtime.values.errors import InputProblem
from qvr_core.semantics.types.deterministic import filled_in_predictors, predicted, reads_of_observed
from qvr_core.semantics.types.model.steps import LetModel, ObserveModel
from qvr_core.semantics.types.walk import all_steps, sites

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]
POSITIONS = 4
"""Where it is looked at which elements count, and whether they add up."""
ROUNDING = 1e-9


class NotLeftOut(InputProblem):
    """Why observations of a program cannot be left out; it names the step."""


@dataclass(frozen=True)
class Scored:
    """An observed step, or a `marginalize` that has one number for each of its places.

    `counted` (…) says which elements have a density; the others are masked or missing.  Of a step whose elements read
    earlier ones, along the axis `series`, only whole series are observations; else each counted element is one.
    """

    name: str
    """As the log likelihood calls it."""
    record: str
    """Of an execution."""
    counted: Flags
    axes: tuple[Axis, ...]
    series: int | None = None

    @property
    def there(self) -> Flags:
        """Which places hold an observation: the shape of `counted`, without the axis of series."""
        return self.counted if self.series is None else np.asarray(self.counted.any(self.series))

    @property
    def names(self) -> list[str]:
        """What its observations are called."""
        own = [axis for at, axis in enumerate(self.axes) if at != self.series]
        called = element_names(self.name, self.there.shape, own)
        return [called[at] for at in np.flatnonzero(self.there).tolist()]

    @property
    def places(self) -> list[tuple[int, ...]]:
        """Where each observation stands along the axes that are not that of series."""
        return [tuple(place) for place in np.argwhere(self.there).tolist()]

    @property
    def sets(self) -> tuple[str | None, ...]:
        """The sets that those axes run over."""
        shape = self.there.ndim
        named = [axis.name for at, axis in enumerate(self.axes) if at != self.series]
        return tuple((*named, *[None] * shape)[:shape])

    def elements(self, left_out: Flags) -> Flags:
        """Of flags of its observations the flags of elements that add nothing to the density: left out, or not
        counted."""
        flags = np.zeros(self.there.shape, dtype=bool)
        flags[self.there] = left_out
        if self.series is not None:
            flags = np.expand_dims(flags, self.series)
        return np.asarray(flags | ~self.counted)

    def by_observation(self, densities: Array) -> Array:
        """(draws, observations) of the densities of elements (draws, …)."""
        if self.series is not None:
            densities = np.nansum(densities, self.series + 1)
        return densities[:, self.there]


class LeavingOut(ProgramPotential):
    """The density of a program without some of its observations.  Raises `NotLeftOut` where none can be left out."""

    def __init__(self, given: Given) -> None:
        model = given.program
        if model.program.uses_input or given.model is not model or any(True for _ in model.parameters()):
            raise NotLeftOut(
                f"`{model.name}` has an input or weights: observations of statistical programs are left out"
            )
        super().__init__(model, None, given.observations)
        self.given = given
        self.steps: tuple[Scored, ...] = ()
        self.hidden: frozenset[str] = frozenset()
        self.left_out: Mapping[str, Tensor] = {}
        whole = self._positions()
        self.steps = tuple(self._scored(whole))
        count = sum(len(step.names) for step in self.steps)
        if count < 2:
            what = (
                f"`{self.steps[0].name}` is one joint observation" if self.steps else f"`{model.name}` observes nothing"
            )
            raise NotLeftOut(f"{what}: without it no data are left", site=self.steps[0].name if self.steps else None)
        self._check_sum(whole)

    @property
    def names(self) -> list[str]:
        """What all observations are called, those of each step in a row."""
        return [name for step in self.steps for name in step.names]

    def without(self, left_out: Flags) -> LeavingOut:
        """The density without the observations of these flags, (observations,)."""
        found = copy.copy(self)
        found._expanded = {}
        found.handlers = (*self.handlers, pointwise)
        found.left_out, start = dict[str, Tensor](), 0
        for step in self.steps:
            stop = start + len(step.names)
            found.left_out[step.record] = arrays.from_numpy(step.elements(left_out[start:stop]))
            start = stop
        return found

    def likelihood(self, run: Execution, site: SiteRecord) -> Tensor | None:
        """A site's log density without what is left out, (rows,); None where another step's density has it."""
        nothing = self.left_out.get(site.name)
        if nothing is None:
            # a hidden name whose density stands with the step that reads it
            return None if self.left_out and site.name in self.hidden else site.log_prob
        each = site.pointwise
        assert each is not None
        return arrays.where(nothing, arrays.zeros((), dtype=each.dtype), each).reshape(each.shape[0], -1).sum(-1)

    # ------------------------------------------------------------ which elements are observations

    def _positions(self) -> Array:
        generator = np.random.default_rng(0)
        return np.stack([self.initial(generator).numpy() for _ in range(POSITIONS)])

    @arrays.no_grad()
    def _scored(self, positions: Array) -> Iterator[Scored]:
        model = self.model
        for name in model.marginals:
            self._check_hidden(name)
        asked = copy.copy(self)
        asked.handlers = (*self.handlers, pointwise)
        run, _ = asked.run(arrays.from_numpy(positions).to(self.dtype))
        predictors, axes = filled_in_predictors(model.program), site_axes(model.program)
        summed = {s.name for s in sites(model.program.steps, ObserveModel) if s.missing and s.missing.how == "sum"}
        hidden: set[str] = set()
        for record in run.sites.values():
            name = name_of(record.name, model)
            if record.pointwise is None or name in predictors:
                continue
            if summed & self._filled(model):
                lost = sorted(summed)[0]
                raise NotLeftOut(
                    f"the missing cells of `{lost}` are summed out with all that reads them, so that no observation "
                    f"can be left out alone",
                    site=lost,
                )
            self._check_reads(name)
            counted = ~record.pointwise.isnan().all(0).numpy()
            site = model.sites.get(record.name)
            series = site.axis if isinstance(site, ChainSite) else None
            if series is not None and counted.ndim == 1:
                raise NotLeftOut(
                    f"`{name}` is one series, in which later elements read the earlier ones: no part of it can be left "
                    "out",
                    site=name,
                )
            hidden |= {one for one, block in model.marginals.items() if one != record.name and name in _readers(block)}
            yield Scored(name, record.name, counted, tuple(axes.get(record.name, ())), series)
        self.hidden = frozenset(hidden)

    def _filled(self, model: ProgramModule) -> set[str]:
        """Observed names that lack cells in these data."""
        return set(model.missing(self.observations))

    def _check_hidden(self, name: str) -> None:
        block = self.model.marginals[name]
        if isinstance(block, HiddenChain) and block.lagging:
            read = ", ".join(f"`{one}`" for one in _readers(block))
            raise NotLeftOut(
                f"`{name}` is a hidden chain: each state depends on the one before it, so no observation of {read} can "
                "be left out alone",
                site=name,
            )

    def _check_reads(self, name: str) -> None:
        """Refuse where the density of anything else reads what is observed here."""
        program = self.model.program
        reads, later = reads_of_observed(program), set(predicted(program))
        lets = {one for step in all_steps(program.steps) if isinstance(step, LetModel) for one in step.names}
        site = self.model.sites.get(name)
        own = isinstance(site, ChainSite)
        for reader, read in reads.items():
            if name not in read or reader in later | lets or (reader == name and own):
                continue
            where = "its own later elements read it" if reader == name else f"`{reader}` reads it"
            raise NotLeftOut(
                f"no observation of `{name}` can be left out: {where}, and would still tell of it", site=name
            )

    def _check_sum(self, positions: Array) -> None:
        """The terms of the observations must be all that the data add to the density."""
        apart = self.without(np.zeros(len(self.names), dtype=bool)).log_densities(positions)
        whole = self.log_densities(positions)
        known = np.isfinite(whole) & np.isfinite(apart)
        if not np.allclose(
            apart[known], whole[known], rtol=ROUNDING, atol=ROUNDING * np.abs(whole[known]).max(initial=1)
        ):
            names = ", ".join(f"`{step.name}`" for step in self.steps)
            raise NotLeftOut(
                f"what {names} adds to the density is not the sum of its elements: none can be left out alone",
                site=self.steps[0].name,
            )


def _readers(block: Any) -> list[str]:
    return [site.name for site in block.observed() if site.kind == "observe"]


@dataclass(frozen=True)
class Predicted:
    """Of observations that chains have not seen the log predictive density, each with its Monte Carlo error; and what
    is wrong with these chains."""

    elpd: Array
    mcse: Array
    divergences: int
    warnings: tuple[str, ...]


def predicted_without(
    potential: LeavingOut, chains: MCMC, left_out: Flags, ended: Callable[[], bool] = lambda: False
) -> Predicted:
    """Chains that do not see the observations of these flags, and how well they predict each of them.

    log 1/S Σ p(y_i | θ_s) over all draws.  Raises `Enough` where `ended` before any draw.
    """
    without = potential.without(left_out)
    chains.choose(without)
    result = chains.chains_of(without, chains.seeds(), None, ended)
    elpd, mcse = log_mean_densities(log_densities(potential, result)[..., left_out])
    return Predicted(elpd, mcse, int(result.divergence_counts.sum()), tuple(result.warnings))


def log_densities(potential: LeavingOut, result: MCMCResult) -> Array:
    """Of each observation, seen or not, for each draw: (chains, draws, observations)."""
    shape = tuple(result.diverging.shape)
    joined = {name: value.flatten(0, 1) for name, value in result.samples.items()}
    found = potential.given.log_likelihood(joined)
    each = [step.by_observation(found[step.name].double().numpy()) for step in potential.steps]
    return np.concatenate(each, 1).reshape(*shape, -1)


def log_mean_densities(log_density: Array) -> tuple[Array, Array]:
    """Of (chains, draws, n) the log of the mean density (n,), and its Monte Carlo error by the effective draws."""
    with np.errstate(all="ignore"):
        high = log_density.max((0, 1))
        high = np.where(np.isfinite(high), high, 0.0)
        weights = np.exp(log_density - high)
        mean = weights.mean((0, 1))
        effective = np.clip(np.nan_to_num(ess_mean(weights), nan=1.0), 1.0, None)
        mcse = weights.std((0, 1)) / np.sqrt(effective) / mean
        return high + np.log(mean), np.where(np.isfinite(mcse), mcse, math.inf)
