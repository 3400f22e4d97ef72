"""Labels in arithmetic: which element of which set each stands for, as the checker has decided."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qvr_core.ide.view import model_of
from qvr_core.semantics.types.model.expressions import Constant
from qvr_core.semantics.types.model.programs import Program
from qvr_core.semantics.types.model.steps import StepModel
from qvr_core.semantics.types.walk import all_steps, operands, values, walk
from qvr_core.syntax.tree.names import Span
from qvr_core.syntax.tree.units import Statement

if TYPE_CHECKING:
    from qvr_core.analysis import Snapshot

Places = dict[tuple[int, int], str]
"""By unit and start of a label: the set that it is an element of, '' where that has no name."""

_kept: dict[int, tuple[StepModel, Places]] = {}
MOST_KEPT = 10_000
_programs: dict[int, tuple[Program, Places]] = {}
MOST_PROGRAMS = 16


def set_of_label(snapshot: Snapshot, statement: Statement, unit: int, span: Span) -> str | None:
    """The set that the label at a place of a program is an element of; None where no label stands there."""
    names = statement.header.unit.declares
    program = model_of(snapshot).programs.get(names[0].text) if names else None
    return None if program is None else _labels_of(program).get((unit, span.start))


def _labels_of(program: Program) -> Places:
    """The labels of a program.  Kept: every name of a text asks."""
    held = _programs.get(id(program))
    if held is not None and held[0] is program:
        return held[1]
    found: Places = {}
    for step in all_steps(program.steps):
        found.update(_labels(step))
    if len(_programs) >= MOST_PROGRAMS:
        _programs.clear()
    _programs[id(program)] = (program, found)
    return found


def _labels(step: StepModel) -> Places:
    """The labels of one step.  Kept: after an edit, most steps are the same objects."""
    held = _kept.get(id(step))
    if held is not None and held[0] is step:
        return held[1]
    found: Places = {}
    for value in values(step):
        for expr in walk(value, operands):
            if isinstance(expr, Constant) and expr.element_of is not None:
                found[expr.origin.unit, expr.origin.span.start] = expr.element_of
    if len(_kept) > MOST_KEPT:
        _kept.clear()
    _kept[id(step)] = (step, found)
    return found
