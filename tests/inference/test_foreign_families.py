"""A family of another package: the fix writes what means the same here, and nothing is renamed that means another."""

from __future__ import annotations

import pytest
import torch
from scipy import stats

from qvr_core import dsl
from qvr_core.analysis import analyse
from qvr_core.ide.edits.fixes import actions_of
from tests.ide.cases import applied

PROGRAM = """\
object Row : FinSet 4
program p : Row -> Row
    sample a <- Gamma(2.0, 1.0)
    observe y : Row <- {call}
    return a
"""
COUNTS = torch.tensor([0.0, 1.0, 3.0, 7.0])
BITS = torch.tensor([0.0, 1.0, 1.0, 0.0])
A = 1.7

# what the user of another package writes, the values, their log densities by scipy where a is 1.7
CALLS = [
    ("NegBinomial2(a + 1.0, 2.5)", COUNTS, stats.nbinom(2.5, 2.5 / (2.5 + A + 1)).logpmf),
    ("neg_binomial_2(a, 2.5)", COUNTS, stats.nbinom(2.5, 2.5 / (2.5 + A)).logpmf),
    ("neg_binomial(2.5, a)", COUNTS, stats.nbinom(2.5, A / (A + 1)).logpmf),
    ("nbinom(2.5, 0.3 * sigmoid(a))", COUNTS, stats.nbinom(2.5, 0.3 / (1 + 2.718281828459045**-A)).logpmf),
    ("bernoulli_logit(a - 1.0)", BITS, stats.bernoulli(1 / (1 + 2.718281828459045 ** (1 - A))).logpmf),
    ("poisson_log(a)", COUNTS, stats.poisson(2.718281828459045**A).logpmf),
]


@pytest.mark.parametrize(("call", "values", "log_density"), CALLS, ids=[call for call, _, _ in CALLS])
def test_conversion_has_the_density_that_was_meant(call: str, values: torch.Tensor, log_density: object) -> None:
    text = PROGRAM.format(call=call)
    [error] = [found for found in analyse(text).diagnostics() if found.severity.name == "ERROR"]
    assert error.code.name == "unknown-family"
    [action] = actions_of(error)
    model = dsl.loads(applied(text, action.edits)).morphism
    found = model.log_joint(None, {"a": torch.tensor(A), "y": values}) - stats.gamma(2.0).logpdf(A)
    assert found.item() == pytest.approx(log_density(values.numpy()).sum(), rel=1e-4)  # type: ignore[operator]


@pytest.mark.parametrize("name", ["VonMisesFisher", "NegBin", "LKJ", "MixtureSameFamily", "NegativeBinomial2"])
def test_nothing_is_renamed_that_takes_other_arguments(name: str) -> None:
    text = PROGRAM.format(call=f"{name}(a, 2.0, 1.0)")
    [error] = [found for found in analyse(text).diagnostics() if found.severity.name == "ERROR"]
    assert not error.fixes
    assert "the nearest" in error.message


def test_a_head_takes_its_parameters_from_a_network_so_that_the_name_alone_counts() -> None:
    text = "object A : Real 2\nobject N : Real 1 [low=0.0]\nmorphism f : A -> N ~ NegBinomial2\nexport f\n"
    [error] = analyse(text).diagnostics()
    [action] = actions_of(error)
    assert not analyse(applied(text, action.edits)).diagnostics()
