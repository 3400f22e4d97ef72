"""What compiled functions call that is no function of the subset: single instructions, here as Python would do them."""

from __future__ import annotations

import ctypes
import struct
from typing import Any

BLOCK = 256
"""Numbers of a lane: rows that are worked on at once stay in the nearest cache."""

DENSITY = ctypes.CFUNCTYPE(ctypes.c_double, *([ctypes.c_void_p] * 5))
NEXT = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_void_p)


def as_real(bits: int) -> float:
    """The number of which the bits are given."""
    return struct.unpack("<d", struct.pack("<q", bits))[0]


def as_bits(real: float) -> int:
    """The bits of a number."""
    return struct.unpack("<q", struct.pack("<d", real))[0]


def lane() -> list[float]:
    """Room for the numbers of one block on the stack, which nothing else can point to."""
    return [float("nan")] * BLOCK


def logical_shift(bits: int, by: int) -> int:
    """The bits moved down, zeros above them."""
    return (bits & 0xFFFFFFFFFFFFFFFF) >> by


def call_density(address: int, q: Any, g: Any, w: Any, d: Any, k: Any) -> float:
    """The density at an address: value of q, gradient into g."""
    return DENSITY(address)(*(array.ctypes.data for array in (q, g, w, d, k)))


def next_bits(generator: Any) -> int:
    """The next 64 random bits of a generator (`generator.handle`), as a signed number."""
    bits = NEXT(int(generator[0]))(int(generator[1]))
    return bits - (1 << 64) if bits >> 63 else bits
