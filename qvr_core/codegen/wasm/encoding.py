"""A WebAssembly module as bytes (WebAssembly Core Specification 2.0, section 5)."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

I32, I64, F32, F64, VOID = 0x7F, 0x7E, 0x7D, 0x7C, 0x40
HEAD = b"\0asm\1\0\0\0"
TYPE, FUNCTION, MEMORY, GLOBAL, EXPORT, CODE, DATA = 1, 3, 5, 6, 7, 10, 11
PAGE = 65536
END = b"\x0b"


def unsigned(number: int) -> bytes:
    """LEB128."""
    made = bytearray()
    while True:
        number, low = number >> 7, number & 0x7F
        if not number:
            made.append(low)
            return bytes(made)
        made.append(low | 0x80)


def signed(number: int) -> bytes:
    """LEB128 of a number that may be negative."""
    made = bytearray()
    while True:
        number, low = number >> 7, number & 0x7F
        if (number == 0 and not low & 0x40) or (number == -1 and low & 0x40):
            made.append(low)
            return bytes(made)
        made.append(low | 0x80)


def i32(number: int) -> bytes:
    """The instruction that gives a whole number of 32 bits."""
    return b"\x41" + signed(number)


def i64(number: int) -> bytes:
    """The instruction that gives a whole number; what does not fit is taken as its 64 bits."""
    return b"\x42" + signed((number + (1 << 63)) % (1 << 64) - (1 << 63))


def f64(number: float) -> bytes:
    """The instruction that gives a real number."""
    return b"\x44" + struct.pack("<d", number)


def vector(parts: Sequence[bytes]) -> bytes:
    """How many, and then they."""
    return unsigned(len(parts)) + b"".join(parts)


def section(number: int, parts: Sequence[bytes]) -> bytes:
    """A section of a vector; nothing where it is empty."""
    if not parts:
        return b""
    body = vector(parts)
    return bytes([number]) + unsigned(len(body)) + body


@dataclass(frozen=True, slots=True)
class Function:
    """A function: the number of its type, the types of its locals behind the arguments, its instructions."""

    type: int
    locals: Sequence[int]
    code: bytes

    def encoded(self) -> bytes:
        """Its entry among the code."""
        runs: list[list[int]] = []
        for one in self.locals:
            if runs and runs[-1][1] == one:
                runs[-1][0] += 1
            else:
                runs.append([1, one])
        body = vector([unsigned(count) + bytes([one]) for count, one in runs]) + self.code + END
        return unsigned(len(body)) + body


def name(text: str) -> bytes:
    """A name."""
    encoded = text.encode()
    return unsigned(len(encoded)) + encoded


def module(
    types: Iterable[tuple[Sequence[int], Sequence[int]]],
    functions: Sequence[Function],
    exports: Sequence[tuple[str, int]],
    data: Sequence[tuple[int, bytes]],
    used: int,
) -> bytes:
    """A module with one memory, of which `used` bytes from 0 on are its own; it exports `memory`, `heap` (where the
    rest begins) and functions by number.  `data` are bytes at addresses."""
    pages = unsigned(-(-used // PAGE) or 1)
    named = [(name("memory"), b"\x02\0"), (name("heap"), b"\x03\0")]
    named += [(name(text), b"\0" + unsigned(number)) for text, number in exports]
    return b"".join((
        HEAD,
        section(TYPE, [b"\x60" + vector([bytes([o]) for o in of]) + vector([bytes([g]) for g in give])
                       for of, give in types]),
        section(FUNCTION, [unsigned(function.type) for function in functions]),
        section(MEMORY, [b"\0" + pages]),
        section(GLOBAL, [bytes([I32, 0]) + i32(used) + END]),
        section(EXPORT, [text + what for text, what in named]),
        section(CODE, [function.encoded() for function in functions]),
        section(DATA, [b"\0" + i32(at) + END + unsigned(len(held)) + held for at, held in data]),
    ))  # fmt: skip
