"""Whole numbers that pick rows, groups and entries: what data gives for them is checked, once per tensor."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from qvr_core.arrays.engine import TORCH, Tensor, arrays
from qvr_core.arrays.graph import current
from qvr_core.runtime.values.errors import InputProblem


def recording() -> bool:
    """True while operations are recorded into a graph: values are unknown then, and were checked before."""
    return current() is not None or (TORCH and _torch_records())


@cache
def _proxy_mode() -> Callable[[], object]:
    from torch.fx.experimental.proxy_tensor import get_proxy_mode

    return get_proxy_mode


def _torch_records() -> bool:
    return _proxy_mode()() is not None or arrays.compiler.is_compiling()


class IndexCheck:
    """Checks the indices that the data name `name` holds; None stands for anything computed, which torch checks.

    A tensor is looked at once for each size, however often a loop passes it.
    """

    def __init__(self, name: str | None) -> None:
        self.name = name
        self._seen: Tensor | None = None
        self._state: tuple[int, int] = (0, 0)

    def __call__(self, program: str, index: Tensor, size: int) -> None:
        """Raises `InputProblem` unless `index` holds whole numbers from 0 to size − 1."""
        if self.name is None:
            return
        state = (index._version, size)
        if self._seen is index and self._state == state:
            return
        self.whole(program, index)
        if recording():
            return
        if index.numel():
            low, high = (int(bound) for bound in arrays.aminmax(index))
            if low < 0 or high >= size:
                raise self._problem(program, f"indices 0 … {size - 1}", f"index {low if low < 0 else high}")
        self._seen, self._state = index, state

    def whole(self, program: str, index: Tensor) -> None:
        """Raises `InputProblem` where data gives fractions."""
        if self.name is not None and index.is_floating_point():
            found = f"{str(index.dtype).removeprefix('torch.')} {tuple(index.shape)}"
            raise self._problem(program, "whole numbers (int64)", found)

    def _problem(self, program: str, expected: str, found: str) -> InputProblem:
        return InputProblem(f"`{program}`, data `{self.name}`: expected {expected}, found {found}", site=self.name)


def in_transform() -> bool:
    """Whether torch.func looks at every operation."""
    return TORCH and arrays._C._are_functorch_transforms_active()  # pyright: ignore[reportPrivateUsage]
