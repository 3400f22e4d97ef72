"""`[missing=impute]` and `[missing=drop]`: densities by hand, posteriors in closed form, and what is refused."""

import math

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor

from qvr_core.dsl import loads
from qvr_core.inference import ELBO, MCMC, SVI, AutoNormalGuide, MCMCResult, NUTSKernel, Predictive
from qvr_core.runtime.programs.handlers import by_rows, condition, densities, pointwise, substitute, unconstrained
from qvr_core.runtime.values.errors import InputProblem, NonFinite, RuntimeProblem

NAN = math.nan
WAITING = """
object Row : FinSet 4
program p : Row -> Row
    data x, y : Row
    sample m <- Normal(0.0, 2.0)
    observe x <- Gamma(2.0, 3.0) [missing=impute]
    observe y <- Normal(m + x, 0.5)
    return y
"""
AUTOREGRESSION = """
object Person : FinSet 2
object Time : FinSet 6
object Lag : FinSet 2
program ar : Time -> Time
    data y : Person * Time
    sample phi : Lag <- Normal(0.0, 1.0)
    observe y[p : Person, t : Time] <- Normal(sum(phi[j] * y[p, t - 1 - j] for j : Lag), 0.7) [missing={how}]
    return y
"""
SERIES = [[0.5, 0.3, NAN, 0.2, -0.4, 0.1], [0.1, 0.2, 0.3, 0.4, 0.5, NAN]]
PHI = {"phi": torch.tensor([[0.5, -0.2]]).double()}
REGRESSION = """
object Row : FinSet 3
program p : Row -> Row
    data x, y : Row
    observe x <- Normal(0.0, 1.0) [missing=impute]
    observe y <- Normal(0.5 * x, 1.0)
    return y
"""


def doubles(*numbers: float) -> Tensor:
    return torch.tensor(numbers, dtype=torch.float64)


def chains(text: str, **data: Tensor) -> MCMCResult:
    return MCMC(NUTSKernel(), 200, 1500, 2, seed=3).run(loads(text).morphism, None, data)


def steps_of_series(series: list[list[float]]) -> float:
    """The log densities of all elements that are there and read only what is there."""
    found = 0.0
    for y in series:
        for t in range(2, 6):
            each = stats.norm(0.5 * y[t - 1] - 0.2 * y[t - 2], 0.7).logpdf(y[t])
            found += 0.0 if math.isnan(each) else each
    return found


def test_an_imputed_cell_counts_as_its_family_says_and_completes_the_values_below() -> None:
    model = loads(WAITING).morphism
    data = {"x": doubles(0.5, NAN, 1.5, NAN), "y": doubles(1.0, 2.0, 3.0, 4.0)}
    assert model.missing_shapes(data) == {"x": (2,)}
    free = unconstrained({"m": doubles(0.7), "x": doubles(0.3, -0.2).unsqueeze(0)})
    run = model.run(None, condition(data), free, by_rows(1))
    x = np.array([0.5, math.exp(0.3), 1.5, math.exp(-0.2)])
    wanted = stats.norm(0, 2).logpdf(0.7) + stats.gamma(2, scale=1 / 3).logpdf(x).sum()
    wanted += stats.norm(0.7 + x, 0.5).logpdf([1.0, 2.0, 3.0, 4.0]).sum()
    assert float(run.log_joint()) == pytest.approx(wanted, rel=1e-12)
    jacobian = run.sites["x"].log_jacobian
    assert jacobian is not None
    assert float(jacobian) == pytest.approx(0.1)


def test_chains_impute_what_a_regression_implies_in_closed_form() -> None:
    result = chains(REGRESSION, x=doubles(0.3, NAN, NAN), y=doubles(0.0, 2.0, -1.0))
    draws = result.samples["x"].flatten(0, 1)
    assert draws.shape[1:] == (2,)
    # x ~ N(0, 1) and y | x ~ N(x / 2, 1): precision 1 + 1/4, mean (y / 2) / (5 / 4)
    torch.testing.assert_close(draws.mean(0), doubles(0.8, -0.4), atol=0.06, rtol=0.0)
    torch.testing.assert_close(draws.var(0), doubles(0.8, 0.8), atol=0.08, rtol=0.0)
    seen = result.log_likelihood["x"][0, 0]
    assert torch.isnan(seen).tolist() == [False, True, True]


def test_a_vector_family_imputes_given_its_other_numbers() -> None:
    text = """
object Row : FinSet 2
program p : Row -> Row
    data x : Row -> Real 2
    data tril : Real 2 2
    observe x <- MultivariateNormal([0.0, 0.0], tril) [missing=impute]
    return x
"""
    cov = np.array([[1.0, 0.8], [0.8, 2.0]])
    tril = torch.tensor(np.linalg.cholesky(cov))
    result = chains(text, x=torch.tensor([[1.5, NAN], [NAN, NAN]]).double(), tril=tril)
    draws = result.samples["x"].flatten(0, 1)
    assert draws.shape[1:] == (3,)
    assert float(draws[:, 0].mean()) == pytest.approx(0.8 * 1.5, abs=0.08)
    assert float(draws[:, 0].var()) == pytest.approx(2.0 - 0.64, abs=0.15)
    torch.testing.assert_close(torch.cov(draws[:, 1:].T), torch.tensor(cov), atol=0.2, rtol=0.0)


def test_a_guide_moves_missing_cells() -> None:
    torch.manual_seed(1)
    data = {"x": doubles(0.3, NAN, NAN).float(), "y": doubles(0.0, 2.0, -1.0).float()}
    model = loads(REGRESSION).morphism
    with pytest.raises(InputProblem, match="`x` may have missing cells, each a latent: give the guide the obs"):
        AutoNormalGuide(model, observed_names=("x", "y"))
    guide = AutoNormalGuide(model, observed_names=("x", "y"), observations=data)
    svi = SVI(model, guide, torch.optim.Adam(guide.parameters(), lr=0.02), ELBO(num_particles=16))
    for _ in range(900):
        svi.step(None, data)
    run = model.run(None, condition(data), guide.propose(2000), densities(False), by_rows(2000))
    drawn = run.sites["x"].imputed
    assert drawn is not None
    torch.testing.assert_close(drawn.mean(0), torch.tensor([0.8, -0.4]), atol=0.1, rtol=0.0, check_dtype=False)
    assert float(drawn[:, 0].var()) == pytest.approx(0.8, abs=0.15)


def test_dropped_cells_and_those_that_read_them_do_not_count() -> None:
    model = loads(AUTOREGRESSION.format(how="drop")).morphism
    run = model.run(None, condition({"y": torch.tensor(SERIES).double()}), substitute(PHI), pointwise)
    site = run.sites["y"]
    assert site.log_prob is not None
    assert site.pointwise is not None
    assert float(site.log_prob) == pytest.approx(steps_of_series(SERIES), rel=1e-6)
    assert torch.isfinite(site.pointwise[0]).tolist() == [
        [False, False, False, False, False, True],
        [False, False, True, True, True, False],
    ]


def test_chains_of_a_series_that_drops_cells_have_finite_gradients() -> None:
    result = chains(AUTOREGRESSION.format(how="drop"), y=torch.tensor(SERIES).double())
    assert int(result.diverging.sum()) == 0
    assert set(result.samples) == {"phi"}


def test_an_imputed_series_reads_its_own_completed_values() -> None:
    model = loads(AUTOREGRESSION.format(how="impute")).morphism
    data = {"y": torch.tensor(SERIES).double()}
    run = model.run(None, condition(data), unconstrained({"y": doubles(1.0, 2.0).unsqueeze(0)}), substitute(PHI))
    whole = [list(SERIES[0]), list(SERIES[1])]
    whole[0][2], whole[1][5] = 1.0, 2.0
    assert run.sites["y"].log_prob is not None
    assert float(run.sites["y"].log_prob) == pytest.approx(steps_of_series(whole), rel=1e-6)
    with pytest.raises(RuntimeProblem, match="nothing draws a missing one given later ones; use NUTS"):
        Predictive(model, num_samples=2)(None, data)


def test_a_first_element_is_imputed_only_where_something_draws_it() -> None:
    text = """
object Person : FinSet 2
object Time : FinSet 3
program ar : Time -> Time
    data y : Person * Time
    sample phi <- Normal(0.0, 1.0)
    observe y[p : Person, t : Time] <- Normal(phi * y[p, t - 1], 0.7) [missing=impute]{start}
    return phi
"""
    data = torch.tensor([[0.5, NAN, 0.2], [NAN, 0.1, -0.3]]).double()
    moved, phi = unconstrained({"y": doubles(0.6, 0.9).unsqueeze(0)}), substitute({"phi": doubles(0.4)})
    with pytest.raises(InputProblem, match=r"each first element.*`from …`.*`missing=drop`.*none at p = 1, t = 0"):
        loads(text.format(start="")).morphism.run(None, condition({"y": data}), moved, phi)
    run = loads(text.format(start=" from Normal(0.0, 2.0)")).morphism.run(None, condition({"y": data}), moved, phi)
    whole = np.array([[0.5, 0.6, 0.2], [0.9, 0.1, -0.3]])
    expected = stats.norm.logpdf(whole[:, 0], 0.0, 2.0).sum()
    expected += stats.norm.logpdf(whole[:, 1:], 0.4 * whole[:, :-1], 0.7).sum()
    assert run.sites["y"].log_prob is not None
    assert float(run.sites["y"].log_prob) == pytest.approx(expected)


def test_a_step_above_reads_the_completed_values() -> None:
    text = """
object Time : FinSet 3
program garch : Time -> Time
    data y : Time
    sample a <- HalfNormal(1.0)
    let v[t : Time] = a + 0.5 * y[t - 1]^2 from 1.0
    observe y[t : Time] <- Normal(0.0, sqrt(v[t])) [missing=impute]
    return v
"""
    model = loads(text).morphism
    data = {"y": doubles(0.4, NAN, -0.3)}
    run = model.run(
        None, condition(data), substitute({"a": doubles(0.6)}), unconstrained({"y": doubles(1.1).unsqueeze(0)})
    )
    y, v = [0.4, 1.1, -0.3], [1.0, 0.6 + 0.5 * 0.16, 0.6 + 0.5 * 1.21]
    assert run.sites["y"].log_prob is not None
    assert float(run.sites["y"].log_prob) == pytest.approx(stats.norm(0, np.sqrt(v)).logpdf(y).sum(), rel=1e-6)
    result = MCMC(NUTSKernel(), 100, 50, 1, seed=1).run(model, None, data)
    assert result.deterministic["v"].shape == (1, 50, 3)


def test_a_missing_count_is_left_out_of_a_mixture() -> None:
    text = """
object Row : FinSet 3
object Kind : FinSet 2
program p : Row -> Row
    data n : Row -> Nat
    data r : Kind
    marginalize z : Row <- Categorical([0.4, 0.6])
        observe n : Row <- Poisson(r[z]) [missing=drop]
    return n
"""
    model = loads(text).morphism
    run = model.run(None, condition({"n": doubles(1.0, NAN, 3.0), "r": doubles(1.0, 2.0)}), pointwise)
    wanted = [math.log(0.4 * stats.poisson(1).pmf(k) + 0.6 * stats.poisson(2).pmf(k)) for k in (1, 3)]
    assert float(run.log_joint()) == pytest.approx(sum(wanted), rel=1e-6)
    found = run.sites["z"].pointwise
    assert found is not None
    torch.testing.assert_close(
        found[0], torch.tensor([wanted[0], NAN, wanted[1]]), equal_nan=True, check_dtype=False, atol=1e-6, rtol=0.0
    )


@pytest.mark.parametrize("how", ["impute", "drop"])
def test_cells_between_computed_bounds_say_nothing_of_them(how: str) -> None:
    text = f"""
object Row : FinSet 3
program p : Row -> Row
    data x : Row
    sample width <- Gamma(5.0, 1.0)
    observe x <- Uniform(0.0, 3.0 + width) [missing={how}]
    return x
"""
    result = chains(text, x=doubles(1.0, NAN, 2.0))
    grid = np.linspace(0, 40, 40_001)
    weight = stats.gamma(5).pdf(grid) * (3 + grid) ** -2.0
    mean = (grid * weight).sum() / weight.sum()
    assert float(result.samples["width"].mean()) == pytest.approx(mean, abs=0.2)


def test_a_simplex_is_imputed_as_a_whole() -> None:
    text = """
object Row : FinSet 2
program p : Row -> Row
    data x : Row -> Simplex 3
    observe x <- Dirichlet([4.0, 2.0, 2.0]) [missing=impute]
    return x
"""
    result = chains(text, x=torch.tensor([[NAN] * 3, [0.2, 0.3, 0.5]]).double())
    draws = result.samples["x"].flatten(0, 1)
    assert draws.shape[1:] == (1, 3)
    torch.testing.assert_close(draws.mean((0, 1)), doubles(0.5, 0.25, 0.25), atol=0.02, rtol=0.0)
    with pytest.raises(InputProblem, match="given or missing as a whole, found a part of one"):
        loads(text).morphism.run(None, condition({"x": torch.tensor([[NAN, 0.5, 0.5], [0.2, 0.3, 0.5]])}))


def test_a_step_that_says_nothing_of_missing_cells_names_both_ways() -> None:
    text = REGRESSION.replace(" [missing=impute]", "").replace(
        "observe x", "sample b <- Normal(0.0, 1.0)\n    observe x"
    )
    both = r"`observe x … \[missing=impute\]` makes each a latent, `observe x … \[missing=drop\]` leaves the cells out"
    with pytest.raises(InputProblem, match=both):
        chains(text, x=doubles(0.3, NAN, NAN), y=doubles(0.0, 2.0, -1.0))
    with pytest.raises(NonFinite, match=both):
        chains(text.replace("data x, y", "data y"), x=doubles(0.3, NAN, NAN), y=doubles(0.0, 2.0, -1.0))


def test_what_is_given_must_fit_the_gaps() -> None:
    model = loads(WAITING).morphism
    data = {"x": doubles(0.5, NAN, 1.5, NAN), "y": doubles(1.0, 2.0, 3.0, 4.0)}
    with pytest.raises(InputProblem, match="expected values for 2 missing cells"):
        model.run(None, condition(data), substitute({"x": doubles(1.0, 2.0, 3.0)}))
    with pytest.raises(InputProblem, match="2 values of `x` are missing: give complete ones"):
        model.log_joint(None, {"m": 0.3, **data})
    with pytest.raises(InputProblem, match="every one is missing"):
        model.run(None, condition({**data, "x": torch.full((4,), NAN)}))
