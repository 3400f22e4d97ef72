"""The family that a name means which is none: misspelt, or called as in another package."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from qvr_core.semantics.language.prelude import EVERY_FAMILY
from qvr_core.semantics.language.spelling import closest
from qvr_core.syntax.immutable import immutable

# Small letters without `_`: Stan's, PyMC's, NumPyro's, R's and the books' words, for the same parameters in this order.
_ELSEWHERE = {
    "n": "Normal", "norm": "Normal", "gaussian": "Normal", "gauss": "Normal", "t": "StudentT", "student": "StudentT",
    "studentst": "StudentT", "halfgaussian": "HalfNormal", "halft": "HalfStudentT", "halfstudent": "HalfStudentT",
    "truncnormal": "TruncatedNormal", "logn": "LogNormal", "lnorm": "LogNormal",
    "logitn": "LogitNormal", "u": "Uniform", "unif": "Uniform", "exp": "Exponential",
    "invgamma": "InverseGamma",
    "invgaussian": "Wald", "inversegaussian": "Wald", "expmodnormal": "ExGaussian", "doubleexponential": "Laplace",
    "chisquare": "Chi2", "chisquared": "Chi2", "chisq": "Chi2", "bern": "Bernoulli",
    "binom": "Binomial", "cat": "Categorical", "discrete": "Categorical", "geom": "Geometric", "pois": "Poisson",
    "zip": "ZeroInflatedPoisson", "orderedlogit": "OrderedLogistic", "dir": "Dirichlet",
    "multinormalcholesky": "MultivariateNormal", "multivariatenormalcholesky": "MultivariateNormal",
    "lkjcorrcholesky": "LKJCholesky", "normalmixture": "MixtureNormal", "gaussianmixture": "MixtureNormal",
}  # fmt: skip


@immutable
class Foreign:
    """A family of another package whose arguments mean something else than those of the nearest `family` here.

    `difference` says how, behind the family's name; `arguments` are what its positional arguments `{0}`, `{1}` become
    (empty where nothing does); `same` says that both are the same distributions, so that a head of a kernel, whose
    parameters a network gives, may simply be renamed.
    """

    family: str
    difference: str
    arguments: tuple[str, ...] = ()
    same: bool = True


_MEAN_AND_DISPERSION = Foreign(
    "NegativeBinomial",
    "takes (total, probs), with the mean total * probs / (1 - probs), not a mean and a dispersion",
    ("{1}", "{0} / ({0} + {1})"),
)
_SHAPE_AND_RATE = Foreign(
    "NegativeBinomial",
    "takes (total, probs), with the mean total * probs / (1 - probs), not a shape and an inverse scale",
    ("{0}", "1.0 / (1.0 + {1})"),
)
_TOTAL_AND_FAILURE = Foreign(
    "NegativeBinomial",
    "takes (total, probs), with the mean total * probs / (1 - probs): its probs are 1 minus those of R and scipy",
    ("{0}", "1.0 - {1}"),
)
_AMBIGUOUS = Foreign("NegativeBinomial", "takes (total, probs), with the mean total * probs / (1 - probs)")
_COVARIANCE = Foreign(
    "MultivariateNormal",
    "takes the Cholesky factor of the covariance; write `covariance_matrix=` for the covariance itself",
    ("{0}", "covariance_matrix={1}"),
)
_MIXTURE = Foreign("MixtureNormal", "takes (weights, locs, scales) and mixes Normals only", same=False)
_CORRELATION = Foreign("LKJCholesky", "takes (concentration) and draws the Cholesky factor of the correlation matrix")

_FOREIGN = {
    "negbinomial2": _MEAN_AND_DISPERSION,
    "negativebinomial2": _MEAN_AND_DISPERSION,
    "negbinomial": _SHAPE_AND_RATE,
    "gammapoisson": _SHAPE_AND_RATE,
    "nbinom": _TOTAL_AND_FAILURE,
    "nb": _AMBIGUOUS,
    "negbin": _AMBIGUOUS,
    "negbinom": _AMBIGUOUS,
    "nbinomial": _AMBIGUOUS,
    "mvn": _COVARIANCE,
    "mvnormal": _COVARIANCE,
    "multinormal": _COVARIANCE,
    "multivariategaussian": _COVARIANCE,
    "multinormalprec": Foreign(
        "MultivariateNormal",
        "takes the Cholesky factor of the covariance; write `precision_matrix=` for the precision",
        ("{0}", "precision_matrix={1}"),
    ),
    "vonmisesfisher": Foreign("VonMises", "draws an angle around loc, not a direction in space", same=False),
    "truncnorm": Foreign("TruncatedNormal", "takes (loc, scale, low, high), with the bounds as they are"),
    "expon": Foreign("Exponential", "takes (rate), which is 1 / scale"),
    "invwishart": Foreign("InverseWishart", "takes (df, scale_tril), the second a Cholesky factor"),
    "lkj": _CORRELATION,
    "lkjcorr": _CORRELATION,
    "mixture": _MIXTURE,
    "mixturesamefamily": _MIXTURE,
    "bernoullilogit": Foreign("Bernoulli", "takes log odds as `logits=`", ("logits={0}",)),
    "bernoullilogits": Foreign("Bernoulli", "takes log odds as `logits=`", ("logits={0}",)),
    "binomiallogit": Foreign("Binomial", "takes log odds as `logits=`", ("{0}", "logits={1}")),
    "categoricallogit": Foreign("Categorical", "takes log weights as `logits=`", ("logits={0}",)),
    "categoricallogits": Foreign("Categorical", "takes log weights as `logits=`", ("logits={0}",)),
    "poissonlog": Foreign("Poisson", "takes (rate), not its logarithm", ("exp({0})",)),
}


def likely_family(name: str, families: Iterable[str] = EVERY_FAMILY) -> str | None:
    """The family, of those that may stand there, that was probably meant, with the same parameters in the same order;
    or None."""
    if foreign_family(name) is not None and _folded(name) not in map(_folded, families):
        return None
    return _ELSEWHERE.get(_folded(name)) or closest(name, families)


def foreign_family(name: str) -> Foreign | None:
    """What a name means elsewhere, where no family here takes the same arguments."""
    return None if name in EVERY_FAMILY else _FOREIGN.get(_folded(name))


def converted(foreign: Foreign, arguments: Sequence[str]) -> str | None:
    """The call that means what the foreign one does with these arguments; None where that is not known."""
    wanted = {int(digit) for part in foreign.arguments for digit in re.findall(r"\{(\d)\}", part)}
    if not wanted or len(arguments) != len(wanted):
        return None
    texts = [text if re.fullmatch(r"[\w.]+(\([^()]*\)|\[[^\[\]]*\])?", text) else f"({text})" for text in arguments]
    return f"{foreign.family}({', '.join(part.format(*texts) for part in foreign.arguments)})"


def _folded(name: str) -> str:
    return name.lower().replace("_", "")
