"""`solve`, the form for differential equations: what it takes, as the checker and the editors read it."""

from __future__ import annotations

from collections.abc import Mapping

SOLVE = "solve"
CALL = "solve(f, z0, …, start=…, at=…)"
SUMMARY = "the solution of dz/dt = f(t, z, …) with z = z0 at `start`, at the times `at`"
PARAMETERS = (
    ("f", "the derivative: a function of the file, `def f(t, z, …) = …`, that gives one number for each of the state"),
    ("z0", "the state at `start`: a number, or one for each element of the state's set"),
    ("…", "what `f` takes behind the time and the state, in its order"),
)
OPTIONS: Mapping[str, str] = {
    "start": "the time at which the state is z0: a number, data or a latent",
    "at": "the times at which the state is wanted: data that ascend from `start` on",
    "method": "how the equation is solved; `rk45` where nothing is said",
    "steps": "how many steps `rk4` takes between two times, 1 where nothing is said",
    "rtol": "the error of a step as a share of the state, 1e-6 where nothing is said",
    "atol": "the error of a step where the state is near 0, 1e-6 where nothing is said",
    "max_steps": "how many steps an adaptive method tries between two times before the density is −∞, 10⁶ where "
    "nothing is said",
}
NEEDED = ("start", "at")
"""The options that have no default."""
CONTROL = ("rtol", "atol", "max_steps")
"""Those of an adaptive method alone."""
METHODS: Mapping[str, str] = {
    "rk45": "adaptive, of orders 5 and 4 (Dormand and Prince)",
    "rk4": "of order 4, in steps of one length",
    "stiff": "adaptive and implicit, of orders 4 and 3, for equations whose parts differ much in speed",
}
"""What each is, the default first."""
SNIPPET = "solve(${1:f}, ${2:z0}, start=${3:0.0}, at=${4:when})"
