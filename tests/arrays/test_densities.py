"""Programs as graphs: their densities and gradients are torch's, and so are those of the loops made of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.models import MODELS
from qvr_core.arrays.evaluate import evaluated
from qvr_core.codegen.lowering.density import lowered
from qvr_core.dsl import loads
from qvr_core.inference.machine.tracing import density_graph
from qvr_core.inference.mcmc.potential import ProgramPotential, potential_of
from tests.examples.statistics.programs import NAMES, given, prepared
from tests.inference.machine.interpreted import interpreted
from tests.inference.machine.test_programs import EXAMPLES, ROOT

POSITIONS = 8


def potential(kind: str, name: str) -> ProgramPotential:
    if kind == "benchmarks":
        found: Any = potential_of(loads(MODELS[name].text).morphism, None, MODELS[name].data())
    else:
        program = prepared(name) if kind == "statistics" else prepared(name, "examples", Path(ROOT))
        found = potential_of(program.model, None, given(program))
    assert isinstance(found, ProgramPotential)
    return found


PROGRAMS = [
    *(("statistics", name) for name in NAMES),
    *(("examples", name) for name in EXAMPLES),
    *(("benchmarks", name) for name in MODELS),
]


@pytest.mark.parametrize(("kind", "name"), PROGRAMS)
@pytest.mark.sampled(3)
def test_value_and_gradient_are_torchs(kind: str, name: str) -> None:
    plain = potential(kind, name)
    value, slope = density_graph(plain)
    texts = [interpreted(lowered(value, slope), plain.width)]
    generator = np.random.default_rng(8)
    finite = 0
    for _ in range(POSITIONS):
        q = plain.initial(generator)
        wanted_value, wanted = plain.value_and_grad(q.unsqueeze(0))
        here = q.numpy()
        for found_value, found in [
            (float(evaluated(value, here)), evaluated(slope, here)),
            *(text(here) for text in texts),
        ]:
            np.testing.assert_allclose(found_value, float(wanted_value), rtol=1e-9, atol=1e-9)
            if np.isfinite(found_value):
                finite += 1
                largest = max(1.0, float(wanted.abs().max()))
                np.testing.assert_allclose(found, wanted[0].numpy(), rtol=1e-9, atol=1e-9 * largest)
    assert finite
