"""Completion of compositions, and of the transformations that map the weights of an arrow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qvr_core.ide.answers import Completion
from qvr_core.ide.completion.context import Context
from qvr_core.ide.completion.offers import BEST, GOOD, Items
from qvr_core.ide.view import model_of
from qvr_core.semantics.language.compositions import BUILTIN_COMPOSITIONS, COMPOSITION
from qvr_core.semantics.language.transformations import TRANSFORMATIONS
from qvr_core.semantics.scope.scope import ArrowEntry

if TYPE_CHECKING:
    from qvr_core.analysis import Snapshot


def compositions_offered(snapshot: Snapshot) -> Items:
    """The compositions of the file, then those of the language."""
    for name in snapshot.entries:
        if name.startswith(COMPOSITION) and name.removeprefix(COMPOSITION) not in BUILTIN_COMPOSITIONS:
            yield Completion(name.removeprefix(COMPOSITION), "module", "a composition of this file", rank=BEST)
    yield from (Completion(name, "module", says, rank=GOOD) for name, says in BUILTIN_COMPOSITIONS.items())


def transformations_offered(snapshot: Snapshot, place: Context) -> Items:
    """What may stand in `f.change_base(…)`: where the algebra of f is known, only what maps its weights."""
    before = [token.text for token in place.tokens]
    at = len(before) - before[::-1].index("change_base") - 1 if "change_base" in before else 0
    entry = snapshot.entries.get(before[at - 2]) if at >= 2 else None
    source = entry.algebra if isinstance(entry, ArrowEntry) else None
    for name, own in model_of(snapshot).transformations.items():
        if source in (None, own.source):
            yield Completion(name, "function", f"{own.source} => {own.target}", rank=BEST)
    for name, held in TRANSFORMATIONS.items():
        if source is None or held.targets(source):
            yield Completion(name, "function", held.says, rank=GOOD)
