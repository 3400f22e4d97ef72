"""The order of the input matters, and the two paths of the bidirectional program read it from opposite ends."""

from __future__ import annotations

from pathlib import Path

import torch

from qvr_core.dsl import loads
from qvr_core.inference import trace

EXAMPLES = Path(__file__).parents[2] / "examples"
SOURCE = (EXAMPLES / "bidirectional_rnn_lm.qvr").read_text()


def tie(module: torch.nn.Module) -> None:
    """Give the backward cell the forward cell's weights."""
    parameters = dict(module.named_parameters())
    tied = [name for name in parameters if "bwd_cell" in name]
    assert tied
    for name in tied:
        parameters[name].data.copy_(parameters[name.replace("bwd_cell", "fwd_cell")].data)


def test_reversing_the_input_exchanges_what_the_paths_see() -> None:
    torch.manual_seed(0)
    paths = loads(SOURCE.replace("export bidirectional_rnn_lm", "export fan(forward_path, backward_path)")).morphism
    tie(paths)
    x = torch.randint(0, 256, (3, 8))
    with torch.no_grad():
        there = paths.draw(x)
        exchanged = {
            name.replace("fwd", "?").replace("bwd", "fwd").replace("?", "bwd"): noise
            for name, noise in there.noise.items()
        }
        back = paths.draw(x.flip(1), exchanged)
    flat = [value if isinstance(value, torch.Tensor) else torch.cat(value, -1) for value in (there.value, back.value)]
    forward, backward = flat[0].split(64, -1)
    assert not torch.allclose(forward, backward)
    assert torch.allclose(flat[1], torch.cat([backward, forward], -1), atol=1e-6)


def test_permuting_the_input_changes_the_loss() -> None:
    torch.manual_seed(0)
    for name, site in (("bidirectional_rnn_lm", "masked_token"), ("vanilla_rnn_lm", "next_token")):
        model = loads((EXAMPLES / f"{name}.qvr").read_text()).morphism
        x = torch.arange(8).repeat(3, 1) + torch.arange(3)[:, None]
        observations = {site: torch.randint(0, 256, (3,))}
        values = {**observations, "h": trace(model, x, observations).sites["h"].value}
        innovations = model.innovations(x)
        straight = model.log_joint(x, values, innovations)
        assert not torch.isclose(straight, model.log_joint(x[:, [2, 0, 1, 3, 4, 6, 5, 7]], values, innovations)).any()
