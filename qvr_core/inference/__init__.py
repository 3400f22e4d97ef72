"""Inference: trace, guides, objectives, SVI, Predictive, MCMC and lifting (docs/reference.md#python-api)."""

from qvr_core.inference.guides import (
    AutoDeltaGuide,
    AutoLaplaceGuide,
    AutoLowRankMultivariateNormalGuide,
    AutoMultivariateNormalGuide,
    AutoNormalGuide,
    AutoPriorGuide,
)
from qvr_core.inference.lifting import bayesian_lift_parameters
from qvr_core.inference.mcmc import MCMC, HMCKernel, MCMCResult, NUTSKernel
from qvr_core.inference.objectives import ELBO, IWAEBound
from qvr_core.inference.predictive import Predictive
from qvr_core.inference.svi import SVI
from qvr_core.inference.trace import Trace, trace

__all__ = [
    "ELBO",
    "MCMC",
    "SVI",
    "AutoDeltaGuide",
    "AutoLaplaceGuide",
    "AutoLowRankMultivariateNormalGuide",
    "AutoMultivariateNormalGuide",
    "AutoNormalGuide",
    "AutoPriorGuide",
    "HMCKernel",
    "IWAEBound",
    "MCMCResult",
    "NUTSKernel",
    "Predictive",
    "Trace",
    "bayesian_lift_parameters",
    "trace",
]
