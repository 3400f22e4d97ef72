"""`qvr plot`: pictures of a run, their labels, and what is said where a run cannot have one."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result
from typer.testing import CliRunner

from qvr_core.cli import app
from qvr_core.cli.output.chosen_rows import patterns_of
from qvr_core.inference.labelled_datasets import Dataset, Tree, Variable
from qvr_core.runs.evaluation.loo import loo_of
from qvr_core.runs.evaluation.refitted import Plan, Refit, Refits, asked_by
from qvr_core.runs.pictures.look import between, theme
from qvr_core.runs.pictures.posteriors import POSTERIORS, posterior
from qvr_core.runs.pictures.predictions import lines_of, predictive, series, statistics
from qvr_core.runs.pictures.stored import NoPicture, Stored
from qvr_core.runs.record.name_roles import enumerated, predicted_last, standardised
from qvr_core.runs.record.protocol import Job
from qvr_core.runs.record.store import RunStore
from tests.patience import HANG

PROGRAM = """\
object Row : FinSet _
object Group : {north, south}
object Ahead : FinSet 4

program p : Row -> Row
    data g : Row -> Group
    data x, y, count : Row
    sample b_x <- Normal(0.0, 2.0)
    sample sd <- HalfNormal(1.0)
    sample z[k : Group] <- Normal(scale=1.0, loc=0.0)
    let u[k : Group] = sd * z[k]
    sample sigma <- HalfNormal(1.0)
    sample rate <- Exponential(1.0)
    observe y[i : Row] <- Normal(b_x * x[i] + u[g[i]], sigma)
    observe count[i : Row] <- Poisson(rate)
    predict shock[h : Ahead] <- Normal(0.0, sigma)
    let later[h : Ahead] = y[-1] + sum(shock[j] for j : Ahead if j <= h)
    return y

export p
"""
ROWS = [("north" if i % 2 else "south", i / 10, 0.3 * i / 10 + (i * 7 % 5) / 5, i % 4) for i in range(40)]


def qvr(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of chains, `nuts`, and one of a guide, `svi`."""
    made = tmp_path_factory.mktemp("plot")
    (made / "p.qvr").write_text(PROGRAM)
    lines = [",".join(map(str, row)) for row in ROWS]
    (made / "d.csv").write_text("g,x,y,count\n" + "\n".join(lines) + "\n")
    (made / "qvr.toml").write_text('[run.p]\ndata = "csv:d.csv"\n')
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(made)
        done = qvr("run", "svi", "p.qvr", "--steps", "50")
        assert done.exit_code == 0, done.output
        (made / "svi").write_text(RunStore(made).open("last").run_id)
        done = qvr("run", "nuts", "p.qvr", "--warmup", "150", "--samples", "150", "--chains", "2", "--seed", "1")
        assert done.exit_code == 0, done.output
    return made


@pytest.fixture(autouse=True)
def there(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)


def labels(*arguments: str, run: str = "last") -> list[str]:
    """The texts of a picture, as SVG has them."""
    drawn = qvr("plot", run, *arguments, "-o", "picture.svg")
    assert drawn.exit_code == 0, drawn.output
    return re.findall(r"<text[^>]*>([^<]*)</text>", Path("picture.svg").read_text(encoding="utf-8"))


def text(result: Result) -> str:
    return " ".join((result.output + result.stderr).split())


@pytest.mark.parametrize("kind", ["posterior", "trace", "rank", "forest", "prior"])
@pytest.mark.sampled(2)
def test_numbers_are_labelled_and_helpers_are_left_out(kind: str) -> None:
    shown = labels(kind)
    assert {"b_x", "sd", "u[north]", "u[south]", "sigma", "rate"} <= set(shown)
    assert not any(label.startswith("z[") for label in shown)
    assert {one for one in labels(kind, "--vars", "z,b_*") if "[" in one or one[0] == "b"} >= {"z[north]", "b_x"}


def test_the_mean_and_the_interval_stand_below_a_density() -> None:
    row = qvr("summary", "last", "--vars", "b_x", "--format", "csv").output.splitlines()[1].split(",")
    mean, low, high = (f"{float(one):.3g}" for one in (row[1], row[3], row[5]))
    assert f"mean {mean}, 90 % from {low} to {high}".replace("-", "−") in labels("posterior", "--vars", "b_x")


def test_the_mark_of_a_mean_stands_at_the_mean(folder: Path) -> None:
    stored = Stored.of(RunStore(folder).open("last"), ("b_x", "sigma"))
    figure = posterior(stored)
    assert len(figure.axes) == 2
    for axes, draws in zip(figure.axes, stored.numbers("posterior", 9).values(), strict=True):
        marks = [each.get_offsets() for each in axes.collections if len(each.get_offsets()) == 1]
        assert marks[-1][0][0] == pytest.approx(draws.mean(), rel=1e-9)


def test_predictions_by_group_and_by_statistic() -> None:
    shown = labels("ppc", "--vars", "y", "--by", "g")
    assert {"north", "south", "data"} <= set(shown)
    wrong = qvr("plot", "last", "ppc", "--by", "h")
    assert wrong.exit_code == 1 and "has no groups `h`" in text(wrong) and "`g`" in text(wrong)
    means = labels("ppc", "--vars", "y", "--stat", "mean,max")
    assert any(one.startswith(f"data {np.mean([row[2] for row in ROWS]):.3g};") for one in means)
    zeros = labels("ppc", "--vars", "count", "--stat", "zeros")
    assert any(one.startswith("data 0.25;") for one in zeros)
    unknown = qvr("plot", "last", "ppc", "--stat", "meen")
    assert unknown.exit_code == 1 and "did you mean `mean`?" in text(unknown)


def test_a_series_goes_on_with_what_is_predicted_last() -> None:
    shown = labels("series", "--vars", "y")
    assert "later, predicted" in shown and not any("shock" in one for one in shown)
    assert "shock, predicted" in labels("series", "--vars", "y,shock")
    assert not any("predicted" in one for one in labels("series", "--prior"))


def test_a_page_has_both_themes_and_fetches_nothing() -> None:
    assert qvr("plot", "last", "forest", "-o", "forest.html").exit_code == 0
    page = Path("forest.html").read_text(encoding="utf-8")
    assert page.count("<svg ") == 2 and "prefers-color-scheme: dark" in page and 'aria-label="Posterior means' in page
    assert not re.search(r'(?:src|href|url)\s*[=(]\s*"?(?!#|"#)|<script|@import', page.replace("url(#", "#"))
    plain, dark = labels("forest"), labels("forest", "--dark")
    assert plain == dark and "#16191d" in Path("picture.svg").read_text(encoding="utf-8")


@pytest.mark.long
def test_what_a_run_cannot_have_is_said() -> None:
    svi = Path("svi").read_text()
    for kind in ("trace", "rank", "energy"):
        refused = qvr("plot", svi, kind)
        assert refused.exit_code == 1 and "a fit by svi has none" in text(refused), text(refused)
    for kind in ("posterior", "forest", "pairs", "ppc", "loo"):
        assert qvr("plot", svi, kind).exit_code == 0, kind
    assert "`--stat`" not in text(qvr("plot", "last", "loo", "--stat", "mean"))
    assert qvr("plot", "last", "trace", "--by", "g").exit_code == 2
    assert qvr("plot", "last", "trace", "-o", "trace.gif").exit_code == 2
    few = qvr("plot", "last", "pairs", "--vars", "sigma")
    assert few.exit_code == 1 and "two numbers" in text(few)


def test_without_the_extra_the_command_that_brings_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    refused = qvr("plot", "last", "posterior")
    assert refused.exit_code == 1 and f"{sys.executable} -m pip install 'qvr-lsp[plots]'" in text(refused)


PROBE = """
import sys
from qvr_core.cli import app
for kind in ("pairs", "energy", "loo", "ppc", "series"):
    app(["plot", "p", kind], standalone_mode=False)
app(["plot", "p", "posterior", "--vars", "b_x", "-o", "one.svg"], standalone_mode=False)
app(["plot", "p", "loo", "--pit", "-o", "pit.svg"], standalone_mode=False)
sys.exit("torch" in sys.modules)
"""


@pytest.mark.process
@pytest.mark.long
def test_every_kind_is_written_and_loads_no_torch() -> None:
    done = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, text=True, timeout=HANG, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    for kind in ("pairs", "energy", "loo", "ppc", "series"):
        assert f"wrote {kind}.png" in done.stdout + done.stderr
        assert Path(f"{kind}.png").read_bytes().startswith(b"\x89PNG")
    assert Path("one.svg").exists() and Path("pit.svg").exists()


@pytest.mark.long
def test_a_legend_hides_nothing_and_one_far_draw_flattens_nothing(folder: Path) -> None:
    run = RunStore(folder).open("last")
    stored = Stored.of(run, ["b_x", "sd", "u[north]", "u[south]", "sigma", "rate"])
    steps = stored.observed("posterior_predictive")
    draws = {kind: (lambda kind=kind: POSTERIORS[kind](stored)) for kind in POSTERIORS}
    draws |= {
        "ppc": lambda: predictive(steps[:1], "posterior"),
        "bars": lambda: predictive(steps[1:], "posterior"),
        "stat": lambda: statistics(steps, ["mean"], "posterior"),
        "series": lambda: series(steps, [], "posterior"),
    }
    for kind, draw in draws.items():
        with theme(dark=False):
            figure = draw()
            figure.draw_without_rendering()
            legends = [one.get_window_extent() for one in figure.legends]
            panels = [axes.get_tightbbox() for axes in figure.axes if axes.get_visible()]
            hidden = [one for one in legends for panel in panels if panel is not None and one.overlaps(panel)]
            assert not hidden, kind
            width = figure.bbox.width
            assert all(one.x0 >= -1 and one.x1 <= width + 1 for one in legends), kind
    values = np.append(np.linspace(0, 1, 2000), 1e6)
    assert between(values)[1] < 2


def job(program: str) -> Job:
    given = {"run_id": "", "directory": "", "path": "p.qvr", "text": program, "program": "p"}
    return Job.model_validate({**given, "config": {"algorithm": "nuts"}})


def test_helpers_are_known_by_the_model() -> None:
    assert standardised(job(PROGRAM)) == {"z"} and predicted_last(job(PROGRAM)) == {"later"}
    wide = PROGRAM.replace("scale=1.0, loc=0.0", "0.0, 2.0")
    assert not standardised(job(wide))
    read = PROGRAM.replace("u[g[i]], sigma", "z[g[i]], sigma")
    assert not standardised(job(read)), "what the data read is of interest itself"
    assert enumerated(job(PROGRAM)) == {"Group": ("north", "south")}


def test_every_divergence_is_seen(folder: Path) -> None:
    stored = Stored.of(RunStore(folder).open("last"), ("b_x", "sigma"))
    marks = np.zeros_like(stored.group("sample_stats")["diverging"].values)
    marks[0, [3, 77]] = marks[1, 149] = True
    stored.group("sample_stats").data_vars["diverging"].values[...] = marks
    for axes in POSTERIORS["trace"](stored).axes:
        (rug,) = [line for line in axes.lines if line.get_marker() == "|"]
        assert rug.get_xdata().tolist() == [3, 77, 149]
        assert rug.get_transform() == axes.get_xaxis_transform(), "within the panel, whatever its range"
    dots = [len(each.get_offsets()) for axes in POSTERIORS["pairs"](stored).axes for each in axes.collections]
    assert sorted(dots) == [1, 2, 150, 150]  # of each chain those that diverged, and all


def test_a_distribution_of_few_observations_rises_from_0_to_1(folder: Path) -> None:
    stored = Stored.of(RunStore(folder).open("last"), ())
    steps = [step for step in stored.observed("posterior_predictive") if step.name == "y"]
    few = [replace(step, data=step.data[:5], drawn=step.drawn[:, :5], places=step.places[:5]) for step in steps]
    (axes,) = predictive(few, "posterior").axes
    assert axes.get_ylim()[0] == 0 and axes.get_ylim()[1] > 1
    assert {(float(line.get_ydata()[0]), float(line.get_ydata()[-1])) for line in axes.lines} == {(0.0, 1.0)}


def test_a_statistic_that_is_the_same_in_every_draw_is_said() -> None:
    shown = labels("ppc", "--vars", "y", "--stat", "mean,zeros")
    assert "mean of y" in shown and any(one.startswith("zeros of y: 0 in every draw, ") for one in shown)


def test_a_picture_of_loo_counts_the_refits_of_its_run(folder: Path) -> None:
    run = RunStore(folder).open("last")
    before = labels("loo")
    assert "refitted without it" not in before
    stored = Stored.of(run, ())
    found = loo_of(stored.tree)
    assert found is not None
    name = found.names[int(found.k.argmax())]
    exact = Refits(Plan(), asked_by(run), (name,), (0,), 1, done={0: Refit((-50.0,), (0.1,))})
    exact.write(run)
    after = labels("loo")
    exact.plan.file(run).unlink()
    assert "refitted without it" in after and name in after
    wanted = found.refitted({name: -50.0})
    assert any(one.startswith(f"elpd −{-wanted.total:.1f} ± {wanted.se:.1f}, ") for one in after)
    assert wanted.total < found.total - 40


def test_series_of_a_step_of_two_axes_run_along_the_longer_one() -> None:
    """Three subjects at five times, of which one cell is missing: three series, called by their subjects."""
    times, subjects = np.array([0.5, 1.0, 2.0, 4.0, 8.0]), np.array(["s1", "s2", "s3"])
    data = np.arange(15.0).reshape(3, 5)
    data[1, 2] = np.nan
    axes = {"Subject": subjects, "Time": times}
    drawn = data + np.zeros((1, 4, 3, 5))
    groups = {
        "observed_data": Dataset({"y": Variable(("Subject", "Time"), data, axes)}),
        "posterior_predictive": Dataset({"y": Variable(("chain", "draw", "Subject", "Time"), drawn, axes)}),
    }
    groups["log_likelihood"] = groups["posterior_predictive"]
    stored = Stored("nuts", Tree(groups), (), {})
    lines = stored.lines("posterior_predictive")
    for asked, wanted in (("y[s2]", "y[s2]"), ("y", "y[s1] y[s2] y[s3]"), ("y[s3] y[s1]", "y[s1] y[s3]")):
        chosen = lines_of(stored, "posterior_predictive", patterns_of(asked))
        assert [one.name for one in chosen] == wanted.split()
    for wrong, told in (("z", "no `z`: there are `y`"), ("y[s4]", "no series `y[s4]`: there are `y[s1]`, `y[s2]`")):
        with pytest.raises(NoPicture, match=re.escape(told)):
            lines_of(stored, "posterior_predictive", [wrong])
    assert [(one.name, one.axis, one.data.tolist()) for one in lines] == [
        ("y[s1]", "Time", [0.0, 1.0, 2.0, 3.0, 4.0]),
        ("y[s2]", "Time", [5.0, 6.0, 8.0, 9.0]),
        ("y[s3]", "Time", [10.0, 11.0, 12.0, 13.0, 14.0]),
    ]
    assert lines[1].labels[lines[1].places].tolist() == [0.5, 1.0, 4.0, 8.0]
    assert lines[2].drawn.tolist() == [[10.0, 11.0, 12.0, 13.0, 14.0]] * 4
    figure = series(lines, [], "posterior")
    assert [axes.get_ylabel() for axes in figure.axes] == ["y[s1]", "y[s2]", "y[s3]"]


def test_a_fit_that_is_a_point_has_a_summary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("p.qvr").write_text("program p : FinSet 3 -> FinSet 3\n    sample m <- Normal(0.0, 1.0)\n"
                             "    observe y <- Normal(m, 1.0)\n    return m\n")  # fmt: skip
    Path("d.csv").write_text("y\n1\n2\n3\n")
    done = qvr("run", "svi", "p.qvr", "--data", "csv:d.csv", "--guide", "delta", "--steps", "300")
    assert done.exit_code == 0, done.output
    shown = qvr("summary", "last", "--format", "csv")
    assert shown.exit_code == 0, shown.output
    name, mean, sd = shown.stdout.splitlines()[1].split(",")[:3]
    assert name == "m" and float(mean) == pytest.approx(1.5, abs=0.02) and float(sd) == 0.0
