"""Draws of counts as whole numbers."""

from __future__ import annotations

from qvr_core.arrays.engine import Tensor
from qvr_core.runtime.values.errors import CountOverflow
from qvr_core.runtime.values.indices import in_transform, recording

MOST = 2.0**63
"""What int64 does not hold."""


def drawn_counts(value: Tensor, site: str) -> Tensor:
    """A draw as int64.  Raises `CountOverflow` where it is more than that holds."""
    if value.is_floating_point() and not (recording() or in_transform()):
        sizes = value.detach().abs()
        if bool((sizes >= MOST).any()):
            raise CountOverflow(
                f"site `{site}` draws a count of {float(sizes.max()):.3g} or more, which no whole number of 64 bits "
                "holds: its arguments may be so large where their priors are so wide; narrow them",
                site=site,
            )
    return value.long()
