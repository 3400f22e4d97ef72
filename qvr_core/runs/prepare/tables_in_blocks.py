"""A table larger than memory: read by blocks of rows in a fit by svi with `batch_size`, else as a whole if it fits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qvr_core.arrays.engine import Tensor, arrays
from qvr_core.data.binding import Whole
from qvr_core.data.needs import needs_of
from qvr_core.data.problems import DataProblem
from qvr_core.data.size_limits import available, check_room, in_bytes
from qvr_core.data.typed.sources import Source
from qvr_core.runs.record.config import RunConfig
from qvr_core.runs.record.protocol import Job
from qvr_core.semantics.types.model.programs import Program
from qvr_core.semantics.types.spaces import Finite

if TYPE_CHECKING:
    from qvr_core.data.scanned.plan import Plan
    from qvr_core.data.scanned.rows import BlockRows

COPIES = 9
"""Of the numbers of a table that is seen whole, while its density is made and compared.  Measured: 7.8 with seven
numbers a row and a regression."""
SEES_ALL = "Fit it by svi with batch_size, which sees a part of the rows in each step"


@dataclass(frozen=True)
class Scanned:
    """Rows of a table that is read by blocks, and the `values` that other files give."""

    blocks: BlockRows
    values: Mapping[str, Tensor]

    @property
    def rows(self) -> int:
        return self.blocks.rows

    def batch(self, rows: Tensor, generator: arrays.Generator | None = None) -> tuple[Any, dict[str, Tensor]]:
        """The rows of these numbers.  Raises `DataProblem` for more than are to be held."""
        plan = self.blocks.numbers.plan
        if (size := 8 * plan.numbers * len(rows)) > MOST:
            message = f"all of its {self.rows:,} rows are asked for, and it is read by blocks: that would be "
            raise DataProblem(f"{message}{in_bytes(size)}", path=plan.table.path, remedy="Take some of the rows")
        return None, {**self.values, **self.blocks.take(rows.numpy())}


MOST = 2**30
"""Bytes of rows that are asked for at once."""


def in_blocks(job: Job, program: Program, path: str, named: Mapping[str, Source], room: int | None) -> BlockRows | None:
    """The rows of a large table whose rows are the elements of the set in the type of `program`, looked through once;
    None for a small one, which is read whole.  Raises `DataProblem`, also for one that is too large and cannot be read
    by blocks."""
    plan, config = _planned(job.config, program, path, named, room), job.config
    if plan is None:
        return None
    from qvr_core.data.scanned.numbers import Numbers
    from qvr_core.data.scanned.rows import BlockRows
    from qvr_core.data.scanned.survey import sets_of, survey_of

    if not in_parts(config, plan.table.rows):
        _check_whole(config, path, plan.table.rows, plan.numbers, room)
    survey = survey_of(plan, Path(job.directory).parents[1] / "cache")
    return BlockRows(Numbers(plan, sets_of(plan, survey), survey.missing))


def problems_in_blocks(
    program: Program, config: RunConfig, path: str, named: Mapping[str, Source]
) -> list[DataProblem] | None:
    """What does not fit between a large table and a program, at most one problem a name; None for a table that is read
    whole.  Raises `DataProblem` where it cannot be read."""
    plan = _planned(config, program, path, named, available())
    if plan is None:
        return None
    from qvr_core.data.scanned.survey import looked_through

    return looked_through(plan)[1]


def _planned(
    config: RunConfig, program: Program, path: str, named: Mapping[str, Source], room: int | None
) -> Plan | None:
    """How a large table is read by blocks; None where it is read whole.  Raises `DataProblem` where it does not fit
    then."""
    needs, space = needs_of(program), program.declared_domain.space
    from qvr_core.data.scanned.files import parquet_table
    from qvr_core.data.scanned.plan import STREAMED, planned

    table = parquet_table(path)
    if 8 * table.rows * len(table.columns) <= STREAMED:
        return None
    plan: Plan | str = f"the type of `{program.name}` names no set of rows"
    if not needs.statistical:
        plan = f"`{program.name}` reads its input"
    elif isinstance(space, Finite) and space.nominal is not None:
        plan = planned(table, needs.all, space.nominal, named, config.columns, int(bool(config.one_based)))
    if isinstance(plan, str):
        remedy = f"It is not read by blocks of rows, since {plan}"
        check_room(path, AS_CELLS * table.rows * len(table.columns), room, remedy=remedy)
        return None
    return plan if 8 * table.rows * plan.numbers > STREAMED else None


AS_CELLS = 60
"""Bytes of a cell that is read as a value of Python.  Measured."""


def in_parts(config: RunConfig, rows: int) -> bool:
    """Whether a step of a fit sees a part of so many rows."""
    return config.algorithm == "svi" and config.batch_size is not None and config.batch_size < rows


def with_blocks(
    config: RunConfig, others: Mapping[str, Tensor], blocks: BlockRows, room: int | None
) -> Whole | Scanned:
    """The data of a run, of which a step sees a part or all.  Raises `DataProblem` where all are more than `room`."""
    if in_parts(config, blocks.rows):
        return Scanned(blocks, others)
    plan = blocks.numbers.plan
    _check_whole(config, plan.table.path, blocks.rows, plan.numbers, room)
    return Whole({**others, **blocks.whole()})


def _check_whole(config: RunConfig, path: str, rows: int, numbers: int, room: int | None) -> None:
    needed = COPIES * 8 * rows * numbers
    if room is None or needed <= room:
        return
    sees = "a chain sees all rows" if config.algorithm == "nuts" else "without batch_size a step sees all rows"
    message = (
        f"{sees}: {rows:,} of {numbers} numbers, for which the run needs about {in_bytes(needed)}, and "
        f"{in_bytes(max(room, 0))} of the memory are left"
    )
    raise DataProblem(message, path=path, remedy=f"{SEES_ALL}, take fewer rows, or raise memory_limit")
