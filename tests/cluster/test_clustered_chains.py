"""Chains on a cluster have the draws of a run on this machine, whatever is lost on the way."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from distributed import Client

from qvr_core import __version__
from qvr_core.cluster import relay
from qvr_core.cluster.packing import Archive, UnitFailed, answered, packed
from qvr_core.dsl import loads
from qvr_core.inference import MCMC, NUTSKernel
from qvr_core.inference.mcmc import clustered
from qvr_core.runs.fit import nuts
from qvr_core.runs.record.config import RunConfig
from qvr_core.runs.record.protocol import Cancelled, Event, Failed, Finished, Job, Message, Progress
from qvr_core.runs.record.protocol import Started as StartedEvent
from qvr_core.runs.record.store import RunDirectory, RunStore
from tests.cluster.processes import NO_NANNY, Started, killed, started, until
from tests.patience import HANG
from tests.runs.fit.killed_chains import conducted
from tests.runs.jobs import start

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
SHORT: dict[str, Any] = {
    "algorithm": "nuts", "data": "synthetic", "warmup": 60, "samples": 40, "chains": 3, "threads": 1,
    "checkpoint_steps": 20,
}  # fmt: skip


def made(folder: Path, **config: object) -> Job:
    asked = RunConfig.model_validate(SHORT | config)
    return RunStore(folder).create(path="m.qvr", text=SCHOOLS, program=None, config=asked, base=str(folder))


def posterior(job: Job) -> bytes:
    run = RunDirectory.of(job)
    run.check_posterior()
    return run.posterior.read_bytes()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The posterior of an unbroken run on this machine."""
    job = made(tmp_path_factory.mktemp("whole"))
    assert isinstance(conducted(job)[-1], Finished)
    return posterior(job)


@pytest.fixture
def mortal(tmp_path: Path) -> Iterator[Started]:
    """One of whose processes some are killed."""
    with started(tmp_path, 2, NO_NANNY) as found:
        yield found


def at_slice(monkeypatch: pytest.MonkeyPatch, number: int, act: Callable[[], object]) -> None:
    """Do something once, when so many slices have come back."""
    come, seen = nuts.Watched.slice, [0]

    def counted(self: Any, *given: Any) -> None:
        come(self, *given)
        seen[0] += 1
        if seen[0] == number:
            act()

    monkeypatch.setattr(nuts.Watched, "slice", counted)


def test_a_worker_that_is_killed_changes_no_draw(
    mortal: Started, tmp_path: Path, whole: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_slice(monkeypatch, 4, lambda: killed(mortal.workers[0]))
    job = made(tmp_path, cluster=mortal.address)
    events = conducted(job)
    assert isinstance(events[-1], Finished), events[-1]
    assert posterior(job) == whole
    last = [event for event in events if isinstance(event, Progress)][-1]
    assert (last.step, last.steps) == (100, 100)


@pytest.mark.parametrize("elsewhere", ["none", "local[1]"])
@pytest.mark.long
def test_a_run_whose_scheduler_is_lost_goes_on_elsewhere(
    elsewhere: str, mortal: Started, tmp_path: Path, whole: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lose() -> None:
        assert mortal.scheduler is not None
        killed(mortal.scheduler)

    with monkeypatch.context() as patched:
        at_slice(patched, 5, lose)
        job = made(tmp_path, cluster=mortal.address)
        ending = conducted(job)[-1]
    assert isinstance(ending, Failed) and ending.code == "lost-cluster"
    assert f"the scheduler {mortal.address} is gone" in ending.message
    assert ending.fixes[0].endswith(f"--resume {job.run_id} --cluster none")
    again = RunStore(tmp_path).resume(job.run_id)
    events = conducted(again.model_copy(update={"config": again.config.model_copy(update={"cluster": elsewhere})}))
    assert isinstance(events[-1], Finished)
    assert isinstance(events[0], StartedEvent) and events[0].resumed_from
    assert posterior(job) == whole


def test_a_cluster_that_does_not_answer_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qvr_core.cluster.schedulers.CONNECT", 0.2)
    ending = conducted(made(tmp_path, cluster="tcp://127.0.0.1:9"))[-1]
    assert isinstance(ending, Failed)
    assert ending.message == "no scheduler answers at tcp://127.0.0.1:9: start one by `dask scheduler`"


def test_what_is_no_machine_code_is_refused(tmp_path: Path, cluster: Started) -> None:
    ending = conducted(made(tmp_path, cluster=cluster.address, engine="plain"))[-1]
    assert isinstance(ending, Failed)
    assert ending.message == "a cluster runs chains as machine code, which these are not: as asked for"


def units_at_work() -> list[int]:
    """Processes that do units on this machine."""
    found: list[int] = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"qvr_core.runs.worker.cluster_units" in words and b"State:\tZ" not in (folder / "status").read_bytes():
            found.append(int(folder.name))
    return found


def has_file(process: int, folder: Path) -> bool:
    """Whether a process stands in a folder."""
    try:
        return Path(os.readlink(f"/proc/{process}/cwd")).is_relative_to(folder)
    except OSError:
        return False


def own_units(folder: Path) -> list[int]:
    """Those of this test's workers, which stand in its folder."""
    return [process for process in units_at_work() if has_file(process, folder)]


@pytest.mark.long
async def test_cancel_reaches_all_and_leaves_no_task(cluster: Started, tmp_path: Path) -> None:
    job = made(tmp_path, cluster=cluster.address, samples=10_000_000, checkpoint_steps=None)
    begun = asyncio.Event()
    events: list[Event] = []

    def seen(event: Event) -> None:
        events.append(event)
        if isinstance(event, Progress) and event.phase == "sampling":
            begun.set()

    worker = await start(job, seen)
    await asyncio.wait_for(begun.wait(), HANG)
    assert own_units(cluster.folder)
    # the client itself lets no run live longer than 3 s after that
    ending = await worker.cancel()
    assert isinstance(ending, Cancelled) and ending.checkpoint is not None
    assert not own_units(cluster.folder)
    with Client(cluster.address, set_as_default=False) as client:
        tasks: Any = client.run_on_scheduler(_tasks)
        until(lambda: not client.run_on_scheduler(_tasks))
        assert len(tasks) <= SHORT["chains"] + 1


def _tasks(dask_scheduler: Any) -> list[str]:
    return [str(key) for key in dask_scheduler.tasks if str(key).startswith("qvr-")]


@pytest.mark.long
def test_from_python_with_a_client_of_ones_own(cluster: Started, monkeypatch: pytest.MonkeyPatch) -> None:
    program = loads(SCHOOLS).morphism
    given = {"y": torch.tensor([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])}
    plain = MCMC(NUTSKernel(), 60, 40, 3, seed=5).run(program, observations=given)
    # a unit for each few transitions
    monkeypatch.setattr(clustered, "SECONDS", 0.0)
    with Client(cluster.address, set_as_default=False) as client:
        there = MCMC(NUTSKernel(), 60, 40, 3, seed=5, client=client).run(program, observations=given)
    assert there.engine == "compiled"
    for name, values in plain.samples.items():
        assert torch.equal(values, there.samples[name])


def test_another_kind_of_machine_is_told(cluster: Started, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clustered, "kind_of_machine", lambda: "qvr 1, another processor")
    events = conducted(made(tmp_path, cluster=cluster.address))
    told = [event.text for event in events if isinstance(event, Message) and event.level == "warning"]
    assert sum("is another kind of machine" in text for text in told) == 1


def test_what_has_waited_in_vain_is_reaped() -> None:
    """A worker outlives the commands that it serves, those that were killed as well."""
    with pytest.raises(ValueError, match="digest"):
        relay.unit(packed({"kind": "none"}), "another", "job", __version__, b"")
    archive = Archive(packed({"kind": "none"}))
    answer = relay.unit(archive.content, archive.digest, "job", __version__, b"")
    with pytest.raises(UnitFailed, match="no units of the kind `none`"):
        answered(answer)
    ((host,),) = relay._jobs.waiting.values()
    os.kill(host.process.pid, signal.SIGKILL)
    until(lambda: not relay._jobs.waiting)
    assert not Path(f"/proc/{host.process.pid}").exists()
    assert not relay._jobs.working
