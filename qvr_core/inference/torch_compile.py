"""torch.compile for recorded graphs: a cache that outlives the process, and a plain word where there is no compiler."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, fx

CACHE_VARIABLE = "TORCHINDUCTOR_CACHE_DIR"


def cache_folder() -> Path:
    """Where compiled code is kept: what TORCHINDUCTOR_CACHE_DIR says, else the user's cache folder."""
    given = os.environ.get(CACHE_VARIABLE)
    if given:
        return Path(given)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "qvr" / "inductor"


def compiled(graph: fx.GraphModule, inputs: Sequence[Tensor]) -> Callable[..., Any] | None:
    """`graph` compiled and run once on `inputs`; None, with a warning that says why, where that cannot be."""
    os.environ.setdefault(CACHE_VARIABLE, str(cache_folder()))
    run = torch.compile(graph, dynamic=False)
    try:
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            run(*inputs)
    except Exception as error:  # the compiler, its toolchain and its bugs are not ours
        not_compiled(_reason(error))
        return None
    return run


def not_compiled(reason: str) -> None:
    """Say once that things go on without a compiler."""
    warnings.warn(f"compile=True has no effect: {reason}; going on without", stacklevel=3)


def _reason(error: BaseException) -> str:
    text = str(error)
    if "InvalidCxxCompiler" in text or "C++ compiler" in text:
        return "no working C++ compiler was found (install g++ or clang++, or name one in CXX)"
    return f"the compiler failed ({type(error).__name__}: {text.strip().splitlines()[0] if text.strip() else ''})"
