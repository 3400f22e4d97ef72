"""Which engine a process computes on: torch where it is there, unless the process says that it will do without."""

from __future__ import annotations

import importlib.util
import os
import sys

VARIABLE = "QVR_ARRAYS"
"""Of the environment, so that processes that this one starts compute on the same engine."""


class TorchWanted(Exception):
    """What a process without torch cannot compute; the message says why."""


class NotListed(AttributeError, TorchWanted):
    """A function of torch that arrays do not have."""


def lacks_torch(problem: Exception) -> bool:
    """Whether what has failed would go on in a process that has torch."""
    if isinstance(problem, ModuleNotFoundError):
        return (problem.name or "").partition(".")[0] == "torch"
    return isinstance(problem, TorchWanted)


def without_torch() -> None:
    """This process, and those that it starts, compute without torch; said before anything that computes is loaded."""
    if "qvr_core.arrays.engine" in sys.modules and torch_wanted():
        raise RuntimeError("this process computes on torch already")
    os.environ[VARIABLE] = "own"


def torch_wanted() -> bool:
    """Whether this process computes on torch."""
    return os.environ.get(VARIABLE) != "own" and importlib.util.find_spec("torch") is not None
