"""A density and its gradient as loops, written out or with what repeats in a loop over turns."""

from __future__ import annotations

from collections.abc import Iterator

from qvr_core.arrays.graph import Array
from qvr_core.codegen.lowering import elementwise, gathers, matrices, reductions, views
from qvr_core.codegen.lowering.lowering import Lowering
from qvr_core.codegen.source import Text, written

ROOMS = (elementwise, gathers, matrices, reductions, views)
"""The modules whose import registers the rules."""
LONG_TEXT = 150
"""Lines from which on steps that repeat are looked for."""


def lowered(value: Array, gradient: Array) -> Iterator[Text]:
    """The loops written out, and where they are long with one turn of what repeats.  Raises `NoLoops`."""
    text = written(Lowering(value, gradient).program())
    yield text
    if text.lines > LONG_TEXT:
        yield written(Lowering(value, gradient, repeats=True).program(), roll=True)
