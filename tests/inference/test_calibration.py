"""Simulation-based calibration of the compiled sampler: ranks are uniform, and those of a wrong program are not."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from qvr_core.dsl import loads
from qvr_core.inference import calibration
from qvr_core.inference.calibration import calibrate, verdict

Observed = dict[str, Tensor]


def reals(*shape: int) -> Observed:
    return {"y": torch.zeros(shape, dtype=torch.float64)}


def wholes(*shape: int) -> Observed:
    return {"y": torch.zeros(shape, dtype=torch.int64)}


NORMAL = """
object Row : FinSet 10
program normal : Row -> Row
    sample mu <- Normal(0.0, 1.0)
    sample sigma <- HalfNormal(1.0)
    observe y : Row <- Normal(mu, sigma)
    return mu
"""
SIMPLEX = """
object Row : FinSet 20
object Kind : FinSet 3
program simplex : Row -> Row
    sample p <- Dirichlet([1.0, 2.0, 3.0])
    observe y : Row <- Categorical(p)
    return p
"""
MIXTURE = """
object Row : FinSet 20
object Kind : FinSet 2
program mixture : Row -> Row
    sample share <- Beta(2.0, 2.0)
    sample c : Ordered 2 <- Normal(0.0, 2.0)
    marginalize z : Row <- Categorical([share, 1 - share])
        observe y : Row <- Normal(c[z], 0.7)
    return c
"""
HIERARCHICAL = """
object Group : FinSet 8
program hierarchical : Group -> Group
    sample mu <- Normal(0.0, 2.0)
    sample tau <- HalfNormal(1.0)
    sample theta : Group <- Normal(mu, tau) [noncentred]
    observe y : Group <- Normal(theta, 1.0)
    return theta
"""
ORDERED = """
object Row : FinSet 30
object Rating : FinSet 4
program ordered : Row -> Row
    sample b <- Normal(0.0, 1.0)
    sample cuts : Ordered 3 <- Normal(0.0, 2.0)
    observe y : Row <- OrderedLogistic(b, cuts)
    return cuts
"""
PROGRAMS = {
    "normal": (NORMAL, reals(10)),
    "simplex": (SIMPLEX, wholes(20)),
    "mixture": (MIXTURE, reals(20)),
    "hierarchical": (HIERARCHICAL, reals(8)),
    "ordered": (ORDERED, wholes(30)),
}


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing falls back to chains of one execution unnoticed."""

    def refused(*_: object) -> None:
        raise AssertionError("chains of torch")

    monkeypatch.setattr("qvr_core.inference.mcmc.chains.Stepwise", refused)


@pytest.mark.slow
@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("name", PROGRAMS)
def test_five_hundred_replicates_are_uniform(name: str) -> None:
    text, observed = PROGRAMS[name]
    ranks = calibrate(loads(text).morphism, {}, observed, 500, seed=3)
    assert ranks
    assert {rank.name: verdict(rank) for rank in ranks} == {rank.name: "uniform" for rank in ranks}


@pytest.mark.slow
@pytest.mark.usefixtures("compiled")
def test_a_prior_of_half_the_scale_in_the_fit_is_seen() -> None:
    wrong = loads(HIERARCHICAL.replace("tau <- HalfNormal(1.0)", "tau <- HalfNormal(0.5)")).morphism
    ranks = calibrate(loads(HIERARCHICAL).morphism, {}, reals(8), 200, fitted=wrong, seed=3)
    (tau,) = (rank for rank in ranks if rank.name == "tau")
    assert not tau.passed and verdict(tau) == "not uniform: the posterior lies too low"


CORRELATED = """
object Row : FinSet 10
program correlated : Row -> Row
    sample L : CholeskyFactor 2 <- LKJCholesky(2.0)
    observe y : Row <- MultivariateNormal([0.0, 0.0], scale_tril=L)
    return L
"""


@pytest.mark.usefixtures("compiled")
def test_numbers_that_nothing_moves_have_no_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "WARMUP", 20)
    monkeypatch.setattr(calibration, "THIN", 1)
    ranks = calibrate(loads(CORRELATED).morphism, {}, reals(10, 2), 12, seed=1)
    assert [rank.name for rank in ranks] == ["L[1, 0]", "L[1, 1]"]


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.sampled(2)
def test_a_replicate_is_the_chain_that_it_would_be_alone(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Code that is compared with the program once for all changes no rank."""
    monkeypatch.setattr(calibration, "WARMUP", 50)
    monkeypatch.setattr(calibration, "THIN", 1)
    text, observed = PROGRAMS[name]
    model = loads(text).morphism
    once = calibrate(model, {}, observed, 12, seed=1)
    alone = calibration.machine_density
    monkeypatch.setattr(calibration, "machine_density", lambda one, start, like: alone(one, start))
    assert once == calibrate(model, {}, observed, 12, seed=1)
