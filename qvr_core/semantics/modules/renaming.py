"""A unit as it stands in another namespace: names replaced by what they are called there."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import fields, is_dataclass, replace
from typing import Any, cast

from qvr_core.semantics.file.references import unit_references
from qvr_core.syntax.tree.arithmetic import ArithCall, Comprehension, Field, MethodCall, Variable
from qvr_core.syntax.tree.arrows import ArrowCall, ArrowRef, PostfixExpr
from qvr_core.syntax.tree.declarations import (
    CompositionRule,
    DataTypeDecl,
    DecoderHeader,
    DeductionHeader,
    DefDecl,
    DefHeader,
    EncoderHeader,
    FamilyHeader,
    LetDecl,
    MorphismDecl,
    ObjectDecl,
    ProgramHeader,
    TransformationHeader,
)
from qvr_core.syntax.tree.names import Name, Span
from qvr_core.syntax.tree.objects import ObjectRef, Size
from qvr_core.syntax.tree.options import CallValue, Option, Word
from qvr_core.syntax.tree.steps import Draw, ReturnItem
from qvr_core.syntax.tree.units import Placed, Statement, Unit

# The field of a node that names something declared elsewhere.
_NAMED: dict[type[Any], str] = {
    ObjectRef: "name",
    ArrowRef: "name",
    ArrowCall: "func",
    Variable: "name",
    ArithCall: "func",
    Comprehension: "function",
    CallValue: "func",
    Draw: "name",
    ReturnItem: "name",
}
_DECLARING = (
    *(ObjectDecl, MorphismDecl, LetDecl, ProgramHeader),
    *(
        DefDecl,
        DefHeader,
        FamilyHeader,
        TransformationHeader,
        DataTypeDecl,
        EncoderHeader,
        DecoderHeader,
        DeductionHeader,
    ),
)


class Renaming:
    """What names are called elsewhere (`names`), and which words in front of a dot are prefixes of imports."""

    def __init__(self, names: Mapping[str, str], prefixes: Set[str] = frozenset()) -> None:
        self.names = names
        self.prefixes = prefixes
        self._units: dict[int, tuple[Unit[Any], Unit[Any]]] = {}
        self._choices: dict[int, tuple[Unit[Any], Unit[Any]]] = {}

    def unit(self, unit: Unit[Any], *, header: bool = False) -> Unit[Any]:
        """The unit with its names replaced; the same object where none is.  A `header` declares names as well."""
        known = self._units.get(id(unit))
        if known is None or known[0] is not unit:
            known = self._units[id(unit)] = (unit, self._renamed_unit(unit, header))
        return known[1]

    def _renamed_unit(self, unit: Unit[Any], header: bool) -> Unit[Any]:
        mentioned = unit_references(unit).names
        declared = {name.text for name in unit.declares} if header else set[str]()
        applied = {name: self.names[name] for name in (mentioned | declared) & self.names.keys()}
        dotted = self.prefixes & mentioned
        if not dotted and all(name == new for name, new in applied.items()):
            return unit
        marks = (*sorted(applied.items()), *((f"{prefix}.", "") for prefix in sorted(dotted)))
        node = self._node(unit.node, header)
        declares = tuple(self._name(name) for name in unit.declares) if header else unit.declares
        return replace(unit, node=node, declares=declares, renamed=marks)

    def statement(self, statement: Statement) -> Statement:
        """All units of a statement; the same object where nothing is replaced."""
        header = self._placed(statement.header)
        return statement if header is statement.header else replace(statement, header=header)

    def _placed(self, placed: Placed[Any], header: bool = True) -> Placed[Any]:
        unit = self.unit(placed.unit, header=header)
        children = tuple(self._placed(child, False) for child in placed.children)
        if children and isinstance(placed.unit.node, DecoderHeader):
            children = tuple(self._choice(child, placed.unit.node) for child in children)
        if unit is placed.unit and all(new is old for new, old in zip(children, placed.children, strict=True)):
            return placed
        return replace(placed, unit=unit, children=children)

    def _choice(self, placed: Placed[Any], header: DecoderHeader) -> Placed[Any]:
        """A line of a decoder: the one that is named like its type, and chooses a constructor, goes by the new name."""
        unit, type_ = placed.unit, header.codomain
        if not isinstance(unit.node, CompositionRule) or not isinstance(type_, ObjectRef):
            return placed
        new = self._name(unit.node.name)
        if unit.node.name.text != type_.name.text or new is unit.node.name:
            return placed
        known = self._choices.get(id(unit))
        if known is None or known[0] is not unit:
            made = replace(unit, node=replace(unit.node, name=new))
            known = self._choices[id(unit)] = (unit, made)
        return replace(placed, unit=known[1])

    # ---------------------------------------------------------------- nodes

    def _name(self, name: Name) -> Name:
        new = self.names.get(name.text, name.text)
        return name if name.quoted or new == name.text else Name(new, name.span)

    def _node(self, node: Any, header: bool = False) -> Any:
        if isinstance(node, tuple):
            items = cast("tuple[Any, ...]", node)
            new = tuple([self._node(item) for item in items])
            return items if all(a is b for a, b in zip(items, new, strict=True)) else new
        if isinstance(node, Name | Span) or not is_dataclass(node) or isinstance(node, type):
            return node
        if isinstance(node, Word):
            return node if node.text not in self.names else Word(self.names[node.text], node.span)
        if isinstance(node, Size):
            known = isinstance(node.value, str) and node.value in self.names
            return Size(self.names[str(node.value)], node.span) if known else node
        if isinstance(node, Option) and node.key.text == "role":
            return node
        joined = self._joined(node)
        if joined is not None:
            return self._node(joined)
        changes = {each.name: new for each in fields(node) if (new := self._field(node, each.name, header)) is not None}
        return replace(node, **changes) if changes else node

    def _field(self, node: Any, key: str, header: bool) -> Any:
        """The new value of a field; None where it stays."""
        old = getattr(node, key)
        if key == _NAMED.get(cast("type[Any]", type(node))):
            new = self._name(old)
        elif header and isinstance(node, _DECLARING) and key in ("name", "names"):
            new = tuple(self._name(each) for each in old) if isinstance(old, tuple) else self._name(old)  # pyright: ignore
        else:
            new = self._node(old)
        return None if new is old else new

    def _joined(self, node: Any) -> Any:
        """`l.block` as one name, where `l` is a prefix; None for any other node."""
        match node:
            case PostfixExpr(ArrowRef(prefix), attribute, args, span) if prefix.text in self.prefixes:
                name = _dotted(prefix, attribute)
                return ArrowRef(name) if args is None else ArrowCall(name, args, span)
            case Field(Variable(prefix), attribute) if prefix.text in self.prefixes:
                return Variable(_dotted(prefix, attribute))
            case MethodCall(Variable(prefix), attribute, args, span) if prefix.text in self.prefixes:
                return ArithCall(_dotted(prefix, attribute), args, span)
            case Draw(_, args, PostfixExpr(ArrowRef(prefix), attribute, None), span) if prefix.text in self.prefixes:
                return Draw(_dotted(prefix, attribute), args, None, span)
            case _:
                return None


def _dotted(prefix: Name, attribute: Name) -> Name:
    return Name(f"{prefix.text}.{attribute.text}", Span(prefix.span.start, attribute.span.end))
