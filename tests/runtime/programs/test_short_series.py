"""A series whose data are shorter than what a step looks back."""

import pytest
import torch

from qvr_core.dsl import loads
from qvr_core.runtime.values.errors import RuntimeProblem

STEPS = [
    "sample h[t : Month] <- Normal(h[t - 3], 1.0) from Normal(0.0, 1.0)",
    "let h[t : Month] = 0.5 * h[t - 3] from 1.0",
]


@pytest.mark.parametrize("step", STEPS)
def test_it_is_told(step: str) -> None:
    text = (
        f"object Month : FinSet _\nprogram p : Month -> Month\n    {step}\n"
        "    observe y[t : Month] <- Normal(h[t], 1.0)\n    return h\n"
    )
    with pytest.raises(RuntimeProblem, match="`Month` has 2"):
        loads(text, data={"y": torch.zeros(2)})
    model = loads(text, data={"y": torch.zeros(3)}).morphism
    assert model.rsample().shape == (1, 3)
