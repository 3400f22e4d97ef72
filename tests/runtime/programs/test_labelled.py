"""Frames, series and arrays with labels go in where tensors do: by the names of their axes and elements."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
import xarray as xr

from qvr_core.dsl import loads
from qvr_core.inference import ELBO, MCMC, SVI, AutoNormalGuide, NUTSKernel, Predictive, trace
from qvr_core.runtime.values.errors import InputProblem

SCHOOLS = """\
object School : {ann, bob, eve}
program schools : School -> School
    data spread : School
    sample mu <- Normal(0.0, 5.0)
    sample theta : School <- Normal(mu, 2.0)
    let twice = 2.0 * theta
    observe y : School <- Normal(theta, spread)
    return theta
"""
MODEL = loads(SCHOOLS).morphism
Y, SPREAD = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([0.5, 1.0, 1.5])
THETA = torch.tensor([0.1, 0.2, 0.3])
WANTED = MODEL.log_joint(None, {"mu": 0.7, "theta": THETA, "y": Y, "spread": SPREAD})
TURNED = ["eve", "ann", "bob"]


def turned(values: torch.Tensor) -> list[float]:
    return [values[2].item(), values[0].item(), values[1].item()]


@pytest.mark.parametrize(
    "of",
    [
        lambda values: pl.Series(values.tolist()),
        lambda values: pd.Series(values.tolist()),
        lambda values: pd.Series(values.tolist(), dtype="Float64"),
        lambda values: pd.Series(turned(values), index=TURNED),
        lambda values: xr.DataArray(values.numpy(), dims="school"),
        lambda values: xr.DataArray(turned(values), dims="School", coords={"School": TURNED}),
        lambda values: xr.DataArray(turned(values), dims="anything", coords={"anything": TURNED}),
    ],
    ids=["polars", "pandas", "nullable", "index", "xarray", "coordinates", "other dim"],
)
def test_a_density_of_labelled_values(of: Any) -> None:
    given = {"mu": 0.7, "theta": of(THETA), "y": of(Y), "spread": of(SPREAD)}
    torch.testing.assert_close(MODEL.log_joint(None, given), WANTED, check_dtype=False)


@pytest.mark.parametrize(
    "frame",
    [
        pl.DataFrame({"y": turned(Y), "spread": turned(SPREAD), "school": TURNED, "other": [1, 2, 3]}),
        pd.DataFrame({"y": turned(Y), "spread": turned(SPREAD), "School": TURNED}, index=[7, 5, 6]),
        pd.DataFrame({"y": turned(Y), "spread": turned(SPREAD)}, index=pd.Index(TURNED, name="school")),
        pd.DataFrame({"y": turned(Y), "spread": turned(SPREAD)}, index=TURNED),
        xr.Dataset({"y": ("School", turned(Y)), "spread": ("School", turned(SPREAD))}, {"School": TURNED}),
    ],
    ids=["polars", "pandas", "named index", "index", "dataset"],
)
def test_a_frame_as_observations(frame: Any) -> None:
    found = MODEL.taken(frame)
    assert set(found) == {"y", "spread"}
    assert [float(one) for one in found["y"]] == Y.tolist()
    assert [float(one) for one in found["spread"]] == SPREAD.tolist()
    latents = {"mu": 0.7, "theta": THETA}
    torch.testing.assert_close(MODEL.log_joint(None, {**found, **latents}), WANTED, check_dtype=False)
    assert "y" in trace(MODEL, None, frame).log_likelihood
    guide = AutoNormalGuide(MODEL, observed_names={"y"}, observations=frame)
    svi = SVI(MODEL, guide, torch.optim.Adam(guide.parameters()), ELBO())
    assert np.isfinite(svi.step(None, frame)) and np.isfinite(svi.evaluate(None, frame))


def test_a_posterior_as_it_is_stored() -> None:
    given = {"y": Y, "spread": SPREAD}
    fit = MCMC(NUTSKernel(), num_warmup=50, num_samples=20, num_chains=2, seed=1).run(MODEL, None, given)
    stored = fit.to_arviz()["posterior"]
    assert "twice" in stored.to_dataset()
    again = Predictive(MODEL, posterior_samples=fit.joined()).log_likelihood(None, given)["y"]
    for posterior in (
        stored,
        stored.to_dataset(),
        stored.to_dataset().sel(School=TURNED),
        stored.to_dataset().transpose("School", "draw", "chain"),
        stored.to_dataset().stack(sample=("chain", "draw")),
    ):
        found = Predictive(MODEL, posterior_samples=posterior).log_likelihood(None, given)["y"]
        torch.testing.assert_close(found, again)
    densities = MODEL.log_joint(None, {**given, "mu": stored["mu"], "theta": stored["theta"]})
    one = {name: fit.joined()[name][7] for name in ("mu", "theta")}
    torch.testing.assert_close(densities[7:8], MODEL.log_joint(None, {**given, **one}), check_dtype=False)


TABLE = """\
object Row : FinSet 2
object Feature : {age, size}
object Kind : {cat, dog}
program p : Row -> Row
    data x : Row * Feature
    data kind : Row -> Kind
    sample b : Feature <- Normal(0.0, 1.0)
    sample a : Kind <- Normal(0.0, 1.0)
    let eta = matmul(x, b) + a[kind]
    observe y : Row <- Normal(eta, 1.0)
    return b
"""


@pytest.mark.parametrize(
    "x",
    [
        pl.DataFrame({"size": [2.0, 4.0], "age": [1.0, 3.0]}),
        pd.DataFrame({"size": [2.0, 4.0], "age": [1.0, 3.0]}),
        xr.DataArray([[2.0, 4.0], [1.0, 3.0]], dims=["feature", "row"], coords={"feature": ["size", "age"]}),
    ],
)
def test_a_matrix_and_the_words_of_a_set(x: Any) -> None:
    model = loads(TABLE).morphism
    found = model.taken({"x": x, "kind": pl.Series(["dog", "cat"]), "y": [0.0, 1.0]})
    assert found["x"].tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert found["kind"].tolist() == [1, 0]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"y": pd.Series([1.0, 2.0, 3.0], index=["ann", "bob", "kim"])},
            "`y`: the elements of `School` are `ann`, `bob`, `eve`, and the array has `ann`, `bob`, `kim`",
        ),
        (
            {"y": xr.DataArray([1.0, 2.0], dims="School", coords={"School": ["ann", "bob"]})},
            "the elements of `School` are `ann`, `bob`, `eve`, and the array has `ann`, `bob`",
        ),
        ({"y": pl.Series(["a", "b", "c"])}, "it holds `a`, where numbers are expected"),
        (pl.DataFrame({"z": [1, 2, 3]}), "`schools` has `mu`, `spread`, `theta`, `y`, and the table has `z`"),
    ],
)
def test_labels_that_are_not_those_of_the_program(given: Any, said: str) -> None:
    with pytest.raises(InputProblem, match=re.escape(said)):
        MODEL.taken(given)


def test_the_axes_of_another_set() -> None:
    model = loads(TABLE).morphism
    wrong = xr.DataArray(np.zeros((2, 2)), dims=["row", "kind"])
    with pytest.raises(InputProblem, match=r"`x`: it runs over `Row \* Feature`, and the array has the axes row, kind"):
        model.taken({"x": wrong})


PLAIN = """\
object Row : FinSet 3
program p : Row -> Row
    data x : Row
    sample b <- Normal(0.0, 1.0)
    observe y : Row <- Normal(b * x, 1.0)
    return b
"""


def test_elements_that_are_only_counted() -> None:
    model = loads(PLAIN).morphism
    filtered = pd.Series([1.0, 2.0, 3.0], index=[0, 4, 7])
    assert model.taken({"x": filtered, "y": filtered})["x"].tolist() == [1.0, 2.0, 3.0]
    with pytest.raises(InputProblem, match=r"`y`: along `Row` it has `7`, `4`, `0`, and `x` has `0`, `4`, `7`"):
        model.taken({"x": filtered, "y": filtered[::-1]})
    with pytest.raises(InputProblem, match=r"its index is `2`, `1`, `0`, .*`sort_index\(\)`.*`reset_index"):
        model.taken({"x": pd.Series([1.0, 2.0, 3.0])[::-1]})
    array = xr.DataArray([3.0, 1.0, 2.0], dims="Row", coords={"Row": [2, 0, 1]})
    assert model.taken({"x": array})["x"].tolist() == [1.0, 2.0, 3.0]


NETWORK = """\
object Point : Real 2
object Kind : {cat, dog}
morphism head : Point -> Kind [role=kernel, hidden_dim=4] ~ Categorical
program classify : Point -> Kind
    observe y : Kind <- head
    return y
"""


def test_rows_of_an_input() -> None:
    model = loads(NETWORK).morphism
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    y = torch.tensor([0, 1, 1])
    wanted = model.log_joint(x, {"y": y})
    frame = pd.DataFrame(x.numpy(), columns=["u", "v"])
    for given in (frame, pl.DataFrame(frame.to_dict("list")), xr.DataArray(x.numpy(), dims=["row", "column"])):
        torch.testing.assert_close(model.log_joint(given, {"y": pl.Series(y.tolist())}), wanted)
    assert Predictive(model, num_samples=5)(frame, {"y": pd.Series(y.tolist())})["y"].shape == (5, 3)
