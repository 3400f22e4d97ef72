"""Completion of data types, and of the cases of an encoder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qvr_core.ide.answers import Completion
from qvr_core.ide.completion.context import Context
from qvr_core.ide.completion.offers import BEST, Items
from qvr_core.ide.view import model_of
from qvr_core.semantics.types.model.terms import constructor_text
from qvr_core.syntax.tree.declarations import CompositionRule, EncoderHeader
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
    if statement is None or not isinstance(node, EncoderHeader) or not isinstance(node.domain, ObjectRef):
        return
    held = model_of(snapshot).data_types.get(node.domain.name.text)
    cases = [child.unit.node for child in statement.header.children]
    written = {case.name.text for case in cases if isinstance(case, CompositionRule)}
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
