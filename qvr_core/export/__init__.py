"""Programs in the languages of others: NumPyro, PyMC, plain torch.

`reading` says once what every printer needs of a checked program: its data, sets, steps and comments, and what can be
printed at all.  `arrays` prints the expressions and densities of targets that broadcast whole arrays (one table a
target); `targets` puts a program together for each.  Nothing here loads torch or another engine.

A target that has no broadcasting prints elements in loops: of an expression, the element at given indices, where each
node says which indices its parts get (`Arrange` drops and reorders them, `Window` shifts one, `Index` puts its own in
front).  It can share `reading`, `names`, `comments` and `exported`, which knows of codes that count from 1.
"""

from qvr_core.export.exported import Exported
from qvr_core.export.refusals import Refused
from qvr_core.export.targets import TARGETS, export

__all__ = ["TARGETS", "Exported", "Refused", "export"]
