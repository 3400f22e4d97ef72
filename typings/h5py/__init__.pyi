# What is called of it; the library has no types of its own.
from collections.abc import Iterator, MutableMapping
from pathlib import Path
from typing import Any, Self

import numpy as np
from h5py import version as version
from numpy.typing import NDArray

__version__: str

class Dimension:
    def attach_scale(self, scale: Dataset) -> None: ...

class Dataset:
    attrs: MutableMapping[str, Any]
    dims: list[Dimension]
    is_scale: bool
    def make_scale(self, name: str = ...) -> None: ...
    def __getitem__(self, key: Any) -> NDArray[Any]: ...

class Group:
    attrs: MutableMapping[str, Any]
    def create_group(self, name: str, *, track_order: bool = ...) -> Group: ...
    def create_dataset(
        self,
        name: str,
        shape: tuple[int, ...] = ...,
        dtype: str | np.dtype[Any] = ...,
        data: NDArray[Any] = ...,
        *,
        track_order: bool = ...,
    ) -> Dataset: ...
    def __getitem__(self, name: str) -> Any: ...
    def values(self) -> Iterator[Dataset]: ...

class File(Group):
    def __init__(self, name: Path, mode: str = ..., *, track_order: bool = ...) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *ended: object) -> None: ...

def string_dtype(encoding: str = ..., length: int | None = ...) -> np.dtype[np.object_]: ...
