"""What an install without extras lacks, in one sentence with the command that brings it."""

from __future__ import annotations

import sys

RUNS = "qvr-lsp[run]"
"""What fits and draws need: PyTorch and the rest."""
OTHERS = {name: "qvr-lsp[cluster]" for name in ("dask", "distributed", "dask_jobqueue")}
"""Of packages that runs do not need: the extra that brings them."""


def lacking(package: str) -> str:
    """That a package is not there."""
    return f"the package `{package}`, which {sys.executable} does not have"


def remedy(package: str = "") -> str:
    """The command that installs what runs need, or the package that is lacking."""
    return f"{sys.executable} -m pip install '{OTHERS.get(package, RUNS)}'"
