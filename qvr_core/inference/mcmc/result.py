"""What a Markov chain run gives, and how well it mixed (by arviz)."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor


@dataclass
class MCMCResult:
    """Draws after warm-up.

    samples: {site: (chains, draws, …)}.  Per chain: `acceptance_rates` (the mean Metropolis acceptance statistic),
    `divergence_counts`, `step_sizes`.  Per draw (chains, draws): `tree_depths`, `leapfrog_steps`, `diverging`,
    `log_density`.  `warnings` say in words what looks wrong, with advice.
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
    warnings: list[str] = field(default_factory=list)

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

    def _each(self, statistic: str, method: str) -> dict[str, Tensor]:
        import arviz

        function = getattr(arviz, statistic)
        found: dict[str, Tensor] = {}
        for name, draws in self.samples.items():
            if draws.shape[1] < 4:
                found[name] = torch.full(draws.shape[2:], float("nan"))
                continue
            flat = draws.reshape(*draws.shape[:2], -1).double().numpy()
            data = arviz.convert_to_dataset({"v": flat})
            with np.errstate(all="ignore"):
                found[name] = torch.as_tensor(np.asarray(function(data, method=method)["v"])).reshape(draws.shape[2:])
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

    def joined(self) -> dict[str, Tensor]:
        """Draws of all chains in a row: {site: (chains · draws, …)}, as `Predictive` takes them."""
        return {name: draws.flatten(0, 1) for name, draws in self.samples.items()}
