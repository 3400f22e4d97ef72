"""Programs in the languages of others: Stan, NumPyro, PyMC, plain torch.

`reading` says once what every printer needs of a checked program: its data, sets, steps and comments, and what can be
printed at all.  `arrays` prints the expressions and densities of targets that broadcast whole arrays (one table a
target); `targets` puts a program together for each.  Nothing here loads torch or another engine.
"""

from qvr_core.export.exported import Exported
from qvr_core.export.refusals import Refused
from qvr_core.export.targets import TARGETS, export

__all__ = ["TARGETS", "Exported", "Refused", "export"]
