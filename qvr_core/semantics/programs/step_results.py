"""The check of one step as a value that may be used again, and blocks of such values.

A long program is typed anew from the changed step on, and only where a step reads something new.  What the program as a
whole needs of its steps is summed up in blocks, so that a keystroke sums up one block.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from qvr_core.semantics.programs.undeclared.aligned_data import Alongside
from qvr_core.semantics.scope.environment import Begun, Binding, FreeName
from qvr_core.semantics.scope.scope import Argument, Entry, Equation, Globals, Scope, UnknownName
from qvr_core.semantics.types.diagnostics import Diagnostic, Origin, Place
from qvr_core.semantics.types.model.arrows import Density
from qvr_core.semantics.types.model.expressions import ValueType
from qvr_core.semantics.types.model.extents import NO_STAGES, Stages
from qvr_core.semantics.types.model.programs import DataName, Program
from qvr_core.semantics.types.model.steps import (
    LetModel,
    MarginalizeModel,
    ObserveModel,
    ParamModel,
    PredictModel,
    SampleModel,
    ScoreModel,
    StepModel,
)
from qvr_core.semantics.types.spaces import Linear, sizes
from qvr_core.semantics.types.walk import sites
from qvr_core.syntax.tree.declarations import Item
from qvr_core.syntax.tree.units import Placed, Statement


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

    def labels(self, name: str) -> tuple[str, ...] | None:
        return self.file.labels(name)

    def check_program(self, statement: Statement, scope: Scope, arguments: Mapping[str, Argument]) -> Program:
        return self.file.check_program(statement, scope, arguments)


@dataclass(slots=True)
class Changes:
    """What is not as it was: names of another type, names bound at another place, names and sizes of the file.

    `lags` are those of groups as they are now.
    """

    names: set[str]
    places: set[str]
    file: set[str]
    lags: Mapping[str, Begun]

    def note(self, name: str, before: Binding | None, now: Binding | None) -> None:
        """Compare what a name stood for with what it stands for."""
        if before is now:
            return
        if before is None or now is None or meaning(before) != meaning(now):
            self.names.add(name)
        elif before.origin != now.origin:
            self.places.add(name)


def meaning(binding: Binding) -> tuple[object, ...]:
    """What a step that reads a binding may depend on, but for the place in messages."""
    # equality of spaces looks at neither the spelling nor the variables behind the sizes
    space = binding.named.space
    found = chain(sizes(space), binding.type.sizes)
    forms = tuple(size if isinstance(size, Linear) else getattr(size, "form", None) for size in found)
    function = binding.function if binding.function is None else binding.origin
    return (
        binding.kind,
        binding.type,
        binding.named,
        binding.named.written,
        forms,
        binding.reaches,
        function,
        binding.real_site,
        binding.family,
        binding.constant,
        binding.range,
        binding.over,
        binding.numbers,
        binding.predicted,
        binding.begun,
        binding.drawn,
        binding.columns,
        binding.lengths,
    )


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Findings:
    """What checking steps looked up, reported and found out.  `stages` are the declared arrows that they apply."""

    entries: dict[str, Entry | None]
    sizes: dict[str, int | None]
    diagnostics: tuple[Diagnostic, ...]
    equations: tuple[Equation, ...]
    unknown_names: tuple[UnknownName, ...]
    size_places: dict[str, Place]
    size_values: dict[str, int]
    holes: dict[str, str]
    lifts: frozenset[str]
    uses_input: bool
    effects: frozenset[str]
    plates: frozenset[str]
    stages: Stages


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class StepResult(Findings):
    """What one step says, with everything that it read.

    `units` are the unit of the step and the uids and units of its block; `binds` what it binds for the steps below,
    `nested` what its block binds for itself; `reads` the names that it asked for, `read` what they stood for.
    """

    units: tuple[Any, ...]
    model: StepModel | None
    binds: dict[str, Binding]
    nested: tuple[tuple[str, Binding], ...]
    reads: frozenset[str]
    read: dict[str, Binding]
    begins: Mapping[str, Begun]
    """How the names of a let begin that others tie to it."""
    free: tuple[FreeName, ...]
    data: dict[str, tuple[ValueType, Origin]]
    inlined: tuple[StepModel, ...] = ()
    """All that the step comes to where it draws from a template that is inlined; `model` is one of them."""
    inherited: tuple[DataName, ...] = ()
    """The data that come with such a template."""
    beside: Alongside | None = None
    """What the step says of data that stand beside its values."""

    @property
    def models(self) -> tuple[StepModel, ...]:
        return self.inlined or (() if self.model is None else (self.model,))

    def untouched(self, changes: Changes) -> bool:
        """True where checking the step again would say the same."""
        return (
            changes.names.isdisjoint(self.reads)
            and self._begins_so(changes.lags)
            and (not self.diagnostics or changes.places.isdisjoint(self.reads))
            and (not changes.file or (changes.file.isdisjoint(self.entries) and changes.file.isdisjoint(self.sizes)))
        )

    def _begins_so(self, lags: Mapping[str, Begun]) -> bool:
        return not (lags or self.begins) or self.begins == {name: lags[name] for name in self.binds if name in lags}

    def fits(self, bindings: Mapping[str, Binding], lags: Mapping[str, Begun], file: Globals) -> bool:
        """True where checking the step among these bindings would say the same."""
        if not self._begins_so(lags):
            return False
        for name in self.reads:
            then, now = self.read.get(name), bindings.get(name)
            if then is now:
                continue
            if then is None or now is None or meaning(then) != meaning(now):
                return False
            if self.diagnostics and then.origin != now.origin:
                return False
        return all(file.entry(name) is entry for name, entry in self.entries.items()) and all(
            file.solved(name) == value for name, value in self.sizes.items()
        )


def unit_identities(placed: Placed[Item]) -> tuple[Any, ...]:
    """The unit of a step, then the uids and units of the lines below it."""
    if not placed.children:
        return (placed.unit,)
    return (placed.unit, *(part for child in placed.children for part in (child.uid, *unit_identities(child))))


def same_text(placed: Placed[Item], units: tuple[Any, ...]) -> bool:
    """True where a step still consists of `units`, each line at the place that its findings name."""
    if not placed.children:
        return len(units) == 1 and placed.unit is units[0]
    return unit_identities(placed) == units


# ---------------------------------------------------------------- blocks

BLOCK = 32
"""A step whose uid is a multiple of this starts a block, wherever it stands: blocks survive insertions above them."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Block(Findings):
    """Some neighbouring steps, summed up."""

    results: list[StepResult]
    models: tuple[StepModel, ...]
    binds: dict[str, Binding]
    distinct: bool
    """False where a name is bound twice inside the block."""
    reads: tuple[str, ...]
    """The names that each step reads, one step after the other, with repetitions."""
    optional: Mapping[str, StepResult]
    """Names that lets and samples bind: what may turn out to be unused."""
    nested: tuple[StepResult, ...]
    free: tuple[StepResult, ...]
    declared: Mapping[str, Binding]
    """The names that `data` steps declare."""
    inherited: tuple[DataName, ...]
    sampled: bool
    incomplete: bool
    """Whether a step says what becomes of missing cells."""
    density: Density
    """Draws of all sites together; kind 'none' and 'score' where one of them is."""

    def write_to(self, scope: Scope) -> None:
        """Hand on what the steps found."""
        scope.diagnostics.extend(self.diagnostics)
        scope.equations.extend(self.equations)
        scope.unknown_names.extend(self.unknown_names)
        scope.size_places.update(self.size_places)
        scope.size_values.update(self.size_values)
        scope.holes.update(self.holes)


def make_block(results: list[StepResult]) -> Block:
    """Sum up some steps."""
    binds: dict[str, Binding] = {}
    for name, binding in chain.from_iterable(result.binds.items() for result in results):
        # what is bound again, as data that are observed, stands where it is bound last
        binds.pop(name, None)
        binds[name] = binding
    optional = {
        name: result
        for result in results
        if isinstance(result.model, LetModel | SampleModel)
        for name, binding in result.binds.items()
        if not binding.predicted
    }
    return Block(
        results=results,
        models=tuple(chain.from_iterable(result.models for result in results)),
        binds=binds,
        distinct=len(binds) == sum(len(result.binds) for result in results),
        reads=tuple(chain.from_iterable(result.reads for result in results)),
        optional=optional,
        nested=tuple(result for result in results if result.nested),
        free=tuple(result for result in results if result.free),
        declared={
            name: binding for result in results for name, binding in result.binds.items() if binding.kind == "data"
        },
        entries=_merged(result.entries for result in results),
        sizes=_merged(result.sizes for result in results),
        diagnostics=tuple(chain.from_iterable(result.diagnostics for result in results)),
        equations=tuple(chain.from_iterable(result.equations for result in results)),
        unknown_names=tuple(chain.from_iterable(result.unknown_names for result in results)),
        size_places=_merged(result.size_places for result in results),
        size_values=_merged(result.size_values for result in results),
        holes=_merged(result.holes for result in results),
        lifts=frozenset[str]().union(*(result.lifts for result in results)),
        uses_input=any(result.uses_input for result in results),
        effects=frozenset[str]().union(*(result.effects for result in results)),
        plates=frozenset[str]().union(*(result.plates for result in results)),
        inherited=tuple(chain.from_iterable(result.inherited for result in results)),
        sampled=any(map(_is_sampled, results)),
        incomplete=any(map(_is_incomplete, results)),
        stages=sum((result.stages for result in results), NO_STAGES),
        density=_joint_density(results),
    )


def _merged(parts: Iterable[dict[str, Any]]) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    for part in parts:
        merged.update(part)
    return merged


def _is_sampled(result: StepResult) -> bool:
    return any(
        isinstance(model, MarginalizeModel | ScoreModel)
        or (isinstance(model, SampleModel | ObserveModel | PredictModel) and model.site.density.kind != "deterministic")
        for model in result.models
    )


def _is_incomplete(result: StepResult) -> bool:
    """Whether cells of a step may be missing, or some of its elements not exist."""
    models = [model for model in result.models if not isinstance(model, LetModel | ScoreModel | ParamModel)]
    if any(model.site.lengths is not None for model in models):
        return True
    inner = [model for model in models if isinstance(model, ObserveModel | MarginalizeModel)]
    found = list(sites(inner, ObserveModel)) if inner else []
    return any(site.missing is not None or site.lengths is not None for site in found)


def _joint_density(results: Sequence[StepResult]) -> Density:
    models = chain.from_iterable(result.models for result in results)
    found = [model.site.density for model in models if isinstance(model, SampleModel | ObserveModel)]
    drawn = [density for density in found if density.kind != "deterministic"]
    kinds = {density.kind for density in drawn}
    kind = "none" if "none" in kinds else "score" if "score" in kinds else "exact"
    draws = sum(max(density.draws, 1) for density in drawn)
    return Density(kind, 0, math.prod(density.summed for density in drawn), draws)


# ---------------------------------------------------------------- passes


@dataclass(slots=True)
class Pass:
    """One reading of a program, kept for the next: what the header bound, the steps and their results, the blocks."""

    inputs: dict[str, Binding] = field(default_factory=dict[str, Binding])
    order: list[Placed[Item]] = field(default_factory=list[Placed[Item]])
    results: list[StepResult] = field(default_factory=list[StepResult])
    final: dict[str, Binding] = field(default_factory=dict[str, Binding])
    lags: Mapping[str, Begun] = field(default_factory=dict[str, Begun])
    blocks: dict[int, Block] = field(default_factory=dict[int, Block])
    """By the identity of the first result."""
    former: dict[int, Block] = field(default_factory=dict[int, Block])
    """The blocks before those: what is typed and taken back finds them."""
    earlier: dict[int, StepResult] = field(default_factory=dict[int, StepResult])
    """By the uid of a step: its result before the present one.  A name that is mistyped and fixed gets it back."""

    def stale(self, file: Globals) -> set[str]:
        """Names of the file and unknown sizes that mean something else than when the steps were checked."""
        changed: set[str] = set()
        for block in self.blocks.values():
            for name, entry in block.entries.items():
                if file.entry(name) is not entry:
                    changed.add(name)
            for name, value in block.sizes.items():
                if file.solved(name) != value:
                    changed.add(name)
        return changed

    def regroup(self) -> list[Block]:
        """The blocks of the current results; those that have not changed are kept."""
        found: list[Block] = []
        group: list[StepResult] = []
        for placed, result in zip(self.order, self.results, strict=True):
            if not placed.uid % BLOCK and group:
                found.append(self._block(group))
                group = []
            group.append(result)
        if group:
            found.append(self._block(group))
        blocks = {id(block.results[0]): block for block in found}
        if any(blocks.get(key) is not block for key, block in self.blocks.items()):
            self.former = self.blocks
        self.blocks = blocks
        return found

    def _block(self, group: list[StepResult]) -> Block:
        first = id(group[0])
        for known in (self.blocks.get(first), self.former.get(first)):
            if known is not None and known.results == group:
                return known
        return make_block(group)


Memory = dict[frozenset[str], Pass]
"""The passes of a program's last check, by the inputs that were read as sequences."""
