"""The programs of examples/statistics are clean, load the way a user loads them, and run."""

from __future__ import annotations

import polars as pl
import pytest
import torch

from qvr_core.analysis import analyse
from qvr_core.dsl import load
from qvr_core.inference import ELBO, MCMC, SVI, AutoNormalGuide, NUTSKernel
from qvr_core.syntax.formatter import format_text
from tests.examples.statistics import test_hidden_states, test_hierarchies, test_series
from tests.examples.statistics.programs import NAMES, STATISTICS, data_of, prepared


def text_of(name: str) -> str:
    return (STATISTICS / f"{name}.qvr").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", NAMES)
def test_a_program_is_clean_and_says_what_it_is_about(name: str) -> None:
    assert [found.message for found in analyse(text_of(name)).diagnostics()] == []
    about, shows, following = text_of(name).split("\n")[:3]
    assert about.startswith("# ") and shows.startswith("# Shows: ") and not following.startswith("#")
    assert format_text(text_of(name)) == text_of(name)


def test_every_program_has_a_density_written_by_hand() -> None:
    written = {name for each in (test_hierarchies, test_series, test_hidden_states) for name in vars(each)}
    assert written >= set(NAMES)


def test_a_frame_from_python_says_the_same_as_the_files() -> None:
    tables = {"House": pl.read_csv(STATISTICS / "radon.csv"), "County": pl.read_csv(STATISTICS / "radon_counties.csv")}
    program = load(STATISTICS / "radon.qvr", data=tables).morphism
    wanted = data_of("radon")
    assert wanted
    for name, value in wanted.items():
        torch.testing.assert_close(program.data[name].double(), torch.as_tensor(value).double())


@pytest.mark.parametrize("name", NAMES)
def test_a_short_chain_has_finite_draws_and_all_that_is_made_of_them(name: str) -> None:
    kernel = NUTSKernel(max_tree_depth=3)
    result = MCMC(kernel, num_warmup=6, num_samples=4, seed=1).run(prepared(name).model, None, data_of(name))
    assert all(bool(torch.isfinite(draws).all()) for draws in result.samples.values())
    groups = result.groups(prior_draws=3)
    assert {"posterior", "posterior_predictive"} <= set(groups.found)


@pytest.mark.parametrize("name", NAMES)
def test_a_short_fit_has_finite_losses(name: str) -> None:
    model, data = prepared(name).model, data_of(name)
    guide = AutoNormalGuide(model, observed_names=set(data), observations=data)
    svi = SVI(model, guide, torch.optim.Adam(guide.parameters(), lr=0.01), ELBO())
    losses = torch.tensor([svi.step(None, data) for _ in range(4)])
    assert bool(torch.isfinite(losses).all())


def test_poststratification_predicts_a_count_for_each_state() -> None:
    model, data = prepared("mrp").model, data_of("mrp")
    result = MCMC(NUTSKernel(max_tree_depth=4), num_warmup=20, num_samples=10, seed=1).run(model, None, data)
    asked, support = result.predictions["asked"], result.deterministic["support"]
    assert asked.shape[-1] == support.shape[-1] == 4
    assert bool(((asked >= 0) & (asked <= 100)).all())
    assert float((asked / 100 - support).abs().max()) < 0.25
