"""The door for Python users: text or a file to a program that runs.

program = load("model.qvr")
model = program.morphism
model.rsample(x)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from qvr_core.analysis import LocatedDiagnostic, Snapshot, analyse
from qvr_core.data.needs import needs_of, open_sets
from qvr_core.runtime.build.build import Builder
from qvr_core.runtime.build.export import as_program, one_step
from qvr_core.runtime.build.templates import Template
from qvr_core.runtime.programs.deduction import DeductionModule, deduction_of
from qvr_core.runtime.programs.program import ProgramModule
from qvr_core.runtime.values.arrow import ArrowModule
from qvr_core.runtime.values.errors import RuntimeProblem
from qvr_core.semantics.file.open_sets import KnownSet
from qvr_core.semantics.file.site_origins import site_origins
from qvr_core.semantics.types import model as m
from qvr_core.semantics.types.diagnostics import Origin, Severity
from qvr_core.semantics.types.shifts import shifted_sets
from qvr_core.syntax.tree import Statement

__all__ = ["CheckFailed", "Program", "check", "load", "loads", "parse"]


class CheckFailed(RuntimeProblem):
    """The text has errors; `diagnostics` holds them all, warnings included."""

    def __init__(self, source: str, diagnostics: tuple[LocatedDiagnostic, ...]) -> None:
        self.diagnostics = diagnostics
        errors = [item for item in diagnostics if item.severity is Severity.ERROR]
        lines = [
            f"{source}:{item.range.start.line + 1}:{item.range.start.column + 1}: "
            f"error[{item.code.name}]: {item.message}"
            for item in errors
        ]
        super().__init__("\n".join(lines))


def load(path: str | Path, *, data: Any = None, known: Mapping[str, KnownSet] | None = None) -> Program:
    """The program in a file; `data` are values for its data names.

    They are a mapping from names to arrays, numbers or frames, one frame (polars or pandas), or an xarray.Dataset; a
    frame under the name of a set has that set's elements as rows.  They also tell the elements of open sets, which are
    `known` to those who have read the data already.  Raises `CheckFailed` where the program has errors, and
    `DataProblem` where the data do not fit.
    """
    file = Path(path)
    return _loaded(file.read_text(encoding="utf-8-sig"), str(file), data, known)


def loads(text: str, *, data: Any = None, known: Mapping[str, KnownSet] | None = None) -> Program:
    """The program in a text; as `load`."""
    return _loaded(text, "<text>", data, known)


def _loaded(text: str, source: str, data: Any, known: Mapping[str, KnownSet] | None) -> Program:
    snapshot = _checked(analyse(text, known), source)
    if data is None:
        return Program(snapshot, None, source)
    from qvr_core.data.frames import supplied
    from qvr_core.data.typed.order import check_ascending

    needs = [need for program in snapshot.model.programs.values() for need in needs_of(program).all]
    found, values = supplied(needs, data)
    check_ascending(found, {name for program in snapshot.model.programs.values() for name in shifted_sets(program)})
    if found:
        snapshot = _checked(analyse(text, {**(known or {}), **found}), source)
    return Program(snapshot, values, source)


def _checked(snapshot: Snapshot, source: str) -> Snapshot:
    found = snapshot.diagnostics()
    if any(item.severity is Severity.ERROR for item in found):
        raise CheckFailed(source, found)
    return snapshot


def parse(text: str) -> tuple[Statement, ...]:
    """The statements of a text, damaged ones included."""
    return tuple(analyse(text).statements)


def check(text: str) -> tuple[LocatedDiagnostic, ...]:
    """Everything the checker has to say about a text."""
    return analyse(text).diagnostics()


class Program:
    """A loaded file: its programs as modules that share the parameters of the arrows they use.

    Parameters are drawn from torch's global generator when the file is loaded.
    """

    def __init__(self, snapshot: Snapshot, data: Mapping[str, Any] | None = None, source: str = "<text>") -> None:
        self.snapshot = snapshot
        self.source = source
        self.model: m.Model = snapshot.model
        if opened := open_sets(self.model):
            names = ", ".join(f"`{name}`" for name in opened)
            what = "is an open set: its elements come" if len(opened) == 1 else "are open sets: their elements come"
            raise RuntimeProblem(f"{names} {what} with the data, as in `load(path, data=…)`", site=opened[0])
        self._builder = Builder(self.model, data, self._built)
        self._morphism: ArrowModule | None = self._exported()
        self.programs: dict[str, ProgramModule] = {}
        self.templates: dict[str, Template] = {}
        for name, program in self.model.programs.items():
            if program.template:
                self.templates[name] = Template(program, snapshot, self._builder)
            else:
                built = self._builder.named(name)
                assert isinstance(built, ProgramModule)
                self.programs[name] = built
        self.deductions: dict[str, DeductionModule] = {
            name: deduction_of(self._builder, name) for name in self.model.deductions
        }

    def _built(self, program: m.Program, builder: Builder) -> ProgramModule:
        """A program that knows the lines of its steps, for errors."""
        built = ProgramModule(program, builder)
        origins: dict[str | None, Origin] = {**site_origins(program), None: program.origin}
        for name, origin in origins.items():
            built.places[name] = f"{self.source}:{self.snapshot.range(origin).start.line + 1}"
        return built

    def _exported(self) -> ArrowModule | None:
        """The first export; without one the last program or let."""
        model = self.model
        if model.exports:
            first = model.exports[0]
            if first.arrow is not None:
                return as_program(first.name, first.arrow, self._builder)
            return self._named(first.name)
        for name in reversed(model.order):
            if name in model.lets or (name in model.programs and not model.programs[name].template):
                return self._named(name)
        return None

    def _named(self, name: str) -> ArrowModule | None:
        model = self.model
        if name in model.programs:
            return None if model.programs[name].template else self._builder.named(name)
        if name in model.lets:
            return as_program(name, model.lets[name].arrow, self._builder)
        if name in model.arrows:
            return as_program(name, model.arrows[name], self._builder)
        return None

    def observed(self, name: str) -> ProgramModule:
        """A morphism, let or anonymous export as a program that observes its value: `observe value <- name`.

        Raises `RuntimeProblem` where the file has none of that name.
        """
        model = self.model
        exported = next((export.arrow for export in model.exports if export.name == name), None)
        arrow = exported or (model.lets[name].arrow if name in model.lets else model.arrows.get(name))
        if arrow is None:
            raise RuntimeProblem(f"the file has no morphism, let or export `{name}`")
        built = self._builder.built(one_step(name, arrow, observed=True))
        assert isinstance(built, ProgramModule)
        return built

    @property
    def morphism(self) -> Any:
        """The first export; without one the last program or let."""
        if self._morphism is not None:
            return self._morphism
        if self.model.deductions:
            names = ", ".join(f"`{name}`" for name in self.model.deductions)
            raise RuntimeProblem(f"this file declares only deductions: use `.deductions` ({names})")
        if self.templates:
            name = next(iter(self.templates))
            raise RuntimeProblem(f"`{name}` is a template: fill its parameters in, as in `program.{name}(…).morphism`")
        raise RuntimeProblem("this file declares no program and no let, so it has no morphism")

    def modules(self) -> Iterator[nn.Module]:
        """Everything that was built."""
        if self._morphism is not None:
            yield self._morphism
        yield from self.programs.values()
        yield from self.deductions.values()

    def parameters(self) -> Iterator[Tensor]:
        """Every parameter of the file once."""
        seen: set[int] = set()
        for module in self.modules():
            for parameter in module.parameters():
                if id(parameter) not in seen:
                    seen.add(id(parameter))
                    yield parameter

    def __getattr__(self, name: str) -> Any:
        for table in ("templates", "programs", "deductions"):
            found = self.__dict__.get(table, {})
            if name in found:
                return found[name]
        raise AttributeError(f"the file has no program or deduction `{name}`")
