"""The ELBO of a statistical program from a random part of its observations (Hoffman et al. 2013)."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping
from typing import Any

from torch import Tensor

from qvr_core.inference.guides.base import Guide
from qvr_core.runtime.programs.program import ProgramModule
from qvr_core.runtime.values.decompositions import trying
from qvr_core.runtime.values.errors import OtherLength


class ScaledELBO:
    """−ELBO where every term in `scaled` stands for all `rows` rows: unbiased for that of all rows.

    What the other terms say (scores of latents, priors of tensors) counts once.
    """

    def __init__(self, num_particles: int, rows: int, scaled: Collection[str]) -> None:
        self.num_particles = num_particles
        self.rows = rows
        self.scaled = scaled
        # Latents that all rows share have no score of a discrete draw to centre.
        self.baseline: float | None = None
        # a part of the rows is what is meant here
        warnings.filterwarnings("ignore", category=OtherLength)

    def __call__(self, model: ProgramModule, guide: Guide, x: object, observations: Mapping[str, Any]) -> Tensor:
        count = self.num_particles
        part = len(next(iter(observations.values())))
        proposal = guide.propose(count, None, gradient="analytic")
        with trying():
            run = model.execute(
                None,
                observations=observations,
                noise=proposal.noise,
                unconstrained=proposal.unconstrained,
                want_log_prob="observed",
                scored=proposal.scored,
                rows=count,
            )
        total: Tensor | float = proposal.log_ratio(run)
        for name, site in run.sites.items():
            if site.observed and site.log_prob is not None:
                total = total + (self.rows / part if name in self.scaled else 1.0) * site.log_prob
        assert isinstance(total, Tensor)
        return -total.mean()
