"""A mixture of Normals that begins where several ways up the posterior have found it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any

import numpy as np

from qvr_core.arrays.engine import Tensor, arrays
from qvr_core.inference.guides.full_rank_and_laplace import check_all_data
from qvr_core.inference.guides.mixture import APART, AutoMixtureGuide, of_components
from qvr_core.inference.guides.normal import FAMILY_SCALE
from qvr_core.inference.mcmc.mass import Array
from qvr_core.inference.mcmc.pathfinder import Counted, Density, Ended, Normal, best_normal, truncated
from qvr_core.runtime.programs.program import ProgramModule
from qvr_core.runtime.values.decompositions import trying
from qvr_core.runtime.values.errors import InputProblem

DRAWS, ROUNDS, LEAST = 200, 50, 1e-3
"""Draws of each path that its weight is found from, in so many rounds; no path weighs less, so that a fit may raise it.
"""
MOST = 1000
"""Densities that a path may ask for: up a funnel it would go on for ever."""


class Limited(Counted):
    """A density that ends the way after `MOST` evaluations, or where it is `ended` from outside."""

    def __init__(self, density: Density, ended: Callable[[], bool]) -> None:
        super().__init__(density)
        self.ended = ended

    def __call__(self, q: Array) -> tuple[float, Array]:
        if self.calls == MOST or self.ended():
            raise Ended
        return super().__call__(q)


class AutoPathfinderGuide(AutoMixtureGuide):
    """A mixture with a Normal from each of `paths` ways (Pathfinder, Zhang, Carpenter, Gelman and Vehtari 2022).

    `climb` walks them; then the guide is an approximation as it stands, which a fit may improve.
    """

    def __init__(
        self,
        model: ProgramModule,
        observed_names: Collection[str] = (),
        *,
        observations: Mapping[str, Any] | None = None,
        paths: int = 4,
        init_scale: float = FAMILY_SCALE,
    ) -> None:
        """As a mixture of as many components; raises `InputProblem` for a model that reads an input, or draws of itself
        what the guide does not move."""
        check_all_data(type(self), model)
        super().__init__(model, observed_names, observations=observations, components=paths, init_scale=init_scale)

    def climb(
        self,
        model: ProgramModule,
        observations: Mapping[str, Any] | None = None,
        *,
        seed: int = 0,
        ended: Callable[[], bool] = lambda: False,
    ) -> None:
        """Take the Normals of ways from starts within 2 of the usual one, weighted as the posterior has them.

        Where it is `ended` nothing is taken of ways that have found nothing yet.  Raises `InputProblem` where no way
        has come upon a finite density.
        """
        given = model.taken(observations)
        self.check_observed(model, given)
        usual = self.loc[0].detach().double().cpu().numpy()
        found: list[Normal] = []
        for path, generator in enumerate(map(np.random.default_rng, np.random.SeedSequence(seed).spawn(len(self.loc)))):
            away = generator.uniform(-APART, APART, self.width) if path else 0.0
            normal = best_normal(Limited(partial(self._density, model, given), ended), usual + away, generator)
            if normal is not None:
                found.append(normal)
        if not found and ended():
            return
        if not found:
            raise InputProblem(f"`{model.name}`: no path has found a place where its density is finite")
        # where a way has led nowhere another stands twice: its weight is shared
        self._take([found[path % len(found)] for path in range(len(self.loc))])
        weights = self._weights(model, given, seed)
        with arrays.no_grad():
            self.logits.copy_(weights.clamp(min=LEAST).log())

    def _density(self, model: ProgramModule, given: Mapping[str, Any], q: Array) -> tuple[float, Array]:
        """log p of a vector (width,) and its gradient."""
        with arrays.enable_grad(), trying():
            z = arrays.tensor(q, dtype=self.loc.dtype, device=self.loc.device).requires_grad_()
            log_p = self.log_joint(model, given, z.unsqueeze(0)).sum()
            (slope,) = arrays.autograd.grad(log_p, z)
        return float(log_p.detach()), slope.double().cpu().numpy()

    def _take(self, normals: list[Normal]) -> None:
        tril = np.stack([np.linalg.cholesky(normal.covariance) for normal in normals])
        with arrays.no_grad():
            for parameter, value in (
                (self.loc, np.stack([normal.mean for normal in normals])),
                (self.log_diagonal, np.log(np.diagonal(tril, axis1=1, axis2=2))),
                (self.lower, np.tril(tril, -1)),
                (self.logits, np.zeros(len(normals))),
            ):
                parameter.copy_(arrays.as_tensor(value.copy()))

    def _weights(self, model: ProgramModule, given: Mapping[str, Any], seed: int) -> Tensor:
        """The weights of a mixture of these Normals that is nearest to the posterior, (components,): draws of all of
        them, each weighted by importance, have the largest likelihood under it (by EM)."""
        generator = arrays.Generator(device=self.loc.device).manual_seed(seed)
        with arrays.no_grad(), trying():
            tril = self.lower.tril(-1) + self.log_diagonal.exp().diag_embed()
            shape = (len(self.loc), DRAWS, self.width)
            noise = arrays.randn(*shape, generator=generator, dtype=self.loc.dtype, device=self.loc.device)
            z = (self.loc.unsqueeze(1) + noise @ tril.mT).reshape(-1, self.width)
            each = of_components(z, self.loc, self.log_diagonal, tril).double()
            ratios = (self.log_joint(model, given, z).double() - each.logsumexp(0)).cpu().numpy()
            ratios[~np.isfinite(ratios)] = -np.inf
            importance = arrays.as_tensor(truncated(ratios), device=z.device).softmax(0)
            weights = arrays.full_like(each[:, 0], 1.0 / len(each))
            for _ in range(ROUNDS):
                shares = (each + weights.log().unsqueeze(-1)).softmax(0)
                weights = (shares * importance).sum(-1)
        return weights
