"""The terms of a log density."""

from __future__ import annotations

from qvr_core.lowered.axes import Axis
from qvr_core.semantics.types.model.expressions import Expr
from qvr_core.semantics.types.model.families import FamilyDraw
from qvr_core.semantics.types.model.steps import Site
from qvr_core.syntax.immutable import immutable_by_name


@immutable_by_name
class Factor:
    """A sum of log densities: Σ weight · log p(value | arguments) over the elements where `where` holds.

    `value` is what of the site has a density here: all of it, the elements of a chain behind its first ones, or one of
    those.  Its elements run over `axes`, and so do the arguments; `where` and `weight` run over the last of these, or
    are one for all elements; None is true, and 1.
    """

    site: Site
    draw: FamilyDraw
    value: Expr
    axes: tuple[Axis, ...]
    where: Expr | None
    weight: Expr | None
    limits: tuple[tuple[str, Expr], ...] = ()
    """The options that censor or truncate, by name."""

    @property
    def partial(self) -> bool:
        """Whether elements count otherwise than once each."""
        return self.where is not None or self.weight is not None or bool(self.limits)
