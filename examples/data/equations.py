"""Makes the data of the examples with differential equations: `python examples/data/equations.py`."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.integrate import solve_ivp

HERE = Path(__file__).parent

Rate = Callable[[float, np.ndarray], list[float]]


def save(name: str, **columns: np.ndarray) -> None:
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    lines = [",".join(columns), *(",".join(f"{cell:.6g}" for cell in row) for row in rows)]
    (HERE / f"{name}.csv").write_text("\n".join(lines) + "\n")


def solved(rate: Rate, first: list[float], when: np.ndarray) -> np.ndarray:
    """The states (T, n) at the times."""
    return solve_ivp(rate, (0.0, when[-1]), first, "LSODA", when, rtol=1e-10, atol=1e-12).y.T


def main() -> None:
    rng = np.random.default_rng(20261128)

    when = np.arange(21.0)
    z = solved(lambda t, z: [z[0] * (0.55 - 0.028 * z[1]), z[1] * (0.024 * z[0] - 0.8)], [34.0, 6.0], when)
    seen = z * np.exp(0.25 * rng.normal(size=z.shape))
    save("pelts", when=when, hares=seen[:, 0], lynxes=seen[:, 1])

    when = np.arange(1.0, 15.0)
    z = solved(lambda t, z: [-1.8 * z[0] * z[1], 1.8 * z[0] * z[1] - 0.5 * z[1], 0.5 * z[1]],
               [762 / 763, 1 / 763, 0.0], when)  # fmt: skip
    save("influenza", when=when, in_bed=rng.negative_binomial(10.0, 10.0 / (10.0 + 763 * z[:, 1])))

    when = np.array([0.25, 0.5, 0.75, 1.0, 1.5, 2, 3, 4, 5, 6, 8, 10, 12, 14, 16, 18, 20, 24, 28, 32])
    z = solved(lambda t, z: [30 / 2 * 2.0 * np.exp(-2.0 * t) - 1.2 * z[0] / (3.0 + z[0])], [0.0], when)
    save("plasma", when=when, concentration=z[:, 0] + (0.02 + 0.1 * z[:, 0]) * rng.normal(size=len(when)))

    decay, kept = np.array([14.0, 4.0, 0.5, 0.02]), 0.4
    when = np.array([0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2, 3, 4, 5, 7, 10])

    def pools(t: float, z: np.ndarray) -> list[float]:
        lost = decay * z
        return [-lost[0], kept * lost[0] - lost[1], kept * lost[1] - lost[2], kept * lost[2] - lost[3]]

    left = solved(pools, [20.0, 10.0, 30.0, 40.0], when).sum(1)
    save("respiration", when=when, respired=(100.0 - left) * np.exp(0.03 * rng.normal(size=len(when))))


if __name__ == "__main__":
    main()
