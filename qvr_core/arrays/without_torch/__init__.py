"""What programs take from torch, on numpy alone: numbers are double precision, and nothing is recorded on the way.

It is the engine of a process that does not load torch (`qvr_core.arrays.engine`).  Names, arguments and results are
torch's, as far as statistical programs and their runs use them; what is not here is an error when it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan, pi
from typing import Any

from qvr_core.arrays.engine_choice import NotListed
from qvr_core.arrays.without_torch import autograd, linalg, nn, optim, random, special
from qvr_core.arrays.without_torch.creation import *  # noqa: F403
from qvr_core.arrays.without_torch.listed import NAMES, function
from qvr_core.arrays.without_torch.random import *  # noqa: F403
from qvr_core.arrays.without_torch.scopes import *  # noqa: F403
from qvr_core.arrays.without_torch.shaping import *  # noqa: F403
from qvr_core.arrays.without_torch.types import *  # noqa: F403

__all__ = ["autograd", "inf", "linalg", "nan", "nn", "optim", "pi", "random", "special"]


def __getattr__(name: str) -> Callable[..., Any]:
    if name in NAMES:
        return function(name)
    raise NotListed(f"`{name}` is not among the functions of arrays; torch has it: pip install 'qvr-lsp[run]'")
