"""Sentences on blocks in blocks (section 18): each sum by itself, value after value."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise, product
from typing import Any

import numpy as np

from tests.runtime.densities.supports import GROUP, M, Sentence, Values, Y, normal, real

KINDS = np.array([0.3, 0.7])
GIVEN = np.array([[0.2, 0.8], [0.6, 0.4]])
"""P[z, c]."""
STAYING = np.array([[0.9, 0.1], [0.2, 0.8]])
X = np.array([0.5, -0.4])
TABLE = np.array(
    [[0.3, -0.2, 0.9, 1.1, 0.4], [1.0, 0.1, 0.0, -0.7, 0.2], [2.0, 1.1, 0.2, 0.4, 0.9], [0.0, 0.0, 1.0, 1.0, 2.0]]
)
ROW, WHEN = np.array([0, 2, 3, 3, 1]), np.array([0, 1, 4, 2])
GROUPS = "data group : Row -> G\n"
Z = "marginalize z[g : G] : State <- Categorical([0.3, 0.7])\n"
TABLES = "data P, Q : State * State\n"
MATRICES = {"P": GIVEN, "Q": STAYING}


def summed(terms: Iterable[Any]) -> float:
    return float(np.logaddexp.reduce([float(np.sum(one)) for one in terms]))


def over_groups(each: Callable[[int, int], list[Any]]) -> list[float]:
    """log Σ_z p(z) exp(Σ each(group, z)) of both groups."""
    return [summed(np.log(KINDS[z]) + sum(np.sum(one) for one in each(g, z)) for z in (0, 1)) for g in (0, 1)]


def rows_of(group: int) -> Any:
    return np.flatnonzero(np.equal(GROUP, group))


def paths(start: Any, table: Any, seen: Callable[[int, int], Any], length: int = 5) -> float:
    """log Σ over all paths of a chain of two states."""
    found = []
    for path in product((0, 1), repeat=length):
        steps = sum(np.log(table[a, b]) for a, b in pairwise(path))
        found.append(np.log(start[path[0]]) + steps + sum(np.sum(seen(t, c)) for t, c in enumerate(path)))
    return float(np.logaddexp.reduce(found))


def _rows(v: Values) -> list[Any]:
    def each(g: int, z: int) -> list[Any]:
        rows = [
            summed(np.log(GIVEN[z, c]) + normal(Y[i], v["m"] + c + 2.0 * z) for c in (0, 1)) for i in rows_of(g)
        ]  # fmt: skip
        return [normal(X[g], z), *rows]

    return [normal(v["m"], 0), over_groups(each)]


def _told_by_what_is_observed(v: Values) -> list[Any]:
    def each(g: int, z: int) -> list[Any]:
        return [
            summed(np.log([0.4, 0.6][c]) + normal(TABLE[i], v["m"] + c * (1 + z)).sum() for c in (0, 1))
            for i in rows_of(g)
        ]

    return [normal(v["m"], 0), over_groups(each)]


def _chains(v: Values) -> list[Any]:
    def each(g: int, z: int) -> list[Any]:
        table = STAYING if z else GIVEN
        return [
            paths([0.5, 0.5], table, lambda t, c, i=i: normal(TABLE[i, t], v["m"] * c + z)) for i in rows_of(g)
        ]  # fmt: skip

    return [normal(v["m"], 0), over_groups(each)]


def _at_places_of_data(v: Values) -> list[Any]:
    def each(g: int, z: int) -> list[Any]:
        return [
            summed(
                np.log(GIVEN[z, c]) + normal(TABLE[0][np.equal(ROW, i)], v["m"] + c + 2.0 * z).sum() + 0.1 * c * z
                for c in (0, 1)
            )
            for i in rows_of(g)
        ]

    return [normal(v["m"], 0), over_groups(each)]


def _in_a_chain(v: Values) -> list[Any]:
    def seen(t: int, z: int) -> list[Any]:
        return [
            summed(np.log(GIVEN[z, c]) + normal(Y[i], v["m"] + c + 2.0 * z) for c in (0, 1))
            for i in np.flatnonzero(np.equal(WHEN, t))
        ]

    return [normal(v["m"], 0), paths(KINDS, STAYING, seen)]


def _counts(v: Values) -> list[Any]:
    """Each row has a count up to a bound of its own, with a rate that its group's count gives."""

    def each(n: int, g: int) -> list[Any]:
        return [
            summed(-np.log(top + 1.0) + normal(Y[i], v["m"] + k + 0.5 * n) for k in range(top + 1))
            for i in rows_of(g)
            for top in [i + 1]
        ]

    found = [summed(-np.log(top + 1.0) + sum(each(n, g)) for n in range(top + 1)) for g, top in enumerate((3, 5))]
    return [normal(v["m"], 0), found]


NESTED = {
    "a state of each row in that of its group": Sentence(
        GROUPS + TABLES + M + Z + "    observe x[g : G] <- Normal(z[g], 1.0)\n"
        "    marginalize c[i : Row] : State <- Categorical(P[z[group[i]]])\n"
        "        observe y[i : Row] <- Normal(m + c[i] + 2.0 * z[group[i]], 1.0)",
        {"m": real()}, {"y": Y, "x": X, "group": GROUP, **MATRICES}, _rows,
    ),
    "what is observed says to which group a row belongs": Sentence(
        GROUPS + M + Z + "    let twice[g : G] = 1.0 + z[g]\n"
        "    marginalize c[i : Row] : State <- Categorical([0.4, 0.6])\n"
        "        observe y[i : Row, t : Time] <- Normal(m + c[i] * twice[group[i]], 1.0)",
        {"m": real()}, {"y": TABLE, "group": GROUP}, _told_by_what_is_observed,
    ),
    "a chain of each row in the state of its group": Sentence(
        GROUPS + TABLES + M + Z
        + "    marginalize c[i : Row, t : Time] : State <- Categorical(z[group[i]] * Q[c[i, t - 1]] + "
        "(1 - z[group[i]]) * P[c[i, t - 1]]) from Categorical([0.5, 0.5])\n"
        "        observe y[i : Row, t : Time] <- Normal(m * c[i, t] + z[group[i]], 1.0)",
        {"m": real()}, {"y": TABLE, "group": GROUP, **MATRICES}, _chains,
    ),
    "elements at places that data say, and a score": Sentence(
        GROUPS + "data row : Time -> Row\n" + TABLES + M + Z
        + "    marginalize c[i : Row] : State <- Categorical(P[z[group[i]]])\n"
        "        observe y[t : Time] <- Normal(m + c[row[t]] + 2.0 * z[group[row[t]]], 1.0)\n"
        "        score s = sum(0.1 * c[k] * z[group[k]] for k : Row)",
        {"m": real()}, {"y": TABLE[0], "group": GROUP, "row": ROW, **MATRICES}, _at_places_of_data,
    ),
    "rows in the state of a chain": Sentence(
        "data when : Row -> Time\n" + TABLES + M
        + "marginalize z[t : Time] : State <- Categorical(Q[z[t - 1]]) from Categorical([0.3, 0.7])\n"
        "    marginalize c[i : Row] : State <- Categorical(P[z[when[i]]])\n"
        "        observe y[i : Row] <- Normal(m + c[i] + 2.0 * z[when[i]], 1.0)",
        {"m": real()}, {"y": Y, "when": WHEN, **MATRICES}, _in_a_chain,
    ),
    "counts of rows beside counts of their groups": Sentence(
        GROUPS + "data top : G -> Nat\ndata most : Row -> Nat\n" + M
        + "marginalize n[g : G] <- DiscreteUniform(0, top[g])\n"
        "    marginalize k[i : Row] <- DiscreteUniform(0, most[i])\n"
        "        observe y[i : Row] <- Normal(m + k[i] + 0.5 * n[group[i]], 1.0)",
        {"m": real()}, {"y": Y, "group": GROUP, "top": [3, 5], "most": [1, 2, 3, 4]}, _counts,
    ),
}  # fmt: skip
