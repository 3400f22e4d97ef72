"""A program of differential equations with and without plates, by each method, and what was measured."""

from __future__ import annotations

import re
from typing import Any

EQUATIONS = """\
object G : FinSet 2
object Time : FinSet 4
object Kind : FinSet 3
object Pool : {fast, slow}
def growth(t, z, rate) = rate * z * (1.0 - z)
def pools(t, z, k, M) = [
    -k[0] * z[fast] + M[0, 1] * z[slow] + 0.1 * sum(k[j] * M[0, j] for j : Kind),
    k[1] * z[fast] - M[1, 2] * z[slow] * t
]
program equations : Time -> Time
    data when, y : Time
    data each : G * Time
    data M : Pool * Kind
    data rate : G
    sample m <- Normal(0.3, 0.5)
    sample k : Real 3 <- LogNormal(-0.5, 0.3)
    sample z0[g : G] <- Beta(2.0, 3.0)
    let a[t : Time] = solve(growth, 0.3, exp(m), start=0.0, at=when, method=rk4, steps=7)
    let b[g : G, t : Time] = solve(growth, z0[g], rate[g] + m, start=0.1 * m, at=each[g, t], rtol=1e-10, atol=1e-10)
    let c[p : Pool, t : Time] = solve(pools, [1.0, m], k, M, start=0.0, at=when, rtol=1e-10, atol=1e-10)
    let d[g : G, t : Time, p : Pool] = solve(pools, [z0[g], m], k, M, start=0.0, at=each[g, t], method=rk4, steps=5)
    let e[t : Time, p : Pool] = solve(pools, [1.0, m], k, M, start=0.0, at=when, method=stiff, rtol=1e-9, atol=1e-10)
    observe y[t : Time] <- Normal(a[t] + sum(c[p, t] for p : Pool), 1.0)
    observe u[g : G, t : Time] <- Normal(b[g, t], 0.5)
    observe v[g : G, t : Time, p : Pool] <- Normal(d[g, t, p], 0.5)
    observe w[t : Time] <- Normal(e[t, fast] + e[t, slow], 0.5)
    return m
"""
EACH = [[0.2, 0.5, 1.0, 1.7], [0.3, 0.4, 0.9, 2.0]]
MEASURED: dict[str, Any] = {
    "when": [0.0, 0.5, 1.0, 2.5],  # the first time is the start
    "y": [0.4, 1.5, 2.0, -0.5],
    "rate": [0.8, 1.4],
    "M": [[0.2, 0.4, 0.1], [0.6, 0.3, 0.5]],
    "each": EACH,
    "u": EACH,
    "v": [[[0.5, x] for x in row] for row in EACH],
    "w": [0.9, 1.0, 0.2, 0.4],
}
LATENTS: dict[str, Any] = {"m": 0.35, "k": [0.5, 0.8, 0.3], "z0": [0.4, 0.7]}


def in_steps(text: str) -> str:
    """All of it by the method without control of its error."""
    text = text.replace("method=stiff, ", "")
    return re.sub(r"rtol=\S+ atol=[^)]+", "method=rk4, steps=6", text)
