"""Posteriors of formulas against computations that share nothing with them but the table and the priors they state.

Design matrices are written by hand.  Where the outcome is normal the coefficients are integrated out exactly and the
deviations on a grid; elsewhere the posterior is weighted draws around its mode.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from typer.testing import CliRunner

from qvr_core.cli import app
from qvr_core.runs.record.protocol import Finished
from qvr_core.runs.record.store import RunStore
from tests.formulas import table

Array = NDArray[np.float64]
Design = dict[str, Array]


@dataclass(frozen=True)
class Columns:
    rows: list[dict[str, str]]

    def __getitem__(self, name: str) -> Array:
        return np.array([float({"true": 1, "false": 0}.get(row[name], row[name])) for row in self.rows])

    def c(self, name: str) -> Array:
        return self[name] - self[name].mean()

    def s(self, name: str) -> Array:
        return self.c(name) / self[name].std(ddof=1)

    def level(self, name: str, level: str) -> Array:
        return np.array([float(row[name] == level) for row in self.rows])


def _one(of: Columns) -> Array:
    return np.ones(len(of.rows))


def _f(of: Columns) -> Design:
    return {"b_f[b]": of.level("f", "b"), "b_f[c]": of.level("f", "c")}


def _cross(of: Columns) -> Design:
    x = of.c("x")
    return {"b_x": x, **_f(of), **{f"b_x_{name[2:]}": column * x for name, column in _f(of).items()}}


def _cells(of: Columns) -> Design:
    male = of.level("sex", "male")
    return {"b_sex[male]": male, **_f(of), **{f"b_f_sex[{level}, male]": of.level("f", level) * male for level in "bc"}}


def _quadratic(of: Columns) -> Design:
    x = of.c("x")
    return {"b_x": x, "b_x_2": x**2 - (x**2).mean()}


def _orthogonal(of: Columns) -> Design:
    x = of.s("x")
    basis = np.stack([np.ones(len(x)), x], axis=1)
    rest = x**2 - basis @ np.linalg.lstsq(basis, x**2, rcond=None)[0]
    return {"b_x_1": x, "b_x_2": rest / rest.std(ddof=1)}


def _by_sex(of: Columns) -> Design:
    return {
        f"{name}_sex[{level}]": column * of.level("sex", level)
        for level in ("female", "male")
        for name, column in (("mean", _one(of)), ("b_x", of.c("x")))
    }


def _centred(column: Array) -> Array:
    return column - column.mean()


@dataclass(frozen=True)
class Case:
    formula: str
    family: str
    outcome: str
    design: Callable[[Columns], Design]
    intercept: bool = True
    offset: Callable[[Columns], Array] | None = None


def _log_expo(of: Columns) -> Array:
    return np.log(of["expo"])


def _two(of: Columns) -> Design:
    return {
        "b_treated": of["treated"],
        "b_log_expo": _centred(_log_expo(of)),
        "b_log_expo_treated": of["treated"] * _centred(_log_expo(of)),
    }


CASES = [
    Case("y ~ x * z", "", "y", lambda of: {"b_x": of.c("x"), "b_z": of.c("z"), "b_x_z": of.c("x") * of.c("z")}),
    Case("y ~ x * f", "", "y", _cross),
    Case("y ~ f + sex + f:sex", "", "y", _cells),
    Case("y ~ x - 1", "", "y", lambda of: {"b_x": of["x"]}, intercept=False),
    Case("y ~ 0 + f", "", "y", lambda of: {f"mean_f[{one}]": of.level("f", one) for one in "abc"}, intercept=False),
    Case("y ~ x + I(x^2)", "", "y", _quadratic),
    Case("y ~ I(year - 1990) + f", "", "y", lambda of: {"b_year_1990": of.c("year"), **_f(of)}),
    Case(
        "y ~ log(income) + sqrt(expo)",
        "",
        "y",
        lambda of: {"b_log_income": _centred(np.log(of["income"])), "b_sqrt_expo": _centred(np.sqrt(of["expo"]))},
    ),
    Case("income ~ log(expo) * treated", "lognormal", "income", _two),
    Case("y ~ scale(z) + center(x)", "", "y", lambda of: {"b_z": of.s("z"), "b_x": of.c("x")}),
    Case("y ~ poly(x, 2)", "", "y", _orthogonal),
    Case('y ~ C(f, ref = "b")', "", "y", lambda of: {"b_f[a]": of.level("f", "a"), "b_f[c]": of.level("f", "c")}),
    Case("log(income) ~ x + f", "", "income", lambda of: {"b_x": of.c("x"), **_f(of)}),
    Case("y ~ offset(z) + x", "", "y", lambda of: {"b_x": of.c("x")}, offset=lambda of: of["z"]),
    Case("y ~ factor(dose)", "", "y", lambda of: {f"b_dose[{d}]": of.level("dose", str(d)) for d in (2, 3, 4)}),
    Case("visits ~ x + offset(log(expo))", "poisson", "visits", lambda of: {"b_x": of.c("x")}, offset=_log_expo),
    Case(
        "visits ~ f * sex + offset(log(expo))",
        "poisson",
        "visits",
        _cells,
        offset=_log_expo,
    ),
    Case("seen ~ -1 + sex + x:sex", "bernoulli", "seen", _by_sex, intercept=False),
    Case(
        "seen ~ scale(z) * scale(x)",
        "bernoulli",
        "seen",
        lambda of: {"b_z": of.s("z"), "b_x": of.s("x"), "b_z_x": of.s("z") * of.s("x")},
    ),
    Case("k | trials(n) ~ x + f", "", "k", lambda of: {"b_x": of.c("x"), **_f(of)}),
]


SHORT = {"y ~ x * f", "y ~ poly(x, 2)", "visits ~ f * sex + offset(log(expo))", "seen ~ -1 + sex + x:sex"}
"""What `make test` reads of them: an interaction, a basis, an offset with a rate, cells without an intercept."""
EACH = [pytest.param(case, marks=() if case.formula in SHORT else pytest.mark.statistical) for case in CASES]


def _priors(text: str) -> dict[str, tuple[float, float]]:
    found = re.findall(r"sample (\w+)(?:\[.*\])? <- Normal\((-?[\d.e+-]+), ([\d.e+-]+)\)", text)
    return {name: (float(mean), float(sd)) for name, mean, sd in found}


def _normal(y: Array, x: Array, mean: Array, sd: Array, sigma: float) -> tuple[Array, Array]:
    """Moments of the coefficients, and the least squares side of it, with sigma ~ HalfNormal."""
    grid = np.exp(np.linspace(np.log(y.std() / 8), np.log(y.std() * 4), 400))
    weights, means, squares = np.empty(len(grid)), [], []
    for at, s in enumerate(grid):
        precision = x.T @ x / s**2 + np.diag(1 / sd**2)
        cover = np.linalg.inv(precision)
        centre = cover @ (x.T @ y / s**2 + mean / sd**2)
        rest = y - x @ centre
        log_density = -len(y) * np.log(s) - 0.5 * rest @ rest / s**2 - 0.5 * (((centre - mean) / sd) ** 2).sum()
        weights[at] = log_density + 0.5 * np.linalg.slogdet(cover)[1] - 0.5 * (s / sigma) ** 2 + np.log(s)
        means.append(centre)
        squares.append(np.diag(cover) + centre**2)
    share = np.exp(weights - weights.max())
    share /= share.sum()
    first = share @ np.array(means)
    return first, np.sqrt(share @ np.array(squares) - first**2)


def _weighted(log_density: Callable[[Array], Array], start: Array) -> tuple[Array, Array]:
    """Moments of a log density over rows of coefficients, by draws of a wide t around its mode."""
    here, width = start, len(start)
    step = 1e-4
    for _ in range(60):
        moved = here + step * np.concatenate([np.eye(width), -np.eye(width)])
        values = log_density(moved)
        slope = (values[:width] - values[width:]) / (2 * step)
        corners = [
            log_density(np.array([here + step * 10 * (a * np.eye(width)[i] + b * np.eye(width)[j])]))[0]
            for i in range(width)
            for j in range(width)
            for a, b in ((1, 1), (1, -1), (-1, 1), (-1, -1))
        ]
        bend = np.array(corners).reshape(width, width, 4) @ np.array([1, -1, -1, 1]) / (4 * (step * 10) ** 2)
        move = np.linalg.solve(-bend, slope)
        here = here + move / max(1.0, float(np.abs(move).max()))
        if float(np.abs(move).max()) < 1e-6:
            break
    draw = np.random.default_rng(7)
    root = np.linalg.cholesky(np.linalg.inv(-bend))
    noise = draw.standard_normal((60_000, width)) / np.sqrt(draw.chisquare(8, (60_000, 1)) / 8)
    points = here + noise @ root.T
    proposal = -0.5 * (8 + width) * np.log1p((noise**2).sum(axis=1) / 8)
    weights = log_density(points) - proposal
    share = np.exp(weights - weights.max())
    share /= share.sum()
    first = share @ points
    return first, np.sqrt(share @ (points - first) ** 2)


@pytest.mark.parametrize("case", EACH, ids=lambda case: case.formula)
@pytest.mark.sampled(2)
def test_posteriors_agree_with_a_computation_of_their_own(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    table.write(tmp_path / "d.csv")
    runner = CliRunner()
    family = ["--family", case.family] if case.family else []
    made = runner.invoke(app, ["init", "study", "--data", "d.csv", "--formula", case.formula, *family])
    assert made.exit_code == 0, made.output
    text = (tmp_path / "study/model.qvr").read_text(encoding="utf-8")
    ran = runner.invoke(app, ["run", "nuts", "study/model.qvr", "--seed", "1"])
    assert ran.exit_code == 0, ran.output
    ending = RunStore(tmp_path).open("last").ending()
    assert isinstance(ending, Finished)
    drawn = {row.name: row for row in ending.posterior}

    with (tmp_path / "d.csv").open(encoding="utf-8") as file:
        columns = Columns(list(csv.DictReader(file)))
    design = {"intercept": _one(columns)} if case.intercept else {}
    design |= case.design(columns)
    priors = _priors(text)
    mean, sd = (np.array([priors[name.partition("[")[0]][at] for name in design]) for at in (0, 1))
    x = np.stack(list(design.values()), axis=1)
    known = case.offset(columns) if case.offset else np.zeros(len(x))
    y = columns[case.outcome]
    if case.family in ("", "lognormal") and "trials" not in case.formula:
        scale = re.search(r"sample sigma <- HalfNormal\(([\d.e+-]+)\)", text)
        assert scale is not None
        found = _normal((np.log(y) if case.outcome == "income" else y) - known, x, mean, sd, float(scale[1]))
    else:
        many = columns["n"] if "trials" in case.formula else np.ones(len(y))

        def log_density(of: Array) -> Array:
            eta = of @ x.T + known
            likelihood = y * eta - (np.exp(eta) if case.family == "poisson" else many * np.logaddexp(0, eta))
            return likelihood.sum(axis=1) - 0.5 * (((of - mean) / sd) ** 2).sum(axis=1)

        found = _weighted(log_density, mean if case.family == "poisson" else np.zeros(len(mean)))
    for name, first, second in zip(design, *found, strict=True):
        row = drawn[name]
        assert abs(row.mean - first) < 0.1 * second, (name, row.mean, first, second)
        assert row.sd == pytest.approx(second, rel=0.1), (name, row.sd, second)
