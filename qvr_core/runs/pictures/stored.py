"""What a picture is drawn of: chosen numbers of a stored posterior, each a variable of its own, and data with draws."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qvr_core.inference.labelled_datasets import Dataset, Tree, Variable
from qvr_core.runs.evaluation.loo import called
from qvr_core.runs.record.name_roles import enumerated
from qvr_core.runs.record.netcdf import labels_along, read_netcdf
from qvr_core.runs.record.store import RunDirectory

Array = NDArray[Any]


class NoPicture(Exception):
    """A run cannot have this picture; the message says why, and what would have it."""


@dataclass(frozen=True)
class Observed:
    """An observed step, or a part of it: its data (n,), draws of them (draws, n), what its elements are called along an
    axis, its first one, and the place of each element on that axis."""

    name: str
    axis: str
    labels: Array
    places: Array
    data: Array
    drawn: Array
    at: Array
    """The place of each among the cells of the step, which stand row by row."""

    @property
    def discrete(self) -> bool:
        """Whether all data are whole numbers."""
        return bool(np.all(self.data == np.round(self.data))) and bool(np.all(self.drawn == np.round(self.drawn)))


@dataclass(frozen=True)
class Stored:
    """The groups of a run's posterior file, and the names of the numbers that were chosen, in their order."""

    algorithm: str
    tree: Tree
    names: tuple[str, ...]
    enumerated: Mapping[str, tuple[str, ...]]
    """The labels of the sets that the program's text enumerates."""

    @classmethod
    def of(cls, run: RunDirectory, names: Sequence[str]) -> Stored:
        """Read a run.  Raises `DamagedFile`, OSError."""
        run.check_posterior()
        job = run.job()
        return cls(job.config.algorithm, read_netcdf(run.posterior), tuple(names), enumerated(job))

    def group(self, name: str) -> Dataset:
        """A group; an empty one where the run has none."""
        return self.tree.children.get(name, Dataset())

    def chains(self) -> int:
        """How many chains there are: 1 of a fit by svi."""
        return self.group("posterior").sizes.get("chain", 0)

    def numbers(self, group: str, most: int) -> dict[str, Array]:
        """The draws (chains, draws) of the first `most` chosen numbers that a group has, by name."""
        wanted, found = set(self.names), dict[str, Array]()
        sites = {name.partition("[")[0] for name in self.names}
        for site, values in self.group(group).data_vars.items():
            if site in sites:
                found |= {name: draws for name, draws in _elements(site, values) if name in wanted}
        return {name: found[name] for name in [one for one in self.names if one in found][:most]}

    def labels(self, of: str | None) -> tuple[str, ...] | None:
        """The labels of a set along which something is stored, or which the text enumerates; None where it has none."""
        return labels_along(self.tree, of) or self.enumerated.get(of or "")

    def lines(self, source: str) -> list[Observed]:
        """Each of the steps that `observed` gives along its longest axis, the last of those: one for each element of
        its others, called `y[north]`."""
        steps = list[Observed]()
        for step in self.observed(source):
            values = self.group("observed_data")[step.name]
            if len(values.dims) < 2:
                steps.append(step)
                continue
            along = max(range(len(values.dims)), key=lambda at: (values.shape[at], at))
            others = [at for at in range(len(values.dims)) if at != along]
            named = [values.coords.get(values.dims[at], np.arange(values.shape[at])) for at in range(len(values.dims))]
            places = np.unravel_index(step.at, values.shape)
            line = np.ravel_multi_index([places[at] for at in others], [values.shape[at] for at in others])
            # sorted once: a table may have a thousand lines of a thousand cells
            order = np.argsort(line, kind="stable")
            for own in np.split(order, np.flatnonzero(np.diff(line[order])) + 1):
                label = ", ".join(str(named[at][places[at][own[0]]]) for at in others)
                part = replace(step, name=f"{step.name}[{label}]", axis=str(values.dims[along]))
                part = replace(part, labels=np.asarray(named[along]), places=places[along][own], at=step.at[own])
                steps.append(replace(part, data=step.data[own], drawn=step.drawn[:, own]))
        return steps

    def observed(self, source: str) -> list[Observed]:
        """Each observed step that has both data and draws in the group `source`; cells without data are left out."""
        data, drawn = self.group("observed_data"), self.group(source)
        steps = list[Observed]()
        for name, values in data.data_vars.items():
            if name not in drawn.data_vars or drawn[name].shape[2:] != values.shape:
                continue
            each = drawn[name].values.reshape(-1, values.size).astype(np.float64)
            flat = np.asarray(values.values, np.float64).ravel()
            kept = np.isfinite(flat) & np.isfinite(each).any(0)
            axis = values.dims[0] if values.dims else ""
            labels = values.coords.get(axis, np.arange(values.shape[0] if values.dims else 1))
            places = np.indices(values.shape)[0].ravel() if values.dims else np.zeros(1, np.int64)
            steps.append(
                Observed(name, axis, np.asarray(labels), places[kept], flat[kept], each[:, kept], np.flatnonzero(kept))
            )
        return [step for step in steps if step.data.size]


def _elements(site: str, values: Variable) -> Iterator[tuple[str, Array]]:
    flat = values.values.reshape(*values.shape[:2], -1)
    yield from ((name, flat[:, :, at]) for at, name in enumerate(called(site, values)))


def scalars(groups: Mapping[str, Mapping[str, Array]], statistics: Dataset | None = None) -> Any:
    """An xarray.DataTree of numbers: {group: {name: (chains, draws)}}, with the statistics of the sampler."""
    import xarray

    def grouped(values: Mapping[str, Array]) -> Any:
        shape = next(iter(values.values())).shape
        named = {name: (("chain", "draw"), draws) for name, draws in values.items()}
        return xarray.Dataset(named, coords={"chain": range(shape[0]), "draw": range(shape[1])})

    tree = {f"/{name}": grouped(values) for name, values in groups.items() if values}
    if statistics is not None and statistics.data_vars:
        tree["/sample_stats"] = statistics.to_xarray()
    return xarray.DataTree.from_dict(tree)
