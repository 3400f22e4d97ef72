"""What every test starts: processes that keep bytecode, or forks of one that has torch loaded."""

import gc
import os
import sys
from collections import defaultdict
from collections.abc import Iterator
from typing import cast
from zlib import crc32

import pytest
from hypothesis import settings

from tests import compiled_code
from tests.forks import ONE_CORE, as_ever, forking

LONG = (
    *("tests/cluster/", "tests/test_notebook.py", "tests/runs/", "tests/lsp/", "tests/cli/", "tests/docs/"),
    "tests/examples/",
)
# Two workers have two cores: threads that wait for others spin, and take the core of the other worker, so that a fit
# of a network takes twice the processor time.  Before numpy and torch are imported, here and in all that tests start.
os.environ.update(ONE_CORE)
# Compiling this package anew costs each process 0.2 s.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# A sweep at every 700 new objects, over the trees of every text analysed, took a third of the time of such tests.
gc.set_threshold(100_000, 50, 100)
compiled_code.keep_all()
# A test that takes long on a busy machine is not wrong.
settings.register_profile("any machine", deadline=None)
settings.load_profile("any machine")


def pytest_configure(config: pytest.Config) -> None:
    """Before any worker starts."""
    if not hasattr(config, "workerinput"):
        compiled_code.make_room()


@pytest.hookimpl(tryfirst=True)  # before `-m` selects
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Rooms with tests of seconds come first: what is left to share when a worker runs out is short."""
    items.sort(key=lambda item: not item.nodeid.startswith(LONG))
    _sample(items)


def _sample(items: list[pytest.Item]) -> None:
    """Of a test marked `sampled(n)` an n-th of the cases stays, one at least; the others are `slow`.

    By their names: a case that is added moves no other one.  What `make test` leaves out anyway stays where it is.
    """
    cases = defaultdict[str, list[pytest.Item]](list)
    for item in items:
        marks = {mark.name for mark in item.iter_markers()}
        if "sampled" in marks and marks.isdisjoint(("statistical", "long", "slow")):
            cases[item.nodeid.partition("[")[0]].append(item)
    for every in cases.values():
        [share] = cast(pytest.Mark, every[0].get_closest_marker("sampled")).args
        kept = min(crc32(item.nodeid.encode()) % share for item in every)
        for item in every:
            if crc32(item.nodeid.encode()) % share != kept:
                item.add_marker(pytest.mark.slow)


def pytest_collection_finish() -> None:
    """What has been imported by now stays: no sweep has to look at it again."""
    gc.freeze()


@pytest.fixture(autouse=True, scope="session")
def forks() -> Iterator[None]:
    with forking():
        yield


@pytest.fixture(autouse=True)
def processes(request: pytest.FixtureRequest) -> Iterator[None]:
    """What a test marked `process` starts is started as users start it."""
    if request.node.get_closest_marker("process") is None:
        yield
    else:
        with as_ever():
            yield


@pytest.fixture(autouse=True)
def torch_as_before() -> Iterator[None]:
    """A run sets the precision and the threads of its process, which may be that of the tests."""
    threads = torch.get_num_threads() if (torch := sys.modules.get("torch")) is not None else None
    yield
    if (torch := sys.modules.get("torch")) is not None:
        torch.set_default_dtype(torch.float32)
        if threads is not None:
            torch.set_num_threads(threads)
