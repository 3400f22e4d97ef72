"""The door for Python users: text or a file to a program that runs.

program = load("model.qvr")
model = program.morphism
model.rsample(x)
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from textwrap import indent
from typing import Any, Self

from qvr_core.analysis import LocatedDiagnostic, Snapshot, analyse
from qvr_core.arrays.engine import Tensor, nn
from qvr_core.data.needs import needs_of, open_sets
from qvr_core.disk import Disk, LibraryOnly, location_of_file
from qvr_core.runtime.build.build import Builder
from qvr_core.runtime.build.export import as_program, one_step
from qvr_core.runtime.build.templates import Template
from qvr_core.runtime.programs.deduction import DeductionModule, deduction_of
from qvr_core.runtime.programs.program import ProgramModule
from qvr_core.runtime.values.arrow import ArrowModule
from qvr_core.runtime.values.errors import RuntimeProblem
from qvr_core.runtime.values.module_recipes import numbers_kept, take
from qvr_core.semantics.file.open_sets import KnownSet
from qvr_core.semantics.file.site_origins import site_origins
from qvr_core.semantics.modules.import_table import Library
from qvr_core.semantics.types.diagnostics import Origin, Severity
from qvr_core.semantics.types.model.file import Model
from qvr_core.semantics.types.model.programs import Program as ModelProgram
from qvr_core.semantics.types.shifts import shifted_sets
from qvr_core.syntax.tree.units import Statement
from qvr_core.workspace import Bundle, Workspace, texts_of

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
    text = file.read_text(encoding="utf-8-sig")
    return _loaded(text, str(file), data, known, location_of_file(file), Workspace(Disk()))


def loads(
    text: str,
    *,
    data: Any = None,
    known: Mapping[str, KnownSet] | None = None,
    folder: str | Path | None = None,
    location: str = "",
    library: Library | None = None,
    source: str = "<text>",
) -> Program:
    """The program in a text; as `load`.  `source` is what errors call the text.

    Imports start from `folder`; without one the text may import nothing but the library `std`.  Those who have the
    imported texts already give their `library`, and the `location` of this one.
    """
    if library is None:
        library = Workspace(Disk() if folder is not None else LibraryOnly())
        location = location or (location_of_file(Path(folder) / "text.qvr") if folder is not None else "")
    return _loaded(text, source, data, known, location, library)


def _loaded(
    text: str, source: str, data: Any, known: Mapping[str, KnownSet] | None, location: str, library: Library
) -> Program:
    snapshot = _checked(analyse(text, known, location, library), source)
    if data is None:
        return Program(snapshot, None, source)
    from qvr_core.data.frames import supplied
    from qvr_core.data.typed.order import check_ascending

    programs = snapshot.model.own_programs.values()
    needs = [need for program in programs for need in needs_of(program).all]
    found, values = supplied(needs, data)
    check_ascending(found, {name for program in programs for name in shifted_sets(program)})
    if found:
        snapshot = _checked(analyse(text, {**(known or {}), **found}, location, library), source)
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


@dataclass(frozen=True)
class Part:
    """How a module of a loaded file is found in it again: what pickles and copies of the module hold."""

    file: Program
    name: str
    observed: bool = False

    def __call__(self) -> nn.Module:
        return self.file.observed(self.name) if self.observed else self.file.part(self.name)


@dataclass(frozen=True)
class Filled:
    """How an instance of a template is made again."""

    file: Program
    name: str
    first: tuple[float | int | str, ...]
    arguments: Mapping[str, float | int | str]

    def __call__(self) -> nn.Module:
        return self.file.templates[self.name](*self.first, **self.arguments).morphism


class Program:
    """A loaded file: its programs as modules that share the parameters of the arrows they use.

    Parameters are drawn from torch's global generator when the file is loaded.  A program and its modules can be
    pickled, saved by `torch.save` and copied: as their text and data, with their parameters.
    """

    def __init__(self, snapshot: Snapshot, data: Mapping[str, Any] | None = None, source: str = "<text>") -> None:
        self.snapshot = snapshot
        self.source = source
        self.model: Model = snapshot.model
        if opened := open_sets(self.model):
            names = ", ".join(f"`{name}`" for name in opened)
            what = "is an open set: its elements come" if len(opened) == 1 else "are open sets: their elements come"
            raise RuntimeProblem(f"{names} {what} with the data, as in `load(path, data=…)`", site=opened[0])
        self._data = data
        self._builder = Builder(self.model, data, self._built)
        self._morphism: ArrowModule | None = self._exported()
        self.programs: dict[str, ProgramModule] = {}
        self.templates: dict[str, Template] = {}
        for name, program in self.model.own_programs.items():
            if program.template:
                self.templates[name] = Template(program, snapshot, self._builder, partial(Filled, self, name))
            else:
                built = self._builder.named(name)
                assert isinstance(built, ProgramModule)
                self.programs[name] = built
        self.guides: dict[str, ProgramModule] = {}
        """The guides that the file writes as programs, for `qvr_core.inference.ProgramGuide`."""
        for name, program in self.model.programs.items():
            if program.guidance is not None and name not in self.model.imported:
                built = self._builder.named(name)
                assert isinstance(built, ProgramModule)
                self.guides[name] = built
        self.deductions: dict[str, DeductionModule] = {
            name: deduction_of(self._builder, name) for name in self.model.deductions
        }
        for name, module in (*self.programs.items(), *self.guides.items(), *self.deductions.items()):
            module.recipe = Part(self, name)
        if self._morphism is not None:
            self._morphism.recipe = self._morphism.recipe or Part(self, "")

    def __reduce__(self) -> Any:
        text = "\n".join(self.snapshot.lines)
        place = (self.snapshot.location, texts_of(self.snapshot.table.modules))
        return _again, (text, self.snapshot.known, self._data, self.source, *place), list(self.parameters())

    def __setstate__(self, parameters: list[Tensor]) -> None:
        for own, given in zip(self.parameters(), parameters, strict=True):
            take(own, given)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        with numbers_kept():
            made = type(self)(self.snapshot, self._data, self.source)
        memo[id(self)] = made
        made.__setstate__([copy.deepcopy(parameter, memo) for parameter in self.parameters()])
        return made

    def part(self, name: str) -> nn.Module:
        """The module of a program, a let, a morphism or a deduction; '' is what the file exports."""
        found = self._morphism if not name else self.deductions.get(name) or self._named(name)
        if found is None:
            raise RuntimeProblem(f"the file has no program, let, morphism or deduction `{name}`")
        return found

    def _built(self, program: ModelProgram, builder: Builder) -> ProgramModule:
        """A program that knows the lines of its steps, for errors."""
        built = ProgramModule(program, builder)
        origins: dict[str | None, Origin] = {**site_origins(program), None: program.origin}
        for name, origin in origins.items():
            built.places[name] = self._place(origin)
        return built

    def _place(self, origin: Origin) -> str:
        """`model.qvr:12`: the line of a step, in its own file."""
        there = self.snapshot.foreign(origin)
        return there or f"{self.source}:{self.snapshot.range(origin).start.line + 1}"

    def _exported(self) -> ArrowModule | None:
        """The first export; without one the last program or let."""
        model = self.model
        if model.exports:
            first = model.exports[0]
            if first.arrow is not None:
                return as_program(first.name, first.arrow, self._builder)
            return self._named(first.name)
        for name in reversed([name for name in model.order if name not in model.imported]):
            if name in model.lets or _is_whole(model, name):
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
        if name in model.term_arrows:
            return as_program(name, model.term_arrows[name], self._builder)
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
        built = self._builder.built(one_step(name, arrow, model, observed=True))
        assert isinstance(built, ProgramModule)
        built.recipe = Part(self, name, observed=True)
        return built

    @property
    def guide(self) -> ProgramModule:
        """The guide of `.morphism` that the file writes as a program, where it has one: `guides` has them by name.

        Raises `RuntimeProblem` where it has none, or several.
        """
        model = getattr(self._morphism, "name", "")
        found = self.model.guides_of(model)
        if len(found) == 1:
            return self.guides[next(iter(found))]
        names = ", ".join(f"`{name}`" for name in found)
        if found:
            raise RuntimeProblem(f"`{model}` has several guides, {names}: take one of them, `.guides[…]`")
        raise RuntimeProblem(f"the file has no guide of `{model}`: `program … [guide={model}]` declares one")

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
        yield from self.guides.values()
        yield from self.deductions.values()

    def parameters(self) -> Iterator[Tensor]:
        """Every parameter of the file once."""
        seen: set[int] = set()
        for module in self.modules():
            for parameter in module.parameters():
                if id(parameter) not in seen:
                    seen.add(id(parameter))
                    yield parameter

    def __repr__(self) -> str:
        templates = [f"template {name}" for name in self.templates]
        programs = (*self.programs.values(), *self.guides.values())
        parts = [*map(repr, programs), *templates, *(f"deduction {name}" for name in self.deductions)]
        lets = [f"let {name} : {each.arrow.domain.written} -> {each.arrow.codomain.written}"
                for name, each in self.model.lets.items()]  # fmt: skip
        return "\n".join([f"Program {self.source}", *(indent(part, "  ") for part in (*lets, *parts))])

    def __getattr__(self, name: str) -> Any:
        for table in ("templates", "programs", "guides", "deductions"):
            found = self.__dict__.get(table, {})
            if name in found:
                return found[name]
        raise AttributeError(f"the file has no program or deduction `{name}`")


def _is_whole(model: Model, name: str) -> bool:
    """Whether a name is that of a program that can be run by itself."""
    program = model.programs.get(name)
    return program is not None and not program.template and program.guidance is None


def _again(
    text: str,
    known: Mapping[str, KnownSet],
    data: Mapping[str, Any] | None,
    source: str,
    location: str,
    imports: Mapping[str, str],
) -> Program:
    """The program of a text whose open sets and imported texts are known; nobody's random numbers are used up."""
    with numbers_kept():
        return Program(_checked(analyse(text, known, location, Workspace(Bundle(imports))), source), data, source)
