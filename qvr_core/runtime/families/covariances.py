"""Families of covariance matrices and of Cholesky factors of correlations, on the last two axes."""

from __future__ import annotations

import math
from dataclasses import replace

from qvr_core.arrays.engine import Generator, Tensor, arrays, broadcasting, linalg
from qvr_core.runtime.families.bounded import beta_draw
from qvr_core.runtime.families.densities import LOG_PI, inside
from qvr_core.runtime.families.family import RuntimeFamily
from qvr_core.runtime.families.links import HeadPlan, Params, positive, triangular
from qvr_core.runtime.families.parameters import DF, SCALE_TRIL
from qvr_core.runtime.families.random_draws import Shape, log_gamma_draw
from qvr_core.runtime.families.triangular import log_diagonal
from qvr_core.semantics.language.family import Family, Parameter, Support

COVARIANCE = Support("Covariance")


def _bartlett(shape: Shape, df: Tensor, generator: Generator | None) -> Tensor:
    """Lower triangular A with A Aᵀ ~ Wishart(df, I); `shape` ends in (d, d)."""
    size = shape[-1]
    below = arrays.randn(shape, generator=generator, dtype=df.dtype, device=df.device).tril(-1)
    halves = 0.5 * (df.unsqueeze(-1) - arrays.arange(size, dtype=df.dtype, device=df.device))
    log_chi2 = log_gamma_draw((*shape[:-2], size), halves, generator) + math.log(2.0)
    return below + arrays.diag_embed((0.5 * log_chi2).exp())


def _multigammaln(a: Tensor, size: int) -> Tensor:
    steps = 0.5 * arrays.arange(size, dtype=a.dtype, device=a.device)
    return size * (size - 1) / 4.0 * LOG_PI + arrays.lgamma(a.unsqueeze(-1) - steps).sum(-1)


def safe_cholesky(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """The Cholesky factor and where there is one."""
    tril, info = linalg.cholesky_ex(matrix)
    ok = info == 0
    identity = arrays.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)
    return arrays.where(ok[..., None, None], tril, identity), ok


def _wishart_link(head: HeadPlan, raw: Tensor) -> Params:
    pieces = head.pieces(raw)
    size = head.event_shape[0]
    return size - 1.0 + positive(pieces["df"].squeeze(-1)), triangular(pieces["scale_tril"], size, 1.0)


def _square(parameters: Params, event: Shape | None) -> Shape:
    return (parameters[1].shape[-1],) * 2


def wishart_draw(shape: Shape, generator: Generator | None, df: Tensor, scale_tril: Tensor) -> Tensor:
    factor = scale_tril @ _bartlett(shape, df, generator)
    return factor @ factor.mT


def wishart_log_prob(value: Tensor, df: Tensor, scale_tril: Tensor) -> Tensor:
    size = value.shape[-1]
    tril, ok = safe_cholesky(value)
    lead = broadcasting.broadcast_shapes(tril.shape[:-2], scale_tril.shape[:-2])
    z = linalg.solve_triangular(scale_tril.expand(*lead, size, size), tril.expand(*lead, size, size), upper=False)
    density = (
        (df - size - 1.0) * log_diagonal(tril)
        - 0.5 * z.square().sum((-2, -1))
        - 0.5 * df * size * math.log(2.0)
        - df * log_diagonal(scale_tril)
        - _multigammaln(0.5 * df, size)
    )
    return inside(ok, density)


WISHART = RuntimeFamily(
    Family(
        "Wishart",
        (replace(DF, raw="one"), SCALE_TRIL),
        COVARIANCE,
        "value",
        "a covariance matrix with mean df · Σ",
        event=2,
    ),
    wishart_log_prob,
    draw=wishart_draw,
    link=_wishart_link,
    noise_event=_square,
)


def inverse_wishart_draw(shape: Shape, generator: Generator | None, df: Tensor, scale_tril: Tensor) -> Tensor:
    """X = M Mᵀ with M = L A⁻ᵀ: X⁻¹ is Wishart(df, Ψ⁻¹), Ψ = L Lᵀ."""
    bartlett = _bartlett(shape, df, generator)
    lead = broadcasting.broadcast_shapes(bartlett.shape[:-2], scale_tril.shape[:-2])
    size = shape[-1]
    factor = linalg.solve_triangular(
        bartlett.expand(*lead, size, size), scale_tril.mT.expand(*lead, size, size), upper=False
    )
    return factor.mT @ factor


def inverse_wishart_log_prob(value: Tensor, df: Tensor, scale_tril: Tensor) -> Tensor:
    size = value.shape[-1]
    tril, ok = safe_cholesky(value)
    lead = broadcasting.broadcast_shapes(tril.shape[:-2], scale_tril.shape[:-2])
    z = linalg.solve_triangular(tril.expand(*lead, size, size), scale_tril.expand(*lead, size, size), upper=False)
    density = (
        df * log_diagonal(scale_tril)
        - 0.5 * df * size * math.log(2.0)
        - _multigammaln(0.5 * df, size)
        - (df + size + 1.0) * log_diagonal(tril)
        - 0.5 * z.square().sum((-2, -1))
    )
    return inside(ok, density)


INVERSE_WISHART = RuntimeFamily(
    Family(
        "InverseWishart",
        (replace(DF, raw="one"), SCALE_TRIL),
        COVARIANCE,
        "value",
        "inverse of a Wishart matrix",
        event=2,
    ),
    inverse_wishart_log_prob,
    draw=inverse_wishart_draw,
    link=_wishart_link,
    noise_event=_square,
)


def lkj_cholesky_draw(shape: Shape, generator: Generator | None, concentration: Tensor) -> Tensor:
    """The onion method (Lewandowski, Kurowicka & Joe 2009): row i has squared length Beta(i/2, η + (d − 1 − i)/2)
    before the diagonal, in a uniform direction."""
    size = shape[-1]
    lead = shape[:-2]
    if size == 1:
        return arrays.ones(shape, dtype=concentration.dtype, device=concentration.device)
    steps = arrays.arange(1, size, dtype=concentration.dtype, device=concentration.device)
    b = concentration.expand(lead).unsqueeze(-1) + 0.5 * (size - 1 - steps)
    squared = beta_draw((*lead, size - 1), generator, 0.5 * steps, b)
    normals = arrays.randn(
        (*lead, size - 1, size - 1), generator=generator, dtype=concentration.dtype, device=concentration.device
    ).tril()
    direction = normals / linalg.vector_norm(normals, dim=-1, keepdim=True)
    below = arrays.nn.functional.pad(squared.sqrt().unsqueeze(-1) * direction, (0, 1, 1, 0))
    diagonal = arrays.cat([arrays.ones_like(squared[..., :1]), (1.0 - squared).sqrt()], dim=-1)
    return below + arrays.diag_embed(diagonal)


def lkj_cholesky_log_prob(value: Tensor, concentration: Tensor) -> Tensor:
    """p(L) ∝ ∏ L_ii^(d − i + 2(η − 1)), i = 2 … d (Stan's reference manual)."""
    size = value.shape[-1]
    diagonal = value.diagonal(dim1=-2, dim2=-1)[..., 1:]
    ok = ((value.square().sum(-1) - 1.0).abs() < 1e-4).all(-1) & (diagonal > 0.0).all(-1)
    order = arrays.arange(2, size + 1, dtype=value.dtype, device=value.device)
    powers = 2.0 * (concentration.unsqueeze(-1) - 1.0) + size - order
    unnormalised = (powers * diagonal.clamp(min=arrays.finfo(value.dtype).tiny).log()).sum(-1)
    # the normaliser of page 1999 of the same paper, as in torch
    alpha = concentration + 0.5 * (size - 1)
    numerator = _multigammaln(alpha - 0.5, size - 1) if size > 1 else arrays.zeros_like(alpha)
    normaliser = 0.5 * (size - 1) * LOG_PI + numerator - arrays.lgamma(alpha) * (size - 1)
    return inside(ok, unnormalised - normaliser)


def _lkj_cholesky_link(head: HeadPlan, raw: Tensor) -> Params:
    return (positive(head.pieces(raw)["concentration"].squeeze(-1)),)


def lkj_correlation_draw(shape: Shape, generator: Generator | None, concentration: Tensor) -> Tensor:
    factor = lkj_cholesky_draw(shape, generator, concentration)
    return factor @ factor.mT


def lkj_correlation_log_prob(value: Tensor, concentration: Tensor) -> Tensor:
    """p(R) ∝ det(R)^(η − 1): that of the Cholesky factor over |∂R/∂L| = ∏ L_ii^(d − i)."""
    size = value.shape[-1]
    factor, ok = safe_cholesky(value)
    ok = ok & ((value.diagonal(dim1=-2, dim2=-1) - 1.0).abs() < 1e-4).all(-1)
    factor = factor / linalg.vector_norm(factor, dim=-1, keepdim=True)
    powers = arrays.arange(size - 1, -1, -1, dtype=value.dtype, device=value.device)
    log_jacobian = (powers * factor.diagonal(dim1=-2, dim2=-1).log()).sum(-1)
    return inside(ok, lkj_cholesky_log_prob(factor, concentration) - log_jacobian)


_LKJ_PARAMETERS = (
    Parameter("concentration", constraint="positive", aliases=("eta",), default=1.0, raw="one"),
    Parameter("dim", constraint="natural", aliases=("d",), default=math.nan, sizes=True, raw="none"),
)

LKJ_CORRELATION = RuntimeFamily(
    Family(
        "LKJCorrelation",
        _LKJ_PARAMETERS,
        Support("Correlation"),
        "value",
        "a random correlation matrix: uniform at concentration 1, weaker correlations above; its size is `dim`, or "
        "that of the set it is drawn over",
        event=2,
    ),
    lkj_correlation_log_prob,
    draw=lkj_correlation_draw,
    link=_lkj_cholesky_link,
    noise_event=lambda parameters, event: event or None,
)

LKJ_CHOLESKY = RuntimeFamily(
    Family(
        "LKJCholesky",
        _LKJ_PARAMETERS,
        Support("CholeskyFactor"),
        "value",
        "a random correlation matrix L · Lᵀ as its Cholesky factor L: uniform at concentration 1, weaker correlations "
        "above; its size is `dim`, or that of the set it is drawn over",
        event=2,
    ),
    lkj_cholesky_log_prob,
    draw=lkj_cholesky_draw,
    link=_lkj_cholesky_link,
    noise_event=lambda parameters, event: event or None,
)
