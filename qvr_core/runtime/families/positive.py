"""Families of positive numbers.  Gamma draws carry torch's implicit gradients."""

from __future__ import annotations

from qvr_core.arrays.engine import Generator, Tensor, arrays
from qvr_core.runtime.families.bijectors import BY_RATE
from qvr_core.runtime.families.cumulative.incomplete import gamma_tails
from qvr_core.runtime.families.cumulative.tails import Tails, upper_first
from qvr_core.runtime.families.densities import inside
from qvr_core.runtime.families.family import RuntimeFamily
from qvr_core.runtime.families.parameters import DF, POSITIVE, RATE, SCALE, positive_parameter
from qvr_core.runtime.families.random_draws import Shape, log_gamma_draw, standard_gamma
from qvr_core.semantics.language.family import Family


def exponential_transform(noise: Tensor, rate: Tensor) -> Tensor:
    return -arrays.log1p(-noise) / rate


def exponential_log_prob(value: Tensor, rate: Tensor) -> Tensor:
    """log λ − λ x from 0 on."""
    return inside(value >= 0.0, rate.log() - rate * value)


EXPONENTIAL = RuntimeFamily(
    Family("Exponential", (RATE,), POSITIVE, "uniform", "waiting time at a constant rate"),
    exponential_log_prob,
    exponential_transform,
    tails=lambda value, rate: upper_first(-rate * value),
    quantile=lambda lower, upper, rate: -upper / rate,
    standardised=BY_RATE,
    mean=lambda rate: 1.0 / rate,
)


def _gamma(shape: Shape, concentration: Tensor, generator: Generator | None) -> Tensor:
    draw = standard_gamma(concentration.expand(shape), generator)
    return draw.clamp(min=arrays.finfo(draw.dtype).tiny)


def gamma_draw(shape: Shape, generator: Generator | None, concentration: Tensor, rate: Tensor) -> Tensor:
    return _gamma(shape, concentration, generator) / rate


def gamma_log_prob(value: Tensor, concentration: Tensor, rate: Tensor) -> Tensor:
    """a log b + (a − 1) log x − b x − log Γ(a)."""
    ok = value > 0.0
    y = arrays.where(ok, value, 1.0)
    density = concentration * rate.log() + (concentration - 1.0) * y.log() - rate * y - arrays.lgamma(concentration)
    return inside(ok, density)


GAMMA = RuntimeFamily(
    Family(
        "Gamma",
        (positive_parameter("concentration", "alpha", "shape"), positive_parameter("rate", "beta")),
        POSITIVE,
        "value",
        "a positive number with mean concentration / rate and variance concentration / rate²",
        open=True,
    ),
    gamma_log_prob,
    draw=gamma_draw,
    tails=lambda value, concentration, rate: gamma_tails(concentration, rate * value),
    mean=lambda concentration, rate: concentration / rate,
)


def inverse_gamma_draw(shape: Shape, generator: Generator | None, concentration: Tensor, rate: Tensor) -> Tensor:
    return rate * (-log_gamma_draw(shape, concentration, generator)).clamp(max=80.0).exp()


def inverse_gamma_log_prob(value: Tensor, concentration: Tensor, rate: Tensor) -> Tensor:
    """a log b − (a + 1) log x − b / x − log Γ(a)."""
    ok = value > 0.0
    y = arrays.where(ok, value, 1.0)
    density = concentration * rate.log() - (concentration + 1.0) * y.log() - rate / y - arrays.lgamma(concentration)
    return inside(ok, density)


def inverse_gamma_tails(value: Tensor, concentration: Tensor, rate: Tensor) -> Tails:
    lower, upper = gamma_tails(concentration, rate / value)
    return upper, lower


INVERSE_GAMMA = RuntimeFamily(
    Family(
        "InverseGamma",
        (positive_parameter("concentration", "alpha", "shape"), positive_parameter("rate", "beta", "scale")),
        POSITIVE,
        "value",
        "1 over a Gamma",
        open=True,
    ),
    inverse_gamma_log_prob,
    draw=inverse_gamma_draw,
    tails=inverse_gamma_tails,
)


def chi2_draw(shape: Shape, generator: Generator | None, df: Tensor) -> Tensor:
    return 2.0 * _gamma(shape, 0.5 * df, generator)


def chi2_log_prob(value: Tensor, df: Tensor) -> Tensor:
    return gamma_log_prob(value, 0.5 * df, arrays.full_like(df, 0.5))


CHI2 = RuntimeFamily(
    Family("Chi2", (DF,), POSITIVE, "value", "sum of df squared standard Normals", open=True),
    chi2_log_prob,
    draw=chi2_draw,
    tails=lambda value, df: gamma_tails(0.5 * df, 0.5 * value),
)


def weibull_transform(noise: Tensor, scale: Tensor, concentration: Tensor) -> Tensor:
    return scale * ((-arrays.log1p(-noise)).log() / concentration).exp()


def weibull_log_prob(value: Tensor, scale: Tensor, concentration: Tensor) -> Tensor:
    """log k / s + (k − 1) log(x / s) − (x / s)ᵏ."""
    ok = value > 0.0
    log_z = arrays.where(ok, value, 1.0).log() - scale.log()
    density = concentration.log() - scale.log() + (concentration - 1.0) * log_z - (concentration * log_z).exp()
    return inside(ok, density)


WEIBULL = RuntimeFamily(
    Family(
        "Weibull",
        (SCALE, positive_parameter("concentration", "shape", "k")),
        POSITIVE,
        "uniform",
        "survival time with a rate that rises or falls",
        open=True,
    ),
    weibull_log_prob,
    weibull_transform,
    tails=lambda value, scale, concentration: upper_first(-(concentration * (value.log() - scale.log())).exp()),
    quantile=lambda lower, upper, scale, concentration: scale * ((-upper).log() / concentration).exp(),
    mean=lambda scale, concentration: scale * arrays.lgamma(1.0 + 1.0 / concentration).exp(),
)


def pareto_transform(noise: Tensor, scale: Tensor, alpha: Tensor) -> Tensor:
    return scale * (-arrays.log1p(-noise) / alpha).exp()


def pareto_log_prob(value: Tensor, scale: Tensor, alpha: Tensor) -> Tensor:
    """log a + a log s − (a + 1) log x from s on."""
    ok = value >= scale
    safe = arrays.where(ok, value, scale)
    return inside(ok, alpha.log() + alpha * scale.log() - (alpha + 1.0) * safe.log())


PARETO = RuntimeFamily(
    Family(
        "Pareto",
        (SCALE, positive_parameter("alpha", "shape")),
        POSITIVE,
        "uniform",
        "power law above scale",
        above="scale",
    ),
    pareto_log_prob,
    pareto_transform,
    tails=lambda value, scale, alpha: upper_first(-alpha * arrays.log1p((value - scale) / scale)),
    quantile=lambda lower, upper, scale, alpha: scale * (-upper / alpha).exp(),
)
