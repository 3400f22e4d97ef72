"""Ten posteriors of posteriordb's models agree with Stan's, whose numbers `reference.py` wrote down."""

from __future__ import annotations

import json

import pytest
import torch

from qvr_core.dsl import load
from qvr_core.inference import MCMC, NUTSKernel
from tests.inference.truth.data import MAKE, checksum, data_of
from tests.inference.truth.reference import HERE, REFERENCE

KNOWN = json.loads(REFERENCE.read_text(encoding="utf-8"))
MEAN, SPREAD = 0.1, 0.1
"""How far means may be apart, in sds, and sds, in parts of them."""
SURE = 0.05
"""The Monte Carlo error of Stan's own mean, in sds, that leaves something to compare with."""


def test_every_posterior_has_a_reference() -> None:
    assert list(KNOWN) == list(MAKE) and len(KNOWN) == 10


@pytest.mark.parametrize("name", KNOWN)
def test_the_reference_is_of_these_data_and_sure(name: str) -> None:
    known = KNOWN[name]
    assert known["data"] == pytest.approx(checksum(data_of(name)), rel=1e-9)
    for parameter, each in known["parameters"].items():
        assert each["r_hat"] < 1.01, parameter
        worst = max(mcse / sd for mcse, sd in zip(each["mcse_mean"], each["sd"], strict=True))
        assert worst < SURE, (parameter, worst)


@pytest.mark.statistical
@pytest.mark.parametrize("name", KNOWN)
def test_the_compiled_engine_agrees_with_stan(name: str) -> None:
    model = load(HERE / "programs" / f"{name}.qvr").morphism
    data = {key: torch.as_tensor(value) for key, value in data_of(name).items()}
    result = MCMC(NUTSKernel(), 1000, 4000, 4, seed=1, engine="compiled").run(model, None, data)
    assert result.engine == "compiled"
    found = {**result.samples, **result.deterministic}
    for parameter, known in KNOWN[name]["parameters"].items():
        draws = found[parameter].double().flatten(0, 1).reshape(-1, len(known["mean"]))
        mean, sd = (torch.tensor(known[key], dtype=torch.float64) for key in ("mean", "sd"))
        off = ((draws.mean(0) - mean) / sd).abs()
        assert float(off.max()) < MEAN, (parameter, off)
        ratio = draws.std(0) / sd
        assert float((ratio - 1).abs().max()) < SPREAD, (parameter, ratio)
