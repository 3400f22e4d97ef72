"""The thirty programs of examples/statistics as exports, with points at which their log densities are compared."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from qvr_core.analysis import Snapshot, analyse
from qvr_core.export import TARGETS, Exported, export
from tests.examples.statistics.programs import data_of, points, prepared, rounding
from tests.examples.statistics.tables import STATISTICS

POINTS = 20


@cache
def exported(name: str, target: str) -> Exported:
    """A program of examples/statistics in a target."""
    return export(_checked(name), name, target)


@cache
def _checked(name: str) -> Snapshot:
    return analyse((STATISTICS / f"{name}.qvr").read_text(encoding="utf-8"))


def write_cases(folder: Path, names: Iterable[str], target: str) -> None:
    """For each program a file of the target and one of JSON: data, and points with our log density."""
    for name in names:
        made = exported(name, target)
        sizes = {known: one.size for known, one in prepared(name).known.items()}
        data = made.data({own: np.asarray(value).tolist() for own, value in data_of(name).items()}, sizes)
        cases = [
            {"values": {_called(site, name): np.asarray(value).tolist() for site, value in vars(at).items()},
             "density": density, "rounding": rounding(name, at, density)}
            for at, density in points(name, POINTS)
        ]  # fmt: skip
        (folder / f"{name}{TARGETS[target].suffix}").write_text(made.text, encoding="utf-8")
        (folder / f"{name}.json").write_text(json.dumps({"data": data, "points": cases}), encoding="utf-8")


def _called(site: str, name: str) -> str:
    """Missing cells of a data name are a latent of their own in an export."""
    return f"{site}_missing" if site in data_of(name) else site


def worst(found: dict[str, Any], folder: Path) -> dict[str, float]:
    """How far densities that an evaluator has found are from ours, beyond what rounding explains, for each program."""
    far: dict[str, float] = {}
    for name, densities in found.items():
        cases = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))["points"]
        assert len(densities) == len(cases) == POINTS
        ours = np.array([case["density"] for case in cases])
        rounded = np.array([case.get("rounding", 0.0) for case in cases])
        apart = np.abs(np.array(densities) - ours) - 4.0 * rounded
        far[name] = float(np.max(np.maximum(apart, 0.0) / np.maximum(1.0, np.abs(ours) / 1e3)))
    return far
