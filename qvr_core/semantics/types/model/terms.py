"""Typed data types, what finite trees are made of, encoders, which read them, and decoders, which make them."""

from __future__ import annotations

from qvr_core.semantics.types.diagnostics import Origin
from qvr_core.semantics.types.model.arrows import TermArrowBase
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
        return Named(self.terms(), self.name)

    def terms(self, depth: int | None = None) -> Terms:
        """Its terms of at most `depth` levels, where that is not None."""
        places = (tuple(None if one is None else one.space for one in each.arguments) for each in self.constructors)
        names = (one.name for one in self.constructors)
        return Terms(self.name, tuple(zip(names, places, strict=True)), depth)


@immutable_by_name
class EncoderCase:
    """`and(a, b) = combine(a, b)`: the code of a term of `constructor`, made from its arguments, of which those that
    are terms stand for their codes.  Sampled arrows that the body applies are drawn from, once for each node."""

    constructor: str
    parameters: tuple[str, ...]
    body: Expr
    origin: Origin


@immutable_by_name
class Encoder(TermArrowBase):
    """An arrow from terms, with a case for each constructor of the data type `type`."""

    type: str
    cases: tuple[EncoderCase, ...]


@immutable_by_name
class DecoderCase:
    """`and(h) = (left(h), right(h))`: what stands at the places of a term of `constructor` that is made from `state`:
    the state of a tree, or a kernel applied to arguments, which an element or number is drawn from."""

    constructor: str
    state: str
    places: tuple[Expr, ...]
    origin: Origin


@immutable_by_name
class Decoder(TermArrowBase):
    """An arrow to terms of the data type `type` of at most `depth` levels.

    `choice` names the state and the kernel that chooses a constructor, whose place in the type is that of the chosen
    element in `order`; None where there is one constructor alone.
    """

    type: str
    depth: int
    choice: DecoderCase | None
    order: tuple[int, ...]
    cases: tuple[DecoderCase, ...]


def constructor_text(one: Constructor, type_name: str) -> str:
    """`and(Formula, Formula)`; without parentheses where there are no arguments."""
    given = ", ".join(type_name if argument is None else argument.written for argument in one.arguments)
    return f"{one.name}({given})" if given else one.name
