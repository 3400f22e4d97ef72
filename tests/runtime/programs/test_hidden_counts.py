"""Hidden counts whose bounds are data: which data are refused, and what is drawn of them and known of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats

from qvr_core import dsl
from qvr_core.inference import Predictive
from qvr_core.runtime.values.errors import InputProblem

TEXT = """\
object Site : FinSet 3
object Visit : FinSet 2
program p : Site -> Site
    data low, high : Site -> Nat
    sample p <- Beta(2.0, 2.0)
    marginalize n[g : Site] <- DiscreteUniform(low[g], high[g])
        observe y[g : Site, v : Visit] <- Binomial(n[g], p)
    return p
export p
"""
Y = [[1, 2], [0, 0], [3, 5]]

pytestmark = pytest.mark.usefixtures("double_precision")


def density(low: list[int], high: list[int]) -> float:
    given = {"p": 0.4, "low": low, "high": high, "y": Y}
    model = dsl.loads(TEXT).morphism
    return model.log_joint(None, {name: torch.as_tensor(value) for name, value in given.items()}).item()


def by_hand(low: list[int], high: list[int]) -> float:
    total = stats.beta.logpdf(0.4, 2.0, 2.0)
    for seen, first, last in zip(Y, low, high, strict=True):
        n = np.arange(first, last + 1)
        total += np.logaddexp.reduce(stats.binom.logpmf(np.array(seen), n[:, None], 0.4).sum(1) - np.log(len(n)))
    return float(total)


def test_as_many_values_as_the_largest_bound_says() -> None:
    for low, high in (([0, 0, 5], [2, 0, 5]), ([1, 0, 3], [4, 4_095, 40])):
        assert density(low, high) == pytest.approx(by_hand(low, high), abs=1e-9)


def test_one_bound_for_all_and_one_for_each() -> None:
    for low, text in (([0, 0, 0], "0, high[g]"), ([1, 1, 1], "total, high[g]")):
        model = dsl.loads(
            TEXT.replace("low[g], high[g]", text).replace("-> Nat\n", "-> Nat\n    data total : Nat\n")
        ).morphism
        given = {"p": 0.4, "low": low, "high": [4, 2, 30], "y": Y, "total": low[0]}
        found = model.log_joint(None, {name: torch.as_tensor(value) for name, value in given.items()}).item()
        assert found == pytest.approx(by_hand(low, [4, 2, 30]), abs=1e-9)


@pytest.mark.parametrize(
    ("low", "high", "told"),
    [
        ([0, 0, 0], [9, 9, 4_096], "at most 4,096 values to sum over, found 4,097, as `high` is up to 4,096"),
        ([0, 4, 0], [9, 3, 9], "`high` at or above `low`, found a place where it is 1 below"),
    ],
)
def test_bounds_that_are_refused_are_an_error_of_the_data(low: list[int], high: list[int], told: str) -> None:
    with pytest.raises(InputProblem, match="site `n`") as caught:
        density(low, high)
    assert told in str(caught.value)


def test_a_count_that_no_value_explains_has_density_zero() -> None:
    assert density([0, 0, 0], [2, 3, 4]) == -np.inf


def test_draws_lie_within_their_own_bounds_and_the_posterior_is_bayes_rule() -> None:
    model: Any = dsl.loads(TEXT).morphism
    torch.manual_seed(3)
    data = {"low": torch.tensor([0, 3, 10]), "high": torch.tensor([0, 5, 12])}
    drawn = Predictive(model, num_samples=400)(None, data)["y"].reshape(400, 3, 2)
    assert drawn[:, 0].max() == 0
    assert drawn[:, 1].max() == 5
    assert 10 < drawn[:, 2].max() <= 12
    seen = {**data, "y": torch.tensor([[0, 0], [2, 3], [7, 6]])}
    chances, _ = Predictive(model, posterior_samples={"p": torch.tensor([0.6])}).states(None, seen)
    n = np.arange(13)
    wanted = np.where((n >= 3) & (n <= 5), stats.binom.pmf([2, 3], n[:, None], 0.6).prod(1), 0.0)
    np.testing.assert_allclose(chances["n"].numpy().reshape(3, 13)[1], wanted / wanted.sum(), atol=1e-9)
