"""A guide of several Normals at once, for posteriors of several modes, or of a shape that no one Normal has."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from qvr_core.arrays.engine import Generator, Tensor, arrays, linalg, nn
from qvr_core.inference.coordinates import HALF_LOG_2PI
from qvr_core.inference.guides.base import Gradient, Inputs, Proposal
from qvr_core.inference.guides.full_rank_and_laplace import JointGuide
from qvr_core.inference.guides.normal import FAMILY_SCALE
from qvr_core.runtime.programs.program import ProgramModule
from qvr_core.runtime.values.errors import InputProblem

APART = 2.0
"""Means begin within so much of where one Normal's does, as the first states of Stan's chains do of 0."""


class AutoMixtureGuide(JointGuide):
    """q = Σₖ wₖ Normal(locₖ, Lₖ Lₖᵀ) over all latents together, shared across rows.

    A row's component is drawn, and given it the latents move with their parameters (they are reparameterised); log q is
    that of the whole mixture.  The gradient of the weights is the score's, of wₖ alone, so several particles help.
    """

    def __init__(
        self,
        model: ProgramModule,
        observed_names: Collection[str] = (),
        *,
        x: object = None,
        observations: Mapping[str, Any] | None = None,
        components: int = 4,
        init_scale: float = FAMILY_SCALE,
    ) -> None:
        """`components` Normals, whose means begin apart; raises `InputProblem` for fewer than two."""
        super().__init__(model, observed_names, x=x, observations=observations, init_scale=init_scale)
        if components < 2:
            raise InputProblem(f"a mixture has at least 2 components, not {components}; one is multivariate_normal")
        away = APART * (2.0 * arrays.rand(components, self.width, dtype=self.start.dtype) - 1.0)
        away[0] = 0.0
        self.loc = nn.Parameter(self.loc.detach() + away)
        self.log_diagonal = nn.Parameter(self.start.log().repeat(components, 1))
        self.lower = nn.Parameter(arrays.zeros(components, self.width, self.width, dtype=self.start.dtype))
        self.logits = nn.Parameter(arrays.zeros(components, dtype=self.start.dtype))

    @property
    def weights(self) -> Tensor:
        """How probable each component is, (components,)."""
        return self.logits.softmax(-1)

    def propose(
        self,
        rows: int,
        generator: Generator | None = None,
        *,
        gradient: Gradient = "sampled",
        inputs: Inputs | None = None,
    ) -> Proposal:
        """Latents from `draw_joint`, and the log weight of each row's component, whose gradient is the score's."""
        proposal = super().propose(rows, generator, gradient=gradient, inputs=inputs)
        proposal.scores.append(self.logits.log_softmax(-1)[self._chosen])
        return proposal

    def draw_joint(self, rows: int, generator: Generator | None) -> tuple[Tensor, Tensor]:
        """loc + L ε of a component for each row, and log q of the mixture, (rows,)."""
        loc, log_diagonal, logits = self.loc, self.log_diagonal, self.logits
        lower = self.lower.tril(-1)
        self._chosen = arrays.multinomial(self.weights.detach(), rows, replacement=True, generator=generator)
        noise = arrays.randn(rows, self.width, generator=generator, dtype=loc.dtype, device=loc.device)
        tril = lower + log_diagonal.exp().diag_embed()
        z = loc[self._chosen] + (tril[self._chosen] @ noise.unsqueeze(-1)).squeeze(-1)
        if self.gradient == "sticking":
            loc, log_diagonal, logits, tril = loc.detach(), log_diagonal.detach(), logits.detach(), tril.detach()
        each = of_components(z, loc, log_diagonal, tril)
        return z, arrays.logsumexp(logits.log_softmax(-1).unsqueeze(-1) + each, 0)


def of_components(z: Tensor, loc: Tensor, log_diagonal: Tensor, tril: Tensor) -> Tensor:
    """log Normal(z; locₖ, Lₖ Lₖᵀ) of z (rows, width) for each component, (components, rows)."""
    away = linalg.solve_triangular(tril, (z - loc.unsqueeze(1)).mT, upper=False)
    return -0.5 * away.square().sum(1) - log_diagonal.sum(-1, keepdim=True) - HALF_LOG_2PI * z.shape[-1]
