"""Processes of this package, forked from one that has torch loaded: a run's worker is there in a tenth of a second.

`python -m qvr_core.cli …` and `python -m qvr_core.runs.worker` spend most of a small test's time on imports.  Inside
`forking()`, `subprocess` and asyncio get them from a *server*: a process of one thread that has imported what they
need, forks for each and lets the fork be what was asked for, with its arguments, folder, environment, pipes and session
of its own.  The fork is a child of the tests, not of the server, so that waiting, signals and the death of the parent
mean what they mean elsewhere.  What a fork cannot be is started as ever: another interpreter, an environment that an
interpreter reads when it starts, a test that asks for `process`.

Linux only; elsewhere everything is started as ever.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import fcntl
import gc
import importlib
import importlib.util
import inspect
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Iterator, Mapping
from io import TextIOWrapper
from pathlib import Path
from typing import Any, NoReturn

from qvr_core.runs.record.store import process_start

ROOT = Path(__file__).resolve().parents[1]
MODULES = ("qvr_core.cli", "qvr_core.runs.worker", "qvr_core.runs.worker.prior")
LAUNCHERS = ("qvr_core.runs.client.launch", "torch.distributed.run")
"""What starts a team: their threads serve its store, and hold no lock that a process of the team wants."""
SCRIPTS = ("tests.runs.fit.step_of_a_team", "tests.runs.fit.killed_chains")
PRELOADED = (
    *("torch._dynamo", "torch.distributed.run", "arviz_stats.base.array"),
    *("safetensors.torch", "xarray", "h5py", "pydantic"),
    *("qvr_core.dsl", "qvr_core.inference.svi", "qvr_core.inference.mcmc.chains", "qvr_core.inference.compiled_steps"),
    *("qvr_core.runs.fit.distributed_loss", "qvr_core.runs.figures.checkpoint", "qvr_core.runs.figures.posterior"),
    *("qvr_core.cli.run", "qvr_core.cli.check", "qvr_core.runs.worker.emitter"),
)
"""Not polars, which starts threads, and so nothing that imports it."""
READ_AT_START = ("PYTHON", "LD_", "LC_", "LANG", "OMP_", "MKL_", "OPENBLAS_", "NUMBA_", "TORCH", "MPL")
"""How the names begin of what an interpreter, or a library as it is imported, reads from the environment."""
GIVEN_ANEW = ("PYTHONUNBUFFERED", "PYTHONSAFEPATH", "OMP_NUM_THREADS", "TORCHINDUCTOR_CACHE_DIR")
"""But for these, which a fork heeds: torch sets its cache in the process of the tests, where it has compiled once."""
READ_LATER = ("TORCHELASTIC_", "TORCH_NCCL_")
"""And these, which nothing reads before it forms a team."""
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1"}
"""OpenBLAS starts its threads when it is loaded, and a process with threads should not fork."""
PR_SET_CHILD_SUBREAPER = 36
ARGUMENTS = tuple(inspect.signature(subprocess.Popen._execute_child).parameters)[1:]  # pyright: ignore


ENTRY = ("-m", "qvr_core.cli")
COMMAND = """\
import json, os, socket, sys
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as door:
    door.connect({door!r})
    asked = dict(arguments=sys.argv[1:], cwd=os.getcwd(), env=dict(os.environ))
    socket.send_fds(door, [json.dumps(asked).encode()], [0, 1, 2])
    answer = door.recv(64)
if not answer:
    os.execv({ever[0]!r}, [*{ever!r}, *sys.argv[1:]])
sys.exit(int(answer))
"""
"""`qvr` as a shell finds it: the server is asked for a fork, and what cannot be one is started as ever."""

# ---------------------------------------------------------------- in the process of the tests


class ForkServer:
    """The server, as the tests see it; it ends with them."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._turn = threading.Lock()
        self._started: list[tuple[int, str | None]] = []
        self._folder = tempfile.TemporaryDirectory(prefix="qvr-forks-")
        self.commands = self._folder.name
        """A folder whose `qvr` is a fork, for shells."""
        door = str(Path(self.commands) / "door")
        with theirs, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as callers:
            callers.bind(door)
            callers.listen()
            command = Path(self.commands) / "qvr"
            command.write_text(f"#!{sys.executable} -IS\n{COMMAND.format(door=door, ever=[sys.executable, *ENTRY])}")
            command.chmod(0o700)
            ends = (theirs.fileno(), callers.fileno())
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.fork_server", *map(str, ends)],
                cwd=ROOT,
                env={**os.environ, **ONE_THREAD},
                stdin=subprocess.DEVNULL,
                pass_fds=ends,
                start_new_session=True,
            )

    def fork(self, command: list[str], asked: dict[str, Any]) -> int:
        """The pid of a child of this process that is `command`."""
        wanted, files = described(command, asked)
        # A fork whose own parent has ended is given to its nearest ancestor that takes such: for now, this process.
        with self._turn, adopting():
            socket.send_fds(self._socket, [json.dumps(wanted).encode()], files)
            answer = self._socket.recv(64)
        if not answer:
            raise OSError("the fork server has ended")
        pid = int(answer)
        self._started.append((pid, process_start(pid)))
        return pid

    def living(self) -> set[int]:
        """Pids of forks that have not ended."""
        self._started = [(pid, start) for pid, start in self._started if start and process_start(pid) == start]
        return {pid for pid, _ in self._started}

    def close(self) -> None:
        """End the server; forks that live go on."""
        self._socket.close()
        self._process.wait()
        self._folder.cleanup()


def described(command: list[str], asked: dict[str, Any]) -> tuple[dict[str, Any], list[int]]:
    """What a fork has to know, and its first three files."""
    environment = os.environ if asked["env"] is None else asked["env"]
    module, *arguments = module_of(command) or []
    wanted = {
        "module": module,
        "arguments": arguments,
        "cwd": os.path.abspath(asked["cwd"] or os.getcwd()),
        "environment": {**environment, **({"PYTHONUNBUFFERED": "1"} if command[1] == "-u" else {})},
        "session": asked["start_new_session"],
    }
    ends = (asked["p2cread"], asked["c2pwrite"], asked["errwrite"])
    return wanted, [end if end != -1 else number for number, end in enumerate(ends)]


@contextlib.contextmanager
def adopting() -> Iterator[None]:
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    if prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")
    try:
        yield
    finally:
        prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def living() -> set[int]:
    """Pids of forks that have not ended."""
    return _server.living() if _server is not None else set()


def shell_path() -> str:
    """PATH for a shell whose `qvr` is that of this environment, and a fork where it can be one."""
    own = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return f"{_started().commands}:{own}" if _forking and not _paused else own


def _started() -> ForkServer:
    global _server  # noqa: PLW0603
    if _server is None:
        with as_ever():
            _server = ForkServer()
    return _server


@contextlib.contextmanager
def forking() -> Iterator[None]:
    """Have what is started be a fork, where it can; the server starts with the first."""
    global _server, _at_start, _forking  # noqa: PLW0603
    if sys.platform != "linux":
        yield
        return
    _at_start = read_at_start(os.environ)
    started_as_ever = subprocess.Popen._execute_child  # pyright: ignore

    def execute_child(popen: Any, *given: Any) -> None:
        asked = dict(zip(ARGUMENTS, given, strict=True))
        command = [asked["args"]] if isinstance(asked["args"], str) else [os.fspath(each) for each in asked["args"]]
        if not can_be_forked(command, asked):
            started_as_ever(popen, *given)
            return
        if _is_fork:
            popen.pid = fork_here(command, asked)
        else:
            popen.pid = _started().fork(command, asked)
        popen._child_created = True
        ends = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
        popen._close_pipe_fds(*(asked[end] for end in ends))

    subprocess.Popen._execute_child = execute_child  # pyright: ignore
    _forking = True
    try:
        yield
    finally:
        _forking = False
        subprocess.Popen._execute_child = started_as_ever  # pyright: ignore
        if _server is not None:
            _server.close()
            _server = None


@contextlib.contextmanager
def as_ever() -> Iterator[None]:
    """No forks meanwhile."""
    global _paused  # noqa: PLW0603
    before, _paused = _paused, True
    try:
        yield
    finally:
        _paused = before


def can_be_forked(command: list[str], asked: dict[str, Any]) -> bool:
    """Whether a fork can be this process."""
    program = module_of(command)
    if _paused or program is None or program[0] not in (*MODULES, *LAUNCHERS, *SCRIPTS):
        return False
    if _is_fork and len(os.listdir("/proc/self/task")) > 1 and _module not in LAUNCHERS:
        return False
    if program[1:2] in (["play"], ["lsp"]) or importlib.util.find_spec("torch") is None:
        return False  # a server, which torch never enters; an environment for the front end alone
    plain = not any(asked.get(name) for name in ("shell", "preexec_fn", "pass_fds"))
    environment = os.environ if asked["env"] is None else asked["env"]
    return plain and read_at_start(environment) == _at_start


def module_of(command: list[str]) -> list[str] | None:
    """The module that this interpreter is to run, and its arguments; `-u` is what launchers say."""
    started = [command[0], *command[1 + (command[1:2] == ["-u"]) :]]
    return started[2:] if started[:2] == [sys.executable, "-m"] and len(started) > 2 else None


def read_at_start(environment: Mapping[str, str]) -> dict[str, str]:
    """What of an environment is read before there is anything to fork."""
    return {
        name: value
        for name, value in environment.items()
        if name.startswith(READ_AT_START)
        and not name.startswith(READ_LATER)
        and name not in (*GIVEN_ANEW, *ONE_THREAD)
        and (name, value) != ("PYTHONPATH", str(ROOT))
    }


_at_start: dict[str, str] = {}
_server: ForkServer | None = None
_forking = False
_paused = False
_is_fork = False
_module = ""
"""What this fork is."""


# ---------------------------------------------------------------- in the server


def serve(descriptor: int, door: int) -> None:
    """Fork for each message and for each caller, until the tests are over."""
    global _at_start  # noqa: PLW0603
    _at_start = read_at_start(os.environ)
    for name in PRELOADED:
        importlib.import_module(name)
    threads = os.listdir("/proc/self/task")
    assert len(threads) == 1, f"{len(threads)} threads: what was imported has started some"
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
    global _is_fork, _module
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
        if threads := os.environ.get("OMP_NUM_THREADS"):
            sys.modules["torch"].set_num_threads(int(threads))
        _is_fork, _module = True, wanted["module"]
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
    serve(*map(int, sys.argv[1:]))
