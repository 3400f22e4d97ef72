"""Functions of the engine whose types torch's stubs leave open."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from numpy.typing import NDArray

from qvr_core.arrays.engine import Tensor, arrays


def from_numpy(numbers: NDArray[Any]) -> Tensor:
    """The numbers of a numpy array, which the tensor shares."""
    return arrays.from_numpy(numbers)


def listed(numbers: Tensor) -> list[Any]:
    """Numbers as a list, of lists where there are several axes."""
    return numbers.tolist()


@contextmanager
def seeded(seed: int) -> Generator[None]:
    """The global generator begun anew with a seed; afterwards it goes on as before."""
    with arrays.random.fork_rng():
        arrays.manual_seed(seed)
        yield
