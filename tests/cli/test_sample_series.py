"""`qvr sample --data` of programs whose steps read what is observed: predictions given the values in the new table."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import xarray
from click.testing import Result
from scipy import stats
from typer.testing import CliRunner

from qvr_core.cli import app

SERIES = """\
object Month : FinSet _
program p : Month -> Month
    DATA
    sample phi <- Normal(0.0, 0.5)
    sample b <- Normal(0.0, 1.0)
    sample sigma <- HalfNormal(1.0)
    observe sales[t : Month] <- Normal(phi * sales[t - 1] + b * promo[t], sigma)START
    LATER
    return phi
"""
START = " from Normal(2.0, 0.1)"
TWO = """\
object Month : FinSet _
program p : Month -> Month
    data sales : Month
    sample phi : Real 2 <- Normal(0.0, 0.5)
    observe sales[t : Month] <- Normal(phi[0] * sales[t - 1] + phi[1] * sales[t - 2], 1.0) from Normal(0.0, 1.0)
    return phi
"""
MEDIATED = """\
object Row : FinSet _
program p : Row -> Row
    data x, m, y : Row
    sample a <- Normal(0.0, 1.0)
    sample b <- Normal(0.0, 1.0)
    observe m[i : Row] <- Normal(a * x[i], 1.0)
    let eta[i : Row] = b * m[i]
    observe y[i : Row] <- Normal(eta[i], 0.5)
    return a
"""
FIT = ["--warmup", "150", "--samples", "400", "--chains", "1"]
SALES, PROMO = np.array([3.0, 2.5, 3.5, 1.0, 0.5, 2.0]), np.array([0.0, 0.0, 1.0, 0.0, 0.0, 1.0])
NEW, NEXT = np.array([10.0, -20.0, 30.0]), np.array([1.0, 0.0, 1.0])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write("d.csv", sales=SALES, promo=PROMO)
    write("new.csv", sales=NEW, promo=NEXT)
    write("later.csv", promo=NEXT)
    return tmp_path


def write(file: str, **columns: np.ndarray) -> None:
    rows = zip(*columns.values(), strict=True)
    Path(file).write_text("\n".join([",".join(columns), *(",".join(map(str, row)) for row in rows)]) + "\n")


def qvr(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


def fit(text: str, data: str = "csv:d.csv") -> dict[str, np.ndarray]:
    """The posterior's draws."""
    Path("m.qvr").write_text(text)
    done = qvr("run", "nuts", "m.qvr", "--data", data, *FIT)
    assert done.exit_code == 0, done.output
    [run] = Path(".qvr/runs").glob("*-p")
    with xarray.open_dataset(run / "posterior.nc", group="posterior", engine="h5netcdf") as stored:
        return {str(name): value.to_numpy()[0] for name, value in stored.data_vars.items()}


def predicted(file: str) -> tuple[dict[str, np.ndarray], str]:
    """What is predicted from each draw, and what is said beside it."""
    done = qvr("sample", "p", "--data", f"csv:{file}", "--draws", "400", "-o", "new.npz")
    assert done.exit_code == 0, done.output
    with np.load("new.npz") as drawn:
        return dict(drawn), done.output


def series(declared: bool, start: str = START, later: str = "") -> str:
    text = SERIES.replace("DATA", "data promo, sales : Month" if declared else "let half = 0.5")
    return text.replace("START", start).replace("    LATER\n", later)


def standard(new: np.ndarray, posterior: dict[str, np.ndarray], sales: np.ndarray, promo: np.ndarray) -> np.ndarray:
    """(draws, all but the first) of what is one step ahead given the values in the table: standard normal."""
    mean = posterior["phi"][:, None] * sales[:-1] + posterior["b"][:, None] * promo[1:]
    return (new[:, 1:] - mean) / posterior["sigma"][:, None]


@pytest.mark.parametrize("declared", [True, False])
def test_a_series_is_predicted_one_step_ahead_of_the_given_values(folder: Path, declared: bool) -> None:
    text = series(declared) if declared else series(declared).replace("FinSet _", "FinSet 6")
    posterior = fit(text)
    for file, sales, promo in (("new.csv", NEW, NEXT), ("d.csv", SALES, PROMO)):
        new, said = predicted(file)
        assert stats.kstest(standard(new["sales"], posterior, sales, promo).ravel(), "norm").pvalue > 1e-3
        assert stats.kstest((new["sales"][:, 0] - 2.0) / 0.1, "norm").pvalue > 1e-3
        assert "begins anew" not in said
    # without them the path is drawn, and that is said
    new, said = predicted("later.csv")
    assert "`sales` is not in later.csv: the series begins anew from its `from`" in said
    path = new["sales"]
    noise = path[:, 1:] - posterior["phi"][:, None] * path[:, :-1] - posterior["b"][:, None] * NEXT[1:]
    assert stats.kstest((noise / posterior["sigma"][:, None]).ravel(), "norm").pvalue > 1e-3


def test_without_a_start_the_first_values_are_those_of_the_table(folder: Path) -> None:
    posterior = fit(series(True, ""))
    new, _ = predicted("new.csv")
    np.testing.assert_allclose(new["sales"][:, 0], NEW[0])
    assert stats.kstest(standard(new["sales"], posterior, NEW, NEXT).ravel(), "norm").pvalue > 1e-3
    refused = qvr("sample", "p", "--data", "csv:later.csv")
    assert refused.exit_code == 1
    assert "`sales` is not in later.csv, and without a `from` nothing says how its first element is" in refused.output
    assert "Give the data a column `sales`" in refused.output


def test_a_prior_of_a_series_begins_with_the_first_values_of_its_data(folder: Path) -> None:
    Path("two.qvr").write_text(TWO.replace(" from Normal(0.0, 1.0)", "") + "export p\n")
    done = qvr("sample", "two.qvr", "--prior", "--data", "csv:d.csv", "--draws", "400", "-o", "prior.npz")
    assert done.exit_code == 0, done.output
    drawn = np.load("prior.npz")
    sales, phi = drawn["sales"], drawn["phi"]
    np.testing.assert_allclose(sales[:, :2], np.broadcast_to(SALES[:2], (400, 2)), rtol=1e-6)
    noise = sales[:, 2:] - phi[:, :1] * sales[:, 1:-1] - phi[:, 1:] * sales[:, :-2]
    assert stats.kstest(noise.ravel(), "norm").pvalue > 1e-3


def test_a_column_without_values_is_none_and_one_with_some_is_refused(folder: Path) -> None:
    fit(series(True))
    Path("empty.csv").write_text("sales,promo\n,1\n,0\n")
    assert "`sales` is not in empty.csv: the series begins anew" in predicted("empty.csv")[1]
    Path("part.csv").write_text("sales,promo\n1,1\n,0\n")
    refused = qvr("sample", "p", "--data", "csv:part.csv")
    assert refused.exit_code == 1 and "part.csv" in refused.output and "sales" in refused.output


def test_a_forecast_goes_on_from_the_last_given_value(folder: Path) -> None:
    later = "    predict f[h : Ahead] <- Normal(phi * f[h - 1], sigma) from Normal(phi * sales[-1], sigma)\n"
    posterior = fit("object Ahead : FinSet 2\n" + series(True, later=later))
    new, _ = predicted("new.csv")
    first = (new["f"][:, 0] - posterior["phi"] * NEW[-1]) / posterior["sigma"]
    assert stats.kstest(first, "norm").pvalue > 1e-3


def test_rows_of_a_program_whose_only_data_are_observed(folder: Path) -> None:
    posterior = fit(TWO)
    new, _ = predicted("new.csv")
    phi = posterior["phi"]
    assert new["sales"].shape == (400, 3)
    noise = new["sales"][:, 2] - phi[:, 0] * NEW[1] - phi[:, 1] * NEW[0]
    assert stats.kstest(noise, "norm").pvalue > 1e-3
    assert stats.kstest(new["sales"][:, :2].ravel(), "norm").pvalue > 1e-3
    # its rows are the elements where it lacks the column too
    new, said = predicted("later.csv")
    assert new["sales"].shape == (400, 3) and "begins anew" in said


def test_an_observed_column_that_another_step_reads_is_used(folder: Path) -> None:
    write("d.csv", x=PROMO, m=SALES, y=SALES)
    posterior = fit(MEDIATED)
    write("new.csv", x=NEXT, m=NEW)
    new, said = predicted("new.csv")
    np.testing.assert_allclose(new["eta"], posterior["b"][:, None] * NEW, rtol=1e-5)
    assert stats.kstest(((new["y"] - new["eta"]) / 0.5).ravel(), "norm").pvalue > 1e-3
    # what is observed is itself predicted
    assert stats.kstest((new["m"] - posterior["a"][:, None] * NEXT).ravel(), "norm").pvalue > 1e-3
    assert "not in" not in said
    write("new.csv", x=NEXT)
    assert "`m` is not in new.csv: what reads it reads a draw of it" in predicted("new.csv")[1]


def test_a_basis_that_new_rows_would_change_is_refused(folder: Path) -> None:
    lines = ["object Month : FinSet _", "object Wave : FinSet 3", "program p : Month -> Month"]
    lines += ["    data promo, sales : Month", "    sample b[j : Wave] <- Normal(0.0, 1.0)"]
    lines += ["    let (phi, omega) = hsgp(promo, m=3, c=1.5)"]
    lines += ["    observe sales[t : Month] <- Normal(sum(phi[t, j] * b[j] for j : Wave), 1.0)", "    return b"]
    fit("\n".join(lines) + "\n")
    found = qvr("sample", "p", "--data", "csv:later.csv")
    assert found.exit_code == 1
    assert "`hsgp` makes its basis by the range of its numbers, and that of new rows is another" in found.output
