"""What a function of the subset becomes: the operations that a printer of some machine's code has.

A `Value` is used once, in the order in which values were asked for, unless it is `shared` or `held`: a printer
may have only noted what computes it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from qvr_core.codegen.kinds import Kind, Value

INSTRUCTIONS = frozenset(("sqrt", "floor", "ceil", "copysign", "fabs"))
"""Functions of real numbers that every machine has."""


class Target(Protocol):
    """One function while it grows.  Operations of two numbers take two of one kind."""

    ended: bool
    """Whether what follows is never reached."""

    def constant(self, value: float) -> Value:
        """A number that is known."""
        ...

    def arithmetic(self, name: str, one: Value, other: Value, *, bounded: bool = False) -> Value:
        """`add`, `sub`, `mul`, and `div` of real numbers; `bounded`: a sum of whole ones does not overflow."""
        ...

    def bits(self, name: str, one: Value, other: Value) -> Value:
        """`shl`, `ashr`, `lshr`, `and`, `or`, `xor`, and C's `srem` and `sdiv`, of whole numbers."""
        ...

    def negative(self, value: Value) -> Value: ...

    def compared(self, name: str, one: Value, other: Value) -> Value:
        """`eq`, `ne`, `lt`, `le`, `gt`, `ge`."""
        ...

    def joined(self, name: str, one: Value, other: Value) -> Value:
        """`and`, `or` of truths that are both there."""
        ...

    def shortened(self, all_of: bool, parts: Sequence[Callable[[], Value]]) -> Value:
        """`and`, `or` of truths of which the later are looked at where they count."""
        ...

    def inverted(self, truth: Value) -> Value: ...

    def is_true(self, value: Value) -> Value: ...

    def is_nan(self, value: Value) -> Value: ...

    def is_infinite(self, value: Value) -> Value: ...

    def selected(self, truth: Value, one: Value, other: Value) -> Value:
        """One of two numbers that are both there."""
        ...

    def either(self, test: Callable[[], Value], yes: Callable[[], Value], no: Callable[[], Value]) -> Value:
        """One of two numbers, of which only that is computed; of the wider kind."""
        ...

    def extreme(self, order: str, one: Value, other: Value) -> Value:
        """Python's `min` (`lt`) and `max` (`gt`)."""
        ...

    def function(self, name: str, arguments: list[Value]) -> Value:
        """A function of `math` by C's name."""
        ...

    def real(self, value: Value) -> Value: ...

    def converted(self, value: Value, kind: str) -> Value: ...

    def as_real(self, bits: Value) -> Value: ...

    def as_bits(self, real: Value) -> Value: ...

    def shared(self, value: Value) -> Value:
        """A value to be used more than once within the expression."""
        ...

    def held(self, value: Value) -> Value:
        """A value as it is now, between statements, to be used as often as wanted after others."""
        ...

    def variable(self, name: str, kind: Kind) -> Value:
        """A place for values of a kind."""
        ...

    def read(self, held: Value) -> Value: ...

    def write(self, held: Value, value: Value) -> None: ...

    def at(self, element: str, pointer: Any, index: Value) -> Any:
        """The place of an element behind a pointer."""
        ...

    def pointer(self, place: Any) -> Any:
        """A place as the part of an array that points to its first number."""
        ...

    def loaded(self, place: Any, element: str) -> Value: ...

    def stored(self, place: Any, element: str, value: Value) -> None: ...

    def table(self, name: str) -> Any:
        """The pointer to a table of the module."""
        ...

    def lane(self) -> Value:
        """Room for the numbers of a block."""
        ...

    def call(self, name: str, result: str, arguments: Sequence[Value]) -> Value: ...

    def dropped(self, value: Value) -> None:
        """What a statement leaves over."""
        ...

    def density(self, address: Value, arrays: Sequence[Value]) -> Value:
        """A call of the density at an address."""
        ...

    def next_bits(self, generator: Value) -> Value: ...

    def when(self, test: Callable[[], Value], yes: Callable[[], None], no: Callable[[], None] | None) -> None: ...

    def repeated(self, test: Callable[[], Value], body: Callable[[], None]) -> None: ...

    def counted(self, start: Value, stop: Value, step: int, body: Callable[[Value], None], *, few: bool) -> None:
        """A loop over `range`; `few`: it may be written out."""
        ...

    def onwards(self) -> None:
        """`continue`."""
        ...

    def broken(self) -> None:
        """`break`."""
        ...

    def given(self, kind: str, value: Value | None) -> None:
        """`return`."""
        ...
