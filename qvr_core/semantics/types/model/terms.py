"""Typed data types, what finite trees are made of, and encoders, which read them."""

from __future__ import annotations

from qvr_core.semantics.types.diagnostics import Origin
from qvr_core.semantics.types.model.arrows import EncoderBase
from qvr_core.semantics.types.model.expressions import Expr
from qvr_core.semantics.types.spaces import Named, Terms
from qvr_core.syntax.immutable import immutable_by_name


@immutable_by_name
class Constructor:
    """One way to make a term: its `arguments` are elements of sets and spaces; None is a term of the type itself."""

    name: str
    arguments: tuple[Named | None, ...]
    origin: Origin


@immutable_by_name
class DataType:
    """`data type Formula = atom(Name) | not(Formula)`: the finite trees that its constructors make."""

    name: str
    constructors: tuple[Constructor, ...]
    origin: Origin

    def constructor(self, name: str) -> Constructor | None:
        """The constructor of that name."""
        return next((one for one in self.constructors if one.name == name), None)

    @property
    def space(self) -> Named:
        """Its terms, as the domain of an arrow."""
        places = (tuple(None if one is None else one.space for one in each.arguments) for each in self.constructors)
        names = (one.name for one in self.constructors)
        return Named(Terms(self.name, tuple(zip(names, places, strict=True))), self.name)


@immutable_by_name
class EncoderCase:
    """`and(a, b) = combine(a, b)`: the code of a term of `constructor`, computed from its arguments, of which those
    that are terms stand for their codes."""

    constructor: str
    parameters: tuple[str, ...]
    body: Expr
    origin: Origin


@immutable_by_name
class Encoder(EncoderBase):
    """An arrow from terms, with a case for each constructor of the data type `type`."""

    type: str
    cases: tuple[EncoderCase, ...]


def constructor_text(one: Constructor, type_name: str) -> str:
    """`and(Formula, Formula)`; without parentheses where there are no arguments."""
    given = ", ".join(type_name if argument is None else argument.written for argument in one.arguments)
    return f"{one.name}({given})" if given else one.name
