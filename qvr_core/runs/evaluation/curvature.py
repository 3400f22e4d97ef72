"""A run with the guide `laplace` ends with the Normal of the log joint's curvature at the point that it found."""

from __future__ import annotations

from qvr_core.arrays.engine import arrays
from qvr_core.arrays.random_state import random_state_kept
from qvr_core.data.records import Records
from qvr_core.inference.guides.base import Guide
from qvr_core.inference.guides.full_rank_and_laplace import AutoLaplaceGuide
from qvr_core.runs.prepare.parts_of_rows import Parts
from qvr_core.runs.prepare.prepare import Prepared
from qvr_core.runs.prepare.row_terms import scaled_terms
from qvr_core.runtime.values.errors import InputProblem

ROWS = 100_000
"""Rows of a table that is read in parts; more than these stand for all."""
NEAR = 0.25
"""Standard deviations from the mode that are not worth a word."""


def approximated(prepared: Prepared, guide: Guide, parts: Parts | None = None) -> tuple[Guide, str | None]:
    """The guide that stands for the posterior, and what to say of it.  Where there is no such Normal: the point.  Rows
    of a table that is read in `parts` stand for all."""
    if not isinstance(guide, AutoLaplaceGuide) or not guide.blocks:
        return guide, None
    if not prepared.needs.statistical:
        return guide, (
            f"guide = laplace: `{prepared.program.name}` draws its latents anew in each row, so there is no curvature "
            "that all rows share; the run ends with the mode, without a spread (guide = normal has one)"
        )
    rows = min(prepared.train.rows, ROWS)
    if parts is not None:
        model, weight, weighted = parts.sized.with_rows(rows), parts.rows / rows, parts.terms
        x, observations = prepared.move(parts.batch(parts.spread(rows)))
    else:
        spread = (arrays.arange(rows) * (prepared.train.rows / rows)).long()
        model, (x, observations) = prepared.model, prepared.move(prepared.train.batch(spread))
        weight = prepared.train.rows / rows if isinstance(prepared.train, Records) else 1.0
        weighted = scaled_terms(prepared) if weight != 1.0 else ()
    try:
        with random_state_kept(prepared.device):
            normal = guide.laplace_approximation(model, x, observations, weight=weight, weighted=weighted)
    except InputProblem:
        return guide, (
            "guide = laplace: the log joint is not curved downwards where the fit has ended, so there is no Normal of "
            "its curvature; the posterior is the mode alone, without a spread (take more steps, or guide = "
            "multivariate_normal)"
        )
    off = guide.off_mode
    if off is not None and not off < NEAR:
        return normal, (
            f"guide = laplace: the fit has ended about {off:.2g} standard deviations from the mode: take more steps, "
            "or a larger learning_rate"
        )
    return normal, None
