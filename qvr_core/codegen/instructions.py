"""Single instructions for what `intrinsics` and a few builtins mean."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from qvr_core.codegen import intrinsics
from qvr_core.codegen.kinds import REAL, WHOLE, Array, Value
from qvr_core.codegen.lines import Lines


def _as_real(lines: Lines, bits: Value) -> Value:
    return Value(REAL, (lines.made(f"bitcast i64 {bits.text} to double"),))


def _as_bits(lines: Lines, real: Value) -> Value:
    return Value(WHOLE, (lines.made(f"bitcast double {lines.real(real).text} to i64"),))


def _lane(lines: Lines) -> Value:
    place = lines.fresh("lane")
    lines.stack.append(f"{place} = alloca [{intrinsics.BLOCK} x double], align 64")
    return Value(Array(REAL, 0), (place,))


def _call_density(lines: Lines, address: Value, *arrays: Value) -> Value:
    function = lines.made(f"inttoptr i64 {address.text} to ptr")
    given = ", ".join(f"ptr {array.text}" for array in arrays)
    return Value(REAL, (lines.made(f"call double {function}({given})"),))


def _next_bits(lines: Lines, generator: Value) -> Value:
    """The first number of a generator is the address of a C function, the second that of its state."""
    function = lines.made(f"load ptr, ptr {generator.text}")
    state = lines.made(f"load ptr, ptr {lines.at(WHOLE, generator.text, '1')}")
    return Value(WHOLE, (lines.made(f"call i64 {function}(ptr {state})"),))


def _logical_shift(lines: Lines, bits: Value, by: Value) -> Value:
    return Value(WHOLE, (lines.made(f"lshr i64 {bits.text}, {by.text}"),))


def _abs(lines: Lines, value: Value) -> Value:
    if value.kind == REAL:
        return lines.foreign("llvm.fabs.f64", [value])
    whole = lines.converted(value, WHOLE)
    return lines.extreme("gt", whole, Value(WHOLE, (lines.made(f"sub i64 0, {whole.text}"),)))


def _to_real(lines: Lines, value: Value) -> Value:
    return lines.real(value)


def _to_whole(lines: Lines, value: Value) -> Value:
    return lines.converted(value, WHOLE)


def _smaller(lines: Lines, one: Value, other: Value) -> Value:
    return lines.extreme("lt", one, other)


def _larger(lines: Lines, one: Value, other: Value) -> Value:
    return lines.extreme("gt", one, other)


INSTRUCTIONS: dict[Any, Callable[..., Value]] = {
    intrinsics.as_real: _as_real, intrinsics.as_bits: _as_bits, intrinsics.lane: _lane,
    intrinsics.call_density: _call_density, intrinsics.next_bits: _next_bits,
    intrinsics.logical_shift: _logical_shift, abs: _abs, float: _to_real, int: _to_whole, min: _smaller, max: _larger,
}  # fmt: skip
"""How each is written."""
BUILTINS: dict[str, Any] = {"abs": abs, "float": float, "int": int, "min": min, "max": max}
"""Those of Python that the subset has."""
