"""The number format that a program computes in: its parameters', else its latents', else torch's default."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

from qvr_core.arrays.engine import Tensor, arrays

_asked: ContextVar[arrays.dtype | None] = ContextVar("precision", default=None)


@contextmanager
def computing_in(dtype: arrays.dtype) -> Generator[None]:
    """Inside, literals, `zeros`, `eye` and all other numbers that a program makes have this dtype."""
    token = _asked.set(dtype)
    try:
        yield
    finally:
        _asked.reset(token)


def precision() -> arrays.dtype:
    """The dtype of the numbers that a program makes."""
    return _asked.get() or arrays.get_default_dtype()


def at_least(value: Tensor, dtype: arrays.dtype) -> Tensor:
    """Real numbers in a format that holds those of `dtype`, too."""
    if value.dtype == dtype or not value.is_floating_point():
        return value
    return value.to(arrays.promote_types(value.dtype, dtype))
