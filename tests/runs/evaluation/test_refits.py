"""Refits without some of the observations: closed forms, refits written by hand, groups that are never seen."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest
import torch
from click.testing import Result
from scipy import stats
from scipy.special import logsumexp
from typer.testing import CliRunner

from qvr_core.cli import app
from qvr_core.data.needs import needs_of
from qvr_core.dsl import loads
from qvr_core.inference import MCMC, NUTSKernel
from qvr_core.inference.folds import by_group
from qvr_core.inference.leaving_out import LeavingOut, NotLeftOut, log_mean_densities, predicted_without
from qvr_core.inference.pointwise import Given
from qvr_core.runs.evaluation.refitted import Plan, Refit, Refits, read
from qvr_core.runs.record.netcdf import read_netcdf
from qvr_core.runs.record.store import RunDirectory
from qvr_core.runs.worker.refits import cross_validate

STATISTICS = Path(__file__).resolve().parents[3] / "examples" / "statistics"
MEAN = """\
object Row : FinSet _
program mean : Row -> Row
    data y : Row
    sample mu <- Normal(0.0, 2.0)
    observe y[i : Row] <- Normal(mu, 1.0)
    return mu
"""
GROUPS = """\
object Row : FinSet _
object Group : FinSet _
program groups : Row -> Row
    data group : Row -> Group
    data y : Row
    sample mu <- Normal(0.0, 2.0)
    sample a[g : Group] <- Normal(mu, 1.5)
    observe y[i : Row] <- Normal(a[group[i]], 1.0)
    return a
"""
Y = np.array([0.3, 1.2, -0.7, 2.5, 1.1, 0.4, 7.5, 0.8])
GROUP = ["u", "u", "v", "w", "w", "v", "w", "u"]


def qvr(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


def fitted(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str, samples: int = 1000) -> RunDirectory:
    monkeypatch.chdir(folder)
    (folder / "m.qvr").write_text(text)
    rows = [f"{group},{y}" for group, y in zip(GROUP, Y, strict=True)]
    (folder / "d.csv").write_text("\n".join(["group,y", *rows]) + "\n")
    given = ("--data", "csv:d.csv", "--warmup", "400", "--samples", str(samples))
    ran = qvr("run", "nuts", "m.qvr", *given)
    assert ran.exit_code == 0, ran.output
    return RunDirectory(max((folder / ".qvr" / "runs").iterdir()))


def given_the_rest(covariance: Any, y: Any, out: Any) -> Any:
    """log p(y_i | y of the rest) of each i that is out, of a Normal with mean 0."""
    rest = ~out
    solved = np.linalg.solve(covariance[np.ix_(rest, rest)], covariance[np.ix_(rest, out)])
    mean = solved.T @ y[rest]
    variance = np.diag(covariance[np.ix_(out, out)] - covariance[np.ix_(out, rest)] @ solved)
    return stats.norm(mean, np.sqrt(variance)).logpdf(y[out])


def of_mean() -> Any:
    return 4.0 + np.eye(len(Y))


def of_groups() -> Any:
    same = np.equal.outer(np.array(GROUP), np.array(GROUP))
    return 4.0 + 2.25 * same + np.eye(len(Y))


@pytest.mark.parametrize("asked", [("--folds", "4"), ("--by", "group"), ("--by", "Group", "--folds", "2")])
@pytest.mark.sampled(2)
def test_folds_have_the_closed_form(asked: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = fitted(tmp_path, monkeypatch, GROUPS)
    done = qvr("cv", run.run_id, *asked, "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    # no terminal is there for a bar
    assert f"refits: {found['folds']} of {found['folds']}" in done.stderr
    rows = found["observations"]
    fold = np.array([row["fold"] for row in rows])
    exact = np.empty(len(Y))
    for number in range(found["folds"]):
        exact[fold == number] = given_the_rest(of_groups(), Y, fold == number)
    mcse = np.empty(len(Y))
    for refit in found["refits"]:
        mcse[fold == refit["fold"]] = refit["mcse"]
    elpd = np.array([row["elpd"] for row in rows])
    assert (np.abs(elpd - exact) < 5 * mcse + 1e-3).all(), (elpd, exact, mcse)
    assert found["elpd"] == pytest.approx(exact.sum(), abs=5 * found["mcse"] + 1e-3)
    assert found["se"] == pytest.approx(np.sqrt(len(Y) * elpd.var()))
    if "--by" in asked:
        together = {tuple(sorted({row["group"] for row in rows if row["fold"] == at})) for at in range(found["folds"])}
        assert sum(map(len, together)) == 3


def test_exact_loo_has_the_closed_form_where_psis_is_rough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = fitted(tmp_path, monkeypatch, GROUPS)
    before = json.loads(qvr("loo", run.run_id, "--json").stdout)
    assert before["bad"] >= 1 and before["refitted"] == 0
    checked = qvr("check-fit", run.run_id)
    assert "qvr loo RUN --exact" in " ".join(checked.output.split())
    done = qvr("loo", run.run_id, "--exact", "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["refitted"] == before["bad"] and found["bad"] == 0
    refits = read(Plan().file(run))
    assert refits is not None and len(refits.done) == before["bad"]
    for number, refit in refits.done.items():
        out = np.arange(len(Y)) == number
        (exact,) = given_the_rest(of_groups(), Y, out)
        row = found["observations"][number]
        assert row["exact"] and row["elpd"] == refit.elpd[0]
        assert refit.elpd[0] == pytest.approx(exact, abs=5 * refit.mcse[0] + 1e-3)
    untouched = [at for at in range(len(Y)) if at not in refits.done]
    assert [found["observations"][at] for at in untouched] == [before["observations"][at] for at in untouched]
    # what others say of the run counts them
    assert json.loads(qvr("loo", run.run_id, "--json").stdout) == found
    assert f"{before['bad']} refitted without them" in " ".join(qvr("check-fit", run.run_id).output.split())
    shown = json.loads(qvr("runs", "compare", run.run_id, run.run_id, "--json").stdout)
    assert {(one["bad"], one["exact"]) for one in shown["elpd"]} == {(0, before["bad"])}


def test_a_fold_never_sees_its_group() -> None:
    model = loads(GROUPS.replace("FinSet _", f"FinSet {len(Y)}", 1).replace("FinSet _", "FinSet 3")).morphism
    group = torch.tensor(["uvw".index(one) for one in GROUP])
    out = np.array([one == "w" for one in GROUP])
    seen = []
    for shift in (0.0, 1000.0):
        y = torch.tensor(Y, dtype=torch.float64) + torch.from_numpy(out) * shift
        potential = LeavingOut(Given(model, None, {"y": y, "group": group}))
        folds = by_group(potential, needs_of(model.program), "group", None, 0)
        assert [folds.of(at).tolist() for at in range(3)][folds.fold[3]] == out.tolist()
        chains = MCMC(NUTSKernel(), 100, 100, 2, seed=1)
        without = potential.without(out)
        chains.choose(without)
        seen.append(chains.chains_of(without, chains.seeds(), None).samples)
    for name, draws in seen[0].items():
        assert torch.equal(draws, seen[1][name]), name


def test_a_density_without_rows_is_that_of_the_rest() -> None:
    text = MEAN.replace("FinSet _", f"FinSet {len(Y)}")
    y = torch.tensor(Y, dtype=torch.float64)
    out = np.array([False, True, True, False, False, False, True, False])
    potential = LeavingOut(Given(loads(text).morphism, None, {"y": y})).without(out)
    rest = stats.norm(0.4, 1.0).logpdf(Y[~out]).sum() + stats.norm(0.0, 2.0).logpdf(0.4)
    assert float(potential.log_densities(np.array([[0.4]]))[0]) == pytest.approx(rest)


def test_predictions_are_means_over_draws() -> None:
    densities = np.random.default_rng(0).normal(size=(4, 250, 3)) - 800.0
    densities[..., 2] = -np.inf
    elpd, mcse = log_mean_densities(densities)
    assert elpd[:2] == pytest.approx(logsumexp(densities[..., :2], (0, 1)) - np.log(1000))
    assert elpd[2] == -np.inf and np.isinf(mcse[2])
    # of independent draws the delta method's
    weights = np.exp(densities[..., 0] + 800.0)
    assert mcse[0] == pytest.approx(weights.std() / weights.mean() / np.sqrt(1000), rel=0.3)


def test_what_is_done_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = fitted(tmp_path, monkeypatch, MEAN, samples=200)
    plan, counted = Plan(4), list[tuple[int, int]]()

    def broken(done: int, count: int, label: str) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cross_validate(run, plan, watch=broken)
    half = read(plan.file(run))
    assert half is not None and set(half.done) == {0, 1} and not half.whole
    whole = cross_validate(run, plan, watch=lambda done, count, label: counted.append((done, count)))
    assert counted == [(2, 4), (3, 4), (4, 4)] and whole.whole
    anew = cross_validate(run, plan, again=True)
    assert anew.done == whole.done, "a refit is a function of the run's seed and its number"
    assert isinstance(anew, Refits)


def test_refits_of_other_draws_do_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = fitted(tmp_path, monkeypatch, MEAN.replace("(mu, 1.0)", "(mu, 4.0)"))
    before = json.loads(qvr("loo", run.run_id, "--json").stdout)
    assert before["bad"] == 0
    names = tuple(one["name"] for one in before["observations"])
    stale = Refits(Plan(), "other draws", names, tuple(range(len(Y))), len(Y), None, {0: Refit((-99.0,), (0.1,))})
    Plan().file(run).parent.mkdir()
    stale.write(run)
    assert json.loads(qvr("loo", run.run_id, "--json").stdout) == before
    done = qvr("loo", run.run_id, "--exact", "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout) == before
    assert "there was nothing to refit" in " ".join(qvr("loo", run.run_id, "--exact").stdout.split())


@pytest.mark.long
def test_estimates_are_never_mixed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = fitted(tmp_path, monkeypatch, GROUPS, samples=300)
    second = fitted(tmp_path, monkeypatch, GROUPS.replace("Normal(mu, 1.5)", "Normal(mu, 0.1)"), samples=300)
    assert qvr("cv", first.run_id, "--by", "group").exit_code == 0

    def compared() -> Any:
        return json.loads(qvr("runs", "compare", first.run_id, second.run_id, "--json").stdout)

    (lone,) = compared()["cross_validation"]
    assert lone["estimate"] == "one group left out" and not lone["rows"]
    assert f"qvr cv {second.run_id} --by group" in lone["note"]
    assert qvr("cv", second.run_id, "--by", "group").exit_code == 0
    assert qvr("cv", second.run_id, "--folds", "2").exit_code == 0
    both, lone = sorted(compared()["cross_validation"], key=lambda one: -len(one["rows"]))
    assert (both["estimate"], len(both["rows"])) == ("one group left out", 2)
    assert (lone["estimate"], lone["rows"]) == ("2-fold", [])
    shown = " ".join(qvr("runs", "compare", first.run_id, second.run_id).output.split())
    assert "elpd (LOO)" in shown and "elpd (one group left out)" in shown


HIDDEN = """\
object Time : FinSet 5
object State : FinSet 2
program hidden : Time -> Time
    data y : Time
    sample m : State <- Normal(0.0, 1.0)
    marginalize z[t : Time] : State <- Categorical([[0.9, 0.1], [0.2, 0.8]][z[t - 1]]) from Categorical([0.5, 0.5])
        observe y[t : Time] <- Normal(m[z[t]], 1.0)
    return m
"""
SERIES = """\
object Time : FinSet 5
program series : Time -> Time
    sample phi <- Normal(0.0, 1.0)
    observe y[t : Time] <- Normal(phi * y[t - 1], 1.0) from Normal(0.0, 1.0)
    return phi
"""
READ = """\
object Row : FinSet 5
program reading : Row -> Row
    sample mu <- Normal(0.0, 1.0)
    observe y[i : Row] <- Normal(mu, 1.0)
    let centre = mean(y)
    observe x[i : Row] <- Normal(centre, 1.0)
    return mu
"""
JOINT = """\
object Row : FinSet 5
program joint : Row -> Row
    sample mu <- Normal(0.0, 1.0)
    observe y <- MultivariateNormal(mu * ones(Row), covariance_matrix=eye(5)) [over=Row]
    return mu
"""


@pytest.mark.parametrize(
    ("text", "says", "site"),
    [
        (HIDDEN, "`z` is a hidden chain", "z"),
        (SERIES, "`y` is one series", "y"),
        (READ, "`x` reads it", "y"),
        (JOINT, "`y` is one joint observation", "y"),
    ],
)
def test_what_cannot_be_left_out_is_told(text: str, says: str, site: str) -> None:
    model = loads(text).morphism
    five = torch.linspace(-1.0, 1.0, 5, dtype=torch.float64)
    observed = {name: five for name in ("y", "x") if f"observe {name}" in text}
    with pytest.raises(NotLeftOut, match=says) as refused:
        LeavingOut(Given(model, None, observed))
    assert refused.value.site == site


PANEL = """\
object Person : FinSet 3
object Time : FinSet 4
program panel : Person -> Person
    sample mu <- Normal(0.0, 1.0)
    observe y[p : Person, t : Time] <- Normal(0.5 * y[p, t - 1] + mu, 1.0) from Normal(mu, 1.0)
    return mu
"""


def test_of_several_series_whole_ones_are_left_out() -> None:
    y = np.random.default_rng(3).normal(size=(3, 4))
    potential = LeavingOut(Given(loads(PANEL).morphism, None, {"y": torch.from_numpy(y)}))
    assert potential.names == ["y[0]", "y[1]", "y[2]"]
    out = np.array([False, True, False])
    mean = np.column_stack([np.zeros(3), 0.5 * y[:, :-1]]) + 0.3
    terms = stats.norm(mean, 1.0).logpdf(y).sum(1)
    density = float(potential.without(out).log_densities(np.array([[0.3]]))[0])
    assert density == pytest.approx(terms[~out].sum() + stats.norm(0.0, 1.0).logpdf(0.3))
    found = predicted_without(potential, MCMC(NUTSKernel(), 300, 1000, 4, seed=0), out)
    # y of a person is Normal about mu * (1, 1, 1, 1) after the filter: mu given the others, then the integral over it
    errors = y - np.column_stack([np.zeros(3), 0.5 * y[:, :-1]])
    precision = 1.0 + errors[~out].size
    covariance = np.eye(4) + 1.0 / precision
    exact = stats.multivariate_normal(np.full(4, errors[~out].sum() / precision), covariance).logpdf(errors[out][0])
    assert found.elpd[0] == pytest.approx(exact, abs=5 * found.mcse[0])


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("name", "by", "drop"),
    [("radon", "county", "Clay"), ("item_response", "item", "3"), ("survival", None, None)],
)
def test_a_refit_is_one_written_by_hand(
    name: str, by: str | None, drop: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows taken out of the table, the program run on the rest, and the rows scored from its stored draws."""
    for file in STATISTICS.glob(f"{name}*"):
        shutil.copy(file, tmp_path)
    monkeypatch.chdir(tmp_path)
    given = ["--warmup", "1000", "--samples", "4000", "--data", f"csv:{name}.csv"]
    given += ["--data", "County=csv:radon_counties.csv"] if name == "radon" else []
    assert qvr("run", "nuts", f"{name}.qvr", *given).exit_code == 0
    done = qvr("cv", name, *(["--by", by] if by else ["--folds", "5"]), "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    fold = np.array([row["fold"] for row in found["observations"]])
    number = fold[[row.get("group") == drop for row in found["observations"]].index(True)] if by else 0
    out = fold == number
    table = polars.read_csv(f"{name}.csv")
    table.filter(polars.Series(~out)).write_csv(f"{name}.csv")
    assert qvr("run", "nuts", f"{name}.qvr", *given).exit_code == 0
    rest = RunDirectory(max(Path(".qvr/runs").iterdir()))
    stored = read_netcdf(rest.posterior)["posterior"].data_vars
    draws = {key: one.values.reshape(-1, *one.values.shape[2:]) for key, one in stored.items()}
    density = HAND[name](draws, table.filter(polars.Series(out)))
    by_hand = logsumexp(density, 0) - np.log(len(density))
    elpd = np.array([row["elpd"] for row in found["observations"]])[out]
    mcse = np.array(next(one["mcse"] for one in found["refits"] if one["fold"] == number))
    assert elpd == pytest.approx(by_hand, abs=float(8 * mcse.max() + 0.01))


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("name", "column", "row", "value"),
    [("radon", "log_radon", 40, 4.4), ("varying_slopes", "reaction", 34, 4.6), ("survival", "months", 0, 90.0)],
)
def test_an_exact_loo_is_one_written_by_hand(
    name: str, column: str, row: int, value: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An observation far from the others, taken out of the table, and scored from the draws of a run on the rest."""
    for file in STATISTICS.glob(f"{name}*"):
        shutil.copy(file, tmp_path)
    monkeypatch.chdir(tmp_path)
    table = polars.read_csv(f"{name}.csv")
    table[row, column] = value
    table.write_csv(f"{name}.csv")
    given = ["--warmup", "1000", "--samples", "4000", "--data", f"csv:{name}.csv"]
    given += ["--data", "County=csv:radon_counties.csv"] if name == "radon" else []
    assert qvr("run", "nuts", f"{name}.qvr", *given).exit_code == 0
    done = qvr("loo", name, "--exact", "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)["observations"][row]
    assert found["exact"], found
    run = RunDirectory(max(Path(".qvr/runs").iterdir()))
    refits = read(Plan().file(run))
    assert refits is not None
    table.filter(polars.Series([at != row for at in range(len(table))])).write_csv(f"{name}.csv")
    assert qvr("run", "nuts", f"{name}.qvr", *given).exit_code == 0
    rest = RunDirectory(max(Path(".qvr/runs").iterdir()))
    stored = read_netcdf(rest.posterior)["posterior"].data_vars
    draws = {key: one.values.reshape(-1, *one.values.shape[2:]) for key, one in stored.items()}
    density = HAND[name](draws, table[row : row + 1])
    by_hand = logsumexp(density, 0) - np.log(len(density))
    assert found["elpd"] == pytest.approx(by_hand[0], abs=float(8 * refits.done[row].mcse[0] + 0.01))


def _radon(draws: Any, rows: Any) -> Any:
    counties = sorted(polars.read_csv("radon_counties.csv")["County"].to_list())
    level = draws["level"][:, [counties.index(one) for one in rows["county"].to_list()]]
    mean = level + draws["upstairs"][:, None] * rows["floor"].to_numpy()
    return stats.norm(mean, draws["sigma"][:, None]).logpdf(rows["log_radon"].to_numpy())


def _item_response(draws: Any, rows: Any) -> Any:
    """The item is not in the table any more, so its numbers are drawn here, from its population."""
    random = np.random.default_rng(0)
    ability = draws["ability"][:, rows["student"].to_numpy() - 1]
    difficulty = random.normal(0.0, 2.0, (len(ability), 1))
    discrimination = np.exp(random.normal(0.0, 0.5, (len(ability), 1)))
    right = 1 / (1 + np.exp(-discrimination * (ability - difficulty)))
    return stats.bernoulli(right).logpmf(rows["correct"].to_numpy())


def _survival(draws: Any, rows: Any) -> Any:
    x = rows.select("treated", "age", "stage").to_numpy()
    scale = np.exp(draws["intercept"][:, None] + draws["beta"] @ x.T)
    weibull = stats.weibull_min(draws["shape"][:, None], scale=scale)
    months = rows["months"].to_numpy()
    return np.where(rows["censored"].to_numpy() == 1, weibull.logsf(months), weibull.logpdf(months))


def _varying_slopes(draws: Any, rows: Any) -> Any:
    subjects = sorted(set(polars.read_csv("varying_slopes.csv")["subject"].to_list()))
    u = draws["u"][:, [subjects.index(one) for one in rows["subject"].to_list()]]
    mean = u[..., 0] + u[..., 1] * rows["days"].to_numpy()
    return stats.norm(mean, draws["sigma"][:, None]).logpdf(rows["reaction"].to_numpy())


HAND = {"varying_slopes": _varying_slopes, "radon": _radon, "item_response": _item_response, "survival": _survival}
