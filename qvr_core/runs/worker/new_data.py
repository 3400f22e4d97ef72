"""What is predicted on in place of the data of a fit: other files, or what a Python program hands over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from pydantic import ValidationError

from qvr_core.container_types import is_mapping, is_sequence
from qvr_core.data.frames import columns_of, holds_numbers, is_dataset, is_frame, of_python
from qvr_core.data.tables.columns import Columns
from qvr_core.data.tables.reading import read_columns
from qvr_core.data.typed.sources import Arrays, Sources
from qvr_core.runs.prepare.failures import Refused
from qvr_core.runs.prepare.prepare import data_path
from qvr_core.runs.prepare.typed_data import TypedData, read_sources
from qvr_core.runs.record.config import TABLES, RunConfig
from qvr_core.runs.record.protocol import Job
from qvr_core.runs.record.settings import UsageProblem, data_flags
from qvr_core.runs.worker.joined_tables import joined

TAKEN = (
    "Give a source, `csv:new.csv`, or a list of them; a frame of polars or pandas; an xarray.Dataset; or a mapping "
    "from names to arrays, series and frames"
)


class NewData(Protocol):
    """Where new rows come from."""

    def job(self, fit: Job) -> Job:
        """The job of a fit, on these data.  Raises `Refused` where it cannot read them."""
        ...

    def columns(self, job: Job) -> Columns:
        """Its main table as it stands.  Raises `DataProblem`."""
        ...

    def sources(self, job: Job, fit: Job) -> TypedData:
        """All that a job with declared sets reads; tables of the fit that these data say nothing of stay its own."""
        ...

    @property
    def typed(self) -> bool:
        """Whether they are laid along declared sets, whatever the program says."""
        ...


def new_data(data: Any, base: str) -> NewData | None:
    """What `data=` of a Python program is: sources whose paths start at `base`, or what holds the numbers itself.
    Raises `Refused` where it is neither."""
    if data is None:
        return None
    if isinstance(data, str | Path):
        return NewFiles((str(data),), base)
    if is_frame(data) or is_dataset(data):
        return HandedOver(data)
    if is_mapping(data):
        odd = next((n for n, one in data.items() if not is_frame(one) and not holds_numbers(one)), None)
        if odd is not None:
            raise Refused("data", f"`{odd}` of the new data is {_kind(data[odd])}", fixes=(TAKEN,))
        return HandedOver({str(name): one for name, one in data.items()})
    if is_sequence(data) and all(isinstance(one, str | Path) for one in data):
        return NewFiles(tuple(map(str, data)), base) if data else None
    raise Refused("data", f"the new data are {_kind(data)}, which says of no number what it is", fixes=(TAKEN,))


def _kind(value: Any) -> str:
    kind: type = value.__class__
    package = kind.__module__.partition(".")[0]
    return f"a `{kind.__name__}`" if package == "builtins" else f"a `{package}.{kind.__name__}`"


# ---------------------------------------------------------------- files


@dataclass(frozen=True)
class NewFiles:
    """Sources such as `csv:new.csv` and `County=csv:more.csv`, whose paths start at `base`."""

    given: Sequence[str]
    base: str
    typed = False

    def job(self, fit: Job) -> Job:
        return with_data(fit, self.given, self.base)

    def columns(self, job: Job) -> Columns:
        return read_columns(data_path(job), job.config.source, None)

    def sources(self, job: Job, fit: Job) -> TypedData:
        return joined(read_sources(job, None), job, fit)


def with_data(job: Job, data: Sequence[str], base: str) -> Job:
    """A job that reads other sources in place of its own, those of other names beside them; paths start at `base`.
    Raises `Refused` where one is none."""
    own = job.config.placed(Path(job.base))
    try:
        main, tables = data_flags(data)
        new = RunConfig(tables=tables) if main is None else RunConfig(data=main, tables=tables)
    except UsageProblem as problem:
        raise Refused("data", f"--data: {problem}") from None
    except ValidationError as problem:
        raise Refused("data", f"--data: {problem.errors()[0]['msg'].removeprefix('Value error, ')}") from None
    changed = {"tables": {**own.tables, **new.placed(Path(base)).tables}, "batch_size": None}
    if main is None:
        return job.model_copy(update={"config": own.model_copy(update=changed)})
    return job.model_copy(update={"config": own.model_copy(update={**changed, "data": new.data}), "base": base})


# ---------------------------------------------------------------- frames and arrays


@dataclass(frozen=True)
class HandedOver:
    """A frame, a dataset, or a mapping from names to arrays, series and frames; frames are called as sets and stand
    beside the tables of the fit, everything else stands in place of its main file."""

    data: Any

    @property
    def _frames(self) -> set[str]:
        """The names of frames among the values of a mapping."""
        return {name for name, one in self.data.items() if is_frame(one)} if is_mapping(self.data) else set()

    @property
    def _main(self) -> bool:
        return not is_mapping(self.data) or len(self._frames) < len(self.data)

    @property
    def typed(self) -> bool:
        return bool(self._frames)

    def job(self, fit: Job) -> Job:
        source = fit.config.source
        if source not in ("synthetic", *TABLES):
            message = f"the run was fitted to `{source}`, and a frame or a mapping holds columns"
            raise Refused("data", message, fixes=(f"Name files as in the fit: `{source}:PATH`",))
        own = fit.config.placed(Path(fit.base))
        told = set(self.data) if is_mapping(self.data) else set[str]()
        tables = {name: table for name, table in own.tables.items() if name not in told}
        return fit.model_copy(update={"config": own.model_copy(update={"tables": tables, "batch_size": None})})

    def columns(self, job: Job) -> Columns:
        return columns_of(self.data)

    def sources(self, job: Job, fit: Job) -> TypedData:
        main = {} if not self._main else {"data": "synthetic"}
        kept = read_sources(job.model_copy(update={"config": job.config.model_copy(update=main)}), None)
        given, first = of_python(self.data), int(bool(job.config.one_based))
        own, columns = kept.sources.main, kept.columns
        if self._main:
            own = replace(given.main, first=first) if isinstance(given.main, Arrays) else given.main
            columns = self.columns(job)
        sources = Sources(own, {**kept.sources.named, **given.named}, job.config.columns, first)
        return joined(TypedData(sources, columns), job, fit)
