"""Who deals out units to a cluster and takes their answers, in whatever order they come.

Dask sends a unit whose worker was lost to another one, with the request it had: a request holds all that its answer
depends on, so the answer is the same.  What Dask cannot mend, that its scheduler is gone, is told here.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from qvr_core import __version__
from qvr_core.cluster import relay
from qvr_core.cluster.packing import Archive

if TYPE_CHECKING:
    from distributed import Client

TRIES = 2
"""How often a unit is tried again whose process has ended."""
LOOKS = 0.1
"""Seconds between two looks at whether it is enough."""
UNITS_A_SECOND = 200
"""That a scheduler and a command can deal out: each spends some 3.5 ms on one."""
PATIENCE = 20.0
"""Seconds without an answer after which it is looked whether the cluster has workers at all."""
END_WITHIN = 2.0
"""Seconds that the workers have to end a job."""


def seconds_each(least: float, at_a_time: int) -> float:
    """How long a unit should take where so many are done at a time: `least`, or as long as leaves time to deal."""
    return least * max(1.0, at_a_time / UNITS_A_SECOND)


class LostCluster(Exception):
    """The cluster cannot go on; the message says in words what is lost."""


class Dealer:
    """The units of one job on a cluster."""

    def __init__(self, client: Client, tell: Callable[[str], None] = lambda text: None) -> None:
        """`tell` is told in words what a user would like to know of the cluster."""
        self.client: Any = client  # its methods have no types
        self.job = uuid.uuid4().hex
        self.sent = 0
        self._tell = tell
        self._answers: queue.SimpleQueue[tuple[int, Any]] = queue.SimpleQueue()
        self._archives: dict[str, Any] = {}
        self._open: dict[int, Any] = {}
        self._heard, self._told = time.monotonic(), False

    def send(self, number: int, archive: Archive, request: bytes) -> None:
        """Have a unit done, whose answer will come with its number."""
        digest = archive.digest
        try:
            if digest not in self._archives:
                self._archives[digest] = self._submit(relay.same, archive.content, key=f"qvr-archive-{digest[:16]}")
            future = self._submit(
                relay.unit, self._archives[digest], digest, self.job, __version__, request,
                key=f"qvr-unit-{self.sent}", retries=TRIES,
            )  # fmt: skip
        except Exception as problem:
            raise self._lost() from problem
        self.sent += 1
        self._open[number] = future
        self._wait(number, future)

    def _wait(self, number: int, future: Any) -> None:
        """Hear of the answer to a unit."""

        def done(_: object) -> None:
            self._answers.put((number, future))

        future.add_done_callback(done)

    def _submit(self, function: Any, *given: Any, key: str, **how: Any) -> Any:
        return self.client.submit(function, *given, key=f"{key}-{self.job}", pure=False, **how)

    def threads(self) -> int:
        """How many units can run at a time, as far as is known now: more workers may come.  Raises `LostCluster`."""
        try:
            return max(1, sum(self.client.nthreads().values()))
        except Exception as problem:
            raise self._lost() from problem

    @property
    def open(self) -> int:
        """How many units have no answer yet."""
        return len(self._open)

    def answers(self) -> Iterator[tuple[int, bytes]]:
        """The answers to all units, those too that are sent meanwhile; none is open behind it, whatever ends it.
        Raises `LostCluster`."""
        try:
            while self._open:
                if (found := self.receive(LOOKS)) is not None:
                    yield found
        finally:
            self.end()()

    def receive(self, seconds: float) -> tuple[int, bytes] | None:
        """An answer with the number of its unit; None where none comes within so many seconds.  Raises
        `LostCluster`."""
        try:
            number, future = self._answers.get(timeout=seconds)
        except queue.Empty:
            self._look()
            return None
        self._heard, self._told = time.monotonic(), False
        if self._open.get(number) is not future:
            return None
        if future.status in ("error", "cancelled"):
            raise self._failed(future)
        if future.status != "finished":
            # its worker was lost with the answer, and another one makes it again
            self._wait(number, future)
            return None
        try:
            answer = future.result(timeout=PATIENCE)
        except TimeoutError:
            self._wait(number, future)
            return None
        except Exception as problem:
            raise self._lost() from problem
        del self._open[number]
        return number, answer

    def _look(self) -> None:
        """Tell once that there is nobody who works."""
        if self.client.status not in ("running", "connecting"):
            raise self._lost()
        if self._told or not self._open or time.monotonic() - self._heard < PATIENCE:
            return
        self._heard = time.monotonic()
        if not self.client.scheduler_info()["workers"]:
            self._told = True
            self._tell("the cluster has no workers: the run waits for one")

    def _failed(self, future: Any) -> LostCluster:
        """What has become of a unit, in words."""
        if future.status != "error":
            return self._lost()
        problem: Any = future.exception(timeout=PATIENCE)
        kind = type(problem).__name__
        if kind == "KilledWorker":
            return LostCluster("workers were lost again and again with the same unit: have they enough memory?")
        if isinstance(problem, relay.OtherVersion):
            return LostCluster(f"{problem}: install the same version everywhere")
        if isinstance(problem, ModuleNotFoundError):
            package = (problem.name or "").partition(".")[0]
            return LostCluster(f"a worker of the cluster does not have the package `{package}`")
        return LostCluster(f"a unit failed on its worker: {problem}" if kind == "Lost" else f"{kind}: {problem}")

    def _lost(self) -> LostCluster:
        scheduler: Any = self.client.scheduler
        address = getattr(scheduler, "address", "")
        return LostCluster(f"the scheduler {address} is gone, or cannot be reached any more")

    def end(self) -> Callable[[], None]:
        """Leave no task: all units are cancelled, and what works at them is killed.  What comes back waits until that
        is done, or for `END_WITHIN`."""
        held, self._open = [*self._open.values()], {}

        def leave() -> None:
            # the scheduler may be what is gone
            with contextlib.suppress(Exception):
                self.client.cancel([*held, *self._archives.values()], force=True)
                self.client.run(relay.end, self.job, on_error="ignore")

        ending = threading.Thread(target=leave, daemon=True)
        ending.start()
        return lambda: ending.join(END_WITHIN)
