"""What every test starts: processes that keep bytecode, or forks of one that has torch loaded."""

import os
import sys
from collections.abc import Iterator

import pytest

from tests.forks import as_ever, forking

# Compiling this package anew costs each process 0.2 s.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False


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
