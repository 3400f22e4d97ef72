"""Lowered densities on disk, beside their machine code: a second run of a program on the same data traces nothing.

Where steps are written out and rolled up again, lowering takes up to a second.  A lowered density is a text and the
constants that it reads, of which some are data; so it is keyed by all that decides it: the program's text, the values
of data and parameters, this package's own files, and the versions of what traces and compiles.  What is read is
compared with the plain density like what was just made (`density.py`), and is only ever read from the user's own cache
folder; a file is plain arrays, nothing in it is unpickled.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.metadata
import io
import platform
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import qvr_core
from qvr_core.arrays.engine import TORCH, Tensor, is_tensor, nn
from qvr_core.codegen import store
from qvr_core.codegen.source import Text

FORMAT = 3
PACKAGES = ("torch", "numpy") if TORCH else ("numpy",)


@dataclass(frozen=True, slots=True)
class Kept:
    """A lowered density: its text, the width of a position, and the numbers that one evaluation makes."""

    text: Text
    width: int
    work: int


class Unnamed(Exception):
    """A value that has no name of its own: what depends on it is not kept."""


def key_of(*parts: Any) -> str | None:
    """The name of what these values decide; None where one of them is nothing that can be told from its like."""
    made = hashlib.sha256()
    try:
        for piece in (*_surroundings(), *_pieces(parts)):
            made.update(len(piece).to_bytes(8, "little"))
            made.update(piece)
    except Unnamed:
        return None
    return made.hexdigest()[:32]


def state_of(module: nn.Module) -> dict[str, Tensor]:
    """Parameters and buffers, also those that no checkpoint holds."""
    return {**dict(module.named_parameters()), **dict(module.named_buffers())}


@functools.cache
def _surroundings() -> tuple[bytes, ...]:
    """What decides how a program is traced and lowered: this package to the letter, and versions of others."""
    root = Path(qvr_core.__file__).parent
    own = hashlib.sha256()
    for file in sorted(root.rglob("*.py")):
        own.update(file.relative_to(root).as_posix().encode())
        own.update(file.read_bytes())
    versions = [f"{name} {importlib.metadata.version(name)}" for name in PACKAGES]
    return own.digest(), *(part.encode() for part in (str(FORMAT), sys.version, platform.machine(), *versions))


def _pieces(value: Any) -> Iterator[bytes]:
    """A value as bytes, its kind and its extent first: no two values give the same."""
    match value:
        case None | bool() | int() | float() | complex() | str() | bytes():
            yield f"{type(value).__name__} {value!r}".encode("utf-8", "surrogatepass")
        case np.ndarray():
            yield from _array("array", value)
        case _ if is_tensor(value):
            yield from _array("tensor", value.detach().cpu().numpy())
        case Mapping():
            yield f"mapping {len(value)}".encode()
            for name in value:
                yield from _pieces(name)
                yield from _pieces(value[name])
        case tuple() | list():
            yield f"{type(value).__name__} {len(value)}".encode()
            for item in value:
                yield from _pieces(item)
        case _:
            raise Unnamed(type(value).__name__)


def _array(kind: str, array: np.ndarray[Any, Any]) -> Iterator[bytes]:
    yield f"{kind} {array.dtype} {array.shape}".encode()
    yield np.ascontiguousarray(array).tobytes()


def kept(key: str) -> Kept | None:
    """What was kept under this key."""
    with contextlib.suppress(ValueError, KeyError):
        body = store.kept(_name(key))
        if body is None:
            return None
        with np.load(io.BytesIO(body), allow_pickle=False) as found:
            room, width, work = found["sizes"].tolist()
            source = found["source"].tobytes().decode()
            return Kept(Text(source, room, found["reals"].tolist(), found["wholes"].tolist()), width, work)
    return None


def keep(key: str, density: Kept) -> None:
    """Keep a density for later runs, where it is small and the folder can be written to."""
    text = density.text
    if 8 * (len(text.reals) + len(text.wholes)) > store.MOST_BYTES:
        return
    body = io.BytesIO()
    np.savez(
        body,
        sizes=np.array([text.room, density.width, density.work]),
        source=np.frombuffer(text.source.encode(), dtype=np.uint8),
        reals=np.array(text.reals, dtype=np.float64),
        wholes=np.array(text.wholes, dtype=np.int64),
    )
    store.keep(_name(key), body.getvalue())


def _name(key: str) -> str:
    return f"lowered_{key}"
