"""The BERT example: torch's post-norm encoder with the same weights, padded rows, selected positions."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from qvr_core import dsl
from qvr_core.runtime.programs.handlers import condition, tables
from qvr_core.runtime.values.errors import InputProblem

SOURCE = (Path(__file__).parents[3] / "examples" / "bert_pretraining.qvr").read_text(encoding="utf-8")
NAMES = {
    "self_attn.in_proj_weight": "transformer.post_norm.attend.in_proj.weight",
    "self_attn.in_proj_bias": "transformer.post_norm.attend.in_proj.bias",
    "self_attn.out_proj.weight": "transformer.post_norm.attend.out_proj.weight",
    "self_attn.out_proj.bias": "transformer.post_norm.attend.out_proj.bias",
    "linear1.weight": "transformer.post_norm.widen.weight",
    "linear1.bias": "transformer.post_norm.widen.bias",
    "linear2.weight": "transformer.post_norm.narrow.weight",
    "linear2.bias": "transformer.post_norm.narrow.bias",
    "norm1.weight": "transformer.post_norm.attend_norm.weight",
    "norm1.bias": "transformer.post_norm.attend_norm.bias",
    "norm2.weight": "transformer.post_norm.feed_norm.weight",
    "norm2.bias": "transformer.post_norm.feed_norm.bias",
}


def sized(vocabulary: int, width: int, wide: int, heads: int) -> str:
    text = SOURCE
    for old, new in (
        ("FinSet 3000", f"FinSet {vocabulary}"),
        ("Real 64", f"Real {width}"),
        ("Real 128", f"Real {wide}"),
    ):
        assert text.count(old) == 1
        text = text.replace(old, new)
    return text.replace("heads=4", f"heads={heads}")


class Reference(torch.nn.Module):
    """BERT for pretraining of torch's own layers, as the seed writes it, with the weights of a loaded program."""

    def __init__(self, weights: dict[str, torch.Tensor], heads: int) -> None:
        super().__init__()
        wide, width = weights["block.0.transformer.post_norm.widen.weight"].shape
        layer = torch.nn.TransformerEncoderLayer(width, heads, wide, dropout=0.0, batch_first=True)
        self.encoder = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.encoder.load_state_dict(
            {
                f"layers.{copy}.{theirs}": weights[f"block.{copy}.{ours}"]
                for copy in (0, 1)
                for theirs, ours in NAMES.items()
            }
        )
        self.weights = weights

    def linear(self, name: str, x: torch.Tensor) -> torch.Tensor:
        found = [key for key in self.weights if key.startswith(f"{name}.")]
        weight = next(self.weights[key] for key in found if key.endswith("weight"))
        return torch.nn.functional.linear(x, weight, next(self.weights[key] for key in found if key.endswith("bias")))

    def states(self, tokens: torch.Tensor, segments: torch.Tensor, valid: torch.Tensor) -> torch.Tensor:
        length = tokens.shape[1]
        x = self.weights["token_embed.weight"][tokens] + self.weights["segment_embed.weight"][segments]
        x = x + self.weights["place.weight"][:length]
        return self.encoder(x, src_key_padding_mask=torch.arange(length) >= valid[:, None])

    def masked(self, states: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        x = states[torch.arange(len(states))[:, None], positions]
        norm = self.weights["masked_norm.weight"], self.weights["masked_norm.bias"]
        x = torch.nn.functional.layer_norm(self.linear("masked_hidden", x).relu(), x.shape[-1:], *norm)
        return self.linear("masked_out", x)

    def follows(self, states: torch.Tensor) -> torch.Tensor:
        return self.linear("next_out", self.linear("pool", states[:, 0]).tanh())


@pytest.fixture(scope="module")
def batch() -> tuple[tuple[torch.Tensor, torch.Tensor], dict[str, torch.Tensor]]:
    torch.manual_seed(1)
    valid = torch.tensor([9, 5, 7])
    observed = {
        "valid": valid,
        "selected": (torch.rand(3, 4) * valid[:, None]).long(),
        "counted": torch.tensor([[1, 1, 1, 1], [1, 0, 0, 0], [1, 1, 0, 0]]).bool(),
        "masked_token": torch.randint(40, (3, 4)),
        "follows": torch.tensor([1, 0, 1]),
    }
    return (torch.randint(40, (3, 9)), torch.randint(2, (3, 9))), observed


def test_loss_and_gradients_equal_torch(batch) -> None:
    torch.manual_seed(0)
    model = dsl.loads(sized(40, 12, 20, 3)).morphism
    weights = dict(model.named_parameters())
    (tokens, segments), observed = batch
    run = model.execute((tokens, segments), condition(observed))
    reference = Reference(weights, 3)
    states = reference.states(tokens, segments, observed["valid"])
    entropy = torch.nn.functional.cross_entropy
    logits = reference.masked(states, observed["selected"])
    masked = entropy(logits.transpose(1, 2), observed["masked_token"], reduction="none") * observed["counted"]
    follows = entropy(reference.follows(states), observed["follows"], reduction="none")
    assert torch.allclose(run.sites["masked_token"].log_prob, -masked.sum(1), atol=1e-5)
    assert torch.allclose(run.sites["follows"].log_prob, -follows, atol=1e-5)
    (-run.log_joint().sum()).backward()
    ours = {name: weight.grad.clone() for name, weight in weights.items()}
    for weight in weights.values():
        weight.grad = None
    (masked.sum() + follows.sum()).backward()
    theirs = {
        f"block.{c}.{o}": reference.encoder.get_parameter(f"layers.{c}.{t}").grad
        for c in (0, 1)
        for t, o in NAMES.items()
    }
    for name, gradient in ours.items():
        expected = theirs.get(name, weights[name].grad)
        assert torch.allclose(gradient, expected, atol=1e-5), name


ENCODED = """
program encoded(tokens, segments) : Token * Segment -> Hidden [lengths=valid]
    let h = encoder(tokens, segments)
    return h
"""


def test_encoder_equals_torch_where_positions_are_valid(batch) -> None:
    loaded = dsl.loads(sized(40, 12, 20, 4) + ENCODED)
    (tokens, segments), observed = batch
    valid = observed["valid"]
    ours = loaded.programs["encoded"].rsample((tokens, segments), observations={"valid": valid})
    expected = Reference(dict(loaded.morphism.named_parameters()), 4).states(tokens, segments, valid)
    mask = torch.arange(9) < valid[:, None]
    assert torch.allclose(ours[mask], expected[mask], atol=1e-5)
    # what stands behind a row's end changes nothing before it
    tokens = torch.where(mask, tokens, 39 - tokens)
    again = loaded.programs["encoded"].rsample((tokens, segments), observations={"valid": valid})
    assert torch.equal(again[mask], ours[mask])


def test_sizes_of_the_fifth_seed() -> None:
    """Vocabulary 10,000, width 768, feed-forward 1,024, 4 heads, 2 blocks; batch 2, length 8, 3 predictions a row."""
    loaded = dsl.loads(sized(10_000, 768, 1024, 4) + ENCODED)
    x = (torch.randint(10_000, (2, 8)), torch.tensor([[0, 0, 0, 0, 1, 1, 1, 1], [0, 0, 0, 1, 1, 1, 1, 1]]))
    whole = {"valid": torch.tensor([8, 8])}
    assert loaded.programs["encoded"].rsample(x, observations=whole).shape == (2, 8, 768)
    observed = {
        **whole,
        "selected": torch.tensor([[1, 5, 2], [6, 1, 5]]),
        "counted": torch.ones(2, 3, dtype=torch.bool),
        "masked_token": torch.tensor([[7, 8, 9], [10, 20, 30]]),
        "follows": torch.tensor([0, 1]),
    }
    sites = loaded.morphism.execute(x, condition(observed), tables).sites
    assert sites["masked_token"].log_table.shape == (2, 3, 10_000)
    assert sites["follows"].log_table.shape == (2, 2)
    picked = sites["masked_token"].log_table.gather(2, observed["masked_token"].unsqueeze(2)).sum((1, 2))
    assert torch.allclose(picked, sites["masked_token"].log_prob, atol=1e-4)


def test_a_sequence_that_is_not_selected_from_is_scored_where_it_is_valid(batch) -> None:
    text = sized(40, 12, 20, 4).replace(" [at=selected, mask=counted]", "")
    model = dsl.loads(text).morphism
    x, observed = batch
    whole = torch.randint(40, (3, 9))
    given = {"valid": observed["valid"], "follows": observed["follows"], "masked_token": whole}
    scored = model.execute(x, condition(given), tables).sites["masked_token"]
    each = scored.log_table.gather(2, whole.unsqueeze(2))[..., 0]
    mask = torch.arange(9) < observed["valid"][:, None]
    assert torch.allclose(scored.log_prob, (each * mask).sum(1), atol=1e-5)
    assert torch.equal(scored.counted, mask)


def test_particles_and_draws_keep_their_rows_lengths(batch) -> None:
    loaded = dsl.loads(sized(40, 12, 20, 4) + ENCODED)
    x, observed = batch
    once = loaded.programs["encoded"].rsample(x, observations={"valid": observed["valid"]})
    twice = loaded.programs["encoded"].rsample(x, (2,), observations={"valid": observed["valid"]})
    assert torch.allclose(twice, once.expand(2, *once.shape), atol=1e-6)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("valid", torch.tensor([9, 0, 7]), "between 1 and 9"),
        ("valid", torch.tensor([9.0, 5.0, 7.0]), r"the lengths `valid`: expected whole numbers \(3,\)"),
        ("selected", torch.full((3, 4), 9), r"site `masked_token`: expected positions 0 … 8 in `at`, found 9"),
        ("selected", torch.zeros(3, 4), r"site `masked_token`: expected positions \(3, P\)"),
        ("counted", torch.ones(3, 5), "site `masked_token`: expected a mask or weight for 3 rows"),
    ],
)
def test_data_that_does_not_fit_is_reported_with_its_place(batch, name: str, value: torch.Tensor, words: str) -> None:
    model = dsl.loads(sized(40, 12, 20, 4)).morphism
    x, observed = batch
    with pytest.raises(InputProblem, match=words):
        model.execute(x, condition({**observed, name: value}))


def test_a_sequence_that_is_too_long_names_program_and_positions(batch) -> None:
    model = dsl.loads(sized(40, 12, 20, 4).replace("max_length=64", "max_length=8")).morphism
    x, observed = batch
    words = "program `bert_pretraining`: `place` has learned positions for 8 elements .*, the sequence has 9"
    with pytest.raises(InputProblem, match=words) as caught:
        model.execute(x, condition(observed))
    assert caught.value.site == "place"


def test_last_and_mean_see_the_valid_positions_only() -> None:
    text = """
object D : Real 3
program p(x) : D -> D * D [lengths=valid]
    let end = last_of(x)
    let middle = mean_of(x)
    return (end, middle)
let last_of = look >> last
let mean_of = look >> mean_over_time
morphism look : D -> D [role=position, max_length=6]
"""
    model = dsl.loads(text).programs["p"]
    x, valid = torch.randn(3, 5, 3), torch.tensor([5, 2, 1])
    end, middle = model.rsample(x, observations={"valid": valid})
    placed = x + dict(model.named_parameters())["look.weight"][:5]
    assert torch.allclose(end, torch.stack([placed[b, n - 1] for b, n in enumerate(valid.tolist())]))
    assert torch.allclose(middle, torch.stack([placed[b, :n].mean(0) for b, n in enumerate(valid.tolist())]), atol=1e-6)
