"""Programs in which every family that a target has is observed once, and some that are easily said wrongly."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from qvr_core.analysis import analyse
from qvr_core.dsl import loads
from qvr_core.export import TARGETS, export
from qvr_core.lowered.tails import WITH_TAILS
from qvr_core.runtime.programs.handlers import by_rows, condition
from qvr_core.semantics.language.families import FAMILIES
from tests.export.exports import POINTS
from tests.export.rewritten import write_rewritten
from tests.export.whole_values import CASES as WHOLE_VALUES
from tests.export.whole_values import write_whole_values

ARGUMENTS = {
    "loc": "0.3", "scale": "1.7", "df": "4.5", "concentration": "1.3", "rate": "0.8", "alpha": "2.2", "low": "-1.0",
    "high": "3.5", "a": "1.4", "b": "2.6", "probs": "0.3", "logits": "-0.4", "total": "7", "log_rate": "0.4",
    "mean": "3.1", "dispersion": "0.6", "gate": "0.25",
}  # fmt: skip
CALLS = {
    "Categorical(probs)": "Categorical([0.2, 0.5, 0.3])",
    "Categorical(logits)": "Categorical(logits=[0.2, -0.5, 0.3])",
    "DiscreteUniform(high, low)": "DiscreteUniform(-1, 5)",
    "MixtureNormal(locs, scales, weights)": "MixtureNormal([0.3, 0.7], [-1.0, 1.0], [1.0, 0.5])",
    "OrderedLogistic(cutpoints, predictor)": "OrderedLogistic(0.2, [-1.0, 0.4])",
}
ELSEWHERE = ("Flat", "LKJCholesky")
"""Families that are not observed."""


def families(name: str, known: Sequence[str]) -> tuple[str, dict[str, Any]]:
    """A program that observes each of these families of numbers, and its data."""
    lines, data = [], {}
    for at, key in enumerate(known):
        family = FAMILIES[key.partition("(")[0]]
        if family.event or family.name in ELSEWHERE:
            continue
        given = ", ".join(f"{one}={ARGUMENTS[one]}" for one in re.findall(r"\w+", key)[1:] if key not in CALLS)
        call = CALLS.get(key, f"{family.name}({given})")
        wide = family.support.categories
        kind = " -> FinSet 3" if wide else {"count": " -> Nat", "finite": " -> Bool"}.get(family.support.kind, "")
        lines += [f"data y{at} : Row{kind}", f"observe y{at}[i : Row] <- {call}"]
        whole = [0, 2, 1, 0] if wide else {"count": [0, 1, 3, 5], "finite": [0, 1, 1, 0]}.get(family.support.kind)
        data[f"y{at}"] = whole or ([1.8, 2.0, 3.0, 9.0] if family.above else [0.15, 0.4, 0.62, 0.97])
    steps = [line for line in lines if line.startswith("data")] + ["sample m <- Normal(0.0, 1.0)"]
    steps += [line for line in lines if line.startswith("observe")] + ["return m"]
    return f"object Row : FinSet 4\nprogram {name} : Row -> Row\n" + "".join(f"    {line}\n" for line in steps), data


# True and false are numbers: 1 + 1 is 2. `[iid_over=Row]` beside `: Row` is one axis. Recursions start from numbers.
# Groups that no one declares are codes of the set that they look up.
TRICKY = """object Row : FinSet 4
object Item : FinSet 2
program tricky : Row -> Row
    data y, x : Row
    sample m <- Normal(0.0, 1.0)
    sample u : Row <- Normal(m, 2.0) [iid_over=Row]
    let high = x > 0.5
    let both = high + (x > 0.1) + (1 - high)
    let v[i : Row] = 0.1 + 0.5 * v[i - 1] + x[i] from 1
    let most = maximum(m, 0.0) - (m > 0.2) * (m > 0.1)
    score s = -sum(0.1 * (both + (high * high)))
    observe y[i : Row] <- Normal(u[i] + most + both[i], v[i])
    sample e : Item <- Normal(m, 1.0)
    observe o : Row <- Normal(e, 1.5) [via=g]
    return m
"""

# Elements that count in part: by data, by a comparison, one number for all; on data, on latents, over two sets, beside
# a limit, looked up by group.
PARTIAL = """object Row : FinSet 4
object Item : FinSet 2
program partial : Row -> Row
    data y, x, w, late : Row
    data keep : Row -> Bool
    data z, h : Row * Item
    data g : Row -> Item
    data q : Row
    sample m <- Normal(0.0, 1.0)
    sample e : Item <- Normal(m, 1.0)
    let near[i : Row] = x[i] > 0.1
    let more = w + 0.5
    let low[i : Row, j : Item] = h[i, j] < 0.7
    sample u[i : Row] <- Normal(m, 2.0) [weight=w, mask=near]
    sample s : Row <- HalfStudentT(4.5, 1.0) [mask=keep, weight=more]
    observe y[i : Row] <- Normal(u[i] + m, 1.0 + s[i]) [mask=keep, weight=more]
    observe x : Row <- Normal(m, 1.0) [weight=0.3]
    observe z[i : Row, j : Item] <- Normal(u[i], 0.5) [mask=low, weight=h]
    observe w[i : Row] <- Exponential(exp(m)) [right_censored=late, weight=near, mask=keep]
    observe q : Row <- Normal(e + x[0], 1.5) [via=g, mask=keep]
    return m
"""

# Chains: over several sets, along any of them; each start its own; elements that count in part; vectors.
CHAINS = """object Row : FinSet 4
object Item : FinSet 2
program chains : Row -> Row
    data x, w, y : Row
    data h : Item
    data z : Item * Row
    data keep : Row -> Bool
    data k : Row * Item -> Bool
    sample m <- Normal(0.0, 1.0)
    sample a[j : Item, t : Row] <- Normal(m * a[j, t - 1] + h[j], 0.7) from Normal(h[j], 1.0)
    sample b[t : Row, j : Item] <- Normal(0.5 * b[t - 2, j], 1.1) from (Normal(0.0, 1.0), Normal(m, 2.0)) [mask=k]
    sample c[t : Row] <- Normal(0.3 * c[t - 1], 0.9) from Normal(m, 1.0) [weight=w, mask=keep]
    let l[i : Item, j : Item] = where(i == j, 0.8, 0.0)
    sample v[t : Row] <- MultivariateNormal(0.5 * v[t - 1], scale_tril=l) from MultivariateNormal(h, l) [weight=w]
    observe y[t : Row] <- Normal(0.5 * y[t - 1] + c[t], 0.6) [mask=keep, weight=w]
    observe z[j : Item, t : Row] <- Normal(a[j, t] + b[t, j] * z[j, t - 1] + sum(v[t]), 1.0) [weight=x]
    return m
"""

# Sequences of unequal length, of which NaN follow; hidden chains whose observations count in part, are censored and
# truncated, and read their own past.
RAGGED = """object Row : FinSet 4
object Item : FinSet 2
object State : FinSet 2
program ragged : Row -> Row
    data n : Item -> Nat
    data x, w : Row
    data keep : Row -> Bool
    data y, z, f, u, r : Item * Row
    sample m <- Normal(0.0, 1.0)
    sample mu : State <- Normal(0.0, 1.0)
    sample a[j : Item, t : Row] <- Normal(m * a[j, t - 1], 0.7) from Normal(m, 1.0) [lengths=n]
    sample s[j : Item, t : Row] <- HalfNormal(2.0) [lengths=n, mask=keep]
    observe y[j : Item, t : Row] <- Normal(a[j, t], 0.5 + s[j, t]) [lengths=n, weight=w]
    let move[k : State, l : State] = where(k == l, 0.8, 0.2)
    marginalize k[j : Item, t : Row] : State <- Categorical(move[k[j, t - 1]]) from Categorical([0.3, 0.7]) [lengths=n]
        observe z[j : Item, t : Row] <- Normal(mu[k[j, t]], 1.0) [lengths=n, weight=w, mask=keep]
    marginalize l[j : Item, t : Row] : State <- Categorical(move[l[j, t - 1]]) from Categorical([0.3, 0.7])
        observe r[j : Item, t : Row] <- Normal(mu[l[j, t]] + 0.5 * r[j, t - 1], 1.0) [weight=w, mask=keep]
        observe u[j : Item, t : Row] <- Exponential(exp(mu[l[j, t]])) [right_censored=f, truncate_upper=4.0, mask=keep]
    marginalize c[j : Row] : State <- Categorical([0.4, 0.6])
        observe x[j : Row] <- Laplace(mu[c[j]], 1.2) [left_censored=keep, weight=w]
    return m
"""


def limited(name: str, options: Mapping[str, str], known: Iterable[str]) -> tuple[str, dict[str, Any]]:
    """A program that observes each family with tails, of those that are known, with each of these options, and its
    data."""
    steps: list[str] = []
    data: dict[str, Any] = {"flag": [1, 0, 1, 0]}
    names = {key.partition("(")[0] for key in known}
    for family in (one for one in WITH_TAILS if one in names):
        counted, above = FAMILIES[family].discrete, family == "Pareto"
        given = ", ".join(f"{one.name}={ARGUMENTS[one.name]}" for one in FAMILIES[family].parameters)
        values = [1, 2, 3, 5] if counted else [1.8, 2.0, 3.0, 9.0] if above else [0.15, 0.4, 0.62, 0.97]
        low, high = ("1", "6") if counted else ("1.75", "9.5") if above else ("0.1", "0.99")
        for own, option in options.items():
            y = f"{family.lower()}_{own}"
            said = option.format(low=low, high=high, end=f"{y}_end")
            steps.append(f"observe {y}[i : Row] <- {family}({given}) [{said}]")
            data[y] = values
            if "{end}" in option:
                data[f"{y}_end"] = [value + (1 if counted else 0.01) * (at % 2) for at, value in enumerate(values)]
    declared = [f"data {key} : Row" + (" -> Nat" if isinstance(data[key][0], int) else "") for key in data]
    declared[0] = "data flag : Row -> Bool"
    lines = [*declared, "sample m <- Normal(0.0, 1.0)", *steps, "return m"]
    return f"object Row : FinSet 4\nprogram {name} : Row -> Row\n" + "".join(f"    {line}\n" for line in lines), data


# Bases of functions, of data and of what is drawn, outside of the knots and on them.
BASES = """object Row : FinSet 4
object Basis : FinSet 5
object Wave : FinSet 3
program bases : Row -> Row
    data x, y, v, o : Row
    sample m <- Normal(0.0, 1.0)
    sample w : Basis <- Normal(0.0, 1.0)
    sample u : Wave <- Normal(0.0, 1.0)
    let s = bspline(x, knots=[0.05, 0.3, 0.7], degree=3)
    let (phi, omega) = hsgp(x, m=3, c=1.3)
    let (psi, nu) = hsgp(exp(m * x), m=3, c=2)
    observe y[i : Row] <- Normal(sum(s[i, b] * w[b] for b : Basis), 1.0)
    let t[i : Row] = bspline(x[i] + m, [0, 0.4, 1], 1)
    observe v[i : Row] <- Normal(sum(t[i, j] * u[j] for j : Wave), 0.5)
    observe o[i : Row] <- Normal(sum(phi[i, j] * exp(-m * omega[j]) * u[j] + psi[i, j] * nu[j] for j : Wave), 0.7)
    return m
"""
# Numbers that add up to 0, of one scale, of one for each, and under two indices.
CONTRASTS = """object Row : FinSet 4
object Item : FinSet 2
object State : FinSet 3
program contrasts : Row -> Row
    data y : Row
    data g : Row -> Item
    data k : Row -> State
    sample m <- Normal(0.0, 1.0)
    sample tau : Item <- HalfNormal(1.0)
    sample a[s : State] <- Normal(0.0, 0.7) [sum_to_zero]
    sample b[j : Item, s : State] <- Normal(0, tau[j]) [sum_to_zero]
    sample c[j : Item, i : Row, s : State] <- Normal(scale=exp(m), loc=0.0) [sum_to_zero, noncentred]
    observe y[i : Row] <- Normal(m + a[k[i]] + b[g[i], k[i]] + c[g[i], i, k[i]], 1.0)
    return m
"""
# Draws on a smaller space than their family's own, latents and data, in a chain and beside censoring.
NARROWED = """object Row : FinSet 4
object Time : FinSet 3
program narrowed : Row -> Row
    data y, x, late : Row
    data n, k, l : Row -> Nat
    sample m <- Normal(0.0, 1.0)
    sample s : Real 1 [low=0.5] <- Normal(m, 2.0)
    sample a[i : Row] : Real 1 [low=-1.0, high=1.0] <- Laplace(m, s)
    sample b : Real 1 [high=2.0] <- Gumbel(m, 1.0)
    sample u : Real 1 [low=0.25] <- Uniform(0.0, 1.0)
    sample h[t : Time] : Real 1 [low=0.0] <- Normal(m + 0.3 * h[t - 1], 1.0) from Normal(m, 2.0)
    observe n[i : Row] : Real 1 [low=1.0] <- Poisson(exp(a[i]))
    observe k[i : Row] : Real 1 [low=1.0] <- Poisson(log_rate=m)
    observe l[i : Row] : Real 1 [low=1.0] <- NegativeBinomial(mean=s, dispersion=0.4)
    observe y[i : Row] : Real 1 [low=0.0, high=9.0] <- Normal(a[i] + h[0] + b, s) [right_censored=late]
    observe x[i : Row] : Real 1 [low=0.2] <- Exponential(exp(m))
    return m
"""
# Counts behind gates: of numbers and of what is drawn, weighted, in a chain of their own and below hidden values.
GATES = """object Row : FinSet 4
object State : FinSet 2
program gates : Row -> Row
    data x : Row
    data n, k, l : Row -> Nat
    sample m <- Normal(0.3, 1.5)
    observe n[i : Row] <- ZeroInflated(sigmoid(m * x[i]), Poisson(exp(m * x[i])))
    observe k[i : Row] <- Hurdle(gate_logits=m, NegativeBinomial(mean=exp(m), dispersion=0.5))
    observe l[i : Row] <- Hurdle(0.3, Binomial(10, probs=sigmoid(m)))
    observe o[i : Row] <- ZeroInflated(0.3, Poisson(2.5)) [weight=x]
    observe p : Row <- ZeroInflated(gate_logits=0.4, Poisson(log_rate=m))
    observe q[i : Row] <- Hurdle(0.2, NegativeBinomial(3.0, probs=sigmoid(m)))
    observe r[i : Row] <- ZeroInflated(sigmoid(m), Binomial(7, logits=x[i]))
    observe u[i : Row] : Nat [low=1] <- Binomial(9, probs=sigmoid(m))
    observe v[i : Row] : Nat [low=1] <- NegativeBinomial(3.0, logits=m)
    marginalize z[i : Row] : State <- Categorical([0.4, 0.6])
        observe w[i : Row] <- Hurdle(0.25, Poisson(exp(m) + z[i]))
    return m
"""
DECLARED = """object Row : FinSet 4
object State : FinSet 2
family Bell(loc, scale : Real 1 [low=0.0] = 1.0) : Real 1
    let spread = 2.0 * scale^2
    density(x) = -(x - loc)^2 / spread - log(scale) - log(2.5066282746310002)
    standard(z) = loc + scale * z
family Gap(rate : Real 1 [low=0.0]) : Real 1 [low=0.0]
    density(t) = where(t > rate, log(rate) - rate * t, log(rate) - t * rate)
family Counts(mean : Real 1 [low=0.0]) : Nat
    density(n) = n * log(mean) - mean - lgamma(n + 1)
family Leaning(middle) : Real 1
    density(y) = -0.5 * (y - middle)^2 - 0.9189385332046727 + log(2.0) + log_ndtr(2.0 * (y - middle))
family Wide(low, high) : Real 1
    density(x) = -log(high - low)
program declared : Row -> Row
    data g : Row -> State
    data y, late, q : Row
    data k : Row -> Nat
    sample m <- Bell(0.0, scale=2.0)
    sample s <- Gap(1.5)
    sample b[j : State] <- Bell(m, s) [noncentred]
    sample h[t : Row] <- Bell(0.5 * h[t - 1]) from Bell(m, 3.0)
    sample w[i : Row] <- Wide(-9.0, m + 9.0)
    observe y[i : Row] <- Bell(b[g[i]] + h[i] + w[i], s) [weight=late]
    observe k[i : Row] <- Counts(exp(b[g[i]]))
    marginalize z[i : Row] : State <- Categorical([0.3, 0.7])
        observe q[i : Row] <- Leaning(m + z[i])
    return m
"""
CASES = (
    *WHOLE_VALUES,
    "mixtures",
    "outcomes",
    "declared",
    "families",
    "gates",
    "others",
    "narrowed",
    "bases",
    "contrasts",
    "tricky",
    "partial",
    "chains",
    "ragged",
    "limits",
    "bounds",
)
"""The programs of this file."""

LIMITS = {
    "limits": {"right": "right_censored=flag, truncate_upper={high}", "left": "left_censored=flag"},
    "bounds": {
        "between": "interval={end}, truncate_lower={low}",
        "inside": "truncate_lower={low}, truncate_upper={high}",
    },
}


def write_case(
    folder: Path,
    name: str,
    target: str,
    source: str,
    data: Mapping[str, Any],
    values: dict[str, Any],
    more: float = 0.0,
) -> None:
    """A program's export, and a case of it, whose density has so much `more` than ours."""
    made = export(analyse(source), name, target)
    given = {key: torch.as_tensor(value) for key, value in {**data, **values}.items()}
    density = float(loads(source).morphism.run(None, condition(given), by_rows(1)).log_joint().sum()) + more
    points = [{"values": values, "density": density}] * POINTS
    (folder / f"{name}{TARGETS[target].suffix}").write_text(made.text, encoding="utf-8")
    (folder / f"{name}.json").write_text(json.dumps({"data": made.data(data, {}), "points": points}), encoding="utf-8")


def write_cases_of_families(folder: Path, target: str, known: Mapping[str, str]) -> None:
    """The programs of this file."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        # in two parts, for numpy adds 32 arrays at once at most, where PyMC is not compiled
        for name, first in (("families", 0), ("others", 1)):
            source, data = families(name, sorted(known)[first::2])
            write_case(folder, name, target, source, data, {"m": 0.5})
        numbers = {"y": [0.2, 1.5, -0.3, 0.9], "x": [0.05, 0.2, 0.7, 0.9]}
        grouped = {**numbers, "o": [0.3, 0.8, -1.0, 0.4], "g": [1, 0, 1, 1]}
        write_case(folder, "tricky", target, TRICKY, grouped, {"m": 0.5, "u": [0.1, -0.4, 1.1, 0.6], "e": [0.7, -1.1]})
        drawn = {"m": 0.35, "w": [0.4, -1.0, 0.3, 0.8, 1.2], "u": [0.7, -0.6, 0.2]}
        write_case(folder, "bases", target, BASES, {**numbers, "v": numbers["y"], "o": numbers["x"]}, drawn)
        zero = {"a": [0.5, -0.8, 0.3], "b": [[0.1, 0.6, -0.7], [-1.0, 0.4, 0.6]], "m": 0.35, "tau": [0.4, 1.6]}
        zero["c"] = [[[0.2, -0.1, -0.1]] * 2 + [[0.7, -0.4, -0.3]] * 2, [[-0.6, 0.1, 0.5]] * 4]
        coded = {"y": numbers["y"], "g": [1, 0, 1, 1], "k": [0, 2, 1, 2]}
        write_case(folder, "contrasts", target, CONTRASTS, coded, zero)
        inside = {"m": 0.35, "s": 0.9, "a": [0.2, -0.7, 0.5, 0.1], "b": -0.4, "u": 0.6, "h": [0.4, 1.2, 0.1]}
        seen = {"y": [0.2, 3.5, 0.3, 0.9], "x": [0.3, 0.25, 1.4, 2.2], "late": [0.0, 1.0, 0.0, 0.0]}
        counts = {"n": [1, 2, 1, 4], "k": [3, 1, 2, 1], "l": [1, 1, 5, 2]}
        write_case(folder, "narrowed", target, NARROWED, {**seen, **counts}, inside)
        own = {"m": 0.4, "s": 1.2, "b": [0.3, -0.8], "h": [0.1, 0.6, -0.2, 0.9], "w": [0.2, -1.0, 0.5, 0.0]}
        outcomes = {"g": [1, 0, 1, 1], "late": [0.5, 1.0, 2.0, 1.0], "q": [0.2, -0.6, 1.4, 0.3], "k": [0, 2, 1, 4]}
        write_case(folder, "declared", target, DECLARED, {"y": numbers["y"], **outcomes}, own)
        write_rewritten(folder, target, write_case)
        write_whole_values(folder, target, write_case)
        gated = {name: [0, 2, at, 1 + at] for at, name in enumerate(("n", "k", "l", "o", "p", "q", "r", "w"))}
        above = {"u": [1, 2, 1, 5], "v": [3, 1, 2, 1]}
        write_case(folder, "gates", target, GATES, {"x": [0.4, -0.6, 1.2, 0.9], **above, **gated}, {"m": 0.35})
        tables = {"z": [[0.1, 0.2], [0.9, -0.4], [1.2, 0.3], [0.0, 2.0]]}
        tables["h"] = [[0.1, 0.9], [0.5, 0.6], [0.8, 0.3], [0.2, 0.4]]
        others = {"w": [0.5, 2.0, 0.0, 1.5], "late": [0.0, 1.0, 1.0, 0.0], "keep": [1, 0, 1, 1]}
        latents = {"m": 0.5, "u": [0.1, -0.4, 1.1, 0.6], "s": [0.2, 0.9, 1.4, 0.3], "e": [0.7, -1.1]}
        groups = {"g": [1, 0, 1, 1], "q": [0.3, 0.8, -1.0, 0.4]}
        write_case(folder, "partial", target, PARTIAL, {**numbers, **tables, **others, **groups}, latents)
        chains = {name: tables["h"] for name in ("b", "v")} | {"c": numbers["y"]}
        chains |= {"a": list(zip(*tables["z"], strict=True)), "m": 0.5}
        given = {**numbers, **others, "h": [0.2, -0.7], "z": list(zip(*tables["h"], strict=True))}
        write_case(folder, "chains", target, CHAINS, {**given, "k": [[1, 0], [1, 1], [0, 1], [1, 0]]}, chains)
        n, gap = [3, 2], math.nan
        ragged = {"n": n, "r": given["z"], "f": [[0, 1, 1, 0], [1, 0, 0, 0]]}
        ragged["y"] = [[0.3, -0.2, 1.1, gap], [0.6, 0.1, gap, gap]]
        ragged["z"] = [[1.3, 0.2, 0.1, gap], [0.2, 0.7, gap, gap]]
        ragged["u"] = [[0.3, 1.2, 2.0, 0.1], [0.5, 3.0, 0.2, 0.9]]
        # what does not exist is 0 or 0.5 here, and standard normal
        a, s = [[0.1, -0.4, 0.8, 0.0], [0.2, 0.5, 0.0, 0.0]], [[0.3, 1.0, 0.6, 0.5], [1.4, 0.2, 0.5, 0.5]]
        unread = 3 * (-0.5 * math.log(2.0 * math.pi) * 2 - 0.5 * 0.5**2)
        latents = {"m": 0.5, "mu": [0.2, -0.9], "a": a, "s": s}
        write_case(folder, "ragged", target, RAGGED, {**numbers, **others, **ragged}, latents, unread)
        for name, options in LIMITS.items():
            source, data = limited(name, options, known)
            write_case(folder, name, target, source, data, {"m": 0.5})
    finally:
        torch.set_default_dtype(before)
