"""Chains that are killed, cancelled or extended have the posterior of an unbroken run, bit for bit."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from qvr_core.cli import app
from qvr_core.inference.machine import density
from qvr_core.runs.evaluation import checkpoint as checkpoints
from qvr_core.runs.fit import chain_checkpoints
from qvr_core.runs.fit.stop import Stop
from qvr_core.runs.record.config import RunConfig
from qvr_core.runs.record.protocol import (
    Cancelled,
    CheckpointWritten,
    Event,
    Failed,
    Finished,
    Job,
    Message,
    Progress,
    Started,
)
from qvr_core.runs.record.store import NotResumable, RunDirectory, RunStore
from qvr_core.runs.worker.job import conduct
from tests.patience import HANG
from tests.runs.fit.killed_chains import Moment, conducted, killed

SCHOOLS = """\
object School : FinSet 8
program eight_schools : School -> School
    sample mu <- Normal(0.0, 5.0)
    sample tau <- HalfCauchy(5.0)
    sample z : School <- Normal(0.0, 1.0)
    let theta = mu + tau * z
    observe y : School <- Normal(theta, 10.0)
    return y
"""
LIFTED = """\
object Row : FinSet 4
object Wide : Real 2
morphism head : Wide -> Row [role=kernel] ~ Categorical
program weights : Wide -> Row
    observe y <- head
    return y
"""
ENGINES = ("compiled", "plain")
WARMUP, SAMPLES, EVERY = 30, 24, 7
TOTAL = WARMUP + SAMPLES
SHORT: dict[str, Any] = {
    "algorithm": "nuts", "data": "synthetic", "rows": 6, "warmup": WARMUP, "samples": SAMPLES, "chains": 2,
    "max_tree_depth": 2, "threads": 1, "checkpoint_steps": EVERY,
}  # fmt: skip


def made(folder: Path, source: str = SCHOOLS, **config: object) -> Job:
    asked = RunConfig.model_validate(SHORT | config)
    return RunStore(folder).create(path="m.qvr", text=source, program=None, config=asked, base=str(folder))


def posterior(job: Job) -> bytes:
    run = RunDirectory.of(job)
    run.check_posterior()
    return run.posterior.read_bytes()


def resumed(folder: Path, job: Job, more: int = 0) -> list[Event]:
    events = conducted(RunStore(folder).resume(job.run_id, more=more))
    assert isinstance(events[-1], Finished), events[-1]
    return events


def told(events: list[Event]) -> list[str]:
    return [event.text for event in events if isinstance(event, Message)]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The posterior of an unbroken run, by source and settings."""

    @cache
    def found(source: str, engine: str, **config: Any) -> bytes:
        job = made(tmp_path_factory.mktemp("whole"), source, engine=engine, **config)
        assert isinstance(conducted(job)[-1], Finished)
        return posterior(job)

    return found


# eight draws in the warm-up and after it, and twelve moments around a name that changes on the disk: the lock's and
# the data's files, a checkpoint of the warm-up, pieces of draws, the last checkpoint, the posterior and its digest
MOMENTS = [Moment("draw", draw) for draw in (1, 7, 8, 13, 30, 31, 45, 54)]
MOMENTS += [Moment("before", number) for number in (2, 5, 8, 14, 19, 27)]
MOMENTS += [Moment("after", number) for number in (1, 4, 9, 15, 21, 28)]


def matrix() -> list[Any]:
    """Every moment on one engine; on all of them where there is time."""
    return [
        pytest.param(moment, engine, marks=() if number % 3 == place else pytest.mark.slow, id=f"{moment}-{engine}")
        for number, moment in enumerate(MOMENTS)
        for place, engine in enumerate(ENGINES)
    ]


@pytest.mark.parametrize(("moment", "engine"), matrix())
@pytest.mark.sampled(2)
def test_a_killed_run_goes_on_as_the_unbroken_one(moment: Moment, engine: str, tmp_path: Path, whole: Any) -> None:
    job = made(tmp_path, engine=engine)
    assert killed(job, moment)
    run = RunDirectory.of(job)
    assert run.status() == "crashed"
    at = run.draws()
    if moment.what == "draw":
        # what a checkpoint has is there: lost is what came after it
        last = (moment.number - 1) // EVERY * EVERY
        assert set(at.values()) == ({last} if last else set())
    events = resumed(tmp_path, job)
    begun = next(event for event in events if isinstance(event, Started))
    assert begun.engine == engine and begun.resumed_from == (max(at.values(), default=0) or None)
    assert posterior(job) == whole(SCHOOLS, engine)
    assert not list(run.path.rglob("*.part"))


@pytest.mark.long
def test_a_run_may_be_killed_again_and_again(tmp_path: Path, whole: Any) -> None:
    job = made(tmp_path, engine="compiled")
    asked, kills = job, 0
    while killed(asked, Moment("draw", 9)):
        kills += 1
        asked = RunStore(tmp_path).resume(job.run_id)
    assert kills == TOTAL // EVERY
    assert posterior(job) == whole(SCHOOLS, "compiled")


@pytest.mark.parametrize(
    "draw", [TOTAL + 3, *(pytest.param(draw, marks=pytest.mark.slow) for draw in (20, TOTAL + 40))]
)
@pytest.mark.long
def test_chains_that_run_one_after_another_go_on(draw: int, tmp_path: Path, whole: Any) -> None:
    """Those of network parameters: the first may be done when the second is killed."""
    job = made(tmp_path, LIFTED, engine="plain")
    assert killed(job, Moment("draw", draw))
    at = RunDirectory.of(job).draws()
    assert at[0] == min(TOTAL, (draw - 1) // EVERY * EVERY)
    events = resumed(tmp_path, job)
    assert [event.resumed_from for event in events if isinstance(event, Started)] == [sum(at.values())]
    assert posterior(job) == whole(LIFTED, "plain")


@pytest.mark.parametrize("engine", ENGINES)
def test_a_finished_run_is_extended_as_if_it_had_been_longer(engine: str, tmp_path: Path, whole: Any) -> None:
    job = made(tmp_path, engine=engine)
    conducted(job)
    assert isinstance(resumed(tmp_path, job, more=SAMPLES)[-1], Finished)
    assert RunDirectory.of(job).job().config.samples == 2 * SAMPLES
    assert posterior(job) == whole(SCHOOLS, engine, samples=2 * SAMPLES)


def test_a_killed_extension_goes_on(tmp_path: Path, whole: Any) -> None:
    job = made(tmp_path, engine="plain")
    conducted(job)
    assert killed(RunStore(tmp_path).resume(job.run_id, more=SAMPLES), Moment("draw", 10))
    resumed(tmp_path, job)
    assert posterior(job) == whole(SCHOOLS, "plain", samples=2 * SAMPLES)


# compiled chains have slices that end at 15, 31 and 54
@pytest.mark.parametrize(("draw", "engine"), [(12, "compiled"), (28, "compiled"), (12, "plain"), (41, "plain")])
def test_a_cancelled_run_goes_on(draw: int, engine: str, tmp_path: Path, whole: Any) -> None:
    """Also where it was cancelled in the midst of a trajectory, whose random numbers are drawn again."""
    job, stop = made(tmp_path, engine=engine, checkpoint_steps=None), Stop()
    events: list[Event] = []

    def send(event: Event) -> None:
        events.append(event)
        if isinstance(event, Progress) and event.step >= draw:
            stop.cancel()

    from qvr_core.runs.worker import emitter

    with pytest.MonkeyPatch.context() as here:
        here.setattr(emitter, "INTERVAL", -1.0)
        conduct(job, stop, send)
    last = events[-1]
    assert isinstance(last, Cancelled) and last.checkpoint is not None
    at = set(RunDirectory.of(job).draws().values())
    assert at == {draw} if engine != "compiled" else min(at) >= draw
    resumed(tmp_path, job)
    assert posterior(job) == whole(SCHOOLS, engine, checkpoint_steps=None)


def test_a_run_at_its_time_limit_has_more_time(tmp_path: Path, whole: Any) -> None:
    job = made(tmp_path, engine="plain", time_limit=1e-9)
    assert isinstance(conducted(job)[-1], Cancelled)
    asked = RunStore(tmp_path).resume(job.run_id)
    asked = asked.model_copy(update={"config": asked.config.model_copy(update={"time_limit": None})})
    assert isinstance(conducted(asked)[-1], Finished)
    assert posterior(job) == whole(SCHOOLS, "plain")


@pytest.mark.statistical
def test_chains_may_be_dealt_out_in_another_way_when_they_go_on(tmp_path: Path, whole: Any) -> None:
    """A team of two is killed; one process goes on, and another team extends what it has made."""
    job = made(tmp_path, engine="compiled", chains=3)
    asked = tmp_path / "job.json"
    asked.write_text(job.model_dump_json())
    team = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    there = {**os.environ, "OMP_NUM_THREADS": "1"}
    script = ["-m", "tests.runs.fit.killed_chains", str(asked), "1", "40"]
    done = subprocess.run(
        [*team, *script], capture_output=True, text=True, check=False, timeout=HANG, env=there,
        cwd=Path(__file__).resolve().parents[3],
    )  # fmt: skip
    assert done.returncode != 0
    run = RunDirectory.of(job)
    at = run.draws()
    assert at[1] == at[2] == 35 and run.status() != "finished"
    resumed(tmp_path, job)
    assert posterior(job) == whole(SCHOOLS, "compiled", chains=3)
    command = [sys.executable, "-m", "qvr_core.cli", "run", "nuts", "--resume", job.run_id, "--more", str(SAMPLES),
               "--nproc", "2"]  # fmt: skip
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=HANG, env=there)
    assert done.returncode == 0, done.stderr
    assert posterior(job) == whole(SCHOOLS, "compiled", chains=3, samples=2 * SAMPLES)


def qvr(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


@pytest.fixture
def run_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunDirectory:
    """A finished run of the folder where the commands are typed."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.qvr").write_text(SCHOOLS)
    flags = [f"--{key.replace('_', '-')}={value}" for key, value in SHORT.items() if key not in ("algorithm", "data")]
    done = qvr("run", "nuts", "p.qvr", "--engine", "plain", *flags)
    assert done.exit_code == 0, done.output
    return RunStore(tmp_path).open("last")


def test_what_cannot_be_resumed_is_told(run_here: RunDirectory) -> None:
    before = run_here.posterior.read_bytes()
    for arguments, said in (
        (["nuts", "--resume", "last"], f"its chains have all of their {SAMPLES} draws; `--more {SAMPLES}` draws"),
        (["svi", "--resume", "last"], f"run {run_here.run_id} is nuts, not svi"),
        (["nuts", "--resume", "last", "--samples", "99"], "samples cannot change; --more draws on"),
        (["nuts", "--resume", "last", "--engine", "plain"], "engine cannot change"),
        (["nuts", "p.qvr", "--more", "5"], "name it with --resume"),
        (["nuts", "--resume", "last", "--more", "0"], "Invalid value for '--more'"),
    ):
        done = qvr("run", *arguments)
        assert done.exit_code == 2 and said in " ".join(done.output.split()), done.output
    assert run_here.status() == "finished" and run_here.posterior.read_bytes() == before


def test_a_run_goes_on_with_the_program_that_it_keeps(run_here: RunDirectory, whole: Any) -> None:
    Path("p.qvr").write_text(SCHOOLS.replace("Normal(0.0, 5.0)", "Normal(100.0, 1.0)"))
    explained = qvr("run", "nuts", "--resume", "last", "--more", "24", "--explain")
    assert f"goes on from draws {TOTAL}, {TOTAL}" in explained.output and run_here.job().config.samples == SAMPLES
    done = qvr("run", "nuts", "--resume", "last", "--more", "24")
    assert done.exit_code == 0 and f"the chains go on from draw {TOTAL}, warm-up included" in done.output, done.output
    assert run_here.posterior.read_bytes() == whole(SCHOOLS, "plain", samples=2 * SAMPLES)


def test_a_fit_by_svi_has_no_more_draws(tmp_path: Path) -> None:
    job = made(tmp_path, algorithm="svi", steps=2)
    conducted(job)
    with pytest.raises(NotResumable, match="which has steps, not draws: give more `steps`"):
        RunStore(tmp_path).resume(job.run_id, more=5)


def test_chains_whose_engine_is_gone_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = made(tmp_path, engine="compiled")
    assert killed(job, Moment("draw", 20))
    monkeypatch.setattr(density, "available", lambda: False)
    failed = conducted(RunStore(tmp_path).resume(job.run_id))[-1]
    assert isinstance(failed, Failed)
    assert failed.message == (
        "the chains of this run began on the engine `compiled`, which is not to be had now: llvmlite is not installed "
        "(pip install llvmlite)"
    )


def test_short_chains_that_are_extended_stay_on_their_engine(tmp_path: Path, whole: Any) -> None:
    job = made(tmp_path, engine="auto")
    assert next(event for event in conducted(job) if isinstance(event, Started)).engine == "compiled"
    begun = next(event for event in resumed(tmp_path, job, more=500) if isinstance(event, Started))
    assert begun.engine == "compiled"
    assert posterior(job) == whole(SCHOOLS, "compiled", samples=SAMPLES + 500)


def test_other_versions_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = made(tmp_path, engine="plain")
    assert killed(job, Moment("draw", 20))
    now = chain_checkpoints.versions("plain")
    monkeypatch.setattr(chain_checkpoints, "versions", lambda engine: {**now, "torch": "9.9"})
    said = f"the chains began with torch {now['torch']} (now 9.9): the draws from here on may round in another way"
    assert said in told(resumed(tmp_path, job))
    monkeypatch.setattr(chain_checkpoints, "FORMAT", 2)
    failed = conducted(RunStore(tmp_path).resume(job.run_id, more=5))[-1]
    assert isinstance(failed, Failed) and "was written by another version of qvr" in failed.message


@pytest.mark.parametrize("what", ["step-*", "draws-*"])
@pytest.mark.sampled(2)
def test_damaged_checkpoints_are_passed_over(what: str, tmp_path: Path, whole: Any) -> None:
    job = made(tmp_path, engine="plain")
    assert killed(job, Moment("draw", 50))
    run = RunDirectory.of(job)
    newest = max(run.checkpoints.glob(f"*/{what}"), key=lambda path: int(path.name.split("-")[-1]))
    file = newest / "tensors.safetensors"
    file.write_bytes(file.read_bytes()[:-1] + b"#")
    said = told(resumed(tmp_path, job))
    assert any(text.startswith("passed over a checkpoint: ") and str(file) in text for text in said)
    assert "the chains go on from draw 42, warm-up included" in said
    assert posterior(job) == whole(SCHOOLS, "plain")
    for head in run.checkpoints.glob("*/step-*"):
        shutil.rmtree(head)
    assert "there is no whole checkpoint: the chains start again, with the same seeds" in told(
        resumed(tmp_path, job, more=SAMPLES)
    )
    assert posterior(job) == whole(SCHOOLS, "plain", samples=2 * SAMPLES)


def test_a_full_disk_leaves_the_checkpoint_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job, real = made(tmp_path, engine="plain"), checkpoints.save

    def full(folder: Path, checkpoint: checkpoints.Checkpoint) -> Path:
        if checkpoint.step == 21:
            raise OSError(28, "No space left on device")
        return real(folder, checkpoint)

    monkeypatch.setattr(checkpoints, "save", full)
    events = conducted(job)
    assert isinstance(events[-1], Finished)
    assert any(text.startswith("no checkpoint at draw 21: ") for text in told(events))
    assert [event.step for event in events if isinstance(event, CheckpointWritten)] == [7, 14, 28, 35, 42, 49, 54]


def test_pieces_of_draws_are_put_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: Any) -> None:
    monkeypatch.setattr(chain_checkpoints, "MOST_PIECES", 3)
    job = made(tmp_path, engine="plain", checkpoint_steps=2)
    assert killed(job, Moment("draw", 52))
    assert len(list(RunDirectory.of(job).checkpoints.glob("*/draws-*"))) <= 5
    resumed(tmp_path, job)
    assert posterior(job) == whole(SCHOOLS, "plain")
