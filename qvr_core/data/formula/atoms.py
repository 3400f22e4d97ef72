"""The parts of terms: numeric ones as columns that enter a sum, centred; the others as factors."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qvr_core.data.formula import arithmetic
from qvr_core.data.formula.columns import word_of
from qvr_core.data.formula.numbers import exact
from qvr_core.data.formula.problems import LeftOut
from qvr_core.data.formula.syntax import Binary, Call, Name, Node, Number, number, written
from qvr_core.data.formula.syntax import Text as Quoted
from qvr_core.data.formula.text import Factor, Text

FACTORS = ("factor", "C", "as.factor", "as_factor")
SCALED = ("scale", "standardize", "standardise", "zscore")
CENTRED = ("center", "centre")
SMOOTH = ("s", "gp", "bs", "ns", "cr", "t2", "te", "ti", "mm", "mmc", "cs", "me")


@dataclass(frozen=True)
class Numeric:
    """One column of numbers in a sum."""

    text: str
    label: str
    sd: float
    size: str
    """In words, what a step of it is."""
    middle: str
    """In words, where it is zero."""


def is_factor(node: Node, text: Text) -> bool:
    """Whether a part of a term is levels rather than numbers: a column of text, or one called `factor(…)`."""
    match node:
        case Name(name):
            column = text.table.column(name)
            return column is not None and column.kind == "factor"
        case Call(name) if name in FACTORS:
            return True
        case _:
            return False


def factor(node: Node, text: Text) -> Factor:
    """Raises `LeftOut`."""
    reference, summed = None, False
    match node:
        case Call(_, (Name(name), *rest)):
            keywords = dict(node.keywords)
            given = keywords.get("ref", keywords.get("reference", keywords.get("base")))
            if given is not None:
                reference = given.value if isinstance(given, Quoted) else written(given)
            coding = [*rest, *(value for key, value in node.keywords if key in ("contr", "contrasts"))]
            for one in coding:
                match one:
                    case Name("Sum" | "contr.sum" | "sum") | Quoted("contr.sum"):
                        summed = True
                    case Call("Treatment" | "contr.treatment", arguments):
                        reference = str(getattr(arguments[0], "value", "")) if arguments else reference
                    case Name("Treatment" | "contr.treatment") | Quoted("contr.treatment"):
                        pass
                    case _:
                        raise LeftOut(f"the coding `{written(one)}` has no program yet")
        case Name(name):
            pass
        case _:
            raise LeftOut(f"`{written(node)}` is a factor of something computed")
    column = text.table.column(name)
    if column is None:
        raise LeftOut(f"there is no column `{name}`")
    if column.distinct < 2:
        raise LeftOut(f"`{name}` has one level only")
    if column.kind == "factor" and column.distinct == len(column.series) - column.gaps:
        raise LeftOut(f"`{name}` has another value in every row")
    return text.factor(column, reference, summed=summed)


def numeric(node: Node, text: Text, present: Collection[str], *, centred: bool) -> list[Numeric]:
    """The columns of a numeric part.  `present` are the other parts of the formula, as they are written.

    Raises `LeftOut`.
    """
    match node:
        case Call("mi", (Name() as inner, *_)):
            return numeric(inner, text, present, centred=centred)
        case Call("mo", (Name() as inner, *_)):
            return [_monotonic(inner, text)]
        case Call("poly", (inner, *rest)):
            degree = int(number(rest[0] if rest else node.keyword("degree"), 1))
            raw = written(node.keyword("raw") or Name("FALSE")) in ("TRUE", "True", "T")
            return _polynomial(inner, degree, text, raw=raw)
        case Call(name, (inner, *_)) if name in SCALED:
            return [_shifted(inner, text, scaled=True)]
        case Call(name, (inner, *_)) if name in CENTRED:
            return [_shifted(inner, text, scaled=False)]
        case Call(name) if name in SMOOTH:
            raise LeftOut("it has a program only as a term of its own")
        case _:
            pass
    found = arithmetic.values(node, text.table)
    known = found[~np.isnan(found)]
    if not len(known) or float(known.std()) == 0.0:
        raise LeftOut("it has the same value in every row")
    if set(np.unique(known)) <= {0.0, 1.0}:
        there = arithmetic.said(node, lambda one: _datum(one, text))
        label = _label(node, text)
        one_bool = isinstance(node, Name) and text.table.columns[node.text].kind == "bool"
        what = f"{label} true against false" if one_bool else f"{label} 1 against 0"
        return [Numeric(there, label, 1.0, what, f"{label} {'false' if one_bool else '0'}")]
    power = _power(node, present)
    if centred and power is not None:
        return [_power_about_the_mean(*power, text)]
    return [_shifted(node, text, scaled=False) if centred else _plain(node, text)]


def _datum(name: str, text: Text) -> str:
    return text.number(text.table.columns[name])


def _label(node: Node, text: Text) -> str:
    match node:
        case Name(name) if name in text.table.columns:
            return text.table.columns[name].word
        case Call("I", (inner,)):
            return _label(inner, text)
        case _:
            return word_of(written(node))


def _moments(found: NDArray[np.float64]) -> tuple[float, float]:
    known = found[~np.isnan(found)]
    return float(known.mean()), float(known.std(ddof=1))


def _plain(node: Node, text: Text) -> Numeric:
    """As it is: without an intercept a sum goes through the origin, and shifting a predictor is another model."""
    found = arithmetic.values(node, text.table)
    size = float(np.sqrt(np.nanmean(found**2)))
    label = _label(node, text)
    there = arithmetic.said(node, lambda one: _datum(one, text))
    there = there if isinstance(node, Name | Call) and not _is_i(node) else f"({there})"
    return Numeric(there, label, size, f"{label} of its usual size ({exact(size)})", f"{label} 0")


def _is_i(node: Node) -> bool:
    return isinstance(node, Call) and node.name == "I"


def _let(name: str, value: str, comment: str, text: Text) -> None:
    line = f"    let {name}[{text.running}] = {value}"
    if not any(one.startswith(f"{line}  #") or one == line for one in text.lets):
        text.lets.append(f"{line}  # {comment}" if comment else line)


def _shifted(node: Node, text: Text, *, scaled: bool) -> Numeric:
    found = arithmetic.values(node, text.table)
    mean, sd = _moments(found)
    if sd == 0.0:
        raise LeftOut("it has the same value in every row")
    label = _label(node, text)
    what = written(node)
    there = arithmetic.said(node, lambda one: _datum(one, text))
    if isinstance(node, Call) and node.name == "I" and isinstance(node.arguments[0], Binary):
        there = there if node.arguments[0].operator in ("^", "*", "/") else f"({there})"
    less = f"{there} - {exact(mean)}" if mean >= 0 else f"{there} + {exact(-mean)}"
    if scaled:
        _let(f"{label}_s", f"({less}) / {exact(sd)}", f"from the mean of {what}, in its sd", text)
        return Numeric(f"{label}_s[{text.row}]", label, 1.0, f"one sd of {what} ({sd:.3g})", f"{what} {mean:.4g}")
    _let(f"{label}_c", less, f"from the mean of {what}", text)
    return Numeric(f"{label}_c[{text.row}]", label, sd, f"one sd of {what} ({sd:.3g})", f"{what} {mean:.4g}")


def _power(node: Node, present: Collection[str]) -> tuple[Name, int] | None:
    """`I(x^2)` where x is there as well, `I(x^3)` where x and its square are."""
    match node:
        case Call("I", (Binary("^", Name() as base, Number(value)),)) if value == int(value) and 2 <= value <= 5:
            lower = [base.text, *(f"I({base.text}^{k})" for k in range(2, int(value)))]
            return (base, int(value)) if all(one in present for one in lower) else None
        case _:
            return None


def _power_about_the_mean(base: Name, power: int, text: Text) -> Numeric:
    first = _shifted(base, text, scaled=False)
    found = arithmetic.values(base, text.table)
    mean, _ = _moments(found)
    raised = (found - mean) ** power
    middle, sd = _moments(raised)
    label = f"{first.label}_{power}"
    less = f"- {exact(middle)}" if middle >= 0 else f"+ {exact(-middle)}"
    comment = f"a power about the mean of {written(base)}: b_{first.label} is the slope there"
    _let(f"{label}_c", f"{first.text}^{power} {less}", comment, text)
    what = f"({written(base)} - {mean:.4g})^{power}"
    return Numeric(f"{label}_c[{text.row}]", label, sd, f"one sd of {what} ({sd:.3g})", first.middle)


def _polynomial(node: Node, degree: int, text: Text, *, raw: bool) -> list[Numeric]:
    """Orthogonal polynomials, each of sd 1: the same curves as R's, whose columns have length 1."""
    if not 1 <= degree <= 6:
        raise LeftOut("polynomials are written up to the sixth degree")
    if raw:
        first = numeric(node, text, (), centred=True)
        powers = [_power_about_the_mean(node, k, text) for k in range(2, degree + 1)] if isinstance(node, Name) else []
        if not isinstance(node, Name):
            raise LeftOut("raw powers are of a column")
        return [*first, *powers]
    base = _shifted(node, text, scaled=True)
    found = arithmetic.values(node, text.table)
    mean, sd = _moments(found)
    x = (found - mean) / sd
    known = ~np.isnan(x)
    columns, sides = [np.ones(int(known.sum())), x[known]], [base.text]
    made = [Numeric(base.text, f"{base.label}_1", 1.0, f"one sd of {written(node)}", base.middle)]
    for power in range(2, degree + 1):
        raised = columns[-1] * x[known]
        against = [float((raised * one).mean() / (one * one).mean()) for one in columns]
        rest = raised - sum(weight * one for weight, one in zip(against, columns, strict=True))
        size = float(rest.std(ddof=1))
        if size < 1e-9:
            raise LeftOut(f"{written(node)} has too few values for degree {degree}")
        names_of = ["1.0", *sides]
        less = "".join(
            f" {'-' if weight >= 0 else '+'} {exact(abs(weight))}" + ("" if one == "1.0" else f" * {one}")
            for weight, one in zip(against, names_of, strict=True)
            if abs(weight) > 1e-12
        )
        label = f"{base.label}_{power}"
        _let(f"{label}_p", f"({sides[-1]} * {base.text}{less}) / {exact(size)}", f"degree {power}, sd 1", text)
        columns.append(rest / size)
        sides.append(f"{label}_p[{text.row}]")
        made.append(Numeric(sides[-1], label, 1.0, f"one sd of its part of degree {power}", base.middle))
    return made


def _monotonic(node: Name, text: Text) -> Numeric:
    """Steps between ordered values: their shares of the whole way, 0 at the lowest, 1 at the highest."""
    column = text.table.column(node.text)
    if column is None:
        raise LeftOut(f"there is no column `{node.text}`")
    if column.kind != "number" or column.gaps or bool((column.known != np.floor(column.known)).any()):
        raise LeftOut("mo() wants whole numbers without gaps, in their order")
    low, high = int(column.known.min()), int(column.known.max())
    if not 2 <= high - low <= 50:
        raise LeftOut("mo() wants from 3 to 51 values")
    word = column.word
    steps = f"{''.join(part[:1].upper() + part[1:] for part in word.split('_'))}Step"
    name, share = f"{word}_way", f"step_{word}"
    if steps not in text.objects:
        k = text.letters[0]
        text.objects[steps] = f"object {steps} : FinSet {high - low}"
        text.lets.append(f"    # {name}: how far of the way from {word} {low} to {high}; each step has its share")
        text.lets.append(f"    sample {share} <- Dirichlet(1.0) [over={steps}]")
        here = f"{_datum(node.text, text)} - {low}.0" if low else _datum(node.text, text)
        text.lets.append(f"    let {name}[{text.running}] = sum({share}[{k}] * ({k} < {here}) for {k} : {steps})")
    return Numeric(f"{name}[{text.row}]", word, 1.0, f"the whole way from {word} {low} to {high}", f"{word} {low}")
