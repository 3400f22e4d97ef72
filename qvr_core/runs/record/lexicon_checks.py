"""Lexicons in files, checked against the deductions that read them, without torch."""

from __future__ import annotations

from collections.abc import Iterator

from qvr_core.analysis import LocatedDiagnostic, Snapshot
from qvr_core.lexicon_files import LexiconProblem, entries_of
from qvr_core.runs.record.data_checks import DATA_FILE
from qvr_core.semantics.types.diagnostics import Origin
from qvr_core.syntax.statements import units_of
from qvr_core.syntax.tree.declarations import DeductionHeader
from qvr_core.syntax.tree.deductions import LexiconItem


def lexicon_problems(snapshot: Snapshot) -> Iterator[LocatedDiagnostic]:
    """What is wrong with the files that the deductions of a program name, each told at that name.  Their paths start
    where the command runs."""
    deductions = snapshot.model.deductions
    for statement in snapshot.statements:
        header = statement.header.unit.node
        deduction = deductions.get(header.name.text) if isinstance(header, DeductionHeader) else None
        for placed in units_of(statement) if deduction is not None else ():
            node = placed.unit.node
            if deduction is None or deduction.damaged or not isinstance(node, LexiconItem) or node.source is None:
                continue
            try:
                entries_of(node.source.value, deduction)
            except LexiconProblem as problem:
                place = snapshot.find(Origin(placed.uid, node.source.span))
                if place is not None:
                    yield LocatedDiagnostic(DATA_FILE, str(problem), place, (), ())
