"""`batch_size` with declared data: a part of the rows in each step, whose terms stand for all (docs/runs.md).

The rows are the elements of the set that the program's type names.  The program is built once more with as many of them
as a step sees; it has the latents and the parameters of the whole one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from qvr_core.arrays.engine import Tensor, arrays
from qvr_core.data.binding import Whole
from qvr_core.data.needs import Need, Needs
from qvr_core.inference.row_terms import adding_up
from qvr_core.runs.prepare.failures import Refused
from qvr_core.runs.prepare.prepare import Prepared
from qvr_core.runs.prepare.row_terms import refusing
from qvr_core.runs.prepare.runnable import built
from qvr_core.runs.prepare.tables_in_blocks import Scanned
from qvr_core.runs.record.protocol import Job
from qvr_core.runtime.programs.handlers import Handler, scale
from qvr_core.runtime.programs.program import ProgramModule
from qvr_core.semantics.file.open_sets import KnownSet
from qvr_core.semantics.types.model.families import FamilyDraw
from qvr_core.semantics.types.model.programs import Program
from qvr_core.semantics.types.model.steps import ObserveModel, PredictModel, SampleModel
from qvr_core.semantics.types.shifts import shifted_sets
from qvr_core.semantics.types.spaces import Finite, factors_of
from qvr_core.semantics.types.walk import all_steps, sites

if TYPE_CHECKING:
    from qvr_core.data.scanned.rows import BlockRows

LOOKED_AT = 32
"""Rows of each half on which is seen what adds up over rows."""
WHOLE = ("Leave batch_size out",)


@dataclass(frozen=True)
class Parts:
    """Parts of the rows of a program's data: `size` of the `rows` are what one process sees in a step, by the `model`
    that is built for so many; `places` is the axis of the rows of each name that has them in memory, and `blocks` the
    table that the others are read from by blocks."""

    rows: int
    size: int
    model: ProgramModule
    values: Mapping[str, Tensor]
    places: Mapping[str, int]
    terms: frozenset[str]
    sized: Sized
    blocks: BlockRows | None = None

    @property
    def scaled(self) -> Handler:
        """What makes the terms of a part stand for those of all rows."""
        return scale(dict.fromkeys(self.terms, self.rows / self.size))

    def batch(self, rows: Tensor, generator: arrays.Generator | None = None) -> tuple[Any, dict[str, Tensor]]:
        """The data with these rows, and all that has none."""
        found = part_of(self.values, self.places, rows)
        return None, found if self.blocks is None else {**found, **self.blocks.take(rows.numpy())}

    def spread(self, count: int) -> Tensor:
        """Numbers of `count` rows from all of the table, int64 (count,)."""
        if self.blocks is not None:
            return self.blocks.spread(count)
        return (arrays.arange(count) * (self.rows / count)).long()


def part_of(values: Mapping[str, Tensor], places: Mapping[str, int], rows: Tensor) -> dict[str, Tensor]:
    """The values with these rows alone along their axis of rows."""
    return {n: v.index_select(places[n], rows) if n in places else v for n, v in values.items()}


def parts_of(prepared: Prepared, processes: int = 1) -> Parts | None:
    """The parts of a run's rows that each of so many processes sees; None where a step sees them all, or reads them
    from its table.

    Raises `Refused` where a part cannot stand for all.
    """
    job, program, model, needs = prepared.job, prepared.program, prepared.model, prepared.written
    size, train = job.config.batch_size, prepared.train
    if size is None or needs is None or not isinstance(train, Whole | Scanned):
        return None
    values = train.observations if isinstance(train, Whole) else train.values
    blocks = train.blocks if isinstance(train, Scanned) else None
    row_set = program.declared_domain.space
    if not isinstance(row_set, Finite) or row_set.nominal is None or not isinstance(row_set.size, int):
        message = f"batch_size takes a part of the rows, and the type of `{program.name}` names no set of them"
        raise Refused("batch", message, fixes=WHOLE)
    name, rows = row_set.nominal, int(row_set.size)
    if size >= rows:
        return None
    if size % processes:
        message = f"batch_size is {size}, and {processes} processes take as many rows each"
        fixes = (f"Set batch_size = {max(size // processes, 1) * processes}", "Start another number of processes")
        raise Refused("processes", message, fixes=fixes)
    _check(program, needs, name)
    if blocks is not None:
        _check_kept(program, name)
    places = _places(needs, name, rows, values)
    sized = Sized(job, prepared.known, name, model, prepared.device)
    found = Parts(rows, size // processes, model, values, places, frozenset(), sized, blocks)
    half = max(1, min(LOOKED_AT, rows // 2))
    spread = found.spread(2 * half)
    with refusing():
        terms = adding_up(
            (sized.with_rows(2 * half), found.batch(spread)[1]),
            [(sized.with_rows(half), found.batch(one)[1]) for one in (spread[::2], spread[1::2])],
        )
    return replace(found, model=sized.with_rows(found.size), terms=terms)


@dataclass(frozen=True)
class Sized:
    """The program with another number of rows."""

    job: Job
    known: Mapping[str, KnownSet]
    name: str
    whole: ProgramModule
    device: arrays.device

    def with_rows(self, count: int) -> ProgramModule:
        """Built with so many rows, and the parameters of the whole program."""
        job, known = self.job, dict(self.known)
        if self.name in known:
            known[self.name] = KnownSet(count)
        else:
            pattern = rf"^(object\s+{re.escape(self.name)}\s*:\s*FinSet\s+)\d+\b"
            text, found = re.subn(pattern, rf"\g<1>{count}", job.text, flags=re.M)
            if not found:
                message = f"batch_size takes a part of the rows, and `{self.name}` has elements of its own"
                raise Refused("batch", message, fixes=(f"Declare `object {self.name} : FinSet _`", *WHOLE))
            job = job.model_copy(update={"text": text})
        model = built(job, known).to(self.device)
        own = dict(self.whole.named_parameters())
        for path, parameter in list(model.named_parameters()):
            if own[path].shape != parameter.shape:
                message = f"batch_size takes a part of the rows, and `{path}` has weights for each `{self.name}`"
                raise Refused("batch", message, fixes=WHOLE)
            *folders, last = path.split(".")
            setattr(model.get_submodule(".".join(folders)), last, own[path])
        return model


# ---------------------------------------------------------------- what cannot be seen in parts


def _reading(program: Program, latent: str) -> str:
    """The form in which a latent of each row has no entry of its own: what a guide says of it follows from the row."""
    return (
        f"Let the program read its rows, `program {program.name}(x) : A -> B` with `sample {latent} <- f(x)`, and draw "
        f"`{latent}` from them in a guide, `program encoder : A -> B [guide={program.name}]` (an amortised guide: "
        "docs/reference.md#guides)"
    )


def _check(program: Program, needs: Needs, name: str) -> None:
    """Raise `Refused` where the program says something of the rows as a whole."""
    part = "batch_size takes a random part of the rows in each step"
    if name in shifted_sets(program):
        message = f"{part}, and `{program.name}` reads earlier elements of `{name}`: a part has others before them"
        raise Refused("batch", message, fixes=WHOLE)
    for step in all_steps(program.steps):
        if isinstance(step, SampleModel) and name in _sets(step):
            message = f"{part}, but `{step.site.name}` is a latent for every element of `{name}`"
            raise Refused("batch", message, site=step.site.name, fixes=(_reading(program, step.site.name), *WHOLE))
    for site in sites(program.steps, ObserveModel):
        if site.missing is not None and site.missing.how != "drop":
            message = f"{part}, but missing cells of `{site.name}` are latents of all rows"
            raise Refused("batch", message, site=site.name, fixes=WHOLE)
    for need in needs.all:
        if need.values is not None and need.values.name == name:
            message = f"{part}, but `{need.name}` holds elements of `{name}`, which may not be in the part"
            raise Refused("batch", message, site=need.name, fixes=WHOLE)


def _check_kept(program: Program, name: str) -> None:
    """Raise `Refused` where the program keeps something of every row of a table that is read by blocks."""
    for step in all_steps(program.steps):
        if isinstance(step, PredictModel) and name in _sets(step):
            message = f"`{step.site.name}` is a prediction of every element of `{name}`, whose table is read by blocks"
            raise Refused("batch", message, site=step.site.name, fixes=("Leave the prediction out",))


def _sets(step: SampleModel | PredictModel) -> set[str | None]:
    """The sets that a draw runs over."""
    site = step.site
    spaces = [space for named in (site.plate, site.element, site.over) if named for space in factors_of(named.space)]
    spaces += [index.space for index in site.indices]
    over = {space.nominal for space in spaces if isinstance(space, Finite)}
    drawn = site.draw.args if isinstance(site.draw, FamilyDraw) else ()
    return over.union(*(value.type.indexed for _, value in drawn))


def _places(needs: Needs, name: str, rows: int, values: Mapping[str, Tensor]) -> dict[str, int]:
    """The axis of the rows of each name that has them."""
    found: dict[str, int] = {}
    for need in needs.all:
        value = values.get(need.name)
        at = None if value is None else _place(need, name, rows, value)
        if at is not None:
            found[need.name] = at
    return found


def _place(need: Need, name: str, rows: int, value: Tensor) -> int | None:
    if need.axes is not None:
        at = [place for place, axis in enumerate(need.axes) if axis.name == name]
        if len(at) > 1:
            message = f"batch_size takes a part of the rows, and `{need.name}` runs over `{name}` twice"
            raise Refused("batch", message, site=need.name, fixes=WHOLE)
        return at[0] if at and value.ndim else None
    if need.plate is not None:
        return 0 if need.plate[0] == name else None
    if value.ndim and rows in value.shape:
        message = f"batch_size takes a part of the rows, and nothing says whether `{need.name}` runs over `{name}`"
        raise Refused("batch", message, site=need.name, fixes=(f"Declare it: `data {need.name} : …`", *WHOLE))
    return None
