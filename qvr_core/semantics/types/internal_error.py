"""The diagnostic of a check that failed itself: a bug, told once where it happened."""

from __future__ import annotations

from qvr_core.semantics.types.catalogue import INTERNAL_ERROR
from qvr_core.semantics.types.diagnostics import Diagnostic, Origin, Place
from qvr_core.syntax.internal_error import report
from qvr_core.syntax.tree.names import Span

NOWHERE = Origin(-1, Span(0, 0))
"""The place of a failure that concerns the whole file: it is shown at the start of the text."""


def failure(error: Exception, place: Place = NOWHERE) -> Diagnostic:
    """One diagnostic for an exception that should not have been."""
    return Diagnostic(INTERNAL_ERROR, report(error), place)
