"""Draws as factors: `mask` is where one counts, `weight` how much."""

from __future__ import annotations

from qvr_core.lowered.terms import Factor
from qvr_core.semantics.types.model.families import FamilyDraw
from qvr_core.semantics.types.model.steps import Site


def factor_of(site: Site) -> Factor:
    """The factor of a site that is drawn from a family."""
    assert isinstance(site.draw, FamilyDraw)
    return Factor(site=site, draw=site.draw, where=site.mask, weight=site.weight)
