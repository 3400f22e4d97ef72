"""The worker process: `python -m qvr_core.runs.worker`.

Loads what any job wants, waits for its job on stdin, loads torch where this one wants it, and writes events to stdout
until the run has ended.  What anything else prints to stdout goes to stderr, which the client keeps as its log.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NoReturn

from qvr_core import garbage_collection
from qvr_core.arrays.engine_choice import TorchWanted
from qvr_core.runs.fit.stop import Stop
from qvr_core.runs.worker import engine_choice
from qvr_core.runs.worker.engine_choice import job_again
from qvr_core.runs.worker.pipes import claim_stdout, follow_parent, stdin_lines

if TYPE_CHECKING:
    from qvr_core.runs.record.protocol import Event

# Seconds that a worker whose client is gone has to write its checkpoint.
ORPHAN_GRACE = 2.0


def main() -> None:
    """Entry point.  Exit status 0 for a finished or cancelled run, 1 for a failed one, 2 for one that cannot be."""
    garbage_collection.while_loading()
    events = claim_stdout()
    stop = Stop()
    follow_parent()
    if _client_gone():
        return

    def send(event: Event) -> None:
        events.write(event.encoded().encode("utf-8", "surrogatepass"))
        events.flush()

    lines = stdin_lines()
    again = job_again()
    if again is None and not _asked():
        _load_ahead()
    line = again or next(lines, None)
    if line is None:
        return
    from qvr_core.runs.record.protocol import Job

    job = Job.model_validate_json(line)
    if job.parent is not None and sys.platform == "linux" and os.getppid() != job.parent:
        return  # the client died before the kernel was asked
    # Until here a signal ends the process at once: there is nothing to save.
    signal.signal(signal.SIGINT, stop.cancel)
    signal.signal(signal.SIGTERM, stop.cancel)
    threading.Thread(target=_listen, args=(lines, stop), daemon=True).start()

    try:
        if again is None:
            engine_choice.choose(job)
        else:
            engine_choice.keep_memory()
        from qvr_core.runs.worker.job import conduct

        garbage_collection.loaded()
        try:
            status = conduct(job, stop, send)
        except TorchWanted:
            engine_choice.again_with_torch(line, events.fileno())
    except ModuleNotFoundError as error:
        _refuse(error, send)
    sys.stderr.flush()
    # Everything is written: tearing torch down would only cost time.
    os._exit(status)


def _load_ahead() -> None:
    """What every job wants: the analyser and the sampler's machine code, neither of which decides for torch."""
    # what fails here is told by the job that wants it
    with contextlib.suppress(Exception):
        importlib.import_module("qvr_core.analysis")
        importlib.import_module("qvr_core.inference.machine.chain").compile_sampler()


def _asked() -> bool:
    """Whether the job is there already."""
    return bool(select.select([0], [], [], 0.0)[0]) if os.name == "posix" else True


def _refuse(missing: ModuleNotFoundError, send: Callable[[Event], None]) -> NoReturn:
    """Say which package this interpreter lacks."""
    from qvr_core.extras import lacking, remedy
    from qvr_core.runs.record.protocol import Failed

    package = (missing.name or "").partition(".")[0]
    send(Failed(code="missing-package", message=f"runs need {lacking(package)}", fixes=(remedy(package),)))
    os._exit(1)


def _client_gone() -> bool:
    """True where stdin is closed already: the client died before the kernel was asked to tell."""
    if not hasattr(select, "poll"):
        return False
    poll = select.poll()
    poll.register(0, select.POLLIN)
    return any(event & select.POLLHUP and not event & select.POLLIN for _, event in poll.poll(0))


def _listen(lines: Iterator[bytes], stop: Stop) -> None:
    """Read control lines until stdin closes; then the client is gone, and so is this process soon."""
    from qvr_core.runs.record.protocol import Control

    for line in lines:
        with contextlib.suppress(ValueError):
            if Control.model_validate_json(line).control == "cancel":
                stop.cancel()
            else:
                stop.checkpoint.set()
    stop.cancel()
    time.sleep(ORPHAN_GRACE)
    if hasattr(os, "killpg") and os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


if __name__ == "__main__":
    main()
