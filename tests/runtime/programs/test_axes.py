"""Axes meet by name: what a program with tables in several orders computes, and that no table comes by accident."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from qvr_core import dsl
from qvr_core.analysis import analyse
from qvr_core.runtime.programs.handlers import Handler, condition

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


EXPRESSIONS = st.recursive(
    st.sampled_from(("a", "b", "2.0")),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from("+-*/"), inner).map(lambda parts: f"({parts[0]} {parts[1]} {parts[2]})"),
        inner.map(lambda e: f"exp({e})"),
        st.tuples(inner, inner).map(lambda parts: f"maximum({parts[0]}, {parts[1]})"),
        inner.map(lambda e: f"-{e}"),
    ),
    max_leaves=8,
)


@given(expression=EXPRESSIONS, same=st.booleans())
def test_no_table_arises_from_two_vectors(expression: str, same: bool) -> None:
    source = f"""
object I : FinSet 4
object J : FinSet {4 if same else 3}
program p : I -> Real 1
    sample a : I <- Normal(0.0, 1.0)
    sample b : J <- Normal(0.0, 1.0)
    let c = {expression}
    return c
export p
"""
    codes = [found.code.name for found in analyse(source).diagnostics() if found.code.severity.name == "ERROR"]
    if "a" in expression.replace("max", "") and "b" in expression:
        assert codes
        assert set(codes) == {"axes-mismatch"}
    else:
        assert not codes
        shape = dsl.loads(source).morphism.execute(None).output.shape
        assert shape in ((1, 4), (1, 3), (1,))
