"""The dependence graph of a program, and what it answers: who is independent of whom, what shields a site, what an
effect has to be adjusted for.

networkx is imported by the functions, when they are asked.  No answer of an editor waits for it: the server loads
`library` when it is idle, and asks `at_hand`.
"""

import sys

from qvr_core.dependence.blankets import blanket, colliders
from qvr_core.dependence.effects import Adjustment, adjustment
from qvr_core.dependence.graph import NoAnswer, dependence_graph, is_site
from qvr_core.dependence.separation import Separation, separation


def at_hand() -> bool:
    """Whether networkx was loaded by `library`, and nobody has to wait for it any more."""
    return getattr(sys.modules.get(f"{__name__}.lazy_networkx"), "LOADED", False)


__all__ = [
    "Adjustment",
    "NoAnswer",
    "Separation",
    "adjustment",
    "at_hand",
    "blanket",
    "colliders",
    "dependence_graph",
    "is_site",
    "separation",
]
