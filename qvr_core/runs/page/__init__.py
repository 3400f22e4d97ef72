"""What a page's own worker asks for: a program and its data as a module of WebAssembly that samples.

A page has Python, and of what runs compute with it has nothing: `alone` is said before the rest of this room is loaded.
"""

from __future__ import annotations

from qvr_core.arrays.engine_choice import without_torch
from qvr_core.arrays.without_numpy import take_its_place


def alone() -> None:
    """This process has neither torch nor numpy."""
    without_torch()
    take_its_place()
