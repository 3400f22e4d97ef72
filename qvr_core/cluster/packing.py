"""What crosses between machines: a JSON object and arrays, as bytes that hold data and nothing that could run.

8 bytes   length of the JSON, little-endian
JSON      an object, and the names of the arrays in their order
the rest  arrays by name, as safetensors, which have none
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
_LENGTH = struct.Struct("<Q")


def packed(head: Mapping[str, Any], arrays: Mapping[str, Array] | None = None) -> bytes:
    """`head` as JSON with arrays behind it."""
    from safetensors.numpy import save

    text = json.dumps({"head": head, "names": [*(arrays or ())]}, allow_nan=False).encode()
    whole = {name: np.ascontiguousarray(array) for name, array in (arrays or {}).items()}
    return _LENGTH.pack(len(text)) + text + save(whole)


def unpacked(content: bytes) -> tuple[dict[str, Any], dict[str, Array]]:
    """What `packed` was given; the arrays may be written to.  Raises ValueError where the bytes are none of its."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        (length,) = _LENGTH.unpack_from(content)
        said = json.loads(content[_LENGTH.size : _LENGTH.size + length])
        loaded = load(content[_LENGTH.size + length :])
        head, arrays = dict(said["head"]), {str(name): np.array(loaded[name]) for name in said["names"]}
    except (struct.error, SafetensorError, ValueError, TypeError, KeyError) as problem:
        raise ValueError(f"what has come from another machine is damaged: {problem}") from problem
    return head, arrays


class UnitFailed(Exception):
    """A unit that cannot be done, wherever it is; the message says why, `lacks` whether for want of a package."""

    def __init__(self, message: str, lacks: str = "") -> None:
        super().__init__(message)
        self.lacks = lacks


def failure(message: str, lacks: str = "") -> bytes:
    """The answer of a unit that cannot be done."""
    return packed({"failed": message, "lacks": lacks})


def answered(content: bytes) -> tuple[dict[str, Any], dict[str, Array]]:
    """The answer of a unit.  Raises `UnitFailed` where it is a `failure`."""
    head, arrays = unpacked(content)
    if "failed" in head:
        raise UnitFailed(str(head["failed"]), str(head["lacks"]))
    return head, arrays


@dataclass(frozen=True, slots=True)
class Archive:
    """What units of one kind have in common, sent once to each worker: a density as loops with its data, or a program
    with its files."""

    content: bytes

    @property
    def digest(self) -> str:
        """SHA-256 in hexadecimal."""
        return hashlib.sha256(self.content).hexdigest()


def write_frame(file: IO[bytes], content: bytes) -> None:
    """Send bytes through a pipe, with their length in front."""
    file.write(_LENGTH.pack(len(content)))
    file.write(content)
    file.flush()


def read_frame(file: IO[bytes]) -> bytes | None:
    """The bytes of a frame; None where the pipe ends."""
    head = file.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    content = file.read(length)
    return content if len(content) == length else None
