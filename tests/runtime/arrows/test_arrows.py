"""The arrows of the language models: shapes, names, exact densities, reproducibility."""

from __future__ import annotations

import math

import pytest
import torch
from torch.distributions import Categorical, Normal

from qvr_core.runtime.values.errors import MissingInnovations, NoDensity
from qvr_core.semantics.types.model.arrows import Norm, Sort
from tests.runtime import nodes as n

TOKEN = n.finite(256, "Token")
EMBEDDED, FWD, BWD, COMBINED = n.real(64), n.real(64), n.real(64), n.real(128)


def bidirectional():
    tok = n.embed("tok_embed", TOKEN, EMBEDDED)
    fwd = n.kernel("fwd_cell", n.product(EMBEDDED, FWD), FWD, scale=0.1)
    bwd = n.kernel("bwd_cell", n.product(EMBEDDED, BWD), BWD, scale=0.1)
    combine = n.kernel("combine", COMBINED, COMBINED, scale=0.1)
    forward = n.compose(n.lift(n.ref(tok)), n.scan(n.ref(fwd), EMBEDDED, FWD))
    backward = n.compose(n.lift(n.ref(tok)), n.scan(n.ref(bwd), EMBEDDED, BWD, backward=True))
    lets = {"forward_path": forward, "backward_path": backward}
    backbone = n.compose(n.fan(n.ref(forward, "forward_path"), n.ref(backward, "backward_path")), n.ref(combine))
    return n.build(backbone, tok, fwd, bwd, combine, lets=lets)


def seq2seq_block():
    latent, head_out = n.real(16), n.real(4)
    src = n.embed("src_embed", n.finite(32, "Source"), latent)
    tgt = n.embed("tgt_embed", n.finite(32, "Target"), latent)
    heads = [n.kernel(f"enc_head_{i}", latent, head_out, scale=0.1) for i in range(4)]
    project = n.kernel("enc_attn_proj", latent, latent, scale=0.1)
    cross = n.kernel("cross", n.real(32), n.real(32), scale=0.1)
    block = n.compose(n.fan(*map(n.ref, heads)), n.ref(project))
    encoder = n.compose(n.ref(src), n.stack(n.ref(block, "enc_block"), 2))
    backbone = n.compose(n.tensor(encoder, n.ref(tgt)), n.ref(cross))
    return n.build(backbone, src, tgt, *heads, project, cross, lets={"enc_block": block})


def test_parameters_carry_declared_names_once():
    names = [name for name, _ in bidirectional().named_parameters()]
    assert names[0] == "tok_embed.weight"
    assert "fwd_cell.hidden.weight" in names and "combine.output.bias" in names
    assert len(names) == 1 + 3 * 6
    assert sorted(bidirectional().state_dict()) == sorted(names)


def test_stack_makes_fresh_copies_with_readable_names():
    module = seq2seq_block()
    names = {name for name, _ in module.named_parameters()}
    assert "enc_block.0.enc_head_2.output.weight" in names and "enc_block.1.enc_attn_proj.input.bias" in names
    weights = dict(module.named_parameters())
    first, second = (weights[f"enc_block.{i}.enc_head_0.input.weight"] for i in range(2))
    assert not torch.equal(first, second)


def test_a_name_used_twice_is_the_same_parameters():
    cell = n.kernel("f", n.real(3), n.real(3))
    twice = n.build(n.compose(n.ref(cell), n.ref(cell)), cell)
    assert len(list(twice.parameters())) == 6
    assert twice.paths == ("f", "f#2")


def test_two_columns_reach_encoder_and_decoder():
    module = seq2seq_block()
    x = torch.randint(0, 32, (5, 2))
    from qvr_core.runtime.values.layout import Where, prepare

    value = prepare(module.domain.space, x, Where("seq2seq", "input x"))
    noise = module.draw(value).noise
    before = module.draw(value, noise).value
    changed = x.clone()
    changed[:, 0] = (changed[:, 0] + 1) % 32
    after = module.draw(prepare(module.domain.space, changed, Where()), noise).value
    assert before.shape == (5, 32) and not torch.allclose(before, after)


def test_kernel_initialisation():
    weights = dict(bidirectional().named_parameters())
    assert weights["tok_embed.weight"].std().item() == pytest.approx(0.5, rel=0.05)
    tanh_bound = (5 / 3) * math.sqrt(6 / (128 + 64))
    assert weights["fwd_cell.input.weight"].abs().max().item() == pytest.approx(tanh_bound, rel=0.01)
    last = weights["fwd_cell.output.weight"]
    assert last[64:].abs().max() == 0 and last[:64].abs().max() > 0
    assert weights["fwd_cell.output.bias"].abs().max() == 0


def test_scale_is_the_standard_deviation_at_the_start():
    cell = n.kernel("f", n.real(3), n.real(2), scale=0.1)
    module = n.build(n.ref(cell), cell)
    _, scale = module.params(torch.randn(7, 3))
    assert torch.allclose(scale, torch.full_like(scale, 0.1), rtol=2e-3)


def test_density_is_exact_given_the_innovations():
    module = bidirectional()
    x = torch.randint(0, 256, (3, 5))
    drawn = module.draw(x)
    shapes = {spec.path: (spec.shape, spec.final) for spec in module.noise_specs(x)}
    assert shapes == {
        "fwd_cell": ((3, 4, 64), False),
        "fwd_cell@last": ((3, 64), False),
        "bwd_cell": ((3, 4, 64), False),
        "bwd_cell@last": ((3, 64), False),
        "combine": ((3, 128), True),
    }
    assert {p: tuple(u.shape) for p, u in drawn.noise.items()} == {p: s for p, (s, _) in shapes.items()}
    innovations = {path: u for path, u in drawn.noise.items() if not shapes[path][1]}
    again, log_u = module.densities(x, drawn.value, innovations)
    assert torch.allclose(again, drawn.log_prob, rtol=1e-5)
    standard = sum(Normal(0.0, 1.0).log_prob(u).flatten(1).sum(1) for u in innovations.values())
    assert torch.allclose(log_u, standard, rtol=1e-5)
    assert torch.equal(module.log_prob(x, drawn.value, innovations), module.log_prob(x, drawn.value, innovations))


def test_density_by_hand():
    module = bidirectional()
    x = torch.randint(0, 256, (2, 4))
    drawn = module.draw(x)
    p = dict(module.named_parameters())

    def cell(name, value):
        h = torch.tanh(value @ p[f"{name}.input.weight"].T + p[f"{name}.input.bias"])
        h = torch.tanh(h @ p[f"{name}.hidden.weight"].T + p[f"{name}.hidden.bias"])
        loc, raw = (h @ p[f"{name}.output.weight"].T + p[f"{name}.output.bias"]).chunk(2, -1)
        return loc, 0.1 * (torch.nn.functional.softplus(raw + 0.541325) + 0.001)

    def path(name, order):
        state = torch.zeros(2, 64)
        noise = torch.cat([drawn.noise[name], drawn.noise[f"{name}@last"][:, None]], 1)
        for step, position in enumerate(order):
            loc, scale = cell(name, torch.cat([p["tok_embed.weight"][x[:, position]], state], -1))
            state = loc + scale * noise[:, step]
        return state

    states = torch.cat([path("fwd_cell", range(4)), path("bwd_cell", reversed(range(4)))], -1)
    loc, scale = cell("combine", states)
    expected = Normal(loc, scale).log_prob(drawn.value).sum(-1)
    assert torch.allclose(module.log_prob(x, drawn.value, drawn.noise), expected, rtol=1e-5)


def test_same_noise_same_value():
    module = bidirectional()
    x = torch.randint(0, 256, (3, 5))
    drawn = module.draw(x)
    assert torch.equal(module.draw(x, drawn.noise).value, drawn.value)
    one, two = (module.draw(x, generator=torch.Generator().manual_seed(7)).value for _ in range(2))
    assert torch.equal(one, two)


def test_missing_innovations_are_named_with_their_shapes():
    module = bidirectional()
    x = torch.randint(0, 256, (3, 5))
    with pytest.raises(MissingInnovations, match=r"`fwd_cell` \(3, 4, 64\).*model\.innovations\(x\)"):
        module.log_prob(x, torch.zeros(3, 128))


def test_a_sequence_of_one_has_no_innovations():
    cell = n.kernel("cell", n.product(n.real(2), n.real(3)), n.real(3))
    module = n.build(n.scan(n.ref(cell), n.real(2), n.real(3)), cell)
    x = torch.randn(4, 1, 2)
    assert [spec.path for spec in module.noise_specs(x)] == ["cell@last"]
    drawn = module.draw(x)
    assert torch.allclose(module.log_prob(x, drawn.value), drawn.log_prob, rtol=1e-5)


@pytest.mark.parametrize("backward", [False, True])
def test_emit_all_has_no_innovations(backward):
    cell = n.kernel("cell", n.product(n.real(2), n.real(3)), n.real(3), scale=0.3)
    module = n.build(n.scan(n.ref(cell), n.real(2), n.real(3), emit_all=True, backward=backward), cell)
    x = torch.randn(4, 6, 2)
    drawn = module.draw(x)
    assert drawn.value.shape == (4, 6, 3) and drawn.log_innovations is None
    assert torch.allclose(module.log_prob(x, drawn.value), drawn.log_prob, rtol=1e-5)


def test_backward_reads_from_the_end():
    cell = n.kernel("cell", n.product(n.real(2), n.real(3)), n.real(3))
    lets = {}
    forward = n.build(n.scan(n.ref(cell), n.real(2), n.real(3)), cell, lets=lets)
    backward = n.build(n.scan(n.ref(cell), n.real(2), n.real(3), backward=True), cell)
    backward.load_state_dict(forward.state_dict())
    x = torch.randn(4, 6, 2)
    drawn = forward.draw(x)
    assert torch.allclose(backward.draw(x.flip(1), drawn.noise).value, drawn.value)


def test_learned_start_has_a_parameter_with_a_gradient():
    cell = n.kernel("cell", n.product(n.real(2), n.real(3)), n.real(3))
    module = n.build(n.scan(n.ref(cell), n.real(2), n.real(3), learned_init=True), cell)
    module.draw(torch.randn(4, 6, 2)).value.sum().backward()
    start = dict(module.named_parameters())["cell_start.weight"]
    assert start.grad is not None and start.grad.abs().sum() > 0


def test_categorical_kernel_density():
    head = n.kernel("lm_head", n.real(4), n.finite(7), "Categorical")
    module = n.build(n.ref(head), head)
    x, y = torch.randn(5, 4), torch.randint(0, 7, (5,))
    expected = Categorical(logits=module.net(x)).log_prob(y)
    assert torch.allclose(module.log_prob(x, y), expected, rtol=1e-5)
    assert module.draw(x).value.shape == (5,)


def test_a_kernel_before_a_deterministic_arrow_has_no_density():
    cell = n.kernel("f", n.real(3), n.real(3))
    norm = Norm(name="g", **n.base(n.real(3), n.real(3), Sort.DETERMINISTIC))
    module = n.build(n.compose(n.ref(cell), n.ref(norm)), cell, norm)
    x = torch.randn(2, 3)
    assert [spec.final for spec in module.noise_specs(x)] == [False]
    with pytest.raises(NoDensity, match="deterministic"):
        module.log_prob(x, x)
