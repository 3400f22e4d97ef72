"""Whether the guide of a statistical program has converged: the gradient of its bound at the end, in its own units.

Of a Normal with standard deviation σ, σ · ∂/∂loc is about how many standard deviations its mean is from its optimum,
and ∂/∂log σ is how far σ² times the curvature of the log joint is from the 1 that it is there.  Neither depends on
the learning rate, so a rate that falls to nothing cannot hide what is left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from qvr_core.arrays.engine import Tensor, arrays
from qvr_core.arrays.random_state import random_state_kept
from qvr_core.inference.guides.base import Guide
from qvr_core.inference.guides.full_rank_and_laplace import AutoMultivariateNormalGuide
from qvr_core.inference.guides.normal import AutoNormalGuide

REPEATS = 8
PARTICLES = 64
FAR = 0.3
"""Standard deviations of a mean, or logarithms of a scale, that are worth a word."""
SURE = 5.0
"""Standard errors beyond which a gradient is not noise, though the largest of many is looked at."""


def not_converged(guide: Guide, differentiate: Callable[[int], None]) -> str | None:
    """What is furthest from where the bound pulls it, in words; None where nothing is far, or nobody can tell.

    `differentiate(i)` leaves the gradient of −ELBO with `PARTICLES` draws in the guide's parameters, on the data of one
    step after another.
    """
    if not isinstance(guide, AutoNormalGuide | AutoMultivariateNormalGuide) or not guide.blocks:
        return None
    found: dict[tuple[str, str], list[Tensor]] = {}
    with random_state_kept(next(guide.parameters()).device):
        for repeat in range(REPEATS):
            differentiate(repeat)
            for site, what, pull in _pulls(guide):
                # a copy: the next gradient may stand in the same memory
                found.setdefault((site, what), []).append(pull.detach() + 0.0)
    guide.zero_grad()
    worst, words = 0.0, None
    for (site, what), pulls in found.items():
        each = arrays.stack(pulls).double()
        sure = each.mean(0).abs() - SURE * each.std(0) / REPEATS**0.5
        distance = float(sure.max()) if sure.numel() else 0.0
        if distance > max(worst, FAR):
            worst = distance
            pull = float(each.mean(0).flatten()[int(sure.argmax())])
            words = f"`{site}` {_words(what, pull)}"
    return words


def _words(what: str, pull: float) -> str:
    if what == "loc":
        return f"is still about {_rough(abs(pull))} of its standard deviations from where the bound pulls it"
    return f"has a standard deviation that is still too {'small' if pull < 0 else 'large'}"


def _rough(number: float) -> str:
    return f"{number:.1g}" if number < 1 else f"{number:.0f}"


def _pulls(guide: AutoNormalGuide | AutoMultivariateNormalGuide) -> Iterator[tuple[str, str, Tensor]]:
    """(site, 'loc' or 'scale', gradient of −ELBO in units of the guide's own scale)."""
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
