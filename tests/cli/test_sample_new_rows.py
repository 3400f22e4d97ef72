"""`qvr sample`: posterior and prior predictive and predictions for new rows, against closed forms."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import xarray
from click.testing import Result
from scipy import stats
from typer.testing import CliRunner

from qvr_core.cli import app
from qvr_core.runs.worker import text_generation

MODEL = """\
object Row : FinSet _
object G : FinSet _
program p : Row -> Row
    data g : Row -> G
    data x : Row
    sample u : G <- Normal(0.0, 2.0)
    observe y[i : Row] <- Normal(u[g[i]] + x[i], 1.0)
    return u
"""
GROUPS = {"b": [1.2, 0.4, 2.2], "a": [-0.3, -1.1, 0.2]}
SIZED = """\
object Row : FinSet 3
program sized : Row -> Row
    sample m <- Normal(0.0, 1.0)
    observe y : Row <- Normal(m + x, 1.0)
    return m
"""
FITS = {
    "nuts": ["--warmup", "200", "--samples", "500", "--chains", "2"],
    "svi": ["--steps", "1500", "--particles", "4"],
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.qvr").write_text(MODEL)
    rows = "".join(f"{g},0.5,{y + 0.5}\n" for g, values in GROUPS.items() for y in values)
    (tmp_path / "d.csv").write_text("g,x,y\n" + rows)
    (tmp_path / "new.csv").write_text("x,g\n0.0,a\n10.0,unheard of\n1.0,b\n")
    return tmp_path


def qvr(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


def figures(*arguments: str) -> dict[str, dict[str, float]]:
    done = qvr("sample", *arguments, "--json")
    assert done.exit_code == 0, done.output
    return {row["name"]: row for row in json.loads(done.stdout)}


@pytest.mark.parametrize("algorithm", ["nuts", "svi"])
def test_new_rows_and_levels_not_seen_before(folder: Path, algorithm: str) -> None:
    done = qvr("run", algorithm, "m.qvr", "--data", "csv:d.csv", *FITS[algorithm])
    assert done.exit_code == 0, done.output
    shown = qvr("sample", "last", "--data", "csv:new.csv", "--draws", "1000")
    assert "1 element of `G` not seen in the fit (`unheard of`): drawn from the prior" in shown.output
    found = figures("last", "--data", "csv:new.csv", "--draws", "1000")
    variance = 1 / (1 / 4 + 3)
    for at, (group, x) in enumerate([("a", 0.0), (None, 10.0), ("b", 1.0)]):
        mean = x if group is None else x + variance * sum(GROUPS[group])
        spread = 4.0 if group is None else variance
        assert found[f"y[{at}]"]["mean"] == pytest.approx(mean, abs=0.3)
        assert found[f"y[{at}]"]["sd"] == pytest.approx(np.sqrt(spread + 1), rel=0.1)
    # without new rows: those of the fit, its groups in their order
    again = figures("last", "--draws", "1000")
    assert again["y[0]"]["mean"] == pytest.approx(0.5 + variance * sum(GROUPS["b"]), abs=0.2)
    done = qvr("sample", "last", "--data", "csv:new.csv", "-o", "drawn.nc")
    assert done.exit_code == 0 and "wrote drawn.nc" in done.output
    with xarray.open_dataset("drawn.nc", engine="h5netcdf") as stored:
        assert stored["y"].dims == ("chain", "draw", "Row") and stored["y"].shape == (1, 200, 3)


TWO_TABLES = """\
object Row : FinSet _
object G : FinSet _
program p : Row -> Row
    data g : Row -> G
    data x : Row
    data w : G
    sample u : G <- Normal(0.0, 2.0)
    observe y[i : Row] <- Normal(u[g[i]] + 3.0 * w[g[i]] + x[i], 1.0)
    return u
"""


@pytest.fixture
def hierarchy(folder: Path) -> Path:
    """A fit whose groups have a predictor in a second table."""
    (folder / "m.qvr").write_text(TWO_TABLES)
    w = {"a": 1.0, "b": -2.0}
    rows = "".join(f"{g},0.5,{y + 0.5 + 3.0 * w[g]}\n" for g, values in GROUPS.items() for y in values)
    (folder / "d.csv").write_text("g,x,y\n" + rows)
    (folder / "groups.csv").write_text("G,w\na,1.0\nb,-2.0\n")
    (folder / "more.csv").write_text("G,w,note\nunheard of,7.0,new\n")
    done = qvr("run", "nuts", "m.qvr", "--data", "csv:d.csv", "--data", "G=csv:groups.csv", *FITS["nuts"])
    assert done.exit_code == 0, done.output
    return folder


def test_a_second_table_tells_predictors_of_groups_not_seen_before(hierarchy: Path) -> None:
    two = ("--data", "csv:new.csv", "--data", "G=csv:more.csv")
    found = figures("last", *two, "--draws", "1000")
    variance = 1 / (1 / 4 + 3)
    means = [3.0 + variance * sum(GROUPS["a"]), 10.0 + 21.0, 1.0 - 6.0 + variance * sum(GROUPS["b"])]
    for at, (mean, spread) in enumerate(zip(means, [variance, 4.0, variance], strict=True)):
        assert found[f"y[{at}]"]["mean"] == pytest.approx(mean, abs=0.3)
        assert found[f"y[{at}]"]["sd"] == pytest.approx(np.sqrt(spread + 1), rel=0.1)
    shown = qvr("sample", "last", *two)
    assert "1 element of `G` not seen in the fit (`unheard of`): drawn from the prior" in shown.output
    alone = qvr("sample", "last", "--data", "csv:new.csv")
    assert alone.exit_code != 0 and "unheard of" in alone.output


def test_a_second_table_alone_changes_predictors_under_the_rows_of_the_fit(hierarchy: Path) -> None:
    (hierarchy / "other.csv").write_text("G,w\na,100.0\n")
    found = figures("last", "--data", "G=csv:other.csv", "--draws", "500")
    variance = 1 / (1 / 4 + 3)
    assert found["y[0]"]["mean"] == pytest.approx(0.5 - 6.0 + variance * sum(GROUPS["b"]), abs=0.3)
    assert found["y[3]"]["mean"] == pytest.approx(0.5 + 300.0 + variance * sum(GROUPS["a"]), abs=0.3)


def test_further_sources_have_names(hierarchy: Path) -> None:
    for arguments in (("last",), ("m.qvr", "--prior")):
        refused = qvr("sample", *arguments, "--data", "csv:new.csv", "--data", "csv:more.csv")
        assert refused.exit_code == 2 and "--data County=csv:more.csv" in refused.output
    prior = figures("m.qvr", "--prior", "--data", "csv:d.csv", "--data", "G=csv:groups.csv", "--draws", "2000")
    assert prior["y[5]"]["mean"] == pytest.approx(3.5, abs=0.2)
    refused = qvr("sample", "last", "--data", "csv:new.csv", "--data", "G=cvs:more.csv")
    assert refused.exit_code == 1 and "`G` is read from `cvs:more.csv`" in refused.output


def test_the_prior_needs_no_fit(folder: Path) -> None:
    found = figures("m.qvr", "--prior", "--data", "csv:d.csv", "--draws", "2000")
    assert set(found) == {"u[b]", "u[a]", *(f"y[{at}]" for at in range(6))}
    assert found["u[a]"]["sd"] == pytest.approx(2.0, rel=0.1)
    assert found["y[3]"]["mean"] == pytest.approx(0.5, abs=0.2)
    assert found["y[3]"]["sd"] == pytest.approx(np.sqrt(5.0), rel=0.1)
    assert not (folder / ".qvr").exists()
    refused = qvr("sample", "m.qvr")
    assert refused.exit_code == 2 and "add --prior" in refused.output


def test_a_prior_that_leaves_what_a_function_takes_says_so_at_its_line(folder: Path) -> None:
    text = MODEL.replace("u[g[i]] + x[i], 1.0", "log(u[g[i]] * x[i]), 1.0")
    (folder / "m.qvr").write_text(text)
    drawn = qvr("sample", "m.qvr", "--prior", "--data", "csv:d.csv", "--draws", "50")
    line = next(number for number, one in enumerate(text.splitlines(), 1) if "log(" in one)
    assert drawn.exit_code == 0 and f"m.qvr:{line}: the prior draws what the program cannot take" in drawn.stderr
    assert "since `log(u[g[i]] * x[i])` is NaN" in drawn.stderr and "of 50 draws of `y`" in drawn.stderr


def test_a_declared_number_of_rows_is_that_of_the_new_ones(folder: Path) -> None:
    (folder / "s.qvr").write_text(SIZED)
    (folder / "s.csv").write_text("x,y\n0,1\n0,2\n0,0\n")
    (folder / "t.csv").write_text("x\n5\n-5\n0\n0\n")
    done = qvr("run", "nuts", "s.qvr", "--data", "csv:s.csv", *FITS["nuts"])
    assert done.exit_code == 0, done.output
    found = figures("last", "--data", "csv:t.csv", "--draws", "1000")
    assert [round(found[f"y[{at}]"]["mean"] - 0.75) for at in range(4)] == [5, -5, 0, 0]
    wrong = qvr("sample", "last", "--data", "t.csv")
    assert wrong.exit_code == 1 and "csv:t.csv" in wrong.output
    lacking = qvr("sample", "last", "--data", "csv:none.csv")
    assert lacking.exit_code != 0 and "none.csv" in lacking.output


def test_latents_of_rows_without_labels_are_no_guess(folder: Path) -> None:
    (folder / "s.qvr").write_text(SIZED.replace("sample m <-", "sample m : Row <-"))
    (folder / "s.csv").write_text("x,y\n0,1\n0,2\n0,0\n")
    (folder / "t.csv").write_text("x\n5\n-5\n")
    done = qvr("run", "nuts", "s.qvr", "--data", "csv:s.csv", *FITS["nuts"])
    assert done.exit_code == 0, done.output
    refused = qvr("sample", "last", "--data", "csv:t.csv")
    assert refused.exit_code == 1
    assert "the new data have 2 rows, and `Row`, which latents run over, has 3 elements" in refused.output


def test_a_let_over_rows_is_no_latent_that_new_rows_must_be_elements_of(folder: Path) -> None:
    kept = MODEL.replace(
        "    observe y[i : Row] <- Normal(u[g[i]] + x[i], 1.0)",
        "    let eta[i : Row] = u[g[i]] + x[i]\n    observe y[i : Row] <- Normal(eta[i], 1.0)",
    )
    (folder / "m.qvr").write_text(kept)
    done = qvr("run", "nuts", "m.qvr", "--data", "csv:d.csv", *FITS["nuts"])
    assert done.exit_code == 0, done.output
    found = figures("p", "--data", "csv:new.csv", "--draws", "1000")
    assert found["y[2]"]["mean"] == pytest.approx(1.0 + sum(GROUPS["b"]) / 3.25, abs=0.3)


IMPUTED = """\
object Row : FinSet _
program p : Row -> Row
    data x, y : Row
    sample m <- Normal(0.0, 1.0)
    sample b <- Normal(0.0, 1.0)
    observe x : Row <- Normal(m, 1.0) [missing=impute]
    let eta = 2.0 + b * x
    observe y : Row <- Normal(eta, 0.5)
    return b
"""
CENSORED = """\
object Row : FinSet ROWS
program p : Row -> Row
    DATA
    sample b <- Normal(0.0, 0.5)
    let rate = exp(b * x)
    observe t : Row <- Exponential(rate) [right_censored=gone]
    return b
"""
SHORT = ["--warmup", "150", "--samples", "400", "--chains", "1"]


def predicted(*arguments: str) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """The draws of the last run, and what is predicted from each of them."""
    done = qvr("sample", "p", *arguments, "--draws", "400", "-o", "new.npz")
    assert done.exit_code == 0, done.output
    [run] = Path(".qvr/runs").glob("*-p")
    with xarray.open_dataset(run / "posterior.nc", group="posterior", engine="h5netcdf") as stored:
        posterior = {str(name): value.to_numpy()[0] for name, value in stored.data_vars.items()}
    with np.load("new.npz") as drawn:
        return posterior, dict(drawn)


def test_new_rows_of_a_fit_that_filled_in_cells(folder: Path) -> None:
    (folder / "m.qvr").write_text(IMPUTED)
    (folder / "d.csv").write_text("x,y\n1,4\n,2\n0,2\n2,6\n,3\n")
    (folder / "new.csv").write_text('x\n1\n-1\n""\n')
    done = qvr("run", "nuts", "m.qvr", "--data", "csv:d.csv", *SHORT)
    assert done.exit_code == 0, done.output
    posterior, new = predicted("--data", "csv:new.csv")
    b, m = posterior["b"], posterior["m"]
    for at, x in enumerate((1.0, -1.0)):
        np.testing.assert_allclose(new["eta"][:, at], 2.0 + b * x, rtol=1e-5)
    # the cell that is not there is drawn given the latents, and is the one that `eta` and `y` read
    filled = ((new["eta"][:, 2] - 2.0) / b - m) / 1.0
    assert stats.kstest(filled, "norm").pvalue > 1e-3
    assert stats.kstest((new["y"] - new["eta"]).ravel() / 0.5, "norm").pvalue > 1e-3


@pytest.mark.parametrize("declared", [True, False])
def test_new_rows_need_not_say_what_is_censored(folder: Path, declared: bool) -> None:
    data = "data x, t : Row\n    data gone : Row -> Bool" if declared else ""
    text = CENSORED.replace("    DATA\n", f"    {data}\n" if data else "")
    (folder / "m.qvr").write_text(text.replace("ROWS", "_" if declared else "4"))
    (folder / "d.csv").write_text("x,t,gone\n1,0.5,0\n0,2,1\n0.5,1,0\n1,0.2,0\n")
    (folder / "new.csv").write_text("x\n1\n-1\n0.5\n")
    done = qvr("run", "nuts", "m.qvr", "--data", "csv:d.csv", *SHORT)
    assert done.exit_code == 0, done.output
    drawn = qvr("sample", "p", "--plot", "p.svg")
    assert "the data of `t` are cut off where they are censored" in drawn.output
    assert "data, cut off where censored" in Path("p.svg").read_text()
    posterior, new = predicted("--data", "csv:new.csv")
    rate = np.exp(posterior["b"][:, None] * np.array([1.0, -1.0, 0.5]))
    np.testing.assert_allclose(new["rate"], rate, rtol=1e-5)
    assert stats.kstest((new["t"] * rate).ravel(), "expon").pvalue > 1e-3


def test_a_guide_that_reads_what_is_drawn_anew_has_it_from_the_file(folder: Path) -> None:
    """A guide draws the code of each row by its picture: new pictures have codes of their own."""
    (folder / "a.qvr").write_text("""\
object Picture, Code : Real 1
morphism decode : Code -> Picture [role=kernel, scale=0.3] ~ Normal
morphism encode : Picture -> Code [role=kernel] ~ Normal
morphism prior : Picture -> Code [role=kernel] ~ Normal(0.0, 1.0)
program p(x) : Picture -> Picture
    sample code <- prior(x)
    observe picture : Picture <- decode(code)
    return picture
program encoder : Picture -> Picture [guide=p]
    sample code <- encode(picture)
export p
""")
    (folder / "d.csv").write_text("x,picture\n" + "".join(f"0,{i / 10 - 2}\n" for i in range(40)))
    assert qvr("run", "svi", "a.qvr", "--data", "csv:d.csv", "--steps", "300").exit_code == 0
    (folder / "low.csv").write_text("x,picture\n0,-1.5\n0,1.5\n")
    (folder / "high.csv").write_text("x,picture\n0,1.5\n0,-1.5\n")
    codes = []
    for name in ("low", "high"):
        done = qvr("sample", "last", "--data", f"csv:{name}.csv", "--draws", "500", "-o", f"{name}.npz")
        assert done.exit_code == 0, done.output
        drawn = np.load(folder / f"{name}.npz")
        assert drawn["picture"].shape[:2] == (500, 2)
        codes.append(drawn["code"].mean(0).ravel())
    assert abs(codes[0][0] - codes[0][1]) > 0.5
    assert codes[0] == pytest.approx(codes[1][::-1], abs=0.3)
    (folder / "none.csv").write_text("x\n0\n")
    done = qvr("sample", "last", "--data", "csv:none.csv")
    assert done.exit_code == 1 and "`picture` is not in none.csv, and the guide draws the latents" in done.output


def test_all_rows_of_a_fit_are_drawn_or_it_is_said(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "f.qvr").write_text(
        "object X : Real 1\nmorphism f : X -> X [role=linear]\nmorphism g : X -> X ~ Normal\n"
        "let fg = f >> g\nprogram p : X -> X\n    sample z <- fg\n    observe y <- g(z)\n    return y\nexport p\n"
    )
    (folder / "f.csv").write_text("x,y\n" + "".join(f"{i / 50},{i / 25}\n" for i in range(100)))
    done = qvr("run", "svi", "f.qvr", "--data", "csv:f.csv", "--steps", "2")
    assert done.exit_code == 0, done.output
    for most, rows in ((text_generation.DRAWN_AT_MOST, 100), (300, 64)):
        monkeypatch.setattr(text_generation, "DRAWN_AT_MOST", most)
        done = qvr("sample", "last", "--draws", "5", "-o", "all.npz")
        assert done.exit_code == 0, done.output
        assert ("drawn for the first 64 of 100 rows; `--data` draws for those of a file" in done.output) == (rows == 64)
        with np.load("all.npz") as drawn:
            assert drawn["y"].shape == (5, rows, 1)
