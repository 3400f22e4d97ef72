"""What an install without extras lacks, in one sentence with the command that brings it."""

from __future__ import annotations

import sys

RUNS = "qvr-lsp[run]"
"""What fits and draws need: PyTorch and the rest."""


def lacking(package: str) -> str:
    """That a package is not there."""
    return f"the package `{package}`, which {sys.executable} does not have"


def remedy() -> str:
    """The command that installs what runs need."""
    return f"{sys.executable} -m pip install '{RUNS}'"
