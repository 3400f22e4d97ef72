"""Each function of the closed list is torch's of that name: values, and derivatives where numbers are real."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from scipy import special
from torch import Tensor

from qvr_core.arrays import graph as g
from qvr_core.arrays import operations
from qvr_core.arrays.derivatives import gradient
from qvr_core.arrays.eager import array
from qvr_core.arrays.engine import new_graph
from qvr_core.arrays.evaluate import evaluated
from qvr_core.arrays.graph import Unsupported
from qvr_core.arrays.listing import FUNCTIONS

Case = tuple[str, Callable[[Any], Any]]
M = torch.tensor([[2.0, 0.3, -0.2], [0.1, 1.5, 0.4], [0.2, -0.3, 1.2]]).double()
INDEX = torch.tensor([2, 0, 1, 0])
SEEN = torch.tensor([True, False, False, True])


def moved(x: Any) -> Any:
    """A matrix with the first three numbers added to its diagonal."""
    return M + torch.diag_embed(x[:3])


def many_rows(x: Any) -> Any:
    """A covariance of thirteen numbers on a line, which is computed by routines."""
    at = torch.arange(13.0, dtype=torch.float64)
    gaps = (at[:, None] - at).square() * (0.1 + x[0].square())
    return x[1].square() * torch.exp(-gaps) + (1.0 + x[2].square()) * torch.eye(13, dtype=torch.float64)


POINTWISE = {
    "abs": 1.0, "acos": 0.4, "acosh": 3.0, "asin": 0.4, "asinh": 1.0, "atan": 1.0, "atanh": 0.4, "ceil": 1.0,
    "cos": 1.0, "cosh": 1.0, "digamma": 2.0, "erf": 1.0, "erfc": 1.0, "exp": 1.0, "exp2": 1.0, "expm1": 1.0,
    "floor": 1.0,
    "frac": 1.0, "lgamma": 2.0, "log": 2.0, "log10": 2.0, "log1p": 2.0, "log2": 2.0, "logit": 0.3, "neg": 1.0,
    "reciprocal": 2.0, "relu": 1.0, "rsqrt": 2.0, "sigmoid": 1.0, "sign": 1.0, "sin": 1.0, "sinh": 1.0, "sqrt": 2.0,
    "square": 1.0, "tan": 0.7, "tanh": 1.0, "trunc": 1.0,
}  # fmt: skip
"""By name: the largest number that it is tried with; from the smallest of 0.1 where that is over 1, or below it."""

CASES: list[Case] = [
    *((name, lambda x, name=name: getattr(torch, name)(x)) for name in POINTWISE),
    ("add", lambda x: torch.add(x, x[::2].sum(), alpha=2.0) + 1.0 + x),
    ("sub", lambda x: 3.0 - torch.sub(x, x[0], alpha=0.5)),
    ("mul", lambda x: 2.0 * x * x[:1]),
    ("div", lambda x: 1.0 / (x.square() + 1.0) + x / 3.0 + x / (2.0 + x.exp())),
    ("pow", lambda x: x**2 + (x.abs() + 0.1) ** 1.7 + x**3 + 2.0**x + (x.square() + 1.0) ** x + x**-1.0 + x**0.0),
    ("maximum", lambda x: torch.maximum(x, x.flip(0)) + torch.minimum(x, torch.tensor(0.2).double())),
    ("detach", lambda x: x.detach().exp() * x + torch.where(x > 0.0, x.detach().sqrt(), x)),
    ("logaddexp", lambda x: torch.logaddexp(x, 2.0 * x.flip(0))),
    ("atan2", lambda x: torch.atan2(x, x.flip(0) + 2.0)),
    ("addcmul", lambda x: torch.addcmul(x, x.flip(0), x.exp(), value=0.5)),
    ("hypot", lambda x: torch.hypot(x, x.flip(0) + 2.0)),
    ("remainder", lambda x: torch.remainder(x, 0.7) + torch.fmod(x, 0.7)),
    ("xlogy", lambda x: torch.xlogy(torch.tensor([0.0, 1.0, 2.0, 0.0]).double(), x.square() + 0.5)),
    ("softplus", lambda x: F.softplus(x) + F.softplus(x, beta=2.0)),
    ("logsigmoid", lambda x: F.logsigmoid(30.0 * x)),
    ("log_of_probability", lambda x: F.logsigmoid(torch.where(SEEN, (p := x.sigmoid().logit()), -p))),
    ("log_of_neither", lambda x: F.logsigmoid(torch.where(SEEN, (p := x.sigmoid()).logit(), (p / (2.0 - p)).log()))),
    ("silu", lambda x: F.silu(x) + F.gelu(x)),
    ("ndtr", lambda x: torch.special.ndtr(x) + torch.special.log_ndtr(8.0 * x) + torch.special.log_ndtr(-9.0 * x)),
    ("i0e", lambda x: torch.special.i0e(3.0 * x) + torch.special.i1e(x + 4.0)),
    ("clamp", lambda x: x.clamp(-0.3, 0.4) + x.clamp(min=0.1)),
    ("clamp_max", lambda x: x.clamp(max=torch.tensor([0.0, 1.0, -1.0, 0.5]).double())),
    ("where", lambda x: torch.where(x > 0.0, x.square(), -x) + torch.where(x < 0.1, 1.0, x)),
    ("masked_fill", lambda x: x.masked_fill(torch.tensor([True, False, False, True]), 7.0)),
    ("isfinite", lambda x: torch.where(torch.isfinite(x) & ~torch.isnan(x) & ~torch.isinf(x), x, 0.0)),
    ("nan_to_num", lambda x: (x * torch.tensor([1.0, torch.nan, torch.inf, 1.0]).double()).nan_to_num(0.5, 2.0, 3.0)),
    ("logical", lambda x: (((x > 0.0) | (x < -0.5)) ^ (x == x[0])).double() * x),
    ("reshape", lambda x: x.reshape(2, -1).unsqueeze(1).squeeze(1).flatten().unflatten(0, (2, 2)).view(4)),
    ("transpose", lambda x: (x.reshape(2, 2).transpose(0, 1) * x.reshape(2, 2).mT.T).movedim(0, 1).permute(1, 0)),
    ("expand", lambda x: x.expand(3, 4) * x.unsqueeze(-1)[:3].expand(-1, 4)),
    ("repeat", lambda x: x.repeat(3, 1) * x.expand_as(M.new_zeros(3, 4))),
    ("slices", lambda x: x[1:] * x[:-1] + x[::2].sum() + x[-1] + x[None, 1:, None][0, :, 0]),
    ("narrow", lambda x: x.narrow(0, 1, 3) + x.select(0, 2)),
    ("split", lambda x: x.split([1, 3])[1].sum() * x.split(2)[0] + x.chunk(2)[1] + x.unbind()[0]),
    ("flip", lambda x: x.flip(0) * x.roll(1) + x.roll(-1, 0)),
    ("repeat_interleave", lambda x: x.repeat_interleave(2) * x.repeat_interleave(2, 0)),
    ("index", lambda x: x[INDEX] * x[torch.tensor([True, False, True, True])].sum() + x[torch.tensor(-1)]),
    ("index_two", lambda x: x.reshape(2, 2)[torch.tensor([1, 0, 1]), torch.tensor([0, 0, 1])]),
    ("index_columns", lambda x: x.reshape(2, 2)[:, INDEX[1:2]].sum() * x),
    ("gather", lambda x: x.reshape(2, 2).gather(1, torch.tensor([[1, 0, 1], [0, 0, 1]]))),
    ("index_select", lambda x: x.index_select(0, INDEX[:3])),
    ("index_add", lambda x: torch.zeros(3).double().index_add(0, INDEX, x)),
    ("scatter_add", lambda x: torch.ones(3).double().scatter_add(0, INDEX, x)),
    ("index_put", lambda x: x.index_put((torch.tensor([0, 2]),), 3.0 * x[1:3])),
    ("index_put_added", lambda x: x.index_put((torch.tensor([1, 1]),), x[:2], accumulate=True)),
    ("index_copy", lambda x: x.index_copy(0, torch.tensor([3, 1]), x[:2].square())),
    ("cat", lambda x: torch.cat([x, x[:1] * 2.0], 0) + torch.stack([x[0], x[1], x[2], x[3], x[0]])),
    ("pad", lambda x: F.pad(x, (1, 2)) + F.pad(x, (4, -1)).sum()),
    ("pad_two", lambda x: F.pad(x.reshape(2, 2), (1, 0, 0, -1), value=2.0)),
    ("diagonal", lambda x: torch.diag_embed(x) @ x + torch.diag_embed(x).diagonal(dim1=-2, dim2=-1)),
    ("triangle", lambda x: (x.outer(x).tril() + x.outer(x).triu(1) * 2.0 + x.outer(x).tril(-1)).sum(0)),
    ("broadcast_tensors", lambda x: torch.broadcast_tensors(x, x[:, None])[1] * x),
    ("sum", lambda x: x.sum() + x.reshape(2, 2).sum(0) * x.reshape(2, 2).sum(-1, keepdim=True) + x.mean()),
    ("prod", lambda x: x.prod() + x.reshape(2, 2).prod(1)),
    ("amax", lambda x: x.amax() + x.reshape(2, 2).amin(0) + x.max() - x.min() + x.reshape(2, 2).max(-1).values),
    ("logsumexp", lambda x: x.logsumexp(0) + x.reshape(2, 2).logsumexp(1)),
    ("logsumexp_of_none", lambda x: torch.where(torch.arange(4) < 2, -torch.inf, x).reshape(2, 2).logsumexp(1).exp()),
    ("log_softmax", lambda x: x.log_softmax(0) * x.reshape(2, 2).softmax(-1).flatten() + F.softmin(x, dim=0)),
    ("var", lambda x: x.var() + x.std() + x.reshape(2, 2).var(0, correction=0) + torch.linalg.vector_norm(x)),
    ("cumsum", lambda x: x.cumsum(0) * x.reshape(2, 2).cumsum(1).flatten() + x.cumprod(0) + x.diff().sum()),
    ("normalize", lambda x: F.normalize(x, dim=0) + F.layer_norm(x, (4,))),
    ("cross_entropy", lambda x: F.cross_entropy(x.reshape(2, 2), torch.tensor([1, 0]), reduction="none")),
    ("matmul", lambda x: M @ x[:3] + (x.reshape(2, 2) @ x.reshape(2, 2)).sum() + x @ x + x[:3] @ M),
    ("linear", lambda x: F.linear(x[:3], M, x[1:])),
    ("einsum", lambda x: torch.einsum("ij,j,ki->k", M, x[:3], M)),
    ("kron", lambda x: torch.kron(x[:3].outer(x[:1]), x[:1].outer(x[:1]))),
    ("cholesky", lambda x: torch.linalg.cholesky(moved(x) @ moved(x).mT)),
    ("cholesky of many rows", lambda x: torch.linalg.cholesky(many_rows(x)).exp() * torch.arange(1.0, 14.0)),
    ("solve_triangular", lambda x: torch.linalg.solve_triangular(moved(x).tril(), x[:3, None] * M, upper=False)),
    ("solve_upper", lambda x: torch.linalg.solve_triangular(moved(x).triu(), x[:3] * M, upper=True, left=False)),
    ("inverse", lambda x: torch.linalg.inv(moved(x)) + torch.linalg.det(moved(x))),
    ("logdet", lambda x: torch.logdet(moved(x.square()))),
    ("double", lambda x: (x > 0.0).double() * x + (x > 0.0).to(torch.int64) * x + (x > 0.0).long().sum() * x),
]  # fmt: skip


def numbers(name: str) -> Tensor:
    largest = POINTWISE.get(name, 1.0)
    x = torch.tensor([-0.71, 0.13, 0.94, -0.28]).double() * largest
    if name == "logit":
        return x.abs() + 0.01
    if largest == 2.0:
        return x.abs() + 0.1
    return x.abs() + 1.05 if largest == 3.0 else x


@pytest.mark.parametrize(("name", "function"), CASES, ids=[name for name, _ in CASES])
def test_values_and_derivatives_are_torchs(name: str, function: Callable[[Any], Any]) -> None:
    x = numbers(name).requires_grad_()
    wanted = function(x)
    weights = torch.linspace(0.5, 1.5, wanted.numel()).double().reshape(wanted.shape)
    (slope,) = torch.autograd.grad((wanted * weights).sum(), x) if wanted.requires_grad else (torch.zeros_like(x),)

    graph = new_graph()
    q = graph.position(4)
    found = function(q)
    total = FUNCTIONS["sum"](found * weights)
    here = x.detach().numpy()
    np.testing.assert_allclose(evaluated(found, here), wanted.detach().numpy(), rtol=1e-12, atol=1e-13)
    # torch's own trigamma has nine digits; tests/arrays/test_special.py looks at ours
    digits = 1e-8 if name == "digamma" else 1e-10
    np.testing.assert_allclose(evaluated(gradient(total, q), here), slope.numpy(), rtol=digits, atol=1e-12)
    # the same, done at once on numbers
    np.testing.assert_allclose(function(array(here)).numpy(), wanted.detach().numpy(), rtol=1e-12, atol=1e-13)


def test_log_ndtr_keeps_its_slope_far_out() -> None:
    """φ / Φ by the scaled complementary error function of scipy: torch's own is off by a third at −1e8."""
    graph = new_graph()
    x = np.array([-1e8, -1e5, -600.0, -50.1, -49.9, -12.0, -1.0, 0.0, 3.0])
    q = graph.position(len(x))
    slope = gradient(FUNCTIONS["sum"](FUNCTIONS["special_log_ndtr"](q)), q)
    wanted = math.sqrt(2.0 / math.pi) / special.erfcx(-x / math.sqrt(2.0))
    np.testing.assert_allclose(evaluated(slope, x), wanted, rtol=1e-12)


def test_equal_operations_are_one_node() -> None:
    graph = new_graph()
    q = graph.position(3)
    assert (q.exp() + 1.0) is (q.exp() + 1.0)
    assert q[:2].sum() is q[:2].sum()
    assert q * 1.0 + 0.0 is q


@pytest.mark.parametrize(
    ("what", "function"),
    [
        ("bool", lambda q: bool(q.sum() > 0.0)),
        ("item", lambda q: q.sum().item()),
        ("index", lambda q: torch.arange(3)[(q > 0.0).long()]),
        ("place", lambda q: q.max(0).indices),
        ("sort", lambda q: q.sort()),
        ("whole", lambda q: q.long()),
        ("unknown", torch.fft.fft),
    ],
)
def test_what_would_look_at_latents_is_refused(what: str, function: Callable[[Any], Any]) -> None:
    with pytest.raises(Unsupported):
        function(new_graph().position(3))


def test_shapes_that_do_not_fit_are_refused() -> None:
    q = new_graph().position(6)
    for wrong in (lambda: q.reshape(4, 2), lambda: q[:2] + q[:3], lambda: q.expand(5), lambda: q[6], lambda: q @ M):  # type: ignore[attr-defined, index, operator]
        with pytest.raises((ValueError, IndexError)):
            wrong()


def test_operations_are_a_closed_list() -> None:
    from qvr_core.arrays import derivatives, evaluate
    from qvr_core.arrays.reverse_accumulation import FLAT, RULES
    from qvr_core.codegen.lowering.density import ROOMS
    from qvr_core.codegen.lowering.lowering import RULES as LOOPS

    assert ROOMS and derivatives.ROOMS
    computed = g.OPERATIONS - {"position", "constant", "turn"}
    assert computed <= evaluate._OPERATIONS.keys()
    assert computed == LOOPS.keys()
    # a second derivative, of lgamma and of large Cholesky factors, nothing asks for
    assert computed - FLAT - RULES.keys() == {"trigamma", "cholesky_pulled"}


def test_of_several_matrices_only_that_without_an_inverse_has_none() -> None:
    graph = new_graph()
    rows = np.array([[2.0, 0.0, 0.0, 4.0], [1.0, 2.0, 2.0, 4.0], [1.0, 1.0, 0.0, 1.0]])
    found = evaluated(operations.inverse(operations.reshape(graph.position(12), (3, 2, 2)))[0], rows.ravel())
    assert found[0].tolist() == [[0.5, 0.0], [0.0, 0.25]] and found[2].tolist() == [[1.0, -1.0], [0.0, 1.0]]
    assert np.isnan(found[1]).all()
