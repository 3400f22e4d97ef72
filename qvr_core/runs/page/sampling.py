"""A program and its data as one module of WebAssembly: its density, the sampler, and what a position means."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from qvr_core.analysis import Snapshot, analyse
from qvr_core.arrays.engine import arrays, new_graph
from qvr_core.arrays.graph import Array, Unsupported, recording_into
from qvr_core.arrays.listing import FUNCTIONS
from qvr_core.arrays.operations import reduce, reshape
from qvr_core.codegen.kernels import nuts_and_hmc
from qvr_core.codegen.lowering.density import lowered
from qvr_core.codegen.lowering.lowering import NoLoops
from qvr_core.codegen.source import Text
from qvr_core.codegen.wasm.page_sampler import sampler
from qvr_core.data.needs import needs_of, open_sets
from qvr_core.dsl import CheckFailed, Program
from qvr_core.inference.machine.referee import disagreement
from qvr_core.inference.machine.tracing import density_graph, work_of
from qvr_core.inference.mcmc.adaptation import EARLY_DEPTH, EARLY_DRAWS, is_early, window_ends
from qvr_core.inference.mcmc.potential import ProgramPotential
from qvr_core.runs.page.data import Files, bound, opened
from qvr_core.runtime.values.errors import InputProblem
from qvr_core.semantics.file.open_sets import KnownSet
from qvr_core.semantics.types.diagnostics import Severity
from qvr_core.semantics.types.model.programs import Program as ModelProgram

COMPARED = 2
"""Positions at which the module is compared with the plain density."""
MOST_STARTS = 20
"""Positions that a chain may start from, one after the other, until its density is finite there."""


@dataclass(frozen=True, slots=True)
class Reported:
    """A latent of the program: its name, its shape, the line on which it is drawn, from 0 on."""

    name: str
    shape: tuple[int, ...]
    line: int | None


@dataclass(frozen=True, slots=True)
class Sampling:
    """All that a page needs for chains of a program.

    `module` exports `log_density`, `report`, `advance` and `mixing`; the density and the report read the constants
    (reals, wholes) and want so much room.
    """

    module: bytes
    width: int
    density: Text
    report: Text
    reported: tuple[Reported, ...]
    starts: tuple[tuple[float, ...], ...]
    window_start: int
    ends: tuple[int, ...]
    early: int
    early_depth: int
    most_depth: int = 10
    checkpoints: int = nuts_and_hmc.CHECKPOINTS
    potential: ProgramPotential | None = None
    work: int = 0
    """Numbers that one evaluation of the plain density makes."""

    def disagreement(self, made: Callable[..., Sequence[float]]) -> str | None:
        """What is wrong with the module's density, which gives the value and then the gradient at coordinates; as the
        end of a sentence."""
        plain = self.potential
        assert plain is not None

        def density(q: Any) -> tuple[float, Any]:
            value, *slope = made(*q.tolist())
            return value, np.array(slope)

        # far out what 1 − p has lost of a p near 1, say, is lost in another way by every other rounding
        middle = 0.25 * np.array(self.starts[0])
        return disagreement(density, plain.log_densities, middle, self.work, COMPARED, adaptive=self.density.adaptive)


def sampling(text: str, files: Files, *, chains: int, warmup: int, seed: int, location: str = "") -> Sampling:
    """The program of a text on its data.  Raises `CheckFailed`, `DataProblem` and `RuntimeProblem`."""
    arrays.manual_seed(seed)
    sources = files.read()
    snapshot = _checked(analyse(text, None, location))
    program = exported(snapshot)
    written = needs_of(program)
    known: Mapping[str, KnownSet] = opened(sources, program, snapshot) if open_sets(snapshot.model) else {}
    if known:
        snapshot = _checked(analyse(text, known, location))
        program = exported(snapshot)
    needs = needs_of(program)
    if not needs.statistical:
        raise InputProblem(f"`{program.name}` reads an input: a page samples statistical programs")
    data = bound(sources, written.all, (*needs.observed, *needs.data))
    model = Program(snapshot, data).programs[program.name]
    potential = ProgramPotential(model, None, data)
    try:
        value, slope = density_graph(potential)
        density, report = lowered(value, slope), report_text(potential)
    except (Unsupported, NoLoops) as error:
        raise InputProblem(f"`{program.name}` cannot be sampled here: it has {error}") from None
    rng = np.random.default_rng(seed)
    starts = tuple(tuple(map(float, potential.initial(rng))) for _ in range(chains * MOST_STARTS))
    window_start, ends = window_ends(warmup)
    return Sampling(
        sampler(density, report[0]), potential.width, density, *report, starts, window_start, tuple(ends),
        EARLY_DRAWS if is_early(0, warmup) else 0, EARLY_DEPTH, potential=potential, work=work_of(value),
    )  # fmt: skip


def exported(snapshot: Snapshot) -> ModelProgram:
    """The program that a file exports, or its last.  Raises `InputProblem`."""
    model = snapshot.model
    names = [export.name for export in model.exports] + list(reversed(model.own_programs))
    for name in names:
        found = model.own_programs.get(name)
        if found is not None and not found.template:
            return found
    raise InputProblem("the file has no program to sample")


def report_text(potential: ProgramPotential) -> tuple[Text, tuple[Reported, ...]]:
    """The latents at a position, one behind the other, as loops, and what they are.  Raises `Unsupported`."""
    graph = new_graph()
    q = graph.position(potential.width)
    with recording_into(graph):
        here: Any = reshape(q, (1, potential.width))
        values = potential.report(here)
        flat = [reshape(_real(value), (value.numel(),)) for value in values.values()]
        whole = FUNCTIONS["cat"](flat, 0) if len(flat) > 1 else flat[0]
        total = reduce("sum", whole)
    places = potential.model.places
    reported = tuple(
        Reported(name, tuple(value.shape[1:]), _line(places.get(name.partition("/")[0])))
        for name, value in values.items()
    )
    return lowered(total, whole), reported


def _real(value: Any) -> Array:
    return FUNCTIONS["double"](value)


def _line(place: str | None) -> int | None:
    number = (place or "").rpartition(":")[2]
    return int(number) - 1 if number.isdecimal() else None


def _checked(snapshot: Snapshot) -> Snapshot:
    found = snapshot.diagnostics()
    if any(item.severity is Severity.ERROR for item in found):
        raise CheckFailed("the program", found)
    return snapshot
