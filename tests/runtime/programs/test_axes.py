"""Axes meet by name: what a program with tables in several orders computes, and that no table comes by accident."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import xarray
from hypothesis import given, settings
from hypothesis import strategies as st

from qvr_core import dsl
from qvr_core.analysis import analyse
from qvr_core.inference import AutoNormalGuide
from qvr_core.runtime.programs.handlers import Handler, condition
from qvr_core.runtime.values.errors import InputProblem

TABLES = """
object Effect : FinSet 2
object Person : FinSet 5
object Item : FinSet 2

program p : Person -> Real 1
    sample tau : Effect <- HalfNormal(1.0)
    sample z : Effect * Person <- Normal(0.0, 1.0)
    sample w : Person * Effect <- Normal(0.0, 1.0)
    let u = z * tau
    let v = tau - w
    let s = w + z
    observe y : Effect * Person <- Normal(w, tau)
    return (u, v, s)
export p
"""


def _draw(source: str, observations: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    model = dsl.loads(source).morphism
    found = model.execute(None, _condition(observations))
    return {name: record.value for name, record in found.sites.items()} | dict(
        zip(("u", "v", "s"), found.output, strict=True)
    )


def _condition(observations: dict[str, torch.Tensor]) -> Handler:
    return condition(observations)


def test_an_axis_that_one_side_lacks_is_repeated_there() -> None:
    torch.manual_seed(0)
    found = _draw(TABLES, {"y": torch.zeros(2, 5)})
    tau, z, w = (found[name][0] for name in ("tau", "z", "w"))
    assert torch.allclose(found["u"][0], z * tau[:, None])
    assert torch.allclose(found["v"][0], (tau[None, :] - w))
    assert torch.allclose(found["s"][0], w + z.T)


def test_arguments_follow_the_plates_of_the_draw() -> None:
    torch.manual_seed(0)
    model = dsl.loads(TABLES).morphism
    y = torch.randn(2, 5)
    run = model.execute(None, _condition({"y": y}))
    w, tau = run.sites["w"].value[0], run.sites["tau"].value[0]
    wanted = torch.distributions.Normal(w.T, tau[:, None]).log_prob(y).sum()
    log_prob = run.sites["y"].log_prob
    assert log_prob is not None
    assert torch.allclose(log_prob.sum(), wanted, atol=1e-5)


# ---------------------------------------------------------------- random expressions

LEAVES = ("a", "b", "c", "m", "s", "2.0")
EXPRESSIONS = st.recursive(
    st.sampled_from(LEAVES),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from("+-*"), inner).map(lambda parts: f"({parts[0]} {parts[1]} {parts[2]})"),
        st.tuples(inner, inner).map(lambda parts: f"maximum({parts[0]}, {parts[1]})"),
        st.tuples(inner, inner).map(lambda parts: f"(1.0 * ({parts[0]} < {parts[1]}))"),
        st.tuples(inner, inner, inner).map(lambda parts: f"where({parts[0]} < {parts[1]}, {parts[1]}, {parts[2]})"),
        st.tuples(inner, inner).map(lambda parts: f"mixed({parts[0]}, {parts[1]})"),
        st.tuples(st.sampled_from(("sum", "mean")), inner, st.sampled_from("IJ")).map(
            lambda parts: f"{parts[0]}({parts[1]}, over={parts[2]})"
        ),
        inner.map(lambda e: f"tanh({e})"),
        inner.map(lambda e: f"-{e}"),
        st.sampled_from(("matmul(m, b)", "matmul(m, a)", "matmul(a, m)")),
    ),
    max_leaves=8,
)


class Mismatch(Exception):
    """Two values of which neither has all axes of the other, or a sum over an axis that is not there."""


class Named:
    """A value by the names of its axes, computed by xarray; what is an error for the language raises `Mismatch`."""

    def __init__(self, value: xarray.DataArray) -> None:
        self.value = value

    def __neg__(self) -> Named:
        return Named(-self.value)


def _pointwise(function: Callable[..., Any]) -> Callable[..., Named]:
    def applied(*given: Named | float) -> Named:
        values = [one.value if isinstance(one, Named) else xarray.DataArray(one) for one in given]
        wide = max((set(one.dims) for one in values), key=len)
        together = set[Any]()
        for one in values:
            if not (set(one.dims) <= together or together <= set(one.dims)):
                raise Mismatch
            together |= set(one.dims)
        assert together == wide
        return Named(xarray.DataArray(function(*values)))

    return applied


for name, function in {"add": np.add, "sub": np.subtract, "mul": np.multiply, "lt": np.less}.items():
    setattr(Named, f"__{name}__", _pointwise(function))
    swapped = _pointwise(lambda x, y, f=function: f(y, x))
    setattr(Named, f"__{'gt' if name == 'lt' else 'r' + name}__", swapped)


def _reduced(method: str) -> Callable[..., Named]:
    def applied(x: Named | float, over: str) -> Named:
        if not isinstance(x, Named) or over not in x.value.dims:
            raise Mismatch
        return Named(getattr(x.value, method)(over))

    return applied


def _matmul(x: Named, y: Named) -> Named:
    (last,), (first,) = x.value.dims[-1:], y.value.dims[:1]
    if last != first:
        raise Mismatch
    return Named(xarray.dot(x.value, y.value, dim=last))


WORDS: dict[str, Any] = {
    "I": "I",
    "J": "J",
    "sum": _reduced("sum"),
    "mean": _reduced("mean"),
    "matmul": _matmul,
    "maximum": _pointwise(np.maximum),
    "tanh": _pointwise(np.tanh),
    "where": _pointwise(xarray.where),
    "mixed": lambda x, y: _pointwise(np.add)(_pointwise(np.multiply)(x, y), x),
}
AXES = {"a": "I", "b": "J", "c": "I", "m": "IJ", "s": ""}
# A function of the user is refused at its call, a sum over an axis that is not there at the sum.
REFUSALS = {"axes-mismatch", "function-arguments", "arithmetic-mismatch"}


@settings(max_examples=80)
@given(expression=EXPRESSIONS, same=st.booleans())
def test_no_table_arises_from_two_vectors(expression: str, same: bool) -> None:
    """Sets of one size are as different as sets of two; what passes has the axes, and the numbers, of its names."""
    source = f"""
object I : FinSet 4
object J : FinSet {4 if same else 3}
def mixed(x, y) = x * y + x
program p : I -> Real 1
    sample a, c : I <- Normal(0.0, 1.0)
    sample b : J <- Normal(0.0, 1.0)
    sample m : I * J <- Normal(0.0, 1.0)
    sample s <- Normal(0.0, 1.0)
    let e = 1.0 * {expression}
    return e
export p
""".replace("    sample a, c : I", "    sample a : I <- Normal(0.0, 1.0)\n    sample c : I")
    codes = [found.code.name for found in analyse(source).diagnostics() if found.code.severity.name == "ERROR"]
    sizes = {"I": 4, "J": 4 if same else 3}
    generator = np.random.default_rng(0)
    given = {
        n: xarray.DataArray(generator.normal(size=[sizes[x] for x in over]), dims=[*over]) for n, over in AXES.items()
    }
    try:
        wanted = eval(f"1.0 * {expression}", {**WORDS, **{name: Named(value) for name, value in given.items()}})
    except Mismatch:
        assert codes and set(codes) <= REFUSALS, (expression, codes)
        return
    assert not codes, expression
    value = wanted.value if isinstance(wanted, Named) else xarray.DataArray(wanted)
    draws = {name: torch.from_numpy(np.asarray(one.values)).unsqueeze(0) for name, one in given.items()}
    found = dsl.loads(source).morphism.execute(None, _condition(draws)).output.squeeze(0)
    assert math.prod(found.shape) == value.size
    assert any(
        found.shape == value.transpose(*order).shape
        and np.allclose(found.numpy(), value.transpose(*order).values, rtol=1e-4, atol=1e-4)
        for order in itertools.permutations(value.dims)
    ), expression


def test_a_draw_without_a_set_has_the_axes_of_its_arguments() -> None:
    text = """
object School : {a, b, c}
program p : School -> School
    sample mu : School <- Normal(0.0, 1.0)
    sample theta <- Normal(mu, 1.0)
    observe y : School <- Normal(theta, 1.0)
    return theta
"""
    model = dsl.loads(text).morphism
    y = torch.tensor([0.3, 0.1, 0.2])
    values = {"mu": torch.tensor([1.0, 2.0, 3.0]), "theta": torch.tensor([0.5, 1.0, 1.5]), "y": y}
    normal = torch.distributions.Normal
    wanted = normal(0.0, 1.0).log_prob(values["mu"]) + normal(values["mu"], 1.0).log_prob(values["theta"])
    wanted = wanted + normal(values["theta"], 1.0).log_prob(y)
    torch.testing.assert_close(model.log_joint(None, values), wanted.sum().reshape(1))
    assert AutoNormalGuide(model, observed_names={"y"}).raw_loc["theta"].shape == (3,)
    with pytest.raises(InputProblem, match=r"values of shape \(3,\), as the arguments have, found shape \(2,\)"):
        model.log_joint(None, {**values, "theta": torch.zeros(2)})
