"""The targets by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from qvr_core.analysis import Snapshot
from qvr_core.export.exported import Exported
from qvr_core.export.reading import Reading, read
from qvr_core.export.stan.program import stan_program
from qvr_core.export.to_numpyro import numpyro_model
from qvr_core.export.to_pymc import pymc_model
from qvr_core.export.to_torch import torch_module


@dataclass(frozen=True)
class Target:
    """`suffix` is that of its files."""

    suffix: str
    printer: Callable[[Reading], Exported]


TARGETS: Mapping[str, Target] = {
    "numpyro": Target(".py", numpyro_model),
    "pymc": Target(".py", pymc_model),
    "stan": Target(".stan", stan_program),
    "torch": Target(".py", torch_module),
}


def export(snapshot: Snapshot, program: str, target: str) -> Exported:
    """A program as the file of a target.  Raises `Refused` for what that cannot say."""
    return TARGETS[target].printer(read(snapshot, program))
