"""`python -m tests.inference.truth.reference [NAME …]` has Stan sample the posteriors and writes `reference.json`.

Needs the environment of `python -m benchmarks.engines.environment`; the tests read what stands here.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.engines.client import Engine, stan
from qvr_core.inference.diagnostics import convergence
from tests.inference.truth.data import MAKE, checksum, data_of, for_stan

HERE = Path(__file__).resolve().parent
REFERENCE = HERE / "reference.json"
WARMUP, DRAWS, CHAINS, SEED = 1000, 5000, 4, 20


def summary(engine: Engine, name: str) -> dict[str, Any]:
    """Mean and sd of every number with Monte Carlo standard errors, as lists by parameter, rows first."""
    engine.load(for_stan(name), program=str(HERE / "stan" / f"{name}.stan"))
    sample = engine.sample(WARMUP, DRAWS, CHAINS, SEED)
    flat = {key: value.reshape(*value.shape[:2], -1) for key, value in sample.draws.items()}
    return {
        "data": checksum(data_of(name)),
        "engine": engine.version,
        "draws": f"{CHAINS} chains of {WARMUP} + {DRAWS}, seed {SEED}",
        "divergences": sample.divergences,
        "parameters": {
            key: {
                "mean": rounded(value.mean((0, 1))),
                "sd": rounded(value.std((0, 1), ddof=1)),
                "mcse_mean": rounded(convergence.mcse_mean(value)),
                "mcse_sd": rounded(convergence.mcse_sd(value)),
                "r_hat": float(f"{convergence.r_hat(value).max():.4f}"),
            }
            for key, value in flat.items()
        },
    }


def rounded(values: Any) -> list[float]:
    """To five digits."""
    return [float(f"{value:.5g}") for value in np.asarray(values)]


def main(names: list[str]) -> None:
    """Those named, or all."""
    known = json.loads(REFERENCE.read_text(encoding="utf-8")) if REFERENCE.exists() else {}
    with stan() as engine:
        for name in names or MAKE:
            known[name] = summary(engine, name)
            print(name, {key: value["r_hat"] for key, value in known[name]["parameters"].items()}, flush=True)
            write({each: known[each] for each in MAKE if each in known})


def write(known: dict[str, Any]) -> None:
    """A line for each posterior."""
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(value)}" for name, value in known.items())
    REFERENCE.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
