"""The run directory: whole or absent after any kill; damage is named, never read as data."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from datetime import datetime, tzinfo
from pathlib import Path

import numpy as np
import pytest
import torch

from qvr_core.runs.evaluation import checkpoint
from qvr_core.runs.fit.minibatches import PERMUTED, RowOrder, permuted
from qvr_core.runs.record.atomic_files import DamagedFile, read_json, write_json
from qvr_core.runs.record.config import RunConfig
from qvr_core.runs.record.protocol import Finished, Message, PosteriorRow, Progress, parse_event
from qvr_core.runs.record.store import NoSuchRun, RunDirectory, RunStore


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    store = RunStore(tmp_path)
    job = store.create(path="p.qvr", text="object A : FinSet 3\n", program="p", config=RunConfig(seed=4), base=".")
    directory = RunDirectory.of(job)
    directory.append(Message(level="info", text="grüße"))
    directory.append(Progress(step=1, steps=2, seconds=0.5, loss=float("nan")))
    directory.end(Finished(step=2, seconds=1.0))
    return directory


def test_what_is_written_is_read_back(run: RunDirectory) -> None:
    job = run.job()
    assert (job.text, job.config.seed, job.program) == ("object A : FinSet 3\n", 4, "p")
    first, second = run.events()
    assert first == Message(level="info", text="grüße")
    assert isinstance(second, Progress) and second.loss is None  # not finite travels as nothing
    assert run.status() == "finished"


def test_numbers_that_are_not_finite_are_stored_as_nothing(run: RunDirectory) -> None:
    row = PosteriorRow(name="a", mean=1.0, sd=float("nan"), q05=None, median=float("inf"), q95=2.0, r_hat=float("nan"))
    run.end(Finished(step=2, seconds=1.0, posterior=(row,)))
    ending = run.ending()
    assert isinstance(ending, Finished)
    assert (ending.posterior[0].sd, ending.posterior[0].median, ending.posterior[0].q95) == (None, None, 2.0)


def test_every_bit_of_damage_is_noticed(run: RunDirectory) -> None:
    run.posterior.write_bytes(b"numbers" * 9)
    run.seal_posterior()
    files = sorted(run.path.iterdir())
    assert {path.name for path in files} == {
        "job.json", "program.qvr", "events.log", "ending.json", "posterior.nc", "posterior.json"
    }  # fmt: skip
    for file in files:
        whole = file.read_bytes()
        for at in range(0, len(whole) - 1, 7):
            file.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
            with pytest.raises((DamagedFile, ValueError), match=r"damaged|checksum"):
                run.job()
                list(run.events())
                run.ending()
                run.check_posterior()
        file.write_bytes(whole)


def test_truncation_is_noticed_or_drops_the_unfinished_line(run: RunDirectory) -> None:
    log = run.path / "events.log"
    whole = log.read_bytes()
    log.write_bytes(whole[:-5])
    assert len(list(run.events())) == 1
    ending = run.path / "ending.json"
    ending.write_bytes(ending.read_bytes()[:20])
    with pytest.raises(DamagedFile, match=r"ending\.json is damaged"):
        run.status()


def test_status_follows_the_process(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    run = RunDirectory.of(store.create(path="p.qvr", text="", program="p", config=RunConfig(), base="."))
    assert run.status() == "queued"
    code = (
        f"from pathlib import Path; from qvr_core.runs.record.store import RunDirectory; import time\n"
        f"RunDirectory(Path({str(run.path)!r})).enter(); print('in', flush=True); time.sleep(600)"
    )
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert child.stdout is not None and child.stdout.readline() == b"in\n"
    assert run.status() == "running"
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    assert run.status() == "crashed"


def test_runs_are_found_by_the_beginning_of_their_id(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    with pytest.raises(NoSuchRun, match="there are no runs"):
        store.open("last")
    ids = [store.create(path="p.qvr", text="", program="p", config=RunConfig(), base=".").run_id for _ in range(3)]
    assert len(set(ids)) == 3
    assert store.open(ids[0]).run_id == ids[0]
    assert store.open("last").run_id == store.names()[-1]
    with pytest.raises(NoSuchRun, match="several"):
        store.open(ids[0][:5])
    with pytest.raises(NoSuchRun, match="no run `nonsense`"):
        store.open("nonsense")


class Clock(datetime):
    """A clock that stands where it is set."""

    stands = datetime(2026, 10, 25, 2, 59, 58)

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:
        return cls.stands


def test_the_newest_run_is_the_newest_whatever_was_done_to_the_clock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("qvr_core.runs.record.store.datetime", Clock)
    store, made = RunStore(tmp_path), list[str]()
    # summer time ends: two minutes later it is an hour earlier; and many runs in one second
    moments = [(2, 59, 58), (2, 59, 59), (2, 0, 1), (2, 0, 1), (2, 0, 30), *[(2, 0, 31)] * 10, (2, 59, 59), (3, 0, 1)]
    for number, moment in enumerate(moments):
        monkeypatch.setattr(Clock, "stands", datetime(2026, 10, 25, *moment))
        program = "wide" if number % 3 else "narrow"
        job = store.create(path="p.qvr", text="", program=program, config=RunConfig(), base=".")
        made.append(job.run_id)
        assert store.open("last").run_id == store.open(program).run_id == job.run_id
    assert store.names() == made
    assert [one.run_id for one in store.overviews()] == made[::-1]
    monkeypatch.setattr(Clock, "stands", datetime(2026, 10, 25, 2, 0, 32))
    for _ in range(12):
        made.append(store.create(path="p.qvr", text="", program="wide", config=RunConfig(), base=".").run_id)
    assert store.names() == made


def test_a_program_names_its_newest_run(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    ids = [
        store.create(path="p.qvr", text="", program=name, config=RunConfig(), base=".").run_id
        for name in ("wide", "wide_2", "wide", "narrow")
    ]
    assert store.open("wide").run_id == ids[2]
    assert [store.open(name).run_id for name in ("wide_2", "narrow")] == [ids[1], ids[3]]
    with pytest.raises(NoSuchRun, match="no run `wid`"):
        store.open("wid")


def test_a_program_names_its_newest_run_with_draws_where_draws_are_wanted(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    runs = [store.create(path="p.qvr", text="", program="wide", config=RunConfig(), base=".") for _ in range(3)]
    assert store.open("wide", drawn=True).run_id == runs[2].run_id
    store.open(runs[1].run_id).posterior.write_bytes(b"")
    assert store.open("wide", drawn=True).run_id == runs[1].run_id
    assert store.open("wide").run_id == store.open("last", drawn=True).run_id == runs[2].run_id
    assert store.open(runs[0].run_id, drawn=True).run_id == runs[0].run_id


def test_kill_while_writing_leaves_old_or_new(tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    write_json(file, {"n": 0, "fill": "x" * 200_000})
    code = (
        f"from pathlib import Path; from qvr_core.runs.record.atomic_files import write_json\n"
        f"n = 0\nwhile True:\n n += 1; write_json(Path({str(file)!r}), {{'n': n, 'fill': 'x' * 200_000}})"
    )
    for delay in (0.25, 0.31, 0.37):
        child = subprocess.Popen([sys.executable, "-c", code])
        time.sleep(delay)
        child.kill()
        child.wait()
        assert read_json(file)["n"] >= 0


def saved(folder: Path, step: int) -> Path:
    tensors = {"a": torch.arange(5.0) + step, "random.cpu": torch.get_rng_state()}
    return checkpoint.save(folder, checkpoint.Checkpoint(step, tensors, {"seconds": 1.5}))


def test_checkpoints_keep_the_newest_two(tmp_path: Path) -> None:
    for step in (10, 200, 3000):
        saved(tmp_path, step)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step-000000000200", "step-000000003000"]
    found, damaged = checkpoint.newest(tmp_path)
    assert found is not None and not damaged
    assert (found.step, found.state["seconds"], found.tensors["a"].tolist()) == (
        3000,
        1.5,
        [3000.0 + i for i in range(5)],
    )


@pytest.mark.parametrize("name", ["state.json", "tensors.safetensors"])
@pytest.mark.parametrize("how", ["truncated", "flipped", "removed"])
def test_damaged_checkpoint_is_passed_over_with_a_reason(name: str, how: str, tmp_path: Path) -> None:
    saved(tmp_path, 10)
    file = saved(tmp_path, 20) / name
    whole = file.read_bytes()
    match how:
        case "truncated":
            file.write_bytes(whole[: len(whole) // 2])
        case "flipped":
            file.write_bytes(whole[:40] + bytes([whole[40] ^ 4]) + whole[41:])
        case _:
            file.unlink()
    found, damaged = checkpoint.newest(tmp_path)
    assert found is not None and found.step == 10
    assert len(damaged) == 1 and "is damaged" in str(damaged[0])


def test_row_order_is_a_function_of_seed_and_step() -> None:
    order = RowOrder(10, 4, seed=1)
    forward = [order.rows_of(step).tolist() for step in range(6)]
    backward = [RowOrder(10, 4, seed=1).rows_of(step).tolist() for step in reversed(range(6))]
    assert forward == backward[::-1]
    assert len(set(forward[0] + forward[1])) == 8  # no row twice in an epoch
    assert forward != [RowOrder(10, 4, seed=2).rows_of(step).tolist() for step in range(6)]
    assert RowOrder(10, 4, seed=1, shuffle=False).rows_of(1).tolist() == [4, 5, 6, 7]
    assert RowOrder(3, 64, seed=1).rows_of(0).sort().values.tolist() == [0, 1, 2]


@pytest.mark.parametrize("rows", [1, 2, 5, 1000, 4097])
def test_large_tables_are_shuffled_without_holding_a_permutation(rows: int) -> None:
    found = permuted(np.arange(rows), rows, seed=3)
    assert sorted(found.tolist()) == list(range(rows))
    if rows >= 1000:
        assert found.tolist() != permuted(np.arange(rows), rows, seed=4).tolist()
        assert abs(np.corrcoef(np.arange(rows), found)[0, 1]) < 0.1
        assert abs(np.corrcoef(found[1:], found[:-1])[0, 1]) < 0.1


def test_an_epoch_of_a_large_table_has_no_row_twice() -> None:
    order = RowOrder(PERMUTED + 1, PERMUTED // 8, seed=1)
    seen = torch.cat([order.rows_of(step) for step in range(8)])
    assert len(seen.unique()) == len(seen)
    assert int(seen.max()) <= PERMUTED
    assert not torch.equal(order.rows_of(8), order.rows_of(0))  # the next epoch has another order


def test_unknown_keys_of_a_newer_worker_are_passed_over() -> None:
    event = parse_event('{"event": "message", "level": "info", "text": "x", "colour": "red"}')
    assert event == Message(level="info", text="x")
    with pytest.raises(ValueError, match="event"):
        parse_event('{"event": "surprise"}')


def test_the_last_run_of_a_program_is_reported_from_those_of_others(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    here, there = tmp_path / "schools.qvr", tmp_path / "other.qvr"

    def asked(path: str, program: str) -> str:
        made = store.create(path=path, text="", program=program, config=RunConfig(), base=str(tmp_path))
        return made.run_id

    first = asked(str(here), "schools")
    asked(str(here), "schools_pooled")
    asked(str(there), "schools")
    named = store.newest_of(here, "schools")
    assert named is not None
    assert named.run_id == first
    later = asked("schools.qvr", "schools")
    named = store.newest_of(here, "schools")
    assert named is not None
    assert named.run_id == later
    assert store.newest_of(here, "school") is None
