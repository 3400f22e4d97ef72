"""The left side of a formula: the outcome, what transforms it, and what stands behind its bar."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from qvr_core.data.column_names import listed
from qvr_core.data.formula.columns import Column, Table
from qvr_core.data.formula.families import FAMILIES
from qvr_core.data.formula.problems import WrongFormula
from qvr_core.data.formula.syntax import Binary, Call, Name, Node, number, written

Values = NDArray[np.float64]


@dataclass(frozen=True)
class Outcome:
    """The left side of a formula: its column, `log(…)` and the like around it, its trials, what stands behind `|`."""

    column: Column
    transform: str = ""
    trials: Node | None = None
    additions: dict[str, Call] = field(default_factory=dict[str, Call])


@dataclass(frozen=True)
class Transform:
    """`log(y)` and the like: what is Normal, the log of its derivative, and the way back."""

    name: str
    inside: str
    log_derivative: str
    back: str
    apply: Callable[[Values], Values]
    bound: str = " [low=0.0]"


TRANSFORMS = {
    "log": Transform("Log", "log(x)", "- log(x)", "exp({})", np.log),
    "log2": Transform("Log2", "log2(x)", "- log(x) + 0.36651292058166435", "exp2({})", np.log2),
    "log10": Transform("Log10", "log10(x)", "- log(x) - 0.834032445247956", "exp(2.302585092994046 * {})", np.log10),
    "log1p": Transform("Log1p", "log1p(x)", "- log1p(x)", "expm1({})", np.log1p),
    "sqrt": Transform("Root", "sqrt(x)", "- 0.6931471805599453 - 0.5 * log(x)", "square({})", np.sqrt),
    "exp": Transform("Exp", "exp(x)", "+ x", "log({})", np.exp, ""),
}


def outcome(node: Node, table: Table) -> Outcome | None:
    """What the left side names; None where its column is not there.  Raises `WrongFormula`."""
    additions = dict[str, Call]()
    if isinstance(node, Binary) and node.operator == "|":
        for part in _parts(node.right):
            if not isinstance(part, Call):
                raise WrongFormula(f"`{written(part)}` behind the bar of an outcome: trials(n), weights(w), cens(c) …")
            additions[part.name] = part
        node = node.left
    trials = additions["trials"].arguments[0] if "trials" in additions and additions["trials"].arguments else None
    transform = ""
    match node:
        case Call("p" | "prop" | "proportion", (inner, many)):
            node, trials = inner, many
        case Call("I", (inner,)):
            node = inner
        case Call(name, (inner, *_)) if name in (*TRANSFORMS, "scale", "center", "centre", "standardize"):
            node, transform = inner, "scale" if name == "standardize" else "center" if name == "centre" else name
        case _:
            pass
    if not isinstance(node, Name):
        raise WrongFormula(f"the outcome is a column, or log, sqrt, scale … of one, not `{written(node)}`")
    column = table.column(node.text)
    return Outcome(column, transform, trials, additions) if column is not None else None


def _parts(node: Node) -> list[Node]:
    match node:
        case Binary("+", left, right):
            return [*_parts(left), *_parts(right)]
        case _:
            return [node]


def guessed(of: Outcome) -> str:
    """The family that an outcome looks like.  Raises `WrongFormula`."""
    column = of.column
    if of.trials is not None:
        return "binomial"
    if of.transform:
        return "normal"
    if column.kind == "bool" or column.binary:
        return "bernoulli"
    if column.kind == "factor":
        if column.distinct == 2:
            return "bernoulli"
        raise WrongFormula(
            f"`{column.name}` holds text ({listed(column.labels)}): say whether its levels have an order, "
            "--family cumulative, or not, --family categorical"
        )
    if column.kind != "number":
        raise WrongFormula(f"`{column.name}` is no outcome: {column.identity or 'it holds no numbers'}")
    if column.series.dtype.is_integer() and len(column.known) and float(column.known.min()) >= 0:
        which = "say whether they are counts, --family poisson, or measures, --family normal"
        raise WrongFormula(f"`{column.name}` holds whole numbers: {which}")
    return "normal"


def problem(of: Outcome, kind: str) -> str | None:
    """Why an outcome cannot have a family."""
    column, family = of.column, FAMILIES[kind]
    name = f"`{column.name}`"
    if family.element == "levels":
        return None if column.kind in ("factor", "number", "bool") else f"{name} has no levels"
    if kind == "bernoulli":
        two = column.binary or (column.kind == "factor" and column.distinct == 2)
        return None if two else f"{name} is not all 0 and 1, which --family bernoulli wants"
    if column.kind not in ("number", "bool"):
        found = listed(column.labels) if column.kind == "factor" else column.kind
        return f"{name} holds text ({found}), and --family {kind} wants numbers"
    known = column.known
    if not len(known):
        return f"{name} has no value"
    if family.element == "Nat" and (float(known.min()) < 0 or bool((known != np.floor(known)).any())):
        return f"{name} is not all whole numbers from 0, which --family {kind} wants"
    low = float(known.min())
    if kind == "beta" and not (low > 0 and float(known.max()) < 1):
        return f"{name} is not all between 0 and 1, which --family beta wants (0 and 1 themselves have no density)"
    if "hurdle" in kind and low < 0:
        return f"{name} has numbers below 0, which --family {kind} does not have"
    if family.element.startswith("Real") and "hurdle" not in kind and low <= 0:
        return f"{name} is not all above 0, which --family {kind} wants; zeros have --family hurdle_{kind}"
    if of.transform in ("log", "log2", "log10", "sqrt") and low <= 0:
        return f"{of.transform}({column.name}) wants numbers above 0, and {name} goes down to {low:g}"
    return None


def transformed(of: Outcome, kind: str) -> Values:
    """The values on the scale of the mean."""
    found = of.column.numbers if of.column.kind in ("number", "bool") else np.zeros(1)
    with np.errstate(all="ignore"):
        if of.transform in TRANSFORMS:
            return TRANSFORMS[of.transform].apply(found)
        if FAMILIES[kind].log_scale:
            return np.log(np.where(found > 0, found, np.nan))
    return found


def declared(transform: Transform, kind: str) -> tuple[str, str]:
    """The name and the declaration of the family of y where `transform(y)` is Normal or StudentT."""
    if kind == "student":
        name, header = f"{transform.name}StudentT", "nu : Real 1 [low=0.0], loc, scale : Real 1 [low=0.0]"
        lines = [
            "    let gammas = lgamma(0.5 * (nu + 1)) - lgamma(0.5 * nu)",
            "    let constant = gammas - 0.5 * log(3.141592653589793 * nu) - log(scale)",
            f"    density(x) = constant - 0.5 * (nu + 1) * log1p((({transform.inside} - loc) / scale)^2 / nu) "
            f"{transform.log_derivative}",
            f"    draw = {transform.back.format('StudentT(nu, loc, scale)')}",
        ]
    else:
        name, header = f"{transform.name}Normal", "loc, scale : Real 1 [low=0.0]"
        lines = [
            f"    density(x) = -0.9189385332046727 - log(scale) - 0.5 * (({transform.inside} - loc) / scale)^2 "
            f"{transform.log_derivative}",
            f"    draw = {transform.back.format('Normal(loc, scale)')}",
        ]
    inside = transform.inside.replace("x", "y")
    head = f"# y, where {inside} is {'Student t' if kind == 'student' else 'normal'}."
    return name, "\n".join([head, f"family {name}({header}) : Real 1{transform.bound}", *lines, ""])


def amount(node: Node | None) -> float | None:
    """The number that a bound says."""
    found = number(node, np.nan)
    return None if np.isnan(found) else found
