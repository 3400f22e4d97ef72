"""B1 to B3: chains that the checker lets through are drawn, scored and moved."""

from __future__ import annotations

import pytest
import torch

from qvr_core.dsl import loads
from qvr_core.inference import MCMC, NUTSKernel
from qvr_core.inference.trace import trace
from qvr_core.runtime.programs.handlers import condition, unconstrained
from qvr_core.runtime.values.errors import InputProblem

LAGGED = """
object Country : FinSet 3
object Day : FinSet 9
object Lag : FinSet 2
program m : One -> One
    sample a <- Normal(0.0, 1.0)
    let v[{binders}] = a + {sign}0.2 * sum(v[{read}] for j : Lag) from zeros(Lag)
    return v
"""
SERIES = """
object Time : FinSet 6
program m : Time -> Time
    sample top <- HalfNormal(5.0)
    sample h[t : Time] <- {chain}
    observe y[t : Time] <- Normal(h[t], 1.0)
    return h
"""
Y = torch.tensor([0.3, 0.6, 1.0, 1.3, 1.9, 2.2], dtype=torch.float64)


def elements(binders: str, read: str, sign: str) -> torch.Tensor:
    text = LAGGED.format(binders=binders, read=read, sign=sign).replace("One", "Country")
    model = loads(text).morphism
    return trace(model, None, {"a": torch.tensor(0.7)}).output.squeeze(0)


@pytest.mark.parametrize("sign", ["", "1.0 / 1.0 * "])
def test_b1_a_recursion_over_several_lags_runs_whichever_axis_stands_first(sign: str) -> None:
    by_country = elements("m : Country, t : Day", "m, t - 1 - j", sign)
    by_day = elements("t : Day, m : Country", "t - 1 - j, m", sign)
    assert by_country.shape == (3, 9)
    torch.testing.assert_close(by_country, by_day.T)
    expected = [0.0, 0.0]
    for _ in range(7):
        expected.append(0.7 + 0.2 * (expected[-1] + expected[-2]))
    torch.testing.assert_close(by_country[0], torch.tensor(expected))


def test_b2_nuts_samples_a_chain_that_starts_flat() -> None:
    model = loads(SERIES.format(chain="Normal(h[t - 1], 1.0) from Flat()")).morphism
    samples = MCMC(NUTSKernel(), 200, 400, 2, seed=1).run(model, None, {"y": Y}).samples["h"]
    # a random walk that is seen with noise of the same variance: the mean of the first element is known exactly
    walk = torch.eye(6, dtype=torch.float64)
    steps = torch.diff(torch.eye(6, dtype=torch.float64), dim=0)
    mean = torch.linalg.solve(walk + steps.T @ steps, Y)
    torch.testing.assert_close(samples.mean((0, 1)).double(), mean, atol=0.25, rtol=0.0)


def test_b2_a_draw_of_it_says_why_there_is_none() -> None:
    model = loads(SERIES.format(chain="Normal(h[t - 1], 1.0) from Flat()")).morphism
    with pytest.raises(InputProblem, match="no draws"):
        model.rsample(None)


CHAINS = [
    "TruncatedNormal(h[t - 1], 1.0, low=-9.0, high=9.0) from Uniform(-9.0, 9.0)",
    "TruncatedNormal(h[t - 1], 1.0, low=-9.0, high=top) from Uniform(-1.0, 0.0)",
    "Uniform(h[t - 1], h[t - 1] + top) from HalfNormal(1.0)",
    "Normal(h[t - 1], 1.0) from HalfNormal(1.0)",
    "Gamma(2.0, 1.0 / (h[t - 2] + 1.0)) from (HalfNormal(1.0), Uniform(1.0, 2.0))",
]


@pytest.mark.parametrize("chain", CHAINS)
def test_b3_elements_move_between_the_bounds_that_each_is_drawn_between(chain: str) -> None:
    model = loads(SERIES.format(chain=chain)).morphism
    torch.manual_seed(1)
    free, top = torch.randn(6, dtype=torch.float64), torch.tensor([4.0], dtype=torch.float64)

    def moved(numbers: torch.Tensor) -> torch.Tensor:
        known = condition({"y": Y, "top": top[0]})
        return model.run(None, known, unconstrained({"h": numbers.unsqueeze(0)})).sites["h"].value[0]

    value = moved(free)
    record = model.run(None, condition({"y": Y, "top": top[0]}), unconstrained({"h": free.unsqueeze(0)})).sites["h"]
    assert torch.isfinite(model.log_joint(None, {"y": Y, "top": top[0], "h": value})).all()
    jacobian = torch.autograd.functional.jacobian(moved, free)
    torch.testing.assert_close(record.log_jacobian[0], torch.linalg.slogdet(jacobian).logabsdet)
