"""The programs of examples/statistics with their data, as `qvr run` reads them, at points to compare them at."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from qvr_core.analysis import analyse
from qvr_core.inference.mcmc.potential import potential_of
from qvr_core.runs.prepare.prepare import Prepared, prepare
from qvr_core.runs.record.settings import resolve
from qvr_core.runs.record.store import RunStore
from qvr_core.runtime.programs.handlers import by_rows, condition, substitute
from tests.examples.statistics.tables import STATISTICS

NAMES = sorted(path.stem for path in STATISTICS.glob("?*.qvr"))
POINTS = 5


@cache
def prepared(name: str, folder: str = "", base: Path = STATISTICS) -> Prepared:
    """The program `name` of a folder of `base`, with the data that the qvr.toml there names for it."""
    text = (base / folder / f"{name}.qvr").read_text(encoding="utf-8")
    # chains have their data in double precision
    flags = {"algorithm": "nuts"}
    config = resolve(name, (base / "qvr.toml").read_text(encoding="utf-8"), flags).config.placed(base)
    before = torch.get_default_dtype()
    with tempfile.TemporaryDirectory() as store:
        job = RunStore(Path(store)).create(path=f"{name}.qvr", text=text, program=name, config=config, base=str(base))
        try:
            return prepare(job, analyse(text))
        finally:
            torch.set_default_dtype(before)


def data_of(name: str) -> dict[str, Any]:
    """The data of a program of examples/statistics by name."""
    return given(prepared(name))


def given(program: Prepared) -> dict[str, Any]:
    """The data of a program by name."""
    return dict(program.train.batch(torch.zeros(1, dtype=torch.int64))[1])


def points(name: str, count: int = POINTS) -> Iterator[tuple[SimpleNamespace, float]]:
    """Random values of the latents, as numpy arrays, and the log density of these and of the data there.

    The values are those where a chain starts: uniform on (−2, 2) before the bijectors of their supports.  A step with
    missing cells has values for those, in their order, beside its data.
    """
    model, data = prepared(name).model, data_of(name)
    potential = potential_of(model, None, data)
    generator = np.random.default_rng(1)
    for _ in range(count):
        values = potential.report(potential.initial(generator).unsqueeze(0))
        density = model.run(None, condition(data), substitute(values), by_rows(1)).log_joint()
        yield SimpleNamespace(**{site: _array(value) for site, value in values.items()}), float(density.sum())


def rounding(name: str, values: SimpleNamespace, density: float) -> float:
    """How far the log density moves where the last digit of each number that it is computed of does, at most of eight
    times: no two ways to compute it need be nearer, such as where a covariance is all but singular."""
    model, data = prepared(name).model, data_of(name)
    generator = np.random.default_rng(2)
    moved = {
        site: torch.tensor(np.stack([np.nextafter(one, generator.choice((-np.inf, np.inf), np.shape(one)))
                                     for _ in range(8)]))
        for site, one in vars(values).items() if np.asarray(one).dtype == np.float64
    }  # fmt: skip
    found = model.run(None, condition(data), substitute(moved), by_rows(8)).log_joint().double()
    return float((found - density).abs().max())


def _array(value: Tensor) -> Any:
    found = value[0].numpy()
    return float(found) if found.ndim == 0 else found


def assert_agrees(density: Callable[[SimpleNamespace], float]) -> None:
    """A density written by hand is that of the program of its name, at five random points, to 1e-6."""
    for values, found in points(density.__name__):
        wanted = float(density(values))
        assert abs(found - wanted) <= 1e-6 * max(1.0, abs(wanted) / 1e3), (found, wanted, values)
