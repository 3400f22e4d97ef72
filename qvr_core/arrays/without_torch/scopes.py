"""What torch decides for a stretch of a program: here there are no gradients, and one precision."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator
from typing import Any

from qvr_core.arrays.without_torch.types import dtype, float64

__all__ = [
    "OutOfMemoryError", "enable_grad", "get_default_dtype", "get_num_threads", "inference_mode", "is_grad_enabled",
    "no_grad", "set_default_dtype", "set_num_threads",
]  # fmt: skip


class OutOfMemoryError(RuntimeError):
    """Of a GPU: never raised."""


class no_grad(contextlib.ContextDecorator):
    """Nothing is differentiated anyway."""

    def __call__(self, func: Callable[..., Any]) -> Callable[..., Any]:
        return func

    def __enter__(self) -> None:
        return None

    def __exit__(self, *what: object) -> None:
        return None


inference_mode = no_grad


@contextlib.contextmanager
def enable_grad() -> Generator[None]:
    """Changes nothing."""
    yield


def is_grad_enabled() -> bool:
    """Never."""
    return False


def get_default_dtype() -> dtype:
    """Double precision."""
    return float64


def set_default_dtype(kind: dtype) -> None:
    """There is but one precision."""


_threads = [1]


def get_num_threads() -> int:
    """Threads that chains may use."""
    return _threads[0]


def set_num_threads(count: int) -> None:
    """Threads that chains may use."""
    _threads[0] = count
