"""A fit that is saved and taken up again goes on as if nothing had been; a damaged run is told, never read as data."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from qvr_core.analysis import Analyzer
from qvr_core.cli import app
from qvr_core.runs.config import RunConfig
from qvr_core.runs.exports import losses_of
from qvr_core.runs.prepare import prepare
from qvr_core.runs.protocol import Job
from qvr_core.runs.store import RunDirectory, RunStore
from qvr_core.runs.svi import SviFit
from qvr_core.runs.worker import Stop

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


def job(folder: Path, **config: object) -> Job:
    asked = RunConfig.model_validate(
        {"rows": 40, "batch_size": 8, "steps": STEPS, "learning_rate": 0.05, "threads": 1, **config}
    )
    return RunStore(folder).create(path="m.qvr", text=SOURCE, program=None, config=asked, base=str(folder))


def fit(made: Job) -> SviFit:
    return SviFit(prepare(made, Analyzer(made.text).snapshot()), Stop())


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"particles": 3, "objective": "iwae"},
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
def test_whatever_is_damaged_is_told(how: str, whole_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
            harmless = {"environment.json", "process.json", "worker.log"}
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


def test_chains_that_have_ended_are_not_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    source = "program p : FinSet 2 -> FinSet 2\n    sample mu <- Normal(0.0, 1.0)\n    observe y <- Normal(mu, 1.0)\n"
    (tmp_path / "p.qvr").write_text(source + "    return mu\n")
    short = ["--chains", "1", "--warmup", "5", "--samples", "5", "--threads", "1"]
    assert qvr("run", "nuts", "p.qvr", *short).exit_code == 0
    done = qvr("run", "nuts", "--resume", "last")
    assert done.exit_code == 2 and "already finished: chains are not resumed" in done.output, done.output
    assert RunStore(tmp_path).open("last").status() == "finished"
