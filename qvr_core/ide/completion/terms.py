"""Completion of data types, and of the cases of an encoder or a decoder."""

from __future__ import annotations

from collections.abc import Set
from typing import TYPE_CHECKING

from qvr_core.ide.answers import Completion
from qvr_core.ide.completion.context import Context
from qvr_core.ide.completion.offers import BEST, Items
from qvr_core.ide.view import model_of
from qvr_core.semantics.types.model.terms import DataType, constructor_text
from qvr_core.syntax.tree.declarations import CompositionRule, DecoderHeader, EncoderHeader
from qvr_core.syntax.tree.objects import ObjectRef

if TYPE_CHECKING:
    from qvr_core.analysis import Snapshot


def types_offered(snapshot: Snapshot) -> Items:
    """The data types of the file."""
    for name, held in model_of(snapshot).data_types.items():
        yield Completion(name, "enum", " | ".join(one.name for one in held.constructors), rank=BEST)


def cases_offered(snapshot: Snapshot, place: Context) -> Items:
    """The constructors that have no case yet, each with names for its arguments."""
    statement = place.statement
    node = None if statement is None else statement.header.unit.node
    if statement is None or not isinstance(node, EncoderHeader | DecoderHeader):
        return
    type_ = node.domain if isinstance(node, EncoderHeader) else node.codomain
    held = model_of(snapshot).data_types.get(type_.name.text) if isinstance(type_, ObjectRef) else None
    cases = [child.unit.node for child in statement.header.children]
    written = {case.name.text for case in cases if isinstance(case, CompositionRule)}
    if held is not None and isinstance(node, DecoderHeader):
        yield from _decoder_cases(held, written)
        return
    for one in () if held is None else held.constructors:
        if one.name not in written and held is not None:
            names = [
                f"${{{at}:{'abcdefghijklmnopqrstuvwxyz'[(at - 1) % 26]}}}" for at in range(1, len(one.arguments) + 1)
            ]
            listed = f"({', '.join(names)})" if names else ""
            text = f"{one.name}{listed} = $0"
            yield Completion(
                one.name, "property", constructor_text(one, held.name), insert=text, snippet=True, rank=BEST
            )


def _decoder_cases(held: DataType, written: Set[str]) -> Items:
    """What chooses a constructor, and the constructors with something below them, that have no case yet."""
    if held.name not in written and len(held.constructors) > 1:
        yield Completion(
            held.name, "property", "chooses a constructor", insert=f"{held.name}(h) = $0", snippet=True, rank=BEST
        )
    for one in held.constructors:
        if one.arguments and one.name not in written:
            below = ", ".join(f"${at}" for at in range(1, len(one.arguments) + 1))
            text = f"{one.name}(h) = {below}" if len(one.arguments) == 1 else f"{one.name}(h) = ({below})"
            detail = constructor_text(one, held.name)
            yield Completion(one.name, "property", detail, insert=text, snippet=True, rank=BEST)
