"""Data laid along the sets that a program declares: open sets, several tables, long and wide ones, arrays."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas
import polars as pl
import pytest
import torch
import xarray
from scipy import stats
from torch import Tensor

from qvr_core import dsl
from qvr_core.analysis import analyse
from qvr_core.data.problems import DataProblem
from qvr_core.inference.axes import axes_of
from qvr_core.runs.prepare.prepare import Prepared, prepare
from qvr_core.runtime.programs.handlers import by_rows, substitute
from qvr_core.runtime.values.errors import RuntimeProblem
from qvr_core.semantics.types.spaces import Finite
from tests.runs.jobs import make_job

RADON = """
object County : FinSet _
object House : FinSet _
program radon : House -> House
    data county : House -> County
    data floor, log_radon : House
    data u : County
    sample mu : County <- Normal(u, 1.0)
    let eta = mu[county] + floor
    observe log_radon : House <- Normal(eta, 1.0)
    return mu
"""
HOUSES = pl.DataFrame({"county": ["b", "a", "b", "c"], "floor": [0, 1, 1, 0], "log_radon": [0.1, 0.2, 0.3, 0.4]})
COUNTIES = pl.DataFrame({"County": ["a", "b", "c", "d"], "u": [1.0, 2.0, 3.0, 4.0]})
LONG = """
object Subject, Time : FinSet _
program p : Subject -> Subject
    data y : Subject * Time
    data age : Subject
    sample m : Subject <- Normal(age, 1.0)
    return (m, y)
"""
WIDE = """
object Row : FinSet _
object Feature : {basement, garden}
object Year : FinSet _
program p : Row -> Row
    data x : Row * Feature
    data rate : Row * Year
    sample b : Feature <- Normal(0.0, 1.0)
    let eta = matmul(x, b)
    return (eta, rate)
"""


def test_numbers_from_python_keep_their_digits_for_chains() -> None:
    exact = HOUSES.with_columns(log_radon=pl.Series([0.1, 0.2, 0.3, 1.0 + 1e-12]))
    model = dsl.loads(RADON, data={"House": exact, "County": COUNTIES}).morphism
    assert model.data["log_radon"].tolist() == [0.1, 0.2, 0.3, 1.0 + 1e-12]
    mu = torch.zeros(1, 4, dtype=torch.float64)
    double = model.run(None, substitute({"mu": mu}), by_rows(1)).sites["log_radon"].log_prob
    single = model.run(None, substitute({"mu": mu.float()}), by_rows(1)).sites["log_radon"].log_prob
    assert double is not None
    assert single is not None
    assert (double.dtype, single.dtype) == (torch.float64, torch.float32)
    wanted = stats.norm.logpdf([0.1, 0.2, 0.3, 1.0 + 1e-12], [0, 1, 1, 0]).sum()
    assert float(double) == pytest.approx(wanted, rel=1e-14)


def changed(**columns: list[Any]) -> pl.DataFrame:
    """The houses with other columns."""
    return HOUSES.with_columns(**{name: pl.Series(cells) for name, cells in columns.items()})


def given(text: str, data: Any) -> tuple[dict[str, Any], dict[str, tuple[int, tuple[str, ...] | None]]]:
    """The values of the data names as lists, and the size and labels of every set."""
    program = dsl.loads(text, data=data)
    spaces = {name: each.space.space for name, each in program.model.objects.items()}
    values = {name: v.tolist() if isinstance(v, Tensor) else v for name, v in program.morphism.data.items()}
    return values, {n: (int(s.size), s.labels) for n, s in spaces.items() if isinstance(s, Finite)}  # pyright: ignore


def test_open_sets_get_their_elements_from_the_data() -> None:
    values, sets = given(RADON, HOUSES.with_columns(u=pl.Series([2.0, 1.0, 2.0, 3.0])))
    assert sets == {"County": (3, ("b", "a", "c")), "House": (4, None)}
    assert values["county"] == [0, 1, 0, 2]
    assert values["u"] == [2.0, 1.0, 3.0]  # one for each county, from the rows of the houses


def test_the_rows_of_a_table_of_its_own_are_the_set() -> None:
    values, sets = given(RADON, {"House": HOUSES, "County": COUNTIES})
    assert sets["County"] == (4, ("a", "b", "c", "d"))
    assert values["county"] == [1, 0, 1, 2]
    assert values["u"] == [1.0, 2.0, 3.0, 4.0]


@pytest.mark.parametrize(
    ("cells", "labels"),
    [
        ([1993, 1991, 1993], ("1991", "1993")),
        ([2.0, 1.0, 2.0], ("1", "2")),
        (["2024-02", "2023-12", "2024-02"], ("2023-12", "2024-02")),
        (["x", "b", "x"], ("x", "b")),
        (["10", "9", "10"], ("9", "10")),
    ],
)
def test_numbers_and_dates_ascend_and_text_comes_in_order(cells: list[Any], labels: tuple[str, ...]) -> None:
    text = "object G, R : FinSet _\nprogram p : R -> R\n    data g : R -> G\n    return g\n"
    values, sets = given(text, pl.DataFrame({"g": cells}))
    assert sets["G"] == (2, labels)
    assert [labels[place] for place in values["g"]] == [str(cell).removesuffix(".0") for cell in cells]


def test_a_long_table_is_laid_along_the_columns_that_index_it() -> None:
    rows = [("ann", 2, 0.1), ("bob", 1, 0.2), ("ann", 1, 0.3), ("bob", 2, 0.4)]
    frame = pl.DataFrame(rows, schema=["subject", "time", "y"], orient="row")
    people = pl.DataFrame({"subject": ["ann", "bob"], "age": [40, 50]})
    values, sets = given(LONG, {"Subject": people, "y": frame})
    assert sets == {"Subject": (2, ("ann", "bob")), "Time": (2, ("1", "2"))}
    torch.testing.assert_close(torch.tensor(values["y"]), torch.tensor([[0.3, 0.1], [0.2, 0.4]]))
    assert values["age"] == [40.0, 50.0]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([("ann", 1, 0.1), ("bob", 1, 0.2), ("ann", 1, 0.3)], "row 3: row 1 is about Subject ann, Time 1 already"),
            ([("ann", 1, 0.1), ("bob", 1, 0.2), ("ann", 1, 0.1)], "row 3: row 1 is about Subject ann, Time 1 already"),
        ([("ann", 1, 0.1), ("bob", 2, 0.2)], "no row is about Subject ann, Time 2"),
        ([("ann", 1, 0.1), ("eve", 1, 0.2)], "column `subject`, row 2: `eve` is not in `Subject`"),
    ],
)  # fmt: skip
def test_cells_that_are_told_twice_or_never_are_errors(rows: list[Any], said: str) -> None:
    frame = pl.DataFrame(rows, schema=["subject", "time", "y"], orient="row")
    people = pl.DataFrame({"subject": ["ann", "bob"], "age": [40, 50]})
    with pytest.raises(DataProblem) as problem:
        given(LONG, {"Subject": people, "y": frame})
    assert said in str(problem.value)


def test_labels_of_the_second_set_name_columns() -> None:
    frame = pl.DataFrame({"garden": [1, 2], "basement": [3, 4]})
    rate = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    values, sets = given(WIDE, {"x": frame, "rate": rate})
    assert values["x"] == [[3.0, 1.0], [4.0, 2.0]]
    assert sets["Year"] == (3, None)
    assert sets["Row"] == (2, None)


def test_pandas_and_xarray_say_the_same() -> None:
    frame = HOUSES.with_columns(u=pl.Series([2.0, 1.0, 2.0, 3.0]))
    assert given(RADON, pandas.DataFrame(frame.to_dict(as_series=False))) == given(RADON, frame)
    dataset = xarray.Dataset(
        {
            "county": ("House", ["b", "a"]),
            "floor": ("House", [0.0, 1.0]),
            "log_radon": ("House", [0.0, 1.0]),
            "u": ("County", [5.0, 6.0]),
        },
        coords={"County": ["a", "b"]},
    )
    values, sets = given(RADON, dataset)
    assert sets["County"] == (2, ("a", "b"))
    assert values["county"] == [1, 0]
    text = "object A : FinSet 2\nobject B : FinSet _\nprogram p : A -> A\n    data x : A * B\n    return x\n"
    turned = xarray.Dataset({"x": (("b", "a"), [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])})
    assert given(text, turned)[0]["x"] == [[1.0, 3.0, 5.0], [2.0, 4.0, 6.0]]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (HOUSES, "needs data `u`"),
        ({"House": HOUSES.drop("county"), "County": COUNTIES}, "needs data `county`"),
        ({"House": HOUSES, "County": COUNTIES.head(2)}, "row 4: `c` is not in `County`, which the data `County` lists"),
        ({"House": HOUSES, "County": pl.concat([COUNTIES, COUNTIES])}, "`a` stands in row 1 already"),
        (HOUSES.with_columns(u=pl.Series([2.0, 1.0, 9.0, 3.0])), "row 1 has the same `County`, and another value"),
        ({"House": changed(floor=["x", "y", "z", "w"]), "County": COUNTIES}, "`x` is not a number"),
        ({"House": changed(floor=[1, None, 1, 1]), "County": COUNTIES}, "row 2: the value is missing"),
        ({"House": changed(county=[0.5, 1, 1, 1]), "County": COUNTIES}, "0.5 is not in `County`"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_named(data: Any, said: str) -> None:
    with pytest.raises((DataProblem, RuntimeProblem)) as problem:
        dsl.loads(RADON, data=data).morphism.rsample()
    assert said in str(problem.value)


KINDS = """
object Row : FinSet _
program p : Row -> Row
    data kind : Row -> {low, high}
    sample m <- Normal(0.0, 1.0)
    observe y[i : Row] <- Normal(m * (kind[i] == 1), 1.0)
    return m
"""


def test_the_labels_of_a_set_without_a_name_are_read() -> None:
    given = {"kind": ["high", "low", "high"], "y": [0.1, 0.2, 0.3]}
    assert dsl.loads(KINDS, data=given).morphism.data["kind"].tolist() == [1, 0, 1]
    with pytest.raises(DataProblem, match=r"`hihg` is none of the elements.*takes 0 and 1, .*, or `low`, `high`"):
        dsl.loads(KINDS, data={**given, "kind": ["hihg", "low", "high"]})


def test_without_data_an_open_set_has_no_size() -> None:
    with pytest.raises(RuntimeProblem, match="`County`, `House` are open sets: their elements come with the data"):
        dsl.loads(RADON)


# ---------------------------------------------------------------- files


def prepared(folder: Path, text: str = RADON, **config: object) -> Prepared:
    job = make_job(folder, text, **{"algorithm": "nuts", **config})
    return prepare(job, analyse(text))


@pytest.fixture
def files(tmp_path: Path) -> Path:
    HOUSES.write_csv(tmp_path / "houses.csv")
    COUNTIES.write_parquet(tmp_path / "counties.parquet")
    return tmp_path


def test_a_run_reads_a_table_for_each_set(files: Path) -> None:
    run = prepared(files, data="csv:houses.csv", tables={"County": "parquet:counties.parquet"})
    _, values = run.train.batch(torch.zeros(1, dtype=torch.int64))
    assert values["county"].tolist() == [1, 0, 1, 2]
    assert run.model.rsample(observations=dict(values)).shape == (1, 4)
    assert run.description.endswith("(House 4, County 4)")


def test_drawn_data_give_open_sets_a_size(tmp_path: Path) -> None:
    run = prepared(tmp_path, data="synthetic", rows=20)
    _, values = run.train.batch(torch.zeros(1, dtype=torch.int64))
    assert values["log_radon"].shape[-1] == 20
    assert values["u"].shape == (8,)


@pytest.mark.parametrize(("one_based", "first"), [(None, 1), (False, 0)])
def test_json_counts_elements_from_one_as_stan_does(tmp_path: Path, one_based: bool | None, first: int) -> None:
    text = RADON.replace("County : FinSet _", "County : FinSet 3")
    content = {"county": [first, first + 2, first], "floor": [0, 1, 0], "log_radon": [0.5, 1.5, 2.5], "u": [1, 2, 3]}
    (tmp_path / "radon.json").write_text(json.dumps(content))
    run = prepared(tmp_path, text, data="json:radon.json", one_based=one_based)
    _, values = run.train.batch(torch.zeros(1, dtype=torch.int64))
    assert values["county"].tolist() == [0, 2, 0]
    assert values["floor"].tolist() == [0.0, 1.0, 0.0]


def test_a_set_of_declared_size_takes_positions_from_zero_or_one(files: Path) -> None:
    text = RADON.replace("County : FinSet _", "County : FinSet 4")
    pl.DataFrame({"county": [1, 4], "floor": [0, 1], "log_radon": [0.1, 0.2]}).write_csv(files / "numbered.csv")
    tables = {"u": "parquet:counties.parquet"}
    run = prepared(files, text, data="csv:numbered.csv", tables=tables, one_based=True, columns={"County": "nothing"})
    _, values = run.train.batch(torch.zeros(1, dtype=torch.int64))
    assert values["county"].tolist() == [0, 3]
    with pytest.raises(DataProblem, match="4 is not in `County`: 0 to 3"):
        prepared(files, text, data="csv:numbered.csv", tables=tables, columns={"County": "nothing"})


def test_a_row_count_that_does_not_fit_is_told(files: Path) -> None:
    text = RADON.replace("House : FinSet _", "House : FinSet 5")
    with pytest.raises(DataProblem, match="there are 4 rows, and `House` has 5 elements"):
        prepared(files, text, data="csv:houses.csv", tables={"County": "parquet:counties.parquet"})


def test_the_labels_of_a_declared_set_say_which_row_is_which(tmp_path: Path) -> None:
    text = (
        "object G : {a, b, c}\nobject Row : FinSet _\nprogram p : Row -> Row\n    data g : Row -> G\n    data w : G\n"
        "    observe y[i : Row] <- Normal(w[g[i]], 1.0)\n    return y\n"
    )
    (tmp_path / "y.csv").write_text("g,y\na,1\nb,2\nc,3\n")
    (tmp_path / "g.csv").write_text("G,w\nc,30\na,10\nb,20\n")
    run = prepared(tmp_path, text, data="csv:y.csv", tables={"G": "csv:g.csv"})
    _, values = run.train.batch(torch.zeros(1, dtype=torch.int64))
    assert values["w"].tolist() == [10.0, 20.0, 30.0]
    (tmp_path / "g.csv").write_text("G,w\nc,30\na,10\nd,20\n")
    with pytest.raises(DataProblem, match="`d` is not in `G`"):
        prepared(tmp_path, text, data="csv:y.csv", tables={"G": "csv:g.csv"})


def test_listed_columns_make_up_an_open_set(tmp_path: Path) -> None:
    pl.DataFrame({"a": [1, 2], "y91": [3, 4], "y90": [5, 6]}).write_csv(tmp_path / "wide.csv")
    steps = "    sample m <- Normal(0.0, 1.0)\n    observe x : R * Y <- Normal(m, 1.0)\n    return m\n"
    text = f"object R, Y : FinSet _\nprogram p : R -> R\n    data x : R * Y\n{steps}"
    run = prepared(tmp_path, text, data="csv:wide.csv", columns={"x": ["y91", "y90"]})
    _, values = run.train.batch(torch.zeros(1, dtype=torch.int64))
    assert values["x"].tolist() == [[3.0, 5.0], [4.0, 6.0]]


GAPPY = """
object Child, Visit : FinSet _
program p : Child -> Child
    data height : Child * Visit
    data siblings : Child -> Nat
    sample m <- Normal(100.0, 10.0)
    observe siblings <- Poisson(2.0) [missing=drop]
    observe height[c : Child, v : Visit] <- Normal(m, 10.0) [missing=impute]
    return m
"""


def test_cells_without_a_value_or_a_row_are_missing(tmp_path: Path) -> None:
    (tmp_path / "visits.csv").write_text("Child,Visit,height\nann,1,101\nann,2,NA\nbob,2,98\n")
    (tmp_path / "children.csv").write_text("Child,siblings\nann,\nbob,3\n")
    run = prepared(tmp_path, GAPPY, data="csv:visits.csv", tables={"Child": "csv:children.csv"})
    _, values = run.train.batch(torch.zeros(1, dtype=torch.int64))
    assert torch.isnan(values["height"]).tolist() == [[False, True], [True, False]]
    assert torch.isnan(values["siblings"]).tolist() == [True, False]
    assert [axis.labels for axis in axes_of(run.model, values)["height"]] == [("ann, 2", "bob, 1")]
    both = r"`observe height … \[missing=impute\]` makes each a latent, `observe height … \[missing=drop\]` leaves"
    silent = GAPPY.replace(" [missing=impute]", "")
    with pytest.raises(DataProblem, match=f"row 2: the value is missing .*{both}"):
        prepared(tmp_path, silent, data="csv:visits.csv", tables={"Child": "csv:children.csv"})
    (tmp_path / "visits.csv").write_text("Child,Visit,height\nann,1,101\nbob,2,98\nann,2,99\n")
    with pytest.raises(DataProblem, match=f"no row is about Child bob, Visit 1 .*{both}"):
        prepared(tmp_path, silent, data="csv:visits.csv", tables={"Child": "csv:children.csv"})


def test_undeclared_columns_may_lack_values_too(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("x,n\n1.5,\n,2\n0.5,3\n")
    text = """
object Row : FinSet 3
program p : Row -> Row
    sample m <- Normal(0.0, 1.0)
    observe x : Row <- Normal(m, 1.0) [missing=impute]
    observe n <- Poisson(2.0) [missing=drop]
    return m
"""
    run = prepared(tmp_path, text, data="csv:x.csv")
    _, values = run.train.batch(torch.zeros(1, dtype=torch.int64))
    assert run.model.missing_shapes(values) == {"x": (1,)}
    assert torch.isnan(values["n"]).tolist() == [True, False, False]


SERIES = """
object Year : FinSet _
program p : Year -> Year
    data y, rain : Year
    sample b <- Normal(0.0, 1.0)
    observe y[t : Year] <- Normal(b * y[t - 1] + rain[t], 1.0)
    return b
"""
PANEL = """
object Person, Year : FinSet _
program p : Person -> Person
    data y : Person * Year
    sample b <- Normal(0.0, 1.0)
    observe y[i : Person, t : Year] <- Normal(b * y[i, t - 1], 1.0)
    return b
"""


def test_years_that_do_not_ascend_are_sorted_and_the_run_says_so(tmp_path: Path) -> None:
    (tmp_path / "years.csv").write_text("Year,y,rain\n2003,3,30\n2001,1,10\n2002,2,20\n")
    made = prepared(tmp_path, SERIES, tables={"Year": "csv:years.csv"}, data="synthetic")
    data = dict(made.train.batch(torch.zeros(1, dtype=torch.int64))[1])
    assert data["y"].tolist() == [1.0, 2.0, 3.0]
    assert data["rain"].tolist() == [10.0, 20.0, 30.0]
    assert "(Year 3); rows of " in made.description
    assert made.description.endswith("years.csv sorted by Year")
    assert given(SERIES, {"Year": pl.read_csv(tmp_path / "years.csv")})[1]["Year"] == (3, ("2001", "2002", "2003"))


@pytest.mark.parametrize(
    ("rows", "told"),
    [("a,1,0\nb,1,0\na,2,0\nb,2,0\n", False), ("b,2,0\nb,1,0\na,1,0\na,2,0\n", True)],
)
def test_rows_ascend_within_each_group(tmp_path: Path, rows: str, told: bool) -> None:
    (tmp_path / "long.csv").write_text(f"person,year,y\n{rows}")
    made = prepared(tmp_path, PANEL, data="csv:long.csv")
    assert ("sorted by Year" in made.description) == told


def test_an_array_along_years_that_do_not_ascend_is_refused() -> None:
    years = xarray.Dataset({name: ("Year", [1.0, 2.0, 3.0]) for name in ("y", "rain")}, {"Year": [2003, 2001, 2002]})
    with pytest.raises(DataProblem, match=r"the elements of `Year` do not ascend \(`2003` is number 1\)"):
        dsl.loads(SERIES, data=years)
    assert dsl.loads(SERIES, data=years.sortby("Year")).morphism.data["y"].tolist() == [2.0, 3.0, 1.0]


BESIDE = """
object County, House : FinSet _
object Feature : {floor, area}
program p : House -> House
    sample a : County <- Normal(0.0, 1.0)
    sample beta : Feature <- Normal(0.0, 1.0)
    let eta = a[county] + 0.3 * x + matmul(z, beta)
    observe y : House <- Normal(eta, spread)
    return a
"""
DECLARED = BESIDE.replace(
    "    sample a",
    "    data county : House -> County\n    data x, spread : House\n    data z : House * Feature\n    sample a",
)


def density_beside(folder: Path, text: str, data: str) -> float:
    """The log density of one point, the data read as a run reads them."""
    made = prepare(make_job(folder, text, data=data, algorithm="nuts", batch_size=None), analyse(text))
    _, given = made.train.batch(torch.arange(made.train.rows))
    latents = {"a": torch.tensor([0.5, -1.0]), "beta": torch.tensor([0.2, 0.1])}
    return float(made.model.log_joint(None, {**latents, **given}))


def test_what_stands_beside_values_over_a_set_is_read_along_it(tmp_path: Path) -> None:
    rows = ["county,x,floor,area,spread,y", "b,1,0,3,0.5,1.5", "a,2,1,4,0.4,0.3", "b,0,1,5,0.3,0.9"]
    (tmp_path / "d.csv").write_text("\n".join(rows))
    means = [0.5 + 0.3 + 0.3, -1.0 + 0.6 + 0.2 + 0.4, 0.5 + 0.2 + 0.5]
    wanted = float(stats.norm.logpdf([1.5, 0.3, 0.9], means, [0.5, 0.4, 0.3]).sum())
    wanted += float(stats.norm.logpdf([0.5, -1.0, 0.2, 0.1]).sum())
    for text in (BESIDE, DECLARED):
        assert density_beside(tmp_path, text, "csv:d.csv") == pytest.approx(wanted, rel=1e-6)


def test_what_stands_beside_values_over_a_set_may_be_one_number(tmp_path: Path) -> None:
    given = {"county": ["b", "a", "b"], "x": 2.0, "z": [[0, 3], [1, 4], [1, 5]], "spread": 0.5, "y": [1.5, 0.3, 0.9]}
    (tmp_path / "one.json").write_text(json.dumps(given))
    (tmp_path / "each.json").write_text(json.dumps({**given, "x": [2.0, 2.0, 2.0], "spread": [0.5, 0.5, 0.5]}))
    one, each = (density_beside(tmp_path, BESIDE, f"json:{name}.json") for name in ("one", "each"))
    assert one == pytest.approx(each, rel=1e-6)
