"""What an expression is: it is put where such a one may stand, as a let, an object or a step, and the checker is asked.

An expression of a program's names is looked at in front of that program's `return`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from qvr_core.analysis import LocatedDiagnostic, Snapshot
from qvr_core.cli.repl.document import Document, Excerpt, Lines
from qvr_core.ide.axes import let_type, type_text
from qvr_core.ide.hover import hover
from qvr_core.ide.outline_and_folding import declaration_detail
from qvr_core.ide.prose import Code, Prose
from qvr_core.semantics.algebras.numbers import Uncomputed, applied
from qvr_core.semantics.language.builtins import canonical
from qvr_core.semantics.types.codes import UNKNOWN_NAME
from qvr_core.semantics.types.diagnostics import Severity
from qvr_core.semantics.types.model.expressions import Arrange, Bound, Builtin, Constant, Expr, ListOf
from qvr_core.semantics.types.model.file import ObjectModel
from qvr_core.semantics.types.model.programs import Program
from qvr_core.semantics.types.model.steps import LetModel
from qvr_core.semantics.types.type_text import structure
from qvr_core.semantics.types.walk import all_steps
from qvr_core.syntax.layout import shape
from qvr_core.syntax.source import Cursor, Range

MOST_PROGRAMS = 8
"""In which an expression is looked at, the last ones first."""
MOST_NUMBERS = 20
"""Of a list, that are shown."""
NAME = "it"


@dataclass(frozen=True)
class Probe:
    """An expression where it may stand, under a name that nothing else has; `program` is the one whose step it is."""

    excerpt: Excerpt
    name: str
    program: str = ""

    given: frozenset[str] = frozenset()
    """The data that the program has without it."""

    def errors(self) -> list[LocatedDiagnostic]:
        """What is wrong with the expression itself, not with what is around it.  A name that nothing binds is an error
        here, and no data that somebody will supply."""
        found = self.excerpt.snapshot.diagnostics()
        errors = [one for one in found if one.severity is Severity.ERROR and self.excerpt.holds(one.range)]
        program = self.excerpt.snapshot.node(self.program) if self.program and not errors else None
        data = program.data if isinstance(program, Program) else ()
        unknown = (one.name for one in data if one.name not in self.given)
        return errors or [one for name in unknown for one in self._unknown(name)]

    def _unknown(self, name: str) -> Iterator[LocatedDiagnostic]:
        for number, line in enumerate(self.excerpt.typed):
            if (found := re.search(rf"\b{re.escape(name)}\b", line)) is not None:
                start, end = (self.excerpt.there(Cursor(number, column)) for column in found.span())
                yield LocatedDiagnostic(UNKNOWN_NAME, f"there is no `{name}`", Range(start, end), (), ())
                return


def probes(document: Document, typed: Lines, most: int = MOST_PROGRAMS) -> Iterator[Probe]:
    """The expression at each place where it could be meant, among them `most` programs; each is analysed when it is
    asked for."""
    snapshot, name = document.snapshot(), NAME
    while any(name in line for line in (*document.lines, *typed)):
        name += "_"
    end = len(document.lines)
    for opening in (f"let {name} = ", f"object {name} : "):
        yield Probe(_placed(document, typed, end, opening, ()), name)
    programs = [one for one in snapshot.statements if one.header.unit.keyword == "program"]
    for statement in islice(reversed(programs), most):
        first, last = snapshot.layout.start_line(statement.uid), snapshot.layout.end_line(statement.uid)
        own = [line for line in range(first + 1, last) if shape(document.lines[line]).word == "return"]
        if own and statement.header.unit.declares:
            indent = document.lines[own[-1]][: shape(document.lines[own[-1]]).column]
            program = statement.header.unit.declares[0].text
            node = snapshot.node(program)
            given = frozenset(one.name for one in node.data) if isinstance(node, Program) else frozenset[str]()
            yield Probe(_placed(document, typed, own[-1], f"{indent}let {name} = ", ()), name, program, given)
    header = f"program {name}_ : One -> One"
    yield Probe(_placed(document, typed, end, f"    let {name} = ", (header,), f"    return {name}"), name, f"{name}_")


def _placed(document: Document, typed: Lines, at: int, opening: str, above: Lines, *below: str) -> Excerpt:
    first, *others = typed
    lines = (*document.lines[:at], *above, opening + first, *others, *below, *document.lines[at:])
    snapshot = document.scratch.snapshot(lines)
    return Excerpt(snapshot, typed, at + len(above), len(opening), "input", document.name)


def best(document: Document, typed: Lines, most: int = MOST_PROGRAMS) -> Probe:
    """Where the expression is right; else where it is wrong furthest to its end, in something else than its form."""
    furthest: tuple[tuple[bool, Cursor], Probe] | None = None
    for probe in probes(document, typed, most):
        errors = probe.errors()
        if not errors:
            return probe
        rank = errors[0].code.name != "syntax-error", probe.excerpt.here(errors[0].range.start)
        # that nothing at all has a name is more than that no arrow has it
        if furthest is None or rank > furthest[0] or (rank == furthest[0] and probe.program):
            furthest = rank, probe
    assert furthest is not None
    return furthest[1]


def type_of(probe: Probe) -> str:
    """The type in one line; '' where only data can tell."""
    snapshot = probe.excerpt.snapshot
    if not probe.program:
        node = snapshot.node(probe.name)
        return (
            structure(node.space.space) if isinstance(node, ObjectModel) else declaration_detail(snapshot, probe.name)
        )
    step = _step(snapshot, probe)
    return "" if step is None else type_text(let_type(step, probe.name))


def value_of(probe: Probe) -> str:
    """The value where it is the same whatever is drawn, as text; '' where it is not."""
    step = _step(probe.excerpt.snapshot, probe) if probe.program else None
    if step is None or step.indexed is not None:
        return ""
    program = probe.excerpt.snapshot.node(probe.program)
    lets = _lets(program) if isinstance(program, Program) else {}
    try:
        return _written(_value(step.value, lets))
    except (Uncomputed, RecursionError):
        return ""


def typed_as(probe: Probe, shown: str) -> str:
    """The expression with its type and value, in one line."""
    kind, value = type_of(probe), value_of(probe)
    return shown + (f" : {kind}" if kind else "  (its type comes with the data)") + (f" = {value}" if value else "")


def explained(probe: Probe, shown: str) -> Prose:
    """What an editor's hover says of the expression, below its type."""
    snapshot, excerpt = probe.excerpt.snapshot, probe.excerpt
    line = snapshot.lines[excerpt.line]
    answer = hover(snapshot, Cursor(excerpt.line, line.index(probe.name)))
    return (Code(typed_as(probe, shown)), *(answer.content[1:] if answer is not None else ()))


def _step(snapshot: Snapshot, probe: Probe) -> LetModel | None:
    program = snapshot.node(probe.program)
    steps = all_steps(program.steps) if isinstance(program, Program) else ()
    return next((one for one in steps if isinstance(one, LetModel) and probe.name in one.names), None)


def _lets(program: Program) -> dict[str, Expr]:
    steps = (one for one in program.steps if isinstance(one, LetModel) and one.indexed is None)
    return {one.names[0]: one.value for one in steps if len(one.names) == 1}


Value = float | tuple["Value", ...]


def _value(expr: Expr, lets: Mapping[str, Expr]) -> Value:
    """The value of an expression of numbers; `Uncomputed` where it is none."""
    match expr:
        case Constant(value=int() | float() as value):
            return float(value)
        case Bound(name=name) if name in lets:
            # a let reads only those above it, so that this ends
            return _value(lets[name], lets)
        case Arrange(base=base):
            return _value(base, lets)
        case ListOf(items=items):
            return tuple(_value(item, lets) for item in items)
        case Builtin(function=function, args=args, keywords=()) if args:
            return applied(canonical(function), [_flat(_value(arg, lets)) for arg in args])
        case _:
            raise Uncomputed(type(expr).__name__)


def _flat(value: Value) -> float | tuple[float, ...]:
    """A number, or a list of numbers: functions along axes of lists in lists are not computed here."""
    if not isinstance(value, tuple):
        return value
    numbers = tuple(one for one in value if not isinstance(one, tuple))
    if len(numbers) < len(value):
        raise Uncomputed("lists in a list")
    return numbers


def _written(value: Value) -> str:
    if isinstance(value, tuple):
        more = ", …" if len(value) > MOST_NUMBERS else ""
        return f"[{', '.join(map(_written, value[:MOST_NUMBERS]))}{more}]"
    if not math.isfinite(value):
        raise Uncomputed(f"{value}")
    return f"{value:.10g}"
