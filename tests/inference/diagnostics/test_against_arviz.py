"""Statistics of draws on numpy alone, against those of arviz-stats (finding A3)."""

from __future__ import annotations

import numpy as np
import pytest
from arviz_stats.base.array import array_stats
from numpy.typing import NDArray

from qvr_core.inference.diagnostics import convergence, intervals, pareto


def autoregressive(chains: int, draws: int, count: int, phi: float, seed: int = 0) -> NDArray[np.float64]:
    """Chains (chains, draws, count) whose draws hang together; of the columns one has ties, one is constant, one has a
    NaN, one is 0 or 1, and of one the chains lie apart."""
    noise = np.random.default_rng(seed).normal(size=(chains, draws, count))
    found = noise.copy()
    for at in range(1, draws):
        found[:, at] = phi * found[:, at - 1] + noise[:, at]
    found[..., 1] = np.round(found[..., 1])
    found[..., 2] = 3.0
    found[0, 1, 3] = np.nan
    found[..., 4] = found[..., 4] > 0
    found[..., 5] += np.arange(chains)[:, None]
    return found


SHAPES = [(4, 500), (4, 501), (1, 300), (2, 4), (4, 6), (4, 7), (4, 9), (2, 37), (8, 40)]


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::UserWarning")
@pytest.mark.parametrize(("chains", "draws"), SHAPES)
@pytest.mark.parametrize("phi", [0.0, 0.95, -0.5, 0.999])
def test_a3_r_hat_and_effective_sample_sizes_are_those_of_arviz(chains: int, draws: int, phi: float) -> None:
    values = autoregressive(chains, draws, 7, phi)
    found, axes = convergence.mixing(values), {"chain_axis": 0, "draw_axis": 1}
    pairs = [
        (found.r_hat, array_stats.rhat(values, method="rank", **axes)),
        (found.bulk, array_stats.ess(values, method="bulk", **axes)),
        (found.tail, array_stats.ess(values, method="tail", prob=(0.05, 0.95), **axes)),
        (found.mean, array_stats.ess(values, method="mean", **axes)),
        (convergence.ess_sd(values), array_stats.ess(values, method="sd", **axes)),
        (convergence.mcse_mean(values), array_stats.mcse(values, method="mean", **axes)),
    ]
    # where distances from the median do not differ it takes the other R-hat or none, as the order of two falls out
    spread = np.abs(values - np.median(values, (0, 1)))
    doubtful = spread.min((0, 1)) == spread.max((0, 1))
    pairs[0] = tuple(np.where(doubtful, 0.0, one) for one in pairs[0])  # type: ignore[call-overload]
    for ours, theirs in pairs:
        np.testing.assert_allclose(ours, theirs, rtol=1e-9)
    own = [convergence.r_hat(values), convergence.ess_bulk(values), convergence.ess_tail(values)]
    for alone, together in zip(own, (found.r_hat, found.bulk, found.tail), strict=True):
        np.testing.assert_array_equal(alone, together)


def test_a3_the_energies_and_intervals_are_those_of_arviz() -> None:
    values = autoregressive(4, 300, 7, 0.9)[..., [0, 1, 4, 5]]
    energy = array_stats.bfmi(values[..., 0], chain_axis=0, draw_axis=1)
    np.testing.assert_allclose(convergence.e_bfmi(values[..., 0]), energy, rtol=1e-12)
    theirs = np.asarray(array_stats.hdi(values.reshape(-1, 4), 0.94, axis=0))
    np.testing.assert_array_equal(np.stack(intervals.highest_density(values.reshape(-1, 4), 0.94), -1), theirs)


@pytest.mark.parametrize("draws", [2_000, 4_000, 300, 80, 40])
@pytest.mark.parametrize("efficiency", [1.0, 0.3, 1.4])
@pytest.mark.parametrize("freedom", [3.0, 30.0])
def test_a3_leaving_one_out_is_that_of_arviz(draws: int, efficiency: float, freedom: float) -> None:
    likelihood = np.random.default_rng(1).standard_t(freedom, size=(draws, 5))
    likelihood[:, 1] *= 0.01
    ours = pareto.leave_one_out(likelihood, efficiency)
    for at in range(5):
        theirs = array_stats.loo(likelihood[None, :, at], chain_axis=0, draw_axis=1, r_eff=efficiency)
        np.testing.assert_allclose([one[at] for one in ours], [float(np.asarray(one)) for one in theirs], rtol=1e-9)


def test_a3_weights_without_a_tail_are_told_apart() -> None:
    """Where arviz-stats raises an error or has no number: nothing differs, too few differ, one is not finite."""
    same, few, infinite = np.full(100, -2.0), (np.arange(100) == 7) * 1.0, np.zeros(100)
    infinite[3] = -np.inf
    elpd, k, parameters = pareto.leave_one_out(np.stack([same, few, infinite], 1))
    assert (elpd[0], k[0], parameters[0]) == (-2.0, -np.inf, 0.0)
    assert np.isinf(k[1]) and elpd[1] == pytest.approx(-np.log(np.exp(-few).mean()))
    assert (elpd[2], k[2]) == (-np.inf, np.inf)
