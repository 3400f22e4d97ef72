"""Each operation's loops against torch: value and gradient, at shapes of all kinds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks.models import MODELS
from qvr_core.codegen import source, vector_blocks
from qvr_core.dsl import loads
from qvr_core.inference.machine.density import NotCompiled, machine_density, text_of
from qvr_core.inference.mcmc.potential import potential_of
from tests.inference.machine.functions import Function
from tests.inference.machine.interpreted import interpreted

INDEX = torch.tensor([2, 0, 1, 1, 2, -1])
MATRIX = torch.randn(5, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
POSITIVE = {"log", "log2", "log10", "digamma", "log1p", "sqrt", "rsqrt", "lgamma", "reciprocal", "logit", "xlogy"}


LINE = torch.arange(13.0, dtype=torch.float64)


def _line(x: Tensor) -> Tensor:
    """A covariance of thirteen numbers on a line."""
    gaps = (LINE[:, None] - LINE).square()
    return x[0].square() * torch.exp(-0.3 * gaps) + (1.0 + x[1].square()) * torch.eye(13, dtype=torch.float64)


def _positive_definite(x: Tensor) -> Tensor:
    root = x.view(3, 2, 2)
    return root @ root.mT + torch.eye(2, dtype=x.dtype)


OPERATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "exp": torch.exp,
    "expm1": torch.expm1,
    "log": torch.log,
    "log1p": torch.log1p,
    "sqrt": torch.sqrt,
    "rsqrt": torch.rsqrt,
    "tanh": torch.tanh,
    "sin": torch.sin,
    "cos": torch.cos,
    "atan": torch.atan,
    "erf": torch.erf,
    "erfc": torch.erfc,
    "lgamma": torch.lgamma,
    "abs": torch.abs,
    "sigmoid": torch.sigmoid,
    "softplus": F.softplus,
    "log_sigmoid": F.logsigmoid,
    "relu": torch.relu,
    "reciprocal": torch.reciprocal,
    "square": torch.square,
    "cube": lambda x: x**3,
    "inverse square": lambda x: (x * x + 1.0) ** -2,
    "power of a tensor": lambda x: (x * x + 1.0) ** x,
    "clamp": lambda x: x.clamp(-0.3, 0.4),
    "clamp from below": lambda x: x.clamp_min(0.1),
    "clamp from above": lambda x: x.clamp(max=0.1),
    "where": lambda x: torch.where((x > 0) & (x < 1) | (x < -1), x.exp(), -x),
    "minus infinity": lambda x: torch.where(torch.isneginf(torch.log(x.relu())), x.exp(), x * 2.0),
    "infinity": lambda x: torch.where(torch.isposinf(-torch.log(x.relu())), x.exp(), x * 2.0),
    "maximum": lambda x: torch.maximum(x, x.flip(-1) * 0.7),
    "logit": lambda x: torch.logit(x / 10.0),
    "xlogy": lambda x: torch.xlogy(x, x + 1.0),
    "add with a factor": lambda x: torch.add(x, x.exp(), alpha=-3),
    "rsub": lambda x: 3.0 - x,
    "masked_fill": lambda x: x.masked_fill(torch.arange(12) % 3 == 0, 0.5),
    "mean": lambda x: x.view(3, 4).exp().mean(0) * 2.0,
    "sum of one axis": lambda x: x.view(3, 4).exp().sum(1).square(),
    "sum of the other": lambda x: x.view(3, 4).exp().sum(0, keepdim=True).square(),
    "sum of two axes": lambda x: x.view(2, 3, 2).exp().sum((0, 2)).square(),
    "amax": lambda x: x.view(3, 4).amax(-1).exp(),
    "logsumexp": lambda x: x.view(3, 4).logsumexp(-1).square(),
    "logsumexp of two": lambda x: torch.stack([x, x.flip(-1).square()]).logsumexp(0),
    "log_softmax": lambda x: x.view(3, 4).log_softmax(-1) * torch.arange(12.0).view(3, 4).double(),
    "softmax": lambda x: x.view(3, 4).softmax(0) * torch.arange(12.0).view(3, 4).double(),
    "cumsum": lambda x: x.view(3, 4).cumsum(1).square(),
    "cumsum of the other axis": lambda x: x.view(3, 4).cumsum(0).square(),
    "matrix by vector": lambda x: torch.mv(MATRIX, x[:4]).exp(),
    "matrix by matrix": lambda x: (MATRIX @ x.view(4, 3)).exp(),
    "matrices of the position": lambda x: (x.view(4, 3) @ x.view(3, 4)).exp(),
    "batches of matrices": lambda x: torch.bmm(x.view(2, 2, 3), x.view(2, 3, 2).exp()).square(),
    "dot": lambda x: torch.dot(x, x.exp()),
    "linear": lambda x: F.linear(x.view(3, 4), MATRIX, MATRIX[:, 0]).tanh(),
    "einsum": lambda x: torch.einsum("ij,jk,k->ik", MATRIX, x.view(4, 3), x[:3]).exp(),
    "slice with a step": lambda x: x[1::3].exp() * x[:4],
    "select": lambda x: x.view(3, 4)[1] * x.view(3, 4)[:, 2].sum(),
    "transpose": lambda x: (x.view(3, 4).T.exp() @ MATRIX[:3, :3]).square(),
    "permute and join axes": lambda x: x.view(2, 3, 2).permute(2, 0, 1).reshape(4, 3).exp().cumsum(0).square(),
    "flip": lambda x: x.flip(-1).cumsum(-1).square(),
    "expand": lambda x: x[:3].exp().unsqueeze(-1).expand(3, 5) * MATRIX[:, :3].T,
    "split": lambda x: x.split([3, 9])[0].exp().sum() * x.split([3, 9])[1],
    "unbind": lambda x: x.view(3, 4).unbind(0)[0] * x.view(3, 4).unbind(0)[2].exp(),
    "cat": lambda x: torch.cat([x[5:].exp(), x[:5] * 2.0]).cumsum(-1).square(),
    "stack": lambda x: (torch.stack([x.exp(), x], -1) @ MATRIX[:2, :2]).square(),
    "pad": lambda x: F.pad(x.exp(), (1, 2)).cumsum(-1).square(),
    "crop": lambda x: F.pad(x.exp(), (-1, -2)).cumsum(-1).square(),
    "index": lambda x: x.view(3, 4).exp()[INDEX].square(),
    "index along the last axis": lambda x: x.view(4, 3)[:, INDEX].exp(),
    "two indices": lambda x: x.view(3, 4)[INDEX, INDEX.flip(-1)].exp(),
    "index_select": lambda x: x.view(3, 4).index_select(0, INDEX[:5]).exp(),
    "gather": lambda x: x.view(3, 4).exp().gather(1, torch.tensor([[0, 0], [3, 1], [2, 2]])).square(),
    "gather of an expanded vector": lambda x: x[:3].expand(6, 3).gather(-1, INDEX.remainder(3)[:, None]).exp(),
    "scatter_add": lambda x: torch.zeros(3).double().scatter_add(0, INDEX.remainder(3), x[:6]).exp(),
    "index_add": lambda x: x[:3].index_add(0, INDEX.remainder(3), x[6:]).exp(),
    "index_copy": lambda x: x.exp().index_copy(0, torch.tensor([3, 7]), x[:2]).square(),
    "index_put": lambda x: x.exp().index_put((torch.tensor([3, 7]),), x[:2]).square(),
    "index_put that adds": lambda x: x.exp().index_put((INDEX,), x[:6], accumulate=True).square(),
    "diagonal": lambda x: (x[:9].view(3, 3) @ x[:9].view(3, 3)).diagonal().exp(),
    "diag_embed": lambda x: (torch.diag_embed(x[:3].exp()) @ x.view(3, 4)).square(),
    "tril": lambda x: (x[:9].view(3, 3).tril() @ x[:9].view(3, 3).triu(1).exp()).square(),
    "isnan": lambda x: torch.where(torch.isnan(x), 0.0, x.exp()),
    "isinf": lambda x: torch.where(torch.isinf(x.masked_fill(x > 0, -torch.inf)), 0.5, x.exp()),
    "truths as numbers": lambda x: (x > 0).double() * x.exp() + (x > 1).all().double(),
    "sinh": torch.sinh,
    "cosh": torch.cosh,
    "tan": torch.tan,
    "asin": lambda x: torch.asin(0.9 * x.tanh()),
    "acos": lambda x: torch.acos(0.9 * x.tanh()),
    "asinh": torch.asinh,
    "acosh": lambda x: torch.acosh(1.5 + x * x),
    "atan2": lambda x: torch.atan2(x, x.flip(-1)),
    "hypot": lambda x: torch.hypot(x, x.flip(-1)),
    "floor and ceil": lambda x: x.floor() * x + x.ceil().square() * x,
    "log10": torch.log10,
    "log2": torch.log2,
    "exp2": torch.exp2,
    "silu": F.silu,
    "gelu": F.gelu,
    "logaddexp": lambda x: torch.logaddexp(x, 2.0 * x.flip(-1)),
    "log_ndtr": lambda x: torch.special.log_ndtr(x * torch.tensor([1.0, 3.0, 10.0, 40.0]).repeat(3)),
    "ndtr": torch.special.ndtr,
    "i0e": lambda x: torch.special.i0e(x * torch.tensor([1.0, 3.0, 10.0, 60.0]).repeat(3)),
    "i1e": lambda x: torch.special.i1e(x * torch.tensor([1.0, 3.0, 10.0, 60.0]).repeat(3)),
    "digamma": lambda x: torch.digamma(x * torch.tensor([0.1, 1.0, 10.0, 100.0]).repeat(3)),
    "prod": lambda x: x.view(3, 4).prod(-1) * x.view(3, 4).prod(0).prod(),
    "var": lambda x: x.view(3, 4).var(-1).square() * x.view(3, 4).std(0).sum(),
    "vector_norm": lambda x: torch.linalg.vector_norm(x.view(3, 4), dim=-1).exp(),
    "Cholesky factors": lambda x: torch.linalg.cholesky_ex(_positive_definite(x))[0] * MATRIX[:2, :2],
    "a Cholesky factor of many rows": lambda x: (torch.linalg.cholesky_ex(_line(x))[0].exp() * LINE).sum(),
    "Cholesky factors of many rows": lambda x: torch.linalg.cholesky_ex(torch.stack([_line(x), _line(2.0 * x)]))[0].mT,
    "a Cholesky factor of a transpose": lambda x: torch.linalg.cholesky_ex(_positive_definite(x).mT)[0].exp(),
    "triangular solutions": lambda x: torch.linalg.solve_triangular(
        torch.linalg.cholesky_ex(_positive_definite(x))[0], x.view(3, 2, 2).exp(), upper=False
    ).square(),
    "of an upper matrix": lambda x: torch.linalg.solve_triangular(
        x[:9].view(3, 3).triu() + 3.0 * torch.eye(3), x[3:].view(3, 3), upper=True
    ).square(),
    "from the right": lambda x: torch.linalg.solve_triangular(
        x[:9].view(3, 3).tril() + 3.0 * torch.eye(3), x.view(4, 3), upper=False, left=False
    ).square(),
    "of a vector": lambda x: torch.linalg.solve_triangular(
        x[:9].view(3, 3).tril() + 3.0 * torch.eye(3), x[:3, None], upper=False
    ).square(),
    "of one matrix for many": lambda x: torch.linalg.solve_triangular(
        (x[:4].view(2, 2).tril() + 3.0 * torch.eye(2)).expand(3, 2, 2), x.view(3, 2, 2), upper=False
    ).square(),
    "with ones on the diagonal": lambda x: torch.linalg.solve_triangular(
        x[:9].view(3, 3), x[3:].view(3, 3), upper=False, unitriangular=True
    ).square(),
    "inverses": lambda x: torch.linalg.inv_ex(x.view(3, 2, 2))[0] * MATRIX[:2, :2],
    "an inverse of a transpose": lambda x: torch.linalg.inv_ex(x[:9].view(3, 3).T)[0] * MATRIX[:3, :3],
    "determinants": lambda x: torch.linalg.det(x.view(3, 2, 2)).square(),
    "a determinant of a transpose": lambda x: torch.linalg.det((x[:9].view(3, 3)).T).square(),
    "a log determinant": lambda x: torch.logdet(x[:9].view(3, 3) @ x[:9].view(3, 3).T),
    "a large sum beside a small one": lambda x: (MATRIX.T @ torch.mv(MATRIX, x[:4])).exp(),
}  # fmt: skip


@pytest.fixture(params=["whole", "in blocks"])
def rows(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows in one loop, or in blocks that do not divide them."""
    if request.param == "in blocks":
        monkeypatch.setattr(vector_blocks, "FEWEST_ROWS", 2)
        monkeypatch.setattr(source, "BLOCK", 5)


@pytest.mark.usefixtures("rows")
@pytest.mark.parametrize("name", OPERATIONS)
def test_loops_give_what_torch_gives(name: str) -> None:
    function = Function(OPERATIONS[name], 12)
    rng = np.random.default_rng(0)
    density = interpreted(text_of(function)[0], 12)
    for _ in range(3):
        q = rng.standard_normal(12)
        if name in POSITIVE:
            q = np.abs(q) + 0.1
        value, gradient = density(q)
        wanted_value, wanted = function.value_and_grad(q)
        # torch's second derivative of log Γ is good to 5e-10
        exact = 1e-9 if name == "digamma" else 1e-11
        np.testing.assert_allclose(value, wanted_value, rtol=1e-11, atol=1e-11)
        np.testing.assert_allclose(gradient, wanted, rtol=exact, atol=1e-11)


def test_a_nest_that_wants_too_much_of_the_stack_stays_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    weights = torch.randn(40, 12, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    function = Function(lambda x: F.softplus(weights @ x), 12)
    q = np.random.default_rng(0).standard_normal(12)
    assert "lane" in text_of(function)[0].source
    monkeypatch.setattr(vector_blocks, "MOST_LANES", 0)
    text, _ = text_of(function)
    assert "lane" not in text.source
    np.testing.assert_allclose(interpreted(text, 12)(q)[1], function.value_and_grad(q)[1], rtol=1e-11)


def test_what_is_not_on_the_list_is_named() -> None:
    with pytest.raises(NotCompiled, match="the function special_bessel_j0"):
        text_of(Function(lambda x: torch.special.bessel_j0(x) + x, 3))


def test_an_order_of_the_position_has_no_loops() -> None:
    with pytest.raises(NotCompiled, match="there are no arrays for"):
        text_of(Function(lambda x: x[x.argsort()] * torch.arange(3.0), 3))


@pytest.mark.parametrize("name", MODELS)
def test_the_loops_of_a_program_are_its_density(name: str) -> None:
    """Compiled, and run where the plain density is."""
    potential = potential_of(loads(MODELS[name].text).morphism, None, MODELS[name].data())
    compiled = machine_density(potential, potential.initial(np.random.default_rng(3)).numpy())
    for seed in range(5):
        q = potential.initial(np.random.default_rng(seed)).unsqueeze(0)
        wanted_value, wanted = potential.value_and_grad(q)
        value, gradient = compiled(q[0].numpy())
        np.testing.assert_allclose(value, float(wanted_value), rtol=1e-10)
        np.testing.assert_allclose(gradient, wanted[0].numpy(), rtol=1e-9, atol=1e-9 * float(wanted.abs().max()))


def test_numbers_that_are_none_are_not_read() -> None:
    """An empty constant once was a place behind all constants, read before a loop without turns."""

    def empty(x: Any) -> Any:
        nothing = (x[:0] * torch.tensor(2.5).double().expand(0)).exp()
        return x.square().sum() + nothing.sum()

    text, _ = text_of(Function(empty, 3))
    assert "d[" not in text.source
    value, gradient = interpreted(text, 3)(np.array([1.0, 2.0, 3.0]))
    assert value == 14.0 and gradient.tolist() == [2.0, 4.0, 6.0]
