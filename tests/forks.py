"""Processes of this package, forked from one that has torch loaded: a run's worker is there in a tenth of a second.

`python -m qvr_core.cli …` and `python -m qvr_core.runs.worker` spend most of a small test's time on imports.  Inside
`forking()`, `subprocess` and asyncio get them from a *server* (`fork_server.py`): a process of one thread that has
imported what they need, forks for each and lets the fork be what was asked for, with its arguments, folder,
environment, pipes and session of its own.  `python -m qvr_lsp.server` has a server without torch, which it never
loads.  The fork is a child of the tests, not of the server, so that waiting, signals and the death of the parent mean
what they mean elsewhere.  A shell has them as well: the `qvr` that is first in `shell_path()` asks the server, and
ends as its fork does.  What a fork cannot be is started as ever: another interpreter, an environment that an
interpreter reads when it starts, a test that asks for `process`.

Linux only; elsewhere everything is started as ever.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import inspect
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from qvr_core.runs.record.store import process_start

ROOT = Path(__file__).resolve().parents[1]
MODULES = ("qvr_core.cli", "qvr_core.runs.worker", "qvr_core.runs.worker.live")
LAUNCHERS = ("qvr_core.runs.client.launch", "torch.distributed.run")
"""What starts a team: their threads serve its store, and hold no lock that a process of the team wants."""
COMMANDS = "commands"
EDITORS = "qvr_lsp.server"
"""The language server, whose forks come from a process of their own."""
SCRIPTS = (
    *("tests.runs.fit.step_of_a_team", "tests.runs.fit.killed_chains", "tests.runs.fit.on_a_device"),
    "tests.script",
)
READ_AT_START = ("PYTHON", "LD_", "LC_", "LANG", "OMP_", "MKL_", "OPENBLAS_", "NUMBA_", "TORCH", "MPL")
"""How the names begin of what an interpreter, or a library as it is imported, reads from the environment."""
GIVEN_ANEW = ("PYTHONUNBUFFERED", "PYTHONSAFEPATH", "OMP_NUM_THREADS", "TORCHINDUCTOR_CACHE_DIR")
"""But for these, which a fork heeds: torch sets its cache in the process of the tests, where it has compiled once."""
READ_LATER = ("TORCHELASTIC_", "TORCH_NCCL_")
"""And these, which nothing reads before it forms a team."""
ONE_CORE = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
"""What torch and numpy read before they start threads."""
ONE_THREAD = {**ONE_CORE, "_RJEM_MALLOC_CONF": "background_thread:false"}
"""OpenBLAS and polars' allocator start threads when they are loaded, and a process with threads should not fork."""
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


class ForkServer:
    """The server, as the tests see it; it ends with them."""

    def __init__(self, kind: str) -> None:
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
                [sys.executable, "-m", "tests.fork_server", kind, *map(str, ends)],
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
    return set().union(*(server.living() for server in _servers.values()))


def shell_path() -> str:
    """PATH for a shell whose `qvr` is that of this environment, and a fork where it can be one."""
    own = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return f"{_running_server(COMMANDS).commands}:{own}" if _forking and not _paused else own


def _running_server(kind: str) -> ForkServer:
    if kind not in _servers:
        with as_ever():
            _servers[kind] = ForkServer(kind)
    return _servers[kind]


@contextlib.contextmanager
def forking() -> Iterator[None]:
    """Have what is started be a fork, where it can; a server starts with the first of its kind."""
    global _forking  # noqa: PLW0603
    if sys.platform != "linux":
        yield
        return
    started()
    started_as_ever = subprocess.Popen._execute_child  # pyright: ignore

    def execute_child(popen: Any, *given: Any) -> None:
        asked = dict(zip(ARGUMENTS, given, strict=True))
        command = [asked["args"]] if isinstance(asked["args"], str) else [os.fspath(each) for each in asked["args"]]
        if not can_be_forked(command, asked):
            started_as_ever(popen, *given)
            return
        if _fork_here is not None:
            popen.pid = _fork_here(command, asked)
        else:
            kind = EDITORS if command[2] == EDITORS else COMMANDS
            popen.pid = _running_server(kind).fork(command, asked)
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
        while _servers:
            _servers.popitem()[1].close()


def started() -> None:
    """A process has started: what it was given is what a fork of it has read."""
    global _at_start  # noqa: PLW0603
    _at_start = read_at_start(os.environ)


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
    if _paused or program is None or program[0] not in (*MODULES, *LAUNCHERS, *SCRIPTS, EDITORS):
        return False
    if EDITORS in (program[0], _module) and _fork_here is not None:
        return False  # what a language server starts, and one that a command starts
    if _fork_here is not None and len(os.listdir("/proc/self/task")) > 1 and _module not in LAUNCHERS:
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
_servers: dict[str, ForkServer] = {}
_forking = False
_paused = False
_module = ""
"""What this process is, where it is a fork."""
_fork_here: Callable[[list[str], dict[str, Any]], int] | None = None
"""How a fork has forks of its own."""


def is_fork(module: str, fork_here: Callable[[list[str], dict[str, Any]], int]) -> None:
    """This process is a fork, and has become a module."""
    global _module, _fork_here
    _module, _fork_here = module, fork_here
