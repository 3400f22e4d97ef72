"""What a newcomer does wrong at the command line, and what is said then: once, and with what to do."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from qvr_core.cli import app
from qvr_core.runs.record.config import RunConfig
from qvr_core.runs.record.store import RunStore

MODEL = """\
program means : FinSet 2 -> FinSet 2
    sample mu <- Normal(0.0, 1.0)
    observe y <- Normal(mu, 1.0)
    return mu
"""
MASKED = """\
object Token : FinSet 256
object E : Real 4
morphism embed : Token -> E [role=embed]
morphism head : E -> Token [role=kernel, hidden_dim=4] ~ Categorical
let context = embed >> mean_over_time
program fills : Token -> Token
    sample h <- context
    observe masked_token : Token <- head(h)
    return masked_token
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.qvr").write_text(MODEL)
    (tmp_path / "d.csv").write_text("y\n1\n2\n")
    return tmp_path


def qvr(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


def test_a_data_file_without_its_source(folder: Path) -> None:
    done = qvr("run", "svi", "m.qvr", "--data", "d.csv")
    assert done.exit_code == 2
    assert "did you mean `csv:d.csv`?" in done.output


def test_a_mistyped_source(folder: Path) -> None:
    done = qvr("run", "svi", "m.qvr", "--data", "cvs:d.csv")
    assert done.exit_code == 2
    assert "did you mean `csv:d.csv`?" in done.output


def test_a_failed_run_says_each_thing_once(folder: Path) -> None:
    (folder / "d.csv").write_text("y\n1\ntwo\n")
    done = qvr("run", "svi", "m.qvr", "--data", "csv:d.csv")
    assert done.exit_code == 1
    assert done.output.count("`two` is not a number") == 1
    assert done.output.count("leave the row out") == 1
    drawn = qvr("sample", "last")
    assert drawn.exit_code == 1
    assert "is failed and has no checkpoint: see `qvr runs show" in drawn.output and "two" not in drawn.output


def test_a_data_file_that_is_not_there_and_a_column_of_another_name(folder: Path) -> None:
    done = qvr("run", "svi", "m.qvr", "--data", "csv:nope.csv")
    assert done.exit_code == 2
    assert "nope.csv: there is no such file" in done.output and "as a flag where you stand" in done.output
    (folder / "d.csv").write_text("Y\n1\n2\n")
    done = qvr("run", "svi", "m.qvr", "--data", "csv:d.csv")
    assert done.exit_code == 1 and "Did you mean `Y`?" in done.output and "`--columns y=Y`" in done.output
    for written in ("y=Y", '{"y": "Y"}'):
        done = qvr("run", "svi", "m.qvr", "--data", "csv:d.csv", "--columns", written, "--steps", "2")
        assert done.exit_code == 0, done.output


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ("yy=effect", "it needs `y`, and the file has `effect`, `se`. Did you mean `y`? `--columns y=effect`"),
        ("effect=y", "The program's name comes first: `--columns y=effect`"),
        ("y=efect", "the columns are `effect`, `se` (for `y`). Did you mean `effect`?"),
        ("y=", "`columns` takes pairs such as y=effect,sigma=error"),
    ],
)
def test_a_wrong_side_of_columns(columns: str, said: str, folder: Path) -> None:
    (folder / "d.csv").write_text("effect,se\n1,2\n")
    done = qvr("run", "svi", "m.qvr", "--data", "csv:d.csv", "--columns", columns)
    assert done.exit_code == 2
    assert said in done.output


def test_a_misspelt_name_of_the_program_is_reported_where_its_data_is_missing(folder: Path) -> None:
    (folder / "t.qvr").write_text(MODEL.replace("mu", "theta").replace("Normal(theta", "Normal(theeta"))
    done = qvr("run", "svi", "t.qvr", "--data", "csv:d.csv")
    assert done.exit_code == 1
    assert "`theeta` is data that the program must be given; did you mean `theta`?" in done.output
    assert "Change to `theta`" in done.output


def test_runs_that_were_refused_are_out_of_the_way(folder: Path) -> None:
    assert qvr("run", "svi", "m.qvr", "--steps", "2").exit_code == 0
    made = RunStore(folder).open("last").run_id
    assert qvr("run", "svi", "m.qvr", "--data", "csv:nope.csv").exit_code == 2
    assert qvr("run", "svi", "m.qvr", "--program", "nope").exit_code == 2
    listed = qvr("runs").output
    assert "finished" in listed and "│ refused" not in listed
    assert "2 refused before the first step: qvr runs --all" in listed
    assert qvr("runs", "--all").output.count("│ refused ") == 2
    assert f"{made} " in qvr("runs", "show", "last").output


def test_a_diagram_of_unknown_suffix(folder: Path) -> None:
    done = qvr("diagram", "m.qvr", "-o", "d.jpg")
    assert done.exit_code == 2
    assert "d.jpg" in done.output and ".svg" in done.output and not (folder / "d.jpg").exists()
    assert qvr("diagram", "m.qvr", "-o", "d.jpg", "--format", "dot").exit_code == 0


def test_a_file_that_is_no_program(folder: Path) -> None:
    done = qvr("check", "d.csv")
    assert done.exit_code == 2
    assert "d.csv is not a .qvr file" in done.output


@pytest.mark.parametrize("guide", ["delta", "laplace"])
def test_a_point_can_be_sampled(guide: str, folder: Path) -> None:
    done = qvr("run", "svi", "m.qvr", "--data", "csv:d.csv", "--guide", guide, "--steps", "20")
    assert done.exit_code == 0, done.output
    done = qvr("sample", "last", "-n", "20")
    assert done.exit_code == 0, done.output
    assert "mu" in done.output


@pytest.mark.parametrize(
    ("name", "said"),
    [("nosuch.toml", "there is no settings file nosuch.toml"), (".", "cannot be read"), ("latin.toml", "not UTF-8")],
)
def test_settings_that_cannot_be_read(name: str, said: str, folder: Path) -> None:
    (folder / "latin.toml").write_bytes(b'data = "csv:m\xe4.csv"')
    done = qvr("run", "svi", "m.qvr", "--settings", name)
    assert done.exit_code == 2 and said in done.output


@pytest.mark.parametrize(
    ("toml", "said"),
    [
        ("[run.maens]\nsteps = 3\n", "qvr.toml:1: no program `maens` in m.qvr; did you mean `means`?"),
        ("[defaults]\nsteps = 3\n\n[run.maens]\nseed = 3\n", "qvr.toml:4: no program `maens`"),
        ("run.maens.steps = 3\n", "qvr.toml:1: no program `maens`"),
        ("[run.means]\nsteps = 3\n[run.maens]\nsteps = 3\n", None),
        ("[run.language]\nsteps = 3\n", None),
        ("[run.meant]\nsteps = 3\n", None),
    ],
)
def test_a_table_of_a_misspelt_program(toml: str, said: str | None, folder: Path) -> None:
    (folder / "qvr.toml").write_text(toml)
    (folder / "other.qvr").write_text(MODEL.replace("program means", "program meant"))
    done = qvr("run", "svi", "m.qvr", "--explain")
    assert done.exit_code == 0
    assert said in done.output if said else "did you mean" not in done.output


def test_a_run_without_data_says_so(folder: Path) -> None:
    (folder / "qvr.toml").write_text("[run.maens]\nsteps = 3\n")
    done = qvr("run", "svi", "m.qvr", "--steps", "3")
    assert done.exit_code == 0
    assert "2 parameters of the guide on cpu" in done.output and "0 parameters" not in done.output
    assert "did you mean `means`?" in done.output and "no data was given (--data csv:FILE" in done.output
    done = qvr("run", "svi", "m.qvr", "--steps", "3", "--data", "synthetic")
    assert "no data was given" not in done.output


@pytest.mark.parametrize("algorithm", ["svi", "nuts"])
def test_a_discrete_latent(algorithm: str, folder: Path) -> None:
    (folder / "m.qvr").write_text(MODEL.replace("mu <- Normal(0.0, 1.0)", "mu <- Bernoulli(0.5)"))
    done = qvr("run", algorithm, "m.qvr", "--data", "csv:d.csv")
    assert done.exit_code == 1
    assert "`mu` is discrete" in done.output and "`marginalize mu <- …`" in done.output
    assert "Auto" not in done.output
    assert ("--guide" in done.output) == (algorithm == "svi")
    assert algorithm == "nuts" or "or use `--guide prior`, which draws it from the model" in done.output


def test_a_file_without_an_algorithm(folder: Path) -> None:
    for arguments in (("m.qvr", "--steps", "3"), ("m.qvr", "svi", "--steps", "3")):
        done = qvr("run", *arguments)
        assert done.exit_code == 2
        assert "qvr run svi m.qvr --steps 3" in done.output
    assert "No such command" in qvr("run", "sv").output


def test_a_prompt_for_a_program_that_fills_in(folder: Path) -> None:
    (folder / "f.qvr").write_text(MASKED)
    (folder / "t.txt").write_bytes(b"the quick brown fox " * 20)
    assert qvr("run", "svi", "f.qvr", "--data", "text:t.txt", "--steps", "2", "--held-out", "0").exit_code == 0
    done = qvr("sample", "last", "--prompt", "The")
    assert done.exit_code == 2
    assert "--prompt is for programs that predict the next token" in done.output
    assert qvr("sample", "last", "-n", "2").exit_code == 0


def test_the_list_of_runs_is_not_cut(folder: Path) -> None:
    program = "a_program_with_quite_a_long_name_for_what_it_does"
    job = RunStore(folder).create(path="m.qvr", text=MODEL, program=program, config=RunConfig(), base=".")
    done = qvr("runs")
    assert job.run_id in done.output
    assert f"│ {program} │" in done.output and "queued" in done.output


def test_synthetic_data_of_a_program_that_sees_them_whole(folder: Path) -> None:
    done = qvr("run", "svi", "m.qvr", "--steps", "2")
    assert done.exit_code == 0
    assert "synthetic: data drawn from `means` itself" in done.output


def test_no_gpu_is_reported(folder: Path) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is one")
    done = qvr("run", "svi", "m.qvr", "--device", "cuda", "--precision", "bfloat16")
    assert done.exit_code == 2
    assert "torch finds no GPU here" in done.output
    done = qvr("run", "nuts", "m.qvr", "--device", "cuda")
    assert "chains run on the CPU" in done.output


REGIONS = """\
object Region : {north, south, east}
program reg : Region -> Region
    sample a : Region <- Normal(0.0, 1.0)
    let m = a[region]
    observe y <- Normal(m, 1.0)
    return y
"""


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        (("south", "north"), None),
        (("1", "3"), "3 is outside `Region`, whose 3 values are 0 to 2"),
        (("south", "sud"), "`sud` is none of the labels `north`, `south`, `east`"),
    ],
)
def test_labels_as_an_index(labels: tuple[str, str], said: str | None, folder: Path) -> None:
    (folder / "r.qvr").write_text(REGIONS)
    (folder / "r.csv").write_text("y,region\n" + "".join(f"1,{label}\n" for label in labels))
    done = qvr("run", "svi", "r.qvr", "--data", "csv:r.csv", "--steps", "2", "--threads", "1")
    assert done.exit_code == (1 if said else 0), done.output
    assert said is None or said in done.output


COVARIATES = """\
object Row : FinSet _
object Feature : FinSet 2
program p : Row -> Row
    data covariate : Row * Feature
    data y : Row
    sample b : Feature <- Normal(0.0, 1.0)
    observe y : Row <- Normal(matmul(covariate, b), 1.0)
    return b
"""


def test_a_table_for_a_data_name_that_is_misspelt(folder: Path) -> None:
    (folder / "c.qvr").write_text(COVARIATES)
    (folder / "c.csv").write_text("age,income,y\n1,2,3\n4,5,6\n")
    (folder / "qvr.toml").write_text('[run.p]\ndata = "csv:c.csv"\n[data.covariates]\ncolumns = ["age", "income"]\n')
    done = qvr("run", "nuts", "c.qvr")
    assert done.exit_code == 2
    assert "qvr.toml:3: `p` reads nothing called `covariates`; did you mean `[data.covariate]`?" in done.output
    (folder / "qvr.toml").write_text('[run.p]\ndata = "csv:c.csv"\n[data.covariate]\ncolumns = ["age", "incom"]\n')
    done = qvr("check", "c.qvr")
    assert done.exit_code == 1
    assert "there is no column `incom`" in done.output


def test_check_reads_columns_that_are_called_otherwise(folder: Path) -> None:
    program = "object Row : FinSet _\nprogram p : Row -> Row\n    data mark : Row\n    sample a <- Normal(0.0, 1.0)\n"
    (folder / "p.qvr").write_text(program + "    observe mark[i : Row] <- Normal(a, 1.0)\n    return a\n")
    (folder / "marks.csv").write_text("Mark_x\n1.0\n2.0\n")
    invoke = CliRunner().invoke
    refused = invoke(app, ["check", "p.qvr", "--data", "csv:marks.csv"])
    assert refused.exit_code == 1 and "`--columns mark=Mark_x`" in refused.output
    mended = invoke(app, ["check", "p.qvr", "--data", "csv:marks.csv", "--columns", "mark=Mark_x"])
    assert mended.exit_code == 0 and "no problems" in mended.output
    alone = invoke(app, ["check", "p.qvr", "--columns", "mark=Mark_x"])
    assert alone.exit_code == 2 and "--data" in alone.output
