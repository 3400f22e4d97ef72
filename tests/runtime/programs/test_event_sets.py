"""Vectors and matrices that run over a set: beside their draw it names an axis of one draw, not a plate."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.stats  # pyright: ignore[reportMissingTypeStubs]
import torch
from numpy.random import Generator, default_rng

from qvr_core.analysis import analyse
from qvr_core.dsl import loads
from qvr_core.ide.axes import site_type
from qvr_core.runtime.programs.labelled.axes import site_axes
from qvr_core.semantics.types.diagnostics import Severity
from qvr_core.semantics.types.model.steps import SampleModel

stats: Any = scipy.stats

HEAD = """\
object Time : FinSet 5
object School : FinSet 2
object Topic : FinSet 3
program p : Time -> Time
    data k : Time * Time
    data m : School * Time
    data a : Topic
    data b : School * Topic
    sample s <- HalfNormal(1.0)
"""


pytestmark = pytest.mark.usefixtures("double_precision")


def covariance() -> Any:
    root = default_rng(1).normal(size=(5, 5))
    return root @ root.T + np.eye(5)


DATA = {
    "k": covariance(),
    "m": default_rng(2).normal(size=(2, 5)),
    "a": np.array([0.5, 1.0, 2.0]),
    "b": np.array([[0.5, 1.0, 2.0], [1.0, 2.0, 3.0]]),
}


def normal(value: Any, mean: Any = 0.0) -> float:
    return float(np.sum(stats.multivariate_normal.logpdf(value - mean, np.zeros(5), DATA["k"])))


def dirichlet(value: Any, alpha: Any) -> float:
    alphas = np.broadcast_to(alpha, value.shape).reshape(-1, 3)
    return sum(stats.dirichlet.logpdf(x, y) for x, y in zip(value.reshape(-1, 3), alphas, strict=True))


def walk(value: Any) -> float:
    return float(stats.norm.logpdf(np.diff(value, prepend=0.0, axis=-1)).sum())


def simplices(generator: Generator, *shape: int) -> Any:
    return generator.dirichlet(np.ones(3), size=shape)


COVARIANCE = "covariance_matrix=k"


def near_m(value: Any) -> float:
    return normal(value, DATA["m"])


def like_a(value: Any) -> float:
    return dirichlet(value, DATA["a"])


def like_b(value: Any) -> float:
    return dirichlet(value, DATA["b"])


def like_half(value: Any) -> float:
    return dirichlet(value, 0.5)


CASES: list[tuple[str, str, Any]] = [
    (f"x : Time <- MultivariateNormal(0.0, {COVARIANCE})", "Time", normal),
    (f"x : School * Time <- MultivariateNormal(m, {COVARIANCE})", "School * Time", near_m),
    (f"x : School <- MultivariateNormal(m, {COVARIANCE})", "School * Time", near_m),
    (f"x : School * Time <- MultivariateNormal(0.0, {COVARIANCE})", "School * Time", normal),
    (
        f"x[s : School] : Time <- MultivariateNormal(m[s], {COVARIANCE})",
        "School * Time",
        near_m,
    ),
    ("x : Topic <- Dirichlet(a)", "Topic", like_a),
    ("x : School * Topic <- Dirichlet(a)", "School * Topic", like_a),
    ("x : School * Topic <- Dirichlet(b)", "School * Topic", like_b),
    ("x : School <- Dirichlet(b)", "School * Topic", like_b),
    ("x : School * Topic <- Dirichlet(0.5)", "School * Topic", like_half),
    ("x : School * Topic <- Dirichlet(0.5) [over=Topic]", "School * Topic", like_half),
    ("x : Topic <- Dirichlet(a) [iid_over=School]", "School * Topic", like_a),
    ("x[s : School] : Topic <- Dirichlet(0.5)", "School * Topic", like_half),
    ("x : Topic * Topic <- Dirichlet(a)", "Topic * Topic", like_a),
    ("x : School * Time <- GaussianRandomWalk(1.0)", "School * Time", walk),
    ("x : Time <- MultivariateNormal(0.0, scale_tril=cholesky(k))", "Time", normal),
]
SIZES = {"Time": 5, "School": 2, "Topic": 3}


@pytest.mark.parametrize(("draw", "axes", "density"), CASES)
def test_the_density_is_that_of_vectors_over_the_set(draw: str, axes: str, density: Any) -> None:
    text = f"{HEAD}    sample {draw}\n    return x\n"
    snapshot = analyse(text)
    program = snapshot.model.programs["p"]
    site = next(step.site for step in program.steps if isinstance(step, SampleModel) and step.site.name == "x")
    assert site_type(site, "x") == axes
    names = axes.split(" * ")
    shape = [SIZES[name] for name in names]
    generator = default_rng(3)
    value = simplices(generator, *shape[:-1]) if names[-1] == "Topic" else generator.normal(size=shape)
    model = loads(text).morphism
    assert [axis.name for axis in site_axes(model.program)["x"]] == names
    given = {name: torch.as_tensor(each) for name, each in {**DATA, "s": 1.0, "x": value[None]}.items()}
    wanted = density(value) + stats.halfnorm.logpdf(1.0)
    assert float(model.log_joint(None, given).sum()) == pytest.approx(wanted, rel=1e-9)


def test_an_observed_vector_over_its_set_is_one_vector() -> None:
    text = f"{HEAD}    observe y : Time <- MultivariateNormal(s, {COVARIANCE})\n    return s\n"
    y = default_rng(4).normal(size=5)
    given = {name: torch.as_tensor(each) for name, each in {**DATA, "s": 1.0, "y": y}.items()}
    found = float(loads(text).morphism.log_joint(None, given).sum())
    assert found == pytest.approx(normal(y, 1.0) + stats.halfnorm.logpdf(1.0), rel=1e-9)


@pytest.mark.parametrize(
    ("draw", "shape"),
    [
        ("x : Topic <- LKJCholesky(2.0)", (3, 3)),
        ("x : School * Topic <- LKJCorrelation(2.0)", (2, 3, 3)),
        ("x[s : School] : Topic <- LKJCholesky(2.0)", (2, 3, 3)),
        ("x : Time <- Wishart(6.0, scale_tril=cholesky(k))", (5, 5)),
        ("x : School * Time <- MatrixNormal(m, eye(2), eye(5))", (2, 5)),
    ],
)
def test_draws_of_matrices_over_sets(draw: str, shape: tuple[int, ...]) -> None:
    text = f"{HEAD}    sample {draw}\n    return x\n"
    assert [found.message for found in analyse(text).diagnostics() if found.severity is Severity.ERROR] == []
    data = {name: torch.as_tensor(value) for name, value in DATA.items()}
    drawn = loads(text).morphism.rsample(None, observations=data)
    assert drawn.reshape(shape).shape == shape
