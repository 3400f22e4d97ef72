"""Guides that are programs: their bound against hand-written torch, and everything the checker lets through."""

import copy
import math
import pickle
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.distributions import Categorical, Distribution, HalfCauchy, LogNormal, Normal

from qvr_core.analysis import analyse
from qvr_core.dsl import Program, loads
from qvr_core.inference import ELBO, SVI, IWAEBound, Predictive, ProgramGuide, trace
from qvr_core.inference.objectives import weigh
from qvr_core.runtime.programs.handlers import by_rows, densities
from qvr_core.runtime.values.errors import InputProblem, RuntimeProblem
from qvr_core.semantics.types.diagnostics import Severity

VAE = """
object Picture : Real 4
object Code : Real 2
morphism prior : Picture -> Code [role=kernel] ~ Normal(0.0, 1.0)
morphism decode : Code -> Picture [role=kernel, scale=0.3] ~ Normal
morphism encode : Picture -> Code [role=kernel] ~ Normal
program vae(x) : Picture -> Picture
    sample z <- prior(x)
    observe picture : Picture <- decode(z)
    return picture
program encoder : Picture -> Picture [guide=vae]
    sample z <- encode(picture)
"""
CASES = Path(__file__).parents[1] / "spec" / "programs" / "guides.md"
BLOCKS = [
    block
    for block in re.findall(r"```qvr\n(.*?)```", CASES.read_text(encoding="utf-8"), re.S)
    if "guide=" in block and "error[" not in block
]


def loaded(text: str) -> tuple[Any, ProgramGuide, Program]:
    torch.manual_seed(0)
    program = loads(text)
    model = program.morphism
    return model, ProgramGuide(model, program.guide), program


def head(kernel: Any, x: Tensor) -> Normal:
    """The Normal of a kernel network, written out (docs/reference.md: mean = raw, scale by its link)."""
    hidden = torch.tanh(kernel.hidden(torch.tanh(kernel.input(x))))
    mean, raw = kernel.output(hidden).chunk(2, -1)
    scale = 0.3 if mean.shape[-1] == 4 else 1.0
    return Normal(mean, scale * (torch.nn.functional.softplus(raw + 0.541325) + 0.001))


def test_bound_of_a_variational_autoencoder_is_the_hand_written_one() -> None:
    torch.set_default_dtype(torch.float64)
    try:
        model, guide, program = loaded(VAE)
        x = torch.randn(7, 4)
        torch.manual_seed(5)
        loss = ELBO()(model, guide, x, {"picture": x})
        loss.backward()
        encode, decode = program.guide.leaves["encode"], model.leaves["decode"]
        gradients = {name: p.grad for name, p in encode.named_parameters()}
        encode.zero_grad()
        torch.manual_seed(5)
        q = head(encode, x)
        z = q.mean + q.stddev * torch.randn(7, 2)
        own = head(decode, z).log_prob(x).sum(-1) + Normal(0.0, 1.0).log_prob(z).sum(-1) - q.log_prob(z).sum(-1)
        assert loss.item() == pytest.approx(-own.mean().item(), abs=1e-6)
        (-own.mean()).backward()
        for name, p in encode.named_parameters():
            assert torch.allclose(p.grad, gradients[name], atol=1e-6), name  # pyright: ignore[reportArgumentType]
    finally:
        torch.set_default_dtype(torch.float32)


CHAIN = """
object Time : FinSet 5
object State : Real 2
object Sound : Real 3
object Summary : Real 4
morphism emit : State -> Sound [role=kernel] ~ Normal
morphism summary : Sound -> Summary [role=linear]
morphism begin : Summary -> State [role=linear]
morphism into : State -> State [role=linear]
morphism onto : Summary -> State [role=linear]
program markov : Time -> Time
    sample z[t : Time, k : Two] <- Normal(0.8 * z[t - 1, k], 0.5) from Normal(0.0, 1.0)
    observe y[t : Time] <- emit(z[t])
    return z
object Two : FinSet 2
program combiner : Time -> Time [guide=markov]
    let s = summary(y)
    let g = onto(s)
    param w : Real 1 [init=0.3]
    param v : Real 1 [low=0.0] [init=0.4]
    sample z[t : Time, k : Two] <- Normal(w * z[t - 1, k] + g[t, k], v) from Normal(g[0, k], v)
"""


def test_bound_of_a_chain_in_index_notation_is_the_hand_written_one() -> None:
    torch.set_default_dtype(torch.float64)
    try:
        model, guide, program = loaded(CHAIN)
        y = torch.randn(5, 3)
        torch.manual_seed(3)
        loss = ELBO()(model, guide, None, {"y": y})
        torch.manual_seed(3)
        proposed = guide.propose(1, inputs=_inputs(model, {"y": y}))
        z = proposed.values["z"]
        assert isinstance(z, Tensor)
        z = z[0]
        leaves = program.guide.leaves
        shift = leaves["onto"](leaves["summary"](y))
        log_q = Normal(shift[0], 0.4).log_prob(z[0]).sum()
        log_p = Normal(0.0, 1.0).log_prob(z[0]).sum()
        emit = model.leaves["emit"]
        for t in range(5):
            hidden = torch.tanh(emit.hidden(torch.tanh(emit.input(z[t]))))
            mean, raw = emit.output(hidden).chunk(2, -1)
            log_p += Normal(mean, torch.nn.functional.softplus(raw + 0.541325) + 0.001).log_prob(y[t]).sum()
            if t:
                log_q += Normal(0.3 * z[t - 1] + shift[t], 0.4).log_prob(z[t]).sum()
                log_p += Normal(0.8 * z[t - 1], 0.5).log_prob(z[t]).sum()
        assert loss.item() == pytest.approx((log_q - log_p).item(), abs=1e-6)
    finally:
        torch.set_default_dtype(torch.float32)


DEEP_MARKOV = """
object Control : Real 1
object State : Real 2
object Sound : Real 3
object Summary : Real 4
morphism transition : Control * State -> State [role=kernel] ~ Normal
morphism emit : State -> Sound [role=kernel] ~ Normal
morphism mix : Sound * Summary -> Summary [role=linear]
morphism combine : Summary * State -> State [role=kernel] ~ Normal
program backward_cell(y, s) : Sound * Summary -> Summary
    let t = tanh(mix(y, s))
    return t
let dynamics = scan(transition, emit=all)
let summary = scan(backward_cell, emit=all, direction=backward)
let posterior = summary >> scan(combine, emit=all)
program markov(u) : Control -> Sound
    sample z <- dynamics(u)
    observe y : Sound <- emit(z)
    return y
program combiner : Control -> Sound [guide=markov]
    sample z <- posterior(y)
export markov
"""


def normal(kernel: Any, x: Tensor) -> Normal:
    hidden = torch.tanh(kernel.hidden(torch.tanh(kernel.input(x))))
    mean, raw = kernel.output(hidden).chunk(2, -1)
    return Normal(mean, torch.nn.functional.softplus(raw + 0.541325) + 0.001)


def test_bound_of_a_deep_markov_model_is_the_hand_written_one() -> None:
    torch.set_default_dtype(torch.float64)
    try:
        model, guide, program = loaded(DEEP_MARKOV)
        u, y = torch.randn(6, 5, 1), torch.randn(6, 5, 3)
        torch.manual_seed(3)
        loss = ELBO()(model, guide, u, {"y": y})
        torch.manual_seed(3)
        z = guide.propose(6, inputs=_inputs(model, {"y": y}, u)).values["z"]
        assert isinstance(z, Tensor) and z.shape == (6, 5, 2)
        leaves, own = program.guide.leaves, model.leaves
        state, states = torch.zeros(6, 4), [torch.zeros(6, 4)] * 5
        for t in reversed(range(5)):
            state = states[t] = torch.tanh(leaves["mix"](torch.cat([y[:, t], state], -1)))
        total, before = torch.zeros(6), torch.zeros(6, 2)
        for t in range(5):
            here = z[:, t]
            total += normal(own["transition"], torch.cat([u[:, t], before], -1)).log_prob(here).sum(-1)
            total += normal(own["emit"], here).log_prob(y[:, t]).sum(-1)
            total -= normal(leaves["combine"], torch.cat([states[t], before], -1)).log_prob(here).sum(-1)
            before = here
        assert loss.item() == pytest.approx(-total.mean().item(), abs=1e-6)
    finally:
        torch.set_default_dtype(torch.float32)


def _inputs(model: Any, data: dict[str, Any], x: Any = None) -> Any:
    from qvr_core.inference.guides.base import Inputs

    return Inputs(model, model.input(x), model.taken(data))


EIGHT = """
object School : FinSet 3
program eight : School -> School
    sample mu <- Normal(0.0, 5.0)
    sample tau <- HalfCauchy(5.0)
    sample theta[s : School] <- Normal(mu, tau)
    observe y[s : School] <- Normal(theta[s], 2.0)
    return theta
program q : School -> School [guide=eight]
    param m : Real 1 [init=1.5]
    param s : Real 1 [low=0.0] [init=0.7]
    param a : School [init=0.1]
    sample tau <- LogNormal(0.2, 0.3)
    sample mu <- Normal(m, s)
    sample theta[i : School] <- Normal(mu + a[i] * tau, 0.5)
"""


def test_bound_of_a_guide_of_parameters_is_that_of_scipys_densities() -> None:
    model, guide, _ = loaded(EIGHT)
    y = torch.tensor([1.0, -2.0, 3.0])
    torch.manual_seed(2)
    loss = ELBO(num_particles=4)(model, guide, None, {"y": y})
    torch.manual_seed(2)
    values = {name: v for name, v in guide.propose(4, inputs=_inputs(model, {"y": y})).values.items()}
    mu, tau, theta = (values[name] for name in ("mu", "tau", "theta"))
    assert isinstance(mu, Tensor) and isinstance(tau, Tensor) and isinstance(theta, Tensor)

    def total(density: Distribution, value: Tensor) -> Tensor:
        return density.log_prob(value).reshape(4, -1).sum(-1)

    wide = tau[:, None]
    log_p = total(Normal(0.0, 5.0), mu) + total(HalfCauchy(5.0), tau)
    log_p += total(Normal(mu[:, None], wide), theta) + total(Normal(theta, 2.0), y.expand(4, 3))
    log_q = total(Normal(1.5, 0.7), mu) + total(LogNormal(0.2, 0.3), tau)
    log_q += total(Normal(mu[:, None] + 0.1 * wide, 0.5), theta)
    assert loss.item() == pytest.approx((log_q - log_p).mean().item(), abs=1e-5)


@pytest.mark.parametrize("text", BLOCKS, ids=lambda text: re.findall(r"guide=(\w+)", text)[0])
def test_every_guide_that_is_right_builds_and_makes_a_step(text: str) -> None:
    assert not [one for one in analyse(text).diagnostics() if one.severity is Severity.ERROR]
    model, guide, program = loaded(text)
    x = torch.randn(6, 4) if model.program.uses_input else None
    data = {name: torch.rand(item.shape) + 0.5 for name, item in model.declared.items()}
    run = model.execute(x, by_rows(None if x is not None else 1), densities(False), _given(data))
    observed = {name: site.value for name, site in run.sites.items() if model.sites[name].kind == "observe"}
    given = {name: value if x is not None else value[0] for name, value in observed.items()}
    parameters = list(dict.fromkeys((*model.parameters(), *guide.parameters())))
    svi = SVI(model, guide, torch.optim.Adam(parameters or [torch.zeros((), requires_grad=True)]), ELBO())
    if any(p.requires_grad for p in parameters):
        assert math.isfinite(svi.step(x, {**data, **given}))
        assert any(p.grad is not None for p in guide.parameters()) or not list(guide.parameters())
    bound = IWAEBound(num_particles=3)(model, guide, x, {**data, **given})
    assert math.isfinite(bound.item())
    assert "guide" not in program.programs
    assert program.guide.name in program.guides


def _given(data: dict[str, Tensor]) -> Any:
    from qvr_core.runtime.programs.handlers import condition

    return condition(data)


DISCRETE = """
object Row : FinSet 2
program p : Row -> Row
    sample k <- Categorical([0.2, 0.3, 0.5])
    let centre = 1.0 * k
    observe y[i : Row] <- Normal(centre, 1.0)
    return centre
program q : Row -> Row [guide=p]
    param l : Real 3
    sample k <- Categorical(logits=l)
"""


def test_gradient_of_a_discrete_guide_is_that_of_the_exact_bound() -> None:
    model, guide, program = loaded(DISCRETE)
    y = torch.tensor([0.3, 1.2])
    exact = torch.zeros(3, requires_grad=True)
    q = torch.softmax(exact, 0)
    joint = torch.tensor([0.2, 0.3, 0.5]).log() + Normal(torch.arange(3.0)[:, None], 1.0).log_prob(y).sum(-1)
    (q * (torch.log_softmax(exact, 0) - joint)).sum().backward()
    torch.manual_seed(0)
    loss = ELBO(num_particles=40_000)(model, guide, None, {"y": y})
    loss.backward()
    raw = program.guide.leaves["q.l"].raw
    assert raw.grad is not None and exact.grad is not None
    assert torch.allclose(raw.grad, exact.grad, atol=0.02)
    assert Categorical(logits=raw).probs.sum().item() == pytest.approx(1.0)


def test_sticking_the_landing_has_no_noise_where_the_guide_is_the_posterior() -> None:
    # y = 1, z ~ N(0, 1), y ~ N(z, 1): the posterior is N(0.5, 1/2)
    text = """
object Row : FinSet 1
program p : Row -> Row
    sample z <- Normal(0.0, 1.0)
    observe y : Row <- Normal(z, 1.0)
    return z
program q : Row -> Row [guide=p]
    param m : Real 1 [init=0.5]
    param s : Real 1 [low=0.0] [init=0.70710678]
    sample z <- Normal(m, s)
"""
    model, guide, _ = loaded(text)
    y = torch.ones(1)
    for stl, silent in ((True, True), (False, False)):
        guide.zero_grad()
        torch.manual_seed(1)
        loss = ELBO(stl=stl)(model, guide, None, {"y": y})
        loss.backward()
        assert loss.item() == pytest.approx(-Normal(0.0, math.sqrt(2.0)).log_prob(y).item(), abs=1e-5)
        gradients = [p.grad.abs().max().item() for p in guide.parameters() if p.grad is not None]
        assert (max(gradients) < 1e-5) is silent


def test_auxiliary_draws_cancel_so_that_the_bound_holds() -> None:
    text = """
object Row : FinSet 1
program p : Row -> Row
    sample z <- Normal(0.0, 1.0)
    observe y : Row <- Normal(z, 1.0)
    return z
program q : Row -> Row [guide=p]
    sample e <- Normal(0.0, 3.0) [auxiliary]
    sample z <- Normal(0.1 * e, 0.6)
"""
    model, guide, _ = loaded(text)
    y = torch.ones(1)
    torch.manual_seed(1)
    bound = -ELBO(num_particles=50_000)(model, guide, None, {"y": y}).item()
    evidence = Normal(0.0, math.sqrt(2.0)).log_prob(y).item()
    assert bound < evidence
    # many draws of the bound close the gap: importance weights that are right average to the evidence
    torch.manual_seed(1)
    tight = -IWAEBound(num_particles=50_000)(model, guide, None, {"y": y}).item()
    assert tight == pytest.approx(evidence, abs=0.02)


def test_the_rest_is_the_automatic_guides() -> None:
    text = (
        EIGHT.replace("[guide=eight]", "[guide=eight, rest=mean_field]")
        .replace("    sample tau <- LogNormal(0.2, 0.3)\n", "")
        .replace("a[i] * tau", "a[i]")
    )
    model, guide, _ = loaded(text)
    assert guide.rest is not None
    assert [block.site for block in guide.rest.blocks] == ["tau"]
    assert math.isfinite(ELBO(num_particles=2)(model, guide, None, {"y": torch.zeros(3)}).item())


def test_a_guide_is_copied_and_pickled_with_its_parameters() -> None:
    model, guide, _ = loaded(VAE)
    with torch.no_grad():
        next(guide.parameters()).add_(1.0)
    x = torch.randn(3, 4)
    torch.manual_seed(0)
    loss = ELBO()(model, guide, x, {"picture": x})
    for again in (copy.deepcopy(guide), pickle.loads(pickle.dumps(guide))):
        torch.manual_seed(0)
        assert ELBO()(model, again, x, {"picture": x}).item() == loss.item()


def test_predictions_read_what_the_guide_reads_and_draw_it_anew() -> None:
    model, guide, _ = loaded(VAE)
    x = torch.randn(3, 4)
    drawn = Predictive(model, guide, num_samples=5)(x, guide_observations={"picture": x})
    assert drawn["picture"].shape == (5, 3, 4)
    assert not torch.equal(drawn["picture"][0], x)
    with pytest.raises(InputProblem, match="draws the latents of `vae` by its observed `picture`"):
        Predictive(model, guide, num_samples=5)(x)


def test_what_is_no_guide_of_the_model_is_refused_in_words() -> None:
    model, _, program = loaded(VAE)
    with pytest.raises(InputProblem, match="`vae` is no guide"):
        ProgramGuide(model, model)
    other = loads(EIGHT)
    with pytest.raises(InputProblem, match="a guide of `eight`"):
        ProgramGuide(model, other.guide)
    without = loads(VAE.partition("program encoder")[0])
    with pytest.raises(RuntimeProblem, match="has no guide of `vae`"):
        _ = without.guide
    assert program.encoder is program.guide
    assert trace(model, torch.zeros(2, 4), {"picture": torch.zeros(2, 4)}).log_joint.shape == (2,)


WEIGHTS = """
object Row : FinSet 5
object Hidden : Real 2
morphism first : Real 1 -> Hidden [role=linear] ~ Normal(0.0, 1.0)
morphism second : Hidden -> Real 1 [role=linear] ~ Normal(0.0, 0.5)
program network : Row -> Real 1
    data x : Row -> Real 1
    let f = second(tanh(first(x)))
    observe y : Row <- Normal(f, 0.3)
    return f
object Out : FinSet 2
object In : FinSet 2
object Only : FinSet 1
object Back : FinSet 3
program around : Row -> Real 1 [guide=network]
    param m : Out * In
    sample first[o : Out, i : In] <- Normal(m[o, i], 0.7)
    sample second[o : Only, b : Back] <- Normal(0.1, 0.4)
"""


def test_draws_of_weights_by_a_guide_are_told_and_weighed_one_by_one() -> None:
    loaded = loads(WEIGHTS)
    model = loaded.programs["network"]
    data = {"x": torch.linspace(-1.0, 1.0, 5), "y": torch.tensor([0.1, -0.4, 0.2, 0.5, 1.0])}
    guide = ProgramGuide(model, loaded.guides["around"], {"x", "y"})
    with torch.no_grad():
        run, weights = weigh(model, guide, None, data, 6, handlers=[])
    first, second = (run.sites[name].reported for name in ("first", "second"))
    assert isinstance(first, Tensor) and isinstance(second, Tensor)
    assert first.shape == (6, 2, 2) and second.shape == (6, 1, 3) and len(first.unique()) == 24
    for row in range(6):
        hidden = torch.tanh(torch.outer(data["x"], first[row, :, 0]) + first[row, :, 1])
        f = hidden @ second[row, 0, :2] + second[row, 0, 2]
        log_p = Normal(f, 0.3).log_prob(data["y"]).sum() + Normal(0.0, 1.0).log_prob(first[row]).sum()
        log_p = log_p + Normal(0.0, 0.5).log_prob(second[row]).sum()
        log_q = Normal(0.0, 0.7).log_prob(first[row]).sum() + Normal(0.1, 0.4).log_prob(second[row]).sum()
        assert torch.allclose(weights[row], log_p - log_q, atol=1e-4)
