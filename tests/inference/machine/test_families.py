"""Every family as machine code and on numpy: its log density is torch's to 1e-12 of the largest term of its sum."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from qvr_core.arrays.evaluate import evaluate
from qvr_core.arrays.graph import Array
from qvr_core.codegen.build import address_of
from qvr_core.codegen.lowering.density import lowered
from qvr_core.inference.machine.compiled import MachineDensity
from qvr_core.inference.machine.tracing import density_graph
from qvr_core.runtime.families import RUNTIME_FAMILIES
from qvr_core.semantics.language.families import FAMILIES
from tests.inference.machine.functions import Function
from tests.runtime.families.test_families import REFERENCE, TRIL, V3, A, B, L, P, draws, t

COUNT = 4
OTHERS: dict[str, tuple[dict[str, Any], tuple[int, ...]]] = {
    "HalfStudentT": ({"df": B + 1, "scale": A}, (3,)),
    "TruncatedNormal": ({"loc": L, "scale": A, "low": L - A, "high": L + 2 * A}, (3,)),
    "ZeroInflatedPoisson": ({"gate": P, "rate": B}, (3,)),
    "OrderedLogistic": ({"predictor": L, "cutpoints": t([[-1.0, 0.2, 1.5]] * 3).double()}, (3,)),
    "LogisticNormal": ({"loc": V3[:, :2], "scale": V3[:, 1:]}, (2, 3)),
    "MatrixNormal": ({"loc": V3, "row_scale_tril": TRIL[:2, :2], "column_scale_tril": TRIL}, (2, 3)),
    "InverseWishart": ({"df": t([3.5, 6.0]).double(), "scale_tril": TRIL}, (2, 3, 3)),
    "Horseshoe": ({"scale": A}, (3,)),
    "MixtureNormal": ({"weights": V3 / V3.sum(-1, keepdim=True), "locs": V3, "scales": V3.flip(0)}, (2,)),
    "BetaBinomial": ({"total": t([3.0, 5.0, 9.0]).double(), "a": A, "b": B}, (3,)),
    "ZeroInflatedNegativeBinomial": ({"gate": P, "total": B, "probs": P.flip(0)}, (3,)),
    "GaussianRandomWalk": ({"scale": A}, (3, 5)),
    "LKJCorrelation": ({"concentration": t([0.7, 2.0]).double()}, (2, 3, 3)),
}
ELSEWHERE = {"ICAR", "Flat", "DiscreteUniform"}
"""A program of the examples has the first; the others have nothing that a latent could move."""


def case(name: str) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
    """Arguments of a family, and values drawn from it."""
    torch.manual_seed(1)
    if name in REFERENCE:
        arguments, reference = REFERENCE[name]
        return arguments, reference.sample((COUNT,))
    arguments, event = OTHERS[name]
    return arguments, draws(name, arguments, COUNT, event)


def density_of(name: str) -> tuple[Function, Any]:
    """The log density of values given arguments, all of them parts of a position; and that position."""
    family = RUNTIME_FAMILIES[name]
    arguments, value = case(name)
    moved = {key: argument for key, argument in arguments.items() if key != "total"}
    if not FAMILIES[name].discrete:
        moved["value"] = value

    def function(q: Any) -> Any:
        parts, start = dict(arguments), 0
        parts["value"] = value
        for key, like in moved.items():
            parts[key] = q[start : start + like.numel()].reshape(like.shape)
            start += like.numel()
        return family.log_prob(parts.pop("value"), *family.canonical(parts))

    position = torch.cat([part.double().reshape(-1) for part in moved.values()]).numpy()
    return Function(function, len(position)), position


def largest_term(value: Array, position: Any) -> tuple[float, float]:
    """The value of a graph on numpy, and the largest number that is added to another on the way."""
    found: dict[int, Any] = {}
    most = 1.0
    for node in value.graph.nodes:
        given = [found[arg.number] for arg in node.args]
        if node.op in ("constant", "position"):
            found[node.number] = node.data if node.op == "constant" else position
        else:
            found[node.number] = evaluate(node.op, given, node.params, node.shape)
        if node.op in ("add", "sub", "sum"):
            terms = [np.abs(one[np.isfinite(one)]) for one in given]
            most = max(most, *(float(one.max()) for one in terms if one.size), 0.0)
    return float(found[value.number]), most


@pytest.mark.parametrize("name", sorted(set(FAMILIES) - ELSEWHERE))
def test_a_family_has_torchs_density(name: str) -> None:
    function, position = density_of(name)
    value, slope = density_graph(function)
    text = lowered(value, slope)
    address, keeps = address_of(text)
    reals, wholes = np.array(text.reals or [0.0]), np.array(text.wholes or [0], dtype=np.int64)
    compiled = MachineDensity(address, function.width, text.room, reals, wholes, keeps, text.source)
    wanted, slopes = function.value_and_grad(position)
    assert np.isfinite(wanted)
    plain, largest = largest_term(value, position)
    found, gradient = compiled(position)
    assert abs(plain - wanted) <= 1e-12 * largest
    assert abs(found - wanted) <= 1e-12 * largest
    np.testing.assert_allclose(gradient, slopes, rtol=1e-9, atol=1e-9 * max(1.0, float(np.abs(slopes).max())))


def test_every_family_is_compared() -> None:
    assert set(REFERENCE) | set(OTHERS) | ELSEWHERE == set(FAMILIES)
