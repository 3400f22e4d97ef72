"""Inference: trace, guides, objectives, SVI, Predictive, MCMC and lifting (docs/reference.md#python-api).

Each is loaded when it is asked for: what compiles samplers wants nothing of torch.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from qvr_core.inference.guides import (
        AutoDAISGuide,
        AutoDeltaGuide,
        AutoIAFGuide,
        AutoLaplaceGuide,
        AutoLowRankMultivariateNormalGuide,
        AutoMixtureGuide,
        AutoMultivariateNormalGuide,
        AutoNormalGuide,
        AutoPathfinderGuide,
        AutoPriorGuide,
        AutoSplineGuide,
        ProgramGuide,
    )
    from qvr_core.inference.lifting import bayesian_lift_parameters
    from qvr_core.inference.mcmc import MCMC, HMCKernel, MCMCResult, NUTSKernel
    from qvr_core.inference.objectives import ELBO, IWAEBound, RenyiBound
    from qvr_core.inference.predictive import Predictive
    from qvr_core.inference.svi import SVI
    from qvr_core.inference.trace import Trace, trace

__all__ = [
    "ELBO",
    "MCMC",
    "SVI",
    "AutoDAISGuide",
    "AutoDeltaGuide",
    "AutoIAFGuide",
    "AutoLaplaceGuide",
    "AutoLowRankMultivariateNormalGuide",
    "AutoMixtureGuide",
    "AutoMultivariateNormalGuide",
    "AutoNormalGuide",
    "AutoPathfinderGuide",
    "AutoPriorGuide",
    "AutoSplineGuide",
    "HMCKernel",
    "IWAEBound",
    "MCMCResult",
    "NUTSKernel",
    "Predictive",
    "ProgramGuide",
    "RenyiBound",
    "Trace",
    "bayesian_lift_parameters",
    "trace",
]
_PLACES = {
    "bayesian_lift_parameters": "lifting", "ELBO": "objectives", "IWAEBound": "objectives", "RenyiBound": "objectives",
    "Predictive": "predictive", "SVI": "svi", "Trace": "trace", "trace": "trace",
    **dict.fromkeys(("MCMC", "HMCKernel", "MCMCResult", "NUTSKernel"), "mcmc"),
}  # fmt: skip
"""The module of each name; of the others `guides`."""


class _Package(ModuleType):
    def __setattr__(self, name: str, value: object) -> None:
        """`trace` is the function, also where the module of this name is what was imported first."""
        super().__setattr__(name, value.trace if name == "trace" and isinstance(value, ModuleType) else value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module(f"{__name__}.{_PLACES.get(name, 'guides')}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
