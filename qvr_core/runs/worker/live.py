"""The process that draws from priors and posteriors while somebody types: `python -m qvr_core.runs.worker.live`.

Loads what draws want, without torch; then each line that comes in is a `Line`, and each that goes out a `Drawn`.  It
ends with its stdin.  It never computes on more than one core.

On Linux each question is answered by a fork, which is killed where the answer is not wanted any more: nothing that a
program does (a compile that takes long, memory, a crash) stays in the process that answers the next.  Elsewhere, where
forks are not safe, it answers itself, and whoever asked ends it where it does not hear.
"""

from __future__ import annotations

import base64
import contextlib
import gc
import importlib
import json
import os
import select
import signal
import sys
import threading
import time
import traceback
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from queue import SimpleQueue
from typing import IO, TYPE_CHECKING, Any

from qvr_core.runs.worker.pipes import claim_stdout, follow_parent, stdin_lines

if TYPE_CHECKING:
    from qvr_core.inference.mcmc.budgeted import Learned
    from qvr_core.runs.record.live import Asked, Drawn, Line

NICER = 5
"""Steps behind what the user waits for."""
ONE_CORE = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "POLARS_MAX_THREADS",
)
PREPARING = 15.0
"""Seconds until chains begin, or draws from a prior are there: reading data, compiling."""
GRACE = 1.0
"""Seconds behind the budget that a transition which has begun, and the summary, may take."""
FORKS = sys.platform == "linux"
SAMPLING, LEARNED = b'{"sampling"', b'{"learned"'
"""How lines begin that a fork says to this process alone."""
MODULES = ("qvr_core.runs.worker.live_prior", "qvr_core.runs.worker.live_posterior")
FIRST_TEXT = """\
object A : FinSet 2
program p : A -> A
    data x : A
    sample m <- Normal(0.0, 1.0)
    sample s <- HalfNormal(1.0)
    observe y : A <- Normal(m + x, s)
    return m
"""
"""Analysed before anything is asked: the grammar's tables are read then."""

Tell = Callable[["Drawn"], None]


def main() -> None:
    """Entry point."""
    answers = claim_stdout()
    follow_parent()
    with contextlib.suppress(AttributeError, OSError):
        os.nice(NICER)
    for name in ONE_CORE:
        os.environ[name] = "1"
    problem = _load()
    from qvr_core.runs.record.live import Drawn

    def send(line: bytes) -> None:
        answers.write(line)
        answers.flush()

    send(encoded(Drawn(number=0)))  # everything is loaded
    if problem is not None:
        for line in parsed(stdin_lines()):
            if line.asked is not None:
                send(encoded(Drawn(number=line.asked.number, problem=problem)))
    elif FORKS:
        Forking(send).serve()
    else:
        Alone(send).serve()


def _load() -> str | None:
    """Load what draws want; which package is missing, in a sentence."""
    from qvr_core.arrays.engine_choice import without_torch

    if "qvr_core.arrays.engine" not in sys.modules:
        without_torch()
    try:
        from qvr_core.analysis import analyse
        from qvr_core.arrays.engine import arrays

        for name in MODULES:
            importlib.import_module(name)
        importlib.import_module("qvr_core.inference.machine.chain").compile_sampler()
        analyse(FIRST_TEXT)
    except ModuleNotFoundError as error:
        from qvr_core.extras import lacking, remedy

        return f"draws need {lacking((error.name or '').partition('.')[0])}: {remedy()}"
    arrays.set_num_threads(1)
    return None


def encoded(drawn: Drawn) -> bytes:
    return drawn.model_dump_json(exclude_none=True).encode("utf-8", "surrogatepass") + b"\n"


def parsed(lines: Iterator[bytes]) -> Iterator[Line]:
    from qvr_core.runs.record.live import Line

    for line in lines:
        yield Line.model_validate_json(line)


# ---------------------------------------------------------------- an answer


def answer(
    asked: Asked, learned: Learned, tell: Tell, learn: Callable[[Learned], None], sampling: Callable[[], None]
) -> None:
    """Answer a question, whatever becomes of it: the last thing that is told is marked as such."""
    from qvr_core.arrays.engine_choice import TorchWanted
    from qvr_core.data.problems import DataProblem
    from qvr_core.runs.prepare.failures import Refused
    from qvr_core.runs.record.live import Drawn
    from qvr_core.runs.worker.live_posterior import posterior_draws
    from qvr_core.runs.worker.live_prior import prior_draws
    from qvr_core.runtime.values.errors import RuntimeProblem

    try:
        if asked.kind == "prior":
            tell(prior_draws(asked))
            return
        for drawn, known in posterior_draws(asked, learned, sampling):
            if drawn.last:
                learn(known)
            tell(drawn)
        return
    except (Refused, DataProblem, RuntimeProblem) as problem:
        why = str(problem)
    except (TorchWanted, ModuleNotFoundError) as problem:
        why = f"it has no machine code here: {problem}"
    except Exception as error:
        # one program must not end the process that serves them all
        traceback.print_exc(file=sys.stderr)
        why = f"the {asked.kind} could not be drawn from: {type(error).__name__}: {error}"
    tell(Drawn(number=asked.number, problem=why))


def as_json(learned: Learned) -> bytes:
    """One line, whose arrays are bytes."""
    latents = {name: [packed(one.positions), packed(one.variances)] for name, one in learned.latents.items()}
    return json.dumps({"learned": latents, "step": learned.step_size}).encode() + b"\n"


def from_json(line: bytes) -> Learned:
    """Undo `as_json`."""
    from qvr_core.inference.mcmc.budgeted import Latent, Learned

    told = json.loads(line)
    latents = {name: Latent(unpacked(one), unpacked(other)) for name, (one, other) in told["learned"].items()}
    return Learned(latents, told["step"])


def packed(values: Any) -> tuple[list[int], str]:
    """Shape and bytes of an array."""
    return list(values.shape), base64.b64encode(values.astype("<f8").tobytes()).decode()


def unpacked(told: tuple[list[int], str]) -> Any:
    import numpy as np

    return np.frombuffer(base64.b64decode(told[1]), dtype="<f8").reshape(told[0])


# ---------------------------------------------------------------- by forks


class Fork:
    """A process that answers one question; `read` is the end of its pipe."""

    def __init__(self, asked: Asked, pid: int, read: int) -> None:
        self.asked, self.pid, self.read = asked, pid, read
        self.until = time.monotonic() + PREPARING
        self.held = b""
        self.told: bytes | None = None
        """The last answer, which was not the last of all."""
        self.over = False


class Forking:
    """Answers by forks, one at a time; this process only waits, and keeps what chains have learned."""

    def __init__(self, send: Callable[[bytes], None]) -> None:
        self._send = send
        self._fork: Fork | None = None
        self._learned: tuple[tuple[str, str | None], bytes] | None = None
        """Of which program, and what."""
        self._waiting: deque[Asked] = deque()

    def serve(self) -> None:
        """Until stdin ends."""
        gc.collect()
        gc.freeze()
        held = b""
        while True:
            if self._fork is None and self._waiting:
                self._begin(self._waiting.popleft())
            fork = self._fork
            files = [0] if fork is None else [0, fork.read]
            seconds = None if fork is None else max(0.0, fork.until - time.monotonic())
            ready = select.select(files, [], [], seconds)[0]
            if 0 in ready:
                chunk = os.read(0, 1 << 16)
                if not chunk:
                    self._end()
                    return
                *lines, held = (held + chunk).split(b"\n")
                self._hear(list(parsed(iter(lines))))
            elif ready and fork is not None:
                self._follow(fork)
            elif fork is not None and time.monotonic() >= fork.until:
                self._end()
                self._late(fork)

    def _hear(self, lines: list[Line]) -> None:
        """Take new questions, and drop others, wherever they stand."""
        from qvr_core.runs.record.live import Drawn

        for line in lines:
            if line.asked is not None:
                self._waiting.append(line.asked)
            if line.drop is not None:
                if self._fork is not None and self._fork.asked.number == line.drop:
                    self._end()
                self._waiting = deque(one for one in self._waiting if one.number != line.drop)
                self._send(encoded(Drawn(number=line.drop, dropped=True)))

    def _begin(self, asked: Asked) -> None:
        read, write = os.pipe()
        whose = (asked.job.path, asked.job.program)
        learned = self._learned[1] if self._learned is not None and self._learned[0] == whose else None
        parent = os.getpid()
        with warnings.catch_warnings():
            # threads of libraries that wait for work: what is forked uses none of them
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
        if pid == 0:
            try:
                os.close(read)
                follow_parent()
                if os.getppid() == parent:
                    with os.fdopen(write, "wb") as pipe:
                        _in_fork(asked, learned, pipe)
            finally:
                os._exit(0)
        os.close(write)
        self._fork = Fork(asked, pid, read)

    def _follow(self, fork: Fork) -> None:
        """Hand on what the fork says."""
        chunk = os.read(fork.read, 1 << 20)
        *lines, fork.held = (fork.held + chunk).split(b"\n")
        for line in lines:
            if line.startswith(SAMPLING):
                fork.until = time.monotonic() + fork.asked.budget + GRACE
            elif line.startswith(LEARNED):
                self._learned = ((fork.asked.job.path, fork.asked.job.program), line)
            else:
                fork.told, fork.over = line, bool(json.loads(line)["last"])
                self._send(line + b"\n")
        if not chunk:
            self._end()
            if not fork.over:
                self._unfinished(fork, "the process that drew ended: is the memory full?")

    def _late(self, fork: Fork) -> None:
        """What was told last stands, where there is anything."""
        if fork.told is not None:
            self._send(json.dumps({**json.loads(fork.told), "last": True}).encode() + b"\n")
            return
        what = f"`{fork.asked.job.program}`" if fork.asked.job.program else "the program"
        self._unfinished(fork, f"{what} is not ready to be sampled within {PREPARING:g} s: a run has the time")

    def _unfinished(self, fork: Fork, why: str) -> None:
        from qvr_core.runs.record.live import Drawn

        self._send(encoded(Drawn(number=fork.asked.number, problem=why)))

    def _end(self) -> None:
        """Nothing is left of the fork."""
        fork, self._fork = self._fork, None
        if fork is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(fork.pid, signal.SIGKILL)
            os.close(fork.read)
            os.waitpid(fork.pid, 0)


def _in_fork(asked: Asked, learned: bytes | None, pipe: IO[bytes]) -> None:
    from qvr_core.inference.mcmc.budgeted import Learned

    def say(line: bytes) -> None:
        pipe.write(line)
        pipe.flush()

    answer(
        asked,
        Learned() if learned is None else from_json(learned),
        lambda drawn: say(encoded(drawn)),
        lambda known: say(as_json(known)),
        lambda: say(SAMPLING + b": true}\n"),
    )


# ---------------------------------------------------------------- without forks


class Dropped(BaseException):
    """Nobody wants the answer any more: no failure of what is at work."""


class Alone:
    """Answers in this process: what is dropped ends between two answers."""

    def __init__(self, send: Callable[[bytes], None]) -> None:
        self._send = send
        self._asked: SimpleQueue[Asked | None] = SimpleQueue()
        self._dropped: set[int] = set()
        self._learned: tuple[tuple[str, str | None], Learned] | None = None

    def serve(self) -> None:
        """Until stdin ends."""
        threading.Thread(target=self._hear, daemon=True).start()
        while (asked := self._asked.get()) is not None:
            self._answer(asked)

    def _hear(self) -> None:
        for line in parsed(stdin_lines()):
            if line.drop is not None:
                self._dropped.add(line.drop)
            if line.asked is not None:
                self._asked.put(line.asked)
        os._exit(0)

    def _answer(self, asked: Asked) -> None:
        from qvr_core.inference.mcmc.budgeted import Learned
        from qvr_core.runs.record.live import Drawn

        whose = (asked.job.path, asked.job.program)
        learned = self._learned[1] if self._learned is not None and self._learned[0] == whose else Learned()

        def go_on() -> None:
            if asked.number in self._dropped:
                raise Dropped

        def tell(drawn: Drawn) -> None:
            go_on()
            self._send(encoded(drawn))

        def learn(known: Learned) -> None:
            self._learned = (whose, known)

        try:
            go_on()
            answer(asked, learned, tell, learn, go_on)
        except Dropped:
            self._send(encoded(Drawn(number=asked.number, dropped=True)))
        self._dropped.discard(asked.number)


if __name__ == "__main__":
    main()
