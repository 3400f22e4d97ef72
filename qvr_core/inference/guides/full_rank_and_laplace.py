"""Guides with one joint density over all latents: full covariance, low rank, Laplace."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from typing import Any

from qvr_core.arrays.engine import Generator, Tensor, arrays, linalg, nn
from qvr_core.container_types import is_tuple
from qvr_core.inference.coordinates import HALF_LOG_2PI, Coordinate, standard_normal
from qvr_core.inference.guides.base import CoordinateGuide, Gradient, Inputs, Proposal, default_tensor
from qvr_core.inference.guides.delta import AutoDeltaGuide
from qvr_core.inference.guides.normal import FAMILY_SCALE
from qvr_core.runtime.programs.handlers import by_rows, condition, densities, scale
from qvr_core.runtime.programs.program import ProgramModule
from qvr_core.runtime.values.errors import InputProblem


class JointGuide(CoordinateGuide):
    """Draws all latents of a row as one vector of width `self.width`."""

    apart = False

    def __init__(
        self,
        model: ProgramModule,
        observed_names: Collection[str] = (),
        *,
        x: object = None,
        observations: Mapping[str, Any] | None = None,
        init_scale: float = FAMILY_SCALE,
    ) -> None:
        super().__init__(model, observed_names, x=x, observations=observations)
        self.slices: dict[str, slice] = {}
        self.width = 0
        scales: list[float] = []
        for block in self.blocks:
            if block.shape is None:
                raise InputProblem(
                    f"`{block.site}`: {type(self).__name__} must know the shape of every latent, and only data tells "
                    "that of this one: pass x or observations",
                    site=block.site,
                )
            count = math.prod(block.shape)
            self.slices[block.key] = slice(self.width, self.width + count)
            self.width += count
            scales.extend([1.0 if block.standard else init_scale] * count)
        self.start = arrays.tensor(scales, dtype=default_tensor(model).dtype)
        starts = [self.start_of(block, model).reshape(-1) for block in self.blocks]
        self.loc = nn.Parameter(arrays.cat(starts) if starts else arrays.zeros_like(self.start))
        self._drawn: Tensor | None = None

    def draw_joint(self, rows: int, generator: Generator | None) -> tuple[Tensor, Tensor]:
        """Latents (rows, width) and log q, (rows,)."""
        raise NotImplementedError

    def propose(
        self,
        rows: int,
        generator: Generator | None = None,
        *,
        gradient: Gradient = "sampled",
        inputs: Inputs | None = None,
    ) -> Proposal:
        """Latents from `draw_joint`, with log p − log q (rows,)."""
        self.gradient: Gradient = gradient
        drawn, log_q = self.draw_joint(rows, generator)
        self.hook(drawn)
        proposal = self.propose_at(drawn)
        proposal.terms.append(-log_q)
        return proposal

    def propose_at(self, drawn: Tensor) -> Proposal:
        """The latents of given vectors (rows, width), with their log p alone."""
        self._drawn = drawn
        return super().propose(drawn.shape[0], None, gradient=self.gradient)

    def drawn_block(
        self, block: Coordinate, shape: tuple[int, ...], generator: Generator | None
    ) -> tuple[Tensor, Tensor]:
        """As `draw_block`: the gradient goes through at the whole vector, of which log q is."""
        return self.draw_block(block, shape, generator)

    def draw_block(
        self, block: Coordinate, shape: tuple[int, ...], generator: Generator | None
    ) -> tuple[Tensor, Tensor]:
        """The block of what was drawn last, `shape`, and its log p (B,).  Raises `InputProblem` for another shape than
        that of the data that the guide was made with."""
        assert self._drawn is not None
        flat = self._drawn[:, self.slices[block.key]]
        if math.prod(shape[1:]) != flat.shape[1]:
            raise InputProblem(
                f"`{block.site}` does not have the shape that the guide was made for: pass x when the guide is made",
                site=block.site,
            )
        z = flat.reshape(shape)
        return z, standard_normal(z) if block.standard else z.new_zeros(shape[0])

    def log_joint(self, model: ProgramModule, observations: Mapping[str, Any], drawn: Tensor) -> Tensor:
        """log p of vectors (rows, width) and of the observations, (rows,), of a model that reads no input."""
        proposal, rows = self.propose_at(drawn), drawn.shape[0]
        run = model.run(None, condition(observations), densities("observed"), proposal, by_rows(rows))
        seen = [site.log_prob for site in run.sites.values() if site.observed and site.log_prob is not None]
        return sum(seen, drawn.new_zeros(rows) + proposal.log_ratio(run))

    def vector(self, values: Mapping[str, Tensor]) -> Tensor:
        """Blocks by key as one vector (width,)."""
        return arrays.cat([values[block.key].reshape(-1) for block in self.blocks])


class AutoMultivariateNormalGuide(JointGuide):
    """A Normal with full covariance over all latents, shared across rows."""

    def __init__(
        self,
        model: ProgramModule,
        observed_names: Collection[str] = (),
        *,
        x: object = None,
        observations: Mapping[str, Any] | None = None,
        init_scale: float = FAMILY_SCALE,
    ) -> None:
        super().__init__(model, observed_names, x=x, observations=observations, init_scale=init_scale)
        self.log_diagonal = nn.Parameter(self.start.log())
        self.lower = nn.Parameter(arrays.zeros(self.width, self.width, dtype=self.start.dtype))

    @property
    def scale_tril(self) -> Tensor:
        """Cholesky factor of the covariance, (width, width)."""
        return self.lower.tril(-1) + self.log_diagonal.exp().diag_embed()

    def draw_joint(self, rows: int, generator: Generator | None) -> tuple[Tensor, Tensor]:
        """loc + L ε, and log q from ε, which is (z − loc) solved by L."""
        tril = self.scale_tril
        noise = arrays.randn(rows, self.width, generator=generator, dtype=tril.dtype, device=tril.device)
        z = self.loc + noise @ tril.mT
        log_diagonal = self.log_diagonal
        if self.gradient == "sticking":
            tril, log_diagonal = tril.detach(), log_diagonal.detach()
            noise = linalg.solve_triangular(tril, (z - self.loc.detach()).mT, upper=False).mT
        return z, -0.5 * noise.square().sum(-1) - log_diagonal.sum() - HALF_LOG_2PI * self.width


class AutoLowRankMultivariateNormalGuide(JointGuide):
    """A Normal with covariance factor · factorᵀ + diag(scale²); `rank` is about the root of the width by default."""

    def __init__(
        self,
        model: ProgramModule,
        observed_names: Collection[str] = (),
        *,
        x: object = None,
        observations: Mapping[str, Any] | None = None,
        rank: int | None = None,
        init_scale: float = FAMILY_SCALE,
    ) -> None:
        super().__init__(model, observed_names, x=x, observations=observations, init_scale=init_scale)
        self.rank = rank if rank is not None else max(1, round(math.sqrt(self.width)))
        self.log_scale = nn.Parameter((self.start * math.sqrt(0.5)).log())
        spread = arrays.randn(self.width, self.rank, dtype=self.start.dtype) * math.sqrt(0.5 / self.rank)
        self.factor = nn.Parameter(self.start.unsqueeze(-1) * spread)

    def draw_joint(self, rows: int, generator: Generator | None) -> tuple[Tensor, Tensor]:
        """loc + scale · ε + factor · η, and log q by Woodbury's identity and the lemma of determinants."""
        scale, factor, loc = self.log_scale.exp(), self.factor, self.loc
        own = arrays.randn(rows, self.width, generator=generator, dtype=loc.dtype, device=loc.device)
        shared = arrays.randn(rows, self.rank, generator=generator, dtype=loc.dtype, device=loc.device)
        z = loc + scale * own + shared @ factor.mT
        if self.gradient == "sticking":
            scale, factor, loc = scale.detach(), factor.detach(), loc.detach()
        # matrix inversion and determinant lemmas
        weighted = factor / scale.square().unsqueeze(-1)
        tril = linalg.cholesky(arrays.eye(self.rank, dtype=loc.dtype, device=loc.device) + weighted.mT @ factor)
        difference = z - loc
        projected = linalg.solve_triangular(tril, (difference @ weighted).mT, upper=False)
        mahalanobis = (difference / scale).square().sum(-1) - projected.square().sum(0)
        log_determinant = 2.0 * scale.log().sum() + 2.0 * tril.diagonal().log().sum()
        return z, -0.5 * (mahalanobis + log_determinant) - HALF_LOG_2PI * self.width


class AutoLaplaceGuide(AutoDeltaGuide):
    """First the mode, as AutoDeltaGuide; then `laplace_approximation` makes the Normal of its curvature."""

    apart = False  # as the density whose curvature is taken
    noted = ("off_mode",)
    off_mode: float | None = None
    """After `laplace_approximation`: how far the point is from the mode, in standard deviations of that Normal."""

    def laplace_approximation(
        self,
        model: ProgramModule,
        x: object = None,
        observations: Mapping[str, Any] | None = None,
        *,
        weight: float = 1.0,
        weighted: Collection[str] = (),
    ) -> AutoMultivariateNormalGuide:
        """A full-covariance Normal at the mode: covariance the inverse Hessian of −log joint, summed over rows.

        The observed terms in `weighted` stand for `weight` times as many.  Innovations, where the program has some, are
        held at one draw.  Raises `InputProblem` where the curvature is not positive, that is, where the mode has not
        been reached.
        """
        normal = AutoMultivariateNormalGuide(model, self.observed, x=x, observations=observations)
        normal.to(next(iter(self.loc.values())).device)
        value = model.input(x)
        held = model.innovations(x) if value is not None else {}

        count, heavier = _rows(value), scale(dict.fromkeys(weighted, weight))

        def energy(flat: Tensor) -> Tensor:
            proposal = normal.propose_at(flat.expand(count, -1))
            for site, noise in held.items():
                proposal.noise.setdefault(site, noise)
            run = model.run(value, condition(observations), densities("observed"), proposal, by_rows(count), heavier)
            seen = [site.log_prob for site in run.sites.values() if site.observed and site.log_prob is not None]
            return -sum(seen, flat.new_zeros(count) + proposal.log_ratio(run)).sum()

        points = {block.key: self.loc[block.key].detach().expand(normal.shape_of(block)) for block in normal.blocks}
        mode = normal.vector(points)
        hessian = _derivative("hessian", energy, mode)
        # in float32 the inverse of a precise posterior's curvature can look indefinite
        precision, failed = linalg.cholesky_ex(hessian.double())
        if bool(failed) or not bool(arrays.isfinite(precision).all()):
            raise InputProblem("the log joint is not curved downwards here: fit the mode with more SVI steps first")
        inverse = linalg.solve_triangular(precision, arrays.eye(len(mode), dtype=precision.dtype), upper=False)
        tril = linalg.cholesky(inverse.mT @ inverse)
        gradient = _derivative("jacobian", energy, mode)
        self.off_mode = float(linalg.vector_norm(gradient.double() @ tril))
        with arrays.no_grad():
            normal.loc.copy_(mode)
            normal.log_diagonal.copy_(tril.diagonal().log())
            normal.lower.copy_(tril.tril(-1))
        return normal


Energy = Callable[[Tensor], Tensor]


def check_all_data(kind: type[JointGuide], model: ProgramModule) -> None:
    """Whether the latents belong to all the data, and the density is one of latents alone; raises `InputProblem`."""
    if model.program.uses_input:
        message = f"`{model.name}` draws its latents anew in each row of its input"
        raise InputProblem(f"{message}, and {kind.__name__} is for those of all data")
    for site in (name for name, step in model.sites.items() if step.info.innovations):
        message = f"`{site}` draws inside of its arrow, and {kind.__name__} asks for the density of latents alone"
        raise InputProblem(message, site=site)


def _derivative(name: str, energy: Energy, mode: Tensor) -> Tensor:
    """The Hessian or Jacobian of a function of one tensor, of which torch makes one tensor."""
    found: object = getattr(arrays.autograd.functional, name)(energy, mode)
    assert isinstance(found, Tensor)
    return found


def _rows(value: Any) -> int:
    if value is None:
        return 1
    return value[0].shape[0] if is_tuple(value) else value.shape[0]
