"""What JAX and NumPyro call what."""

from __future__ import annotations

from qvr_core.export.arrays import equations
from qvr_core.export.arrays.bases import bases
from qvr_core.export.arrays.dialect import TAILS, Dialect
from qvr_core.export.arrays.family_densities import FAMILIES, densities
from qvr_core.export.arrays.functions import functions
from qvr_core.operations.table import templates

_FAMILIES = FAMILIES | {
    "Normal(loc, scale)": "dist.Normal({loc}, {scale})",
    "LogNormal(loc, scale)": "dist.LogNormal({loc}, {scale})",
    "HalfNormal(scale)": "dist.HalfNormal({scale})",
    "HalfCauchy(scale)": "dist.HalfCauchy({scale})",
    "Cauchy(loc, scale)": "dist.Cauchy({loc}, {scale})",
    "StudentT(df, loc, scale)": "dist.StudentT({df}, {loc}, {scale})",
    "HalfStudentT(df, scale)": "dist.StudentT({df}, 0.0, {scale}).log_prob({value}) + 0.6931471805599453",
    "Laplace(loc, scale)": "dist.Laplace({loc}, {scale})",
    "Gumbel(loc, scale)": "dist.Gumbel({loc}, {scale})",
    "Exponential(rate)": "dist.Exponential({rate})",
    "Gamma(concentration, rate)": "dist.Gamma({concentration}, {rate})",
    "InverseGamma(concentration, rate)": "dist.InverseGamma({concentration}, {rate})",
    "Chi2(df)": "dist.Chi2({df})",
    "Weibull(concentration, scale)": "dist.Weibull({scale}, {concentration})",
    "Pareto(alpha, scale)": "dist.Pareto({scale}, {alpha})",
    "Uniform(high, low)": "dist.Uniform({low}, {high})",
    "Beta(a, b)": "dist.Beta({a}, {b})",
    "Kumaraswamy(a, b)": "dist.Kumaraswamy({a}, {b})",
    "VonMises(concentration, loc)": "dist.VonMises({loc}, {concentration})",
    "Bernoulli(probs)": "dist.Bernoulli({probs})",
    "Bernoulli(logits)": "dist.Bernoulli(logits={logits})",
    "Binomial(probs, total)": "dist.Binomial({total}, {probs})",
    "Binomial(logits, total)": "dist.Binomial({total}, logits={logits})",
    "BetaBinomial(a, b, total)": "dist.BetaBinomial({a}, {b}, {total})",
    "Geometric(probs)": "dist.Geometric({probs})",
    "Poisson(rate)": "dist.Poisson({rate})",
    "Poisson(log_rate)": "dist.Poisson(jnp.exp({log_rate}))",
    "NegativeBinomial(probs, total)": "dist.NegativeBinomialProbs({total}, {probs})",
    "NegativeBinomial(logits, total)": "dist.NegativeBinomialLogits({total}, {logits})",
    "NegativeBinomial(dispersion, mean)": "dist.NegativeBinomial2({mean}, 1 / {dispersion})",
    "ZeroInflatedPoisson(gate, rate)": "dist.ZeroInflatedPoisson({gate}, {rate})",
    "DiscreteUniform(high, low)": "dist.DiscreteUniform({low}, {high})",
    "NegativeBinomial(mean, total)": "dist.NegativeBinomial2({mean}, {total})",
    "ContinuousBernoulli(probs)": "continuous_bernoulli_log_prob({value}, jax.scipy.special.logit({probs}))",
    "ZeroInflatedNegativeBinomial(gate, probs, total)": (
        "dist.ZeroInflatedDistribution(dist.NegativeBinomialProbs({total}, {probs}), gate={gate})"
    ),
    "ZeroInflatedNegativeBinomial(gate, logits, total)": (
        "dist.ZeroInflatedDistribution(dist.NegativeBinomialLogits({total}, {logits}), gate={gate})"
    ),
    "ZeroInflatedNegativeBinomial(gate, mean, total)": (
        "dist.ZeroInflatedDistribution(dist.NegativeBinomial2({mean}, {total}), gate={gate})"
    ),
    "ZeroInflatedNegativeBinomial(dispersion, gate, mean)": (
        "dist.ZeroInflatedDistribution(dist.NegativeBinomial2({mean}, 1 / {dispersion}), gate={gate})"
    ),
    "Multinomial(logits, total)": "dist.Multinomial({total}, logits={logits})",
    "LowRankMultivariateNormal(cov_diag, cov_factor, loc)": (
        "dist.LowRankMultivariateNormal({loc}, {cov_factor}, {cov_diag})"
    ),
    "Wishart(df, scale_tril)": "dist.Wishart({df}, scale_tril={scale_tril})",
    "LKJCorrelation(concentration, dim)": "dist.LKJ({size}, {concentration})",
    "Categorical(probs)": "dist.Categorical({probs})",
    "Categorical(logits)": "dist.Categorical(logits={logits})",
    "Multinomial(probs, total)": "dist.Multinomial({total}, {probs})",
    "OrderedLogistic(cutpoints, predictor)": "dist.OrderedLogistic({predictor}, {cutpoints})",
    "Dirichlet(concentration)": "dist.Dirichlet({concentration})",
    "MultivariateNormal(loc, scale_tril)": "dist.MultivariateNormal({loc}, scale_tril={scale_tril})",
    "MultivariateNormal(covariance_matrix, loc)": "dist.MultivariateNormal({loc}, {covariance_matrix})",
    "MultivariateNormal(loc, precision_matrix)": "dist.MultivariateNormal({loc}, precision_matrix={precision_matrix})",
    "LKJCholesky(concentration, dim)": "dist.LKJCholesky({size}, {concentration})",
    "ICAR(edges)": "-0.5 * jnp.sum(({value}[..., {edges}[:, 0]] - {value}[..., {edges}[:, 1]]) ** 2, -1)",
    "Normal summing to 0(scale)": (
        "-0.5 * jnp.sum({value} ** 2, -1) / ({scale}) ** 2 "
        "- ({size} - 1) * (jnp.log({scale}) + 0.9189385332046727)"
    ),
    "Flat()": "0.0 * {value}",
}  # fmt: skip

_HELPERS = {
    "log_prob": '''def log_prob(distribution, value):
    """The log density of all elements of a value together."""
    return distribution.log_prob(value).sum()
''',
    "log_probs": '''def log_probs(distribution, value):
    """The log density of each element of a value."""
    return distribution.log_prob(value)
''',
    "normalised": '''def normalised(p):
    """Probabilities along the last axis, made to add up to 1."""
    return p / p.sum(-1, keepdims=True)
''',
    "log_normalised": '''def log_normalised(p):
    """log p along the last axis, made to add up to 1; finite for a p of 0."""
    return jnp.log(jnp.maximum(p / p.sum(-1, keepdims=True), jnp.finfo(p.dtype).tiny))
''',
    "log_between": '''def log_between(below_low, above_low, below_high, above_high):
    """log P(low < T <= high) of the logarithms of P(T <= x) and P(T > x), by the smaller ones."""
    upper = above_low < below_high
    more = jnp.where(upper, above_low, below_high)
    less = jnp.where(upper, above_high, below_low)
    return more + log_one_minus_exp(jnp.minimum(less - more, 0.0))
''',
    "log_one_minus_exp": '''def log_one_minus_exp(x):
    """log(1 - exp(x)) of an x below 0."""
    return jnp.where(x > -0.69, jnp.log(-jnp.expm1(x)), jnp.log1p(-jnp.exp(x)))
''',
    "added_up": '''def added_up(terms, places, count):
    """Terms along the last axis, added up by place."""
    return jnp.zeros((*terms.shape[:-1], count)).at[..., places].add(terms)
''',
    "at_places": '''def at_places(terms, places, count):
    """Terms (elements, values) added up by the place of each element."""
    places = jnp.broadcast_to(places, terms.shape[:-1])
    return jnp.zeros((count, terms.shape[-1])).at[places].add(terms)
''',
    "eigenvalues": '''def eigenvalues(matrix):
    """The eigenvalues of a symmetric matrix, ascending."""
    return jnp.linalg.eigh(matrix)[0]
''',
    "eigenvectors": '''def eigenvectors(matrix):
    """Its eigenvectors, in columns; the first of the largest entries of each is positive."""
    vectors = jnp.linalg.eigh(matrix)[1]
    sizes = jnp.abs(vectors)
    large = sizes >= (1 - 1e-8) * sizes.max(-2, keepdims=True)
    first = large & (jnp.cumsum(large, -2) == 1)
    return vectors * jnp.sign((vectors * first).sum(-2, keepdims=True))
''',
    **equations.NUMPYRO,
    **densities("jnp", array="asarray", lgamma="jax.scipy.special.gammaln", logsumexp="jax.nn.logsumexp",
        diagonal="jnp.diagonal(x, axis1=-2, axis2=-1)", turned="jnp.swapaxes(z, -1, -2)"),
    "solve_one": '''def solve_one(lower, b):
    """What a lower triangular matrix multiplies to b."""
    return jax.scipy.linalg.solve_triangular(lower, b, lower=True)
''',
    **functions("jnp", array="asarray", diagonal="jnp.diagonal(x, axis1=-2, axis2=-1)",
        solved="jnp.vectorize(solve_one, signature='(n,n),(n,k)->(n,k)')(lower, b)"),
    **bases("jnp", where="jnp.where", pi="jnp.pi"),
}  # fmt: skip

NUMPYRO = Dialect(
    target="NumPyro",
    arrays="jnp",
    functions=templates("numpyro") | TAILS,
    families=_FAMILIES,
    arange="jnp.arange({0})",
    einsum="jnp.einsum({0}, {1})",
    scatter="added_up({0}, {1}, {2})",
    places="at_places({0}, {1}, {2})",
    stack="jnp.stack({0})",
    broadcast="jnp.broadcast_arrays(*{0})",
    constant="jnp.array({0})",
    number="{0}",
    full="jnp.full(({0},), {1})",
    permute="jnp.transpose({0}, ({1}))",
    concatenate="jnp.concatenate([{0}, {1}], {axis})",
    sum_over="jnp.sum({0}, {1})",
    reshape="jnp.reshape({0}, ({1}))",
    where="jnp.where({0}, {1}, {2})",
    log_prob="log_probs({0}, {1})",
    total_log_prob="log_prob({0}, {1})",
    total="jnp.sum({0})",
    as_array="jnp.asarray({0})",
    equations={
        "rk4": "solve_rk4({0}, {1}, {2}, {3}, {4}, {steps}{plates})",
        "rk45": "solve_by(diffrax.Dopri5(), {0}, {1}, {2}, {3}, {4}, {rtol}, {atol}, {most}{plates})",
        "stiff": "solve_by(diffrax.Kvaerno5(), {0}, {1}, {2}, {3}, {4}, {rtol}, {atol}, {most}{plates})",
    },
    logsumexp="jax.nn.logsumexp({0}, {1})",
    helpers=_HELPERS,
)
