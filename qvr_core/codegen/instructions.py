"""Single instructions for what `intrinsics` and a few builtins mean."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from qvr_core.codegen import intrinsics
from qvr_core.codegen.kinds import REAL, WHOLE, Value
from qvr_core.codegen.target import Target


def _as_real(to: Target, bits: Value) -> Value:
    return to.as_real(bits)


def _as_bits(to: Target, real: Value) -> Value:
    return to.as_bits(to.real(real))


def _lane(to: Target) -> Value:
    return to.lane()


def _call_density(to: Target, address: Value, *arrays: Value) -> Value:
    return to.density(address, arrays)


def _next_bits(to: Target, generator: Value) -> Value:
    return to.next_bits(generator)


def _logical_shift(to: Target, bits: Value, by: Value) -> Value:
    return to.bits("lshr", bits, by)


def _abs(to: Target, value: Value) -> Value:
    if value.kind == REAL:
        return to.function("fabs", [value])
    whole = to.shared(to.converted(value, WHOLE))
    return to.extreme("gt", whole, to.negative(whole))


def _to_real(to: Target, value: Value) -> Value:
    return to.real(value)


def _to_whole(to: Target, value: Value) -> Value:
    return to.converted(value, WHOLE)


def _smaller(to: Target, one: Value, other: Value) -> Value:
    return to.extreme("lt", one, other)


def _larger(to: Target, one: Value, other: Value) -> Value:
    return to.extreme("gt", one, other)


INSTRUCTIONS: dict[Any, Callable[..., Value]] = {
    intrinsics.as_real: _as_real, intrinsics.as_bits: _as_bits, intrinsics.lane: _lane,
    intrinsics.call_density: _call_density, intrinsics.next_bits: _next_bits,
    intrinsics.logical_shift: _logical_shift, abs: _abs, float: _to_real, int: _to_whole, min: _smaller, max: _larger,
}  # fmt: skip
"""How each is written."""
BUILTINS: dict[str, Any] = {"abs": abs, "float": float, "int": int, "min": min, "max": max}
"""Those of Python that the subset has."""
