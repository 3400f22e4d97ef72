"""The typed model as plain JSON values (`qvr/model`).

Every node is an object with its class under `node` and its fields by name; enumerations are their values; an `origin`
is replaced by the `range` that it stands for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, cast

from qvr_core.ide.arrows import parameter_count
from qvr_core.semantics.diagnostics import Origin
from qvr_core.semantics.model import Model, Sort

Locate = Callable[[Origin], Any]
"""Turns a place into what the receiver understands, or None where it is gone."""


def model_json(model: Model, locate: Locate) -> dict[str, Any]:
    """All declarations by name, with their parameter counts."""
    made = cast(dict[str, Any], _value(model, locate))
    for group in ("lets", "programs"):
        for name, entry in made[group].items():
            arrow = model.lets[name].arrow if group == "lets" else model.programs[name]
            entry["parameters"] = parameter_count(model, arrow)
    return made


def _value(value: Any, locate: Locate) -> Any:
    if isinstance(value, Origin):
        return locate(value)
    if isinstance(value, Sort):
        return value.name.lower()
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in fields(value)]
        made = {"range" if name == "origin" else name: _value(getattr(value, name), locate) for name in names}
        return {"node": type(value).__name__, **made}
    if isinstance(value, Mapping):
        return {str(key): _value(item, locate) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if isinstance(value, (tuple, list, frozenset, set)):
        items = sorted(value, key=str) if isinstance(value, (frozenset, set)) else value  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        return [_value(item, locate) for item in items]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, int) and not isinstance(value, bool):
        return int(value)  # a size that knows the form it came from is a number to everybody else
    return value
