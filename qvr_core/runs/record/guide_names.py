"""Guides by the names that a run's configuration has for them."""

from __future__ import annotations

from qvr_core import inference

GUIDES = {
    "prior": inference.AutoPriorGuide,
    "normal": inference.AutoNormalGuide,
    "delta": inference.AutoDeltaGuide,
    "multivariate_normal": inference.AutoMultivariateNormalGuide,
    "low_rank": inference.AutoLowRankMultivariateNormalGuide,
    "laplace": inference.AutoLaplaceGuide,
    "mixture": inference.AutoMixtureGuide,
    "pathfinder": inference.AutoPathfinderGuide,
    "dais": inference.AutoDAISGuide,
    "iaf": inference.AutoIAFGuide,
    "spline": inference.AutoSplineGuide,
}


def in_flags(message: str) -> str:
    """A message of the library in the words of the command line: `AutoPriorGuide` is `--guide prior` there."""
    # Longer names first: one is the end of another.
    for name, kind in sorted(GUIDES.items(), key=lambda item: -len(item[1].__name__)):
        message = message.replace(kind.__name__, f"`--guide {name}`")
    return message
