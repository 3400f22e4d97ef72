"""Every family at run time: its density, and its draws from parameter-free noise where there is such."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from qvr_core.runtime.families import continuous as c
from qvr_core.runtime.families import discrete as d
from qvr_core.runtime.families import multivariate as m
from qvr_core.runtime.families import standardless as s
from qvr_core.runtime.families.soundness import TOLERANCE
from qvr_core.runtime.values.decompositions import cholesky
from qvr_core.runtime.values.errors import InputProblem
from qvr_core.runtime.values.indices import in_transform, recording
from qvr_core.semantics.language.families import FAMILIES

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RuntimeFamily:
    """A family at run time.

    `log_prob(value, *parameters)` is elementwise, an event of rank `event` giving one number.  With noise 'normal' or
    'uniform' there is `transform(noise, *parameters)`; otherwise `draw(shape, generator, *parameters)`, whose `shape`
    includes the event.  `parameters` are those of `canonical`.  `reparameterised` says that draws carry gradients.
    """

    name: str
    event: int
    noise: str
    log_prob: Callable[..., Tensor]
    transform: Callable[..., Tensor] | None
    draw: Callable[..., Tensor] | None
    reparameterised: bool


def _from_noise(name: str, log_prob: Callable[..., Tensor], transform: Callable[..., Tensor]) -> RuntimeFamily:
    return RuntimeFamily(name, FAMILIES[name].event, FAMILIES[name].noise, log_prob, transform, None, True)


def _drawn(
    name: str, log_prob: Callable[..., Tensor], draw: Callable[..., Tensor], reparameterised: bool = True
) -> RuntimeFamily:
    return RuntimeFamily(name, FAMILIES[name].event, FAMILIES[name].noise, log_prob, None, draw, reparameterised)


_TABLE = (
    _from_noise("Normal", c.normal_log_prob, c.normal_transform),
    _from_noise("LogNormal", c.log_normal_log_prob, c.log_normal_transform),
    _from_noise("LogitNormal", c.logit_normal_log_prob, c.logit_normal_transform),
    _from_noise("HalfNormal", c.half_normal_log_prob, c.half_normal_transform),
    _from_noise("HalfCauchy", c.half_cauchy_log_prob, c.half_cauchy_transform),
    _from_noise("Cauchy", c.cauchy_log_prob, c.cauchy_transform),
    _from_noise("Laplace", c.laplace_log_prob, c.laplace_transform),
    _from_noise("Gumbel", c.gumbel_log_prob, c.gumbel_transform),
    _from_noise("Uniform", c.uniform_log_prob, c.uniform_transform),
    _from_noise("Exponential", c.exponential_log_prob, c.exponential_transform),
    _from_noise("Kumaraswamy", c.kumaraswamy_log_prob, c.kumaraswamy_transform),
    _from_noise("Weibull", c.weibull_log_prob, c.weibull_transform),
    _from_noise("Pareto", c.pareto_log_prob, c.pareto_transform),
    _from_noise("TruncatedNormal", c.truncated_normal_log_prob, c.truncated_normal_transform),
    _from_noise("ContinuousBernoulli", c.continuous_bernoulli_log_prob, c.continuous_bernoulli_transform),
    _from_noise("LogisticNormal", m.logistic_normal_log_prob, m.logistic_normal_transform),
    _from_noise("MultivariateNormal", m.multivariate_normal_log_prob, m.multivariate_normal_transform),
    _from_noise("LowRankMultivariateNormal", m.low_rank_log_prob, m.low_rank_transform),
    _from_noise("MatrixNormal", m.matrix_normal_log_prob, m.matrix_normal_transform),
    _drawn("StudentT", s.student_t_log_prob, s.student_t_draw),
    _drawn("HalfStudentT", s.half_student_t_log_prob, s.half_student_t_draw),
    _drawn("Gamma", s.gamma_log_prob, s.gamma_draw),
    _drawn("InverseGamma", s.inverse_gamma_log_prob, s.inverse_gamma_draw),
    _drawn("Beta", s.beta_log_prob, s.beta_draw),
    _drawn("Chi2", s.chi2_log_prob, s.chi2_draw),
    _drawn("VonMises", s.von_mises_log_prob, s.von_mises_draw, reparameterised=False),
    _drawn("Horseshoe", s.horseshoe_log_prob, s.horseshoe_draw),
    _drawn("MixtureNormal", s.mixture_normal_log_prob, s.mixture_normal_draw, reparameterised=False),
    _drawn("Dirichlet", m.dirichlet_log_prob, m.dirichlet_draw),
    _drawn("Wishart", m.wishart_log_prob, m.wishart_draw),
    _drawn("InverseWishart", m.inverse_wishart_log_prob, m.inverse_wishart_draw),
    _drawn("LKJCholesky", m.lkj_cholesky_log_prob, m.lkj_cholesky_draw),
    _drawn("Bernoulli", d.bernoulli_log_prob, d.bernoulli_draw, reparameterised=False),
    _drawn("Binomial", d.binomial_log_prob, d.binomial_draw, reparameterised=False),
    _drawn("Categorical", d.categorical_log_prob, d.categorical_draw, reparameterised=False),
    _drawn("Geometric", d.geometric_log_prob, d.geometric_draw, reparameterised=False),
    _drawn("Poisson", d.poisson_log_prob, d.poisson_draw, reparameterised=False),
    _drawn("NegativeBinomial", d.negative_binomial_log_prob, d.negative_binomial_draw, reparameterised=False),
    _drawn(
        "ZeroInflatedPoisson", d.zero_inflated_poisson_log_prob, d.zero_inflated_poisson_draw, reparameterised=False
    ),
    _drawn("OrderedLogistic", d.ordered_logistic_log_prob, d.ordered_logistic_draw, reparameterised=False),
)

RUNTIME_FAMILIES: Mapping[str, RuntimeFamily] = {family.name: family for family in _TABLE}
"""Every family by name."""


def _logit(probs: Tensor) -> Tensor:
    eps = torch.finfo(probs.dtype).eps
    return torch.logit(_inside(probs.clamp(eps * eps, 1.0 - eps), probs))


def _log_probs(probs: Tensor) -> Tensor:
    # an exact zero stays (nearly) impossible without a NaN gradient
    return _inside(probs.clamp(min=torch.finfo(probs.dtype).tiny), probs).log()


def _inside(clamped: Tensor, probs: Tensor) -> Tensor:
    """Clamped probabilities; NaN where rounding cannot be why one is outside: it has no density."""
    return torch.where((probs < -TOLERANCE) | (probs > 1.0 + TOLERANCE), torch.nan, clamped)


_VECTOR_PROBS = frozenset({("Categorical", "probs"), ("MixtureNormal", "weights")})


def canonical(name: str, arguments: Mapping[str, Tensor]) -> tuple[Tensor, ...]:
    """A family's arguments by the names of `semantics.families`, alternatives included, in the runtime's form.

    Probabilities become logits; a covariance or precision matrix its Cholesky factor.
    """
    made: list[Tensor] = []
    for parameter in FAMILIES[name].parameters:
        key = parameter.name
        if name == "LKJCholesky" and key == "dim":
            continue
        if key in arguments:
            value = arguments[key]
            if (name, key) in _VECTOR_PROBS:
                value = _log_probs(value)
            elif parameter.constraint == "unit" and parameter.alternatives:
                value = _logit(value)
            elif parameter.constraint == "lower triangular":
                _check_factor(name, key, value)
            made.append(value)
            continue
        alternative = next((alt for alt, _ in parameter.alternatives if alt in arguments), None)
        if alternative is not None:
            made.append(_alternative(alternative, arguments[alternative]))
        elif parameter.default is not None:
            like = next(iter(arguments.values()), None)
            made.append(torch.as_tensor(parameter.default, dtype=like.dtype if like is not None else None))
        else:
            raise KeyError(f"{name} needs {key}")
    return tuple(made)


def _check_factor(family: str, name: str, value: Tensor) -> None:
    """Raise `InputProblem` for a matrix with numbers above its diagonal: only its lower half would count."""
    if recording() or in_transform() or value.ndim < 2:
        return
    if not bool((torch.triu(value, 1).abs() > 0).any()):  # NaN stays: a factor that does not exist has no density
        return
    covariance = ": a covariance is given as `covariance_matrix=…`" if name == "scale_tril" else ""
    raise InputProblem(f"`{name}` of {family} is a Cholesky factor, but it has numbers above its diagonal{covariance}")


def _alternative(name: str, value: Tensor) -> Tensor:
    if name == "covariance_matrix":
        return cholesky(value)
    if name == "precision_matrix":
        # the inverse of a flipped Cholesky factor, flipped back, is the factor of the inverse
        flipped = cholesky(torch.flip(value, (-2, -1)))
        root = torch.flip(flipped, (-2, -1)).mT
        identity = torch.eye(value.shape[-1], dtype=value.dtype, device=value.device)
        return torch.linalg.solve_triangular(root, identity.expand_as(value), upper=False)
    return value


def standard_noise(base: str, shape: Shape, like: Tensor, generator: Generator | None) -> Tensor:
    """Parameter-free noise of base 'normal' or 'uniform'."""
    if base == "normal":
        return torch.randn(shape, generator=generator, dtype=like.dtype, device=like.device)
    return s.open_uniforms(shape, like, generator)
