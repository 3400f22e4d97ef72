"""The families: one table that the checker, the editor and the runtime read (docs/reference.md#families).

A *head* is a family on a kernel (`~ Normal`): a network gives its raw parameters.  A *step* names a family with
arguments (`sample mu <- Normal(0.0, 1.0)`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from qvr_core.semantics.types.spaces import Constrained, Finite, Product, Real, Space, Unknown


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a family.

    `shape` is 'element' (broadcasts with the value), 'vector' (over a last axis of its own) or 'matrix'.  `constraint`
    is 'real', 'positive', 'unit' (0 to 1), 'natural', 'simplex', 'ordered', 'positive vector' or 'lower triangular'.
    `alternatives` are other parametrisations under their own names (`logits` for `probs`): an argument so named stands
    in the model under that name, with the constraint given here.
    """

    name: str
    shape: str = "element"
    constraint: str = "real"
    aliases: tuple[str, ...] = ()
    default: float | None = None
    alternatives: tuple[tuple[str, str], ...] = ()

    @property
    def rank(self) -> int:
        """How many of an argument's last axes are its own: 0, 1 or 2."""
        return ("element", "vector", "matrix").index(self.shape)


@dataclass(frozen=True, slots=True)
class Support:
    """Where the draws live.  `kind` is 'real', 'count' (0, 1, 2, …), 'finite', 'Simplex', 'CholeskyFactor' or
    'Covariance'; the bounds are those of a real support that no argument changes."""

    kind: str
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Family:
    """A family.

    `event` is the rank of one draw (0 scalar, 1 vector, 2 matrix).  `noise` is the base of its standardised noise:
    'normal', 'uniform', 'value' (the value itself) or 'discrete' (`qvr_core.runtime.values.arrow.NoiseSpec`).
    `bounded_by` are the parameters that bound the support (Uniform).  `head_options` are whole-number options that only
    a head of this family takes, with their defaults.
    """

    name: str
    parameters: tuple[Parameter, ...]
    support: Support
    noise: str
    summary: str
    event: int = 0
    bounded_by: tuple[str, str] | None = None
    head_options: Mapping[str, int] = field(default_factory=dict[str, int])

    @property
    def discrete(self) -> bool:
        return self.support.kind in ("finite", "count")

    @property
    def has_scale(self) -> bool:
        """True where the option `scale=` of a kernel has an effect."""
        spread = {"scale", "scales", "row_scale_tril", "scale_tril"}
        return self.support.kind != "Covariance" and any(p.name in spread for p in self.parameters)


REAL = Support("real")
POSITIVE = Support("real", 0.0)
UNIT = Support("real", 0.0, 1.0)
COUNT = Support("count", 0.0)
FINITE = Support("finite")

LOC = Parameter("loc", aliases=("mu", "mean"))
SCALE = Parameter("scale", constraint="positive", aliases=("sigma", "std", "sd", "stddev"))
RATE = Parameter("rate", constraint="positive", aliases=("lam", "lambda_"))
DF = Parameter("df", constraint="positive", aliases=("nu",))
PROBS = Parameter("probs", constraint="unit", aliases=("p", "prob"), alternatives=(("logits", "real"),))
CLASS_PROBS = Parameter("probs", "vector", "simplex", ("p", "weights"), alternatives=(("logits", "real"),))
SCALE_TRIL = Parameter(
    "scale_tril",
    "matrix",
    "lower triangular",
    ("cholesky", "L"),
    alternatives=(("covariance_matrix", "positive definite"), ("precision_matrix", "positive definite")),
)


def _defaulted(parameter: Parameter, value: float) -> Parameter:
    return Parameter(
        parameter.name, parameter.shape, parameter.constraint, parameter.aliases, value, parameter.alternatives
    )


def _positive(name: str, *aliases: str) -> Parameter:
    return Parameter(name, constraint="positive", aliases=aliases)


_TABLE = (
    Family("Normal", (LOC, SCALE), REAL, "normal", "bell curve around loc with standard deviation scale"),
    Family("LogNormal", (LOC, SCALE), POSITIVE, "normal", "exp of a Normal"),
    Family("LogitNormal", (LOC, SCALE), UNIT, "normal", "sigmoid of a Normal"),
    Family("HalfNormal", (SCALE,), POSITIVE, "uniform", "absolute value of a centred Normal"),
    Family("HalfCauchy", (SCALE,), POSITIVE, "uniform", "absolute value of a centred Cauchy"),
    Family("Cauchy", (LOC, SCALE), REAL, "uniform", "heavy-tailed, without a mean"),
    Family(
        "StudentT",
        (DF, _defaulted(LOC, 0.0), _defaulted(SCALE, 1.0)),
        REAL,
        "value",
        "Normal with heavy tails; df large is Normal",
    ),
    Family("HalfStudentT", (DF, _defaulted(SCALE, 1.0)), POSITIVE, "value", "absolute value of a centred StudentT"),
    Family("Laplace", (LOC, SCALE), REAL, "uniform", "two exponential tails around loc"),
    Family("Gumbel", (LOC, SCALE), REAL, "uniform", "maximum of many draws"),
    Family(
        "Uniform",
        (Parameter("low", aliases=("a", "lower")), Parameter("high", aliases=("b", "upper"))),
        REAL,
        "uniform",
        "flat between low and high",
        bounded_by=("low", "high"),
    ),
    Family("Exponential", (RATE,), POSITIVE, "uniform", "waiting time at a constant rate"),
    Family(
        "Gamma",
        (_positive("concentration", "alpha", "shape"), _positive("rate", "beta")),
        POSITIVE,
        "value",
        "mean concentration / rate",
    ),
    Family(
        "InverseGamma",
        (_positive("concentration", "alpha", "shape"), _positive("rate", "beta", "scale")),
        POSITIVE,
        "value",
        "1 over a Gamma",
    ),
    Family(
        "Beta",
        (_positive("a", "alpha", "concentration1"), _positive("b", "beta", "concentration0")),
        UNIT,
        "value",
        "a probability; a and b count successes and failures",
    ),
    Family(
        "Kumaraswamy",
        (_positive("a", "concentration1", "alpha"), _positive("b", "concentration0", "beta")),
        UNIT,
        "uniform",
        "like Beta, with a closed-form inverse cdf",
    ),
    Family("Chi2", (DF,), POSITIVE, "value", "sum of df squared standard Normals"),
    Family(
        "Weibull",
        (SCALE, _positive("concentration", "shape", "k")),
        POSITIVE,
        "uniform",
        "survival time with a rate that rises or falls",
    ),
    Family("Pareto", (SCALE, _positive("alpha", "shape")), POSITIVE, "uniform", "power law above scale"),
    Family(
        "VonMises",
        (LOC, _positive("concentration", "kappa")),
        Support("real", -math.pi, math.pi),
        "value",
        "an angle around loc",
    ),
    Family(
        "TruncatedNormal",
        (
            LOC,
            SCALE,
            Parameter("low", aliases=("a", "lower"), default=-math.inf),
            Parameter("high", aliases=("b", "upper"), default=math.inf),
        ),
        REAL,
        "uniform",
        "Normal cut off at low and high",
        bounded_by=("low", "high"),
    ),
    Family("Bernoulli", (PROBS,), Support("finite", 0.0, 1.0), "discrete", "0 or 1"),
    Family("ContinuousBernoulli", (PROBS,), UNIT, "uniform", "Bernoulli for values between 0 and 1"),
    Family(
        "Binomial",
        (Parameter("total", constraint="natural", aliases=("total_count", "n")), PROBS),
        COUNT,
        "discrete",
        "successes in total trials",
        head_options={"total": 1},
    ),
    Family("Categorical", (CLASS_PROBS,), FINITE, "discrete", "one of k values with probabilities probs"),
    Family("Geometric", (PROBS,), COUNT, "discrete", "failures before the first success"),
    Family("Poisson", (RATE,), COUNT, "discrete", "a count with mean rate"),
    Family(
        "NegativeBinomial",
        (_positive("total", "total_count", "concentration", "r"), PROBS),
        COUNT,
        "discrete",
        "an overdispersed count",
    ),
    Family(
        "ZeroInflatedPoisson",
        (Parameter("gate", constraint="unit", alternatives=(("gate_logits", "real"),)), RATE),
        COUNT,
        "discrete",
        "a Poisson, or zero with probability gate",
    ),
    Family(
        "OrderedLogistic",
        (Parameter("predictor", aliases=("eta",)), Parameter("cutpoints", "vector", "ordered", ("cuts",))),
        FINITE,
        "discrete",
        "an ordered category by the interval of cutpoints that predictor plus noise falls into",
    ),
    Family(
        "Dirichlet",
        (Parameter("concentration", "vector", "positive vector", ("alpha",)),),
        Support("Simplex"),
        "value",
        "a probability vector",
        event=1,
    ),
    Family(
        "LogisticNormal",
        (
            Parameter("loc", "vector", "real", ("mu", "mean")),
            Parameter("scale", "vector", "positive vector", ("sigma", "std", "sd", "stddev")),
        ),
        Support("Simplex"),
        "normal",
        "a probability vector: softmax of Normals, the last logit fixed at 0",
        event=1,
    ),
    Family(
        "MultivariateNormal",
        (Parameter("loc", "vector", "real", ("mu", "mean")), SCALE_TRIL),
        REAL,
        "normal",
        "correlated Normals",
        event=1,
    ),
    Family(
        "LowRankMultivariateNormal",
        (
            Parameter("loc", "vector", "real", ("mu", "mean")),
            Parameter("cov_factor", "matrix", "real", ("factor",)),
            Parameter("cov_diag", "vector", "positive vector", ("diag",)),
        ),
        REAL,
        "normal",
        "correlated Normals with covariance factor · factorᵀ + diag",
        event=1,
        head_options={"rank": 1},
    ),
    Family(
        "MatrixNormal",
        (
            Parameter("loc", "matrix", "real", ("mu", "mean")),
            Parameter("row_scale_tril", "matrix", "lower triangular", ("row_scale", "row_cov_tril")),
            Parameter("column_scale_tril", "matrix", "lower triangular", ("col_scale_tril", "col_scale")),
        ),
        REAL,
        "normal",
        "a matrix whose rows and columns are correlated",
        event=2,
    ),
    Family(
        "Wishart", (DF, SCALE_TRIL), Support("Covariance"), "value", "a covariance matrix with mean df · Σ", event=2
    ),
    Family("InverseWishart", (DF, SCALE_TRIL), Support("Covariance"), "value", "inverse of a Wishart matrix", event=2),
    Family(
        "LKJCholesky",
        (
            Parameter("concentration", constraint="positive", aliases=("eta",), default=1.0),
            Parameter("dim", constraint="natural", aliases=("d",), default=math.nan),
        ),
        Support("CholeskyFactor"),
        "value",
        "Cholesky factor of a random correlation matrix; its size comes from the ascription or `dim`",
        event=2,
    ),
    Family("Horseshoe", (_defaulted(SCALE, 1.0),), REAL, "value", "sparse: a Normal with a HalfCauchy local scale"),
    Family(
        "MixtureNormal",
        (
            Parameter("weights", "vector", "simplex", ("probs", "w"), alternatives=(("logits", "real"),)),
            Parameter("locs", "vector", "real", ("loc", "means", "mu")),
            Parameter("scales", "vector", "positive vector", ("scale", "stds", "sigma")),
        ),
        REAL,
        "value",
        "a mixture of Normals, components along the last axis",
        head_options={"components": 2},
    ),
)

FAMILIES: Mapping[str, Family] = {family.name: family for family in _TABLE}
"""Every family by name."""


# ---------------------------------------------------------------- heads


def head_problem(family: Family, codomain: Space) -> str | None:
    """Why a kernel head of `family` cannot land in `codomain`, in words, or None where it can."""
    if isinstance(codomain, Unknown):
        return None
    factors = codomain.factors if isinstance(codomain, Product) else (codomain,)
    for factor in factors:
        if not isinstance(factor, Unknown) and (problem := _factor_problem(family, factor)) is not None:
            return problem
    if len(factors) > 1 and family.support.kind in ("Simplex", "CholeskyFactor", "Covariance"):
        return f"{family.name} draws one {family.support.kind}, not a product"
    return None


def _factor_problem(family: Family, space: Space) -> str | None:
    kind = family.support.kind
    if isinstance(space, Finite):
        return _finite_problem(family, space)
    if isinstance(space, Real):
        if kind == "finite" and family.name != "Bernoulli":
            return f"{family.name} draws from a finite set, but the codomain is real"
        if kind in ("Simplex", "CholeskyFactor", "Covariance"):
            return f"{family.name} draws from `{kind}`, but the codomain is plain `Real`"
        return None if family.bounded_by or within(family.support, space) else _bounds_problem(family, space)
    if isinstance(space, Constrained):
        return None if space.kind == kind else f"{family.name} draws {_words(family)}, not from `{space.kind}`"
    return f"{family.name} cannot draw a sequence"


def _finite_problem(family: Family, space: Finite) -> str | None:
    if family.name == "Bernoulli" and isinstance(space.size, int) and space.size != 2:
        return f"Bernoulli draws 0 or 1, but the codomain has {space.size} elements"
    if family.support.kind == "finite" or family.name == "Binomial":
        return None
    return f"{family.name} draws {_words(family)}, but the codomain is a finite set"


def _bounds_problem(family: Family, space: Real) -> str:
    return f"{family.name} draws {_words(family)}, but the codomain is bounded ({_interval(space.low, space.high)})"


def within(support: Support, space: Real) -> bool:
    """True where every draw with this support lies inside the bounds of `space`."""
    low_fits = space.low is None or (support.low is not None and support.low >= space.low)
    # a bound of π is written with a few digits, and a Binomial's total is not known to the table
    high_fits = (
        space.high is None
        or support.kind == "count"
        or (support.high is not None and support.high <= space.high + 1e-3)
    )
    return low_fits and high_fits


def _interval(low: float | None, high: float | None) -> str:
    left = "-∞" if low is None else f"{low:g}"
    right = "∞" if high is None else f"{high:g}"
    return f"{left} to {right}"


def _words(family: Family) -> str:
    support = family.support
    if support.kind == "real":
        if support.low is None and support.high is None:
            return "any real number" if family.event == 0 else "any real vector"
        return f"numbers from {_interval(support.low, support.high)}"
    if support.kind == "count":
        return "counts 0, 1, 2, …"
    return "from a finite set" if support.kind == "finite" else f"from `{support.kind}`"


def support_words(family: Family) -> str:
    """The support in words, for hovers and messages: 'any real number', 'counts 0, 1, 2, …'."""
    return _words(family)


def heads_for(codomain: Space) -> tuple[str, ...]:
    """The families whose support allows `codomain`, in the table's order."""
    return tuple(family.name for family in _TABLE if head_problem(family, codomain) is None)


def raw_blocks(family: Family, codomain: Space, options: Mapping[str, object]) -> tuple[tuple[str, int], ...]:
    """How a head's raw network output is cut: (parameter, width) in order, all sizes of `codomain` known.

    A finite product is one joint Categorical (for Bernoulli: one probability per factor).
    """
    width = event_width(codomain)
    name = family.name
    if name in ("Categorical", "OrderedLogistic"):
        size = cardinality(codomain)
        return (("probs", size),) if name == "Categorical" else (("predictor", 1), ("cutpoints", size - 1))
    if name == "Binomial":
        return (("probs", width),)
    if name == "LogisticNormal":
        return (("loc", width - 1), ("scale", width - 1))
    if name == "MultivariateNormal":
        return (("loc", width), ("scale_tril", triangle(width)))
    if name == "LowRankMultivariateNormal":
        rank = _whole(options, family, "rank")
        return (("loc", width), ("cov_factor", width * rank), ("cov_diag", width))
    if name == "MatrixNormal":
        rows, columns = matrix_shape(codomain)
        return (("loc", width), ("row_scale_tril", triangle(rows)), ("column_scale_tril", triangle(columns)))
    if isinstance(codomain, Constrained) and codomain.kind == "Covariance":
        assert isinstance(codomain.size, int)
        return (("df", 1), ("scale_tril", triangle(codomain.size)))
    if name == "LKJCholesky":
        return (("concentration", 1),)
    if name == "MixtureNormal":
        components = width * _whole(options, family, "components")
        return (("weights", components), ("locs", components), ("scales", components))
    return tuple((parameter.name, width) for parameter in family.parameters if not _from_codomain(family, parameter))


def _from_codomain(family: Family, parameter: Parameter) -> bool:
    # the bounds of a TruncatedNormal head are those of its codomain
    return family.name == "TruncatedNormal" and parameter.name in ("low", "high")


def raw_width(family: Family, codomain: Space, options: Mapping[str, object]) -> int:
    """Number P of raw parameters that a head of `family` into `codomain` needs; all sizes known."""
    return sum(width for _, width in raw_blocks(family, codomain, options))


def _whole(options: Mapping[str, object], family: Family, key: str) -> int:
    value = options.get(key, family.head_options[key])
    return value if isinstance(value, int) else family.head_options[key]


def triangle(size: int) -> int:
    """Entries of a lower triangular matrix."""
    return size * (size + 1) // 2


def event_width(space: Space) -> int:
    """Numbers in one draw: |A| for a real space, k for a simplex, d · d for a matrix, 1 per finite factor."""
    if isinstance(space, Real):
        return math.prod(_known(size) for size in space.shape)
    if isinstance(space, Constrained):
        size = _known(space.size)
        return size if space.kind == "Simplex" else size * size
    if isinstance(space, Product):
        return sum(event_width(factor) for factor in space.factors)
    return 1


def cardinality(space: Space) -> int:
    """Elements of a finite space, or of a product of finite spaces."""
    if isinstance(space, Finite):
        return _known(space.size)
    if isinstance(space, Product):
        return math.prod(cardinality(factor) for factor in space.factors)
    raise TypeError(f"not finite: {space}")


def matrix_shape(space: Space) -> tuple[int, int]:
    """Rows and columns of a `Real n m`; a space with one size is a column."""
    if isinstance(space, Real) and len(space.shape) == 2:
        return _known(space.shape[0]), _known(space.shape[1])
    return event_width(space), 1


def _known(size: object) -> int:
    if not isinstance(size, int):
        raise TypeError(f"size is not known yet: {size}")
    return size
