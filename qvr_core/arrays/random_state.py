"""The state of the generators that draw where no other one is given: the CPU's, and that of the device at work."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from qvr_core.arrays.engine import Tensor, arrays
from qvr_core.arrays.engine import device as Device

RandomState = tuple[Tensor, Tensor | None]
"""Of the CPU's generator, and of the device's."""


def random_state(device: Device) -> RandomState:
    """The states that draws on `device` start from."""
    here = arrays.get_rng_state()
    return here, None if device.type == "cpu" else _module(device).get_rng_state(*_which(device))


def set_random_state(device: Device, state: RandomState) -> None:
    """Undo what was drawn since `random_state`."""
    here, there = state
    arrays.set_rng_state(here)
    if there is not None:
        _module(device).set_rng_state(there, *_which(device))


def seed_device(device: Device, seed: int) -> None:
    """Seed the generator of a device that is not the CPU."""
    if device.type != "cpu":
        _module(device).manual_seed(seed)


@contextmanager
def random_state_kept(device: Device) -> Generator[None]:
    """What is drawn meanwhile uses up no one's random numbers."""
    if device.type == "cpu":
        with arrays.random.fork_rng(devices=[]):  # pyright: ignore[reportUnknownMemberType]
            yield
        return
    state = random_state(device)
    try:
        yield
    finally:
        set_random_state(device, state)


def _module(device: Device) -> Any:
    return arrays.get_device_module(device)


def _which(device: Device) -> tuple[Device, ...]:
    """The argument by which the module of a kind of devices tells one from another; there is one `mps`."""
    return () if device.type == "mps" else (device,)
