"""The builtin functions of arithmetic (docs/reference.md#functions), read from the records of `qvr_core.operations`.

Pointwise functions, reductions over the last axis and activations carry torch's own names and mean what they mean
there; `over` names the axis by its set instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from qvr_core.operations.operation import BuiltinFunction
from qvr_core.operations.table import OPERATIONS, nodes

_BY_NAME = {name: each.function for name, each in OPERATIONS.items() if each.function is not None}

ALIASES: Mapping[str, str] = dict(
    sorted((alias, name) for name, function in _BY_NAME.items() for alias in function.aliases)
)
"""Other names of functions, and the names that the tables know them by; none of them is reserved."""

BUILTINS: Mapping[str, BuiltinFunction] = _BY_NAME | {
    alias: replace(_BY_NAME[name], name=alias, reserved=False) for alias, name in ALIASES.items()
}
"""Every builtin function by each of its names."""

OPERATORS: Mapping[str, str] = {each.sign: name for name, each in OPERATIONS.items() if each.sign}
"""The model's name of each infix operator (`Builtin.function`)."""

COMPARISONS = nodes("comparison")


def canonical(name: str) -> str:
    """The name that the tables know a function by."""
    return ALIASES.get(name, name)


def arity_words(function: BuiltinFunction) -> str:
    """'1 argument', '2 or 3 arguments', 'at least 1 argument'."""
    if function.most is None:
        return f"at least {_count(function.least)}"
    if function.least == function.most:
        return _count(function.least)
    joint = "or" if function.most == function.least + 1 else "to"
    return f"{function.least} {joint} {_count(function.most)}"


def _count(number: int) -> str:
    return f"{number} argument" if number == 1 else f"{number} arguments"
