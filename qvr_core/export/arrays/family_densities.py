"""Log densities of families that a library of arrays lacks: one text for all, which differ in few names."""

from __future__ import annotations

import re
from collections.abc import Mapping

_TEXTS = {
    "logit_normal_log_prob": '''def logit_normal_log_prob(x, loc, scale):
    """log p of a probability whose log odds are Normal."""
    log_x, log_rest = LIBRARY.log(x), LIBRARY.log1p(-x)
    z = (log_x - log_rest - loc) / scale
    return -0.5 * z**2 - LIBRARY.log(scale) - 0.9189385332046727 - log_x - log_rest
''',
    "continuous_bernoulli_log_prob": '''def continuous_bernoulli_log_prob(x, logits):
    """x log p + (1 - x) log(1 - p), normalised over 0 to 1."""
    flat = LIBRARY.abs(logits) < 0.01
    size = LIBRARY.where(flat, 1.0, LIBRARY.abs(logits))
    steep = LIBRARY.where(logits > 0, logits, 0.0) + LIBRARY.log(-LIBRARY.expm1(-size)) - LIBRARY.log(size)
    near = LIBRARY.where(flat, logits, 0.0)
    return logits * x - LIBRARY.where(flat, 0.5 * near + near**2 / 24.0, steep)
''',
    "beta_binomial_log_prob": '''def beta_binomial_log_prob(x, a, b, total):
    """log p of successes among so many, whose probability is from a Beta."""
    ways = LGAMMA(total + 1.0) - LGAMMA(x + 1.0) - LGAMMA(total - x + 1.0)
    seen = LGAMMA(x + a) + LGAMMA(total - x + b) - LGAMMA(total + a + b)
    return ways + seen - LGAMMA(a) - LGAMMA(b) + LGAMMA(a + b)
''',
    "multinomial_log_prob": '''def multinomial_log_prob(x, total, probs):
    """log p of counts along the last axis, which add up to the total."""
    terms = LIBRARY.where(x > 0, x * LIBRARY.log(LIBRARY.where(x > 0, probs, 1.0)), 0.0) - LGAMMA(x + 1.0)
    return LGAMMA(total + 1.0) + terms.sum(-1)
''',
    "zero_inflated": '''def zero_inflated(x, gate, log_p):
    """log p of a count that is 0 with the probability `gate`, else of the log probability `log_p`."""
    log_open = LIBRARY.log1p(-gate)
    none = LIBRARY.logaddexp(LIBRARY.log(gate), log_open + log_p)
    return LIBRARY.where(x < 1, none, log_open + log_p)
''',
    "logistic_normal_log_prob": '''def logistic_normal_log_prob(x, loc, scale):
    """log p of probabilities along the last axis, whose log ratios to the last one are Normal."""
    log_x = LIBRARY.log(x)
    z = (log_x[..., :-1] - log_x[..., -1:] - loc) / scale
    each = -0.5 * z**2 - LIBRARY.log(scale) - 0.9189385332046727
    return each.sum(-1) - log_x.sum(-1)
''',
    "random_walk_log_prob": '''def random_walk_log_prob(x, scale, drift, start):
    """log p of a walk along the last axis, from `start` by Normal steps."""
    before = LIBRARY.zeros_like(x[..., :1]) + LIBRARY.ASARRAY(start)[..., None] - LIBRARY.ASARRAY(drift)[..., None]
    before = LIBRARY.concatenate([before, x[..., :-1]], -1)
    scale = LIBRARY.ASARRAY(scale)[..., None]
    z = (x - before - LIBRARY.ASARRAY(drift)[..., None]) / scale
    return (-0.5 * z**2 - LIBRARY.log(scale) - 0.9189385332046727).sum(-1)
''',
    "normal_mixture_log_prob": '''def normal_mixture_log_prob(x, log_weights, locs, scales):
    """log p of a mixture of Normals, one along the last axis of the arguments for each."""
    z = (x[..., None] - locs) / scales
    return LOGSUMEXP(log_weights - 0.5 * z**2 - LIBRARY.log(scales) - 0.9189385332046727, -1)
''',
    "discrete_uniform_log_prob": '''def discrete_uniform_log_prob(x, low, high):
    """log p of a whole number from low to high."""
    inside = (x >= low) & (x <= high)
    return LIBRARY.where(inside, -LIBRARY.log(high - low + 1.0), float("-inf"))
''',
    "mixed": '''def mixed(log_weights, *log_p):
    """log p of a mixture of families, of the log probabilities in each."""
    found = log_weights[..., 0] + log_p[0]
    for at, more in enumerate(log_p[1:], 1):
        found = LIBRARY.logaddexp(found, log_weights[..., at] + more)
    return found
''',
    "log_multigamma": '''def log_multigamma(a, size):
    """log of the multivariate gamma function."""
    parts = [LGAMMA(a - 0.5 * at) for at in range(size)]
    return 0.25 * size * (size - 1) * 1.1447298858494002 + sum(parts)
''',
    "log_diagonal": '''def log_diagonal(x):
    """log of the product of a diagonal."""
    return LIBRARY.log(DIAGONAL).sum(-1)
''',
    "inverse_wishart_log_prob": '''def inverse_wishart_log_prob(x, df, scale_tril, size):
    """log p of a covariance matrix whose inverse is from a Wishart."""
    tril = LIBRARY.linalg.cholesky(x)
    z = solve_lower(tril, scale_tril, False)
    norm = 0.5 * df * size * 0.6931471805599453 + log_multigamma(0.5 * df, size)
    density = df * log_diagonal(scale_tril) - norm - (df + size + 1) * log_diagonal(tril)
    return density - 0.5 * (z**2).sum(-1).sum(-1)
''',
    "matrix_normal_log_prob": '''def matrix_normal_log_prob(x, loc, row_tril, column_tril, rows, columns):
    """log p of a matrix whose rows and columns are correlated."""
    z = solve_lower(row_tril, x - loc, False)
    z = solve_lower(column_tril, TURNED, False)
    log_scale = columns * log_diagonal(row_tril) + rows * log_diagonal(column_tril)
    return -0.5 * (z**2).sum(-1).sum(-1) - log_scale - rows * columns * 0.9189385332046727
''',
}

FAMILIES = {
    "LogitNormal(loc, scale)": "logit_normal_log_prob({value}, {loc}, {scale})",
    "ContinuousBernoulli(logits)": "continuous_bernoulli_log_prob({value}, {logits})",
    "LogisticNormal(loc, scale)": "logistic_normal_log_prob({value}, {loc}, {scale})",
    "GaussianRandomWalk(drift, scale, start)": "random_walk_log_prob({value}, {scale}, {drift}, {start})",
    "MixtureNormal(locs, scales, weights)": (
        "normal_mixture_log_prob({value}, log_normalised({weights}), {locs}, {scales})"
    ),
    "InverseWishart(df, scale_tril)": "inverse_wishart_log_prob({value}, {df}, {scale_tril}, {size})",
    "MatrixNormal(column_scale_tril, loc, row_scale_tril)": (
        "matrix_normal_log_prob({value}, {loc}, {row_scale_tril}, {column_scale_tril}, {rows}, {size})"
    ),
}
"""What no library has, or none as the language means it: calls of the helpers, as `Dialect.families`."""


def densities(
    library: str, *, array: str, lgamma: str, logsumexp: str, diagonal: str, turned: str
) -> Mapping[str, str]:
    """The helpers by name, as a library has them: under the name `library`, with its `asarray`, its functions, the
    diagonal of x and a matrix z turned."""
    names = {
        "LIBRARY": library, "ASARRAY": array, "LGAMMA": lgamma, "LOGSUMEXP": logsumexp, "DIAGONAL": diagonal,
        "TURNED": turned,
    }  # fmt: skip
    return {name: re.sub("|".join(names), lambda found: names[found[0]], text) for name, text in _TEXTS.items()}
