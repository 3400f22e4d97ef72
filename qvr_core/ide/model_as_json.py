"""The typed model as plain JSON values (`qvr/model`).

Every node is an object with its class under `node` and its fields by name; enumerations are their values; an `origin`
is replaced by the `range` that it stands for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from typing import Any, cast

from qvr_core.semantics.programs.parameter_count import Budget, parameter_count
from qvr_core.semantics.types.diagnostics import Origin
from qvr_core.semantics.types.model.arrows import Sort
from qvr_core.semantics.types.model.file import Model
from qvr_core.semantics.types.spaces import Finite, Product, Space

Locate = Callable[[Origin], Any]
"""Turns a place into what the receiver understands, or None where it is gone."""


Json = dict[str, Any]

MOST_FACTORS = 16
"""Factors of one product that are written out."""

MOST_VISITED = 200_000
"""Arrows that are looked at to count the parameters of all declarations; those that are left have no count."""


def model_json(model: Model, locate: Locate, finish: Callable[[Any], Any] = lambda made: made) -> Json:
    """All declarations by name, with their parameter counts.

    `finish` is applied to each declaration as soon as it is made: a file may hold more of them than should ever be
    there at once.
    """
    budget = Budget(MOST_VISITED)

    def declared(group: str, name: str, value: Any) -> Any:
        made = _value(value, locate)
        if group in ("lets", "programs"):
            arrow = model.lets[name].arrow if group == "lets" else model.programs[name]
            made["parameters"] = parameter_count(model, arrow, budget)
        return finish(made)

    found: Json = {"node": type(model).__name__}
    for field in fields(model):
        value = getattr(model, field.name)
        if isinstance(value, Mapping):
            names = cast(Mapping[str, Any], value)
            found[field.name] = {str(name): declared(field.name, str(name), item) for name, item in names.items()}
        else:
            found[field.name] = finish(_value(value, locate))
    return found


def _product(space: Product, locate: Locate) -> Json:
    """A product with its factors; of a large one the first, and how many there are."""
    head = space.head[:MOST_FACTORS]
    made = {"node": "Product", "factors": [_value(factor, locate) for _, factor in head], "names": [n for n, _ in head]}
    return made if space.count == len(head) else {**made, "count": space.count}


def _plain(part: Space) -> Space:
    """A part of a coproduct without the parts that it has itself."""
    return replace(part, parts=None) if isinstance(part, Finite) else part


def _value(value: Any, locate: Locate) -> Any:
    if isinstance(value, Origin):
        return locate(value)
    if isinstance(value, Sort):
        return value.name.lower()
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Product):
        return _product(value, locate)
    if isinstance(value, Finite) and value.parts is not None:
        return {**_value(replace(value, parts=None), locate), "parts": [_value(_plain(p), locate) for p in value.parts]}
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
