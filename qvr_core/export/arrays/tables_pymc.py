"""What PyTensor and PyMC call what.  Distributions stand as `pm.F.dist(…)`; a named one is made of the same text."""

from __future__ import annotations

from qvr_core.export.arrays import equations
from qvr_core.export.arrays.bases import bases
from qvr_core.export.arrays.dialect import TAILS, Dialect
from qvr_core.export.arrays.family_densities import FAMILIES, densities
from qvr_core.export.arrays.functions import functions
from qvr_core.operations.table import templates

_FAMILIES = FAMILIES | {
    "Normal(loc, scale)": "pm.Normal.dist(mu={loc}, sigma={scale})",
    "LogNormal(loc, scale)": "pm.LogNormal.dist(mu={loc}, sigma={scale})",
    "HalfNormal(scale)": "pm.HalfNormal.dist(sigma={scale})",
    "HalfCauchy(scale)": "pm.HalfCauchy.dist(beta={scale})",
    "Cauchy(loc, scale)": "pm.Cauchy.dist(alpha={loc}, beta={scale})",
    "StudentT(df, loc, scale)": "pm.StudentT.dist(nu={df}, mu={loc}, sigma={scale})",
    "HalfStudentT(df, scale)": "pm.HalfStudentT.dist(nu={df}, sigma={scale})",
    "Laplace(loc, scale)": "pm.Laplace.dist(mu={loc}, b={scale})",
    "Gumbel(loc, scale)": "pm.Gumbel.dist(mu={loc}, beta={scale})",
    "Exponential(rate)": "pm.Exponential.dist(lam={rate})",
    "Gamma(concentration, rate)": "pm.Gamma.dist(alpha={concentration}, beta={rate})",
    "InverseGamma(concentration, rate)": "pm.InverseGamma.dist(alpha={concentration}, beta={rate})",
    "Chi2(df)": "pm.ChiSquared.dist(nu={df})",
    "Weibull(concentration, scale)": "pm.Weibull.dist(alpha={concentration}, beta={scale})",
    "Pareto(alpha, scale)": "pm.Pareto.dist(alpha={alpha}, m={scale})",
    "Uniform(high, low)": "pm.Uniform.dist(lower={low}, upper={high})",
    "Beta(a, b)": "pm.Beta.dist(alpha={a}, beta={b})",
    "Kumaraswamy(a, b)": "pm.Kumaraswamy.dist(a={a}, b={b})",
    "VonMises(concentration, loc)": "pm.VonMises.dist(mu={loc}, kappa={concentration})",
    "Bernoulli(probs)": "pm.Bernoulli.dist(p={probs})",
    "Bernoulli(logits)": "pm.Bernoulli.dist(logit_p={logits})",
    "Binomial(probs, total)": "pm.Binomial.dist(n={total}, p={probs})",
    "Binomial(logits, total)": "pm.Binomial.dist(n={total}, logit_p={logits})",
    "BetaBinomial(a, b, total)": "pm.BetaBinomial.dist(n={total}, alpha={a}, beta={b})",
    "Poisson(rate)": "pm.Poisson.dist(mu={rate})",
    "Poisson(log_rate)": "pm.Poisson.dist(mu=pt.exp({log_rate}))",
    "NegativeBinomial(probs, total)": "pm.NegativeBinomial.dist(n={total}, p=1 - {probs})",
    "NegativeBinomial(logits, total)": "pm.NegativeBinomial.dist(n={total}, p=pt.sigmoid(-{logits}))",
    "NegativeBinomial(dispersion, mean)": "pm.NegativeBinomial.dist(mu={mean}, alpha=1 / {dispersion})",
    "DiscreteUniform(high, low)": "pm.DiscreteUniform.dist(lower={low}, upper={high})",
    "NegativeBinomial(mean, total)": "pm.NegativeBinomial.dist(mu={mean}, alpha={total})",
    "Geometric(probs)": "{value} * pt.log1p(-{probs}) + pt.log({probs})",
    "ContinuousBernoulli(probs)": "continuous_bernoulli_log_prob({value}, pm.math.logit({probs}))",
    "ZeroInflatedPoisson(gate, rate)": "pm.ZeroInflatedPoisson.dist(psi=1 - {gate}, mu={rate})",
    "ZeroInflatedNegativeBinomial(gate, probs, total)": (
        "pm.ZeroInflatedNegativeBinomial.dist(psi=1 - {gate}, n={total}, p=1 - {probs})"
    ),
    "ZeroInflatedNegativeBinomial(gate, logits, total)": (
        "pm.ZeroInflatedNegativeBinomial.dist(psi=1 - {gate}, n={total}, p=pt.sigmoid(-{logits}))"
    ),
    "ZeroInflatedNegativeBinomial(gate, mean, total)": (
        "pm.ZeroInflatedNegativeBinomial.dist(psi=1 - {gate}, mu={mean}, alpha={total})"
    ),
    "ZeroInflatedNegativeBinomial(dispersion, gate, mean)": (
        "pm.ZeroInflatedNegativeBinomial.dist(psi=1 - {gate}, mu={mean}, alpha=1 / {dispersion})"
    ),
    "Multinomial(logits, total)": "pm.Multinomial.dist(n={total}, p=pt.special.softmax({logits}, -1))",
    "LowRankMultivariateNormal(cov_diag, cov_factor, loc)": (
        "pm.MvNormal.dist(mu={loc}, cov={cov_factor} @ pt.swapaxes({cov_factor}, -1, -2) + diag_embed({cov_diag}))"
    ),
    "Categorical(probs)": "pm.Categorical.dist(p={probs})",
    "Categorical(logits)": "pm.Categorical.dist(logit_p={logits})",
    "Multinomial(probs, total)": "pm.Multinomial.dist(n={total}, p={probs})",
    "OrderedLogistic(cutpoints, predictor)": "pm.OrderedLogistic.dist(eta={predictor}, cutpoints={cutpoints})",
    "Dirichlet(concentration)": "pm.Dirichlet.dist(a={concentration})",
    "MultivariateNormal(loc, scale_tril)": "pm.MvNormal.dist(mu={loc}, chol={scale_tril})",
    "MultivariateNormal(covariance_matrix, loc)": "pm.MvNormal.dist(mu={loc}, cov={covariance_matrix})",
    "MultivariateNormal(loc, precision_matrix)": "pm.MvNormal.dist(mu={loc}, tau={precision_matrix})",
    "LKJCholesky(concentration, dim)": "pm.LKJCorr.dist(n={size}, eta={concentration})",
    "Normal summing to 0(scale)": (
        "-0.5 * ({value} ** 2).sum(-1) / ({scale}) ** 2 "
        "- ({size} - 1) * (pt.log({scale}) + 0.9189385332046727)"
    ),
    "ICAR(edges)": "-0.5 * pt.sum(({value}[..., {edges}[:, 0]] - {value}[..., {edges}[:, 1]]) ** 2, -1)",
    "Flat()": "0.0 * {value}",
}  # fmt: skip

_HELPERS = {
    "normalised": '''def normalised(p):
    """Probabilities along the last axis, made to add up to 1."""
    return p / p.sum(-1, keepdims=True)
''',
    "log_normalised": '''def log_normalised(p):
    """log p along the last axis, made to add up to 1; finite for a p of 0."""
    return pt.log(pt.maximum(p / p.sum(-1, keepdims=True), 1e-300))
''',
    "log_between": '''def log_between(below_low, above_low, below_high, above_high):
    """log P(low < T <= high) of the logarithms of P(T <= x) and P(T > x), by the smaller ones."""
    upper = above_low < below_high
    more = pt.switch(upper, above_low, below_high)
    less = pt.switch(upper, above_high, below_low)
    return more + log_one_minus_exp(pt.minimum(less - more, 0.0))
''',
    "log_one_minus_exp": '''def log_one_minus_exp(x):
    """log(1 - exp(x)) of an x below 0."""
    return pt.switch(x > -0.69, pt.log(-pt.expm1(x)), pt.log1p(-pt.exp(x)))
''',
    "added_up": '''def added_up(terms, places, count):
    """Terms along the last axis, added up by place."""
    zeros = pt.zeros((*[terms.shape[i] for i in range(terms.ndim - 1)], count))
    return pt.inc_subtensor(zeros[..., places], terms)
''',
    "at_places": '''def at_places(terms, places, count, values):
    """Terms (elements, values) added up by the place of each element."""
    places = pt.broadcast_to(places, terms.shape[:-1])
    return pt.inc_subtensor(pt.zeros((count, values))[places], terms)
''',
    **equations.PYMC,
    **densities("pt", array="as_tensor", lgamma="pt.gammaln", logsumexp="pt.logsumexp",
        diagonal="pt.diagonal(x, axis1=-2, axis2=-1)", turned="pt.swapaxes(z, -1, -2)"),
    **functions("pt", array="as_tensor", diagonal="pt.diagonal(x, axis1=-2, axis2=-1)",
        solved="pt.linalg.solve_triangular(lower, b, lower=True)"),
    **bases("pt", where="pt.switch", pi="3.141592653589793"),
}  # fmt: skip

PYMC = Dialect(
    target="PyMC",
    arrays="pt",
    functions=templates("pymc") | TAILS,
    families=_FAMILIES,
    arange="pt.arange({0})",
    einsum="pt.einsum({0}, {1})",
    scatter="added_up({0}, {1}, {2})",
    places="at_places({0}, {1}, {2}, {3})",
    stack="pt.stack({0})",
    broadcast="pt.broadcast_arrays(*{0})",
    constant="pt.as_tensor({0})",
    number="pt.as_tensor({0})",
    full="pt.full(({0},), {1})",
    permute="pt.transpose({0}, ({1}))",
    concatenate="pt.concatenate([{0}, {1}], {axis})",
    sum_over="pt.sum({0}, {1})",
    reshape="pt.reshape({0}, ({1}))",
    where="pt.switch({0}, {1}, {2})",
    log_prob="pm.logp({0}, {1})",
    total_log_prob="log_prob({0}, {1})",
    total="pt.sum({0})",
    as_array="pt.as_tensor({0})",
    equations={
        "rk4": "solve_rk4({0}, {1}, {2}, {3}, {4}, {steps}{plates})",
    },
    logsumexp="pt.logsumexp({0}, {1})",
    helpers={
        "log_prob": '''def log_prob(distribution, value):
    """The log density of all elements of a value together."""
    return pm.logp(distribution, value).sum()
''',
        **_HELPERS,
    },
)
