"""Programs in which every family that a target has is observed once, and some that are easily said wrongly."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from qvr_core.analysis import analyse
from qvr_core.dsl import loads
from qvr_core.export import TARGETS, export
from qvr_core.runtime.programs.handlers import by_rows, condition
from qvr_core.semantics.language.families import FAMILIES
from tests.export.exports import POINTS

ARGUMENTS = {
    "loc": "0.3", "scale": "1.7", "df": "4.5", "concentration": "1.3", "rate": "0.8", "alpha": "2.2", "low": "-1.0",
    "high": "3.5", "a": "1.4", "b": "2.6", "probs": "0.3", "logits": "-0.4", "total": "7", "log_rate": "0.4",
    "mean": "3.1", "dispersion": "0.6", "gate": "0.25",
}  # fmt: skip
CALLS = {
    "Categorical(probs)": "Categorical([0.2, 0.5, 0.3])",
    "Categorical(logits)": "Categorical(logits=[0.2, -0.5, 0.3])",
    "OrderedLogistic(cutpoints, predictor)": "OrderedLogistic(0.2, [-1.0, 0.4])",
}
ELSEWHERE = ("Flat", "LKJCholesky")
"""Families that are not observed."""


def families(name: str, known: Sequence[str]) -> tuple[str, dict[str, Any]]:
    """A program that observes each of these families of numbers, and its data."""
    lines, data = [], {}
    for at, key in enumerate(known):
        family = FAMILIES[key.partition("(")[0]]
        if family.event or family.name in ELSEWHERE:
            continue
        given = ", ".join(f"{one}={ARGUMENTS[one]}" for one in re.findall(r"\w+", key)[1:] if key not in CALLS)
        call = CALLS.get(key, f"{family.name}({given})")
        wide = family.support.categories
        kind = " -> FinSet 3" if wide else {"count": " -> Nat", "finite": " -> Bool"}.get(family.support.kind, "")
        lines += [f"data y{at} : Row{kind}", f"observe y{at}[i : Row] <- {call}"]
        whole = [0, 2, 1, 0] if wide else {"count": [0, 1, 3, 5], "finite": [0, 1, 1, 0]}.get(family.support.kind)
        data[f"y{at}"] = whole or ([1.8, 2.0, 3.0, 9.0] if family.above else [0.15, 0.4, 0.62, 0.97])
    steps = [line for line in lines if line.startswith("data")] + ["sample m <- Normal(0.0, 1.0)"]
    steps += [line for line in lines if line.startswith("observe")] + ["return m"]
    return f"object Row : FinSet 4\nprogram {name} : Row -> Row\n" + "".join(f"    {line}\n" for line in steps), data


# True and false are numbers: 1 + 1 is 2. `[iid_over=Row]` beside `: Row` is one axis. Recursions start from numbers.
TRICKY = """object Row : FinSet 4
program tricky : Row -> Row
    data y, x : Row
    sample m <- Normal(0.0, 1.0)
    sample u : Row <- Normal(m, 2.0) [iid_over=Row]
    let high = x > 0.5
    let both = high + (x > 0.1) + (1 - high)
    let v[i : Row] = 0.1 + 0.5 * v[i - 1] + x[i] from 1
    let most = maximum(m, 0.0) - (m > 0.2) * (m > 0.1)
    score s = -sum(0.1 * (both + (high * high)))
    observe y[i : Row] <- Normal(u[i] + most + both[i], v[i])
    return m
"""

# Elements that count in part: by data, by a comparison, one number for all; on data, on latents, over two sets, beside
# a limit.
PARTIAL = """object Row : FinSet 4
object Item : FinSet 2
program partial : Row -> Row
    data y, x, w, late : Row
    data keep : Row -> Bool
    data z, h : Row * Item
    sample m <- Normal(0.0, 1.0)
    let near[i : Row] = x[i] > 0.1
    let more = w + 0.5
    let low[i : Row, j : Item] = h[i, j] < 0.7
    sample u[i : Row] <- Normal(m, 2.0) [weight=w, mask=near]
    sample s : Row <- HalfStudentT(4.5, 1.0) [mask=keep, weight=more]
    observe y[i : Row] <- Normal(u[i] + m, 1.0 + s[i]) [mask=keep, weight=more]
    observe x : Row <- Normal(m, 1.0) [weight=0.3]
    observe z[i : Row, j : Item] <- Normal(u[i], 0.5) [mask=low, weight=h]
    observe w[i : Row] <- Exponential(exp(m)) [right_censored=late, weight=near, mask=keep]
    return m
"""


def write_case(
    folder: Path, name: str, target: str, source: str, data: Mapping[str, Any], values: dict[str, Any]
) -> None:
    """A program's export, and a case of it."""
    made = export(analyse(source), name, target)
    given = {key: torch.as_tensor(value) for key, value in {**data, **values}.items()}
    density = float(loads(source).morphism.run(None, condition(given), by_rows(1)).log_joint().sum())
    points = [{"values": values, "density": density}] * POINTS
    (folder / f"{name}{TARGETS[target].suffix}").write_text(made.text, encoding="utf-8")
    (folder / f"{name}.json").write_text(json.dumps({"data": made.data(data, {}), "points": points}), encoding="utf-8")


def write_cases_of_families(folder: Path, target: str, known: Mapping[str, str]) -> None:
    """The programs of this file."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        # in two parts, for numpy adds 32 arrays at once at most, where PyMC is not compiled
        for name, first in (("families", 0), ("others", 1)):
            source, data = families(name, sorted(known)[first::2])
            write_case(folder, name, target, source, data, {"m": 0.5})
        numbers = {"y": [0.2, 1.5, -0.3, 0.9], "x": [0.05, 0.2, 0.7, 0.9]}
        write_case(folder, "tricky", target, TRICKY, numbers, {"m": 0.5, "u": [0.1, -0.4, 1.1, 0.6]})
        tables = {"z": [[0.1, 0.2], [0.9, -0.4], [1.2, 0.3], [0.0, 2.0]]}
        tables["h"] = [[0.1, 0.9], [0.5, 0.6], [0.8, 0.3], [0.2, 0.4]]
        others = {"w": [0.5, 2.0, 0.0, 1.5], "late": [0.0, 1.0, 1.0, 0.0], "keep": [1, 0, 1, 1]}
        latents = {"m": 0.5, "u": [0.1, -0.4, 1.1, 0.6], "s": [0.2, 0.9, 1.4, 0.3]}
        write_case(folder, "partial", target, PARTIAL, {**numbers, **tables, **others}, latents)
    finally:
        torch.set_default_dtype(before)
