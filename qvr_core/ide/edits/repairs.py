"""Repairs of a mismatch that its diagnostic does not bring along: one name of a space, in one declaration or step, is
changed to the other space that the message speaks of.  Which of them fix the text is tried on the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from qvr_core.ide.answers import Action, TextEdit
from qvr_core.ide.names import names_of
from qvr_core.ide.symbols import lookup
from qvr_core.ide.view import model_of
from qvr_core.semantics.types.diagnostics import Origin
from qvr_core.syntax.placing import units_of
from qvr_core.syntax.tree.units import Placed, Statement

if TYPE_CHECKING:
    from qvr_core.analysis import LocatedDiagnostic, Snapshot

MISMATCHES = frozenset(
    (
        "argument-mismatch",
        "ascription-mismatch",
        "compose-mismatch",
        "family-mismatch",
        "fan-mismatch",
        "scan-mismatch",
        "wrong-return",
    )
)

WORD = re.compile(r"[A-Za-z_]\w*")

# Repairs that are tried at most: each costs an analysis of what it touches.
MOST = 12


def repairs(snapshot: Snapshot, found: LocatedDiagnostic) -> list[Action]:
    """What may repair a mismatch, nearest first."""
    if found.code.name not in MISMATCHES or found.fixes:
        return []
    statement = snapshot.statement_at(found.range.start)
    if statement is None:
        return []
    words = list(dict.fromkeys(WORD.findall(found.message)))
    spaces = [word for word in words if word in model_of(snapshot).objects]
    actions: list[Action] = []
    for owner, placed in _places(snapshot, statement, words):
        for occurrence in names_of(placed.unit):
            if occurrence.part == "object" and occurrence.text in spaces:
                at = snapshot.range(Origin(placed.uid, occurrence.span))
                for other in spaces:
                    if other != occurrence.text:
                        title = f"Change `{occurrence.text}` to `{other}` in `{_called(owner, placed)}`"
                        edit = TextEdit(at, other)
                        actions.append(Action(title, "quickfix", (edit,), False, found.code.name, found.range))
    return actions[:MOST]


def _places(snapshot: Snapshot, statement: Statement, words: list[str]) -> Iterator[tuple[Statement, Placed[Any]]]:
    """The units of the statement, and the declarations that the message or a step that it speaks of mentions."""
    mentioned = dict.fromkeys(words)
    for placed in units_of(statement):
        yield statement, placed
        names = names_of(placed.unit)
        if any(name.part == "bind" and name.text in words for name in names):
            mentioned.update(dict.fromkeys(name.text for name in names))
    for word in mentioned:
        held = lookup(snapshot, word)
        if held is not None and held.statement is not statement and held.statement.header.unit.keyword != "object":
            yield held.statement, held.statement.header


def _called(owner: Statement, placed: Placed[Any]) -> str:
    """`morphism f`, `observe y`."""
    unit = placed.unit
    names = [item.text for item in names_of(unit) if item.part in ("declare", "bind")]
    return " ".join([unit.keyword, *names[:1]])
