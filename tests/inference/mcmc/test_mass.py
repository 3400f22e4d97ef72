"""Mass matrices: momenta have the covariance that positions had inverted, in the chain's own numbers, also restored."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from qvr_core.inference.mcmc.adaptation import DualAveraging
from qvr_core.inference.mcmc.mass import DenseMass, DiagonalMass, Mass

KINDS = pytest.mark.parametrize("kind", [DiagonalMass, DenseMass])
CHAINS, WIDTH = 2, 3


def seen(mass: Mass, count: int, seed: int = 0) -> None:
    """Draws that are correlated, each chain's in its own way."""
    generator = np.random.default_rng(seed)
    mixed = generator.standard_normal((CHAINS, WIDTH, WIDTH))
    for _ in range(count):
        mass.observe((mixed @ generator.standard_normal((CHAINS, WIDTH, 1)))[..., 0].astype(mass.inverse.dtype))


def generators() -> list[np.random.Generator]:
    return [np.random.default_rng(chain) for chain in range(CHAINS)]


@KINDS
def test_momenta_have_the_mass_as_their_covariance(kind: type[Mass]) -> None:
    mass = kind(CHAINS, WIDTH, np.float64)
    seen(mass, 40)
    mass.update()
    drawn = np.stack([mass.momentum([np.random.default_rng((draw, n)) for n in range(CHAINS)]) for draw in range(4000)])
    for chain in range(CHAINS):
        inverse = mass.inverse[chain] if mass.inverse.ndim == 3 else np.diag(mass.inverse[chain])
        wanted = np.linalg.inv(inverse)
        scale = np.sqrt(np.outer(np.diagonal(wanted), np.diagonal(wanted)))
        # five errors of a covariance of 4,000 draws
        assert (abs(np.cov(drawn[:, chain].T) - wanted) < 5 * np.sqrt(2 / 4000) * scale).all()
        np.testing.assert_allclose(mass.velocity(drawn[0])[chain], inverse @ drawn[0, chain], rtol=1e-12)


@KINDS
def test_every_chain_has_momenta_of_its_own_generator(kind: type[Mass]) -> None:
    mass = kind(CHAINS, WIDTH, np.float64)
    first = mass.momentum(generators())
    assert first.shape == (CHAINS, WIDTH)
    np.testing.assert_array_equal(first[1], mass.momentum(generators()[::-1])[0])


@KINDS
def test_numbers_are_those_of_the_chain(kind: type[Mass]) -> None:
    mass = kind(CHAINS, WIDTH, np.float32)
    for _ in range(2):
        assert {array.dtype for array in mass.arrays().values()} == {np.dtype(np.float32)}
        assert mass.velocity(mass.momentum(generators())).dtype == np.float32
        seen(mass, 12)
        mass.update()


@KINDS
def test_two_draws_tell_a_variance_and_one_tells_none(kind: type[Mass]) -> None:
    mass = kind(CHAINS, WIDTH, np.float64)
    before = mass.inverse.copy()
    seen(mass, 1)
    mass.update()
    np.testing.assert_array_equal(mass.inverse, before)
    seen(mass, 2)
    mass.update()
    assert np.isfinite(mass.inverse).all() and (abs(mass.inverse - before) > 0.01).any()


@KINDS
def test_a_window_goes_on_where_it_was_left(kind: type[Mass]) -> None:
    whole = kind(CHAINS, WIDTH, np.float64)
    seen(whole, 30)
    whole.update()
    seen(whole, 10, seed=1)
    again = kind(CHAINS, WIDTH, np.float64)
    again.restore({name: array.copy() for name, array in whole.arrays().items()}, whole.count)
    np.testing.assert_array_equal(again.momentum(generators()), whole.momentum(generators()))
    for mass in (whole, again):
        seen(mass, 15, seed=2)
        mass.update()
    assert_same(again.arrays(), whole.arrays())


def test_the_search_for_a_step_size_goes_on_where_it_was_left() -> None:
    whole, again = DualAveraging(np.array([1.0, 0.5]), 0.8), DualAveraging(np.array([0.1, 0.1]), 0.8)
    for accepted in (0.3, 0.9, 0.7):
        whole.update(np.array([accepted, 0.5]))
    again.restore({name: array.copy() for name, array in whole.arrays().items()}, whole.count)
    for averaging in (whole, again):
        averaging.update(np.array([0.6, 0.95]))
    assert_same(again.arrays(), whole.arrays())
    np.testing.assert_array_equal(again.final, whole.final)


def assert_same(found: dict[str, Any], wanted: dict[str, Any]) -> None:
    assert found.keys() == wanted.keys()
    for name, array in wanted.items():
        np.testing.assert_array_equal(found[name], array)
