"""What torch calls what."""

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
    "Geometric(probs)": "dist.Geometric({probs})",
    "Poisson(rate)": "dist.Poisson({rate})",
    "Poisson(log_rate)": "dist.Poisson(torch.exp({log_rate}))",
    "NegativeBinomial(probs, total)": "dist.NegativeBinomial({total}, {probs})",
    "NegativeBinomial(logits, total)": "dist.NegativeBinomial({total}, logits={logits})",
    "NegativeBinomial(dispersion, mean)": (
        "dist.NegativeBinomial(1 / {dispersion}, logits=torch.log({mean} * {dispersion}))"
    ),
    "DiscreteUniform(high, low)": "discrete_uniform_log_prob({value}, {low}, {high})",
    "NegativeBinomial(mean, total)": "dist.NegativeBinomial({total}, logits=torch.log({mean} / {total}))",
    "ContinuousBernoulli(probs)": "continuous_bernoulli_log_prob({value}, torch.logit({probs}))",
    "BetaBinomial(a, b, total)": "beta_binomial_log_prob({value}, {a}, {b}, {total})",
    "Multinomial(probs, total)": "multinomial_log_prob({value}, {total}, {probs})",
    "Multinomial(logits, total)": "multinomial_log_prob({value}, {total}, torch.softmax({logits}, -1))",
    "ZeroInflatedPoisson(gate, rate)": "zero_inflated({value}, {gate}, dist.Poisson({rate}).log_prob({value}))",
    "ZeroInflatedNegativeBinomial(gate, probs, total)": (
        "zero_inflated({value}, {gate}, dist.NegativeBinomial({total}, {probs}).log_prob({value}))"
    ),
    "ZeroInflatedNegativeBinomial(gate, logits, total)": (
        "zero_inflated({value}, {gate}, dist.NegativeBinomial({total}, logits={logits}).log_prob({value}))"
    ),
    "ZeroInflatedNegativeBinomial(gate, mean, total)": (
        "zero_inflated({value}, {gate}, "
        "dist.NegativeBinomial({total}, logits=torch.log({mean} / {total})).log_prob({value}))"
    ),
    "ZeroInflatedNegativeBinomial(dispersion, gate, mean)": (
        "zero_inflated({value}, {gate}, "
        "dist.NegativeBinomial(1 / {dispersion}, logits=torch.log({mean} * {dispersion})).log_prob({value}))"
    ),
    "LowRankMultivariateNormal(cov_diag, cov_factor, loc)": (
        "dist.LowRankMultivariateNormal({loc}, {cov_factor}, {cov_diag})"
    ),
    "Wishart(df, scale_tril)": "dist.Wishart({df}, scale_tril={scale_tril})",
    "LKJCorrelation(concentration, dim)": "lkj_correlation_log_prob({value}, {concentration}, {size})",
    "Categorical(probs)": "dist.Categorical(logits=torch.log({probs}))",
    "Categorical(logits)": "dist.Categorical(logits={logits})",
    "OrderedLogistic(cutpoints, predictor)": "ordered_logistic_log_prob({value}, {predictor}, {cutpoints})",
    "Dirichlet(concentration)": "dist.Dirichlet({concentration})",
    "MultivariateNormal(loc, scale_tril)": "dist.MultivariateNormal({loc}, scale_tril={scale_tril})",
    "MultivariateNormal(covariance_matrix, loc)": "dist.MultivariateNormal({loc}, {covariance_matrix})",
    "MultivariateNormal(loc, precision_matrix)": "dist.MultivariateNormal({loc}, precision_matrix={precision_matrix})",
    "LKJCholesky(concentration, dim)": "dist.LKJCholesky({size}, {concentration})",
    "Normal summing to 0(scale)": (
        "-0.5 * ({value} ** 2).sum(-1) / ({scale}) ** 2 "
        "- ({size} - 1) * (torch.log({scale}) + 0.9189385332046727)"
    ),
    "ICAR(edges)": "-0.5 * (({value}[..., {edges}[:, 0]] - {value}[..., {edges}[:, 1]]) ** 2).sum(-1)",
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
    return p / p.sum(-1, keepdim=True)
''',
    "log_normalised": '''def log_normalised(p):
    """log p along the last axis, made to add up to 1; finite for a p of 0."""
    tiny = torch.finfo(p.dtype).tiny
    return torch.log(torch.clamp(p / p.sum(-1, keepdim=True), min=tiny))
''',
    "ordered_logistic_log_prob": '''def ordered_logistic_log_prob(value, predictor, cutpoints):
    """log p of the category that a logistic variable around `predictor` falls into."""
    over = torch.as_tensor(predictor)[..., None] - cutpoints
    far = torch.full_like(over[..., :1], torch.inf)
    low, high = torch.cat([far, over], -1), torch.cat([over, -far], -1)
    log_sigmoid = torch.nn.functional.logsigmoid
    log_p = log_sigmoid(low) + log_sigmoid(-high) + torch.log(-torch.expm1(high - low))
    shape = torch.broadcast_shapes(value.shape, log_p.shape[:-1])
    at = value.expand(shape)[..., None].long()
    return log_p.expand(*shape, log_p.shape[-1]).gather(-1, at)[..., 0]
''',
    "log_between": '''def log_between(below_low, above_low, below_high, above_high):
    """log P(low < T <= high) of the logarithms of P(T <= x) and P(T > x), by the smaller ones."""
    upper = above_low < below_high
    more = torch.where(upper, above_low, below_high)
    less = torch.where(upper, above_high, below_low)
    return more + log_one_minus_exp(torch.minimum(less - more, torch.zeros(())))
''',
    "log_one_minus_exp": '''def log_one_minus_exp(x):
    """log(1 - exp(x)) of an x below 0."""
    return torch.where(x > -0.69, torch.log(-torch.expm1(x)), torch.log1p(-torch.exp(x)))
''',
    "added_up": '''def added_up(terms, places, count):
    """Terms along the last axis, added up by place."""
    return torch.zeros((*terms.shape[:-1], count)).index_add(-1, places, terms)
''',
    "at_places": '''def at_places(terms, places, count):
    """Terms (elements, values) added up by the place of each element."""
    where = (places.expand(terms.shape[:-1]),)
    return torch.zeros((count, terms.shape[-1])).index_put(where, terms, True)
''',
    "eigenvalues": '''def eigenvalues(matrix):
    """The eigenvalues of a symmetric matrix, ascending."""
    return torch.linalg.eigh(matrix)[0]
''',
    "eigenvectors": '''def eigenvectors(matrix):
    """Its eigenvectors, in columns; the first of the largest entries of each is positive."""
    vectors = torch.linalg.eigh(matrix)[1]
    sizes = vectors.abs()
    large = sizes >= (1 - 1e-8) * sizes.amax(-2, keepdim=True)
    first = large & (large.cumsum(-2) == 1)
    return vectors * (vectors * first).sum(-2, keepdim=True).sign()
''',
    **equations.TORCH,
    "lkj_correlation_log_prob": '''def lkj_correlation_log_prob(x, concentration, size):
    """log p of a correlation matrix: det(x) ** (concentration - 1), normalised."""
    tril = torch.linalg.cholesky(x)
    powers = torch.arange(size - 1, -1, -1)
    jacobian = (powers * torch.log(tril.diagonal(dim1=-2, dim2=-1))).sum(-1)
    return dist.LKJCholesky(size, concentration).log_prob(tril) - jacobian
''',
    **densities("torch", array="as_tensor", lgamma="torch.lgamma", logsumexp="torch.logsumexp",
        diagonal="x.diagonal(dim1=-2, dim2=-1)", turned="z.mT"),
    **functions("torch", array="as_tensor", diagonal="x.diagonal(dim1=-2, dim2=-1)",
        solved="torch.linalg.solve_triangular(lower, b, upper=False)"),
    **bases("torch", where="torch.where", pi="torch.pi"),
}  # fmt: skip

TORCH = Dialect(
    target="torch",
    arrays="torch",
    functions=templates("torch") | TAILS,
    families=_FAMILIES,
    arange="torch.arange({0})",
    einsum="torch.einsum({0}, {1})",
    scatter="added_up({0}, {1}, {2})",
    places="at_places({0}, {1}, {2})",
    stack="torch.stack({0})",
    broadcast="torch.broadcast_tensors(*{0})",
    constant="torch.tensor({0})",
    number="torch.tensor({0})",
    full="torch.full(({0},), {1})",
    permute="torch.permute({0}, ({1}))",
    concatenate="torch.cat([{0}, {1}], {axis})",
    sum_over="torch.sum({0}, {1})",
    reshape="torch.reshape({0}, ({1}))",
    where="torch.where({0}, {1}, {2})",
    log_prob="log_probs({0}, {1})",
    total_log_prob="log_prob({0}, {1})",
    total="torch.sum({0})",
    as_array="torch.as_tensor({0})",
    equations={
        "rk4": "solve_rk4({0}, {1}, {2}, {3}, {4}, {steps}{plates})",
        "rk45": "solve_rk45({0}, {1}, {2}, {3}, {4}, {rtol}, {atol}, {most}{plates})",
        "stiff": "solve_stiff({0}, {1}, {2}, {3}, {4}, {rtol}, {atol}, {most}{plates})",
    },
    logsumexp="torch.logsumexp({0}, {1})",
    helpers=_HELPERS,
)
