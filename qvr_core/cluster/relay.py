"""What Dask's workers call: it hands a unit to a process of our own beside the worker, and brings back the answer.

A worker of Dask may serve other people and other jobs, and its threads cannot be interrupted.  So a job has processes
of its own there, each with the engine that suits it (torch or not), one for each unit that runs at a time: ending a job
is ending its processes, and one that crashes takes nothing with it.  They wait a while for the next unit, then end.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import subprocess
import sys
import threading
from dataclasses import dataclass, field

from qvr_core import __version__
from qvr_core.cluster.packing import read_frame, write_frame

MODULE = "qvr_core.runs.worker.cluster_units"
"""What such a process runs; named, not imported: it stands far above."""
LOG_BYTES = 4_000


class Lost(RuntimeError):
    """A process ended in the midst of a unit.  Dask tries the unit again, here or elsewhere."""


class OtherVersion(RuntimeError):
    """A worker has another version of qvr than the command."""


class Ended(RuntimeError):
    """The job of a unit is over."""


@dataclass(eq=False)
class Host:
    """A process for the units of one archive."""

    process: subprocess.Popen[bytes]
    log: bytearray = field(default_factory=bytearray)

    @classmethod
    def start(cls, content: bytes) -> Host:
        """One that has the archive."""
        environment = {name: value for name, value in os.environ.items() if name not in ("QVR_ARRAYS", "QVR_JOB")}
        process = subprocess.Popen(
            [sys.executable, "-m", MODULE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**environment, "PYTHONSAFEPATH": "1", "OMP_NUM_THREADS": "1"},
        )
        made = cls(process)
        threading.Thread(target=made._follow, daemon=True).start()
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            write_frame(process.stdin, content)
        return made

    def _follow(self) -> None:
        assert self.process.stderr is not None
        while chunk := os.read(self.process.stderr.fileno(), 1 << 14):
            self.log += chunk
            del self.log[:-LOG_BYTES]
        # it has ended: whoever waits too long ends by itself, and nobody else would wait for it
        self.process.wait()
        _jobs.forget(self)

    def ask(self, request: bytes) -> bytes | None:
        """The answer; None where the process has ended."""
        assert self.process.stdin is not None and self.process.stdout is not None
        try:
            write_frame(self.process.stdin, request)
            return read_frame(self.process.stdout)
        except (BrokenPipeError, ValueError):
            return None

    def end(self) -> None:
        """Kill it, whatever it does."""
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        self.process.wait()


@dataclass
class _Jobs:
    """The processes of this worker: those at work by job, and those that wait by job and archive."""

    working: dict[str, set[Host]] = field(default_factory=dict[str, set[Host]])
    waiting: dict[tuple[str, str], list[Host]] = field(default_factory=dict[tuple[str, str], list[Host]])
    ended: set[str] = field(default_factory=set[str])
    lock: threading.Lock = field(default_factory=threading.Lock)

    def forget(self, host: Host) -> None:
        """One that waits no more."""
        with self.lock:
            for key, hosts in [*self.waiting.items()]:
                if host in hosts:
                    hosts.remove(host)
                if not hosts:
                    del self.waiting[key]


_jobs = _Jobs()


def same(content: bytes) -> bytes:
    """An archive as a task: Dask sends it from worker to worker, once to each, and makes it again where it is lost."""
    return content


def unit(archive: bytes, digest: str, job: str, version: str, request: bytes) -> bytes:
    """The answer to one request of a job."""
    if version != __version__:
        raise OtherVersion(f"a worker has qvr {__version__} where {version} is asked for")
    if hashlib.sha256(archive).hexdigest() != digest:
        raise ValueError("what a worker was sent is not what was sent to it: its digest is another")
    host = _taken(job, digest)
    if host is not None and (answer := _answer_of(host, job, digest, request)) is not None:
        return answer  # else it had waited long enough and ended
    host = Host.start(archive)
    answer = _answer_of(host, job, digest, request)
    if answer is None:
        if job in _jobs.ended:
            raise Ended("the job is over")
        status = host.process.wait()
        tail = bytes(host.log).decode("utf-8", "replace").strip().splitlines()[-3:]
        raise Lost(f"the process of a unit ended with status {status}: {' | '.join(tail)}")
    return answer


def _taken(job: str, digest: str) -> Host | None:
    with _jobs.lock:
        if job in _jobs.ended:
            raise Ended("the job is over")
        waiting = _jobs.waiting.get((job, digest))
        return waiting.pop() if waiting else None


def _answer_of(host: Host, job: str, digest: str, request: bytes) -> bytes | None:
    with _jobs.lock:
        over = job in _jobs.ended
        _jobs.working.setdefault(job, set()).add(host)
    if over:
        host.end()
    answer = host.ask(request)
    with _jobs.lock:
        _jobs.working[job].discard(host)
        if not _jobs.working[job]:
            del _jobs.working[job]
        if answer is not None and job not in _jobs.ended:
            _jobs.waiting.setdefault((job, digest), []).append(host)
            return answer
    host.end()
    return answer


def end(job: str) -> None:
    """Kill all that a job has here, at once; units of it that come later are refused."""
    with _jobs.lock:
        _jobs.ended.add(job)
        hosts = list(_jobs.working.get(job, ()))
        for key in [key for key in _jobs.waiting if key[0] == job]:
            hosts += _jobs.waiting.pop(key)
    for host in hosts:
        host.end()
