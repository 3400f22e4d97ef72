"""What a page makes of programs without torch, numpy and polars has the densities and the values that torch gives."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from qvr_core.runs.page.settings import data_named
from tests.arrays.test_densities import potential
from tests.codegen.webassembly import Call, Job, needs_node, ran
from tests.examples.statistics.programs import NAMES
from tests.examples.statistics.tables import STATISTICS
from tests.inference.machine.test_programs import ROOT
from tests.patience import HANG

CASES = [*(("statistics", name) for name in NAMES), ("examples", "radon"), ("examples", "eight_schools")]
SHOWN = 3
PRIOR = "program p : FinSet 1 -> FinSet 1\n    sample a <- Normal(0.0, 1.0)\n    return a\nexport p\n"


def asked(kind: str, name: str) -> dict[str, Any]:
    """A request of a page for an example with its data."""
    base = STATISTICS if kind == "statistics" else Path(ROOT) / "examples"
    text = (base / f"{name}.qvr").read_text(encoding="utf-8")
    request = {"text": text, "chains": 1, "warmup": 500, "seed": 3}
    if kind == "examples":
        return request | {"main": str(base / "data" / f"{name}.csv")}
    run = tomllib.loads((base / "qvr.toml").read_text(encoding="utf-8"))["run"].get(name, {})

    def placed(data: str) -> str:
        return str(base / data.partition(":")[2])

    named = {key: placed(data) for key, data in run.get("tables", {}).items()}
    main = placed(run["data"]) if "data" in run else None
    return request | {"main": main, "named": named, "columns": run.get("columns", {})}


def prepared(requests: list[dict[str, Any]], folder: Path) -> list[dict[str, Any]]:
    """What a process of a page answers to requests."""
    (folder / "asked.json").write_text(json.dumps(requests), encoding="utf-8")
    script = Path(__file__).with_name("alone.py")
    done = subprocess.run(
        [sys.executable, str(script), str(folder)], capture_output=True, text=True, timeout=HANG, check=False, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    answers: list[dict[str, Any]] = []
    for number in range(len(requests)):
        told = json.loads((folder / f"{number}.json").read_text(encoding="utf-8"))
        for path in folder.glob(f"{number}.*"):
            if path.suffix != ".json":
                told[path.suffix[1:]] = path.read_bytes()
        answers.append(told)
    return answers


def constants(told: dict[str, Any], name: str) -> list[Any]:
    """Room and constants of a function of a module."""
    room = np.full(max(told["rooms"][name == "report"], 1), np.nan)
    reals = np.frombuffer(told[f"{name}Reals"], np.float64)
    wholes = np.frombuffer(told[f"{name}Wholes"], np.int64)
    return [[room], [reals if len(reals) else np.zeros(1)], [wholes if len(wholes) else np.zeros(1, np.int64)]]


@needs_node
@pytest.mark.long
def test_programs_of_a_page_are_those_of_the_command_line(tmp_path: Path) -> None:
    answers = prepared([asked(*case) for case in CASES], tmp_path)
    jobs: list[Job] = []
    wanted: list[list[Any]] = []
    for case, told in zip(CASES, answers, strict=True):
        assert "problem" not in told, (case, told)
        plain = potential(*case)
        assert told["width"] == plain.width, case
        starts = np.frombuffer(told["starts"], np.float64).reshape(-1, plain.width)[:SHOWN]
        size = sum(math.prod(one["shape"]) for one in told["reported"])
        calls: list[Call] = []
        own: list[Any] = []
        for q in starts:
            calls.append(Call("log_density", [[q], [np.zeros(plain.width)], *constants(told, "density")]))
            calls.append(Call("report", [[q], [np.zeros(size)], *constants(told, "report")]))
            here = torch.tensor(q).unsqueeze(0)
            values = plain.report(here)
            assert [one["name"] for one in told["reported"]] == list(values)
            value, slope = plain.value_and_grad(here)
            flat = torch.cat([one.double().reshape(-1) for one in values.values()]).numpy()
            own.append((float(value), slope[0].numpy(), flat))
        jobs.append(Job(told["module"], calls))
        wanted.append(own)
    for case, own, found in zip(CASES, wanted, ran(jobs, tmp_path), strict=True):
        for at, (value, slope, values) in enumerate(own):
            density, report = found[2 * at], found[2 * at + 1]
            np.testing.assert_allclose(density.value, value, rtol=1e-9, atol=1e-9, err_msg=str(case))
            if math.isfinite(value):
                atol = 1e-9 * max(1.0, np.abs(slope).max())
                np.testing.assert_allclose(density.arrays[1], slope, rtol=1e-9, atol=atol, err_msg=str(case))
            np.testing.assert_allclose(report.arrays[1], values, rtol=1e-9, atol=1e-9, err_msg=str(case))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"text": "object D : FinSet 3\nprogram p : D -> D\n    sample mu <- Nrmal(0.0, 1.0)\n"}, "Nrmal"),
        ({"cells": "school,effect\n0,1\n"}, "there is no column `standard_error`"),
        (
            {"cells": "school,effect,standard_error\n" + "".join(f"{i},x,1\n" for i in range(8))},
            "row 1: `x` is not a number",
        ),
        ({"main": None}, "no file holds `standard_error`"),
    ],
)
def test_what_cannot_be_sampled_is_said(change: dict[str, Any], said: str, tmp_path: Path) -> None:
    request = asked("examples", "eight_schools") | change
    if "cells" in change:
        path = tmp_path / "schools.csv"
        path.write_text(change["cells"], encoding="utf-8")
        request["main"] = str(path)
    (answer,) = prepared([request], tmp_path)
    assert said in answer["problem"]


def test_a_module_that_is_not_the_program_is_refused(tmp_path: Path) -> None:
    (answer,) = prepared([asked("examples", "eight_schools") | {"wrong": True}], tmp_path)
    assert answer["refused"].startswith(b"its value differs from that of the plain density (0.0, ")


def test_a_qvr_toml_says_which_data_a_page_reads() -> None:
    text = (STATISTICS / "radon.qvr").read_text(encoding="utf-8")
    settings = (STATISTICS / "qvr.toml").read_text(encoding="utf-8")
    found = json.loads(data_named(text, settings))
    assert found == {"main": "radon.csv", "named": {"County": "radon_counties.csv"}, "columns": {}, "reads": True}
    assert json.loads(data_named(text, ""))["main"] is None
    renamed = '[defaults]\ndata = "json:d.json"\n[data.floor]\ncolumns = "storey"\n'
    assert json.loads(data_named(text, renamed)) == {
        "main": "d.json", "named": {}, "columns": {"floor": "storey"}, "reads": True,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "settings", "said"),
    [
        ("object A : FinSet 2\n", "", "no program to sample"),
        ("", "[run\n", "no program to sample"),
        (PRIOR, "[run\n", "Expected"),
        (PRIOR, "run = 3\n", "`run` must be a table"),
        (PRIOR, "[data]\na = 3\n", "`a` must be a table"),
        (PRIOR, '[run.p]\ndata = "parquet:a.parquet"\n', "takes csv: and json:"),
    ],
)
def test_what_a_page_cannot_read_is_said(text: str, settings: str, said: str) -> None:
    assert said in json.loads(data_named(text, settings))["problem"]
