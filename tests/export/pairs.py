"""Programs of pairs of features as exports, with points at which their log densities are compared."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import torch

from qvr_core.analysis import analyse
from qvr_core.export import TARGETS, Refused, export
from qvr_core.runtime.programs.handlers import by_rows, condition, substitute, unconstrained
from tests.generator.engines import data_of, loaded, tensor
from tests.generator.sets import Table
from tests.generator.steps import Case, Site
from tests.pairs.programs import Panel


def write_pair(folder: Path, name: str, target: str, features: Collection[str]) -> str | None:
    """A program's export, and a case of it; what is refused says why."""
    case = Panel(features).case()
    text = case.text.replace("program p :", f"program {name} :").replace("export p", f"export {name}")
    try:
        made = export(analyse(text), name, target)
    except Refused as refused:
        return refused.message
    data = {own: value.tolist() for own, value in data_of(case).items()}
    points = [_point(case, row) for row in case.rows]
    (folder / f"{name}{TARGETS[target].suffix}").write_text(made.text, encoding="utf-8")
    (folder / f"{name}.json").write_text(json.dumps({"data": made.data(data, {}), "points": points}), encoding="utf-8")
    return None


def _point(case: Case, row: Mapping[str, Table]) -> dict[str, Any]:
    """Values of a row and of what is missing, and our log density; numbers of elements that do not exist are standard
    Normals in an export."""
    model, data = loaded(case), data_of(case)
    numbers = torch.Generator().manual_seed(case.seed)
    shapes = model.missing_shapes(data)
    free = {own: torch.randn(1, *shape, generator=numbers, dtype=torch.float64) for own, shape in shapes.items()}
    given = (substitute({own: tensor(one, False)[None] for own, one in row.items()}), unconstrained(free))
    run = model.run(None, condition(data), *given, by_rows(1))
    density = float(run.log_joint().sum())
    for step in case.all_steps():
        if isinstance(step, Site) and step.kind == "sample" and step.lengths is not None:
            resting = [x for at, x in row[step.name].cells.items() if not step.reaches(at, case.data)]
            density -= sum(0.5 * (x * x + math.log(2.0 * math.pi)) for x in resting)
    values = {own: one.array().tolist() for own, one in row.items()}
    values |= {f"{own}_missing": run.sites[own].imputed[0].tolist() for own in shapes}
    return {"values": values, "density": density}


def furthest(found: Mapping[str, list[float]], folder: Path) -> dict[str, float]:
    """How far the densities that an evaluator has found are from ours, for each program."""
    far: dict[str, float] = {}
    for name, densities in found.items():
        points = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))["points"]
        apart = [abs(one - point["density"]) for one, point in zip(densities, points, strict=True)]
        far[name] = max(one if math.isfinite(one) else math.inf for one in apart)
    return far
