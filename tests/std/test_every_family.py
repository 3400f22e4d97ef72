"""Every family of the library, by what its text says: one that is added is tested by being there.

Arguments follow from the constraints of the parameters; reference values are quadratures and sums of the density.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, cast

import numpy as np
import pytest
import scipy.integrate
import scipy.stats as st
import torch
from torch import Tensor

from qvr_core.analysis import analyse
from qvr_core.dsl import loads
from qvr_core.export.targets import TARGETS, export
from qvr_core.inference import MCMC, NUTSKernel
from qvr_core.runtime.families import RuntimeFamily
from qvr_core.runtime.programs.declared.families import declared_family
from qvr_core.runtime.programs.handlers import by_rows, unconstrained
from qvr_core.semantics.language.family import Parameter
from qvr_core.semantics.language.prelude import PRELUDE_FAMILIES
from qvr_core.semantics.scope.scope import DistributionEntry

DRAWS = 20_000
MOST = 400
"""Counts that are summed over: the tails of those tested lie below."""
GIVEN = {"real": (0.4, -1.2, 0.9), "positive": (0.8, 2.3, 1.4), "unit": (0.3, 0.7, 0.45), "natural": (6.0, 9.0, 7.0)}
LATENT = {"real": "m", "positive": "exp(m)", "unit": "sigmoid(m)", "natural": "6"}
NAMES = list(PRELUDE_FAMILIES)


@pytest.fixture(autouse=True)
def double() -> Iterator[None]:
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def arguments(name: str, turn: int) -> list[float]:
    """One for each parameter, others for each."""
    found = enumerate(PRELUDE_FAMILIES[name].parameters)
    return [_one(GIVEN[one.constraint], turn + at) for at, one in found]


def _one(values: tuple[float, ...], at: int) -> float:
    return values[at % len(values)]


def call(name: str, parts: list[str]) -> str:
    return f"{name}({', '.join(parts)})"


def runtime(name: str) -> RuntimeFamily:
    arguments_ = [LATENT[one.constraint] for one in PRELUDE_FAMILIES[name].parameters]
    drawn = call(name, arguments_)
    snapshot = analyse(
        f"program p : One -> One\n    sample m <- Normal(0.0, 1.0)\n    sample x <- {drawn}\n    return x\n"
    )
    entry = snapshot.entries[name]
    assert isinstance(entry, DistributionEntry)
    return declared_family(entry.family, cast("Any", None))  # a family has no arrows


def density(family: RuntimeFamily, given: list[float]) -> Any:
    """exp of the log density at an array of numbers."""
    parameters = [torch.tensor(one) for one in given]
    return lambda x: family.log_prob(torch.as_tensor(np.asarray(x, dtype=float)), *parameters).exp().numpy()


def spread(family: RuntimeFamily, given: list[float]) -> np.ndarray[Any, Any]:
    """Draws of a family, in order."""
    generator = torch.Generator().manual_seed(11)
    assert family.draw is not None
    return np.sort(family.draw((DRAWS,), generator, *(torch.tensor(one) for one in given)).numpy())


def masses_between(
    family: RuntimeFamily, given: list[float], low: float, high: float, breaks: list[float]
) -> list[tuple[float, float]]:
    """The integrals of the density from one number to another, in pieces: where each ends, and what it is."""
    ends = [low, *sorted(at for at in breaks if low < at < high), high]
    pdf = density(family, given)
    return [
        (piece[1], scipy.integrate.quad(pdf, *piece, epsabs=1e-11, epsrel=1e-11, limit=400)[0])
        for piece in pairwise(ends)
    ]


def mass(family: RuntimeFamily, given: list[float], low: float, high: float, breaks: list[float]) -> float:
    """The integral of the density from one number to another, in pieces that end at `breaks`."""
    return sum(one for _, one in masses_between(family, given, low, high, breaks))


@pytest.mark.parametrize("turn", range(3))
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.sampled(3)
def test_the_density_adds_up_to_one_and_draws_follow_it(name: str, turn: int) -> None:
    family, given = runtime(name), arguments(name, turn)
    draws, facts = spread(family, given), PRELUDE_FAMILIES[name]
    if facts.discrete:
        masses = density(family, given)(np.arange(MOST))
        assert masses.sum() == pytest.approx(1.0, abs=1e-9)
        assert density(family, given)([-1.0, 0.5, 1e6]).max() < 1e-300
        likely = np.flatnonzero(masses * DRAWS > 5)
        seen = np.array([*(np.sum(draws == at) for at in likely), 0])
        wanted = np.array([*(masses[likely] * DRAWS), 0.0])
        seen[-1], wanted[-1] = DRAWS - seen.sum(), DRAWS - wanted.sum()
        kept = wanted > 1e-3
        assert st.chisquare(seen[kept], wanted[kept] * seen[kept].sum() / wanted[kept].sum()).pvalue > 1e-3
        return
    low = -np.inf if facts.support.low is None else facts.support.low
    marks = list(np.quantile(draws, [0.001, 0.02, 0.2, 0.5, 0.8, 0.98, 0.999]))
    assert mass(family, given, low, np.inf, [*marks, given[0]]) == pytest.approx(1.0, abs=1e-8)
    if np.isfinite(low):
        assert density(family, given)([low - 0.5, low - 1e-9]).max() == 0.0
    # the cdf along the draws, each stretch by Gauss's rule
    nodes, weights = np.polynomial.legendre.leggauss(20)
    at = np.quantile(draws, np.linspace(0.0, 1.0, 400))
    middle, half = (at[1:] + at[:-1]) / 2, (at[1:] - at[:-1]) / 2
    between = (density(family, given)(middle[:, None] + half[:, None] * nodes) * weights).sum(1) * half
    below = mass(family, given, low, at[0], [])
    exact = below + np.concatenate([[0.0], np.cumsum(between)])
    assert st.kstest(draws, lambda x: np.interp(x, at, exact)).pvalue > 1e-3


@pytest.mark.parametrize("name", [name for name, facts in PRELUDE_FAMILIES.items() if facts.cdf and not facts.discrete])
@pytest.mark.sampled(2)
def test_tails_are_integrals_of_the_density(name: str) -> None:
    family = runtime(name)
    low = PRELUDE_FAMILIES[name].support.low
    for turn in range(3):
        given = arguments(name, turn)
        draws = spread(family, given)
        marks = list(np.quantile(draws, [0.001, 0.05, 0.3, 0.6, 0.9, 0.999]))
        parameters = [torch.tensor(one) for one in given]
        pieces = masses_between(family, given, -np.inf if low is None else low, np.inf, [*marks, given[0]])
        for at in marks:
            left = sum(one for end, one in pieces if end <= at)
            right = sum(one for end, one in pieces if end > at)
            assert float(family.log_cdf(torch.tensor(at), *parameters).exp()) == pytest.approx(left, abs=1e-8)
            assert float(family.log_survival(torch.tensor(at), *parameters).exp()) == pytest.approx(right, abs=1e-8)


def latent_call(name: str) -> str:
    return call(name, [LATENT[one.constraint] for one in PRELUDE_FAMILIES[name].parameters])


@pytest.mark.parametrize("name", [name for name, facts in PRELUDE_FAMILIES.items() if facts.noncentred])
def test_what_is_standardised_keeps_the_density(name: str) -> None:
    text = (
        f"object Row : FinSet 3\nprogram p : One -> Row\n    sample m <- Normal(0.0, 1.0)\n"
        f"    sample x : Row <- {latent_call(name)} {{}}\n    return x\n"
    )
    moved, plain = (loads(text.format(option)).morphism for option in ("[noncentred]", ""))
    free = {"m": torch.tensor([0.4]), "x": torch.tensor([[-0.5, 0.1, 1.2]])}
    run = moved.run(None, unconstrained(free), by_rows(1))
    values = {each: run.sites[each].value for each in ("m", "x")}
    torch.testing.assert_close(run.log_joint(), plain.log_joint(None, values), rtol=1e-9, atol=1e-9)


def observed(name: str) -> str:
    return (
        f"object Row : FinSet 4\nprogram p : One -> One\n    sample m <- Normal(0.0, 0.5)\n"
        f"    observe y[i : Row] <- {latent_call(name)}\n    return m\nexport p\n"
    )


Y = [1.0, 3.0, 2.0, 1.0]


@pytest.mark.parametrize("name", NAMES)
def test_its_density_is_machine_code_that_the_referee_agrees_with(name: str) -> None:
    kernel = MCMC(NUTSKernel(), 10, 5, 1, seed=2, engine="compiled")
    assert kernel.run(loads(observed(name)).morphism, None, {"y": torch.tensor(Y)}).engine == "compiled"


@pytest.mark.parametrize("name", NAMES)
def test_every_target_prints_it_and_torchs_has_the_density(name: str) -> None:
    snapshot = analyse(observed(name))
    printed = {target: export(snapshot, "p", target).text for target in TARGETS}
    assert all(name.lower() in text.lower().replace("_", "") for text in printed.values())
    scope: dict[str, Any] = {"__name__": "printed"}
    exec(printed["torch"], scope)
    (kind,) = (each for each in scope.values() if isinstance(each, type) and each.__module__ == "printed")
    model, own = kind({"y": Y}), loads(observed(name)).morphism
    for m in (-0.8, 0.0, 0.3, 0.9):
        found = float(model({"m": torch.tensor(m)}))
        wanted = float(cast("Tensor", own.log_joint(None, {"m": torch.tensor(m), "y": torch.tensor(Y)})))
        assert found == pytest.approx(wanted, abs=1e-9, rel=1e-9)


def test_arguments_are_known_for_every_constraint() -> None:
    used: set[Parameter] = {one for facts in PRELUDE_FAMILIES.values() for one in facts.parameters}
    assert {one.constraint for one in used} <= GIVEN.keys() == LATENT.keys()
    assert all(one.shape == "element" for one in used)
