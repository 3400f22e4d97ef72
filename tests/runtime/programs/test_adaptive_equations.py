"""`solve` with control of its error: values, gradients, solutions that end, data that do not ascend."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.integrate as si
import scipy.stats as st
import torch

from qvr_core import dsl
from qvr_core.inference import MCMC, NUTSKernel
from qvr_core.inference.machine.density import machine_density, text_of
from qvr_core.inference.mcmc.potential import ProgramPotential, potential_of
from qvr_core.runtime.programs.chains.adaptive import TooManySteps, patient_for
from qvr_core.runtime.values.errors import InputProblem
from tests.inference.machine.interpreted import interpreted
from tests.runtime.programs.test_equations import CASES, HEAD, POINTS, WHEN

pytestmark = pytest.mark.usefixtures("double_precision")


def _adaptive(name: str, options: str) -> tuple[str, Callable[[float], Any]]:
    step, value = CASES[name]
    assert "method=rk4, steps=40" in step
    return step.replace("method=rk4, steps=40", options), value


def _model(step: str, y: Any, head: str = HEAD) -> tuple[Any, dict[str, Any]]:
    binders = step[1 : step.index("]") + 1]
    read = ", ".join(part.split(":")[0].strip() for part in binders[1:-1].split(","))
    text = f"{head}    let {step}\n    observe y{binders} <- Normal(z[{read}], 0.1)\n    return m\n"
    return dsl.loads(text).morphism, {"when": torch.as_tensor(WHEN), "y": torch.as_tensor(y)}


METHODS = pytest.mark.parametrize("method", ["rk45", "stiff"])
SOLVED = [
    # by both methods in `make test`; of the others one each, since a solution and its chains are seconds
    pytest.param(name, method, marks=() if name == "predation" or number % 2 == first else pytest.mark.statistical)
    for number, name in enumerate(CASES)
    for first, method in enumerate(("rk45", "stiff"))
]


@pytest.mark.parametrize(("name", "method"), SOLVED)
@pytest.mark.sampled(2)
def test_the_density_is_that_of_the_solution_to_the_tolerance(name: str, method: str) -> None:
    # of the lower order many more steps are as exact
    ends = POINTS[0], POINTS[-1]
    tight = ("rtol=1e-10, atol=1e-10", 1e-7, ends) if method == "rk45" else ("rtol=1e-8, atol=1e-8", 1e-5, ends)
    for options, tolerance, points in (("rtol=1e-6, atol=1e-6", 2e-4, POINTS), tight):
        step, value = _adaptive(name, f"method={method}, {options}")
        y = value(1.1) + 0.05
        model, data = _model(step, y)

        def expected(m: float, value: Callable[[float], Any] = value, y: Any = y) -> float:
            return float(st.norm(1.0, 0.5).logpdf(m) + st.norm(value(m), 0.1).logpdf(y).sum())

        for point in points:
            m = torch.tensor([point], dtype=torch.float64, requires_grad=True)
            found = model.log_joint(None, {"m": m, **data})
            (slope,) = torch.autograd.grad(found.sum(), m)
            assert found.item() == pytest.approx(expected(point), abs=tolerance, rel=tolerance)
            differences = (expected(point + 1e-4) - expected(point - 1e-4)) / 2e-4
            assert slope.item() == pytest.approx(differences, rel=max(1e-4, tolerance), abs=1e-2)


@pytest.mark.parametrize(("name", "method"), SOLVED)
@pytest.mark.sampled(2)
def test_machine_code_and_autograd_give_the_same(name: str, method: str) -> None:
    step, value = _adaptive(name, f"method={method}, rtol=1e-6")
    model, data = _model(step, value(1.1) + 0.05)
    potential = potential_of(model, None, data)
    text, _ = text_of(potential)
    assert text.adaptive
    for point in (-1.0, 0.4, 2.0):
        q = np.array([point])
        value_there, gradient = potential.value_and_grad(torch.as_tensor(q)[None])
        found, slope = interpreted(text, 1)(q)
        assert found == pytest.approx(value_there.item(), rel=1e-11)
        assert slope[0] == pytest.approx(gradient.item(), rel=1e-9)
    run = MCMC(NUTSKernel(), 3, 2, 1, seed=1, engine="compiled").run(model, None, data)
    assert run.engine == "compiled"


def test_an_equation_does_not_depend_on_those_beside_it() -> None:
    step = "z[t : Time, g : G] = solve(logistic, 0.1, (g + 1.0) * m, start=0.0, at=when)"
    alone = "z[t : Time] = solve(logistic, 0.1, m, start=0.0, at=when)"
    together, data = _model(step, np.zeros((6, 2)))
    single, own = _model(alone, np.zeros(6))
    m = torch.tensor([1.3], dtype=torch.float64)
    one, two = (single.log_joint(None, {"m": k * m, **own}) for k in (1.0, 2.0))
    prior = st.norm(1.0, 0.5).logpdf
    both = together.log_joint(None, {"m": m, **data}).item() + prior(2.6)
    assert both == pytest.approx((one + two).item(), abs=1e-13)


SUDDEN = HEAD.replace("def forced", "def sudden(t, z, r) = r * z * z\ndef forced")


@pytest.mark.parametrize(
    ("options", "first", "exists"),
    [
        ("", "0.1", True),
        ("", "5.0", False),
        ("max_steps=2, rtol=1e-12, atol=1e-12", "0.1", False),
        ("", "sqrt(-m)", False),
        ("method=stiff", "0.1", True),
        ("method=stiff, max_steps=200", "5.0", False),
        ("method=stiff, max_steps=2, rtol=1e-12, atol=1e-12", "0.1", False),
        ("method=stiff", "sqrt(-m)", False),
    ],
)
@pytest.mark.sampled(2)
def test_where_there_is_no_solution_the_density_is_impossible(options: str, first: str, exists: bool) -> None:
    """dz/dt = z² is infinite at 1 / z0: within the times or behind them."""
    rest = f", {options}" if options else ""
    model, data = _model(f"z[t : Time] = solve(sudden, {first}, m, start=0.0, at=when{rest})", np.zeros(6), SUDDEN)
    found = model.log_joint(None, {"m": torch.tensor([1.0], dtype=torch.float64), **data}).item()
    assert math.isfinite(found) if exists else found == -math.inf
    potential = potential_of(model, None, data)
    assert math.isfinite(interpreted(text_of(potential)[0], 1)(np.array([1.0]))[0]) == exists


SWING = """
object Time : FinSet 6
object Side : {a, b}
def swing(t, z, rate) = [rate * z[b], -rate * z[a]]
program p : Time -> Real 1
    data when : Time
    sample m <- Normal(0.0, 1.0)
    let z[t : Time, s : Side] = solve(swing, [1.0, 0.0], exp(m), start=0.0, at=when)
    observe y[t : Time] <- Normal(z[t, a], 0.1)
    return m
"""


@pytest.mark.long
def test_a_start_of_a_hundred_thousand_steps_is_compared_nearer_the_middle() -> None:
    data = {"when": torch.as_tensor(WHEN), "y": torch.zeros(6).double()}
    potential = potential_of(dsl.loads(SWING).morphism, None, data)
    assert isinstance(potential, ProgramPotential)
    far = np.array([10.0])
    with pytest.raises(TooManySteps), patient_for(500):
        potential.log_densities(far[None])
    # it is taken where it was compared, and is right where it was not
    made = machine_density(potential, far)
    assert made(np.array([1.0]))[0] == pytest.approx(potential.log_densities(np.array([[1.0]]))[0], abs=1e-9)
    assert math.isfinite(made(far)[0])


@pytest.mark.parametrize("method", ["rk4", "rk45", "stiff"])
def test_a_start_behind_the_first_time_is_impossible(method: str) -> None:
    model, data = _model(f"z[t : Time] = solve(logistic, 0.1, 1.0, start=m, at=when, method={method})", np.zeros(6))
    densities = [
        model.log_joint(None, {"m": torch.tensor([m], dtype=torch.float64), **data}).item() for m in (0.1, 0.2, 0.3)
    ]
    assert math.isfinite(densities[0]) and math.isfinite(densities[1]) and densities[2] == -math.inf


@pytest.mark.parametrize(
    ("step", "when", "said"),
    [
        ("z[t : Time] = solve(logistic, 0.1, m, start=0.0, at=when)", [0.1, 0.3, 0.2, 0.4, 0.5, 0.6],
         r"`when\[2\]` is 0.2, and `when\[1\]` before it 0.3"),
        ("z[t : Time] = solve(logistic, 0.1, m, start=0.2, at=when, method=rk4)", [0.1, 0.3, 0.4, 0.4, 0.5, 0.6],
         r"`when\[0\]` is 0.1, before the start 0.2"),
    ],
)  # fmt: skip
def test_times_that_do_not_ascend_are_told_with_their_place(step: str, when: list[float], said: str) -> None:
    model, data = _model(step, np.zeros(6))
    data["when"] = torch.tensor(when, dtype=torch.float64)
    with pytest.raises(InputProblem, match=said):
        model.log_joint(None, {"m": torch.tensor([1.0], dtype=torch.float64), **data})
    with pytest.raises(InputProblem, match=said):
        MCMC(NUTSKernel(), 3, 2, 1, seed=1).run(model, None, data)


@METHODS
def test_gradients_reach_first_states_arguments_and_the_start(method: str) -> None:
    """Against differences of a tight solution of scipy: vectors, a state that is a latent twice, a late start."""
    text = """
object Time : FinSet 6
object State : {first, second}
def rate(t, z, k, w) = [w[0] * z[second] - k * z[first] * t, -w[1] * z[first] + cos(k * t)]
program p : One -> One
    data when : Time
    sample k <- Normal(0.5, 1.0)
    sample w[a : State] <- Normal(1.0, 1.0)
    let z[t : Time, a : State] = solve(rate, [k, w[1]], k, w, start=-k * k, at=when, METHOD)
    observe y[t : Time, a : State] <- Normal(z[t, a], 0.5)
    return k
"""
    # of the lower order many more steps are as exact
    off = 1e-9 if method == "rk45" else 1e-8
    model = dsl.loads(text.replace("METHOD", f"method={method}, rtol={off}, atol={off}")).morphism
    data = {"when": torch.as_tensor(WHEN), "y": torch.zeros(6, 2, dtype=torch.float64)}
    potential = potential_of(model, None, data)
    density = interpreted(text_of(potential)[0], 3)

    def expected(q: Any) -> float:
        k, w = q[0], q[1:]

        def rate(t: float, z: Any) -> Any:
            return [w[0] * z[1] - k * z[0] * t, -w[1] * z[0] + np.cos(k * t)]

        z = si.solve_ivp(rate, (-k * k, 2.0), [k, w[1]], t_eval=WHEN[[0, 1, 3, 4, 5]], rtol=1e-12, atol=1e-13).y.T
        terms = st.norm(z[[0, 1, 1, 2, 3, 4]], 0.5).logpdf(0.0).sum()
        return float(terms + st.norm(0.5, 1.0).logpdf(k) + st.norm(1.0, 1.0).logpdf(w).sum())

    for q in np.random.default_rng(3).normal(0.7, 0.3, (3, 3)):
        value, slope = density(q)
        other, gradient = potential.value_and_grad(torch.as_tensor(q)[None])
        assert value == pytest.approx(expected(q), rel=1e-8 if method == "rk45" else 1e-6)
        assert value == pytest.approx(other.item(), rel=1e-11)
        np.testing.assert_allclose(slope, gradient[0].numpy(), rtol=1e-9)
        differences = [(expected(q + step) - expected(q - step)) / 2e-5 for step in 1e-5 * np.eye(3)]
        np.testing.assert_allclose(slope, differences, rtol=1e-5, atol=1e-5)


ROBERTSON = """
object Time : FinSet 6
object Species : {a, b, c}
def reaction(t, z, k) = [-k[0] * z[a] + k[2] * z[b] * z[c],
    k[0] * z[a] - k[2] * z[b] * z[c] - k[1] * z[b]^2, k[1] * z[b]^2]
program robertson : Time -> Time
    data when : Time
    sample m <- Normal(0.0, 0.3)
    let rates = [0.04 * exp(m), 3e7, 1e4]
    let z[t : Time, s : Species] = solve(reaction, [1.0, 0.0, 0.0], rates, start=0.0, at=when, method=stiff, OPTIONS)
    observe y[t : Time, s : Species] <- Normal(z[t, s], [0.01, 1e-6, 0.01][s])
    return m
"""
LONG = np.array([0.4, 4.0, 40.0, 4e2, 4e4, 4e6])


def _robertson(m: float) -> Any:
    """The species at the times, by scipy to tight tolerances."""
    one, two, three = 0.04 * np.exp(m), 3e7, 1e4

    def rate(_: float, z: Any) -> Any:
        return [-one * z[0] + three * z[1] * z[2], one * z[0] - three * z[1] * z[2] - two * z[1] ** 2, two * z[1] ** 2]

    def jacobian(_: float, z: Any) -> Any:
        second = [one, -three * z[2] - 2 * two * z[1], -three * z[1]]
        return [[-one, three * z[2], three * z[1]], second, [0.0, 2 * two * z[1], 0.0]]

    made = si.solve_ivp(rate, (0.0, LONG[-1]), [1.0, 0.0, 0.0], "LSODA", LONG, jac=jacobian, rtol=1e-11, atol=1e-16)
    return made.y.T


@pytest.mark.long
def test_robertsons_reaction_is_solved_in_few_steps() -> None:
    """Rates from 0.04 to 3e7 over seven decades of time: density and gradient against LSODA."""
    y = _robertson(0.0) + 0.3 * np.array([0.01, 1e-6, 0.01])

    def expected(m: float) -> float:
        terms = st.norm(_robertson(m), [0.01, 1e-6, 0.01]).logpdf(y).sum()
        return float(terms + st.norm(0.0, 0.3).logpdf(m))

    for options, tolerance, points in (
        ("rtol=1e-6, atol=1e-10, max_steps=60", 1e-3, (-0.5, 0.0, 0.6)),
        ("rtol=1e-8, atol=1e-12, max_steps=250", 1e-5, (0.1,)),
    ):
        model = dsl.loads(ROBERTSON.replace("OPTIONS", options)).morphism
        data = {"when": torch.as_tensor(LONG), "y": torch.as_tensor(y)}
        density = interpreted(text_of(potential_of(model, None, data))[0], 1)
        for point in points:
            value, slope = density(np.array([point]))
            assert value == pytest.approx(expected(point), abs=tolerance, rel=tolerance)
            if point > 0.0:
                differences = (expected(point + 1e-5) - expected(point - 1e-5)) / 2e-5
                assert slope[0] == pytest.approx(differences, rel=tolerance, abs=1e-2)


@pytest.mark.long
def test_machine_code_and_autograd_give_the_same_of_robertsons_reaction() -> None:
    model = dsl.loads(ROBERTSON.replace("OPTIONS", "rtol=1e-4, atol=1e-8")).morphism
    data = {"when": torch.as_tensor(LONG), "y": torch.as_tensor(_robertson(0.0))}
    potential = potential_of(model, None, data)
    value, slope = interpreted(text_of(potential)[0], 1)(np.array([0.3]))
    other, gradient = potential.value_and_grad(torch.tensor([[0.3]], dtype=torch.float64))
    assert value == pytest.approx(other.item(), rel=1e-10)
    assert slope[0] == pytest.approx(gradient.item(), rel=1e-8)
    run = MCMC(NUTSKernel(), 3, 2, 1, seed=1, engine="compiled").run(model, None, data)
    assert run.engine == "compiled"
