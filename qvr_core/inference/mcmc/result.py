"""What a Markov chain run gives, and how well it mixed."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qvr_core.arrays.engine import Tensor, arrays
from qvr_core.html_tables import html_table
from qvr_core.inference.axes import Axes, axes_of, element_names
from qvr_core.inference.diagnostics.convergence import Mixing, mcse_mean, mcse_sd, mixing
from qvr_core.inference.diagnostics.intervals import highest_density
from qvr_core.inference.diagnostics.pareto import leave_one_out
from qvr_core.inference.diagnostics.verdicts import Verdict, energy_of, pareto_of
from qvr_core.inference.inference_data import PRIOR_DRAWS, Fit, Groups, inference_data
from qvr_core.inference.mcmc.warnings import DIAGNOSED, divergence_warnings, energy_warnings, mixed, mixing_warnings
from qvr_core.inference.pointwise import Given
from qvr_core.runtime.values.errors import InputProblem


@dataclass(repr=False)
class MCMCResult:
    """Draws after warm-up.

    samples: {site: (chains, draws, …)}.  Per chain: `acceptance_rates` (the mean Metropolis acceptance statistic),
    `divergence_counts`, `step_sizes`.  Per draw (chains, draws): `tree_depths`, `leapfrog_steps`, `diverging`,
    `log_density`, `energy`.  `remarks` are what a chain itself noticed, `advice` says what to do about divergences.
    """

    samples: dict[str, Tensor]
    acceptance_rates: Tensor
    divergence_counts: Tensor
    step_sizes: Tensor
    tree_depths: Tensor
    leapfrog_steps: Tensor
    diverging: Tensor
    log_density: Tensor
    acceptance: Tensor
    remarks: list[str] = field(default_factory=list[str])
    advice: str = "raise target_accept"
    engine: str = ""
    """What evaluated the density: 'compiled' or 'plain'; empty where the draws come from elsewhere."""
    energy: Tensor | None = None
    """The Hamiltonian that each trajectory began with, (chains, draws)."""
    given: Given | None = field(default=None, repr=False, compare=False)
    """The model with what it was conditioned on; None where the draws come from elsewhere."""

    @cached_property
    def warnings(self) -> list[str]:
        """What looks wrong, in words and with advice: of all chains together, and each thing once."""
        return self.warnings_of()

    def warnings_of(self, diagnosed: int = DIAGNOSED) -> list[str]:
        """The same; R-hat and effective sample sizes of about so many numbers."""
        diverged = divergence_warnings(self.diverging, self.advice)
        mixing = mixing_warnings(self.samples, diagnosed, self._axes())
        return [*self.remarks, *diverged, *energy_warnings(self.energy), *mixing]

    @cached_property
    def checks(self) -> tuple[Verdict, ...]:
        """What `qvr check-fit` says of the same draws, by the same limits: whether each check passed, its figure, the
        number that is worst off.  Where the model is known, Pareto k of its observations, too (`log_likelihood`)."""
        count, every = int(self.diverging.sum()), self.diverging.numel()
        text = f"{count:,} of {every:,} transitions diverged" if count else f"none in {every:,} transitions"
        found = [Verdict("divergences", not count, text, count / every)]
        energy = None if self.energy is None else energy_of(self.energy.double().cpu().numpy())
        found += [] if energy is None else [energy]
        found += mixed(self.samples, axes=self._axes()).verdicts
        if self.given is not None and (pareto := self._pareto()) is not None:
            found.append(pareto)
        return tuple(found)

    def _pareto(self) -> Verdict | None:
        """Pareto k of the observed elements that count."""
        assert self.given is not None
        names, columns, axes = list[str](), list[NDArray[np.float64]](), self._axes()
        for name, value in self.given.of_outcomes(self.log_likelihood).items():
            flat = value.flatten(0, 1).reshape(self.diverging.numel(), -1).double().cpu().numpy()
            called = element_names(name, tuple(value.shape[2:]), axes.get(name, ()))
            there = np.flatnonzero(~np.isnan(flat).all(0))
            names += [called[at] for at in there.tolist()]
            columns.append(flat[:, there])
        if not names:
            return None
        return pareto_of(names, leave_one_out(np.concatenate(columns, 1))[1], self.diverging.numel())

    def _axes(self) -> Axes:
        """What the elements of each site are called, where the model is known."""
        return {} if self.given is None else axes_of(self.given.program, self.given.known)

    @cached_property
    def r_hat(self) -> dict[str, Tensor]:
        """Rank-normalised split R-hat (Vehtari et al. 2021) by site, of the site's shape; NaN below 4 draws."""
        return self._shaped({name: one.r_hat for name, one in self.mixing.items()})

    @cached_property
    def ess(self) -> dict[str, Tensor]:
        """Bulk effective sample size by site, over all chains."""
        return self._shaped({name: one.bulk for name, one in self.mixing.items()})

    @cached_property
    def ess_tail(self) -> dict[str, Tensor]:
        """Effective sample size of the 5 % and 95 % quantiles by site."""
        return self._shaped({name: one.tail for name, one in self.mixing.items()})

    @cached_property
    def mixing(self) -> dict[str, Mixing]:
        """By site the statistics of its elements, in a row."""
        return {
            name: mixing(draws.reshape(*draws.shape[:2], -1).double().cpu().numpy())
            for name, draws in self.samples.items()
        }

    def _shaped(self, found: dict[str, NDArray[np.float64]]) -> dict[str, Tensor]:
        return {name: arrays.as_tensor(one).reshape(self.samples[name].shape[2:]) for name, one in found.items()}

    @cached_property
    def log_likelihood(self) -> dict[str, Tensor]:
        """By observed step the log density of each of its elements, (chains, draws, …); NaN where it is masked.

        Computed from the draws when it is first asked for.
        """
        if self.given is None:
            raise InputProblem("these draws do not know their model: use Predictive(…).log_likelihood")
        shape = self.diverging.shape
        found = self.given.log_likelihood(self.joined())
        return {name: value.reshape(*shape, *value.shape[1:]) for name, value in found.items()}

    @cached_property
    def deterministic(self) -> dict[str, Tensor]:
        """The lets that depend on a latent, or that the program's `keep` names, (chains, draws, …); computed from the
        draws when they are first asked for."""
        if self.given is None:
            return {}
        shape = self.diverging.shape
        found = self.given.deterministic(self.joined())
        return {name: value.reshape(*shape, *value.shape[1:]) for name, value in found.items()}

    @cached_property
    def predictions(self) -> dict[str, Tensor]:
        """What `predict` steps draw for each draw of the latents, and the lets that read them, (chains, draws, …); made
        when it is first asked for."""
        if self.given is None:
            return {}
        shape = self.diverging.shape
        found = self.given.predictions(self.joined())
        return {name: value.reshape(*shape, *value.shape[1:]) for name, value in found.items()}

    def to_arviz(self, *, prior_draws: int = PRIOR_DRAWS) -> Any:
        """As an xarray.DataTree of ArviZ' schema, dimensions `chain`, `draw`, …: groups `posterior` (latents, then
        deterministic sites), `sample_stats`, `posterior_predictive` (observed steps drawn anew, `predict` steps and
        lets that read them, and of each `marginalize` the probabilities of its states), `log_likelihood` (one number
        for each observed element that counts), `prior` and `prior_predictive` (`prior_draws` draws; 0 for none),
        `observed_data`, `constant_data`.  Dimensions are called as the sets that a value runs over, with the labels of
        their elements as coordinates; others `v_dim_0`, …  A slash in a name becomes a dot.

        ArviZ 1 takes it as it is, earlier ones through `arviz.from_datatree`.
        Source: the InferenceData schema specification of ArviZ.
        """
        groups = self.groups(prior_draws)
        for note in groups.notes:
            warnings.warn(note, stacklevel=2)
        return groups.tree().to_xarray()

    def groups(self, prior_draws: int = PRIOR_DRAWS) -> Groups:
        """The groups of `to_arviz`, and what is said of those that are left out."""
        statistics = {
            "diverging": self.diverging,
            "acceptance_rate": self.acceptance,
            "tree_depth": self.tree_depths,
            "n_steps": self.leapfrog_steps,
            "step_size": self.step_sizes[:, None].expand(self.diverging.shape),
            "lp": self.log_density,
        }
        if self.energy is not None:
            statistics["energy"] = self.energy
        lets, later = self.deterministic, self.predictions
        fit = Fit(self.given, self.samples, lets, later, statistics, lambda: self.log_likelihood)
        return inference_data(fit, prior_draws=prior_draws)

    def summary(self) -> Any:
        """A polars.DataFrame with a row a number: its name, mean, sd, 94 % interval of highest density, Monte Carlo
        standard errors of mean and sd, effective sample sizes and R-hat.  Elements that do not exist have none."""
        import polars

        rows: dict[str, list[Any]] = {"name": []}
        axes = self._axes()
        for name, value in self.samples.items():
            shape = tuple(value.shape[2:])
            flat = value.reshape(*value.shape[:2], -1).double().numpy()
            there = np.flatnonzero(~np.isnan(flat).all((0, 1)))
            with np.errstate(all="ignore"):
                low, high = highest_density(flat.reshape(-1, flat.shape[2]), 0.94)
                columns = {
                    "mean": flat.mean((0, 1)), "sd": flat.std((0, 1), ddof=1), "hdi_3%": low, "hdi_97%": high,
                    "mcse_mean": mcse_mean(flat), "mcse_sd": mcse_sd(flat),
                    "ess_bulk": self.ess[name].flatten(), "ess_tail": self.ess_tail[name].flatten(),
                    "r_hat": self.r_hat[name].flatten(),
                }  # fmt: skip
            names = element_names(name, shape, axes.get(name, ()))
            rows["name"] += [names[at] for at in there.tolist()]
            for column, values in columns.items():
                rows.setdefault(column, []).extend(np.asarray(values)[there].tolist())
        return polars.DataFrame(rows)

    def __repr__(self) -> str:
        shapes = ", ".join(f"{name} {tuple(draws.shape[2:])}" for name, draws in self.samples.items())
        chains, draws = self.diverging.shape
        return f"MCMCResult({chains} chains of {draws} draws: {shapes}; {int(self.diverging.sum())} divergences)"

    def _repr_mimebundle_(self, **kwargs: object) -> dict[str, str]:
        """What a notebook shows: the table of all numbers, and what looks wrong."""
        table = html_table(self.summary().to_dict(as_series=False), self.warnings)
        return {
            "text/plain": repr(self),
            "text/html": table,
        }

    def joined(self) -> dict[str, Tensor]:
        """Draws of all chains in a row: {site: (chains · draws, …)}, as `Predictive` takes them."""
        return {name: draws.flatten(0, 1) for name, draws in self.samples.items()}
