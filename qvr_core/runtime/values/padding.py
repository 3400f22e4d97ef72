"""Padded sequences: which positions of each row are valid, for everything that mixes positions."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

from qvr_core.arrays.engine import Tensor, arrays
from qvr_core.runtime.values.errors import InputProblem

_LENGTHS: ContextVar[Tensor | None] = ContextVar("lengths", default=None)


@contextmanager
def padded(lengths: Tensor) -> Generator[None]:
    """Within this block row b of every sequence has `lengths[b]` (B,) valid positions: attention, `last` and
    `mean_over_time` see no others, and an observed sequence is not scored there."""
    token = _LENGTHS.set(lengths)
    try:
        yield
    finally:
        _LENGTHS.reset(token)


@contextmanager
def each_repeated(count: int) -> Generator[None]:
    """Within this block every row stands `count` times in a row, as in a summed-out block."""
    lengths = _LENGTHS.get()
    token = _LENGTHS.set(None if lengths is None else lengths.repeat_interleave(count))
    try:
        yield
    finally:
        _LENGTHS.reset(token)


def valid_lengths(rows: int, length: int) -> Tensor | None:
    """(B,): how many positions of each row are valid; None where nothing is padded.  Raises as `valid_positions`."""
    lengths = _LENGTHS.get()
    if lengths is None:
        return None
    if rows % lengths.shape[0]:
        raise InputProblem(f"{lengths.shape[0]} lengths were given for {rows} rows")
    if int(lengths.min()) < 1 or int(lengths.max()) > length:
        raise InputProblem(f"lengths must lie between 1 and {length}, found {lengths.tolist()}")
    return lengths.repeat(rows // lengths.shape[0])


def valid_positions(rows: int, length: int) -> Tensor | None:
    """(B, L), True where a position is valid; None where nothing is padded.

    Rows that are copies of all rows (particles, draws) repeat the lengths.  Raises `InputProblem` where the rows do not
    fit the lengths, or a length is not between 1 and L.
    """
    lengths = valid_lengths(rows, length)
    return None if lengths is None else arrays.arange(length, device=lengths.device) < lengths.unsqueeze(1)
