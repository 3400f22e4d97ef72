"""The data file of ragged data: targets take it as it is, and the density has a gradient."""

from __future__ import annotations

import json
import math
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats
import torch
from typer.testing import CliRunner

from qvr_core.cli import app
from qvr_core.export.data_arrays import DataArray
from qvr_core.export.exported import Exported
from qvr_core.semantics.types.diagnostics import Origin
from qvr_core.semantics.types.spaces import Constrained, Real
from qvr_core.syntax.tree.names import Span

HEAD = "object Unit, Time : FinSet _\nobject Kind : {a, b, c}\nprogram p : One -> Real 1\n    data n : Unit -> Nat\n"
OUTCOMES = """    data wait : Unit * Time -> Real 1 [low=0.0] [lengths=n]
    data k : Unit * Time -> Bool [lengths=n]
    data c : Unit * Time -> Nat [lengths=n]
    data kind : Unit * Time -> Kind [lengths=n]
    sample s <- HalfNormal(1.0)
    observe wait[g : Unit, t : Time] <- Weibull(1.0, s)
    observe k[g : Unit, t : Time] <- Bernoulli(0.4)
    observe c[g : Unit, t : Time] <- Poisson(s)
    observe kind[g : Unit, t : Time] <- Categorical([0.2, 0.3, 0.5])
    return s
export p
"""
COVARIATE = """    data x : Unit * Time -> Real 1 [lengths=n]
    data y : Unit * Time -> Real 1 [lengths=n]
    sample b <- Normal(0.0, 1.0)
    observe y[g : Unit, t : Time] <- Normal(b * log(x[g, t]), 1.0)
    return b
export p
"""
SUMS = """    data x : Unit * Time -> Real 1 [lengths=n]
    sample b <- Normal(0.0, 1.0)
    let y[g : Unit] = n[g]
    observe y[g : Unit] <- Normal(b * sum(x[g, t] for t : Time), 1.0)
    return b
export p
"""
ROWS = "unit,time,wait,k,c,kind,x,y\nu,0,1.5,1,2,a,0.5,1.0\nu,1,0.5,0,3,c,2.0,-0.5\nv,0,0.7,1,1,b,3.0,0.2\n"


def written(
    folder: Path, steps: str, target: str, rows: str = ROWS, units: str = "u,2\nv,1\nw,0\n"
) -> tuple[str, dict[str, Any]]:
    """The export of a program and its data; the second unit has one value, the third none."""
    (folder / "p.qvr").write_text(HEAD + steps)
    (folder / "rows.csv").write_text(rows)
    (folder / "units.csv").write_text(f"unit,n\n{units}")
    output = folder / ("p.stan" if target == "stan" else "p.py")
    data = ["--data", f"csv:{folder / 'rows.csv'}", "--data", f"Unit=csv:{folder / 'units.csv'}"]
    done = CliRunner().invoke(app, ["export", str(folder / "p.qvr"), "--to", target, "-o", str(output), *data])
    assert done.exit_code == 0, done.output
    return output.read_text(), json.loads(output.with_suffix(".json").read_text())


@pytest.mark.parametrize(("target", "first"), [("stan", 1), ("torch", 0), ("numpyro", 0), ("pymc", 0)])
def test_cells_beyond_the_ends_are_legal_and_whole_numbers_are_written_so(
    target: str, first: int, tmp_path: Path
) -> None:
    _, data = written(tmp_path, OUTCOMES, target)
    assert data["wait"] == [[1.5, 0.5], [0.7, 0.7], [1.5, 1.5]]
    # `1.0 == 1`, but `array[…] int` takes the second alone
    assert str(data["k"]) == "[[1, 0], [1, 1], [1, 1]]"
    assert str(data["c"]) == "[[2, 3], [1, 1], [2, 2]]"
    assert str(data["kind"]) == str([[first, first + 2], [first + 1] * 2, [first] * 2])


def test_vectors_and_bounds_beyond_the_ends() -> None:
    gone = float("nan")
    origin = Origin(0, Span(0, 0))
    pair = DataArray("w", "real", (3, 2, 2), (), None, origin, space=Constrained("Simplex", 2), ends="n")
    low = DataArray("b", "real", (1, 2), (), None, origin, low=2.0, high=3.0, space=Real((1,)), ends=0)
    plain = DataArray("y", "real", (2,), (), None, origin, space=Real((1,)))
    exported = Exported("", {"w": "w", "b": "b", "y": "y"}, {}, {"w": pair, "b": low, "y": plain})
    weights = [[[gone, gone]] * 2, [[0.2, 0.8], [gone, gone]], [[0.4, 0.6], [0.5, 0.5]]]
    found = exported.data({"n": [0, 1, 2], "w": weights, "b": [[gone, gone]], "y": [1.0, gone]}, {})
    assert found["w"] == [[[0.2, 0.8]] * 2, [[0.2, 0.8]] * 2, [[0.4, 0.6], [0.5, 0.5]]]
    assert found["b"] == [[2.5, 2.5]]
    assert math.isnan(found["y"][1]), "what ends nowhere is not filled"


@contextmanager
def exported_module(text: str, data: dict[str, Any]) -> Generator[Any]:
    """The module of a torch export, whose file sets the default type of numbers."""
    scope: dict[str, Any] = {"__name__": "p"}
    before = torch.get_default_dtype()
    try:
        exec(text, scope)
        yield scope["P"](data)
    finally:
        torch.set_default_dtype(before)


def density_and_gradient(steps: str, folder: Path) -> tuple[float, float]:
    """Of the torch export, at b = 0.3."""
    with exported_module(*written(folder, steps, "torch")) as module:
        b = torch.tensor(0.3, requires_grad=True)
        density = module({"b": b})
        density.backward()
    assert b.grad is not None
    return density.item(), b.grad.item()


def test_a_ragged_covariate_leaves_density_and_gradient_finite(tmp_path: Path) -> None:
    density, gradient = density_and_gradient(COVARIATE, tmp_path)
    x, y = np.log([0.5, 2.0, 3.0]), np.array([1.0, -0.5, 0.2])
    expected = scipy.stats.norm.logpdf(0.3) + scipy.stats.norm.logpdf(y, 0.3 * x).sum()
    assert math.isclose(density, expected, rel_tol=1e-6)
    assert math.isclose(gradient, -0.3 + ((y - 0.3 * x) * x).sum(), rel_tol=1e-6)


def test_what_stands_beyond_the_ends_is_in_no_sum(tmp_path: Path) -> None:
    density, gradient = density_and_gradient(SUMS, tmp_path)
    x, y = np.array([2.5, 3.0, 0.0]), np.array([2.0, 1.0, 0.0])
    expected = scipy.stats.norm.logpdf(0.3) + scipy.stats.norm.logpdf(y, 0.3 * x).sum()
    assert math.isclose(density, expected, rel_tol=1e-6)
    assert math.isclose(gradient, -0.3 + ((y - 0.3 * x) * x).sum(), rel_tol=1e-6)


GAPS = """    data y : Unit * Time -> Real 1 [lengths=n]
    data x : Unit * Time -> Real 1 [lengths=n]
    sample b <- Normal(0.0, 1.0)
    let half[g : Unit, t : Time] = exp(b * y[g, t])
    observe x[g : Unit, t : Time] <- Normal(half[g, t], 1.0)
    observe y[g : Unit, t : Time] <- Normal(b * y[g, t - 1], 0.5) from Normal(0.2, 2.0) [missing=impute]
    return b
export p
"""
GAPPED = "unit,time,x,y\nu,0,1.5,\nu,1,0.5,0.4\nu,2,0.9,\nv,0,0.7,-0.3\n"


@pytest.mark.parametrize("target", ["stan", "torch", "numpyro", "pymc"])
def test_missing_cells_alone_are_no_numbers_in_the_data_file(target: str, tmp_path: Path) -> None:
    _, data = written(tmp_path, GAPS, target, GAPPED, "u,3\nv,1\nw,0\n")
    assert str(data["y"]) == "[[nan, 0.4, nan], [-0.3, -0.3, -0.3], [0.4, 0.4, 0.4]]"


def test_missing_cells_of_ragged_data_are_latents_that_steps_above_read_too(tmp_path: Path) -> None:
    text, data = written(tmp_path, GAPS, "torch", GAPPED, "u,3\nv,1\nw,0\n")
    with exported_module(text, data) as module:
        assert module.shapes() == {"y_missing": (2,), "b": ()}, "none for what does not exist"
        values = {"b": torch.tensor(0.3), "y_missing": torch.tensor([1.1, -0.6])}
        values = {name: value.double().requires_grad_() for name, value in values.items()}
        density = module(values)
        density.backward()
    b, y, x = 0.3, np.array([1.1, 0.4, -0.6, -0.3]), np.array([1.5, 0.5, 0.9, 0.7])
    log_density = scipy.stats.norm.logpdf
    expected = log_density(b) + log_density(x, np.exp(b * y)).sum()
    expected += log_density(y[[0, 3]], 0.2, 2.0).sum() + log_density(y[1:3], b * y[:2], 0.5).sum()
    assert math.isclose(density.item(), expected, rel_tol=1e-6)
    assert all(bool(torch.isfinite(value.grad).all()) for value in values.values() if value.grad is not None)
    first = (x[0] - np.exp(b * y[0])) * np.exp(b * y[0]) * b - (y[0] - 0.2) / 4.0 + (y[1] - b * y[0]) * b / 0.25
    assert values["y_missing"].grad is not None
    assert math.isclose(values["y_missing"].grad[0].item(), first, rel_tol=1e-5)
