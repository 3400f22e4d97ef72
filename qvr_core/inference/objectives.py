"""Objectives of variational inference: the ELBO, and what lies between it and the evidence, per row."""

from __future__ import annotations

import math
import weakref
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from qvr_core.arrays.engine import Generator, Tensor, arrays
from qvr_core.inference.guides.base import CoordinateGuide, Gradient, Guide, Inputs
from qvr_core.inference.row_terms import check_parts
from qvr_core.runtime.programs.execution import Execution
from qvr_core.runtime.programs.handlers import Handler, Subsample, by_rows, condition, densities, seed
from qvr_core.runtime.programs.program import ProgramModule
from qvr_core.runtime.values.arrow import Value, repeat_rows
from qvr_core.runtime.values.decompositions import trying
from qvr_core.runtime.values.errors import InputProblem
from qvr_core.runtime.values.layout import parts

Reduction = Literal["mean", "sum"]


class _Bound:
    """What all objectives share: particles as rows, and the score function's surrogate; every execution is asked for
    what `handlers` say, too."""

    def __init__(
        self, num_particles: int, reduction: Reduction, gradient: Gradient, handlers: Sequence[Handler]
    ) -> None:
        if num_particles < 1:
            raise InputProblem(f"num_particles must be at least 1, not {num_particles}")
        if reduction not in ("mean", "sum"):
            raise InputProblem(f"reduction must be 'mean' or 'sum', not {reduction!r}")
        self.num_particles = num_particles
        self.reduction: Reduction = reduction
        self.gradient: Gradient = gradient
        self.handlers = tuple(handlers)
        self._parts_of = weakref.WeakSet[ProgramModule]()
        # The running mean that centres the score of one particle: state, which a checkpoint must keep.
        self.baseline: float | None = None

    def log_weights(
        self,
        model: ProgramModule,
        guide: Guide,
        x: object = None,
        observations: Mapping[str, Any] | None = None,
        generator: Generator | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """log p(values | u) − log q, (particles, B), and the log density of draws whose gradient is the score's."""
        log_weights, score = self._log_weights(model, guide, x, observations, generator)
        shape = (self.num_particles, -1)
        return log_weights.reshape(shape), None if score is None else score.reshape(shape)

    def _log_weights(
        self,
        model: ProgramModule,
        guide: Guide,
        x: object,
        observations: Mapping[str, Any] | None,
        generator: Generator | None,
    ) -> tuple[Tensor, Tensor | None]:
        """The same, particle by particle: (particles · B,)."""
        value, given = model.input(x), model.taken(observations)
        guide.check_observed(model, given)
        self._check_parts(model, given)
        rows = 1 if value is None else parts(value)[0].shape[0]
        if value is not None and self.num_particles > 1:
            given = model.repeat_data(given, rows, self.num_particles)
            value = repeat_rows(value, self.num_particles)
        count = rows * self.num_particles
        _, log_weights, scores = weighed(model, guide, value, given, count, self.gradient, generator, self.handlers)
        return log_weights, sum(scores[1:], scores[0]) if scores else None

    def _check_parts(self, model: ProgramModule, observations: Mapping[str, Any]) -> None:
        """Whether a part of the rows can stand for all, asked once of a model."""
        asked = [one for one in self.handlers if isinstance(one, Subsample) and not one.checked]
        if not asked or model in self._parts_of:
            return
        for one in asked:
            check_parts(one, model, observations)
        self._parts_of.add(model)

    def _reduce(self, loss: Tensor, model: ProgramModule) -> Tensor:
        """Per row, or over rows; the priors of tensors are one term of the whole."""
        prior = model.log_prior()
        if prior is not None:
            loss = loss - prior / loss.numel()
        return loss.mean() if self.reduction == "mean" else loss.sum()

    def _centred(self, loss: Tensor) -> Tensor:
        """The loss less a baseline that does not depend on the particle itself."""
        loss = loss.detach()
        if self.num_particles > 1:
            others = (loss.sum(0, keepdim=True) - loss) / (self.num_particles - 1)
            return loss - others
        mean = float(loss.mean())
        baseline = mean if self.baseline is None else self.baseline
        self.baseline = mean if self.baseline is None else 0.9 * self.baseline + 0.1 * mean
        return loss - baseline


def weigh(
    model: ProgramModule,
    guide: Guide,
    value: Value | None,
    observations: Mapping[str, Any],
    rows: int,
    gradient: Gradient = "sampled",
    generator: Generator | None = None,
    handlers: Sequence[Handler] = (),
) -> tuple[Execution, Tensor]:
    """One execution with latents from the guide, and log p(values | u) − log q per row, (rows,)."""
    return weighed(model, guide, value, observations, rows, gradient, generator, handlers)[:2]


def weighed(
    model: ProgramModule,
    guide: Guide,
    value: Value | None,
    observations: Mapping[str, Any],
    rows: int,
    gradient: Gradient = "sampled",
    generator: Generator | None = None,
    handlers: Sequence[Handler] = (),
) -> tuple[Execution, Tensor, list[Tensor]]:
    """As `weigh`, and the log densities (rows,) of all draws whose gradient is the score's, the guide's own too."""
    inputs = Inputs(model, value, observations)
    with trying():
        proposal = guide.propose(rows, generator, gradient=gradient, inputs=inputs)
        asked = (condition(observations), densities("observed"), proposal, by_rows(rows), seed(generator), *handlers)
        run = model.run(value, *asked)
    total = proposal.log_ratio(run)
    for site in run.sites.values():
        if site.observed and site.log_prob is not None and site.kind != "prior":
            total = total + site.log_prob if isinstance(total, Tensor) or total else site.log_prob
    if not isinstance(total, Tensor):
        raise InputProblem(f"program `{model.name}` observes nothing and has no latent that the guide moves")
    scores = [site.log_discrete for site in run.sites.values() if site.log_discrete is not None]
    return run, total if total.shape == (rows,) else total.expand(rows), [*proposal.scores, *scores]


class ELBO(_Bound):
    """The evidence lower bound; calling it gives −ELBO per row ('mean') or summed over rows ('sum').

    Innovations are drawn from the model and reparameterised, so the bound holds.  `stl` drops the score of log q from
    the gradient (sticking the landing), which has less variance near the optimum.  With `subsample` among the handlers
    it is unbiased for the bound of all rows.
    """

    def __init__(
        self,
        num_particles: int = 1,
        reduction: Reduction = "mean",
        *,
        stl: bool = False,
        handlers: Sequence[Handler] = (),
    ) -> None:
        super().__init__(num_particles, reduction, "sticking" if stl else "analytic", handlers)

    def __call__(
        self,
        model: ProgramModule,
        guide: Guide,
        x: object = None,
        observations: Mapping[str, Any] | None = None,
        generator: Generator | None = None,
    ) -> Tensor:
        """−ELBO, a scalar with a gradient."""
        # of one particle there is nothing to lay out
        weights = self._log_weights if self.num_particles == 1 else self.log_weights
        log_weights, score = weights(model, guide, x, observations, generator)
        loss = -log_weights
        if score is not None:
            surrogate = score * self._centred(loss)
            loss = loss + surrogate - surrogate.detach()
        return self._reduce(loss if self.num_particles == 1 else loss.mean(0), model)


class RenyiBound(_Bound):
    """The Rényi bound of order `alpha` (Li and Turner 2016) of K particles, per row: log mean w^(1 − α) / (1 − α).

    Order 0 is the importance-weighted bound; towards 1 it falls to the ELBO.  A small order follows the evidence and
    its gradient is noisy where K is large (Rainforth et al. 2018), a large one is calm and slack (the VR-IWAE bound of
    Daudel et al. 2023, whose reparameterised gradient this is).  `stl` drops the score of log q; unlike the ELBO's, the
    gradient has another mean then, which is no matter only where the guide is nearly right.  `doubly` mends that mean:
    the gradient through each particle is weighted by α + (1 − α) of its share (doubly reparameterised: Tucker et al.
    2019, and Daudel et al. for any order), and its noise no longer grows against it with K.
    """

    def __init__(
        self,
        num_particles: int = 8,
        reduction: Reduction = "mean",
        *,
        alpha: float = 0.5,
        stl: bool = False,
        doubly: bool = False,
    ) -> None:
        super().__init__(num_particles, reduction, "sticking" if stl or doubly else "sampled", ())
        self.doubly = doubly
        if not 0.0 <= alpha < 1.0:
            hint = "1 is the ELBO" if alpha == 1.0 else "beyond these it bounds the evidence from above, or not at all"
            raise InputProblem(f"alpha must be at least 0 and below 1, not {alpha:g}: {hint}")
        self.alpha = alpha

    def __call__(
        self,
        model: ProgramModule,
        guide: Guide,
        x: object = None,
        observations: Mapping[str, Any] | None = None,
        generator: Generator | None = None,
    ) -> Tensor:
        """−bound per row, a scalar with a gradient."""
        power = 1.0 - self.alpha
        if self.doubly:
            log_weights, score = self._through(model, guide, x, observations, generator)
        else:
            log_weights, score = self.log_weights(model, guide, x, observations, generator)
        loss = (math.log(self.num_particles) - arrays.logsumexp(power * log_weights, 0)) / power
        if score is not None:
            # every particle's draw changes the one bound of its row
            surrogate = score.sum(0) * (loss.detach() - loss.detach().mean())
            loss = loss + surrogate - surrogate.detach()
        return self._reduce(loss, model)

    def _through(
        self,
        model: ProgramModule,
        guide: Guide,
        x: object,
        observations: Mapping[str, Any] | None,
        generator: Generator | None,
    ) -> tuple[Tensor, Tensor | None]:
        """As `log_weights`, where the gradient through each draw is weighted by what its particle's share will be."""
        if not isinstance(guide, CoordinateGuide):
            raise InputProblem(
                f"the doubly reparameterised gradient wants an automatic guide, not {type(guide).__name__}"
            )
        factor: Tensor | None = None

        def weighted(grad: Tensor) -> Tensor:
            assert factor is not None
            return grad * factor.reshape(-1, *[1] * (grad.dim() - 1))

        guide.through = weighted
        try:
            log_weights, score = self.log_weights(model, guide, x, observations, generator)
        finally:
            guide.through = None
        if score is not None:
            raise InputProblem(
                "the doubly reparameterised gradient goes through the draws, and some of these are drawn by a score: "
                "of a discrete latent, or of which component of a mixture; take the plain gradient"
            )
        shares = ((1.0 - self.alpha) * log_weights.detach()).softmax(0)
        factor = (self.alpha + (1.0 - self.alpha) * shares).flatten()
        return log_weights, None


class IWAEBound(RenyiBound):
    """The importance-weighted bound of Burda et al. (2016): log-mean-exp over particles, per row."""

    def __init__(
        self, num_particles: int = 8, reduction: Reduction = "mean", *, stl: bool = False, doubly: bool = False
    ) -> None:
        super().__init__(num_particles, reduction, alpha=0.0, stl=stl, doubly=doubly)
