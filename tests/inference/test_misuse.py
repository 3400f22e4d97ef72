"""Calls that a newcomer gets wrong: each is refused at once, in words that name the place and the right call."""

from __future__ import annotations

import warnings
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
from qvr_core.runtime.programs.handlers import condition
from qvr_core.runtime.values.errors import InputProblem, NonFinite, Unobserved

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


@pytest.mark.parametrize(
    ("kernel", "settings", "said"),
    [
        (NUTSKernel, {"target_accept": 2.0}, "NUTSKernel: target_accept must be between 0 and 1, not 2"),
        (HMCKernel, {"target_accept": 0.0}, "HMCKernel: target_accept must be between 0 and 1, not 0"),
        (NUTSKernel, {"step_size": -0.1}, "NUTSKernel: step_size must be greater than 0, not -0.1"),
        (NUTSKernel, {"step_size": float("nan")}, "step_size must be greater than 0, not nan"),
        (NUTSKernel, {"max_tree_depth": 0}, "NUTSKernel: max_tree_depth must be at least 1, not 0"),
        (HMCKernel, {"num_steps": 0}, "HMCKernel: num_steps must be at least 1, not 0"),
        (HMCKernel, {"trajectory_length": 0.0}, "trajectory_length must be greater than 0, not 0"),
    ],
)
def test_settings_of_a_kernel_that_cannot_be(kernel: type, settings: dict[str, Any], said: str) -> None:
    with pytest.raises(InputProblem, match=said):
        kernel(**settings)


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
        loads(text).morphism.execute(None, condition(given))
    assert caught.value.site == "m"


CURVE = """
object X : Real 4
object Y : Real 1
morphism f : X -> Y [role=kernel, hidden_dim=8] ~ Normal
program curve : X -> Y
    observe y : Y <- f
    return y
"""


def test_an_input_that_does_not_fit_is_refused_each_time() -> None:
    model = loads(CURVE).morphism
    good, bad = torch.randn(6, 4), torch.randn(6, 3)
    model.rsample(good)
    for _ in range(2):
        with pytest.raises(InputProblem, match="the input: expected float"):
            model.rsample(bad)
    assert model.rsample(good).shape == (6, 1)
    with pytest.raises(InputProblem, match="the input: expected float"):
        bayesian_lift_parameters(model, bad, {"y": torch.zeros(6, 1)})


def test_another_dtype_is_reported_with_the_site() -> None:
    with pytest.raises(InputProblem, match=r"`curve`, `y`: double numbers meet float: .*x\.float\(\)"):
        loads(CURVE).morphism.rsample(torch.randn(6, 4).double())


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"posterior_samples": {"nu": torch.zeros(3)}}, r"posterior_samples: `p` has no `nu`; did you mean `mu`"),
        ({"num_samples": 2, "return_sites": ["heigth"]}, r"return_sites: `p` has no `heigth`; did you mean `height`"),
        ({"num_samples": 9, "posterior_samples": {"mu": torch.zeros(3)}}, r"num_samples is 9, .* has 3 draws"),
    ],
)
def test_predictive_refuses_what_it_cannot_use(more: dict[str, Any], message: str) -> None:
    with pytest.raises(InputProblem, match=message):
        Predictive(plain(), **more)


def test_predictive_wants_as_many_draws_of_each() -> None:
    both = PLAIN.replace("Normal(mu, 1.0)", "Normal(mu, s)").replace(
        "    observe", "    sample s <- HalfNormal(1.0)\n    observe"
    )
    with pytest.raises(InputProblem, match="`mu` 3, `s` 4"):
        Predictive(loads(both).morphism, posterior_samples={"mu": torch.zeros(3), "s": torch.ones(4)})


def test_predictive_of_a_lifted_model_is_that_of_its_program() -> None:
    model, x = loads(CURVE).morphism, torch.randn(6, 4)
    lifted, _, _ = bayesian_lift_parameters(model, x, {"y": torch.zeros(6, 1)})
    draws = {name: value.unsqueeze(0).repeat(3, *(1,) * value.ndim) for name, value in lifted.initial().items()}
    assert Predictive(lifted, posterior_samples=draws)(x)["y"].shape == (3, 6, 1)
    with pytest.raises(InputProblem, match="not for a LiftedModel; a lifted model is for `MCMC`"):
        AutoPriorGuide(lifted)


def test_as_many_rows_are_drawn_as_the_data_have() -> None:
    model = loads(
        "object Patient : FinSet 20\nobject Clinic : FinSet 3\nprogram p : Patient -> Patient\n"
        "    sample a : Clinic <- Normal(0.0, 1.0)\n"
        "    observe response : Patient <- Normal(a[clinic] + dose, 1.0)\n    return response\n"
    ).morphism
    five = {"clinic": torch.tensor([0, 1, 2, 0, 1]), "dose": torch.randn(5)}
    assert Predictive(model, num_samples=3)(None, five)["response"].shape == (3, 5)
    assert model.rsample(observations=five).shape == (1, 5)
    full = {"clinic": torch.zeros(20, dtype=torch.long), "dose": torch.randn(20)}
    assert model.rsample(observations=full).shape == (1, 20)


def test_a_value_of_another_width_than_its_space_is_refused() -> None:
    model = loads(
        "object Out : Real 1\nprogram p : Out -> Out\n    sample m <- Normal(0.0, 1.0)\n"
        "    observe y : Out <- Normal(m, 1.0)\n    return y\n"
    ).morphism
    assert model.log_joint(None, {"m": 0.0, "y": torch.zeros(60)}).shape == (1,)
    with pytest.raises(
        InputProblem, match=r"site `y`: expected rows of \(1,\), as `: Out` says, found shape \(60, 5\)"
    ):
        model.log_joint(None, {"m": 0.0, "y": torch.zeros(60, 5)})


def test_a_guide_of_another_program_is_refused() -> None:
    guide = AutoNormalGuide(plain(), {"height"})
    other = loads(PLAIN.replace("program p ", "program q ")).morphism
    with pytest.raises(InputProblem, match="the guide was made for `p`, and the model is `q`"):
        SVI(other, guide, torch.optim.Adam(guide.parameters()), ELBO()).step(None, {"height": torch.zeros(6)})


SITE = "`p`: site `y`: the observed value has 1 NaN of 2, the first in row 2, counted from 1"
DATA = "`p`: data `dose` has 1 NaN of 2, the first in row 1, counted from 1"
ABOVE = r"is -\d.*, and must be above 0: .*exp"
BETWEEN = r"is -\d.*, and must be between 0 and 1: .*sigmoid"


def negative(step: str) -> Any:
    """A program whose latent is about −3."""
    return loads(
        f"program p : FinSet 2 -> FinSet 2\n    sample s <- Normal(-3.0, 0.1)\n    observe y <- {step}\n    return s\n"
    ).morphism


@pytest.mark.parametrize(
    ("step", "observed", "message"),
    [
        ("Normal(s, 1.0)", {"y": torch.tensor([0.0, torch.nan])}, SITE),
        ("Normal(s * dose, 1.0)", {"y": torch.zeros(2), "dose": torch.tensor([torch.nan, 1.0])}, DATA),
        ("Normal(0.0, s)", {"y": torch.zeros(2)}, f"site `y`: its `scale` {ABOVE}"),
        ("Poisson(s)", {"y": torch.ones(2)}, f"site `y`: its `rate` {ABOVE}"),
        ("Bernoulli(s)", {"y": torch.ones(2)}, f"site `y`: its `probs` {BETWEEN}"),
    ],
)
def test_what_is_not_finite_is_blamed_where_it_comes_from(step: str, observed: dict[str, Any], message: str) -> None:
    model = negative(step)
    guide, free = AutoPriorGuide(model, {"y"}), torch.nn.Parameter(torch.zeros(()))
    elbo = ELBO()

    def objective(*arguments: Any) -> torch.Tensor:
        return elbo(*arguments) + free

    with pytest.raises(NonFinite, match=message):
        SVI(model, guide, torch.optim.Adam([free]), objective).step(None, observed)


@pytest.mark.parametrize(
    ("step", "observed", "message"),
    [
        ("Normal(s, 1.0)", {"y": torch.tensor([0.0, torch.nan])}, SITE),
        ("Normal(s * dose, 1.0)", {"y": torch.zeros(2), "dose": torch.tensor([torch.nan, 1.0])}, DATA),
        ("Normal(0.0, s - 9.0)", {"y": torch.zeros(2)}, f"site `y`: its `scale` {ABOVE}"),
    ],
)
def test_chains_that_cannot_start_say_why(step: str, observed: dict[str, Any], message: str) -> None:
    with pytest.raises(NonFinite, match=message):
        MCMC(NUTSKernel(), num_warmup=1, num_samples=1).run(negative(step), None, observed)


def test_an_observe_step_without_a_value_is_warned_of() -> None:
    model = plain()
    with pytest.warns(Unobserved, match="`p`: no value was given for `height`, so it is drawn"):
        MCMC(NUTSKernel(), num_warmup=5, num_samples=2).run(model)
    guide = AutoNormalGuide(model)
    svi = SVI(model, guide, torch.optim.Adam(guide.parameters()), ELBO())
    with pytest.warns(Unobserved):
        svi.step()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        svi.step()
        MCMC(NUTSKernel(), num_warmup=5, num_samples=2).run(model, None, {"height": torch.zeros(6)})
