"""An npz archive, read by name: an array that nobody asks for is never unpacked, and nothing is ever unpickled."""

from __future__ import annotations

import zipfile
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from math import prod
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from qvr_core.data.problems import DataProblem
from qvr_core.data.size_limits import check_room

WRITE = "Write it with `numpy.savez(path, y=…)`"


class Arrays(Mapping[str, NDArray[Any]]):
    """The arrays of an archive by name, unpacked when asked for.

    An array is read only where its shape takes the bytes that the archive declares for it, and where those fit into
    `room`, the bytes that are left to all of them (None: any number).
    """

    def __init__(self, path: str, room: int | None) -> None:
        """Raises `DataProblem` where the file is no archive, or holds no arrays."""
        self.path = path
        self._room = room
        self._read: dict[str, NDArray[Any]] = {}
        with _as_data_problem(path), zipfile.ZipFile(path) as archive:
            self._members = {entry.filename.removesuffix(".npy"): entry for entry in archive.infolist()}
        if not self._members:
            raise DataProblem("the archive holds no arrays", path=path, remedy=WRITE)

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)

    def __contains__(self, name: object) -> bool:
        return name in self._members

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in self._read:
            member = self._members[name]
            with _as_data_problem(self.path), zipfile.ZipFile(self.path) as archive, archive.open(member) as file:
                self._read[name] = self._array(name, member.file_size, file)
            if self._room is not None:
                self._room -= self._read[name].nbytes
        return self._read[name]

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape that an array's header tells, which must take the bytes that the archive declares; none of its
        numbers is unpacked.  Raises `DataProblem`."""
        member = self._members[name]
        with _as_data_problem(self.path), zipfile.ZipFile(self.path) as archive, archive.open(member) as file:
            return self._header(name, member.file_size, file)[0]

    def _array(self, name: str, declared: int, file: IO[bytes]) -> NDArray[Any]:
        shape, fortran, dtype = self._header(name, declared, file)
        size = prod(shape) * dtype.itemsize
        check_room(self.path, size, self._room, column=name, remedy="Leave rows out")
        flat = np.frombuffer(file.read(size), dtype)
        array = flat.reshape(shape, order="F" if fortran else "C")
        # Other processors write numbers the other way round; torch knows the machine's own way only.
        return array.astype(dtype.newbyteorder("="))

    def _header(self, name: str, declared: int, file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
        shape, fortran, dtype = _header(file)
        if dtype.hasobject:
            raise DataProblem(
                "the array holds Python objects, which are never unpickled",
                path=self.path,
                column=name,
                remedy="Save it as numbers: `numpy.asarray(…, dtype=float)`",
            )
        size = prod(shape) * dtype.itemsize
        if size != declared - file.tell():
            message = f"its shape {shape} takes {size:,} bytes, and the archive has {declared - file.tell():,} of it"
            raise DataProblem(message, path=self.path, column=name, remedy=WRITE)
        return shape, fortran, dtype


def _header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, whether the first index runs fastest, and kind of number; the file then stands at the first number."""
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    return read(file)


@contextmanager
def _as_data_problem(path: str) -> Generator[None]:
    """What a damaged archive raises, as a `DataProblem`."""
    try:
        yield
    except (zipfile.BadZipFile, ValueError, OSError, EOFError, KeyError, NotImplementedError, RuntimeError) as error:
        message = (str(error) or type(error).__name__).splitlines()[0]
        raise DataProblem(f"this is not a whole npz file: {message}", path=path, remedy=WRITE) from error
