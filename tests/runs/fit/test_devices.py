"""Fits on a device that is not the CPU, by one that `tests/stand_in_device.py` makes up: nothing is left behind here.

A stand-in refuses what a GPU refuses, operations between the two places and generators of the other one; its numbers
are those of the CPU, which the same run there must give.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import torch

from qvr_core.dsl import load
from qvr_core.inference import MCMC, NUTSKernel
from qvr_core.runs.prepare import prepare as preparing
from qvr_core.runs.prepare.failures import Refused
from qvr_core.runs.prepare.memory import SMALLER, Estimate, check_fits_on
from qvr_core.runs.record.config import RunConfig
from qvr_core.runs.record.protocol import Job
from qvr_core.runtime.values.errors import InputProblem
from qvr_core.runtime.values.torch_errors import misfit
from tests.patience import HANG

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "examples"
TEXT = {"data": "text:{folder}/words.txt", "batch_size": 8, "sequence_length": 12, "held_out": 0.05}
PAIRS = {"data": "pairs:{folder}/prose.txt", "batch_size": 4, "sequence_length": 24, "held_out": 0.2}
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "a sampled state": ("vanilla_rnn_lm", TEXT),
    "two chains": ("bidirectional_rnn_lm", TEXT),
    "attention": ("transformer_lm", TEXT),
    "pairs of sequences": ("seq2seq", {"batch_size": 8, "rows": 32}),
    "cells and memory": ("lstm_lm", TEXT),
    "tied weights": ("gru_lm", TEXT),
    "rounds of gating": ("mogrifier_rlstm_lm", TEXT),
    "particles": ("vanilla_rnn_lm", {**TEXT, "particles": 3}),
    "BERT": ("bert_pretraining", PAIRS),
    "a guide": ("encoder_guide", {}),
    "a guide from the end": ("deep_markov", {"rows": 32}),
    "stored statistics": ("convolutional_classifier", {"rows": 32}),
    "a grammar": ("grammar", {}),
    "no network": ("eight_schools", {}),
    "parts of the rows": ("radon", {"data": "csv:{examples}/data/radon.csv", "batch_size": 20}),
    "chains that are grown": ("statistics/holt_winters", {"data": "csv:{examples}/statistics/holt_winters.csv"}),
    "elements before": ("statistics/autoregression", {"data": "csv:{examples}/statistics/autoregression.csv"}),
    "hidden states": ("statistics/hidden_markov", {"data": "csv:{examples}/statistics/hidden_markov.csv"}),
    "missing cells": ("statistics/missing_predictors", {"data": "csv:{examples}/statistics/missing_predictors.csv"}),
    "a matrix": ("statistics/gaussian_process", {"data": "csv:{examples}/statistics/gaussian_process.csv"}),
    "a mode": ("eight_schools", {"guide": "laplace"}),
    "a mode of counts": (
        "statistics/meta_analysis", {"guide": "laplace", "data": "csv:{examples}/statistics/meta_analysis.csv"},
    ),
    "a full matrix": ("factor_analysis", {"guide": "multivariate_normal"}),
    "a low rank": ("factor_analysis", {"guide": "low_rank"}),
}  # fmt: skip

FEW = {"a sampled state", "attention", "cells and memory", "a guide", "no network", "missing cells"}
"""Of `make test`; `make slow` has all."""


def of_these(names: Iterable[str]) -> list[Any]:
    """As parameters."""
    return [pytest.param(name, marks=() if name in FEW else (pytest.mark.slow,)) for name in names]


STATISTICAL = {"eight_schools", "radon", "grammar", *(one for one, _ in CASES.values() if "/" in one)}


@pytest.fixture(scope="module")
def found(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What every case comes to that this session asks for."""
    own = [item for item in request.session.items if item.path == Path(__file__)]
    cases = FEW | {item.callspec.params["case"] for item in own if hasattr(item, "callspec")}  # pyright: ignore
    folder = tmp_path_factory.mktemp("device")
    (folder / "words.txt").write_text("the quick brown fox jumps over the lazy dog; " * 60)
    lines = ("One sentence stands here. Another one follows it. A third ends this paragraph.",
             "Something else begins. It goes on for a while. Then it is over.")  # fmt: skip
    (folder / "prose.txt").write_text("\n\n".join(f"{number} {lines[number % 2]}" for number in range(60)))
    asked = {
        name: {
            "path": str(EXAMPLES / f"{example}.qvr"),
            "config": {
                key: value.format(folder=folder, examples=EXAMPLES) if isinstance(value, str) else value
                for key, value in config.items()
            },
        }
        for name, (example, config) in CASES.items()
        if name in cases
    }
    done = subprocess.run(
        [sys.executable, "-m", "tests.runs.fit.on_a_device"], input=json.dumps(asked),
        capture_output=True, text=True, check=False, timeout=HANG, cwd=ROOT, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return {name: result for line in done.stdout.splitlines() for name, result in json.loads(line).items()}


@pytest.mark.parametrize("case", of_these(CASES))
def test_a_fit_on_a_device_is_that_of_the_cpu(found: dict[str, Any], case: str) -> None:
    here, there = found[case]["cpu"], found[case]["device"]
    assert len(here["losses"]) == 3 and found[case]["gradients"] == ["gpu:0"]
    assert there["losses"] == pytest.approx(here["losses"], rel=1e-9)
    assert there["held_out"] == pytest.approx(here["held_out"], rel=1e-9)
    assert bool(here["held_out"]) == (CASES[case][1].get("data", "").startswith("text:"))
    assert there["posterior"].keys() == here["posterior"].keys()
    for name, figures in here["posterior"].items():
        assert there["posterior"][name] == pytest.approx(figures, rel=1e-6, abs=1e-9), name


@pytest.mark.parametrize("case", of_these(CASES))
def test_a_run_that_was_begun_on_a_device_goes_on_anywhere(found: dict[str, Any], case: str) -> None:
    assert found[case]["resumed"] == pytest.approx(found[case]["cpu"]["losses"], rel=1e-9)
    assert found[case]["returned"] == ["gpu:0"]


@pytest.mark.parametrize("case", of_these(name for name, (one, _) in CASES.items() if one not in STATISTICAL))
def test_mixed_precision_stays_near_and_keeps_the_weights(found: dict[str, Any], case: str) -> None:
    here, there = found[case]["mixed"]["cpu"], found[case]["mixed"]["device"]
    assert here["weights"] == there["weights"] == ["torch.float32"]
    assert there["losses"] == pytest.approx(here["losses"], rel=0.03)


def test_a_step_waits_for_its_loss_and_its_gradient_and_for_no_element(found: dict[str, Any]) -> None:
    """Each number that is read stops a GPU until it has come: the lowest and the highest token of input and target are,
    and nothing a row or a position."""
    waits = {name: found[name]["waits"] for name in ("a guide", "a sampled state", "attention", "cells and memory")}
    assert waits == {"a guide": 2, "a sampled state": 6, "attention": 6, "cells and memory": 6}


def test_looking_for_the_one_to_blame_uses_up_no_numbers_of_the_device(found: dict[str, Any]) -> None:
    assert "`y`" in found["blame"]["said"] and found["blame"]["kept"]


def test_tensors_in_two_places_are_told_with_the_way_out() -> None:
    said = "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!"
    problem = misfit("p", None, RuntimeError(said))
    assert problem is not None and "numbers on cuda:0 meet some on cpu" in str(problem)
    assert '`x.to("cuda:0")`' in str(problem)


def test_chains_say_that_they_run_on_the_cpu() -> None:
    model = load(EXAMPLES / "linear_regression.qvr").morphism
    data = {name: torch.zeros(60, device="meta") for name in ("x", "y")}
    with pytest.raises(InputProblem, match="chains run on the CPU, and `x` lies on meta"):
        MCMC(NUTSKernel(), 1, 1, 1).run(model, None, data)


def test_one_is_told_where_there_is_no_device(monkeypatch: pytest.MonkeyPatch) -> None:
    def asked(device: str, algorithm: str = "svi") -> Job:
        config = RunConfig.model_validate({"device": device, "algorithm": algorithm, "data": "synthetic"})
        return Job(run_id="r", path="m.qvr", text="", program=None, config=config, directory="d", base=".")

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(Refused, match='device = "cuda", but torch finds no GPU here') as none:
        preparing.device_of(asked("cuda"))
    assert none.value.code == "no-device" and none.value.fixes
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    chosen: list[torch.device] = []
    monkeypatch.setattr(torch.cuda, "set_device", chosen.append)
    with pytest.raises(Refused, match="there are 2 GPUs"):
        preparing.device_of(asked("cuda:2"))
    monkeypatch.setenv("LOCAL_RANK", "1")
    assert preparing.device_of(asked("cuda")) == torch.device("cuda", 1) == chosen.pop()
    with pytest.raises(Refused, match="chains run on the CPU"):
        preparing.device_of(asked("cuda", "nuts"))


def test_memory_of_a_gpu_is_told_before_anything_lies_there(monkeypatch: pytest.MonkeyPatch) -> None:
    gigabyte = 2**30
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (8 * gigabyte, 16 * gigabyte))
    config, gpu = RunConfig.model_validate({"data": "text:t", "memory_limit": 4 * gigabyte}), torch.device("cuda", 0)
    step = Estimate(gigabyte, 6 * gigabyte, 0, ())
    assert check_fits_on(gpu, step, config) is not None  # the machine has less than a step takes, the GPU has it
    with pytest.raises(Refused, match=r"4\.29 GB are free"):
        check_fits_on(torch.device("cpu"), step, config)
    with pytest.raises(Refused, match=r"about 9\.66 GB and 8\.59 GB are free on cuda:0") as full:
        check_fits_on(gpu, Estimate(2 * gigabyte, 7 * gigabyte, 0, ()), config)
    assert full.value.fixes == SMALLER
