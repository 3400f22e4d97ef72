"""Runs: configuration, events, the run directory, the worker process that fits a program, and `load_run`.

`config`, `protocol`, `store` and `client` never import torch: the language server and the command line use them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from qvr_core.runs.python.loaded import LoadedRun, load_run

__all__ = ["LoadedRun", "load_run"]


def __getattr__(name: str) -> Any:
    """What needs torch is imported where it is asked for."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from qvr_core.runs.python import loaded

    return getattr(loaded, name)
