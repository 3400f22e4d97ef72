"""Calls that a newcomer gets wrong: each is refused at once, in words that name the place and the right call."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from qvr_core.dsl import loads
from qvr_core.inference import (
    ELBO,
    MCMC,
    SVI,
    AutoNormalGuide,
    AutoPriorGuide,
    HMCKernel,
    NUTSKernel,
    Predictive,
    bayesian_lift_parameters,
)
from qvr_core.runtime.errors import InputProblem

PLAIN = """
object Row : FinSet 6
program p : Row -> Row
    sample mu <- Normal(0.0, 1.0)
    observe height : Row <- Normal(mu, 1.0)
    return height
"""
LEARNED = """
object Token : FinSet 5
object E : Real 3
morphism embed : Token -> E [role=embed]
morphism head : E -> Token [role=kernel] ~ Categorical
let path = embed >> head
program lm(t) : Token -> Token
    observe next : Token <- path(t)
    return next
"""


def plain() -> Any:
    return loads(PLAIN).morphism


def learned() -> Any:
    return loads(LEARNED).morphism


@pytest.mark.parametrize("kernel", [NUTSKernel, HMCKernel])
def test_a_kernel_takes_no_model(kernel: type[NUTSKernel | HMCKernel]) -> None:
    with pytest.raises(TypeError, match=rf"{kernel.__name__}: step_size must be .* not ProgramModule; .*\.run\(model"):
        kernel(plain())
    assert kernel(1).step_size == 1.0


def test_no_parameters_to_lift() -> None:
    with pytest.raises(InputProblem, match=r"`p` has no parameters to lift; give the program itself to `MCMC\.run"):
        bayesian_lift_parameters(plain(), None, {"height": torch.zeros(6)})


@pytest.mark.parametrize("scale", ["fanin", 0.0, -1.0, float("nan"), None])
def test_a_scale_is_a_number_or_fan_in(scale: Any) -> None:
    x = torch.tensor([0, 1])
    with pytest.raises(InputProblem, match=rf"prior_scale must be a positive number or 'fan_in', not {scale!r}"):
        bayesian_lift_parameters(learned(), x, {"next": x}, prior_scale=scale)


NEAR = r"observations: `p` has no data and no site `heigth`; did you mean `height`\?"


def test_a_misspelt_observation_does_not_sample_the_prior() -> None:
    given = {"heigth": torch.zeros(6)}
    with pytest.raises(InputProblem, match=NEAR):
        MCMC(NUTSKernel(), 1, 1).run(plain(), None, given)
    with pytest.raises(InputProblem, match=NEAR):
        Predictive(plain(), num_samples=2)(None, given)
    guide = AutoNormalGuide(model := plain())
    svi = SVI(model, guide, torch.optim.Adam(guide.parameters()), ELBO())
    with pytest.raises(InputProblem, match=NEAR):
        svi.step(None, given)
    with pytest.raises(InputProblem, match=r"no site `weight_of_all`; it has `height`, `mu`"):
        MCMC(NUTSKernel(), 1, 1).run(plain(), None, {"height": torch.zeros(6), "weight_of_all": 1.0})


def test_a_misspelt_observation_of_a_lifted_program() -> None:
    model, x = learned(), torch.tensor([0, 1])
    message = r"observations: `lm` has no data and no site `nxt`; did you mean `next`\?"
    with pytest.raises(InputProblem, match=message):
        bayesian_lift_parameters(model, x, {"nxt": x})
    lifted, _, _ = bayesian_lift_parameters(model, x, {"next": x})
    with pytest.raises(InputProblem, match=message):
        MCMC(NUTSKernel(), 1, 1).run(lifted, x, {"nxt": x})


@pytest.mark.parametrize("guide", [AutoPriorGuide, AutoNormalGuide])
def test_a_misspelt_name_of_a_guide(guide: type[AutoPriorGuide | AutoNormalGuide]) -> None:
    with pytest.raises(InputProblem, match=r"observed_names: .* no site `heigth`; did you mean `height`\?"):
        guide(plain(), observed_names={"heigth"})


def test_data_of_another_length_name_program_and_step() -> None:
    text = PLAIN.replace(
        "    observe height : Row <- Normal(mu", "    let m = mu * x + z\n    observe height : Row <- Normal(m"
    )
    given = {"height": torch.zeros(6), "x": torch.zeros(6), "z": torch.zeros(5)}
    with pytest.raises(InputProblem, match=r"program `p`, `m`: 6 entries meet 5: ") as caught:
        loads(text).morphism.execute(None, observations=given)
    assert caught.value.site == "m"
