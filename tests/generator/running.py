"""Many seeds: written, compared, shrunk where they fail, counted."""

from __future__ import annotations

import gc
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import torch

from tests.generator.comparison import UNDEFINED, Difference, compared
from tests.generator.coverage import Coverage
from tests.generator.engines import Engine, Nuts, Prior, Torch
from tests.generator.machine import Machine
from tests.generator.shrinking import shrunk
from tests.generator.steps import Case
from tests.generator.writing import written

ENGINES: dict[str, Engine] = {engine.name: engine for engine in (Torch(), Nuts(), Prior(), Machine())}


@dataclass(frozen=True)
class Finding:
    """A seed that fails, made small."""

    seed: int
    difference: Difference
    small: Case

    @property
    def text(self) -> str:
        """The program with its data and both numbers."""
        data = {**self.small.data, **self.small.rows[0]}
        values = "\n".join(f"# {name} = {table.array().tolist()}" for name, table in data.items())
        head = f"# seed {self.seed}, {self.difference.engine}, {self.difference.kind}: {self.difference.words}"
        return f"{head}\n{self.small.text}{values}\n"


@dataclass
class Tally:
    """What came of some seeds."""

    coverage: Coverage = field(default_factory=Coverage)
    compared: Counter[str] = field(default_factory=Counter[str])
    undefined: Counter[str] = field(default_factory=Counter[str])
    findings: list[Finding] = field(default_factory=list[Finding])

    def merge(self, other: Tally) -> None:
        """Those of other seeds."""
        self.coverage.merge(other.coverage)
        self.compared.update(other.compared)
        self.undefined.update(other.undefined)
        self.findings += other.findings


def run(seeds: Iterable[int], engines: Sequence[str], *, shrink: bool = True) -> Tally:
    """Compare the programs of some seeds."""
    tally = Tally()
    torch.set_num_threads(1)
    gc.disable()  # a program's garbage goes in one sweep behind it and its like
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for number, seed in enumerate(seeds):
                case, features = written(seed)
                tally.coverage.add(features)
                for name in engines:
                    _compare(seed, case, ENGINES[name], tally, shrink)
                if number % 100 == 99:
                    gc.collect()
    finally:
        gc.enable()
    return tally


def _compare(seed: int, case: Case, engine: Engine, tally: Tally, shrink: bool) -> None:
    found = compared(case, engine)
    tally.compared[engine.name] += 1
    if found is None:
        return
    if found.kind == UNDEFINED:
        tally.undefined[engine.name] += 1
        return

    def fails(smaller: Case) -> bool:
        try:
            again = compared(smaller, engine)
        except Exception:
            return False  # a smaller program that reads what is gone
        return again is not None and again.kind == found.kind

    small = shrunk(case, fails) if shrink else case
    tally.findings.append(Finding(seed, compared(small, engine) or found, small))
