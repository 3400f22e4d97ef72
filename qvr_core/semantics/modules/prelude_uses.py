"""Which names of the library a file means without an import: those that it calls, draws from or composes.

A name that only stands as a value (`x * seasonal`) is data of the program, whatever the library has under it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from qvr_core.semantics.language.prelude import PRELUDE, hidden_kind, visible_from
from qvr_core.semantics.modules.paths import STD
from qvr_core.semantics.types.codes import HIDDEN_BUILTIN
from qvr_core.semantics.types.diagnostics import DeclarationSite, Diagnostic, Origin
from qvr_core.syntax.placing import units_of
from qvr_core.syntax.statements import Layout
from qvr_core.syntax.tree.arithmetic import ArithCall, Lambda, ParenArith
from qvr_core.syntax.tree.arrows import ArrowCall, ArrowRef
from qvr_core.syntax.tree.declarations import FunctionParameter, Parameter
from qvr_core.syntax.tree.names import Name, Span
from qvr_core.syntax.tree.options import CallValue
from qvr_core.syntax.tree.steps import Draw, LetStep
from qvr_core.syntax.tree.units import Statement, Unit
from qvr_core.syntax.walk import walk

MOST_KEPT = 100_000
"""Units whose calls are kept."""

_CALLED: Mapping[type[Any], Callable[[Any], Name]] = {
    ArithCall: lambda node: node.func,
    ArrowCall: lambda node: node.func,
    ArrowRef: lambda node: node.name,
    CallValue: lambda node: node.func,
    Draw: lambda node: node.name,
}


def library_file(name: str) -> str:
    """The location of the file of the library that declares a name."""
    return f"{STD}{PRELUDE[name].file}"


class LibraryNames:
    """The names that the library has for one file without an import, and where its statements call them."""

    def __init__(self, own: Layout, location: str) -> None:
        self._own = own
        self.names = visible_from(location.removeprefix(STD) if location.startswith(STD) else None)

    def uses(self, name: str, readers: Iterable[tuple[int, bool]]) -> Iterator[Origin]:
        """The places where some of the file's statements, each with whether it binds the name, call it."""
        for uid, bound in readers:
            yield from (Origin(unit, span) for unit, span in uses(self._own.statement_of(uid), name, bound))

    def hidden(self, owners: Mapping[str, Sequence[int]], is_foreign: Callable[[int], bool]) -> Iterator[Diagnostic]:
        """Declarations of the file that hide a family or a function of the library."""
        for name in self.names:
            declared = any(not is_foreign(uid) for uid in owners.get(name, ()))
            if declared and (kind := hidden_kind(name)) is not None:
                message = f"`{name}` hides the language's {kind} of that name"
                yield Diagnostic(HIDDEN_BUILTIN, message, DeclarationSite(name))


def uses(statement: Statement, name: str, bound: bool = True) -> Iterator[tuple[int, Span]]:
    """(unit, span) of every place where a statement calls a name that it does not bind to something to be called.  What
    is not `bound` at all is found without going through the rest of the statement."""
    if bound and any(_binds(node, name) for placed in units_of(statement) for node in walk(placed.unit.node)):
        return
    for placed in units_of(statement):
        yield from ((placed.uid, span) for called, span in _calls(placed.unit) if called == name)


_known: dict[tuple[str, type[object], tuple[tuple[str, str], ...]], tuple[tuple[str, Span], ...]] = {}


def _calls(unit: Unit[Any]) -> tuple[tuple[str, Span], ...]:
    """The names of the library that one unit calls; the same text is walked once, as long programs are edited."""
    if unit.node is None:
        return ()
    key = (unit.text, cast("type[object]", type(unit.node)), unit.renamed)
    found = _known.get(key)
    if found is None:
        if len(_known) > MOST_KEPT:
            _known.clear()
        made = ((_CALLED.get(cast("type[Any]", type(node))), node) for node in walk(unit.node))
        words = (called(node) for called, node in made if called is not None)
        found = _known[key] = tuple((word.text, word.span) for word in words if word.text in PRELUDE)
    return found


def _binds(node: object, name: str) -> bool:
    """Whether a parameter, or a step, gives the name to a function or an arrow of the program's own."""
    match node:
        case Parameter(bound) | FunctionParameter(bound) | Lambda(bound):
            return bound.text == name
        case LetStep():
            value: object = node.value
            while isinstance(value, ParenArith):
                value = value.inner
            return isinstance(value, Lambda) and any(one.text == name for one in node.pattern.names)
        case _:
            return False
