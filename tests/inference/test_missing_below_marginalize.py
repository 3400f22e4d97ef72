"""`[missing=impute]` below `marginalize`: densities by a forward algorithm and an enumeration by hand, posteriors by
enumeration, and what is refused."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor

from qvr_core.dsl import loads
from qvr_core.inference import ELBO, MCMC, SVI, AutoNormalGuide, NUTSKernel
from qvr_core.inference.pointwise import Given
from qvr_core.runtime.programs.handlers import by_rows, condition, densities, pointwise, substitute, unconstrained
from qvr_core.runtime.values.errors import InputProblem, NoDensity

NAN = math.nan
CHAIN = """
object Unit : FinSet 2
object Time : FinSet 4
object State : FinSet 2
program p : One -> Real 1
    data n : Unit -> Nat
    data y, u : Unit * Time
    data P : State * State
    sample mu[s : State] <- Normal(0.0, 2.0)
    marginalize z[g : Unit, t : Time] : State <- Categorical(P[z[g, t - 1]]) from Categorical([0.6, 0.4]) [lengths=n]
        observe y[g : Unit, t : Time] <- Normal(mu[z[g, t]] + 0.3 * t, 0.7) [lengths=n, missing=HOW]
    READER
    return mu
"""
READER = "observe u[g : Unit, t : Time] <- Normal(0.5 * y[g, t], 1.0) [lengths=n]"
MIXTURE = """
object Group : FinSet 2
object Row : FinSet 3
object Kind : FinSet 2
program p : One -> Real 1
    data y : Group * Row
    data w : Group
    sample m <- Normal(0.0, 1.0)
    marginalize k[g : Group] : Kind <- Categorical([0.3, 0.7])
        observe y[g : Group, i : Row] <- Normal(m + 3.0 * k[g], 0.5) [missing=HOW]
        observe w[g : Group] <- LogNormal(0.5 * k[g], 1.0) [missing=HOW]
    return m
"""
START, TABLE = np.array([0.6, 0.4]), np.array([[0.9, 0.1], [0.2, 0.8]])
MU = np.array([-0.6, 1.1])
Y = np.array([[0.2, NAN, -0.5, NAN], [1.3, 0.4, 9.0, 9.0]])
U = np.array([[0.1, 0.9, -0.2, 0.4], [0.3, 0.2, 9.0, 9.0]])
LENGTHS = [4, 2]
FILLED = np.array([0.7, -1.4])


def doubles(values: object) -> Tensor:
    return torch.tensor(np.asarray(values), dtype=torch.float64)


def completed(values: np.ndarray = FILLED) -> np.ndarray:
    y = Y.copy()
    y[np.isnan(y)] = values
    return y


def log_forward(y: np.ndarray, there: np.ndarray) -> float:
    """log p of the elements that are there, by the forward algorithm."""
    total = 0.0
    for g, length in enumerate(LENGTHS):
        ways = START
        for t in range(length):
            seen = stats.norm(MU + 0.3 * t, 0.7).pdf(y[g, t]) if there[g, t] else np.ones(2)
            ways = (ways if t == 0 else ways @ TABLE) * seen
        total += math.log(ways.sum())
    return total


def chain(how: str, reader: str = READER) -> object:
    return loads(CHAIN.replace("HOW", how).replace("READER", reader)).morphism


DATA = {"n": torch.tensor(LENGTHS), "P": doubles(TABLE), "y": doubles(Y), "u": doubles(U)}
LATENTS = substitute({"mu": doubles([MU])})


def densities_at(values: np.ndarray, reader: str = READER) -> np.ndarray:
    """Ours, at rows of values of the missing cells."""
    rows = len(values)
    latents = substitute({"mu": doubles([MU] * rows)})
    run = chain("impute", reader).run(
        None, condition(DATA), latents, unconstrained({"y": doubles(values)}), by_rows(rows)
    )
    return run.log_joint().numpy()


def test_missing_cells_below_a_hidden_chain_are_scored_by_the_forward_algorithm() -> None:
    model = chain("impute")
    assert model.missing_shapes(DATA) == {"y": (2,)}, "none for what does not exist"
    y, prior = completed(), stats.norm(0.0, 2.0).logpdf(MU).sum()
    there = np.arange(4) < np.array(LENGTHS)[:, None]
    reading = (stats.norm(0.5 * y, 1.0).logpdf(U) * there).sum()
    (ours,) = densities_at(FILLED[None])
    assert ours == pytest.approx(prior + log_forward(y, there) + reading, abs=1e-9)
    left_out = prior + log_forward(y, there & ~np.isnan(Y)) + reading
    assert abs(ours - left_out) > 0.5, "what fills a cell is drawn as the cell is"


def test_integrated_over_missing_cells_it_is_the_density_that_leaves_them_out() -> None:
    # sums on a grid converge as Gaussians fall
    at, step = np.linspace(-6.0, 7.0, 131, retstep=True)
    values = np.stack(np.meshgrid(at, at), -1).reshape(-1, 2)
    whole = np.log(np.exp(densities_at(values, "")).sum() * step**2)
    run = chain("drop", "").run(None, condition(DATA), LATENTS)
    assert float(run.log_joint()) == pytest.approx(whole, abs=1e-9)


def test_a_pointwise_log_likelihood_is_that_of_data_alone() -> None:
    given = (condition(DATA), substitute({"mu": doubles([MU]), "y": doubles([FILLED])}), pointwise)
    each = chain("impute", "").run(None, *given).sites["y"].pointwise
    left_out = chain("drop", "").run(None, *given[:1], LATENTS, pointwise).sites["y"].pointwise
    assert each is not None and left_out is not None
    torch.testing.assert_close(each, left_out, equal_nan=True)
    assert torch.isfinite(each[0]).tolist() == [[True, False, True, False], [True, True, False, False]]
    whole = log_forward(Y, (np.arange(4) < np.array(LENGTHS)[:, None]) & ~np.isnan(Y))
    assert float(each.nansum()) == pytest.approx(whole, abs=1e-9)


def by_kind(y: np.ndarray, w: np.ndarray, m: float) -> float:
    """log p of both groups, by a sum over the kinds."""
    total = 0.0
    for own, each in zip(y, w, strict=True):
        kinds = [stats.norm(m + 3.0 * k, 0.5).pdf(own).prod() * stats.lognorm(1.0, scale=math.exp(0.5 * k)).pdf(each)
                 for k in (0, 1)]  # fmt: skip
        total += math.log(0.3 * kinds[0] + 0.7 * kinds[1])
    return total


def test_missing_cells_of_a_mixture_are_scored_by_its_sum() -> None:
    model = loads(MIXTURE.replace("HOW", "impute")).morphism
    data = {"y": doubles([[0.2, NAN, 0.1], [NAN, NAN, 3.3]]), "w": doubles([NAN, 0.8])}
    free = {"m": doubles([0.1]), "y": doubles([[0.4, 2.9, 3.4]]), "w": doubles([[-0.3]])}
    run = model.run(None, condition(data), unconstrained(free), by_rows(1))
    y, w = np.array([[0.2, 0.4, 0.1], [2.9, 3.4, 3.3]]), np.array([math.exp(-0.3), 0.8])
    assert float(run.log_joint()) == pytest.approx(stats.norm.logpdf(0.1) + by_kind(y, w, 0.1), abs=1e-9)
    jacobian, imputed = run.sites["w"].log_jacobian, run.sites["w"].imputed
    assert jacobian is not None and imputed is not None
    assert (float(jacobian), float(imputed)) == (pytest.approx(-0.3), pytest.approx(w[0])), (
        "positive by its exponential"
    )


def exact(*, read: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Of the first unit's missing cells given all that is there: how likely each path is, and the mean and variance of
    each cell given it; y at a place is Normal about its state's mean, and u, where it is `read`, about half of y."""
    paths = list(itertools.product((0, 1), repeat=4))
    weights, means, variances = [], [], []
    for path in paths:
        weight = START[path[0]] * math.prod(TABLE[a, b] for a, b in itertools.pairwise(path))
        mean, variance = [], []
        for t, state in enumerate(path):
            loc = MU[state] + 0.3 * t
            if not math.isnan(Y[0, t]):
                weight *= stats.norm(loc, 0.7).pdf(Y[0, t])
                continue
            weight *= stats.norm(0.5 * loc, math.sqrt(1.0 + 0.25 * 0.49)).pdf(U[0, t]) if read else 1.0
            variance.append(1.0 / (1.0 / 0.49 + 0.25 * read))
            mean.append(variance[-1] * (loc / 0.49 + 0.5 * U[0, t] * read))
        weights.append(weight)
        means.append(mean)
        variances.append(variance)
    chance = np.array(weights) / sum(weights)
    return np.array(paths), chance, np.array(means), np.array(variances)


@pytest.mark.statistical
def test_chains_draw_missing_cells_and_states_as_an_enumeration_of_paths_says() -> None:
    text = CHAIN.replace("HOW", "impute").replace("READER", READER)
    text = text.replace("sample mu[s : State] <- Normal(0.0, 2.0)", "data mu : State")
    text = text.replace("return mu", "return y")
    data = {**DATA, "mu": doubles(MU)}
    model = loads(text).morphism
    result = MCMC(NUTSKernel(), 500, 5000, 4, seed=7).run(model, None, data)
    draws = result.samples["y"].flatten(0, 1).double().numpy()
    paths, chance, means, variances = exact(read=True)
    mean = chance @ means
    square = chance @ (variances + means**2)
    for cell in range(2):
        own = draws[:, cell]
        deviation = math.sqrt(square[cell] - mean[cell] ** 2)
        # 20,000 draws, at least 4,000 of them independent
        assert own.mean() == pytest.approx(mean[cell], abs=4.0 * deviation / math.sqrt(4000))
        assert own.std() == pytest.approx(deviation, rel=0.05)
        for at in (-0.5, 0.5, 1.0):
            below = chance @ stats.norm(means[:, cell], np.sqrt(variances[:, cell])).cdf(at)
            assert (own < at).mean() == pytest.approx(below, abs=4.0 * 0.5 / math.sqrt(4000))
    both = chance @ (means[:, 0] * means[:, 1])
    assert (draws[:, 0] * draws[:, 1]).mean() == pytest.approx(both, abs=0.06)
    given = Given(model, None, data)
    samples = {"y": doubles(draws)}
    states = given.hidden_states(samples)["z"][:, 0, :, 1].mean(0)
    drawn = given.hidden_paths(samples)[1]["z"][:, 0].double().mean(0)
    smoothed = chance @ paths
    torch.testing.assert_close(states.double(), doubles(smoothed), atol=0.02, rtol=0.0)
    torch.testing.assert_close(drawn, doubles(smoothed), atol=0.03, rtol=0.0)


@pytest.mark.statistical
def test_a_guide_moves_missing_cells_below_a_mixture() -> None:
    torch.manual_seed(1)
    model = loads(MIXTURE.replace("HOW", "impute")).morphism
    data = {"y": doubles([[0.2, NAN, 0.1], [NAN, 3.2, 3.3]]).float(), "w": doubles([1.0, 0.8]).float()}
    guide = AutoNormalGuide(model, observed_names=("y", "w"), observations=data)
    svi = SVI(model, guide, torch.optim.Adam(guide.parameters(), lr=0.03), ELBO(num_particles=8))
    for _ in range(300):
        svi.step(None, data)
    run = model.run(None, condition(data), guide.propose(1000), densities(False), by_rows(1000))
    drawn, m = run.sites["y"].imputed, run.sites["m"].value
    assert isinstance(drawn, Tensor) and isinstance(m, Tensor)
    # the given cells tell the kinds: each missing one is Normal about its group's
    torch.testing.assert_close(drawn.mean(0), m.mean() + torch.tensor([0.0, 3.0]), atol=0.2, rtol=0.0)


def test_data_drawn_anew_are_whole_and_what_nothing_fills_is_told() -> None:
    model = chain("impute", "")
    data = {name: value for name, value in DATA.items() if name != "u"}
    samples = {"mu": doubles([MU] * 40), "y": doubles([FILLED] * 40)}
    again = Given(model, None, data).replicates(samples, 3)["y"]
    assert torch.isfinite(again[:, 0]).all() and len(again[:, 0, 0].unique()) == len(again[:, 0, 1].unique()) == 40
    lacking = condition(data), substitute({"mu": doubles([MU] * 20000)}), by_rows(20000), densities(False)
    drawn = model.run(None, *lacking).sites["y"].imputed
    assert drawn is not None
    _, chance, means, variances = exact(read=False)
    mean = chance @ means
    square = chance @ (variances + means**2)
    # each within five standard errors
    torch.testing.assert_close(drawn.mean(0), doubles(mean), atol=0.06, rtol=0.0)
    torch.testing.assert_close(drawn.var(0), doubles(square - mean**2), atol=0.08, rtol=0.0)
    torch.testing.assert_close(drawn.prod(1).mean(), doubles(chance @ means.prod(1)), atol=0.08, rtol=0.0)
    with pytest.raises(NoDensity, match="`y` lacks values below `marginalize`, and nothing draws one given what else"):
        model.run(None, condition(data), LATENTS)
    with pytest.raises(InputProblem, match=r"values for 2 missing cells, \(2,\)"):
        model.run(None, condition(data), substitute({"mu": doubles([MU]), "y": doubles([0.1, 0.2, 0.3])}))
