"""Markov chain Monte Carlo: HMC and NUTS with windowed warm-up, per-chain adaptation, vectorised chains.

Each is loaded when it is asked for: a page, which has its own sampler, takes the potential alone.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from qvr_core.inference.mcmc.chains import MCMC, joined
    from qvr_core.inference.mcmc.collected import Progress
    from qvr_core.inference.mcmc.hmc import HMCKernel
    from qvr_core.inference.mcmc.interruptible import Enough
    from qvr_core.inference.mcmc.nuts import NUTSKernel
    from qvr_core.inference.mcmc.result import MCMCResult

__all__ = ["MCMC", "Enough", "HMCKernel", "MCMCResult", "NUTSKernel", "Progress", "joined"]
_PLACES = {
    "HMCKernel": "hmc", "Enough": "interruptible", "NUTSKernel": "nuts", "MCMCResult": "result",
    "Progress": "collected",
}  # fmt: skip
"""The module of each name; of the others `chains`."""


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module(f"{__name__}.{_PLACES.get(name, 'chains')}"), name)
    globals()[name] = found
    return found
