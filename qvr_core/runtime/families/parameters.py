"""Parameters and supports that many families share."""

from __future__ import annotations

from dataclasses import replace

from qvr_core.semantics.language.family import Parameter, Support

REAL = Support("real")
POSITIVE = Support("real", 0.0)
UNIT = Support("real", 0.0, 1.0)
COUNT = Support("count", 0.0)
CATEGORIES = Support("finite")

LOC = Parameter("loc", aliases=("mu",))
MEAN = replace(LOC, aliases=("mu", "mean"))
"""A location that is the mean of what is drawn."""
LOC_VECTOR = replace(LOC, shape="vector")
MEAN_VECTOR = replace(MEAN, shape="vector")
SCALE = Parameter("scale", constraint="positive", aliases=("sigma",))
DEVIATION = replace(SCALE, aliases=("sigma", "std", "sd", "stddev"))
"""A scale that is the standard deviation of what is drawn."""
RATE = Parameter("rate", constraint="positive", aliases=("lam", "lambda_"))
DF = Parameter("df", constraint="positive", aliases=("nu",))
LOW = Parameter("low", aliases=("a", "lower"))
HIGH = Parameter("high", aliases=("b", "upper"))
TRIALS = Parameter("total", constraint="natural", aliases=("total_count", "n"), raw="none")
PROBS = Parameter("probs", constraint="unit", aliases=("p", "prob"), alternatives=(("logits", "real"),))
CLASS_PROBS = Parameter("probs", "vector", "simplex", ("p", "weights"), alternatives=(("logits", "real"),))
SCALE_TRIL = Parameter(
    "scale_tril",
    "matrix",
    "lower triangular",
    ("cholesky", "L"),
    alternatives=(("covariance_matrix", "positive definite"), ("precision_matrix", "positive definite")),
    raw="triangle",
)


def positive_parameter(name: str, *aliases: str) -> Parameter:
    """A number above 0."""
    return Parameter(name, constraint="positive", aliases=aliases)
