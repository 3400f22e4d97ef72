"""Whether the guide of a statistical program has converged: the gradient of its ELBO at the end, in its own units.

Of a Normal with standard deviation σ, σ · ∂/∂loc is about how many standard deviations its mean is from its optimum,
and ∂/∂log σ is how far σ² times the curvature of the log joint is from the 1 that it is there.  Neither depends on
the learning rate, so a rate that falls to nothing cannot hide what is left.

Where the guide is the posterior both are 0 (Stein's identity), whatever its shape and whatever bound it was fitted by:
the guide sees a slope of the log joint that its importance weights, all of them equally small, do not show.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Literal

from qvr_core.arrays.engine import Tensor, arrays
from qvr_core.arrays.random_state import random_state_kept
from qvr_core.inference.guides.base import Guide
from qvr_core.inference.guides.flows import FlowGuide
from qvr_core.inference.guides.full_rank_and_laplace import AutoMultivariateNormalGuide
from qvr_core.inference.guides.normal import AutoNormalGuide

What = Literal["loc", "scale"]
Pulled = AutoNormalGuide | AutoMultivariateNormalGuide | FlowGuide
REPEATS = 8
PARTICLES = 64
WHOLE = 256
"""Draws of which a flow's own mean and scale are taken."""
FAR = {"place": 0.3, "narrow": 0.3, "wide": 0.3}
"""Standard deviations of a mean, or logarithms of a scale, that are worth a word; those of a guide that is too narrow
are at most 1."""
FAR_FROM_ELBO = {"place": 1.0, "narrow": 0.6, "wide": 3.0}
"""The same of a guide fitted by another bound, whose optimum is wider where the posterior has another shape."""
SURE = 5.0
"""Standard errors beyond which a gradient is not noise, though the largest of many is looked at."""


def not_converged(guide: Guide, differentiate: Callable[[int], None], *, by_elbo: bool = True) -> str | None:
    """What is furthest from where the ELBO pulls it, in words; None where nothing is far, or nobody can tell.

    `differentiate(i)` leaves the gradient of −ELBO with `PARTICLES` draws in the guide's parameters, on the data of one
    step after another; a guide that was fitted by another bound, not `by_elbo`, may be further from its optimum.
    """
    if not isinstance(guide, Pulled) or not guide.blocks:
        return None
    far = FAR if by_elbo else FAR_FROM_ELBO
    found: dict[tuple[str, What], list[Tensor]] = {}
    with random_state_kept(next(guide.parameters()).device):
        for repeat in range(REPEATS):
            differentiate(repeat)
            for site, what, pull in _pulls(guide):
                # a copy: the next gradient may stand in the same memory
                found.setdefault((site, what), []).append(pull.detach() + 0.0)
    guide.zero_grad()
    # a scale says something where its mean has arrived: on a slope every guide seems too narrow or too wide
    for kinds in (("place",), ("narrow", "wide")):
        told = _furthest(found, {kind: far[kind] for kind in kinds})
        if told is not None:
            return told
    return None


def _furthest(found: Mapping[tuple[str, What], list[Tensor]], far: Mapping[str, float]) -> str | None:
    """Of the pulls of some kinds the surest that is further than `far` allows, in words."""
    worst, words = 1.0, None
    for (site, what), pulls in found.items():
        each = arrays.stack(pulls).double()
        mean = each.mean(0).flatten()
        sure = mean.abs() - SURE * each.std(0).flatten() / REPEATS**0.5
        place, narrow, wide = (arrays.full_like(mean, far.get(one, math.inf)) for one in ("place", "narrow", "wide"))
        distance = sure / (place if what == "loc" else arrays.where(mean < 0.0, narrow, wide))
        at = int(distance.argmax()) if len(mean) else 0
        if len(mean) and float(distance[at]) > worst:
            worst, pull = float(distance[at]), float(mean[at])
            kind = "place" if what == "loc" else "narrow" if pull < 0 else "wide"
            words = f"`{site}` {_words(kind, pull)}"
    return words


def _words(kind: str, pull: float) -> str:
    if kind == "place":
        return f"is still about {_rough(abs(pull))} of its standard deviations from where the bound pulls it"
    return f"has a standard deviation that is still too {'small' if kind == 'narrow' else 'large'}"


def _rough(number: float) -> str:
    return f"{number:.1g}" if number < 1 else f"{number:.0f}"


def _pulls(guide: Pulled) -> Iterator[tuple[str, What, Tensor]]:
    """(site, 'loc' or 'scale', gradient of −ELBO in units of the guide's own scale)."""
    if isinstance(guide, FlowGuide):
        loc, scale = guide.loc.grad, guide.log_scale.grad
        if loc is None or scale is None:
            return
        with arrays.no_grad():
            drawn, _ = guide.draw_joint(WHOLE, None)
        off = drawn.mean(0) - guide.loc.detach()
        for block in guide.blocks:
            part = guide.slices[block.key]
            yield block.site, "loc", drawn.std(0)[part] * loc[part]
            # what stretches the guide about its mean, and not about `loc`
            yield block.site, "scale", (scale + off * loc)[part]
        return
    if isinstance(guide, AutoMultivariateNormalGuide):
        loc, scale = guide.loc.grad, guide.log_diagonal.grad
        if loc is None or scale is None:
            return
        white = guide.scale_tril.detach().mT @ loc
        for block in guide.blocks:
            part = guide.slices[block.key]
            yield block.site, "loc", white[part]
            yield block.site, "scale", scale[part]
        return
    for block in guide.blocks:
        loc, scale = guide.raw_loc[block.key], guide.raw_log_scale[block.key]
        if loc.grad is None or scale.grad is None:
            continue
        _, log_scale = guide.location(block)
        # the optimiser's units are those of `location` times √d
        unit = float(loc.numel()) ** 0.5 if block.standard and loc.numel() > 1 else 1.0
        yield block.site, "loc", unit * log_scale.exp() * loc.grad
        yield block.site, "scale", unit * scale.grad
