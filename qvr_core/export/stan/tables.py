"""What Stan calls what."""

from __future__ import annotations

import re
from collections.abc import Iterable

from qvr_core.operations.table import templates
from qvr_core.semantics.language.builtins import BUILTINS

_TEMPLATES = templates("stan")


def _of_rule(rule: str) -> dict[str, str]:
    along = {name for name in _TEMPLATES if BUILTINS[name].along_axis and BUILTINS[name].rule == rule}
    return {name: text for name, text in _TEMPLATES.items() if name in along}


REDUCED = _of_rule("reduce")
"""Functions of a vector that give a number."""

ALONG = _of_rule("keep")
"""Functions of a vector that give one."""

TAILS = {"log1mexp": "log1m_exp({0})", "log_between": "log_between({0}, {1}, {2}, {3})"}
"""What limits are lowered to beside builtins; the last is a helper."""

FUNCTIONS = {name: text for name, text in _TEMPLATES.items() if name not in REDUCED | ALONG} | TAILS
"""Functions of numbers."""

HALF = "log(2)"

FAMILIES: dict[str, tuple[str, str]] = {
    "Normal(loc, scale)": ("normal_lpdf({value} | {loc}, {scale})", ""),
    "LogNormal(loc, scale)": ("lognormal_lpdf({value} | {loc}, {scale})", ""),
    "HalfNormal(scale)": ("normal_lpdf({value} | 0, {scale})", HALF),
    "HalfCauchy(scale)": ("cauchy_lpdf({value} | 0, {scale})", HALF),
    "Cauchy(loc, scale)": ("cauchy_lpdf({value} | {loc}, {scale})", ""),
    "StudentT(df, loc, scale)": ("student_t_lpdf({value} | {df}, {loc}, {scale})", ""),
    "HalfStudentT(df, scale)": ("student_t_lpdf({value} | {df}, 0, {scale})", HALF),
    "Laplace(loc, scale)": ("double_exponential_lpdf({value} | {loc}, {scale})", ""),
    "Gumbel(loc, scale)": ("gumbel_lpdf({value} | {loc}, {scale})", ""),
    "Exponential(rate)": ("exponential_lpdf({value} | {rate})", ""),
    "Gamma(concentration, rate)": ("gamma_lpdf({value} | {concentration}, {rate})", ""),
    "InverseGamma(concentration, rate)": ("inv_gamma_lpdf({value} | {concentration}, {rate})", ""),
    "Chi2(df)": ("chi_square_lpdf({value} | {df})", ""),
    "Weibull(concentration, scale)": ("weibull_lpdf({value} | {concentration}, {scale})", ""),
    "Pareto(alpha, scale)": ("pareto_lpdf({value} | {scale}, {alpha})", ""),
    "Uniform(high, low)": ("uniform_lpdf({value} | {low}, {high})", ""),
    "Beta(a, b)": ("beta_lpdf({value} | {a}, {b})", ""),
    "VonMises(concentration, loc)": ("von_mises_lpdf({value} | {loc}, {concentration})", ""),
    "Bernoulli(probs)": ("bernoulli_lpmf({value} | {probs})", ""),
    "Bernoulli(logits)": ("bernoulli_logit_lpmf({value} | {logits})", ""),
    "Binomial(probs, total)": ("binomial_lpmf({value} | {total}, {probs})", ""),
    "Binomial(logits, total)": ("binomial_logit_lpmf({value} | {total}, {logits})", ""),
    "BetaBinomial(a, b, total)": ("beta_binomial_lpmf({value} | {total}, {a}, {b})", ""),
    "Poisson(rate)": ("poisson_lpmf({value} | {rate})", ""),
    "Poisson(log_rate)": ("poisson_log_lpmf({value} | {log_rate})", ""),
    "NegativeBinomial(dispersion, mean)": ("neg_binomial_2_lpmf({value} | {mean}, inv({dispersion}))", ""),
    "NegativeBinomial(probs, total)": ("neg_binomial_lpmf({value} | {total}, (1 - ({probs})) / ({probs}))", ""),
    "NegativeBinomial(logits, total)": ("neg_binomial_lpmf({value} | {total}, exp(-({logits})))", ""),
    "Geometric(probs)": ("{value} * log1m({probs}) + log({probs})", ""),
    "DiscreteUniform(high, low)": ("discrete_range_lpmf({value} | {low}, {high})", ""),
    "NegativeBinomial(mean, total)": ("neg_binomial_2_lpmf({value} | {mean}, {total})", ""),
    "Kumaraswamy(a, b)": ("log({a}) + log({b}) + ({a} - 1) * log({value}) + ({b} - 1) * log1m({value} ^ ({a}))", ""),
    "LogitNormal(loc, scale)": ("logit_normal_lpdf({value} | {loc}, {scale})", ""),
    "ContinuousBernoulli(probs)": ("continuous_bernoulli_lpdf({value} | logit({probs}))", ""),
    "ContinuousBernoulli(logits)": ("continuous_bernoulli_lpdf({value} | {logits})", ""),
    "ZeroInflatedPoisson(gate, rate)": ("zero_inflated({value}, {gate}, poisson_lpmf({value} | {rate}))", ""),
    "ZeroInflatedNegativeBinomial(gate, probs, total)": (
        "zero_inflated({value}, {gate}, neg_binomial_lpmf({value} | {total}, (1 - ({probs})) / ({probs})))",
        "",
    ),
    "ZeroInflatedNegativeBinomial(gate, logits, total)": (
        "zero_inflated({value}, {gate}, neg_binomial_lpmf({value} | {total}, exp(-({logits}))))",
        "",
    ),
    "ZeroInflatedNegativeBinomial(gate, mean, total)": (
        "zero_inflated({value}, {gate}, neg_binomial_2_lpmf({value} | {mean}, {total}))",
        "",
    ),
    "ZeroInflatedNegativeBinomial(dispersion, gate, mean)": (
        "zero_inflated({value}, {gate}, neg_binomial_2_lpmf({value} | {mean}, inv({dispersion})))",
        "",
    ),
    "MixtureNormal(locs, scales, weights)": ("normal_mixture_lpdf({value} | {weights}, {locs}, {scales})", ""),
    "Multinomial(probs, total)": ("multinomial_lpmf({value} | {probs})", ""),
    "LogisticNormal(loc, scale)": ("logistic_normal_lpdf({value} | {loc}, {scale})", ""),
    "GaussianRandomWalk(drift, scale, start)": ("random_walk_lpdf({value} | {scale}, {drift}, {start})", ""),
    "Wishart(df, scale_tril)": ("wishart_lpdf({value} | {df}, multiply_lower_tri_self_transpose({scale_tril}))", ""),
    "InverseWishart(df, scale_tril)": (
        "inv_wishart_lpdf({value} | {df}, multiply_lower_tri_self_transpose({scale_tril}))",
        "",
    ),
    "LKJCorrelation(concentration, dim)": ("lkj_corr_lpdf({value} | {concentration})", ""),
    "Categorical(probs)": ("categorical_lpmf({value} | {probs})", ""),
    "Categorical(logits)": ("categorical_logit_lpmf({value} | {logits})", ""),
    "OrderedLogistic(cutpoints, predictor)": ("ordered_logistic_lpmf({value} | {predictor}, {cutpoints})", ""),
    "Dirichlet(concentration)": ("dirichlet_lpdf({value} | {concentration})", ""),
    "MultivariateNormal(loc, scale_tril)": ("multi_normal_cholesky_lpdf({value} | {loc}, {scale_tril})", ""),
    "MultivariateNormal(covariance_matrix, loc)": ("multi_normal_lpdf({value} | {loc}, {covariance_matrix})", ""),
    "MultivariateNormal(loc, precision_matrix)": ("multi_normal_prec_lpdf({value} | {loc}, {precision_matrix})", ""),
    "LKJCholesky(concentration, dim)": ("lkj_corr_cholesky_lpdf({value} | {concentration})", ""),
    "Normal summing to 0(scale)": (
        "-0.5 * dot_self({value}) / square({scale}) "
        "- (num_elements({value}) - 1) * (log({scale}) + 0.9189385332046727)",
        "",
    ),
    "ICAR(edges)": ("-0.5 * dot_self({value}[{edges}[, 1]] - {value}[{edges}[, 2]])", ""),
}
"""Log densities of one element, by family and arguments, and what is added to each."""

HELPERS = {
    "logit_normal_lpdf": """  // log p of a probability whose log odds are Normal
  real logit_normal_lpdf(real x, real loc, real scale) {
    return normal_lpdf(logit(x) | loc, scale) - log(x) - log1m(x);
  }
""",
    "zero_inflated": """  // log p of a count that is 0 with the probability gate, else of the log probability log_p
  real zero_inflated(int x, real gate, real log_p) {
    return x == 0 ? log_sum_exp(log(gate), log1m(gate) + log_p) : log1m(gate) + log_p;
  }
""",
    "continuous_bernoulli_lpdf": """  // x log p + (1 - x) log(1 - p), normalised over 0 to 1
  real continuous_bernoulli_lpdf(real x, real logits) {
    real size = abs(logits);
    if (size < 0.01) {
      return logits * x - 0.5 * logits - square(logits) / 24;
    }
    return logits * x - fmax(logits, 0) - log1m_exp(-size) + log(size);
  }
""",
    "normal_mixture_lpdf": """  // log p of a mixture of Normals
  real normal_mixture_lpdf(real x, vector weights, vector locs, vector scales) {
    vector[size(locs)] found;
    for (k in 1:size(locs)) {
      found[k] = log_clamped(weights[k] / sum(weights)) + normal_lpdf(x | locs[k], scales[k]);
    }
    return log_sum_exp(found);
  }
""",
    "logistic_normal_lpdf": """  // log p of probabilities whose log ratios to the last one are Normal
  real logistic_normal_lpdf(vector x, vector loc, vector scale) {
    int n = size(x);
    return normal_lpdf(log(x[1 : n - 1]) - log(x[n]) | loc, scale) - sum(log(x));
  }
""",
    "random_walk_lpdf": """  // log p of a walk from a start by Normal steps
  real random_walk_lpdf(vector x, real scale, real drift, real start) {
    int n = size(x);
    return normal_lpdf(x[1] | start, scale) + normal_lpdf(x[2 : n] - x[1 : n - 1] | drift, scale);
  }
""",
    "log_between": """  // log P(low < T <= high) of the logarithms of P(T <= x) and P(T > x), by the smaller ones
  real log_between(real below_low, real above_low, real below_high, real above_high) {
    return above_low < below_high ? log_diff_exp(above_low, above_high) : log_diff_exp(below_high, below_low);
  }
""",
    "log_normalised": """  // log p, made to add up to 1; finite for a p of 0
  vector log_normalised(vector p) {
    vector[size(p)] found;
    for (k in 1:size(p)) {
      found[k] = log_clamped(p[k] / sum(p));
    }
    return found;
  }
""",
    "log_clamped": """  // log p, finite for a p of 0
  real log_clamped(real p) {
    return p > 1e-300 ? log(p) : log(1e-300);
  }
""",
    "uniform_counts": """  // log p of 0, 1, ... where each from low to high has the same
  vector uniform_counts(real low, real high, int count) {
    vector[count] found;
    for (k in 1:count) {
      found[k] = k - 1 >= low && k - 1 <= high ? -log(high - low + 1) : negative_infinity();
    }
    return found;
  }
""",
    "bspline": """  // at x, the B-spline j of a degree on knots whose ends stand there once
  real bspline(real x, int j, vector knots, int degree) {
    int n = num_elements(knots);
    vector[degree + 1] b;
    for (i in 0 : degree) {
      real low = knots[min(max(j + i - degree, 1), n)];
      real high = knots[min(max(j + i + 1 - degree, 1), n)];
      b[i + 1] = low < high && low <= x && (x < high || (x == high && high == knots[n]));
    }
    for (order in 1 : degree) {
      for (i in 0 : degree - order) {
        real low = knots[min(max(j + i - degree, 1), n)];
        real after = knots[min(max(j + i + 1 - degree, 1), n)];
        real before = knots[min(max(j + i + order - degree, 1), n)];
        real high = knots[min(max(j + i + order + 1 - degree, 1), n)];
        b[i + 1] = (low < before ? (x - low) / (before - low) * b[i + 1] : 0)
                   + (after < high ? (high - x) / (high - after) * b[i + 2] : 0);
      }
    }
    return b[1];
  }
""",
    "zero_sum": """  // the vector that adds up to 0 with these coordinates in an orthonormal basis
  vector zero_sum(vector contrasts) {
    int n = num_elements(contrasts) + 1;
    vector[n] found = rep_vector(0, n);
    for (k in 1 : n - 1) {
      real x = contrasts[k] / sqrt(k * (k + 1.0));
      found[1 : k] += x;
      found[k + 1] -= k * x;
    }
    return found;
  }
""",
    "hsgp": """  // at x, function j of the basis of a Gaussian process on c times the range from low to high
  real hsgp(real x, int j, real low, real high, real c) {
    real half = 0.5 * c * (high - low);
    return sin(hsgp_frequencies(j, low, high, c) * (x - 0.5 * (low + high) + half)) / sqrt(half);
  }
""",
    "hsgp_frequencies": """  // the frequency of function j of that basis
  real hsgp_frequencies(int j, real low, real high, real c) {
    return j * pi() / (c * (high - low));
  }
""",
}
"""Functions that a file has where it calls them; the later are called by the earlier."""

RANDOM = (
    "Normal", "LogNormal", "Cauchy", "StudentT", "Laplace", "Gumbel", "Exponential", "Gamma", "InverseGamma", "Chi2",
    "Weibull", "Pareto", "Uniform", "Beta", "VonMises", "Bernoulli", "Binomial", "BetaBinomial", "Poisson",
)  # fmt: skip
"""Families whose predictions are drawn in generated quantities."""

_WORDS = """
    for in while repeat until if then else true false target functions model data parameters quantities transformed
    generated profile return break continue void int real complex vector simplex unit_vector ordered tuple lower upper
    positive_ordered row_vector matrix cholesky_factor_corr cholesky_factor_cov corr_matrix cov_matrix array
    offset multiplier print reject fatal_error struct typedef export auto extern var static sum_to_zero_vector
    alignas alignof and and_eq asm bitand bitor bool case catch char char16_t char32_t class compl const constexpr
    const_cast decltype default delete do double dynamic_cast enum explicit float friend goto inline long mutable
    namespace new noexcept not not_eq nullptr operator or or_eq private protected public register reinterpret_cast
    short signed sizeof static_assert static_cast switch template this thread_local throw try typeid typename union
    unsigned using virtual volatile wchar_t xor xor_eq stan math std STAN_MAJOR STAN_MINOR STAN_MATH_MAJOR
    STAN_MATH_MINOR complex_vector complex_matrix complex_row_vector stochastic_column_matrix stochastic_row_matrix
"""
_CALLED = """
    size log sum rep_vector rep_array append_row is_nan dot_product dot_self to_vector cholesky_decompose inverse inv
    fmax abs square exp logit log1m normal_lpdf log_diff_exp log1m_exp positive_infinity negative_infinity not_a_number
    log_softmax inv_logit log_sum_exp
"""
_DENSITIES = [name for template, _ in FAMILIES.values() for name in re.findall(r"(\w+)\(", template)]


BASES = {"bspline": "min max num_elements", "hsgp": "min max sin sqrt pi", "hsgp_frequencies": "min max pi"}
"""Bases of functions, an element of which a helper computes, and what the helper calls."""


def reserved(functions: Iterable[str]) -> set[str]:
    """Words of the language and of the C++ below it, and what an export calls that has these of our functions."""
    functions = list(functions)
    called = [name for function in functions for name in re.findall(r"(\w+)\(", _TEMPLATES.get(function, ""))]
    inner = " ".join(BASES.get(function, "") for function in functions)
    return {*_WORDS.split(), *_CALLED.split(), *HELPERS, *_DENSITIES, *called, *inner.split()}
