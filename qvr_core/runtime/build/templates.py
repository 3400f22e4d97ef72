"""Templates from Python: `program.p(alpha=1.0).morphism`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from qvr_core.analysis import Snapshot, analyse
from qvr_core.runtime.build.build import Builder
from qvr_core.runtime.values.arrow import ArrowModule
from qvr_core.runtime.values.errors import InputProblem
from qvr_core.runtime.values.module_recipes import Recipe
from qvr_core.semantics.file.open_sets import KnownSet
from qvr_core.semantics.types.diagnostics import Severity
from qvr_core.semantics.types.model.arrows import Instance
from qvr_core.semantics.types.model.programs import Program


def call_of(name: str, arguments: Mapping[str, float | int | str], first: Sequence[float | int | str] = ()) -> str:
    """A template with its arguments, those in `first` by position, as it is written."""
    return f"{name}({', '.join([*map(str, first), *(f'{key}={value}' for key, value in arguments.items())])})"


def instance_of(file: Snapshot, call: str, known: Mapping[str, KnownSet] | None = None) -> Instance:
    """What a call of a template is in a file.  Raises `InputProblem` where an argument does not fit."""
    # The checker itself fills the parameters in: it reads the file with one export more.
    text = "\n".join(file.lines)
    snapshot = analyse(f"{text}\nexport {call}\n", known, file.location, file.library)
    last = len(text.splitlines())
    for item in snapshot.diagnostics():
        if item.severity is Severity.ERROR and item.range.start.line >= last:
            raise InputProblem(f"`{call}`: {item.message}")
    arrow = snapshot.model.exports[-1].arrow
    if not isinstance(arrow, Instance):
        raise InputProblem(f"`{call}` is not a program")
    return arrow


class Template:
    """A program with typed parameters; calling it fills them in.

    A `Real` or `Nat` parameter takes a number, an `Object`, `FinSet` or `Mor` one the name of a declaration; by
    position or by keyword.  Those with a default may be left out.
    """

    def __init__(
        self, program: Program, snapshot: Snapshot, builder: Builder, recipe: Callable[..., Recipe] | None = None
    ) -> None:
        """`recipe` says how an instance is made again, given its arguments by position and by keyword."""
        self.program = program
        self._recipe = recipe
        self.name = program.name
        self._file = snapshot
        self._builder = builder
        self._known = snapshot.known

    def __call__(self, *first: float | int | str, **arguments: float | int | str) -> Instantiated:
        """The program with its parameters; every instance shares the file's arrows.

        Raises `InputProblem` in the checker's words where an argument does not fit.
        """
        made = self._builder.arrow(instance_of(self._file, call_of(self.name, arguments, first), self._known))
        made.recipe = None if self._recipe is None else self._recipe(first, arguments)
        return Instantiated(made)


class Instantiated:
    """A template with its parameters filled in."""

    def __init__(self, morphism: ArrowModule) -> None:
        self.morphism = morphism
