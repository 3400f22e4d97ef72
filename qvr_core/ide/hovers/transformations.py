"""Transformations in words: what they map, and what they keep."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qvr_core.ide.descriptions import documentation
from qvr_core.ide.prose import Code, Heading, Prose, prose
from qvr_core.ide.symbols import Symbol
from qvr_core.ide.view import model_of
from qvr_core.semantics.language.transformations import KEEPS, TRANSFORMATIONS

if TYPE_CHECKING:
    from qvr_core.analysis import Snapshot


def transformation_text(snapshot: Snapshot, symbol: Symbol) -> Prose:
    """A transformation that the file declares or imports."""
    held = model_of(snapshot).transformations.get(symbol.name)
    if held is None:
        return prose(f"transformation `{symbol.name}`")
    head = f"transformation {held.name} : {held.source} => {held.target} as {held.keeps}"
    return prose(Code(head), documentation(snapshot, symbol), f"A {held.keeps}: it {KEEPS[held.keeps]}.")


def builtin_transformation_text(name: str) -> Prose:
    """A transformation that comes with the language."""
    held = TRANSFORMATIONS[name]
    pairs = ", ".join(f"`{source}` to `{target}`" for source, target in held.pairs)
    article = "a" if held.keeps[0] not in "aeiou" else "an"
    return prose(
        Heading(name, f" (a transformation): {held.says}."),
        f"From {pairs}.",
        f"It is {article} {held.keeps}: it {KEEPS[held.keeps]}.",
    )
