"""What an install without extras lacks, in one sentence with the command that brings it."""

from __future__ import annotations

import sys

RUNS = "qvr-lsp[run]"
"""What fits and draws need: PyTorch and the rest."""
OTHERS = {
    **dict.fromkeys(("dask", "distributed", "dask_jobqueue"), "qvr-lsp[cluster]"),
    "prompt_toolkit": "qvr-lsp[repl]",
}
"""Of packages that runs do not need: the extra that brings them."""


def lacking(package: str) -> str:
    """That a package is not there."""
    return f"the package `{package}`, which {sys.executable} does not have"


def remedy(package: str = "") -> str:
    """The command that installs what runs need, or the package that is lacking."""
    return f"{sys.executable} -m pip install '{OTHERS.get(package, RUNS)}'"


def needs(package: str) -> str:
    """What a command says that ends for want of a package."""
    what = "what fits and draws need" if package not in OTHERS else "it"
    return f"this needs {lacking(package)}; {what} is installed by: {remedy(package)}"
