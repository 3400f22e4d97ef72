"""A text whose plates are indices, as far as they have one: what is written, tried, and left with a reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Set
from typing import TYPE_CHECKING, Any

from qvr_core.ide.axes import axes_of
from qvr_core.ide.to_indices.elements import is_pointwise
from qvr_core.ide.to_indices.step_parts import plate_of, unit_of
from qvr_core.ide.to_indices.steps import Left, ProgramSteps, Rewriting
from qvr_core.semantics.language.builtins import BUILTINS
from qvr_core.semantics.types.diagnostics import Origin, Severity
from qvr_core.semantics.types.model.programs import Program
from qvr_core.semantics.types.model.steps import LetModel, MarginalizeModel, ParamModel, ScoreModel
from qvr_core.semantics.types.spaces import Finite
from qvr_core.semantics.types.walk import all_steps
from qvr_core.syntax.immutable import immutable
from qvr_core.syntax.placing import units_of
from qvr_core.syntax.source import Range, SourceText
from qvr_core.syntax.tree.arithmetic import ArithCall, Comprehension, FactorExpr, Gather, Lambda, ListArith
from qvr_core.syntax.tree.declarations import DefDecl, DefHeader, ProgramHeader
from qvr_core.syntax.tree.names import Span
from qvr_core.syntax.walk import walk

if TYPE_CHECKING:
    from qvr_core.analysis import LocatedDiagnostic, Snapshot

UNKNOWN = "?"
"""The text of a type that data decide."""
PASSES = 4
"""Over a text: with indices more is known of its data, so that another step may have them, too."""
ROUNDS = 40
"""Times that a text is tried: each leaves out what the last one showed to be wrong."""


@immutable
class Kept:
    """A step that stays as it is, by its line in the new text."""

    line: int
    reason: str


@immutable
class Rewritten:
    """The text then, and the steps of the old text that stay."""

    text: str
    kept: tuple[Kept, ...]


def rewritten(text: str, analysed: Callable[[str], Snapshot]) -> Rewritten:
    """`text` with indices in place of plates.

    The new text has no diagnostic that the old one had not, and every name has the axes that it had; where a step
    would change either, that step stays.  A text with an error stays as a whole.
    """
    kept: tuple[Kept, ...] = ()
    for _ in range(PASSES):
        found = _once(text, analysed)
        if found.text == text:
            return found
        # what is known of data may only now be known
        text, kept = found.text, found.kept
    return Rewritten(text, kept)


def _once(text: str, analysed: Callable[[str], Snapshot]) -> Rewritten:
    before = analysed(text)
    wrong = next((found for found in before.diagnostics() if found.severity is Severity.ERROR), None)
    if wrong is not None:
        return Rewritten(text, (Kept(wrong.range.start.line, "an error, with which nothing of the file is rewritten"),))
    rewritings, left = _proposed(before)
    for _ in range(ROUNDS):
        if not rewritings:
            break
        source = SourceText(text)
        for at, new in _edits(before, rewritings):
            source.edit(at.start, at.end, new)
        after = analysed(source.text)
        changed = _wrong(before, after, rewritings)
        if not changed:
            return Rewritten(source.text, _kept(before, left))
        groups = {one.group for one in rewritings if one.unit in changed}
        gone = [one for one in rewritings if one.group in groups]
        rewritings = [one for one in rewritings if one.group not in groups]
        left += [Left(one.unit, Span(0, 0), changed[one.unit]) for one in gone if one.unit in changed]
    return Rewritten(text, _kept(before, left))


def _proposed(snapshot: Snapshot) -> tuple[list[Rewriting], list[Left]]:
    rewritings: list[Rewriting] = []
    left: list[Left] = []
    model = snapshot.model
    labels = {
        label
        for held in model.objects.values()
        if isinstance(held.space.space, Finite)
        for label in held.space.space.labels or ()
    }
    others = frozenset(labels | snapshot.owners.keys())
    by_element = frozenset(
        {*BUILTINS, *model.arrows, *model.lets, *model.programs, *model.term_arrows, *_by_element(snapshot)}
    )
    for statement in snapshot.statements:
        header: Any = statement.header.unit.node
        program = model.programs.get(header.name.text) if isinstance(header, ProgramHeader) else None
        if program is None:
            continue
        steps = ProgramSteps(statement, program, others, by_element)
        steps.read()
        rewritings += steps.rewritings
        left += steps.left
    return rewritings, left


def _by_element(snapshot: Snapshot) -> Set[str]:
    """The functions of the file of which an element of the result needs the same element of the arguments alone."""
    found: set[str] = set()
    for statement in snapshot.statements:
        header: Any = statement.header.unit.node
        if not isinstance(header, DefDecl | DefHeader):
            continue
        nodes = [header, *(placed.unit.node for placed in units_of(statement))]
        parts = [part for node in nodes if node is not None for part in walk(node)]
        calls = {part.func.text for part in parts if isinstance(part, ArithCall)}
        plain = not any(isinstance(part, Comprehension | Gather | Lambda | FactorExpr | ListArith) for part in parts)
        if plain and all(is_pointwise(name) or name in found for name in calls):
            found.add(header.name.text)
    return found


def _edits(snapshot: Snapshot, rewritings: list[Rewriting]) -> list[tuple[Range, str]]:
    """From the end of the text to its start."""
    found = [
        (snapshot.range(Origin(one.unit, change.span)), change.text) for one in rewritings for change in one.changes
    ]
    return sorted(found, key=lambda edit: edit[0], reverse=True)


def _kept(snapshot: Snapshot, left: list[Left]) -> tuple[Kept, ...]:
    found = {snapshot.range(Origin(one.unit, one.span)).start.line: one.reason for one in reversed(left)}
    return tuple(Kept(line, found[line]) for line in sorted(found))


# ---------------------------------------------------------------- what is wrong with a text that was tried


def _wrong(before: Snapshot, after: Snapshot, rewritings: list[Rewriting]) -> Mapping[int, str]:
    """The steps that must stay, each with its reason: by the units of the old text."""
    units = dict(zip(_units(after), _units(before), strict=True))
    known = Counter(found.code.name for found in before.diagnostics())
    changed = {one.unit for one in rewritings}
    owners = {unit: {placed.uid for placed in units_of(statement)} for statement in before.statements
              for unit in [placed.uid for placed in units_of(statement)]}  # fmt: skip
    wrong: dict[int, str] = {}
    for found in sorted(after.diagnostics(), key=lambda found: found.code.severity.value):
        if known[found.code.name] > 0 and found.severity is not Severity.ERROR:
            known[found.code.name] -= 1
            continue
        unit = units.get(_unit_at(after, found), -1)
        told = f"with indices: {found.message}"
        if unit in changed:
            wrong.setdefault(unit, told)
        else:
            wrong.update(dict.fromkeys(owners.get(unit, changed) & changed, told))
    if wrong:
        return wrong
    for name, program in before.model.programs.items():
        then = after.model.programs.get(name)
        for unit, told in _differing(program, then) if then is not None else ():
            if unit in changed:
                wrong.setdefault(unit, told)
            else:
                wrong.update(dict.fromkeys(owners.get(unit, changed) & changed, told))
    return wrong


def _differing(before: Program, after: Program) -> Iterator[tuple[int, str]]:
    """Names that run over other sets than before.  What a hidden state is of is said by its set, no longer its rows."""
    old, new = axes_of(before), axes_of(after)
    summed = {step.site.name for step in all_steps(before.steps) if isinstance(step, MarginalizeModel)}
    for step in all_steps(before.steps):
        site = None if isinstance(step, LetModel | ScoreModel | ParamModel) else step.site
        names = [name for name, _ in site.bound] if site is not None else getattr(step, "names", ())
        unit = unit_of(step)
        for name in names:
            was, text, _ = old.get(name, ((), "", None))
            now = new.get(name, ((), "", None))
            grouped = site is not None and site.via is not None and plate_of(site) is None
            unknown = grouped or (not any(was) and text in ("", UNKNOWN))
            if name not in summed and not unknown and now[0] != was:
                yield unit, f"with indices `{name}` would be {now[1] or 'of no known type'}, not {text}"
    there = {item.name: item for item in after.data}
    for item in before.data:
        then = there.pop(item.name, None)
        if then is None or (item.type.indexed and item.type.indexed != then.type.indexed):
            yield item.origin.unit, f"with indices `{item.name}` would be other data"
    for item in there.values():
        yield item.origin.unit, f"with indices `{item.name}` would be data"


def _units(snapshot: Snapshot) -> list[int]:
    """All units in the order of the text."""
    return [placed.uid for statement in snapshot.statements for placed in units_of(statement)]


def _unit_at(snapshot: Snapshot, found: LocatedDiagnostic) -> int:
    held = snapshot.unit_at(found.range.start)
    return -1 if held is None else held[1].uid
