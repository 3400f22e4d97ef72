"""A guide whose draws walk from a Normal towards the posterior."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from qvr_core.arrays.engine import Generator, Tensor, arrays, nn
from qvr_core.inference.coordinates import standard_normal
from qvr_core.inference.guides.full_rank_and_laplace import JointGuide, check_all_data
from qvr_core.inference.guides.normal import FAMILY_SCALE
from qvr_core.runtime.programs.program import ProgramModule
from qvr_core.runtime.values.errors import InputProblem

STEP, KEPT = 0.1, 0.9
"""What the way begins with: a leapfrog step, in deviations of the Normal, and the share of momentum that is kept."""


class AutoDAISGuide(JointGuide):
    """Differentiable annealed importance sampling (Geffner and Domke 2021; Zhang et al. 2021) of all latents together.

    A draw of a Normal with full covariance makes `steps` leapfrog steps through the densities between that Normal and
    the posterior; its momentum is partly drawn anew between them, and no step is rejected.  log q is that of the whole
    way, so that log p − log q is a bound's as for any guide.  All that the way is made of is learned: the Normal, the
    sizes of the steps, the momentum kept and the temperatures.  A step costs one more gradient of the model.

    It is moved by the data, so it is made for some: `observations` are those of all fits and predictions.
    """

    def __init__(
        self,
        model: ProgramModule,
        observed_names: Collection[str] = (),
        *,
        observations: Mapping[str, Any] | None = None,
        steps: int = 8,
        init_scale: float = FAMILY_SCALE,
    ) -> None:
        """Raises `InputProblem` for a model that reads an input, or draws of itself what the guide does not move."""
        check_all_data(type(self), model)
        given = {} if observations is None else model.taken(observations)
        super().__init__(model, observed_names, observations=given, init_scale=init_scale)
        if steps < 1:
            raise InputProblem(f"an annealed guide makes at least 1 step, not {steps}")
        self.check_observed(model, given)
        self._model = (model,)  # not a part of the guide
        self._given = given
        self.steps = steps
        like = self.loc.detach()
        self.log_diagonal = nn.Parameter(self.start.log())
        self.lower = nn.Parameter(arrays.zeros(self.width, self.width, dtype=like.dtype))
        self.log_step = nn.Parameter(like.new_full((steps,), STEP).log())
        self.kept = nn.Parameter(like.new_tensor(KEPT).logit())
        self.warming = nn.Parameter(like.new_zeros(steps))

    @property
    def scale_tril(self) -> Tensor:
        """Cholesky factor of the covariance that the way begins with, (width, width)."""
        return self.lower.tril(-1) + self.log_diagonal.exp().diag_embed()

    @property
    def temperatures(self) -> Tensor:
        """The share that the posterior has in the density of each step, (steps,); the last is 1."""
        return self.warming.softmax(0).cumsum(0)

    def draw_joint(self, rows: int, generator: Generator | None) -> tuple[Tensor, Tensor]:
        """The end of each row's way, and log q of it and its momenta less what they would have had backwards.

        Raises `InputProblem` for the gradient without the score, which would leave the way out.
        """
        if self.gradient == "sticking" or self.through is not None:
            raise InputProblem(
                "an annealed guide has the plain gradient alone: the others take log q of a draw, not of a way"
            )
        learning = arrays.is_grad_enabled()
        with arrays.enable_grad():
            z, log_q = self._walked(rows, generator, learning)
        return (z, log_q) if learning else (z.detach(), log_q.detach())

    def _walked(self, rows: int, generator: Generator | None, learning: bool) -> tuple[Tensor, Tensor]:
        loc, tril, sizes, kept = self.loc, self.scale_tril, self.log_step.exp(), self.kept.sigmoid()

        def noise() -> Tensor:
            return arrays.randn(rows, self.width, generator=generator, dtype=loc.dtype, device=loc.device)

        # in deviations of the Normal, where one size of a step is right for all
        u, momentum = noise(), noise()
        log_q = standard_normal(u) - self.log_diagonal.sum()
        for size, share in zip(sizes, self.temperatures, strict=True):
            u = u + 0.5 * size * momentum
            slope = share * self._slope(loc + u @ tril.mT, learning) @ tril - (1.0 - share) * u
            pushed = momentum + size * slope
            u = u + 0.5 * size * pushed
            log_q = log_q + standard_normal(momentum) - standard_normal(pushed)
            momentum = kept * pushed + (1.0 - kept.square()).sqrt() * noise()
        return loc + u @ tril.mT, log_q

    def _slope(self, z: Tensor, learning: bool) -> Tensor:
        """The gradient of log p of latents (rows, width), itself with a gradient where the way is `learning`."""
        log_p = self.log_joint(self._model[0], self._given, z).sum()
        (slope,) = arrays.autograd.grad(log_p, z, create_graph=learning)
        return slope
