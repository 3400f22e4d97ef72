"""The family that a name means which is none: misspelt, or called as in another package."""

from __future__ import annotations

from qvr_core.semantics.families import FAMILIES
from qvr_core.semantics.spelling import closest

# Small letters without `_`: Stan's, PyMC's, NumPyro's, R's and the books' words.
_ELSEWHERE = {
    "n": "Normal", "norm": "Normal", "gaussian": "Normal", "gauss": "Normal", "t": "StudentT", "student": "StudentT",
    "studentst": "StudentT", "halfgaussian": "HalfNormal", "halft": "HalfStudentT", "halfstudent": "HalfStudentT",
    "truncnormal": "TruncatedNormal", "truncnorm": "TruncatedNormal", "logn": "LogNormal", "lnorm": "LogNormal",
    "logitn": "LogitNormal", "u": "Uniform", "unif": "Uniform", "flat": "Uniform", "exp": "Exponential",
    "expon": "Exponential", "invgamma": "InverseGamma", "invg": "InverseGamma", "doubleexponential": "Laplace",
    "chisquare": "Chi2", "chisquared": "Chi2", "chisq": "Chi2", "vonmisesfisher": "VonMises", "bern": "Bernoulli",
    "binom": "Binomial", "cat": "Categorical", "discrete": "Categorical", "geom": "Geometric", "pois": "Poisson",
    "nb": "NegativeBinomial", "negbin": "NegativeBinomial", "negbinom": "NegativeBinomial",
    "negbinomial": "NegativeBinomial", "negbinomial2": "NegativeBinomial", "zip": "ZeroInflatedPoisson",
    "orderedlogit": "OrderedLogistic", "dir": "Dirichlet", "mvn": "MultivariateNormal",
    "mvnormal": "MultivariateNormal", "multinormal": "MultivariateNormal", "multivariategaussian": "MultivariateNormal",
    "invwishart": "InverseWishart", "lkj": "LKJCholesky", "lkjcorr": "LKJCholesky", "lkjcorrcholesky": "LKJCholesky",
    "mixture": "MixtureNormal", "normalmixture": "MixtureNormal", "gaussianmixture": "MixtureNormal",
    "mixturesamefamily": "MixtureNormal",
}  # fmt: skip


def likely_family(name: str) -> str | None:
    """The family that was probably meant, or None."""
    return _ELSEWHERE.get(name.lower().replace("_", "")) or closest(name, FAMILIES)
