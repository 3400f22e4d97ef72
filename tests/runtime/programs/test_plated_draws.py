"""Draws from a named arrow for each element of a set: densities, shapes and inference against plain torch."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.distributions import Normal

from qvr_core import dsl
from qvr_core.inference import ELBO, MCMC, SVI, AutoNormalGuide, NUTSKernel, Predictive, trace
from qvr_core.runtime.values.errors import InputProblem

OBJECTS = """
object Row : {"a", "b", "c", "d", "e"}
object Time : FinSet 4
object Feature : FinSet 3
object X : Real 3
object Code : Real 2
object One : Real 1
object Kind : FinSet 6
object Two : FinSet 2
object Half : FinSet 2
morphism encode : X -> Code ~ Normal
morphism decode : Code -> One ~ Normal
morphism mix : Row * One -> One * Code ~ Normal
morphism choose : Row -> Kind
"""


def program(body: str, **data: Tensor) -> dsl.Program:
    text = f"{OBJECTS}\nprogram p : Row -> Row\n" + "\n".join(f"    {line}" for line in body.strip().splitlines())
    return dsl.loads(text, data=data)


def network(model: torch.nn.Module, name: str, x: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation of a Normal kernel, written out from its parameters."""
    own = dict(model.named_parameters())

    def linear(part: str, value: Tensor) -> Tensor:
        return value @ own[f"{name}.{part}.weight"].T + own[f"{name}.{part}.bias"]

    raw = linear("output", torch.tanh(linear("hidden", torch.tanh(linear("input", x)))))
    mean, spread = raw.chunk(2, -1)
    return mean, torch.nn.functional.softplus(spread + 0.541325) + 0.001


def test_an_index_draws_for_each_element() -> None:
    x, y = torch.randn(5, 3), torch.randn(5)
    model = program(
        """
data x : Row * Feature
sample z[i : Row] <- encode(x[i])
observe y[i : Row] <- decode(z[i])
return z
""",
        x=x,
    ).morphism
    z = torch.randn(1, 5, 2)
    latent = Normal(*network(model, "encode", x)).log_prob(z[0]).sum()
    mean, spread = network(model, "decode", z[0])
    given = Normal(mean[:, 0], spread[:, 0]).log_prob(y)
    assert torch.allclose(model.log_joint(None, {"z": z, "y": y}), (latent + given.sum())[None])
    assert model.rsample(None).shape == (1, 5, 2)
    assert model.site_infos()["z"].event == (5, 2)


def test_without_an_index_the_other_axes_are_rows() -> None:
    """The last axis is what the arrow reads; the sets in front of it are its plate."""
    x = torch.randn(4, 5, 3)
    model = program("data x : Time * Row * Feature\nsample z <- encode(x)\nreturn z", x=x).morphism
    z = torch.randn(1, 4, 5, 2)
    wanted = Normal(*network(model, "encode", x)).log_prob(z[0]).sum()
    assert torch.allclose(model.log_joint(None, {"z": z}), wanted[None])


def test_arguments_over_several_indices_meet_by_name() -> None:
    x, w = torch.randn(5, 3), torch.randn(4, 3)
    model = program(
        "data x : Row * Feature\ndata w : Time * Feature\nsample z[t : Time, i : Row] <- encode(x[i] + w[t])\nreturn z",
        x=x,
        w=w,
    ).morphism
    z = torch.randn(1, 4, 5, 2)
    wanted = Normal(*network(model, "encode", w[:, None] + x)).log_prob(z[0]).sum()
    assert torch.allclose(model.log_joint(None, {"z": z}), wanted[None])


def test_what_lacks_an_index_is_the_same_for_each_of_its_elements() -> None:
    """Independent draws: one for each element, also where nothing that the arrow reads differs."""
    c = torch.randn(3)
    model = program("data c : Feature\nsample z[i : Row] <- encode(c)\nreturn z", c=c).morphism
    z = torch.randn(1, 5, 2)
    wanted = Normal(*network(model, "encode", c)).log_prob(z[0]).sum()
    assert torch.allclose(model.log_joint(None, {"z": z}), wanted[None])
    plate = program("data c : Feature\nsample z <- encode(c) [iid_over=Row]\nreturn z", c=c).morphism
    plate.load_state_dict(model.state_dict())
    assert torch.allclose(plate.log_joint(None, {"z": z}), wanted[None])


def test_elements_of_sets_are_looked_up_and_patterns_cut() -> None:
    k, w, u = torch.tensor([0, 1, 4, 2]), torch.randn(4), torch.tensor([5, 0, 1, 3])
    model = program(
        """
data k : Time -> Row
data w : Time
sample (a, b)[t : Time] <- mix(k[t], w[t])
observe u[t : Time] <- choose(k[t])
let s[t : Time] = a[t] + b[t, 1]
return s
""",
        k=k,
        w=w,
    ).morphism
    run = trace(model, None, {"u": u})
    drawn = run.sites["a_b"].value
    assert isinstance(drawn, Tensor) and drawn.shape == (1, 4, 3)
    assert isinstance(run.output, Tensor) and torch.allclose(run.output, drawn[..., 0] + drawn[..., 2])
    own = dict(model.named_parameters())
    read = torch.cat([own["mix.lookup_0.weight"][k], w[:, None]], -1)
    latent = Normal(*network(model, "mix", read)).log_prob(drawn[0]).sum()
    chosen = torch.log_softmax(own["choose.table.weight"], -1)[k, u].sum()
    assert torch.allclose(run.log_joint, (latent + chosen)[None], atol=1e-5)


def test_masks_and_weights_have_the_axes_of_the_step() -> None:
    x, y = torch.randn(5, 3), torch.randn(5, 2)
    seen, count = torch.tensor([True, False, True, True, False]), torch.tensor([1, 2, 0, 3, 1])
    body = "data x : Row * Feature\ndata seen : Row -> Bool\ndata count : Row -> Nat\n"
    model = program(
        body + "observe y[i : Row] <- encode(x[i]) [mask=seen, weight=count]\nreturn y", x=x, seen=seen, count=count
    ).morphism
    each = Normal(*network(model, "encode", x)).log_prob(y).sum(-1)
    assert torch.allclose(model.log_joint(None, {"y": y}), (each * seen * count).sum()[None])


def test_rows_of_the_input_have_a_plate_each() -> None:
    """A program that reads its input draws the plate anew in each row."""
    text = OBJECTS + (
        "\nprogram p(x) : X -> Code\n    sample z[t : Time] <- encode(x)\n    sample r <- encode(x)\n    return r\n"
    )
    model = dsl.loads(text).morphism
    x = torch.randn(7, 3)
    run = trace(model, x)
    z = run.sites["z"].value
    assert isinstance(z, Tensor) and z.shape == (7, 4, 2)
    mean, spread = network(model, "encode", x)
    wanted = Normal(mean[:, None], spread[:, None]).log_prob(z).sum((1, 2))
    found = run.sites["z"].log_prob
    assert found is not None and torch.allclose(found, wanted, atol=1e-5)


def test_noise_inside_a_composite_has_the_axes_of_the_plate() -> None:
    text = OBJECTS + (
        "\nlet both = encode >> decode\n\nprogram p : Row -> Row\n    data x : Row * Feature\n"
        "    sample z[i : Row] <- both(x[i])\n    return z\n"
    )
    x = torch.randn(5, 3)
    model = dsl.loads(text, data={"x": x}).morphism
    inner = model.innovations(None)
    assert {path: tuple(u.shape) for path, u in inner["z"].items()} == {"encode": (1, 5, 2)}
    z = torch.randn(1, 5)
    mean, spread = network(model, "encode", x)
    last, wide = network(model, "decode", mean + spread * inner["z"]["encode"][0])
    wanted = Normal(last[:, 0], wide[:, 0]).log_prob(z[0]).sum()
    assert torch.allclose(model.log_joint(None, {"z": z}, inner), wanted[None])


def test_chains_guides_and_predictions_carry_the_labels() -> None:
    x, y = torch.randn(5, 3), torch.randn(5)
    body = "data x : Row * Feature\nsample z[i : Row] <- encode(x[i])\nobserve y[i : Row] <- decode(z[i])\nreturn z"
    model = program(body, x=x).morphism
    result = MCMC(NUTSKernel(), 20, 20, 2, seed=3).run(model, None, {"y": y})
    assert result.samples["z"].shape == (2, 20, 5, 2)
    tree = result.to_arviz()
    assert list(tree["posterior"]["z"].coords["Row"].values) == ["a", "b", "c", "d", "e"]
    each = tree["log_likelihood"]["y"]
    assert each.dims == ("chain", "draw", "Row")
    mean, spread = network(model, "decode", result.samples["z"].float())
    wanted = Normal(mean[..., 0], spread[..., 0]).log_prob(y)
    assert torch.allclose(torch.as_tensor(each.values).float(), wanted, atol=1e-4)
    guide = AutoNormalGuide(model, observed_names=["y"])
    svi = SVI(model, guide, torch.optim.Adam([*model.parameters(), *guide.parameters()], lr=0.01), ELBO())
    assert all(torch.isfinite(torch.tensor(svi.step(None, {"y": y}))) for _ in range(3))
    drawn = Predictive(model, num_samples=6)(None)
    assert drawn["y"].reshape(6, -1).shape == (6, 5)


def test_below_a_summed_out_name_elements_are_scored_along_its_plate() -> None:
    """A mixture of two codes, of which each row's own is read."""
    w, codes, y = torch.tensor(0.7), torch.randn(2, 2), torch.randn(5)
    body = """
data w : Real 1
data codes : Two * Half
marginalize z : Row <- Bernoulli(w)
    observe y <- decode(codes[z])
return w
"""
    model = program(body, w=w, codes=codes).morphism
    mean, spread = network(model, "decode", codes)
    each = Normal(mean[:, 0], spread[:, 0]).log_prob(y[:, None]) + torch.tensor([0.3, 0.7]).log()
    assert torch.allclose(trace(model, None, {"y": y}).log_joint, each.logsumexp(-1).sum()[None], atol=1e-5)


def test_values_of_another_shape_are_told() -> None:
    model = program(
        "data x : Row * Feature\nobserve y[i : Row] <- encode(x[i])\nreturn y", x=torch.randn(5, 3)
    ).morphism
    with pytest.raises(InputProblem, match="5 values, one for each element"):
        model.log_joint(None, {"y": torch.randn(4, 2)})
