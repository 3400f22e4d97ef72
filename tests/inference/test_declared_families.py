"""Families that a file declares under inference: the posterior of the built-in, closed forms, and what needs draws."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
import torch
from torch import Tensor

from qvr_core.dsl import loads
from qvr_core.inference import ELBO, MCMC, SVI, AutoNormalGuide, MCMCResult, NUTSKernel, Predictive
from qvr_core.runtime.programs.handlers import by_rows, condition
from qvr_core.runtime.values.errors import NoDraws

BELL = """
family Bell(loc, scale : Real 1 [low=0.0]) : Real 1
    density(x) = -0.5 * ((x - loc) / scale)^2 - log(scale) - 0.9189385332046727
    draw = loc + scale * Normal(0, 1)
"""
SCHOOLS = """
object Row : FinSet 30
object School : FinSet 4
{family}
program p : Row -> Real 1
    data school : Row -> School
    sample m <- {name}(0.0, 5.0)
    sample s <- HalfNormal(2.0)
    sample a : School <- {name}(m, s)
    observe y[i : Row] <- {name}(a[school[i]], 1.0)
    return m
"""
LOGISTIC = """
family Logistic(loc = 0.0, scale : Real 1 [low=0.0] = 1.0) : Real 1
    density(x) = -(x - loc) / scale - log(scale) - 2 * softplus(-(x - loc) / scale)
"""


def data() -> dict[str, Tensor]:
    made = torch.Generator().manual_seed(0)
    school = torch.randint(0, 4, (30,), generator=made)
    return {"school": school, "y": torch.randn(30, generator=made, dtype=torch.float64) + school}


def chains(text: str, given: dict[str, Tensor], *, draws: int = 500, **how: object) -> MCMCResult:
    return MCMC(NUTSKernel(), 200, draws, 1, seed=3, **how).run(loads(text).morphism, None, given)  # pyright: ignore


@pytest.mark.parametrize("engine", ["plain", "compiled"])
def test_a_normal_of_ones_own_gives_the_draws_of_the_built_in(engine: Literal["plain", "compiled"]) -> None:
    found: list[dict[str, Tensor]] = []
    for family, name in (("", "Normal"), (BELL, "Bell")):
        model = loads(SCHOOLS.format(family=family, name=name)).morphism
        result = MCMC(NUTSKernel(), 10, 10, 1, seed=3, engine=engine).run(model, None, data())
        assert result.engine == engine
        found.append(dict(result.samples))
    for name, expected in found[0].items():
        np.testing.assert_allclose(found[1][name], expected, rtol=1e-9)


def test_a_simplex_moves_by_its_bijector() -> None:
    text = """
object Row : FinSet 40
family Flatter(power : Real 1 [low=0.0]) : Simplex 3
    density(p) = lgamma(3 * power) - 3 * lgamma(power) + (power - 1) * sum(log(p))
program p : Row -> Simplex 3
    sample theta <- Flatter(2.0)
    observe y : Row <- Categorical(theta)
    return theta
"""
    y = torch.tensor([0] * 20 + [1] * 15 + [2] * 5)
    theta = chains(text, {"y": y}, draws=1500).samples["theta"]
    assert theta.shape == (1, 1500, 3)
    counts = np.array([22.0, 17.0, 7.0])
    np.testing.assert_allclose(theta.reshape(-1, 3).mean(0), counts / counts.sum(), atol=0.015)


def test_a_vector_with_bounds() -> None:
    text = """
object Row : FinSet 4
family Waits(rate : Real k [low=0.0]) : Real k [low=0.0]
    density(x) = sum(log(rate) - rate * x)
program p : Row -> Real 2
    sample x : Real 2 <- Waits([2.0, 0.5])
    observe y : Row <- Normal(x[0] - x[0], 1.0)
    return x
"""
    x = chains(text, {"y": torch.zeros(4).double()}, draws=2000).samples["x"].reshape(-1, 2)
    assert (x > 0).all()
    np.testing.assert_allclose(x.mean(0), [0.5, 2.0], rtol=0.12)


WITHOUT_DRAW = f"""
object Row : FinSet 5
{LOGISTIC}
program p : Row -> Real 1
    sample m <- Logistic(scale=2.0)
    observe y : Row <- Logistic(m, 0.5)
    return m
"""


def test_without_a_draw_it_is_observed_and_sampled_by_nuts() -> None:
    y = torch.tensor([0.5, 1.0, 1.2, 0.9, 1.4], dtype=torch.float64)
    model = loads(WITHOUT_DRAW).morphism
    result = MCMC(NUTSKernel(), 200, 1500, 1, seed=1).run(model, None, {"y": y})
    grid = torch.linspace(-4, 6, 4001, dtype=torch.float64)

    def log_density(x: Tensor, loc: Tensor | float, scale: float) -> Tensor:
        z = (x - loc) / scale
        return -z - np.log(scale) - 2 * torch.nn.functional.softplus(-z)

    joint = log_density(grid, 0.0, 2.0) + log_density(y[:, None], grid, 0.5).sum(0)
    weights = torch.softmax(joint, 0)
    mean = (weights * grid).sum()
    spread = (weights * (grid - mean) ** 2).sum().sqrt()
    assert abs(result.samples["m"].mean() - mean) < 0.15 * spread
    with pytest.warns(
        UserWarning, match=r"not drawn anew, .*: `Logistic` does not say how it is drawn: add a line `draw"
    ):
        tree = result.to_arviz(prior_draws=0)
    assert set(tree.children) == {"posterior", "sample_stats", "log_likelihood", "observed_data"}


def test_what_has_to_draw_says_that_the_family_does_not() -> None:
    model = loads(WITHOUT_DRAW).morphism
    wanted = r"`Logistic` does not say how it is drawn: add a line `draw = …` to it"
    with pytest.raises(NoDraws, match=wanted):
        model.execute(None, by_rows(2))
    with pytest.raises(NoDraws, match=wanted):
        Predictive(model, num_samples=3)(None)
    y = {"y": torch.zeros(5).double()}
    with pytest.raises(NoDraws, match=r"`m` from its prior, whose family does not say how: add a line `draw = …`"):
        SVI(model, AutoNormalGuide(model, observations=y), torch.optim.Adam, ELBO())


def test_a_guide_and_predictions() -> None:
    model = loads(SCHOOLS.format(family=BELL, name="Bell")).morphism
    given = data()
    guide = AutoNormalGuide(model, observations=given)
    svi = SVI(model, guide, torch.optim.Adam(guide.parameters(), lr=0.05), ELBO())
    torch.manual_seed(0)
    losses = [svi.step(None, given) for _ in range(200)]
    assert np.mean(losses[-20:]) < np.mean(losses[:20])
    run = model.execute(None, by_rows(3), condition({"school": given["school"]}))
    assert run.sites["y"].value.shape == (3, 30)
