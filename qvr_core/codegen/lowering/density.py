"""A density and its gradient as loops."""

from __future__ import annotations

from qvr_core.arrays.graph import Array
from qvr_core.codegen.lowering import elementwise, gathers, matrices, recurrences, reductions, views, while_loops
from qvr_core.codegen.lowering.lowering import Lowering
from qvr_core.codegen.source import Text, written

ROOMS = (elementwise, gathers, matrices, recurrences, reductions, while_loops, views)
"""The modules whose import registers the rules."""


def lowered(value: Array, gradient: Array) -> Text:
    """The text of the loops.  Raises `NoLoops`."""
    return written(Lowering(value, gradient).program())
