"""A part of the rows, scaled up, stands for all of them."""

from __future__ import annotations

import pytest
import torch

from qvr_core import dsl
from qvr_core.inference import ELBO, AutoNormalGuide
from qvr_core.inference.row_terms import NotASum, row_terms
from qvr_core.runtime.programs.handlers import subsample
from qvr_core.runtime.values.errors import InputProblem

MODEL = """\
object Group : FinSet 3
object Unit : Real 1
program regression : Unit -> Unit
    sample alpha : Group <- Normal(0.0, 2.0)
    sample sigma <- HalfNormal(1.0)
    observe y <- Normal(alpha[group], sigma)
    return sigma
"""


SCORED = MODEL.replace("    return", "    score s = -100.0 * (sigma - 3.0)^2\n    return")
BY_HAND = """\
object Unit : Real 1
program by_hand : Unit -> Unit
    sample m <- Normal(0.0, 1.0)
    let off = y - m
    score fit = sum(-0.5 * off^2)
    score far = -100.0 * (m - 3.0)^2
    return m
"""
MIXED = BY_HAND.replace("sum(-0.5 * off^2)", "sum(-0.5 * off^2) - m^2")
MEANS = BY_HAND.replace("sum(-0.5 * off^2)", "mean(-0.5 * off^2)")
MIXTURE = """\
object Row : FinSet 12
object Kind : FinSet 2
program mixture : Row -> Row
    sample mu : Kind <- Normal(0.0, 1.0)
    marginalize z : Row <- Categorical([0.3, 0.7])
        observe y : Row <- Normal(mu[z], 1.0)
    return mu
"""
GROUPED = (
    MIXTURE.replace("object Kind", "object Group : FinSet 3\nobject Kind")
    .replace("z : Row <- Categorical([0.3, 0.7])", "z : Kind <- Categorical([0.3, 0.7]) [over=Group]")
    .replace("1.0)\n    return", "1.0) [via=group]\n    return")
)
ONE_FOR_ALL = MIXTURE.replace("z : Row", "z : Kind")


@pytest.mark.filterwarnings("ignore::qvr_core.runtime.values.errors.OtherLength")
@pytest.mark.parametrize("text", [MODEL, SCORED, BY_HAND, MIXTURE])
@pytest.mark.parametrize("particles", [1, 4])
def test_the_mean_over_all_parts_is_the_bound_of_all_rows(particles: int, text: str) -> None:
    torch.manual_seed(0)
    model = dsl.loads(text).morphism
    guide = AutoNormalGuide(model, observed_names={"y"} & set(model.sites))
    data = {"y": torch.randn(12), **({"group": torch.arange(12) % 3} if "group" in text else {})}

    def bound(objective: object, rows: slice) -> tuple[float, torch.Tensor]:
        guide.zero_grad()
        torch.manual_seed(1)
        loss = objective(model, guide, None, {name: values[rows] for name, values in data.items()})  # type: ignore[operator]
        loss.backward()
        return loss.item(), torch.cat([p.grad.reshape(-1) for p in guide.parameters() if p.grad is not None])

    whole, gradient = bound(ELBO(particles), slice(0, 12))
    parts = [
        bound(ELBO(particles, handlers=(subsample(12, row_terms(model, data)),)), slice(i, i + 4)) for i in (0, 4, 8)
    ]
    assert sum(value for value, _ in parts) / 3 == pytest.approx(whole, rel=1e-5)
    assert torch.allclose(sum(g for _, g in parts) / 3, gradient, rtol=1e-4, atol=1e-4)


@pytest.mark.filterwarnings("ignore::qvr_core.runtime.values.errors.OtherLength")
@pytest.mark.parametrize(
    ("text", "sites", "why"),
    [
        (MIXTURE, set(), "leaves `z` out"),
        (MIXTURE, {"y"}, 'sites = {"z"}'),
        (SCORED, {"y", "s"}, "scales `s`, which is no sum"),
        (ONE_FOR_ALL, {"z"}, "`z` depends on the rows and is no sum over them"),
    ],
)
def test_a8_python_asks_of_a_part_of_the_rows_what_a_run_asks(text: str, sites: set[str], why: str) -> None:
    """A marginalised site that is left out gave 13.7 where 61.0 is right, one that all rows share 64.7 for 68.0."""
    model = dsl.loads(text).morphism
    guide = AutoNormalGuide(model, observed_names={"y"} & set(model.sites))
    data = {"y": torch.randn(4), **({"group": torch.arange(4) % 3} if "group" in text else {})}
    with pytest.raises(InputProblem, match=why):
        ELBO(handlers=(subsample(12, sites),))(model, guide, None, data)


@pytest.mark.filterwarnings("ignore::qvr_core.runtime.values.errors.OtherLength")
@pytest.mark.parametrize(("text", "site"), [(MIXED, "fit"), (MEANS, "fit"), (GROUPED, "z"), (ONE_FOR_ALL, "z")])
def test_what_does_not_add_up_over_rows_is_refused_by_name(text: str, site: str) -> None:
    model = dsl.loads(text).morphism
    with pytest.raises(NotASum, match=f"`{site}` depends on the rows and is no sum over them") as caught:
        row_terms(model, {"y": torch.randn(12), **({"group": torch.arange(12) % 3} if text == GROUPED else {})})
    assert caught.value.site == site
