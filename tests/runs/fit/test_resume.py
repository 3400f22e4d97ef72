"""A fit that is saved and taken up again goes on as if nothing had been; a damaged run is told, never read as data."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from qvr_core.analysis import Analyzer
from qvr_core.cli import app
from qvr_core.runs.fit.stop import Stop
from qvr_core.runs.fit.svi import SviFit
from qvr_core.runs.prepare.prepare import prepare
from qvr_core.runs.record.config import RunConfig
from qvr_core.runs.record.exports import losses_of
from qvr_core.runs.record.protocol import Event, Failed, Job
from qvr_core.runs.record.store import RunDirectory, RunStore
from qvr_core.runs.worker.job import conduct

SOURCE = """\
object Token : FinSet 5
object Topic : FinSet 3
morphism topic : Token -> Topic [role=kernel] ~ Categorical
morphism word : Topic -> Token [role=kernel] ~ Categorical
program discrete : Token -> Token
    sample z <- topic
    observe y <- word(z)
    return y
"""
STEPS = 12


def job(folder: Path, text: str = SOURCE, **config: object) -> Job:
    asked = RunConfig.model_validate(
        {"rows": 40, "batch_size": 8, "steps": STEPS, "learning_rate": 0.05, "threads": 1, **config}
    )
    return RunStore(folder).create(path="m.qvr", text=text, program=None, config=asked, base=str(folder))


def fit(made: Job) -> SviFit:
    return SviFit(prepare(made, Analyzer(made.text).snapshot()), Stop())


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"particles": 3, "objective": "renyi", "alpha": 0.25},
        {"optimizer": "rmsprop", "schedule": "cosine"},
        {"optimizer": "adagrad", "clip_gradient": 0.1},
        {"precision": "float64", "optimizer": "adamw"},
    ],
)
def test_a_fit_taken_up_again_has_the_losses_of_an_unbroken_one(config: dict[str, object], tmp_path: Path) -> None:
    unbroken = fit(job(tmp_path, **config))
    whole = [unbroken.advance() for _ in range(STEPS)]
    made = job(tmp_path, **config)
    first = fit(made)
    begun = [first.advance() for _ in range(5)]
    if not config:
        assert first.objective.baseline is not None  # a discrete latent's score is centred
    first.save()
    again = fit(made)
    list(again.restore())
    assert again.step == 5
    assert begun + [again.advance() for _ in range(STEPS - 5)] == whole


NORMALISED = """\
object Image : Real 2 3 3
object Out : Real 1
morphism even : Image -> Image [role=batch_norm]
morphism out : Image -> Out [role=kernel, param_source=linear] ~ Normal
program net(x) : Image -> Out
    let h = even(x)
    observe y : Out <- out(h)
    return y
"""


def test_what_batches_have_left_is_taken_up_again(tmp_path: Path) -> None:
    unbroken, made = fit(job(tmp_path, NORMALISED)), job(tmp_path, NORMALISED)
    for _ in range(STEPS):
        unbroken.advance()
    first = fit(made)
    for _ in range(5):
        first.advance()
    first.save()
    again = fit(made)
    list(again.restore())
    for _ in range(STEPS - 5):
        again.advance()
    wanted, found = unbroken.model.state_dict(), again.model.state_dict()
    assert wanted["even.running_mean"].abs().min() > 0.0
    assert {name: value.tolist() for name, value in found.items()} == {
        name: value.tolist() for name, value in wanted.items()
    }


@pytest.fixture(scope="module")
def whole_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one finished run."""
    folder = tmp_path_factory.mktemp("run")
    with pytest.MonkeyPatch.context() as here:
        here.chdir(folder)
        (folder / "m.qvr").write_text(SOURCE)
        done = CliRunner().invoke(app, ["run", "svi", "m.qvr", "--steps", "5", "--rows", "16", "--threads", "1"])
        assert done.exit_code == 0, done.output
    return folder


COMMANDS = (
    ["runs"], ["runs", "show", "last"], ["runs", "export", "last", "-o", "out.csv"],
    ["runs", "compare", "last", "last"], ["check", "m.qvr", "--run", "last"], ["sample", "last", "-n", "2"],
)  # fmt: skip


@pytest.mark.parametrize("how", ["truncated", "corrupted", "emptied"])
@pytest.mark.sampled(3)
def test_whatever_is_damaged_is_reported(how: str, whole_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(whole_run)
    run = RunStore(whole_run).open("last")
    files = sorted(path for path in run.path.rglob("*") if path.is_file())
    names = {path.name for path in files}
    assert names >= {"job.json", "program.qvr", "events.log", "ending.json", "process.json", "tensors.safetensors",
                     "state.json", "environment.json"}  # fmt: skip
    losses = losses_of(run)
    assert len(losses) == 5
    for file in files:
        whole = file.read_bytes()
        middle = len(whole) // 2
        damaged = {
            "truncated": whole[:middle],
            "corrupted": whole[:middle] + b"#" + whole[middle + 1 :],
            "emptied": b"",
        }
        file.write_bytes(damaged[how])
        try:
            told = False
            resume = [["run", "svi", "--resume", "last"]] if file.name in ("job.json", "program.qvr") else []
            for command in (*COMMANDS, *resume):
                done = CliRunner().invoke(app, command)
                assert done.exception is None or isinstance(done.exception, SystemExit), (file.name, command, done)
                if done.exit_code:
                    assert "damaged" in done.output, (file.name, command, done.output)
                    told = True
            assert losses_of(RunDirectory(run.path)) in (losses, [])
            # A log may have lost its last lines: the rest is whole.
            harmless = {"environment.json", "process.json", "worker.log", "lock"}
            if how != "corrupted":
                harmless.add("events.log")
            assert told or file.name in harmless, file.name
        finally:
            file.write_bytes(whole)


def qvr(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


def test_a_resume_that_is_refused_changes_nothing(whole_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(whole_run)
    run = RunStore(whole_run).open("last")
    events = run.path / "events.log"
    told = events.read_bytes()
    for arguments, said in (
        (["nuts", "--resume", "last"], f"run {run.run_id} is svi, not nuts"),
        (["svi", "--resume", "last"], "already at step 5; `steps` counts from the start"),
        (["svi", "--resume", "last", "--steps", "3"], "already at step 5; `steps` counts from the start"),
    ):
        done = qvr("run", *arguments)
        assert done.exit_code == 2 and said in done.output, done.output
    done = qvr("run", "svi", "--resume", "last", "--steps", "9", "--memory-limit", "1")
    assert done.exit_code == 1
    assert run.status() == "finished" and run.job().config.steps == 5
    assert events.read_bytes() == told


def test_a_resumed_run_shows_the_steps_it_went_on_with(whole_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (whole_run / "other").mkdir()
    monkeypatch.chdir(whole_run / "other")
    begun = ["run", "svi", "../m.qvr", "--steps", "2", "--rows", "16", "--threads", "1"]
    assert qvr(*begun).exit_code == 0
    explained = qvr("run", "svi", "--resume", "last", "--steps", "4", "--explain")
    assert explained.exit_code == 0 and "goes on from step 2" in explained.output
    rows = {line.split("│")[1].strip(): line for line in explained.output.splitlines() if line.count("│") > 3}
    found = {key: [part.strip() for part in rows[key].split("│")[2:4]] for key in ("steps", "rows", "seed")}
    assert found == {"steps": ["4", "flag"], "rows": ["16", "the run"], "seed": ["0", "default"]}
    assert RunStore(whole_run / "other").open("last").step() == 2
    done = qvr("run", "svi", "--resume", "last", "--steps", "4")
    assert done.exit_code == 0 and "finished 4 steps" in done.output, done.output
    assert "steps = 4" in qvr("runs", "show", "last").output


TABLE = """\
program p : FinSet 2 -> FinSet 2
    sample mu <- Normal(0.0, 1.0)
    observe y <- Normal(mu, 1.0)
    return mu
"""


@pytest.fixture
def table_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a run on y.csv."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.qvr").write_text(TABLE)
    (tmp_path / "y.csv").write_text("y\n1.0\n2.0\n")
    done = qvr("run", "svi", "p.qvr", "--data", "csv:y.csv", "--steps", "2", "--threads", "1")
    assert done.exit_code == 0, done.output
    return tmp_path


def test_a_run_whose_data_have_changed_is_not_resumed(table_run: Path) -> None:
    data = table_run / "y.csv"
    again = ["run", "svi", "--resume", "last", "--steps", "4"]
    for content, said in (
        ("y\n1.0\n3.0\n", f"the content of {data} has changed"),
        ("y\n1.0\n2.0\n2.5\n", f"{data} had 10 bytes and has 14"),
        (None, f"{data} is gone"),
    ):
        data.write_text(content) if content is not None else data.unlink()
        done = qvr(*again)
        assert done.exit_code == 2 and said in done.output and "--changed-data" in done.output, done.output
        assert RunStore(table_run).open("last").status() == "finished"
    data.write_text("y\n1.0\n2.0\n")  # what it was, at another time
    assert qvr(*again).exit_code == 0
    data.write_text("y\n7.0\n2.0\n")
    done = qvr("run", "svi", "--resume", "last", "--steps", "6", "--changed-data")
    assert done.exit_code == 0, done.output
    assert qvr("run", "svi", "--resume", "last", "--steps", "8").exit_code == 0


def test_runs_on_other_data_are_reported_apart(table_run: Path) -> None:
    data = table_run / "y.csv"
    assert "data files" not in qvr("runs", "compare", "last", "last").output
    first = RunStore(table_run).names()[0]
    data.write_text("y\n1.0\n9.0\n")
    assert qvr("run", "svi", "p.qvr", "--data", "csv:y.csv", "--steps", "2", "--threads", "1").exit_code == 0
    compared = qvr("runs", "compare", first, "last").output
    (row,) = (line for line in compared.splitlines() if "data files" in line)
    assert "version 1" in row and "version 2" in row


@pytest.fixture
def other_process(table_run: Path) -> Iterator[tuple[Path, int]]:
    """The folder of the run, and another process that is at work on it."""
    run = RunStore(table_run).open("last")
    enter = "import sys, pathlib; from qvr_core.runs.record.store import RunDirectory"
    enter += "; held = RunDirectory(pathlib.Path(sys.argv[1])).enter(); print(flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", enter, str(run.path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield table_run, process.pid
        process.kill()


def test_two_resumes_at_once_are_not_both_admitted(other_process: tuple[Path, int]) -> None:
    folder, pid = other_process
    run = RunStore(folder).open("last")
    refused = qvr("run", "svi", "--resume", "last", "--steps", "4")
    assert refused.exit_code == 2 and "is running: cancel it" in refused.output, refused.output
    # One that had looked before the other began, and comes to the worker.
    told = (run.path / "events.log").read_bytes()
    sent: list[Event] = []
    job = run.job().model_copy(update={"resume": True})
    assert conduct(job, Stop(), sent.append) == 2
    (failed,) = sent
    assert isinstance(failed, Failed) and f"process {pid} is at work" in failed.message
    assert run.status() == "running" and (run.path / "events.log").read_bytes() == told


def test_a_killed_process_leaves_no_lock_no_torn_line_and_no_part(other_process: tuple[Path, int]) -> None:
    folder, pid = other_process
    os.kill(pid, signal.SIGKILL)
    run = RunStore(folder).open("last")
    while run.status() == "running":
        time.sleep(0.01)
    log = run.path / "events.log"
    whole = len(list(run.events()))
    with open(log, "ab") as file:
        file.write(log.read_bytes()[:30])
    part = run.checkpoints / f".step-000000000003.{pid}.part"
    part.mkdir()
    (part / "tensors.safetensors").write_bytes(b"half")
    (run.path / f".ending.json.{pid}.part").write_bytes(b"half")
    done = qvr("run", "svi", "--resume", "last", "--steps", "4")
    assert done.exit_code == 0, done.output
    assert len(list(run.events())) > whole  # nothing is glued to the torn line
    assert not list(run.path.rglob("*.part"))
