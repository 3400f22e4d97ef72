"""Python's collector of circular garbage, which looks through every object that is there to find a few that nobody
needs.

A command loads a hundred thousand objects that live as long as it does; to look through them again and again takes
an eighth of what eight schools cost from the command to the posterior (1.43 s of processor, 1.25 without).
"""

from __future__ import annotations

import gc
import sys

SELDOM = (100_000, 20, 20)
"""After how many new objects the youngest are looked through, and after how many of these times the older ones."""


def while_loading() -> None:
    """Nothing is looked through until `loaded`."""
    gc.disable()


def loaded() -> None:
    """What is there stays and is looked through no more; what comes is seldom, but for what torch holds: behind a few
    objects that point at each other stand arrays of any size."""
    if gc.isenabled():
        return
    gc.freeze()
    if "torch" not in sys.modules:
        gc.set_threshold(*SELDOM)
    gc.enable()
