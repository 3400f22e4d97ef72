"""One leapfrog step, a choice by chain, and the first step size: each beside the same computed in another way."""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from qvr_core.arrays.engine import arrays
from qvr_core.inference.mcmc.hamiltonian import (
    State,
    checked_step_size,
    chosen,
    first_step_size,
    in_range,
    kinetic,
    leapfrog,
    picked,
    state_at,
    uniforms,
)
from qvr_core.inference.mcmc.mass import Array, DenseMass, DiagonalMass
from qvr_core.runtime.values.errors import InputProblem

PRECISION = np.array([[2.0, 0.7], [0.7, 0.5]])


@dataclass
class Normal:
    """−½ qᵀ P q; where the first coordinate is beyond `edge`, no number."""

    precision: Array
    edge: float = math.inf
    flat: float = 1.0

    def value_and_grad(self, q: Any) -> tuple[Any, Any]:
        """(C,) and (C, D)."""
        numbers = q.numpy()
        value = -0.5 * self.flat * np.einsum("ci,ij,cj->c", numbers, self.precision, numbers)
        value = np.where(numbers[:, 0] > self.edge, np.nan, value)
        return arrays.from_numpy(value), arrays.from_numpy(-self.flat * numbers @ self.precision)


def potential(*of: Any) -> Any:
    return Normal(*of)


def dense() -> DenseMass:
    mass = DenseMass(1, 2, np.float64)
    generator = np.random.default_rng(3)
    for _ in range(40):
        mass.observe(generator.standard_normal((1, 2)) @ np.array([[1.0, 0.4], [0.0, 0.8]]))
    mass.update()
    return mass


@pytest.mark.parametrize("step", [0.3, -0.3])
def test_a_step_is_the_linear_map_that_it_is_of_a_normal(step: float) -> None:
    mass, start = dense(), np.array([[0.4, -1.1]])
    momentum = np.array([[0.9, 0.2]])
    state, end = leapfrog(
        potential(PRECISION), mass, state_at(potential(PRECISION), start), momentum, np.array([[step]])
    )
    # q' = (I − ε²/2 M⁻¹P) q + ε M⁻¹ p, p' = p − ε/2 P (q + q')
    inverse = mass.inverse[0]
    there = (np.eye(2) - 0.5 * step**2 * inverse @ PRECISION) @ start[0] + step * inverse @ momentum[0]
    np.testing.assert_allclose(state.q[0], there, rtol=1e-13)
    np.testing.assert_allclose(end[0], momentum[0] - 0.5 * step * PRECISION @ (start[0] + there), rtol=1e-13)
    np.testing.assert_allclose(state.log_density, [-0.5 * there @ PRECISION @ there], rtol=1e-13)
    np.testing.assert_allclose(state.gradient[0], -PRECISION @ there, rtol=1e-13)
    np.testing.assert_allclose(kinetic(end, mass.velocity(end)), [0.5 * end[0] @ inverse @ end[0]], rtol=1e-13)


def test_a_density_that_is_no_number_is_none_and_others_stay() -> None:
    state = state_at(potential(PRECISION, 1.0), np.array([[2.0, 0.0], [0.5, 0.0]]))
    assert state.log_density.tolist() == [-math.inf, -0.25]


@pytest.mark.parametrize("mask", [[True], [False], [True, False], [False, True, True]])
def test_chains_of_the_mask_take_the_new_state(mask: list[bool]) -> None:
    generator, count = np.random.default_rng(0), len(mask)

    def drawn() -> State:
        return State(generator.random((count, 4)), generator.random(count), generator.random((count, 4)))

    new, old = drawn(), drawn()
    taken = chosen(np.array(mask), new, old)
    for at, goes in enumerate(mask):
        source = new if goes else old
        for field in ("q", "log_density", "gradient"):
            np.testing.assert_array_equal(getattr(taken, field)[at], getattr(source, field)[at])
        cube = np.stack([old.q, new.q], axis=2)
        np.testing.assert_array_equal(picked(np.array(mask), cube, -cube)[at], cube[at] if goes else -cube[at])


def test_a_chain_that_rests_draws_nothing() -> None:
    generators = [np.random.default_rng(seed) for seed in range(3)]
    drawn = uniforms(generators, np.array([True, False, True]))
    assert drawn[[0, 2]].tolist() == [np.random.default_rng(0).random(), np.random.default_rng(2).random()]
    assert generators[1].random() == np.random.default_rng(1).random()
    assert 0.0 < drawn[1] < 1.0
    with pytest.raises(ValueError, match="zip"):
        uniforms(generators, np.array([True]))


def accepted(precision: float, q: float, p: float, step: float, target: float) -> bool:
    """Whether one step of an oscillator of unit mass changes its energy by less than − log `target`."""
    half = p - 0.5 * step * precision * q
    there = q + step * half
    end = half - 0.5 * step * precision * there
    return 0.5 * (precision * q**2 + p**2) - 0.5 * (precision * there**2 + end**2) > math.log(target)


@pytest.mark.parametrize("target", [0.5, 0.8])
@pytest.mark.parametrize("guess", [1e-3, 0.7, 90.0])
def test_the_first_step_size_is_where_acceptance_crosses_its_target(guess: float, target: float) -> None:
    scales = np.array([400.0, 1.0, 1e-4])  # chains of one coordinate, narrow to wide

    def one(q: Any) -> tuple[Any, Any]:
        numbers = q.numpy()
        return arrays.from_numpy(-0.5 * scales * numbers[:, 0] ** 2), arrays.from_numpy(-scales[:, None] * numbers)

    oscillators: Any = SimpleNamespace(value_and_grad=one)
    start = np.array([[0.08], [-1.3], [60.0]])
    mass = DiagonalMass(3, 1, np.float64)
    found = first_step_size(
        oscillators, mass, state_at(oscillators, start), np.full(3, guess),
        [np.random.default_rng(seed) for seed in range(3)], target,
    )  # fmt: skip
    for at, scale in enumerate(scales):
        momentum = np.random.default_rng(at).standard_normal()
        good = [accepted(scale, start[at, 0], momentum, step, target) for step in (guess, found[at])]
        factor = 2.0 if good[0] else 0.5
        assert good[1] is not good[0]
        steps = math.log(found[at] / guess, factor)
        assert steps == pytest.approx(round(steps)) and steps > 0
        between = [guess * factor**n for n in range(1, round(steps))]
        assert all(accepted(scale, start[at, 0], momentum, step, target) is good[0] for step in between)


def test_steps_into_nowhere_are_too_long_and_a_flat_density_has_an_end() -> None:
    mass, generators = DiagonalMass(1, 2, np.float64), [np.random.default_rng(1)]
    speed = np.random.default_rng(1).standard_normal(2)[0]
    assert speed > 0.2  # towards the edge at 0.1, beyond which a step of 1 ends
    walled = potential(1e-6 * np.eye(2), 0.1)
    [found] = first_step_size(walled, mass, state_at(walled, np.zeros((1, 2))), np.ones(1), generators, 0.8)
    assert found * speed < 0.1 < 2 * found * speed
    flat = potential(np.eye(2), math.inf, 0.0)
    assert first_step_size(flat, mass, state_at(flat, np.ones((1, 2))), np.ones(1), generators, 0.8) == [2.0**50]


def test_settings_that_cannot_be_name_themselves() -> None:
    assert checked_step_size("NUTSKernel", 0.25) == 0.25
    with pytest.raises(TypeError) as found:
        checked_step_size("HMCKernel", "model")
    assert str(found.value) == (
        "HMCKernel: step_size must be a number, not str; a kernel takes no model, that goes to "
        "`MCMC(kernel, …).run(model, x, observations)`"
    )
    for value in (0.0, math.inf, math.nan):
        with pytest.raises(InputProblem, match=r"^HMCKernel: step_size must be greater than 0, not (0|inf|nan)$"):
            checked_step_size("HMCKernel", value)
    for value in (0.0, 1.0):
        with pytest.raises(InputProblem, match=r"^NUTS: target must be between 0 and 1, not [01]$"):
            in_range("NUTS", "target", value, 0.0, 1.0)
