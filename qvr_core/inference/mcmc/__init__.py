"""Markov chain Monte Carlo: HMC and NUTS with windowed warm-up, per-chain adaptation, vectorised chains."""

from qvr_core.inference.mcmc.chains import MCMC, Progress, joined
from qvr_core.inference.mcmc.hmc import HMCKernel
from qvr_core.inference.mcmc.interruptible import Enough
from qvr_core.inference.mcmc.nuts import NUTSKernel
from qvr_core.inference.mcmc.result import MCMCResult

__all__ = ["MCMC", "Enough", "HMCKernel", "MCMCResult", "NUTSKernel", "Progress", "joined"]
