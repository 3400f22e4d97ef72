"""The command line as a user meets it: exact formats, exit codes, and a start without torch."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from qvr_core.runs.record.protocol import Finished, Started, parse_event
from tests.patience import HANG

ROOT = Path(__file__).resolve().parents[2]
BROKEN = ROOT / "examples" / "broken" / "widths_do_not_add_up.qvr"


def qvr(*arguments: str, cwd: Path = ROOT, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "qvr_core.cli", *arguments]
    return subprocess.run(command, cwd=cwd, input=stdin, capture_output=True, text=True, check=False, timeout=HANG)


def test_clean_files(tmp_path: Path) -> None:
    done = qvr("check", "--json", "examples/vanilla_rnn_lm.qvr", "examples/seq2seq.qvr")
    assert (done.returncode, json.loads(done.stdout), done.stderr) == (0, [], "")
    assert "no problems" in qvr("check", "examples/vanilla_rnn_lm.qvr").stdout


def test_json_of_an_error() -> None:
    done = qvr("check", "--json", str(BROKEN))
    assert done.returncode == 1
    (found,) = json.loads(done.stdout)
    assert set(found) == {"file", "code", "severity", "message", "range", "related", "fixes"}
    assert (found["file"], found["severity"]) == (str(BROKEN), "error")
    line = BROKEN.read_text().splitlines()[found["range"]["start"]["line"]]
    assert line[found["range"]["start"]["character"] : found["range"]["end"]["character"]] == ">>"
    assert "96" in found["message"] and "128" in found["message"]
    assert all(set(item) == {"message", "file", "range"} for item in found["related"])
    assert found["related"]
    for fix in found["fixes"]:
        assert set(fix) == {"title", "preferred", "edits"}
        assert all(set(edit) == {"range", "text"} for edit in fix["edits"])


def test_columns_are_utf16_units(tmp_path: Path) -> None:
    file = tmp_path / "m.qvr"
    file.write_text('program p : FinSet 2 -> FinSet 2\n    let x = "𝔸𝔸" + nope(1)\n    return x\n', encoding="utf-8")
    found = json.loads(qvr("check", "--json", str(file)).stdout)
    line = file.read_text(encoding="utf-8").splitlines()[1]
    place = next(item["range"]["start"]["character"] for item in found if "nope" in item["message"])
    assert place == line.index("nope") + 2  # each 𝔸 is two units


def test_people_see_the_line_and_what_fixes_it() -> None:
    done = qvr("check", str(BROKEN))
    assert done.returncode == 1
    assert "error[compose-mismatch]" in done.stdout
    assert "widths_do_not_add_up.qvr:18:" in done.stdout
    lines = done.stdout.splitlines()
    source = next(i for i, line in enumerate(lines) if line.startswith("18 | "))
    assert lines[source + 1].index("^") == lines[source].index(">>")
    assert "= fix: " in done.stdout and lines[-1] == "1 error"


@pytest.mark.parametrize(
    "arguments",
    [("check",), ("check", "none.qvr"), ("check", "--jsn", "x"), ("nonsense",), ("run", "svi"),
     ("run", "svi", "none.qvr"), ("run", "svi", "examples/seq2seq.qvr", "--steps", "many"),
     ("runs", "show", "none"), ("diagram",)],
)  # fmt: skip
def test_wrong_usage_is_status_2(arguments: tuple[str, ...], tmp_path: Path) -> None:
    done = qvr(*arguments, cwd=tmp_path if arguments[:1] == ("runs",) else ROOT)
    assert done.returncode == 2
    assert done.stderr.strip()
    assert "Traceback" not in done.stderr


@pytest.mark.process
def test_check_reads_stdin_and_folders(tmp_path: Path) -> None:
    assert qvr("check", "-", stdin="object A : FinSet 0\n").returncode == 1
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "m.qvr").write_text("object A : Nope\n")
    done = qvr("check", "--json", str(tmp_path))
    assert done.returncode == 1 and json.loads(done.stdout)[0]["file"].endswith("a/m.qvr")


def test_check_of_a_folder_leaves_its_runs_alone(tmp_path: Path) -> None:
    """`.qvr/` ends like a program, and holds copies of programs that were run."""
    (tmp_path / ".qvr" / "runs" / "one").mkdir(parents=True)
    (tmp_path / ".qvr" / "runs" / "one" / "program.qvr").write_text("object A : Nope\n")
    (tmp_path / "m.qvr").write_text("object A : FinSet 3\n")
    done = qvr("check", str(tmp_path))
    assert done.returncode == 0, done.stderr


def test_check_loads_neither_torch_nor_numpy() -> None:
    code = (
        "import sys\nfrom qvr_core.cli import app\nsys.argv = ['qvr', 'check', 'examples/seq2seq.qvr']\n"
        "try:\n app()\nexcept SystemExit as end:\n assert not end.code\n"
        "assert not {'torch', 'numpy', 'polars'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.process
def test_format(tmp_path: Path) -> None:
    file = tmp_path / "m.qvr"
    file.write_text("object   A:FinSet   3 # three\n")
    assert qvr("format", "--check", str(file)).returncode == 1
    assert qvr("format", str(file)).returncode == 0
    text = file.read_text()
    assert "object A : FinSet 3" in text and "# three" in text
    assert qvr("format", "--check", str(file)).returncode == 0
    assert qvr("format", "-", stdin="object   A:FinSet   3\n").stdout == "object A : FinSet 3\n"


PLATES = """object School : FinSet 8
object Pupil : FinSet 20
program p : Pupil -> Pupil
    sample a : School <- Normal(0.0, 1.0)  # effects
    observe y : Pupil <- Normal(a, 1.0) [via=school]
    observe z <- Normal(sum(a), 1.0) [at=rows]
    return a
"""


def test_fix_writes_indices(tmp_path: Path) -> None:
    file = tmp_path / "m.qvr"
    file.write_text(PLATES)
    checked = qvr("fix", "--check", str(file))
    assert (checked.returncode, file.read_text()) == (1, PLATES)
    assert "+    sample a[s : School] <- Normal(0.0, 1.0)  # effects\n" in qvr("fix", "--diff", str(file)).stdout
    done = qvr("fix", str(file))
    assert done.returncode == 0 and f"{file}:6: left as it is: nothing says over which set" in done.stderr
    text = file.read_text()
    assert (
        "observe y[i : Pupil] <- Normal(a[school[i]], 1.0)\n" in text and "z <- Normal(sum(a), 1.0) [at=rows]" in text
    )
    assert qvr("fix", "--check", str(file)).returncode == 0
    assert qvr("fix", "-", stdin=PLATES).stdout == text


@pytest.mark.process
def test_diagram(tmp_path: Path) -> None:
    out = tmp_path / "d.dot"
    assert qvr("diagram", "examples/vanilla_rnn_lm.qvr", "backbone", "-o", str(out)).returncode == 0
    assert out.read_text().startswith("digraph")
    page = tmp_path / "d.md"
    assert qvr("diagram", "examples/vanilla_rnn_lm.qvr", "-o", str(page)).returncode == 0
    assert page.read_text().startswith("```mermaid\nflowchart") and page.read_text().endswith("\n```\n")
    assert "flowchart LR" in qvr("diagram", "examples/vanilla_rnn_lm.qvr").stdout
    done = qvr("diagram", "examples/vanilla_rnn_lm.qvr", "nonsense")
    assert done.returncode == 1 and "nonsense" in done.stderr


SCHOOLS = """\
object School : FinSet 8
program eight_schools : School -> School
    sample mu <- Normal(0.0, 5.0)
    sample tau <- HalfCauchy(5.0)
    sample z : School <- Normal(0.0, 1.0)
    let theta = mu + tau * z
    observe y : School <- Normal(theta, sigma)
    return y
"""
TABLE = "effect,sigma\n28,15\n8,10\n-3,16\n7,11\n-1,9\n1,11\n18,10\n12,18\n"
TOML = """\
[run.eight_schools]
data = "csv:schools.csv"
columns = { y = "effect" }
steps = 900
learning_rate = 0.05
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "m.qvr").write_text(SCHOOLS)
    (tmp_path / "schools.csv").write_text(TABLE)
    (tmp_path / "qvr.toml").write_text(TOML)
    return tmp_path


def test_explain_says_where_each_setting_comes_from(project: Path) -> None:
    done = qvr("run", "svi", "m.qvr", "--explain", "--seed", "5", cwd=project)
    assert done.returncode == 0
    rows = {line.split("│")[1].strip(): line for line in done.stdout.splitlines() if line.count("│") > 3}
    assert "flag" in rows["seed"] and "qvr.toml:4" in rows["steps"] and "default" in rows["guide"]
    assert "`[guide=…]`" in " ".join(done.stdout.split()), "not taken for markup"
    assert not (project / ".qvr").exists()


def test_wrong_qvr_toml_is_reported_at_its_line(project: Path) -> None:
    (project / "qvr.toml").write_text(TOML.replace("steps", "stepz"))
    done = qvr("run", "svi", "m.qvr", cwd=project)
    assert done.returncode == 2
    assert "qvr.toml:4:1: unknown key `stepz`; did you mean `steps`?" in done.stderr


@pytest.mark.statistical
def test_svi_and_nuts_of_a_table_agree_with_the_known_posterior(project: Path) -> None:
    done = qvr("run", "svi", "m.qvr", "--json", cwd=project)
    assert done.returncode == 0, done.stderr
    events = [parse_event(line) for line in done.stdout.splitlines()]
    assert isinstance(events[0], Started) and events[0].data == "schools.csv: 8 rows"
    last = events[-1]
    assert isinstance(last, Finished)
    svi = {row.name: row for row in last.posterior}
    done = qvr("run", "nuts", "m.qvr", "--json", "--warmup", "300", "--samples", "300", "--chains", "2", cwd=project)
    last = parse_event(done.stdout.splitlines()[-1])
    assert isinstance(last, Finished), done.stderr
    nuts = {row.name: row for row in last.posterior}
    for found in (svi, nuts):
        assert found["mu"].mean == pytest.approx(4.4, abs=1.5)
        assert found["mu"].sd == pytest.approx(3.3, abs=1.0)
    latents = {"mu", "tau", *(f"z[{i}]" for i in range(8))}
    assert set(nuts) == {*latents, *(f"theta[{i}]" for i in range(8))}
    assert nuts["mu"].r_hat == pytest.approx(1, abs=0.05) and (nuts["mu"].ess or 0) > 50

    listing = json.loads(qvr("runs", "--json", cwd=project).stdout)
    assert [(run["algorithm"], run["status"]) for run in listing] == [("nuts", "finished"), ("svi", "finished")]
    shown = qvr("runs", "show", "last", cwd=project)
    assert shown.returncode == 0 and "R-hat" in shown.stdout
    ids = [run["run_id"] for run in listing]
    compared = qvr("runs", "compare", *ids, "--plot", "loss.png", cwd=project)
    assert compared.returncode == 0 and "algorithm" in compared.stdout, compared.stderr
    rows = {line.split("│")[1].strip(): line for line in compared.stdout.splitlines() if line.count("│") > 2}
    assert f"{svi['mu'].mean:.4g} ± {svi['mu'].sd:.4g}" in rows["mu"]
    assert f"{nuts['mu'].mean:.4g} ± {nuts['mu'].sd:.4g}" in rows["mu"]
    assert (project / "loss.png").read_bytes().startswith(b"\x89PNG")
    assert qvr("runs", "export", ids[0], "-o", "draws.csv", cwd=project).returncode == 0
    lines = (project / "draws.csv").read_text().splitlines()
    assert lines[0].startswith("chain,draw,mu,tau,z[0]") and len(lines) == 601
    assert qvr("runs", "export", ids[0], "-o", "draws.nc", cwd=project).returncode == 0
    drawn = qvr("sample", ids[1], "-n", "50", cwd=project)
    assert drawn.returncode == 0 and "tau" in drawn.stdout, drawn.stderr


LINEAR = """\
object X : Real 1
object H : Real {width}
morphism up : X -> H [role=linear]
morphism out : H -> X [role=kernel, hidden_dim=4] ~ Normal
program m(x) : X -> X
    let h = up(x)
    observe y <- out(h)
    return y
"""


def test_check_against_a_run_names_the_parameters_that_changed(tmp_path: Path) -> None:
    (tmp_path / "m.qvr").write_text(LINEAR.format(width=3))
    done = qvr("run", "svi", "m.qvr", "--steps", "5", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert qvr("check", "m.qvr", "--run", "last", cwd=tmp_path).returncode == 0
    (tmp_path / "m.qvr").write_text(LINEAR.format(width=5))
    done = qvr("check", "m.qvr", "--run", "last", cwd=tmp_path)
    assert done.returncode == 1
    assert "was (3, 1) and is (5, 1)" in done.stderr, done.stderr


def test_failed_run_is_status_1_with_the_line(project: Path) -> None:
    (project / "schools.csv").write_text(TABLE.replace("18,10", "18,ten"))
    done = qvr("run", "svi", "m.qvr", cwd=project)
    assert done.returncode == 1
    assert "schools.csv, column `sigma`, row 7" in done.stderr and "`ten` is not a number" in done.stderr
    assert "observe y : School <- Normal(theta, sigma)" in done.stderr


@pytest.mark.process
def test_schema() -> None:
    assert "learning_rate" in json.dumps(json.loads(qvr("schema").stdout))
    assert "held_out" in json.dumps(json.loads(qvr("schema", "--events").stdout))


def test_format_leaves_a_file_that_is_not_utf8_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "latin.qvr"
    file.write_bytes(b"object A   : FinSet 3 # caf\xe9\n")
    done = qvr("format", str(file))
    assert done.returncode == 1
    assert "line 1: byte 0xe9 is not UTF-8" in done.stderr
    assert file.read_bytes() == b"object A   : FinSet 3 # caf\xe9\n"


def test_check_reads_the_tables_that_the_settings_name(tmp_path: Path) -> None:
    (tmp_path / "p.qvr").write_text(
        "object Row : FinSet _\nobject Kind : {red, blue}\nprogram p : Row -> Row\n    data kind : Row -> Kind\n"
        "    sample mu[k : Kind] <- Normal(0.0, 1.0)\n    observe y[i : Row] <- Normal(mu[kind[i]], 1.0)\n"
        "    return mu\n"
    )
    (tmp_path / "qvr.toml").write_text('[run.p]\ndata = "csv:p.csv"\n')
    done = qvr("check", "p.qvr", cwd=tmp_path)
    assert done.returncode == 0
    assert "the data of `p` are not checked" in done.stderr and "p.csv is not there" in done.stderr
    (tmp_path / "p.csv").write_text("kind,y\nred,1.0\nblu,2.0\n")
    done = qvr("check", ".", "--json", cwd=tmp_path)
    [found] = json.loads(done.stdout)
    assert done.returncode == 1 and found["code"] == "data-file"
    assert "p.csv, column `kind`, row 2: `blu` is not in `Kind`" in found["message"]
    (tmp_path / "p.csv").write_text("kind,y\nred,1.0\nblue,2.0\n")
    assert qvr("check", ".", cwd=tmp_path).returncode == 0
