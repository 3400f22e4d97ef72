"""Role `batch_norm`: its batch while SVI trains, what it has stored everywhere else; as torch's own module, to 1e-6."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from qvr_core import dsl
from qvr_core.inference import ELBO, MCMC, SVI, AutoDeltaGuide, NUTSKernel
from qvr_core.runtime.arrows.training import in_training, training_layers
from qvr_core.runtime.values import padding
from qvr_core.runtime.values.errors import InputProblem, NoDensity, NonFinite


def _arrow(space: str, options: str = "") -> Any:
    return dsl.loads(f"morphism f : {space} -> {space} [role=batch_norm{options}]\nexport f\n").morphism


@pytest.mark.parametrize(
    "space, theirs, shape",
    [
        ("Real 3 4 5", nn.BatchNorm2d(3), (6, 3, 4, 5)),
        ("Real 3 4", nn.BatchNorm1d(3), (6, 3, 4)),
        ("Real 3", nn.BatchNorm1d(3), (6, 3)),
    ],
)
def test_it_is_that_of_torch(space: str, theirs: nn.Module, shape: tuple[int, ...]) -> None:
    torch.manual_seed(3)
    ours = _arrow(space)
    for parameter, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        nn.init.normal_(parameter)
        other.data.copy_(parameter.data)
    for _ in range(3):
        batch = 2.0 * torch.randn(shape) + 1.0
        x, y = batch.flatten(1).clone().requires_grad_(), batch.clone().requires_grad_()
        with in_training(training_layers((ours,))):
            made = ours(x)
        expected = theirs(y).flatten(1)
        torch.testing.assert_close(made, expected, rtol=1e-6, atol=1e-6)
        weights = torch.randn_like(made)
        (made * weights).sum().backward()
        (expected * weights).sum().backward()
        torch.testing.assert_close(x.grad, y.grad.flatten(1), rtol=1e-5, atol=1e-6)
    for name in ("running_mean", "running_var"):
        torch.testing.assert_close(ours.get_buffer(f"f.{name}"), theirs.get_buffer(name), rtol=1e-6, atol=1e-6)
    other = torch.randn(shape)
    torch.testing.assert_close(ours(other.flatten(1)), theirs.eval()(other).flatten(1), rtol=1e-6, atol=1e-6)


def test_positions_of_a_sequence_count_as_rows_where_they_are_valid() -> None:
    ours, other = _arrow("Real 4"), _arrow("Real 4")
    x = torch.randn(3, 5, 4)
    lengths = torch.tensor([5, 2, 1])
    valid = torch.arange(5) < lengths[:, None]
    with in_training(training_layers((ours, other))):
        with padding.padded(lengths):
            made = ours(x)
        expected = other(x[valid])
    torch.testing.assert_close(made[valid], expected)
    torch.testing.assert_close(ours.get_buffer("f.running_mean"), other.get_buffer("f.running_mean"))


MODEL = """
object Image : Real 2 3 3
object Feature : Real 4 3 3
object Output : Real 1
morphism look : Image -> Feature [role=conv, padding=1]
morphism even : Feature -> Feature [role=batch_norm, momentum=0.5]
morphism out : Feature -> Output [role=kernel, param_source=linear] ~ Normal

let features = look >> even

program net(x) : Image -> Output
    let h = relu(features(x))
    observe y : Output <- out(h)
    return y

program slope(x) : Image -> Output
    sample b <- Normal(0.0, 1.0)
    let h = even(look(x))
    let m = mean(h)
    observe y : Output <- Normal(b * m, 1.0)
    return y
export net
"""


def _fit() -> tuple[Any, SVI, torch.Tensor, dict[str, torch.Tensor]]:
    torch.manual_seed(1)
    model = dsl.loads(MODEL).programs["net"]
    svi = SVI(model, AutoDeltaGuide(model), torch.optim.SGD(model.parameters(), lr=0.0), ELBO())
    return model, svi, 2.0 * torch.randn(16, 18) + 1.0, {"y": torch.randn(16, 1)}


def _stored(model: Any) -> list[torch.Tensor]:
    return [value.clone() for name, value in model.state_dict().items() if "running" in name]


def test_svi_trains_by_the_batch_and_stores_it_and_everything_else_reads_what_is_stored() -> None:
    model, svi, x, data = _fit()
    before = svi.evaluate(x, data)
    start = _stored(model)
    assert svi.evaluate(x[:4], {"y": data["y"][:4]}) != before
    first = svi.step(x, data)
    assert first != before
    assert not any(torch.equal(a, b) for a, b in zip(start, _stored(model), strict=True))
    # nothing moves but the statistics, and the loss of a batch is that of its own
    assert svi.step(x, data) == first
    for _ in range(30):
        svi.step(x, data)
    # what is stored has become that of the one batch there is, but for n - 1
    assert svi.evaluate(x, data) == pytest.approx(first, rel=1e-2)
    kept = _stored(model)
    svi.evaluate(x, data)
    model.rsample(x)
    assert all(torch.equal(a, b) for a, b in zip(kept, _stored(model), strict=True))


def test_a_row_is_given_its_batch_in_training_alone() -> None:
    model, _, x, data = _fit()
    whole = model.log_prob(x, data["y"])
    torch.testing.assert_close(whole[:5], model.log_prob(x[:5], data["y"][:5]))
    with in_training(training_layers((model,))):
        given = model.log_prob(x, data["y"])
        assert not torch.allclose(given[:5], model.log_prob(x[:5], data["y"][:5]))


def test_a_batch_that_is_not_finite_is_not_stored() -> None:
    model, svi, x, data = _fit()
    svi.step(x, data)
    kept = _stored(model)
    with pytest.raises(NonFinite):
        svi.step(torch.full_like(x, float("inf")), data)
    with pytest.raises(NonFinite):
        svi.step(x, {"y": torch.full((16, 1), float("nan"))})
    expected = _stored(model)
    assert all(bool(torch.isfinite(value).all()) for value in expected)
    assert torch.equal(kept[0], expected[0]) is False  # the second batch was sound, and is stored, once
    svi.step(x, data)
    twice = _stored(model)
    torch.testing.assert_close(twice[0] - expected[0], 0.5 * (expected[0] - kept[0]))


def test_a_compiler_is_not_given_what_it_would_store_nowhere() -> None:
    model, _, x, data = _fit()
    svi = SVI(model, AutoDeltaGuide(model), torch.optim.SGD(model.parameters(), lr=0.0), ELBO(), compile=True)
    start = _stored(model)
    with pytest.warns(UserWarning, match="`even` stores statistics of each batch"):
        svi.step(x, data)
    assert not torch.equal(start[0], _stored(model)[0])


def test_one_number_a_channel_is_no_batch() -> None:
    ours = _arrow("Real 4")
    with in_training(training_layers((ours,))), pytest.raises(InputProblem, match=r"`f` normalises over its batch"):
        ours(torch.randn(1, 4))


def test_nuts_says_that_it_has_no_one_density() -> None:
    model = dsl.loads(MODEL).programs["slope"]
    with pytest.raises(NoDensity, match=r"`even` normalises by statistics.*fit it with SVI"):
        MCMC(NUTSKernel(), 5, 5, 1, seed=0).run(model, torch.randn(16, 18), {"y": torch.randn(16, 1)})
