"""Whether a fit is to be trusted: each check against figures that are known, and its place in the program."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import xarray
from arviz_stats.base.array import array_stats
from numpy.typing import NDArray
from typer.testing import CliRunner

from qvr_core.analysis import analyse
from qvr_core.cli import app
from qvr_core.runs.evaluation.fit_checks import Source, fit_checks
from qvr_core.runs.record.config import RunConfig
from qvr_core.runs.record.protocol import Check

FUNNEL = """\
object S : FinSet 4
program funnel : S -> S
    sample mu <- Normal(0.0, 1.0)
    sample tau <- HalfCauchy(5.0)
    sample theta : S <- Normal(mu, tau)
    observe y : S <- Normal(theta, 1.0)
    return theta
"""
NUTS = RunConfig(algorithm="nuts", warmup=100, samples=200)


def fitted(generator: np.random.Generator, **changed: NDArray) -> xarray.DataTree:
    """Four perfect chains of 200 draws, but for what is changed."""
    good = {
        "diverging": np.zeros((4, 200), dtype=bool),
        "tree_depth": np.full((4, 200), 3),
        "energy": generator.normal(size=(4, 200)),
        "mu": generator.normal(size=(4, 200)),
        "tau": np.exp(generator.normal(size=(4, 200))),
    } | changed
    both = ("chain", "draw")
    groups = {
        "/posterior": xarray.Dataset({name: (both, good[name]) for name in ("mu", "tau")}),
        "/sample_stats": xarray.Dataset({n: (both, good[n]) for n in ("diverging", "tree_depth", "energy")}),
    }
    return xarray.DataTree.from_dict(groups)


def still() -> NDArray:
    """Three chains that move, and one that stands still."""
    drawn = np.random.default_rng(6).normal(size=(4, 200))
    drawn[3] = drawn[3, 0]
    return drawn


def slow() -> NDArray:
    """Draws of which each is close to the one before: chains that agree, and tell little."""
    steps = np.random.default_rng(3).normal(size=(4, 200))
    for at in range(1, 200):
        steps[:, at] += 0.5 * steps[:, at - 1]
    return steps


def checked(tree: xarray.DataTree, config: RunConfig = NUTS) -> dict[str, Check]:
    snapshot = analyse(FUNNEL)
    found = fit_checks(tree, config, Source(snapshot.model.programs["funnel"], snapshot, FUNNEL))
    return {one.name: one for one in found}


def test_good_chains_pass_every_check() -> None:
    found = checked(fitted(np.random.default_rng(1)))
    assert list(found) == ["divergences", "tree depth", "E-BFMI", "R-hat", "bulk ESS", "tail ESS", "MCSE"]
    assert all(one.passed and one.advice is None and one.range is None for one in found.values())


@pytest.mark.parametrize(
    ("name", "changed", "value", "line", "advice"),
    [
        ("divergences", {"diverging": np.eye(4, 200, dtype=bool)}, 4 / 800, 4, "`[noncentred]`"),
        ("tree depth", {"tree_depth": np.full((4, 200), 10)}, 1.0, 4, "max_tree_depth (it is 10)"),
        ("R-hat", {"tau": np.random.default_rng(2).normal(np.arange(4)[:, None], size=(4, 200))}, None, 3, "warmup ="),
        ("chains", {"mu": still(), "tau": still()}, 199 / 199, 1, "another seed"),
        ("bulk ESS", {"mu": slow()}, None, 2, "samples ="),
    ],
)  # fmt: skip
def test_what_is_bad_says_what_to_do_and_where(
    name: str, changed: dict[str, NDArray], value: float | None, line: int, advice: str
) -> None:
    one = checked(fitted(np.random.default_rng(1), **changed))[name]
    assert not one.passed and one.grave is (name != "bulk ESS") and (one.range is None or one.range.start.line == line)
    assert (one.range is None) is (name == "chains")
    assert one.advice is not None and advice in one.advice
    assert value is None or one.value == pytest.approx(value)


def test_energies_that_creep_are_told_by_the_figure_of_arviz() -> None:
    energy = np.random.default_rng(4).normal(size=(4, 200)).cumsum(1)
    one = checked(fitted(np.random.default_rng(1), energy=energy))["E-BFMI"]
    assert not one.passed
    assert one.value == pytest.approx(float(np.min(array_stats.bfmi(energy, chain_axis=0, draw_axis=1))), rel=0.02)


@pytest.mark.parametrize(("freedom", "good"), [(4, True), (1, False)])
def test_a_guide_is_judged_by_its_weights(freedom: int, good: bool) -> None:
    """Weights whose tail is that of a t distribution have k = 1 / its degrees of freedom."""
    weights = np.log(np.abs(np.random.default_rng(5).standard_t(freedom, size=(1, 20_000))))
    tree = xarray.DataTree.from_dict({"/sample_stats": xarray.Dataset({"log_weight": (("chain", "draw"), weights)})})
    one = checked(tree, RunConfig())["guide"]
    assert one.passed is good and one.value == pytest.approx(1 / freedom, abs=0.2)


def test_the_command_shows_them_and_the_run_ends_with_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.qvr").write_text(FUNNEL)
    (tmp_path / "d.csv").write_text("y\n28\n8\n-3\n7\n")
    qvr = CliRunner().invoke
    given = ["--data", "csv:d.csv", "--warmup", "50", "--samples", "200", "--chains", "2"]
    ran = qvr(app, ["run", "nuts", "m.qvr", *given])
    assert ran.exit_code == 0 and "bulk ESS" in ran.output and "m.qvr:" in ran.output
    shown = qvr(app, ["check-fit"])
    assert shown.exit_code == 1
    block = [line for line in shown.output.splitlines() if line.strip()]
    assert all(line in ran.output for line in block)
    found = json.loads(qvr(app, ["check-fit", "last", "--json"]).stdout)["checks"]
    assert {"divergences", "R-hat", "Pareto k"} <= {one["name"] for one in found}
    assert all("advice" in one for one in found if not one["passed"])
    assert qvr(app, ["check-fit", "nope"]).exit_code == 2


def test_a_run_without_draws_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.qvr").write_text(FUNNEL)
    ran = CliRunner().invoke(app, ["run", "svi", "m.qvr", "--data", "csv:none.csv"])
    assert ran.exit_code == 2
    shown = CliRunner().invoke(app, ["check-fit"])
    assert shown.exit_code == 1 and "left no posterior to check" in shown.output
    asked = CliRunner().invoke(app, ["summary"])
    assert asked.exit_code == 1 and "left no posterior: qvr run nuts FILE" in asked.output


def disagreeing(names: dict[str, int]) -> dict[str, Check]:
    """Chains of which one lies elsewhere, in these sites of so many elements."""
    generator = np.random.default_rng(3)
    tree = fitted(generator).to_dict()
    for name, size in names.items():
        draws = generator.normal(size=(4, 200, size))
        draws[0] += 5.0
        dims = ("chain", "draw", f"{name}_dim_0") if size > 1 else ("chain", "draw")
        coords = {f"{name}_dim_0": np.arange(size)} if size > 1 else {}
        one = xarray.Dataset({name: (dims, draws if size > 1 else draws[..., 0])}, coords)
        tree["/posterior"] = xarray.merge([tree["/posterior"], one])
    return checked(xarray.DataTree.from_dict(tree))


def test_only_numbers_of_one_site_can_have_swapped_their_labels() -> None:
    lone = disagreeing({"sigma": 1})["R-hat"].advice
    assert lone is not None and "labels" not in lone and "look at the prior of `sigma`" in lone
    several = disagreeing({"centre": 2})["R-hat"].advice
    assert several is not None and "look for labels that can be swapped" in several


def test_rows_with_filled_in_values_are_not_told_to_take_heavier_tails() -> None:
    generator = np.random.default_rng(4)
    tree = fitted(generator).to_dict()
    x = generator.normal(size=(4, 200, 1))
    cells = xarray.Dataset({"x": (("chain", "draw", "x_missing"), x)}, {"x_missing": ["2"]})
    tree["/posterior"] = xarray.merge([tree["/posterior"], cells])
    density = generator.normal(size=(4, 200, 4)) * 0.1
    density[..., 2] = -0.5 * (6.0 * x[..., 0]) ** 2
    tree["/log_likelihood"] = xarray.Dataset({"y": (("chain", "draw", "Row"), density)}, {"Row": np.arange(4)})
    advice = checked(xarray.DataTree.from_dict(tree))["Pareto k"].advice
    assert advice is not None and "filled in" in advice and "heavier tails" not in advice
    tree["/posterior"] = tree["/posterior"].drop_dims("x_missing")
    advice = checked(xarray.DataTree.from_dict(tree))["Pareto k"].advice
    assert advice is not None and "heavier tails" in advice


def test_what_is_wrong_with_mixing_has_one_remedy() -> None:
    """Of chains that disagree nothing else is told: their effective sizes are those of no posterior (D5)."""
    apart = np.random.default_rng(5).normal(size=(4, 200)) + 3.0 * np.arange(4)[:, None]
    found = checked(fitted(np.random.default_rng(4), mu=apart))
    (failed,) = (one for one in found.values() if not one.passed)
    assert failed.name == "R-hat"
    assert failed.settings["warmup"] == 200 and failed.settings["samples"] >= 400


def test_d5_components_that_change_places_are_told_to_be_ordered() -> None:
    """More draws do not mend it; nor is it what chains of an element that is not identified show."""
    draws = np.random.default_rng(6).normal(size=(4, 200, 2)) * 0.2 + np.array([0.0, 3.0])
    draws[1:3] = draws[1:3, :, ::-1]
    wide = np.random.default_rng(6).normal(size=(4, 200, 2)) + 4.0 * np.arange(4)[:, None, None] * np.array([1, -1])
    for values, ordered in ((draws, True), (wide, False)):
        (failed,) = (one for one in checked(with_vector("rate", values)).values() if not one.passed)
        assert failed.name == "R-hat" and failed.advice is not None
        assert ("sample rate : Ordered 2 <- …" in failed.advice) is ordered
        assert bool(failed.settings) is not ordered


def with_vector(name: str, draws: NDArray) -> xarray.DataTree:
    tree = fitted(np.random.default_rng(4)).to_dict()
    vector = xarray.Dataset({name: (("chain", "draw", "component"), draws)}, {"component": ["a", "b"]})
    tree["/posterior"] = xarray.merge([tree["/posterior"], vector])
    return xarray.DataTree.from_dict(tree)


def test_observations_with_a_latent_each_are_not_told_to_take_heavier_tails() -> None:
    generator = np.random.default_rng(4)
    tree = fitted(generator).to_dict()
    labels = {"S": list("abcd")}
    theta = generator.normal(size=(4, 200, 4))
    each = xarray.Dataset({"theta": (("chain", "draw", "S"), theta)}, labels)
    tree["/posterior"] = xarray.merge([tree["/posterior"], each])
    tree["/log_likelihood"] = xarray.Dataset({"y": (("chain", "draw", "S"), -0.5 * (6.0 * theta) ** 2)}, labels)
    advice = checked(xarray.DataTree.from_dict(tree))["Pareto k"].advice
    assert advice is not None and "each observation has an element of `theta` of its own" in advice
    assert "try a family with heavier tails" not in advice


def scored(log_likelihood: NDArray, posterior: NDArray) -> dict[str, Check]:
    """The checks of draws of a location and of a pointwise log likelihood (chains, draws, rows)."""
    chains, draws = posterior.shape
    both = ("chain", "draw")
    good = {"diverging": np.zeros((chains, draws), dtype=bool), "tree_depth": np.full((chains, draws), 3)}
    groups = {
        "/posterior": xarray.Dataset({"mu": (both, posterior)}),
        "/sample_stats": xarray.Dataset({name: (both, value) for name, value in good.items()}),
        "/log_likelihood": xarray.Dataset(
            {"y": ((*both, "Row"), log_likelihood)}, {"Row": np.arange(1, 1 + log_likelihood.shape[2])}
        ),
    }
    return checked(xarray.DataTree.from_dict(groups))


def test_a10_few_draws_are_told_as_few_draws_and_not_as_heavy_tails() -> None:
    """120 draws of a Normal's mean and its forty observations: some Pareto k are above 0.52 by chance."""
    generator = np.random.default_rng(3)
    y = generator.normal(size=40)
    mu = y.mean() + generator.normal(size=(4, 30)) / np.sqrt(40) * 1.3
    one = scored(-0.5 * (y - mu[..., None]) ** 2 * 2.0, mu)["Pareto k"]
    assert not one.passed and "what 120 draws allow, 0.52" in one.text
    assert one.advice is not None and "too few to tell" in one.advice and "heavier tails" not in one.advice
    assert one.settings["samples"] * 4 >= 2_155


def test_a10_one_joint_observation_cannot_be_left_out() -> None:
    """A Gaussian process or a change point: all data are one term of the density."""
    generator = np.random.default_rng(3)
    mu = generator.normal(size=(4, 200))
    one = scored(-0.5 * (6.0 * mu[..., None]) ** 2, mu)["Pareto k"]
    assert one.passed and "does not apply" in one.text and "y" in one.text


def test_a10_chains_are_long_enough_by_default_for_what_is_asked_of_them() -> None:
    config = RunConfig(algorithm="nuts")
    assert (config.warmup, config.samples, config.chains) == (1_000, 1_000, 4)


@pytest.mark.parametrize(
    ("space", "advised"), [(": Comp <- Normal(0.0, 1.0)", True), (": Ordered 2 <- Normal(0.0, 1.0)", False)]
)
def test_scales_of_ordered_components_are_given_no_order_of_their_own(space: str, advised: bool) -> None:
    text = f"""\
object Comp : FinSet 2
program mixed : Comp -> Comp
    sample mu {space}
    sample s : Comp <- HalfNormal(1.0)
    sample w : Comp <- Dirichlet(1.0)
    observe y <- MixtureNormal(w, mu, s)
    return mu
"""
    generator = np.random.default_rng(2)
    narrow, wide = 1.0 + 0.05 * generator.normal(size=(4, 200)), 3.0 + 0.05 * generator.normal(size=(4, 200))
    s = np.where((np.arange(4) % 2 == 0)[:, None, None], np.stack([narrow, wide], 2), np.stack([wide, narrow], 2))
    mu = np.sort(generator.normal(size=(4, 200, 2)), 2)
    values = {"mu": (("chain", "draw", "Comp"), mu), "s": (("chain", "draw", "Comp"), s)}
    statistics = {n: (("chain", "draw"), v) for n, v in (("diverging", np.zeros((4, 200), bool)), ("energy", narrow))}
    statistics["tree_depth"] = (("chain", "draw"), np.full((4, 200), 3))
    tree = xarray.DataTree.from_dict(
        {"/posterior": xarray.Dataset(values), "/sample_stats": xarray.Dataset(statistics)}
    )
    snapshot = analyse(text)
    found = fit_checks(tree, NUTS, Source(snapshot.model.programs["mixed"], snapshot, text))
    (failed,) = (one for one in found if one.name == "R-hat" and not one.passed)
    assert failed.advice is not None and ("change places" in failed.advice) is advised, failed.advice
