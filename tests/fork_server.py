"""The processes that tests fork (`forks.py`): they have loaded what commands and workers load, or what the language
server loads, and have one thread."""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import sys
import threading
import time
import traceback
import weakref
from collections.abc import Iterator
from io import TextIOWrapper
from pathlib import Path
from typing import Any, NoReturn

from tests import compiled_code
from tests.forks import COMMANDS, EDITORS, ENTRY, can_be_forked, described, forking, is_fork, started

PRELOADED = (
    *("torch._dynamo", "torch.distributed.run", "arviz_stats.base.array"),
    *("safetensors.torch", "xarray", "h5py", "pydantic"),
    *("qvr_core.dsl", "qvr_core.inference.svi", "qvr_core.inference.mcmc.chains", "qvr_core.inference.compiled_steps"),
    *(
        "qvr_core.runs.fit.distributed_loss",
        "qvr_core.runs.evaluation.checkpoint",
        "qvr_core.runs.evaluation.posterior_table",
    ),
    *("polars", "h5netcdf", "h5py._hl.dims", "encodings.utf_8_sig"),
    *("qvr_core.runs.worker.engine_choice", "qvr_core.runs.worker.job", "qvr_core.runs.worker.text_generation"),
    *("qvr_core.runs.fit.nuts", "qvr_core.runs.fit.step_engine", "qvr_core.runs.fit.svi", "qvr_core.runtime.loops.run"),
    *("qvr_core.cli.run", "qvr_core.cli.output.run_display", "qvr_core.cli.check", "qvr_core.runs.worker.emitter"),
    *("qvr_core.cli.plot", "qvr_core.cli.sample", "qvr_core.cli.report"),
    *("arviz_plots", "matplotlib.backends.backend_agg"),
)
IDLE = {"polars-ooc-clea"}
"""A thread of polars, as the kernel cuts its name: it waits for files to delete, holds no lock; no fork misses it."""


def load_commands() -> None:
    """What runs import, and what each does before it knows its program: the grammar, the sampler's machine code."""
    compiled_code.keep_all()
    for name in PRELOADED:
        importlib.import_module(name)
    importlib.import_module("qvr_core.inference.machine.chain").compile_sampler()
    importlib.import_module("qvr_core.analysis").analyse("object A : FinSet 2\n")


def load_editors() -> None:
    """All that a session comes to import; what it does once before its first file is left to each."""
    gc.disable()  # as it does while it starts
    importlib.import_module("qvr_lsp.features")
    loading = importlib.import_module("qvr_lsp.loading")
    loading.load_all()
    loading.load_first()
    loading.load_first.cache_clear()


LOADING = {COMMANDS: load_commands, EDITORS: load_editors}


def serve(kind: str, descriptor: int, door: int) -> None:
    """Fork for each message and for each caller, until the tests are over."""
    started()
    LOADING[kind]()
    threads = [(task / "comm").read_text().strip() for task in Path("/proc/self/task").iterdir()]
    assert len([name for name in threads if name not in IDLE]) == 1, f"{threads}: what was imported has started some"
    # What torch takes apart as an interpreter ends, 0.05 s a fork, is this process's: a fork ends what it began itself.
    for end in list(weakref.finalize._registry):  # pyright: ignore
        end.atexit = False
    gc.collect()
    gc.freeze()
    messages, callers = socket.socket(fileno=descriptor), socket.socket(fileno=door)
    while True:
        ready, *_ = select.select([messages, callers], [], [])
        while _reaped():
            pass
        if callers in ready:
            called(callers)
        if messages in ready and not forked(messages):
            return


def _reaped() -> bool:
    """Whether one of those who wait for a shell's command has ended."""
    with contextlib.suppress(ChildProcessError):
        return os.waitpid(-1, os.WNOHANG)[0] != 0
    return False


def forked(messages: socket.socket) -> bool:
    """A fork for the next message, which becomes a child of the tests; False where they are over."""
    message, files, *_ = socket.recv_fds(messages, 2**20, 3)
    if not message:
        return False
    reading, writing = os.pipe()
    between = os.fork()
    if between == 0:
        if os.fork() == 0:
            os.close(writing)
            # Until the server has seen the end of what forked this, which has given it to the tests.
            os.read(reading, 1)
            os.close(reading)
            wanted = json.loads(message)
            if wanted["session"]:
                os.setsid()
            messages.send(str(os.getpid()).encode())
            become(wanted, files)
        os._exit(0)
    os.waitpid(between, 0)
    for file in (reading, writing, *files):
        os.close(file)
    return True


def called(callers: socket.socket) -> None:
    """A fork for a command of a shell, and one that waits for its end and tells it; both end with who has called."""
    caller, _ = callers.accept()
    with caller:
        message, files, *_ = socket.recv_fds(caller, 2**20, 3)
        wanted = json.loads(message or "{}")
        command = [sys.executable, *ENTRY, *wanted.get("arguments", ())]
        if wanted and can_be_forked(command, wanted) and os.fork() == 0:
            child = os.fork()
            if child == 0:
                become({"module": ENTRY[1], "environment": wanted["env"], "session": False, **wanted}, files)
            ended = os.pidfd_open(child)
            ready, *_ = select.select([ended, caller], [], [])
            if ended not in ready:
                os.kill(child, signal.SIGKILL)
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            with contextlib.suppress(OSError):
                caller.send(str(status if status >= 0 else 128 - status).encode())
            os._exit(0)
        for file in files:
            os.close(file)


def fork_here(command: list[str], asked: dict[str, Any]) -> int:
    """A fork of a fork: the worker of a command that has one thread, and has loaded no more than its worker will."""
    wanted, files = described(command, asked)
    pid = os.fork()
    if pid == 0:
        if wanted["session"]:
            os.setsid()
        become(wanted, files)
    # As after `exec`, which is waited for, it has a session of its own by now.
    while wanted["session"] and os.getsid(pid) != pid:
        time.sleep(0.001)
    return pid


def become(wanted: dict[str, Any], files: list[int]) -> NoReturn:
    """Be `python -m MODULE ARGUMENTS`."""
    status = 1
    try:
        # Behind what is open here, so that none is overwritten before it is copied.
        copies = [fcntl.fcntl(file, fcntl.F_DUPFD, 3) for file in files]
        for number, file in enumerate(copies):
            os.dup2(file, number)
        os.closerange(3, 1 + max(map(int, os.listdir("/proc/self/fd"))))
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
        os.chdir(wanted["cwd"])
        os.environ.clear()
        os.environ.update(wanted["environment"])
        if not os.environ.get("PYTHONSAFEPATH"):
            sys.path.insert(0, wanted["cwd"])
        sys.argv = [wanted["module"], *wanted["arguments"]]
        sys.stdin, sys.stdout, sys.stderr = streams()
        sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr
        if (threads := os.environ.get("OMP_NUM_THREADS")) and "torch" in sys.modules:
            sys.modules["torch"].set_num_threads(int(threads))
        is_fork(wanted["module"], fork_here)
        with forking():
            status = run(wanted["module"])
        threading._shutdown()  # pyright: ignore
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        os.write(2, traceback.format_exc().encode())
    finally:
        os._exit(status)


def streams() -> Iterator[TextIOWrapper]:
    """stdin, stdout and stderr, as an interpreter opens them when it starts."""
    unbuffered = bool(os.environ.get("PYTHONUNBUFFERED"))
    for number, mode in enumerate(("rb", "wb", "wb")):
        raw = os.fdopen(number, mode, closefd=False)
        yield TextIOWrapper(
            raw,
            errors="backslashreplace" if number == 2 else None,
            line_buffering=number == 2 or os.isatty(number),
            write_through=unbuffered,
        )


def run(module: str) -> int:
    """Run a module as the main one; its exit status."""
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return (end.code or 0) & 0xFF
        print(end.code, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        traceback.print_exc()
        sys.stderr.flush()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


if __name__ == "__main__":
    serve(sys.argv[1], *map(int, sys.argv[2:]))
