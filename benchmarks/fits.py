"""Steps of SVI on eight statistical models, as machine code and as the program runs in torch: processor time, by turns.

The bound and the noise are the same; what is compared is what an optimiser's step costs.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

import torch

from benchmarks.goals import Table
from benchmarks.models import MODELS
from qvr_core.dsl import loads
from qvr_core.inference import ELBO, SVI, AutoNormalGuide

GOALS = {"eight schools": 20.0, "radon": 20.0}
"""How many times faster; other models are shown."""
WARM = 30


def fit_of(model: Any, data: Any, engine: Any) -> SVI:
    """A mean-field fit that has made its first steps."""
    guide = AutoNormalGuide(model, observed_names={name for name in data if name in model.sites})
    made = SVI(model, guide, torch.optim.Adam(guide.parameters(), lr=0.02, fused=True), ELBO(), engine=engine)
    for _ in range(WARM):
        made.step(None, data)
    return made


def spent(made: SVI, data: Any, steps: int) -> float:
    """Microseconds a step."""
    began = time.process_time()
    for _ in range(steps):
        made.step(None, data)
    return (time.process_time() - began) / steps * 1e6


def main(argv: list[str]) -> int:
    """Print the table; status 1 where a goal is missed."""
    parser = argparse.ArgumentParser(prog="benchmarks fits")
    parser.add_argument("--quick", action="store_true")
    rounds = 2 if parser.parse_args(argv).quick else 5
    torch.set_num_threads(1)
    table = Table()
    for name, given in MODELS.items():
        model = loads(given.text).morphism
        data = {key: value.float() if value.is_floating_point() else value for key, value in given.data().items()}
        plain, compiled = fit_of(model, data, "plain"), fit_of(model, data, "compiled")
        times = [(spent(plain, data, 60), spent(compiled, data, 1000)) for _ in range(rounds)]
        slow, fast = (min(column) for column in zip(*times, strict=True))
        table.row(
            f"SVI step, {name}, torch / compiled",
            f"{fast:.1f} µs, torch {slow:.0f} µs",
            slow / fast,
            GOALS.get(name, 1.0),
        )
    return int(table.missed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
