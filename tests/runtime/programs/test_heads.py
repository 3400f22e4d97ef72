"""`model.logits` and `model.mean`: what a head says of an input, and the head as a module that torch can export."""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import Any

import pytest
import torch

from qvr_core.dsl import load, loads
from qvr_core.runtime.values.errors import RuntimeProblem

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
HEAD = """\
object Point : Real 3
object Value : Real 2
morphism head : Point -> Value [role=kernel, hidden_dim=8] ~ FAMILY
program p : Point -> Value
    observe y : Value <- head
    return y
"""


def made(text: str) -> Any:
    torch.manual_seed(0)
    model = loads(text).morphism
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape))
    return model


@pytest.mark.parametrize("name", ["flower_classifier", "lstm_lm", "transformer_lm", "bidirectional_rnn_lm"])
def test_logits_are_the_density_of_each_value(name: str) -> None:
    model = load(EXAMPLES / f"{name}.qvr").morphism
    if name == "flower_classifier":
        x, sizes = torch.randn(5, 4), (5,)
    else:
        x, sizes = torch.randint(0, 200, (2, 7)), (2, 7)
    try:
        logits = model.logits(x)
    except RuntimeProblem as problem:
        assert name == "bidirectional_rnn_lm" and "is drawn" in str(problem)
        return
    torch.testing.assert_close(logits.exp().sum(-1), torch.ones(logits.shape[:-1]))
    assert logits.shape[:-1] in (sizes, sizes[:1])
    y = torch.randint(0, logits.shape[-1], logits.shape[:-1])
    (site,) = [n for n, s in model.sites.items() if s.kind == "observe"]
    picked = logits.gather(-1, y.unsqueeze(-1)).squeeze(-1)
    torch.testing.assert_close(model.log_joint(x, {site: y}), picked.flatten(1).sum(1) if picked.dim() > 1 else picked)


FAMILIES = {
    "Normal": "",
    "LogNormal": "",
    "HalfNormal": "",
    "Exponential": "",
    "Gamma": "",
    "Laplace": "",
    "Gumbel": "",
    "StudentT": "",
    "Poisson": "",
    "NegativeBinomial": "",
    "Geometric": "",
    "Weibull": "",
    "MultivariateNormal": "",
    "MixtureNormal": "",
}


@pytest.mark.parametrize("family", FAMILIES)
def test_the_mean_of_a_head_is_that_of_its_draws(family: str) -> None:
    model = made(HEAD.replace("FAMILY", family))
    x = torch.randn(4, 3)
    mean = model.mean(x)
    assert mean.shape == (4, 2)
    torch.manual_seed(1)
    drawn = model.rsample(x, sample_shape=(40_000,)).double()
    error = 5.0 * drawn.std(0) / math.sqrt(len(drawn))
    assert bool(((drawn.mean(0) - mean).abs() < error).all())


def test_bounded_and_simplex_heads() -> None:
    for family, value in (("Beta", "Real 2 [low=0.0, high=1.0]"), ("Dirichlet", "Simplex 3")):
        model = made(HEAD.replace("FAMILY", family).replace("Real 2\n", f"{value}\n"))
        x = torch.randn(4, 3)
        drawn = model.rsample(x, sample_shape=(20_000,))
        assert torch.allclose(drawn.mean(0), model.mean(x), atol=0.02)


def test_what_has_no_head_says_why() -> None:
    x = torch.randn(2, 3)
    cauchy = made(HEAD.replace("FAMILY", "Cauchy"))
    with pytest.raises(RuntimeProblem, match="`y` is drawn from Cauchy, whose mean has no closed form"):
        cauchy.mean(x)
    with pytest.raises(RuntimeProblem, match=r"`y` has no finite set of values: `mean\(x\)` says what to expect"):
        cauchy.logits(x)
    drawn = "    sample h : Point <- noisy\n    observe y : Value <- head(h)\n"
    latent = HEAD.replace("FAMILY", "Normal").replace("    observe y : Value <- head\n", drawn)
    latent = latent.replace("program", "morphism noisy : Point -> Point [role=kernel] ~ Normal\nprogram")
    with pytest.raises(RuntimeProblem, match="`y` reads `h`, which is drawn: `Predictive` averages over"):
        made(latent).mean(x)
    assert made(latent).mean(x, {"h": x}).shape == (2, 2)
    through = latent.replace("<- head(h)", "<- head(g)").replace(
        "    observe", "    sample g : Point <- same(h)\n    observe"
    )
    through = through.replace("program", "morphism same : Point -> Point [role=linear]\nprogram")
    with pytest.raises(RuntimeProblem, match="`y` reads `h`, which is drawn"):
        made(through).mean(x)
    schools = load(EXAMPLES / "eight_schools.qvr").morphism
    with pytest.raises(RuntimeProblem, match="`eight_schools` has no step drawn from an arrow"):
        schools.mean()


TWO = """\
object Point : Real 3
object Value : Real 1
object Kind : {cat, dog}
morphism head : Point -> Value [role=kernel, hidden_dim=8] ~ Normal
morphism kind_of : Point -> Kind [role=kernel] ~ Categorical
program p : Point -> Value
    observe y : Value <- head
    observe kind : Kind <- kind_of
    return y
"""


def test_of_two_heads_one_is_named() -> None:
    model = made(TWO)
    x = torch.randn(2, 3)
    with pytest.raises(RuntimeProblem, match="`p` observes `y`, `kind`: say which by `site=`"):
        model.mean(x)
    assert model.mean(x, site="y").shape == (2, 1)
    assert model.logits(x, site="kind").shape == (2, 2)


@pytest.mark.parametrize("name", ["flower_classifier", "lstm_lm", "transformer_lm"])
def test_torch_export_computes_the_same(name: str) -> None:
    model = load(EXAMPLES / f"{name}.qvr").morphism.eval()
    x = torch.randn(5, 4) if name == "flower_classifier" else torch.randint(0, 200, (2, 7))
    exported = torch.export.export(model.as_module("logits"), (x,), strict=False)
    other = torch.randn(5, 4) if name == "flower_classifier" else torch.randint(0, 200, (2, 7))
    torch.testing.assert_close(exported.module()(other), model.logits(other))


def test_the_number_of_rows_may_be_left_open() -> None:
    model = load(EXAMPLES / "flower_classifier.qvr").morphism.eval()
    rows = torch.export.Dim("rows", min=2, max=1024)
    exported = torch.export.export(
        model.as_module(), (torch.randn(5, 4),), dynamic_shapes=(({0: rows},),), strict=False
    )
    x = torch.randn(9, 4)
    torch.testing.assert_close(exported.module()(x), model.logits(x))


@pytest.mark.parametrize("name", ["flower_classifier", "transformer_lm"])
def test_onnx_computes_the_same(name: str) -> None:
    reason = "needs the extra `onnx` (onnx, onnxscript), and onnxruntime to run what is exported"
    for package in ("onnx", "onnxscript", "onnxruntime"):
        pytest.importorskip(package, reason=reason)
    import onnxruntime

    model = load(EXAMPLES / f"{name}.qvr").morphism.eval()
    x = torch.randn(5, 4) if name == "flower_classifier" else torch.randint(0, 200, (2, 7))
    target = io.BytesIO()
    torch.onnx.export(model.as_module("logits"), (x,), dynamo=True, verbose=False).save(target)
    session = onnxruntime.InferenceSession(target.getvalue())
    (found,) = session.run(None, {session.get_inputs()[0].name: x.numpy()})
    torch.testing.assert_close(torch.from_numpy(found), model.logits(x).detach(), atol=1e-5, rtol=1e-4)


def test_arrows_of_these_names_keep_the_names_of_their_parameters() -> None:
    text = HEAD.replace("FAMILY", "Normal")
    for name in ("head", "mean", "logits"):
        model = made(text.replace("head", name))
        assert {parameter.split(".")[0] for parameter, _ in model.named_parameters()} == {name}
        assert model.head_mean(torch.randn(2, 3)).shape == (2, 2)
