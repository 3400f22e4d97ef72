"""Runs ranked by PSIS-LOO: the figures of ArviZ, closed forms, and runs that cannot be compared."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import xarray
from scipy import stats
from typer.testing import CliRunner

from qvr_core.cli import app
from qvr_core.runs.evaluation.loo import Loo, loo_of
from qvr_core.runs.evaluation.ranking import ranked
from qvr_core.runs.pictures.predictions import steps_of
from qvr_core.runs.pictures.stored import Stored
from qvr_core.runs.record.store import RunStore

MODEL = """\
object Row : FinSet 6
program p : Row -> Row
    sample mu <- Normal(0.0, 2.0)
    observe y : Row <- Normal(mu, 1.0)
    return mu
"""
Y = np.array([0.3, 1.2, -0.7, 2.5, 1.1, 0.4])


def stored(shift: float, seed: int) -> Loo:
    """Draws of the mean of 30 normals, off by a shift."""
    y = np.random.default_rng(7).normal(size=30)
    mu = np.random.default_rng(seed).normal(y.mean() + shift, 30**-0.5, size=(4, 500))
    likelihood = stats.norm(mu[..., None], 1.0).logpdf(y)
    tree = {
        "/posterior": xarray.Dataset({"mu": (("chain", "draw"), mu)}),
        "/log_likelihood": xarray.Dataset({"y": (("chain", "draw", "Row"), likelihood)}, {"Row": np.arange(30)}),
    }
    found = loo_of(xarray.DataTree.from_dict(tree))
    assert found is not None and found.names[3] == "y[3]"
    return found


def test_figures_are_those_of_arviz() -> None:
    best, other = ranked({"b": stored(0.6, 2), "a": stored(0.0, 1)}).rows
    # arviz.compare, ArviZ 0.23.4
    assert (best.run, other.run) == ("a", "b")
    assert (best.elpd, best.se, best.parameters) == pytest.approx((-38.5822, 2.8247, 0.7068), rel=1e-3)
    assert (other.elpd, other.se, other.parameters) == pytest.approx((-43.9586, 4.5793, 1.0381), rel=1e-3)
    assert (-other.difference, other.difference_se) == pytest.approx((5.3764, 2.7563), rel=1e-3)


def test_a_small_difference_is_told_beside_rough_figures() -> None:
    first, second = stored(0.0, 1), stored(0.05, 2)
    rough = Loo(second.names, second.elpd, np.ones(30), second.parameters, second.good)
    note = ranked({"a": first, "b": rough}).note
    assert note is not None
    told = note.splitlines()
    assert len(told) == 2 and told[0].startswith("Pareto k is too large in b") and "is small" in told[1]
    apart = ranked({"a": first, "b": stored(9.0, 2)}).note
    assert apart is None or "is small" not in apart


def test_runs_that_score_other_steps_are_ranked_by_those_that_all_score() -> None:
    both, one = stored(0.0, 1), stored(0.6, 2)
    size = len(both.elpd)
    predictor = Loo(
        (*both.names, *(f"x[{i}]" for i in range(9))),
        np.append(both.elpd, np.full(9, -50.0)),
        np.append(both.k, np.zeros(9)),
        np.append(both.parameters, np.zeros(9)),
        both.draws,
    )
    found = ranked({"b": one, "a": predictor})
    assert [row.run for row in found.rows] == ["a", "b"] and {row.observations for row in found.rows} == {size}
    assert found.rows[0].elpd == pytest.approx(both.total) and found.note is not None
    assert found.note.startswith("of `y` alone, which every run scores, and not of `x`")
    exact = predictor.refitted({"y[3]": -1.0, "x[0]": -2.0})
    assert (exact.exact, exact.of({"y"}).exact) == ({"y[3]", "x[0]"}, {"y[3]"})
    masked = predictor.of({"y"})
    fewer = Loo(masked.names[1:], masked.elpd[1:], masked.k[1:], masked.parameters[1:], masked.draws)
    refused = ranked({"a": predictor, "b": fewer})
    assert not refused.rows and refused.note is not None and "(a 39, b 29)" in refused.note


def test_the_command_ranks_and_shows_what_differs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.qvr").write_text(MODEL)
    (tmp_path / "far.qvr").write_text(MODEL.replace("Normal(0.0, 2.0)", "Normal(9.0, 0.5)"))
    for name, values in (("d", Y), ("e", Y + 1.0)):
        (tmp_path / f"{name}.csv").write_text("\n".join(["y", *map(str, values)]) + "\n")
    qvr = CliRunner().invoke
    for program, data in (("m", "d"), ("far", "d"), ("m", "e")):
        given = ["--data", f"csv:{data}.csv", "--warmup", "200", "--samples", "250"]
        ran = qvr(app, ["run", "nuts", f"{program}.qvr", *given])
        assert ran.exit_code == 0, ran.output
    near, far, elsewhere = sorted(path.name for path in (tmp_path / ".qvr" / "runs").iterdir())
    shown = qvr(app, ["runs", "compare", near, far])
    assert shown.exit_code == 0, shown.output
    assert "predictive accuracy" in shown.output and "program" in shown.output
    assert "-    sample mu <- Normal(0.0, 2.0)" in shown.output and "+    sample mu <- Normal(9.0, 0.5)" in shown.output
    found = json.loads(qvr(app, ["runs", "compare", far, near, "--json"]).stdout)
    assert [one["run"] for one in found["elpd"]] == [near, far]
    variance = 1 / (1 / 4 + len(Y) - 1)
    exact = stats.norm((Y.sum() - Y) * variance, np.sqrt(variance + 1)).logpdf(Y).sum()
    assert found["elpd"][0]["elpd"] == pytest.approx(exact, abs=0.15)
    assert found["programs"] == [1, 2]
    assert "observed different data" in qvr(app, ["runs", "compare", near, elsewhere]).output
    assert "two runs or more" in qvr(app, ["runs", "compare", near]).output

    kept = qvr(app, ["runs", "delete", far, near], input="n\n")
    assert kept.exit_code == 1 and (tmp_path / ".qvr" / "runs" / far).exists()
    gone = qvr(app, ["runs", "delete", far, "--yes"])
    assert gone.exit_code == 0, gone.output
    assert sorted(path.name for path in (tmp_path / ".qvr" / "runs").iterdir()) == [near, elsewhere]
    assert not list((tmp_path / ".qvr").glob(".deleted*"))


NESTED = """\
object Row : FinSet _
program m : Row -> Row
    data y, x : Row
    observe x[i : Row] <- Normal(0.0, 1.0) [missing=impute]
    sample b <- Normal(0.0, 1.0)
    observe y[i : Row] <- Normal(b * x[i], 1.0)
    return y
"""


@pytest.mark.long
def test_a_program_with_one_more_predictor_is_compared_though_its_gaps_are_filled_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "with.qvr").write_text(NESTED)
    without = NESTED.replace("y, x", "y").replace("b * x[i]", "b")
    (tmp_path / "without.qvr").write_text("".join(line for line in without.splitlines(True) if "observe x" not in line))
    rows = [f"{2.0 * x + 0.1},{'' if x == 0.5 else x}" for x in np.linspace(-2.0, 2.0, 25)]
    (tmp_path / "d.csv").write_text("\n".join(["y,x", *rows]) + "\n")
    (tmp_path / "e.csv").write_text("\n".join(["y,x", *rows[1:], rows[0]]) + "\n")
    qvr = CliRunner().invoke
    for program, data in (("with", "d"), ("without", "d"), ("without", "e")):
        given = ["--data", f"csv:{data}.csv", "--warmup", "200", "--samples", "250"]
        ran = qvr(app, ["run", "nuts", f"{program}.qvr", *given])
        assert ran.exit_code == 0, ran.output
    larger, smaller, shuffled = sorted(path.name for path in (tmp_path / ".qvr" / "runs").iterdir())
    for order in ((larger, smaller), (smaller, larger)):
        found = json.loads(qvr(app, ["runs", "compare", *order, "--json"]).stdout)
        assert [one["run"] for one in found["elpd"]] == [larger, smaller]
    stored = Stored.of(RunStore(tmp_path).open(larger), ())
    for named, drawn in (((), ["y"]), (("x",), ["x"])):  # a predictor is no outcome to look at
        assert [step.name for step in steps_of(stored, "posterior_predictive", named)] == drawn
    assert "observed different data of `y`" in qvr(app, ["runs", "compare", larger, shuffled]).output


def test_a_point_has_no_leave_one_out_and_what_no_latent_moves_has_its_density() -> None:
    same = np.full((2, 100, 3), -1.5)
    groups = {
        "/posterior": xarray.Dataset({"mu": (("chain", "draw"), np.zeros((2, 100)))}),
        "/log_likelihood": xarray.Dataset({"y": (("chain", "draw", "Row"), same)}, {"Row": np.arange(3)}),
    }
    assert loo_of(xarray.DataTree.from_dict(groups)) is None
    moved = same + np.random.default_rng(1).normal(size=same.shape) * np.array([0.0, 0.1, 0.1])
    groups["/log_likelihood"] = xarray.Dataset({"y": (("chain", "draw", "Row"), moved)}, {"Row": np.arange(3)})
    found = loo_of(xarray.DataTree.from_dict(groups))
    assert found is not None and found.elpd[0] == -1.5 and found.parameters[0] == 0.0 and not len(found.bad)
