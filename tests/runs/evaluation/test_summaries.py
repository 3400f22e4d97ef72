"""The summary of a fit: its figures against arviz-stats and plain counts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import xarray
from arviz_stats.base.array import array_stats

from qvr_core.runs.evaluation.summaries import density_of, ranks_of, summary_of
from qvr_core.runs.record.atomic_files import DamagedFile
from qvr_core.runs.record.store import RunDirectory
from qvr_core.runs.record.summary import MOST_BYTES, read_summary, write_summary

BOTH = ("chain", "draw")


def fit(width: int = 3) -> xarray.DataTree:
    drawn = np.random.default_rng(1).normal(size=(4, 200, width)) + np.arange(width)
    prior = np.random.default_rng(2).normal(size=(1, 500, width)) * 10
    dims = (*BOTH, "S")
    groups = {
        "/posterior": xarray.Dataset({"theta": (dims, drawn)}, coords={"S": [f"s{at}" for at in range(width)]}),
        "/prior": xarray.Dataset({"theta": (dims, prior)}),
        "/sample_stats": xarray.Dataset({"diverging": (BOTH, np.zeros((4, 200), dtype=bool))}),
    }
    return xarray.DataTree.from_dict(groups)


def test_figures_are_those_of_the_draws() -> None:
    tree = fit()
    drawn = tree["posterior"]["theta"].to_numpy()
    (site,) = summary_of(tree).sites
    assert (site.name, site.size, [one.name for one in site.elements]) == (
        "theta",
        3,
        [f"theta[s{i}]" for i in range(3)],
    )
    for at, one in enumerate(site.elements):
        each = drawn[:, :, at]
        assert one.mean == pytest.approx(each.mean()) and one.sd == pytest.approx(each.std(ddof=1))
        assert one.r_hat == pytest.approx(float(array_stats.rhat(each, chain_axis=0, draw_axis=1)))
        assert one.ess == pytest.approx(float(array_stats.ess(each, chain_axis=0, draw_axis=1)))
        assert one.density is not None and one.density.prior_share is not None
        inside = (each >= one.density.low) & (each <= one.density.high)
        assert sum(one.density.posterior) == inside.sum()
        assert 0.1 < one.density.prior_share < 0.5
    assert site.r_hat == max(one.r_hat or 0 for one in site.elements)


def test_ranks_of_chains_that_agree_are_even_and_of_one_apart_are_not() -> None:
    same = ranks_of(np.random.default_rng(3).normal(size=(4, 1000)))
    assert all(sum(one) == 1000 and max(one) < 100 for one in same)
    apart = ranks_of(np.random.default_rng(3).normal(size=(2, 1000)) + np.array([[0.0], [50.0]]))
    assert sum(apart[0][:10]) == 1000 and sum(apart[1][10:]) == 1000


def test_large_sites_are_cut_and_constants_have_no_density() -> None:
    (site,) = summary_of(fit(100)).sites
    assert site.size == 100 and len(site.elements) == 64 and site.high == pytest.approx(99, abs=0.2)
    assert density_of(np.ones(10), None) is None


def test_a_summary_is_read_as_it_was_written_and_damage_is_told(tmp_path: Path) -> None:
    run, summary = RunDirectory(tmp_path), summary_of(fit())
    assert read_summary(run) is None
    write_summary(run, summary)
    assert read_summary(run) == summary
    run.summary.write_text(run.summary.read_text().replace("theta[s0]", "theta[s9]"))
    with pytest.raises(DamagedFile, match="checksum"):
        read_summary(run)
    run.summary.write_bytes(b" " * (MOST_BYTES + 1))
    with pytest.raises(DamagedFile, match="larger"):
        read_summary(run)


def test_traces_hold_the_draws_that_diverged() -> None:
    tree = fit()
    bad = np.zeros((4, 200), dtype=bool)
    bad[2, 77] = True
    tree["/sample_stats"] = xarray.Dataset({"diverging": (BOTH, bad)})
    summary = summary_of(tree)
    drawn = tree["posterior"]["theta"].to_numpy()
    chain = summary.traces[2]
    assert [chain.draws[at] for at in chain.diverging] == [77]
    at = chain.diverging[0]
    for label, values in zip(summary.drawn, chain.values, strict=True):
        assert values[at] == pytest.approx(drawn[2, 77, ["s0", "s1", "s2"].index(label[6:8])], rel=1e-4)


def test_predictions_stand_beside_the_data_in_the_same_bins() -> None:
    tree, generator = fit(), np.random.default_rng(4)
    data = generator.poisson(3.0, size=400)
    again = generator.poisson(3.0, size=(4, 200, 400))
    prior = generator.poisson(90.0, size=(1, 500, 400))
    tree["/observed_data"] = xarray.Dataset({"y": (("row",), data)})
    tree["/posterior_predictive"] = xarray.Dataset({"y": ((*BOTH, "row"), again)})
    tree["/prior_predictive"] = xarray.Dataset({"y": ((*BOTH, "row"), prior)})
    (one,) = summary_of(tree).predictive
    assert one.name == "y" and sum(one.observed) == pytest.approx(1.0)
    assert one.observed[0] == pytest.approx((data == 0).mean())
    assert one.posterior is not None and one.prior is not None
    assert one.posterior.mean[0] == pytest.approx(float(np.exp(-3.0)), abs=0.01)
    assert all(
        low <= middle <= high
        for low, middle, high in zip(one.posterior.low, one.posterior.mean, one.posterior.high, strict=True)
    )
    assert one.prior.outside > 0.99
