"""What torch calls what."""

from __future__ import annotations

from qvr_core.export.arrays.dialect import Dialect, alike

_SAME = (
    "abs exp exp2 expm1 log log1p log2 log10 sqrt rsqrt square reciprocal sin cos tan asin acos atan sinh cosh tanh "
    "asinh acosh atanh erf erfc erfinv sigmoid lgamma digamma ceil floor logical_not isnan isfinite sign round logit "
    "trunc frac sinc deg2rad rad2deg tril triu diff logdet"
)
_TWO = "minimum maximum atan2 logaddexp logical_and logical_or fmod remainder hypot xlogy outer"
_FUNCTIONS = alike(_SAME, "torch.@({0})") | alike(_TWO, "torch.@({0}, {1})") | {
    "ndtr": "torch.special.ndtr({0})", "log_ndtr": "torch.special.log_ndtr({0})", "ndtri": "torch.special.ndtri({0})",
    "softplus": "torch.nn.functional.softplus({0})", "logsigmoid": "torch.nn.functional.logsigmoid({0})",
    "relu": "torch.relu({0})", "det": "torch.linalg.det({0})",
    "sum": "{0}.sum({axis})", "mean": "{0}.mean({axis})", "prod": "{0}.prod({axis})", "amax": "{0}.amax({axis})",
    "amin": "{0}.amin({axis})", "max": "{0}.amax({axis})", "min": "{0}.amin({axis})", "any": "{0}.any({axis})",
    "all": "{0}.all({axis})", "logsumexp": "torch.logsumexp({0}, {axis})", "cumsum": "torch.cumsum({0}, {axis})",
    "cumprod": "torch.cumprod({0}, {axis})", "softmax": "torch.softmax({0}, {axis})",
    "log_softmax": "torch.log_softmax({0}, {axis})",
    "matmul": "({0} @ {1})", "mv": "({0} @ {1})", "mm": "({0} @ {1})", "bmm": "({0} @ {1})",
    "dot": "({0} * {1}).sum(-1)", "transpose": "{0}.mT", "inverse": "torch.linalg.inv({0})",
    "cholesky": "torch.linalg.cholesky({0})", "diag_embed": "torch.diag_embed({0})",
    "zeros": "torch.zeros({0})", "ones": "torch.ones({0})", "eye": "torch.eye({0})", "size": "{0}",
    "zeros_like": "torch.zeros_like({0})", "ones_like": "torch.ones_like({0})",
}  # fmt: skip

_FAMILIES = {
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
    "Categorical(probs)": "dist.Categorical({probs})",
    "Categorical(logits)": "dist.Categorical(logits={logits})",
    "OrderedLogistic(cutpoints, predictor)": "ordered_logistic_log_prob({value}, {predictor}, {cutpoints})",
    "Dirichlet(concentration)": "dist.Dirichlet({concentration})",
    "MultivariateNormal(loc, scale_tril)": "dist.MultivariateNormal({loc}, scale_tril={scale_tril})",
    "MultivariateNormal(covariance_matrix, loc)": "dist.MultivariateNormal({loc}, {covariance_matrix})",
    "MultivariateNormal(loc, precision_matrix)": "dist.MultivariateNormal({loc}, precision_matrix={precision_matrix})",
    "LKJCholesky(concentration, dim)": "dist.LKJCholesky({size}, {concentration})",
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
    at = value.expand(shape)[..., None]
    return log_p.expand(*shape, log_p.shape[-1]).gather(-1, at)[..., 0]
''',
    "log_survival_normal": '''def log_survival_normal(value, loc, scale):
    """log P(T >= value) of a Normal."""
    return torch.special.log_ndtr((loc - value) / scale)
''',
    "added_up": '''def added_up(terms, places, count):
    """Terms along the last axis, added up by place."""
    return torch.zeros((*terms.shape[:-1], count)).index_add(-1, places, terms)
''',
    "at_places": '''def at_places(terms, places, count):
    """Terms along the first axis, added up by place."""
    return torch.zeros((count, *terms.shape[1:])).index_add(0, places, terms)
''',
}  # fmt: skip

TORCH = Dialect(
    target="torch",
    arrays="torch",
    functions=_FUNCTIONS,
    families=_FAMILIES,
    arange="torch.arange({0})",
    einsum="torch.einsum({0}, {1})",
    scatter="added_up({0}, {1}, {2})",
    places="at_places({0}, {1}, {2})",
    stack="torch.stack({0})",
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
    logsumexp="torch.logsumexp({0}, {1})",
    helpers=_HELPERS,
)
