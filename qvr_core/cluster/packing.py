"""What crosses between machines: a JSON object and arrays, as bytes that hold data and nothing that could run.

8 bytes   length of the JSON, little-endian
JSON      an object
the rest  arrays by name, as safetensors
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

from qvr_core.narrowing import is_mapping

Array = NDArray[Any]
_LENGTH = struct.Struct("<Q")


def packed(head: Mapping[str, Any], arrays: Mapping[str, Array] | None = None) -> bytes:
    """`head` as JSON with arrays behind it."""
    from safetensors.numpy import save

    text = json.dumps(head, allow_nan=False).encode()
    whole = {name: np.ascontiguousarray(array) for name, array in (arrays or {}).items()}
    return _LENGTH.pack(len(text)) + text + save(whole)


def unpacked(content: bytes) -> tuple[dict[str, Any], dict[str, Array]]:
    """What `packed` was given; the arrays may be written to.  Raises ValueError where the bytes are none of its."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        (length,) = _LENGTH.unpack_from(content)
        head = json.loads(content[_LENGTH.size : _LENGTH.size + length])
        arrays = {name: np.array(array) for name, array in load(content[_LENGTH.size + length :]).items()}
    except (struct.error, SafetensorError, ValueError) as problem:
        raise ValueError(f"what has come from another machine is damaged: {problem}") from problem
    if not is_mapping(head):
        raise ValueError("what has come from another machine is damaged: it is no JSON object")
    return dict(head), arrays


class UnitFailed(Exception):
    """A unit that cannot be done, wherever it is; the message says why."""


def failure(message: str) -> bytes:
    """The answer of a unit that cannot be done."""
    return packed({"failed": message})


def answered(content: bytes) -> tuple[dict[str, Any], dict[str, Array]]:
    """The answer of a unit.  Raises `UnitFailed` where it is a `failure`."""
    head, arrays = unpacked(content)
    if "failed" in head:
        raise UnitFailed(str(head["failed"]))
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
