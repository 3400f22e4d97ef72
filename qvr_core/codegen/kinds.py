"""Kinds of values in compiled functions, and values as a target knows them."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

REAL, SINGLE, WHOLE, TRUTH, NOTHING = "double", "float", "i64", "i1", "void"
ORDER = (TRUTH, WHOLE, REAL)


class Unsupported(Exception):
    """What the subset does not have; says where."""


@dataclass(frozen=True, slots=True)
class Array:
    """Numbers row by row: a pointer and the `rank` extents; of rank 0 a bare pointer."""

    element: str
    rank: int


Kind = str | Array


@dataclass(frozen=True, slots=True)
class Value:
    """What an expression has become: names of LLVM values, or WebAssembly's trees, more than one for an array;
    `constant` where it is known."""

    kind: Kind
    parts: tuple[Any, ...]
    constant: float | None = None

    @property
    def text(self) -> Any:
        """The one value of a number."""
        return self.parts[0]


def types_of(kind: Kind) -> list[str]:
    """LLVM's types of the parts of a value."""
    return ["ptr", *([WHOLE] * kind.rank)] if isinstance(kind, Array) else [kind]


def number(value: Value) -> str:
    """The kind of a value that is a number."""
    if isinstance(value.kind, Array) or value.kind not in ORDER:
        raise Unsupported(f"{value.kind} as a number")
    return value.kind


def wider(*kinds: str) -> str:
    """The kind that holds numbers of all."""
    return max(kinds, key=ORDER.index)


def constant(value: float) -> Value:
    """A number that is known."""
    kind = TRUTH if isinstance(value, bool) else WHOLE if isinstance(value, int) else REAL
    return Value(kind, (literal(value),), value)


def literal(value: float) -> str:
    """A number as LLVM's text has it, to the last bit."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    return f"0x{struct.unpack('>Q', struct.pack('>d', value))[0]:016X}"
