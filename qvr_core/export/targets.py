"""The targets by name, and the whole text of an export."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from qvr_core.analysis import Snapshot
from qvr_core.export.reading import Reading, read
from qvr_core.export.to_numpyro import numpyro_model
from qvr_core.export.to_pymc import pymc_model
from qvr_core.export.to_torch import torch_module

TARGETS: Mapping[str, tuple[str, Callable[[Reading], str]]] = {
    "numpyro": (".py", numpyro_model),
    "pymc": (".py", pymc_model),
    "torch": (".py", torch_module),
}
"""The suffix of a target's files, and what prints a program for it."""


def export(snapshot: Snapshot, program: str, target: str) -> str:
    """A program as the text of a file of the target.  Raises `Refused` for what it cannot say."""
    return TARGETS[target][1](read(snapshot, program))
