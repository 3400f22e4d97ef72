"""What a Markov chain run gives, and how well it mixed (by arviz)."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from qvr_core.inference.mcmc.mixing import DIAGNOSED, mixing_warnings, statistic


@dataclass(repr=False)
class MCMCResult:
    """Draws after warm-up.

    samples: {site: (chains, draws, …)}.  Per chain: `acceptance_rates` (the mean Metropolis acceptance statistic),
    `divergence_counts`, `step_sizes`.  Per draw (chains, draws): `tree_depths`, `leapfrog_steps`, `diverging`,
    `log_density`.  `remarks` are what a chain itself noticed, `advice` says what to do about divergences.
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

    @cached_property
    def warnings(self) -> list[str]:
        """What looks wrong, in words and with advice: of all chains together, and each thing once."""
        return self.warnings_of()

    def warnings_of(self, diagnosed: int = DIAGNOSED) -> list[str]:
        """The same; R-hat and effective sample sizes of about so many numbers."""
        found = list(self.remarks)
        if bool(self.diverging.any()):
            count, every = int(self.diverging.sum()), self.diverging.numel()
            found.append(f"{count} of {every} transitions diverged: {self.advice}")
        return found + mixing_warnings(self.samples, diagnosed)

    @cached_property
    def r_hat(self) -> dict[str, Tensor]:
        """Rank-normalised split R-hat (Vehtari et al. 2021) by site, of the site's shape; NaN below 4 draws."""
        return self._each("rhat", "rank")

    @cached_property
    def ess(self) -> dict[str, Tensor]:
        """Bulk effective sample size by site, over all chains."""
        return self._each("ess", "bulk")

    @cached_property
    def ess_tail(self) -> dict[str, Tensor]:
        """Effective sample size of the 5 % and 95 % quantiles by site."""
        return self._each("ess", "tail")

    def _each(self, which: str, method: str) -> dict[str, Tensor]:
        found: dict[str, Tensor] = {}
        for name, draws in self.samples.items():
            if draws.shape[1] < 4:
                found[name] = torch.full(draws.shape[2:], float("nan"))
                continue
            flat = draws.reshape(*draws.shape[:2], -1).double().numpy()
            found[name] = torch.as_tensor(statistic(which, method, flat)).reshape(draws.shape[2:])
        return found

    def to_arviz(self) -> Any:
        """As arviz.InferenceData, with the sampler's statistics."""
        import arviz

        return arviz.from_dict(
            posterior={name: draws.numpy() for name, draws in self.samples.items()},
            sample_stats={
                "diverging": self.diverging.numpy(),
                "acceptance_rate": self.acceptance.numpy(),
                "tree_depth": self.tree_depths.numpy(),
                "n_steps": self.leapfrog_steps.numpy(),
                "lp": self.log_density.numpy(),
            },
        )

    def summary(self) -> Any:
        """Mean, sd, quantiles, R-hat and effective sample sizes of each number: arviz' table, a DataFrame."""
        import arviz

        return arviz.summary(self.to_arviz())

    def __repr__(self) -> str:
        shapes = ", ".join(f"{name} {tuple(draws.shape[2:])}" for name, draws in self.samples.items())
        chains, draws = self.diverging.shape
        return f"MCMCResult({chains} chains of {draws} draws: {shapes}; {int(self.diverging.sum())} divergences)"

    def joined(self) -> dict[str, Tensor]:
        """Draws of all chains in a row: {site: (chains · draws, …)}, as `Predictive` takes them."""
        return {name: draws.flatten(0, 1) for name, draws in self.samples.items()}
