"""Immutable dataclasses without the price of frozen ones.

`frozen=True` stores each field by a call of `object.__setattr__`: the tree and the model are most of what an analysis
makes, and so a tenth of every keystroke went there.  Pyright sees frozen classes here, and refuses an assignment.

There are some 300 of them, and `dataclass` compiles a text for each of the four methods: more than a third of the time
that the checker takes to be imported.  Only `__init__` is worth a text of its own, and it is compiled for the first
instance: a command makes instances of half of the classes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, Field, dataclass, field, fields
from operator import attrgetter
from reprlib import recursive_repr
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def immutable(cls: type[T]) -> type[T]:
    """A dataclass with slots that is compared and hashed by its fields."""
    return _with_methods(dataclass(slots=True, init=False, repr=False, eq=False)(cls))


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def immutable_by_name(cls: type[T]) -> type[T]:
    """The same, built by keyword arguments alone."""
    return _with_methods(dataclass(slots=True, init=False, repr=False, eq=False, kw_only=True)(cls))


def _with_methods(cls: type[T]) -> type[T]:
    """The class with the methods of a dataclass, but for those of its own."""
    compared = [one.name for one in fields(cls) if one.compare]  # pyright: ignore[reportArgumentType]
    # one attribute alone would be no tuple, whose elements are equal where they are the same object, as NaN is
    values: Callable[[T], object] = attrgetter(*compared, compared[0]) if compared else lambda one: ()

    def equal(self: T, other: object) -> bool:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented  # pyright: ignore

    def hashed(self: T) -> int:
        return hash(values(self))

    def first(self: T, *args: object, **named: object) -> None:
        cls.__init__ = _compiled_init(cls)
        cls.__init__(self, *args, **named)

    for name, method in (("__init__", first), ("__eq__", equal), ("__hash__", hashed), ("__repr__", _written)):
        if cls.__dict__.get(name) is None:
            setattr(cls, name, method)
    return cls


def _compiled_init(cls: type) -> Callable[..., None]:
    """The `__init__` that `dataclass` would have compiled."""
    globals_: dict[str, object] = {"MISSING": MISSING}
    each: tuple[Field[object], ...] = fields(cls)
    by_name = [_parameter(one, globals_) for one in each if one.init and one.kw_only]
    parameters = [_parameter(one, globals_) for one in each if one.init and not one.kw_only]
    lines = [f"self.{one.name} = {value}" for one in each if (value := _value(one, globals_)) is not None]
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    starred = ["*", *by_name] if by_name else []
    text = f"def __init__({', '.join(('self', *parameters, *starred))}):\n    " + "\n    ".join(lines or ["pass"])
    made: dict[str, Callable[..., None]] = {}
    exec(text, globals_, made)
    init = made["__init__"]
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    return init


def _parameter(one: Field[object], globals_: dict[str, object]) -> str:
    if one.default_factory is not MISSING:
        return f"{one.name}=MISSING"
    if one.default is MISSING:
        return one.name
    globals_[f"default_{one.name}"] = one.default
    return f"{one.name}=default_{one.name}"


def _value(one: Field[object], globals_: dict[str, object]) -> str | None:
    """What is assigned to a field; nothing where it is no parameter and has no default."""
    if one.default_factory is not MISSING:
        globals_[f"make_{one.name}"] = one.default_factory
        made = f"make_{one.name}()"
        return f"{made} if {one.name} is MISSING else {one.name}" if one.init else made
    if one.init:
        return one.name
    if one.default is MISSING:
        return None
    globals_[f"default_{one.name}"] = one.default
    return f"default_{one.name}"


@recursive_repr()
def _written(self: object) -> str:
    pairs = (f"{one.name}={getattr(self, one.name)!r}" for one in fields(self) if one.repr)  # pyright: ignore[reportArgumentType]
    return f"{self.__class__.__qualname__}({', '.join(pairs)})"
