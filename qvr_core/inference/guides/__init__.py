"""Guides: densities over a program's latents that SVI fits."""

from qvr_core.inference.guides.annealed import AutoDAISGuide
from qvr_core.inference.guides.base import Guide, Proposal
from qvr_core.inference.guides.delta import AutoDeltaGuide
from qvr_core.inference.guides.flows import AutoIAFGuide, AutoSplineGuide
from qvr_core.inference.guides.full_rank_and_laplace import (
    AutoLaplaceGuide,
    AutoLowRankMultivariateNormalGuide,
    AutoMultivariateNormalGuide,
)
from qvr_core.inference.guides.mixture import AutoMixtureGuide
from qvr_core.inference.guides.normal import AutoNormalGuide
from qvr_core.inference.guides.pathfinder import AutoPathfinderGuide
from qvr_core.inference.guides.prior import AutoPriorGuide
from qvr_core.inference.guides.program import ProgramGuide

__all__ = [
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
    "Guide",
    "ProgramGuide",
    "Proposal",
]
