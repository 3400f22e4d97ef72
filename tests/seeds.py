"""Seeds of tests on random texts and edits: a few of them in `make test`, all of them in `make slow`."""

from __future__ import annotations

from typing import Any

import pytest


def seeds(few: int, many: int) -> list[Any]:
    """0, 1, … as parameters: those from `few` on are marked slow."""
    return [*range(few), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(few, many))]
