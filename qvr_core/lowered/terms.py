"""The terms of a log density."""

from __future__ import annotations

from qvr_core.semantics.types.model.expressions import Expr
from qvr_core.semantics.types.model.families import FamilyDraw
from qvr_core.semantics.types.model.steps import Site
from qvr_core.syntax.immutable import immutable_by_name


@immutable_by_name
class Factor:
    """The log density of a site's elements: Σ weight · log p(value | arguments) over the elements where `where` holds.

    `where` and `weight` are one number for all elements, or have the axes of the site's plates; None is true, and 1.
    """

    site: Site
    draw: FamilyDraw
    where: Expr | None
    weight: Expr | None

    @property
    def partial(self) -> bool:
        """Whether elements count otherwise than once each."""
        return self.where is not None or self.weight is not None
