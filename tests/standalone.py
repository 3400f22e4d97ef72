"""Texts that stand in no folder and may import the library `std`."""

from qvr_core.analysis import Analyzer, Snapshot
from qvr_core.disk import LibraryOnly
from qvr_core.workspace import Workspace


def standalone(text: str) -> Snapshot:
    """The analysis of a text."""
    return Analyzer(text, None, "text.qvr", Workspace(LibraryOnly())).snapshot()
