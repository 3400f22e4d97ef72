"""Arrows inside arrows: finite draws on the way to a later one are innovations, nested programs count their noise."""

from __future__ import annotations

import torch
from torch.distributions import Categorical, Normal

from qvr_core.dsl import loads

SOURCE = """
object T : FinSet 10
object K : FinSet 4
object R : Real 3
morphism e : T -> R [role=embed]
morphism f : R -> K [role=kernel] ~ Categorical
morphism g : K -> R [role=kernel] ~ Normal
morphism h : R * R -> R [role=kernel] ~ Normal
let mix = f >> g
program inner(x) : R -> R
    sample a <- mix(x)
    return a
let deep = e >> fan(stack(mix, 2), inner) >> h
program p(t) : T -> R
    observe y <- deep
    return y
"""


def test_finite_draws_inside_are_innovations_and_densities_repeat_bit_for_bit():
    model = loads(SOURCE).morphism
    x, y = torch.randint(0, 10, (6,)), torch.randn(6, 3)
    u = model.innovations(x)
    finite = {path for path, noise in u["y"].items() if not noise.is_floating_point()}
    assert finite == {"mix.0.f", "mix.1.f", "a/f"} and len(u["y"]) == 6
    assert torch.equal(model.log_joint(x, {"y": y}, u), model.log_joint(x, {"y": y}, u))


def test_a_nested_program_counts_its_noise_not_its_values():
    text = SOURCE.replace("fan(stack(mix, 2), inner) >> h", "fan(inner, inner) >> h")
    model = loads(
        text.replace("sample a <- mix(x)", "sample a <- k(x)") + "morphism k : R -> R [role=kernel] ~ Normal\n"
    )
    model = model.morphism
    x = torch.randint(0, 10, (6,))
    arrow = model.sites["y"].module
    u = model.innovations(x)["y"]
    assert set(u) == {"a/k", "a/k#2"}
    _, log_u = arrow.densities(x, torch.randn(6, 3), u)
    expected = sum(Normal(0.0, 1.0).log_prob(noise).sum(-1) for noise in u.values())
    assert torch.allclose(log_u, expected, rtol=1e-5)


def test_log_density_of_finite_innovations():
    text = SOURCE.replace("fan(stack(mix, 2), inner) >> h", "mix >> k").replace(
        "let mix", "morphism k : R -> R [role=kernel] ~ Normal\nlet mix"
    )
    model = loads(text.replace("mix >> k", "fan(mix, mix) >> h")).morphism
    x = torch.randint(0, 10, (6,))
    arrow = model.sites["y"].module
    u = model.innovations(x)["y"]
    _, log_u = arrow.densities(x, torch.randn(6, 3), u)
    leaves = arrow.leaves
    embedded = leaves["e"](x)
    expected = torch.zeros(6)
    for path, noise in u.items():
        if noise.is_floating_point():
            expected = expected + Normal(0.0, 1.0).log_prob(noise).sum(-1)
        else:
            expected = expected + Categorical(logits=leaves["f"].net(embedded)).log_prob(noise)
        assert path.split("#")[0] in ("f", "g")
    assert torch.allclose(log_u, expected, rtol=1e-5)
