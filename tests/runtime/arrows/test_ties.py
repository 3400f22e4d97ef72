"""`[tie=f]`: heads with the matrix of a table or of a linear map, against torch's own operations."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from torch.nn import functional as F

from qvr_core import dsl
from qvr_core.inference import ELBO, SVI, AutoDeltaGuide
from qvr_core.runtime.programs.handlers import condition

DECLARED = """
object Token : FinSet 30
object Hidden : Real 8
object Wide : Real 16
morphism tok_embed : Token -> Hidden [role=embed]
morphism up : Hidden -> Wide [role=linear]
morphism low : Hidden -> Wide [role=linear, rank=2, bias=false]
morphism square : Hidden -> Hidden [role=linear]
"""
PROGRAM = """
program p(x) : DOMAIN -> CODOMAIN
    observe y : CODOMAIN <- head(x)
    return y
"""

LANGUAGE_MODEL = """
morphism mix : Hidden * Hidden -> Hidden [role=linear]
morphism lm_head : Hidden -> Token [role=kernel, tie=tok_embed] ~ Categorical

program cell(x, h) : Hidden * Hidden -> Hidden
    let s = tanh(mix(x, h))
    return s

let states = tok_embed >> scan(cell, emit=all)

program lm(tokens) : Token -> Token
    let h = states(tokens)
    observe next_token : Token <- lm_head(h)
    return next_token
"""


@pytest.mark.parametrize(
    "sides, tie, family",
    [
        ("Hidden -> Token", "tok_embed", "Categorical"),
        ("Hidden -> Wide", "up", "Poisson"),
        ("Wide -> Hidden", "transpose(up)", "Poisson"),
        ("Hidden -> Wide", "low", "Poisson"),
        ("Hidden -> Hidden", "square", "Poisson"),
        ("Hidden -> Hidden", "transpose(square)", "Poisson"),
    ],
)
@pytest.mark.parametrize("bias", [True, False])
def test_the_head_is_one_linear_map_with_that_matrix(sides: str, tie: str, family: str, bias: bool) -> None:
    torch.manual_seed(0)
    domain, codomain = sides.split(" -> ")
    options = f"role=kernel, tie={tie}" + ("" if bias else ", bias=false")
    head = f"morphism head : {sides} [{options}] ~ {family}\n"
    program = PROGRAM.replace("DOMAIN", domain, 1).replace("CODOMAIN", codomain)
    model = dsl.loads(DECLARED + head + program).programs["p"]
    weights = dict(model.named_parameters())
    if bias:
        with torch.no_grad():
            weights["head.output.bias"].normal_()
    name = tie.removeprefix("transpose(").removesuffix(")")
    matrix = weights["low.out_factor"] @ weights["low.in_factor"] if name == "low" else weights[f"{name}.weight"]
    matrix = matrix.T if tie.startswith("transpose") else matrix
    x = torch.randn(6, matrix.shape[1])
    raw = F.linear(x, matrix, weights.get("head.output.bias"))
    if family == "Categorical":
        y = torch.randint(matrix.shape[0], (6,))
        wanted = torch.log_softmax(raw, -1)[torch.arange(6), y]
    else:
        y = torch.randint(4, raw.shape)
        # docs/reference.md: a raw output of zero gives rate one, and no rate is below 1/1000
        rate = F.softplus(raw + math.log(math.e - 1.0)) + 1e-3
        wanted = torch.distributions.Poisson(rate).log_prob(y).sum(-1)
    got = model.run(x, condition({"y": y})).log_joint()
    torch.testing.assert_close(got, wanted, rtol=1e-5, atol=1e-5)
    assert ("head.output.bias" in weights) == bias


def test_a_tied_language_model_learns_one_matrix_by_both_of_its_uses() -> None:
    torch.manual_seed(1)
    model = dsl.loads(DECLARED + LANGUAGE_MODEL).programs["lm"]
    weights = dict(model.named_parameters())
    assert {name: tuple(one.shape) for name, one in weights.items()} == {
        "tok_embed.weight": (30, 8),
        "mix.weight": (8, 16),
        "mix.bias": (8,),
        "lm_head.output.bias": (30,),
    }
    tokens, targets = torch.randint(30, (4, 7)), torch.randint(30, (4, 7))
    hidden, loss = torch.zeros(4, 8), torch.zeros(())
    for t in range(7):
        item = F.embedding(tokens[:, t], weights["tok_embed.weight"])
        hidden = torch.tanh(F.linear(torch.cat([item, hidden], 1), weights["mix.weight"], weights["mix.bias"]))
        logits = F.linear(hidden, weights["tok_embed.weight"], weights["lm_head.output.bias"])
        loss = loss + F.cross_entropy(logits, targets[:, t], reduction="sum") / 4
    wanted = torch.autograd.grad(loss, list(weights.values()))
    svi = SVI(model, AutoDeltaGuide(model), torch.optim.SGD(model.parameters(), lr=0.0), ELBO())
    assert svi.step(tokens, {"next_token": targets}) == pytest.approx(loss.item(), rel=1e-5)
    for one, gradient in zip(weights.values(), wanted, strict=True):
        assert one.grad is not None
        torch.testing.assert_close(one.grad, gradient, rtol=1e-4, atol=1e-5)


def test_an_imported_head_is_tied_within_its_file(tmp_path: Path) -> None:
    (tmp_path / "parts.qvr").write_text(DECLARED + LANGUAGE_MODEL)
    main = tmp_path / "main.qvr"
    main.write_text('import "parts.qvr" as parts\nobject tok_embed : Real 3\nlet model = parts.lm\nexport model\n')
    names = {name.split(".", 1)[-1] for name, _ in dsl.load(main).morphism.named_parameters()}
    assert "output.bias" in " ".join(names) and "output.weight" not in " ".join(names)
