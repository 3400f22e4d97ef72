"""`load_run(…).draw(data=…)`: new rows as frames, datasets and mappings are those of files that hold the same."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import polars
import pytest
import torch
import xarray
from typer.testing import CliRunner

from qvr_core.cli import app
from qvr_core.data.problems import DataProblem
from qvr_core.runs import load_run
from qvr_core.runs.prepare.failures import Refused
from qvr_core.runs.python.loaded import LoadedRun

GROUPED = """\
object Row : FinSet _
object G : FinSet _
program p : Row -> Row
    data g : Row -> G
    data x : Row
    data w : G
    sample u : G <- Normal(0.0, 2.0)
    let doubled = 2.0 * u
    let mean[i : Row] = u[g[i]] + 3.0 * w[g[i]] + x[i]
    observe y[i : Row] <- Normal(mean[i], 1.0)
    return u
"""
ITEMS = """\
object Row : FinSet _
object Item : FinSet _
program p : Row -> Row
    data x : Row
    sample a : Item <- Normal(0.0, 20.0)
    observe y[i : Row, j : Item] <- Normal(a[j] + x[i], 0.5)
    return a
"""
PLAIN = """\
object Row : FinSet 3
program p : Row -> Row
    sample m <- Normal(0.0, 1.0)
    observe y : Row <- Normal(m + x, 1.0)
    return m
"""
NETWORK = """\
object Point : Real 1
morphism curve : Point -> Point [role=kernel, scale=0.3] ~ Normal
program p : Point -> Point
    observe y : Point <- curve
    return y
"""
FITS = {
    "nuts": ["--warmup", "30", "--samples", "30", "--chains", "2"],
    "svi": ["--steps", "20"],
}
NEW: dict[str, list[Any]] = {"x": [0.0, 10.0, 1.0], "g": ["a", "unheard of", "b"]}
GROUP: dict[str, list[Any]] = {"G": ["unheard of"], "w": [7.0]}


def fitted(folder: Path, text: str, *data: str, algorithm: str = "nuts") -> LoadedRun:
    (folder / "m.qvr").write_text(text)
    named = [part for one in data for part in ("--data", one)]
    done = CliRunner().invoke(app, ["run", algorithm, "m.qvr", *named, *FITS[algorithm]])
    assert done.exit_code == 0, done.output
    return load_run("last", folder)


def same(found: Mapping[str, torch.Tensor], wanted: Mapping[str, torch.Tensor]) -> bool:
    return found.keys() == wanted.keys() and all(torch.equal(found[name], wanted[name]) for name in wanted)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    polars.DataFrame(NEW).write_csv("new.csv")
    polars.DataFrame(GROUP).write_csv("more.csv")
    return tmp_path


@pytest.fixture(scope="module")
def hierarchy(tmp_path_factory: pytest.TempPathFactory) -> LoadedRun:
    """A fit whose groups have a predictor in a second table."""
    folder = tmp_path_factory.mktemp("hierarchy")
    (folder / "d.csv").write_text("g,x,y\na,0.5,4.1\na,0.5,3.7\nb,0.5,-5.2\nb,0.5,-4.9\n")
    (folder / "groups.csv").write_text("G,w\na,1.0\nb,-2.0\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        return fitted(folder, GROUPED, "csv:d.csv", "G=csv:groups.csv")


@pytest.fixture
def grouped(folder: Path, hierarchy: LoadedRun) -> LoadedRun:
    return hierarchy


def test_rows_of_open_sets_and_levels_not_seen_before(grouped: LoadedRun) -> None:
    wanted = grouped.draw(20, data=["csv:new.csv", "G=csv:more.csv"])
    assert wanted["y"].shape == (20, 3)
    more = polars.DataFrame(GROUP)
    arrays = {"x": np.array(NEW["x"]), "g": polars.Series(NEW["g"])}
    assert same(grouped.draw(20, data={**NEW, "G": more}), wanted)
    assert same(grouped.draw(20, data={**arrays, "G": pandas.DataFrame(GROUP).set_index("G")}), wanted)
    # a level of the fit needs no table: the one of the fit still stands
    known = {"x": [0.0, 1.0], "g": ["b", "a"]}
    polars.DataFrame(known).write_csv("known.csv")
    wanted = grouped.draw(20, data="csv:known.csv")
    dataset = xarray.Dataset({name: ("Row", column) for name, column in known.items()})
    frames = polars.DataFrame(known), pandas.DataFrame(known), known, dataset
    assert all(same(grouped.draw(20, data=frame), wanted) for frame in frames)


def test_a_frame_of_a_set_alone_leaves_the_rows_of_the_fit(grouped: LoadedRun) -> None:
    Path("other.csv").write_text("G,w\na,50.0\nb,-50.0\n")
    other = polars.read_csv("other.csv")
    assert same(grouped.draw(20, data={"G": other}), grouped.draw(20, data="G=csv:other.csv"))


def test_notes_are_warned_of_and_what_is_predicted_comes_first(grouped: LoadedRun) -> None:
    with pytest.warns(UserWarning, match="1 element of `G` not seen in the fit"):
        grouped.draw(5, data=["csv:new.csv", "G=csv:more.csv"])
    known = {"x": [0.0, 1.0], "g": ["b", "a"]}
    # lets of the new rows, then those that are what they were in the fit
    assert list(grouped.draw(5, data=known)) == ["y", "mean", "doubled"]


def test_a_set_that_only_the_fit_tells_of_keeps_its_elements(folder: Path) -> None:
    (folder / "y.csv").write_text("Row,Item,x,y\nr1,p,0,9\nr1,q,0,-9\nr2,p,1,10.1\nr2,q,1,-8.1\n")
    (folder / "rows.csv").write_text("Row,x\nr1,0\nr2,1\n")
    (folder / "later.csv").write_text("Row,x\nn1,100\nn2,200\nn3,300\n")
    run = fitted(folder, ITEMS, "csv:y.csv")
    assert run.draw(20, data="csv:later.csv")["y"].mean(0) == pytest.approx(
        np.array([[109.0, 91.0], [209.0, 191.0], [309.0, 291.0]]), abs=2.0
    )
    # where a table of the fit has the rows, a file that nothing is read from is not passed over
    two = fitted(folder, ITEMS, "csv:y.csv", "Row=csv:rows.csv")
    with pytest.raises(DataProblem, match="nothing in the data says what the elements of `Item` are"):
        two.draw(20, data="csv:later.csv")


def test_columns_of_programs_without_types(folder: Path) -> None:
    (folder / "d.csv").write_text("x,y\n0.0,1.0\n1.0,2.5\n2.0,2.8\n")
    run = fitted(folder, PLAIN, "csv:d.csv")
    new = {"x": [10.0, 20.0]}
    polars.DataFrame(new).write_csv("two.csv")
    wanted = run.draw(20, data="csv:two.csv")
    assert wanted["y"].shape == (20, 2)
    assert same(run.draw(20, data=polars.DataFrame(new)), wanted)
    assert same(run.draw(20, data=pandas.DataFrame(new)), wanted)


def test_rows_of_a_program_that_reads_them(folder: Path) -> None:
    (folder / "d.csv").write_text("x,y\n0.0,1.0\n1.0,2.5\n2.0,2.8\n")
    run = fitted(folder, NETWORK, "csv:d.csv", algorithm="svi")
    new = {"x": [10.0, 20.0]}
    polars.DataFrame(new).write_csv("two.csv")
    wanted = run.draw(20, data="csv:two.csv")
    assert wanted["y"].shape == (20, 2, 1)
    assert same(run.draw(20, data=polars.DataFrame(new)), wanted)


def test_what_lacks_is_told_in_the_words_of_the_data(grouped: LoadedRun) -> None:
    with pytest.raises(DataProblem, match=r"the data.*`x`"):
        grouped.draw(5, data=polars.DataFrame({"g": ["a"]}))


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (np.zeros(3), "the new data are a `numpy.ndarray`, which says of no number what it is"),
        ([1.0, 2.0], "the new data are a `list`"),
        (polars.LazyFrame(NEW), "the new data are a `polars.LazyFrame`"),
        ({"x": None}, "`x` of the new data is a `NoneType`"),
    ],
)
def test_what_is_no_data_is_refused(grouped: LoadedRun, data: Any, told: str) -> None:
    with pytest.raises(Refused, match=told) as refused:
        grouped.draw(5, data=data)
    assert "a frame of polars or pandas" in refused.value.fixes[0]
