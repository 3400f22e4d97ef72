"""The check of one step as a value that may be used again: a long program is typed anew from the changed step on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from qvr_core.semantics.diagnostics import Diagnostic, Origin, Place
from qvr_core.semantics.environment import Binding, FreeName
from qvr_core.semantics.model import StepModel, ValueType
from qvr_core.semantics.scope import Entry, Equation, Globals, Scope, UnknownName
from qvr_core.syntax.tree import Item, Placed


@dataclass(slots=True)
class RecordingGlobals:
    """The file as one step sees it; remembers what the step asked for."""

    file: Globals
    entries: dict[str, Entry | None] = field(default_factory=dict[str, "Entry | None"])
    sizes: dict[str, int | None] = field(default_factory=dict[str, "int | None"])

    def entry(self, name: str) -> Entry | None:
        found = self.file.entry(name)
        self.entries[name] = found
        return found

    def solved(self, variable: str) -> int | None:
        value = self.file.solved(variable)
        self.sizes[variable] = value
        return value


@dataclass(frozen=True, slots=True)
class StepResult:
    """What one step says, with everything that it read.

    `units` are the unit of the step and of the lines of its block; `binds` what it binds for the steps below,
    `nested` what its block binds for itself.
    """

    units: tuple[Any, ...]
    model: StepModel | None
    binds: tuple[tuple[str, Binding], ...]
    nested: tuple[tuple[str, Binding], ...]
    reads: tuple[tuple[str, Binding | None], ...]
    entries: tuple[tuple[str, Entry | None], ...]
    sizes: tuple[tuple[str, int | None], ...]
    diagnostics: tuple[Diagnostic, ...]
    equations: tuple[Equation, ...]
    unknown_names: tuple[UnknownName, ...]
    size_places: dict[str, Place]
    size_values: dict[str, int]
    holes: dict[str, str]
    free: tuple[FreeName, ...]
    data: tuple[tuple[str, tuple[ValueType, Origin]], ...]
    lifts: frozenset[str]
    uses_input: bool
    effects: frozenset[str]

    def holds(self, units: tuple[Any, ...], bindings: dict[str, Binding], file: Globals) -> bool:
        """True where checking the step again would say the same."""
        if len(units) != len(self.units) or any(a is not b for a, b in zip(units, self.units, strict=True)):
            return False
        get = bindings.get
        for name, binding in self.reads:
            if get(name) is not binding:
                return False
        for name, entry in self.entries:
            if file.entry(name) is not entry:
                return False
        return all(file.solved(name) == value for name, value in self.sizes)

    def write_to(self, scope: Scope) -> None:
        """Hand on what the step found."""
        if self.diagnostics:
            scope.diagnostics.extend(self.diagnostics)
        if self.equations:
            scope.equations.extend(self.equations)
        if self.unknown_names:
            scope.unknown_names.extend(self.unknown_names)
        if self.size_places:
            scope.size_places.update(self.size_places)
            scope.size_values.update(self.size_values)
            scope.holes.update(self.holes)


@dataclass(slots=True)
class ProgramMemory:
    """The step results of one program's last check, by the uid of the step."""

    results: dict[int, StepResult] = field(default_factory=dict[int, StepResult])


def units_of(placed: Placed[Item]) -> tuple[Any, ...]:
    """The units of a step and of the lines below it."""
    if not placed.children:
        return (placed.unit,)
    return (placed.unit, *(unit for child in placed.children for unit in units_of(child)))
