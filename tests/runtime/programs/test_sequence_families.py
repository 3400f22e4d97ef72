"""Families with a draw at each position of a sequence: densities position by position, data of a table, padding."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats as st
import torch
from torch import Tensor

from qvr_core.analysis import analyse
from qvr_core.dsl import loads
from qvr_core.runs.prepare.prepare import prepare
from qvr_core.runtime.programs.handlers import by_rows, condition, keep, pointwise, seed
from qvr_core.runtime.values.errors import InputProblem
from tests.runs.jobs import make_job

HEAD = """object Token : FinSet 7
object Hidden : Real 3
morphism emb : Token -> Hidden [role=embed]
morphism cell : Hidden * Hidden -> Hidden [role=linear]
morphism one : Hidden -> Real 1 [role=linear]
morphism two : Hidden -> Real 2 [role=linear]
let states = scan(cell, emit=all)
"""
SOFT = Callable[[Any, Any], Any]
NUMBERS: dict[str, tuple[str, SOFT]] = {
    "Normal": ("Normal(m, 1.5)", lambda y, m: st.norm.logpdf(y, m, 1.5)),
    "StudentT": ("StudentT(4.0, m, exp(m))", lambda y, m: st.t.logpdf(y, 4.0, m, np.exp(m))),
    "LogNormal": ("LogNormal(m, 0.5)", lambda y, m: st.lognorm.logpdf(y, 0.5, scale=np.exp(m))),
    "Poisson": ("Poisson(exp(m))", lambda y, m: st.poisson.logpmf(y, np.exp(m))),
    "Hurdle": (
        "Hurdle(0.3, Poisson(exp(m)))",
        lambda y, m: np.where(
            y == 0, np.log(0.3), np.log(0.7) + st.poisson.logpmf(y, np.exp(m)) - st.poisson.logsf(0, np.exp(m))
        ),
    ),
    "Mixture": (
        "Mixture([0.4, 0.6], Normal(m, 1.0), Laplace(0.0, 2.0))",
        lambda y, m: np.log(0.4 * st.norm.pdf(y, m) + 0.6 * st.laplace.pdf(y, 0.0, 2.0)),
    ),
}
COUNTS = ("Poisson", "Hurdle")

pytestmark = pytest.mark.usefixtures("double_precision")


def model(draw: str, space: str = "Real 1", layer: str = "one") -> Any:
    torch.manual_seed(5)
    return loads(
        f"{HEAD}program p(x) : Token -> {space}\n    let m = {layer}(states(emb(x)))\n    observe v <- {draw}\n"
        "    return v\nexport p\n"
    ).morphism


def given(name: str, width: int = 1) -> tuple[Tensor, Tensor]:
    made = torch.Generator().manual_seed(6)
    x = torch.randint(0, 7, (5, 4), generator=made)
    y = torch.randint(0, 4, (5, 4, width), generator=made).double() + (0.0 if name in COUNTS else 0.25)
    return x, y


@pytest.mark.parametrize("name", NUMBERS)
def test_each_position_has_its_density(name: str) -> None:
    draw, density = NUMBERS[name]
    made, (x, y) = model(draw), given(name)
    run = made.run(x, condition({"v": y}), keep(("m",)), pointwise)
    each = density(y.numpy(), run.kept["m"].detach().numpy())
    np.testing.assert_allclose(run.log_joint().detach(), each.sum((1, 2)), rtol=1e-9)
    np.testing.assert_allclose(run.sites["v"].pointwise.detach().reshape(5, 4), each[..., 0], rtol=1e-9)
    # one number a position, as in a table
    np.testing.assert_allclose(made.log_joint(x, {"v": y[..., 0]}).detach(), each.sum((1, 2)), rtol=1e-9)


def test_vectors_at_each_position_and_draws() -> None:
    made, (x, y) = model("Normal(m, 1.5)", "Real 2", "two"), given("Normal", 2)
    run = made.run(x, condition({"v": y}), keep(("m",)))
    each = st.norm.logpdf(y.numpy(), run.kept["m"].detach().numpy(), 1.5)
    np.testing.assert_allclose(run.log_joint().detach(), each.sum((1, 2)), rtol=1e-9)
    with pytest.raises(InputProblem, match="expected values of shape"):
        made.log_joint(x, {"v": y[..., 0]})
    drawn = made.run(x, by_rows(5), seed(torch.Generator().manual_seed(1))).sites["v"].value
    assert tuple(drawn.shape) == (5, 4, 2)


def test_lists_of_a_table_are_sequences_of_numbers(tmp_path: Path) -> None:
    x, y = given("Normal")
    rows = zip(x.tolist(), y[..., 0].tolist(), strict=True)
    (tmp_path / "d.ndjson").write_text("".join(json.dumps({"x": a, "v": b}) + "\n" for a, b in rows))
    text = (
        f"{HEAD}program p(x) : Token -> Real 1\n    let m = one(states(emb(x)))\n    observe v <- Normal(m, 1.5)\n"
        "    return v\nexport p\n"
    )
    read = prepare(make_job(tmp_path, text, "p", algorithm="svi", data="ndjson:d.ndjson"), analyse(text))
    inputs, data = read.train.batch(torch.arange(5))
    made = model("Normal(m, 1.5)")
    np.testing.assert_allclose(made.log_joint(inputs, data).detach(), made.log_joint(x, {"v": y}).detach(), rtol=1e-6)
