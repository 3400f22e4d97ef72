"""What refits of a run without some of its observations have found, as its folder keeps it: elpd/<plan>.json.

    elpd/folds-10.json           K-fold; `by-county.json` leaves one group out, `folds-10-by-county.json` some of them
    elpd/loo.json                exact leave-one-out of the observations whose Pareto k is too high

A file is written anew after each refit, so that one which was broken off goes on.  It holds what was asked, and counts
only where that is what is asked now: a run that has gone on with more draws has refits of other settings.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from qvr_core.runs.evaluation.loo import Array, Loo, Pointwise
from qvr_core.runs.record.atomic_files import DamagedFile, digest, read_json, write_json
from qvr_core.runs.record.store import RunDirectory

FORMAT = 1
LIMITS = {"cluster", "time_limit", "checkpoint_seconds", "checkpoint_steps", "threads", "memory_limit"}
"""Settings of a run that change none of its draws."""


@dataclass(frozen=True)
class Plan:
    """Which refits: `folds` of observations at random or by the groups of `by`; by `by` alone one group at a time, and
    with neither one observation at a time."""

    folds: int | None = None
    by: str | None = None

    @property
    def words(self) -> str:
        """`10-fold`, `10-fold by county`, `one county left out`."""
        if self.folds is None:
            return f"one {self.by} left out" if self.by else "LOO"
        return f"{self.folds}-fold" + (f" by {self.by}" if self.by else "")

    @property
    def command(self) -> str:
        """What asks for it, without the run."""
        options = ([f"--folds {self.folds}"] if self.folds else []) + ([f"--by {self.by}"] if self.by else [])
        return f"qvr cv RUN {' '.join(options)}"

    def file(self, run: RunDirectory) -> Path:
        """Where a run keeps its refits."""
        parts = ([f"folds-{self.folds}"] if self.folds else []) + ([f"by-{self.by}"] if self.by else [])
        return run.path / "elpd" / f"{'-'.join(parts) or 'loo'}.json"


@dataclass(frozen=True)
class Refit:
    """Of the observations that a refit has not seen the log predictive density and its Monte Carlo error; −∞ where
    every draw rules one out."""

    elpd: tuple[float, ...]
    mcse: tuple[float, ...]
    divergences: int = 0
    warnings: tuple[str, ...] = ()

    def stored(self) -> dict[str, Any]:
        """As JSON, which has no infinity."""
        return {
            "elpd": [None if value == -np.inf else value for value in self.elpd],
            "mcse": [None if value == np.inf else value for value in self.mcse],
            "divergences": self.divergences,
            "warnings": list(self.warnings),
        }

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> Refit:
        """What `stored` gave."""
        elpd = tuple(-np.inf if value is None else float(value) for value in stored["elpd"])
        mcse = tuple(np.inf if value is None else float(value) for value in stored["mcse"])
        return cls(elpd, mcse, int(stored["divergences"]), tuple(stored["warnings"]))


@dataclass
class Refits:
    """The refits of a plan, as far as they are done: by number those of a fold, whose observations `fold` says."""

    plan: Plan
    asked: str
    """Digest of what decides the draws of a refit."""
    names: tuple[str, ...]
    fold: tuple[int, ...]
    count: int
    labels: tuple[str, ...] | None = None
    done: dict[int, Refit] = field(default_factory=dict[int, Refit])

    @property
    def whole(self) -> bool:
        """Whether all folds are done."""
        return len(self.done) == self.count

    def pointwise(self) -> Pointwise:
        """The elpd of each observation, in the order of the run.  Of a whole plan."""
        return Pointwise(self.names, self._each("elpd"))

    def mcse(self) -> float:
        """The Monte Carlo error of the whole elpd: those of the observations, which refits make independent."""
        return float(np.sqrt(np.square(self._each("mcse")).sum()))

    def _each(self, what: str) -> Array:
        found = np.empty(len(self.names))
        for number, refit in self.done.items():
            found[np.flatnonzero(np.asarray(self.fold) == number)] = getattr(refit, what)
        return found

    def label(self, number: int) -> str:
        """What a fold is called: its group, where it is one."""
        inside = {one for one, fold in zip(self.labels or (), self.fold, strict=False) if fold == number}
        return inside.pop() if len(inside) == 1 else f"fold {number + 1}"

    def write(self, run: RunDirectory) -> None:
        """Keep it in the run's folder.  Raises OSError."""
        path = self.plan.file(run)
        path.parent.mkdir(exist_ok=True)
        content = {
            "format": FORMAT,
            "folds": self.plan.folds,
            "by": self.plan.by,
            "asked": self.asked,
            "names": list(self.names),
            "fold": list(self.fold),
            "count": self.count,
            "labels": None if self.labels is None else list(self.labels),
            "done": {str(number): refit.stored() for number, refit in sorted(self.done.items())},
        }
        write_json(path, content)


def read(path: Path) -> Refits | None:
    """The refits of a file, none where there is none.  Raises `DamagedFile`."""
    try:
        content = read_json(path)
    except FileNotFoundError:
        return None
    if content.get("format") != FORMAT:
        raise DamagedFile(f"{path} was written by another version of qvr: delete it, and refit")
    labels = content["labels"]
    return Refits(
        Plan(content["folds"], content["by"]), content["asked"], tuple(content["names"]), tuple(content["fold"]),
        content["count"], None if labels is None else tuple(labels),
        {int(number): Refit.of(one) for number, one in content["done"].items()},
    )  # fmt: skip


def cross_validations(run: RunDirectory, asked: str) -> dict[str, Refits]:
    """By its words each whole plan of a run.  Raises `DamagedFile`."""
    found = (read(path) for path in sorted((run.path / "elpd").glob("*.json")) if path.stem != "loo")
    return {one.plan.words: one for one in found if one is not None and one.whole and one.asked == asked}


def with_refits(loo: Loo, run: RunDirectory, asked: str) -> Loo:
    """LOO with the exact figures that a run has.  Raises `DamagedFile`."""
    found = read(Plan().file(run))
    if found is None or found.asked != asked:
        return loo
    return loo.refitted({found.names[number]: refit.elpd[0] for number, refit in found.done.items()})


def asked_by(run: RunDirectory) -> str:
    """Digest of what decides the draws of a run's refits: its program, its settings, its posterior.  Raises
    `DamagedFile`, OSError."""
    job = run.job()
    settings = job.config.model_dump_json(exclude=LIMITS)
    sealed = read_json(run.path / "posterior.json")["sha256"]
    return digest(
        "\n".join((job.text, *sorted(job.imports.values()), settings, sealed)).encode("utf-8", "surrogatepass")
    )
