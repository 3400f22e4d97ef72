"""QVR from Python and in notebooks.

import qvr
model = qvr.load("model.qvr").morphism      # also: loads, load_run

%load_ext qvr                               # then cells that begin with %%qvr NAME hold programs
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from qvr_core.dsl import load, loads
    from qvr_core.runs.python.loaded import load_run

__all__ = ["load", "load_ipython_extension", "load_run", "loads"]


def __getattr__(name: str) -> Any:
    """What loads torch is imported when it is asked for."""
    if name in ("load", "loads"):
        from qvr_core import dsl

        return getattr(dsl, name)
    if name == "load_run":
        from qvr_core.runs.python.loaded import load_run

        return load_run
    raise AttributeError(f"module 'qvr' has no attribute '{name}'")


def load_ipython_extension(shell: Any) -> None:
    """What `%load_ext qvr` calls."""
    from qvr.notebook import Programs, drawing

    shell.register_magics(Programs)
    shell.display_formatter.formatters["image/svg+xml"].for_type_by_name("qvr_core.dsl", "Program", drawing)
