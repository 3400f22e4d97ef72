"""Compiling a density, with a cache on disk that outlives the process.

The text of a density holds shapes and operations but no data, so one build serves every run of a program on tables of
the same shape.  A build is keyed by its text and by the versions of all that makes it; two processes may build the same
at once, since files are moved into place whole.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import platform
import sys
import tempfile
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

from qvr_core.inference.machine.source import NAME, Text

CACHE_VARIABLE = "QVR_MACHINE_CACHE"
HEADER = '''"""Written by qvr_core.inference.machine; safe to delete."""
import math

from numba import cfunc, types

from qvr_core.inference.machine import wide
from qvr_core.inference.machine.functions import (
    at_least, at_most, digamma, floor, i0e, i1e, log_add, log_ndtr, log_sigmoid, sigmoid, sign, softplus, square,
    trigamma,
)
from qvr_core.inference.machine.matrices import cholesky, eliminated, solved, substituted

REAL, WHOLE = types.CPointer(types.float64), types.CPointer(types.int64)


@cfunc(types.float64(REAL, REAL, REAL, REAL, WHOLE), cache=True, error_model="numpy", fastmath=FASTMATH)
'''
FASTMATH = ("arcp", "contract", "nsz", "reassoc")
"""Sums in another order, x / s as x · (1 / s); infinities and NaN keep their meaning."""


def cache_folder() -> Path:
    """Where compiled densities are kept: what QVR_MACHINE_CACHE says, else the user's cache folder."""
    given = os.environ.get(CACHE_VARIABLE)
    if given:
        return Path(given)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "qvr" / "machine"


_told: list[Callable[[], None]] = []


@contextlib.contextmanager
def told(begins: Callable[[], None]) -> Generator[None]:
    """Inside, `begins` is called where the compiler begins to work; not where its code is only read from disk."""
    _told.append(begins)
    try:
        yield
    finally:
        _told.remove(begins)


def tell() -> None:
    """The compiler begins to work."""
    for begins in _told:
        begins()


def available() -> bool:
    """Whether the compiler is installed."""
    return importlib.util.find_spec("numba") is not None


def address_of(text: Text) -> tuple[int, Any]:
    """The address of a compiled density, and what keeps it alive.  Raises whatever the compiler raises."""
    module = _module(whole(text))
    function = getattr(module, NAME)
    return int(function.address), function


def whole(text: Text) -> str:
    """The module that is compiled: the same in every process, since it is the key of what is on disk."""
    # a set would be written in an order of its own in each
    flags = ", ".join(f'"{flag}"' for flag in FASTMATH)
    return HEADER.replace("FASTMATH", f"{{{flags}}}") + text.source


def _module(source: str) -> Any:
    key = _key(source)
    name = f"qvr_density_{key}"
    if name in sys.modules:
        return sys.modules[name]
    folder = cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.py"
    if not path.exists() or path.read_text(encoding="utf-8") != source:
        placed(path, source.encode())
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    if not any((folder / "__pycache__").glob(f"{name}.*.nbi")):
        tell()
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _key(source: str) -> str:
    import llvmlite  # pyright: ignore[reportMissingTypeStubs]
    import numba

    files = (Path(__file__).with_name(name) for name in ("functions.py", "matrices.py", "wide.py"))
    functions = "".join(file.read_text(encoding="utf-8") for file in files)
    versions = (numba.__version__, llvmlite.__version__, platform.python_version(), platform.machine())
    return hashlib.sha256("\0".join((source, functions, *versions)).encode()).hexdigest()[:32]


def placed(path: Path, held: bytes) -> None:
    """Write a file whole or not at all; it is nobody's but the user's."""
    handle, name = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(held)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
