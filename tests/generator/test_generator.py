"""Programs of fixed seeds say what the interpreter says; the referee's densities are scipy's."""

from __future__ import annotations

import math

import pytest
from scipy import stats

from tests.generator.families import FAMILIES
from tests.generator.running import run
from tests.generator.writing import written

EVERY = ("torch", "nuts", "prior")
SCIPY = {
    "Normal": (stats.norm, lambda m, s: {"loc": m, "scale": s}, (0.3, 1.2), 0.7),
    "LogNormal": (stats.lognorm, lambda m, s: {"s": s, "scale": math.exp(m)}, (0.3, 1.2), 0.7),
    "HalfNormal": (stats.halfnorm, lambda s: {"scale": s}, (1.2,), 0.7),
    "HalfCauchy": (stats.halfcauchy, lambda s: {"scale": s}, (1.2,), 0.7),
    "Cauchy": (stats.cauchy, lambda m, s: {"loc": m, "scale": s}, (0.3, 1.2), -0.7),
    "StudentT": (stats.t, lambda df, m, s: {"df": df, "loc": m, "scale": s}, (2.5, 0.3, 1.2), -0.7),
    "Laplace": (stats.laplace, lambda m, s: {"loc": m, "scale": s}, (0.3, 1.2), -0.7),
    "Gumbel": (stats.gumbel_r, lambda m, s: {"loc": m, "scale": s}, (0.3, 1.2), -0.7),
    "Exponential": (stats.expon, lambda r: {"scale": 1.0 / r}, (1.7,), 0.7),
    "Gamma": (stats.gamma, lambda a, b: {"a": a, "scale": 1.0 / b}, (1.7, 0.8), 0.7),
    "InverseGamma": (stats.invgamma, lambda a, b: {"a": a, "scale": b}, (1.7, 0.8), 0.7),
    "Chi2": (stats.chi2, lambda df: {"df": df}, (2.5,), 0.7),
    "Weibull": (stats.weibull_min, lambda s, k: {"c": k, "scale": s}, (1.2, 1.7), 0.7),
    "Beta": (stats.beta, lambda a, b: {"a": a, "b": b}, (1.7, 0.8), 0.7),
    "TruncatedNormal": (
        stats.truncnorm,
        lambda m, s, a, b: {"a": (a - m) / s, "b": (b - m) / s, "loc": m, "scale": s},
        (0.3, 1.2, -1.0, 2.0),
        0.7,
    ),
    "VonMises": (stats.vonmises, lambda m, k: {"loc": m, "kappa": k}, (0.3, 1.2), 0.7),
    "Binomial": (stats.binom, lambda n, p: {"n": n, "p": p}, (5, 0.3), 2),
    "BetaBinomial": (stats.betabinom, lambda n, a, b: {"n": n, "a": a, "b": b}, (5, 1.7, 0.8), 2),
    "Poisson": (stats.poisson, lambda r: {"mu": r}, (1.7,), 2),
    "NegativeBinomial": (stats.nbinom, lambda r, p: {"n": r, "p": 1.0 - p}, (1.7, 0.3), 2),
}


@pytest.mark.parametrize("name", SCIPY)
def test_the_referee_has_the_densities_of_scipy(name: str) -> None:
    family, names, parameters, x = SCIPY[name]
    row, frozen = FAMILIES[name], family(**names(*parameters))
    wanted = frozen.logpmf(x) if row.discrete else frozen.logpdf(x)
    assert row.log_density(x, *parameters) == pytest.approx(wanted, rel=1e-12)
    if row.lower is not None and row.upper is not None:
        assert row.lower(x, *parameters) == pytest.approx(frozen.cdf(x), rel=1e-11)
        assert row.upper(x, *parameters) == pytest.approx(frozen.sf(x), rel=1e-11)


def test_a_seed_writes_one_program() -> None:
    assert written(11) == written(11)


@pytest.mark.long
def test_programs_say_what_is_computed_element_by_element() -> None:
    tally = run(range(50), EVERY)
    assert not tally.findings, "\n".join(finding.text for finding in tally.findings)


@pytest.mark.slow
def test_a_thousand_programs_say_what_is_computed_element_by_element() -> None:
    tally = run(range(1000, 2000), EVERY)
    assert not tally.findings, "\n".join(finding.text for finding in tally.findings)
