"""A program from a formula such as `y ~ x + (1 + x | g)` and the columns of a table, as lme4 and brms read it."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import polars as pl

from qvr_core.data.column_names import listed, nearest

WORD = r"[A-Za-z_]\w*"
FAMILIES = ("normal", "bernoulli", "poisson")


class WrongFormula(Exception):
    """A formula that cannot be read, or that the table does not fit; the message says what to write."""


@dataclass(frozen=True)
class Group:
    """`(1 + x | g)`: an intercept where there is one, and slopes, for each level of `by`; `correlated` unless `||`."""

    by: str
    intercept: bool
    slopes: tuple[str, ...]
    correlated: bool


@dataclass(frozen=True)
class Formula:
    outcome: str
    intercept: bool
    terms: tuple[str, ...]
    groups: tuple[Group, ...] = ()


@dataclass
class _Text:
    """The lines of a program as they come."""

    objects: list[str] = field(default_factory=list[str])
    data: list[str] = field(default_factory=list[str])
    steps: list[str] = field(default_factory=list[str])
    sum: list[str] = field(default_factory=list[str])


def parsed(formula: str) -> Formula:
    """Read a formula.  Raises `WrongFormula`."""
    left, tilde, right = formula.partition("~")
    outcome = left.strip()
    if not tilde or not re.fullmatch(WORD, outcome) or not right.strip():
        raise WrongFormula(f"`{formula}` is no formula: write `outcome ~ predictor + (1 | group)`")
    groups: list[Group] = []

    def taken(match: re.Match[str]) -> str:
        inner, bars, by = match[1], match[2], match[3].strip()
        if not re.fullmatch(WORD, by):
            raise WrongFormula(f"`{match[0]}`: one column stands behind the bar")
        intercept, slopes = _terms(inner, formula)
        groups.append(Group(by, intercept, slopes, bars == "|"))
        return ""

    rest = re.sub(r"\+?\s*\(([^()|]*)(\|\|?)([^()|]*)\)", taken, right)
    intercept, terms = _terms(rest, formula) if rest.strip() else (True, ())
    return Formula(outcome, intercept, terms, tuple(groups))


def check_names(formula: str, columns: Collection[str]) -> None:
    """Raises `WrongFormula` where a formula speaks of a column whose name is no word."""
    for column in sorted(columns, key=len, reverse=True):
        if not re.fullmatch(WORD, column) and column.strip() in formula:
            better = re.sub(r"\W+", "_", column.strip()).strip("_") or "x"
            better = better if re.fullmatch(WORD, better) else f"x_{better}"
            raise WrongFormula(f"the name of column `{column}` is no word: rename it in the table, as `{better}`")


def _terms(text: str, formula: str) -> tuple[bool, tuple[str, ...]]:
    """Whether there is an intercept, and the predictors of a sum."""
    intercept, terms = True, list[str]()
    for term in (part.strip() for part in text.split("+")):
        if term == "0":
            intercept = False
        elif re.fullmatch(WORD, term):
            terms.append(term)
        elif term not in ("1", ""):
            raise WrongFormula(
                f"`{term}` in `{formula}`: terms are columns, 0, 1 and (… | group); make a column of what is computed"
            )
    return intercept, tuple(dict.fromkeys(terms))


def program(formula: Formula, columns: Mapping[str, pl.Series], family: str | None, name: str) -> str:
    """The text of a program: data with their types, weakly informative priors on the scale of the data, and why.

    Raises `WrongFormula` where a column is missing, has gaps, or does not fit.
    """
    used = [formula.outcome, *formula.terms, *(one for g in formula.groups for one in (g.by, *g.slopes))]
    for column in dict.fromkeys(used):
        _check(column, columns)
    for slope in (one for g in formula.groups for one in g.slopes):
        if not columns[slope].dtype.is_numeric():
            raise WrongFormula(f"`{slope}` holds text, and a slope that differs between groups wants numbers")
    y = columns[formula.outcome]
    kind = family or _family(y, formula.outcome)
    _check_outcome(y, formula.outcome, kind)
    numbers = y.cast(pl.Float64)
    centre, spread = (_float(numbers.mean()), _float(numbers.std()) or 1.0) if kind == "normal" else (0.0, 1.0)
    typed = {"bernoulli": " -> Bool", "poisson": " -> Nat"}.get(kind, "")
    text = _Text(data=[f"    data {formula.outcome} : Row{typed}"])
    if formula.intercept:
        _intercept(formula, columns, centre, spread, kind, text)
    labels = [term for term in formula.terms if not columns[term].dtype.is_numeric()]
    sets = dict.fromkeys([*(group.by for group in formula.groups), *labels])
    for one in sets:
        text.objects.append(f"object {_set(one)} : FinSet _")
        text.data.append(f"    data {one} : Row -> {_set(one)}")
    for term in formula.terms:
        _fixed(term, columns[term], spread, one_set=term in sets, text=text)
    for group in formula.groups:
        _varying(group, columns, spread, text)
    slopes = dict.fromkeys([*formula.terms, *(one for g in formula.groups for one in g.slopes)])
    text.data += [f"    data {one} : Row" for one in slopes if one not in sets]
    return _assembled(formula, kind, spread, text, name)


def _assembled(formula: Formula, kind: str, spread: float, text: _Text, name: str) -> str:
    total = " + ".join(text.sum) or "0.0"
    draws = {
        "normal": "Normal(mean[i], sigma)",
        "bernoulli": "Bernoulli(logits=mean[i])",
        "poisson": "Poisson(log_rate=mean[i])",
    }
    if kind == "normal":
        text.steps.append("    # sigma: what the predictors leave, of the size of the outcome's sd or less")
        text.steps.append(f"    sample sigma <- HalfNormal({_n(spread)})")
    head = f"# {_written(formula)}: {kind}, by `qvr new`. Every prior is stated; change what you know better."
    lines = [head, "object Row : FinSet _", *text.objects, "", f"program {name} : Row -> Row", *text.data, ""]
    lines += [*text.steps, f"    let mean[i : Row] = {total}"]
    lines += [f"    observe {formula.outcome}[i : Row] <- {draws[kind]}", f"    return {formula.outcome}"]
    return "\n".join([*lines, "", f"export {name}", ""])


def _intercept(
    formula: Formula, columns: Mapping[str, pl.Series], centre: float, spread: float, kind: str, text: _Text
) -> None:
    """The level where all predictors are 0: the wider, the further from their middle that is."""
    numeric = [columns[term].cast(pl.Float64) for term in formula.terms if columns[term].dtype.is_numeric()]
    away = [_float(one.mean()) / (_float(one.std()) or 1.0) for one in numeric]
    scale = 2.5 * spread * (1.0 + sum(one * one for one in away)) ** 0.5
    what = {"normal": "the outcome", "bernoulli": "the log odds", "poisson": "the log rate"}[kind]
    wider = "; wider, since the data are far from there" if scale > 5 * spread else ""
    text.steps.append(f"    # intercept: {what} where all predictors are 0{wider}")
    text.steps.append(f"    sample intercept <- Normal({_n(centre)}, {_n(scale)})")
    text.sum.append("intercept")


def _written(formula: Formula) -> str:
    parts = ["1" if formula.intercept else "0", *formula.terms]
    for g in formula.groups:
        inner = " + ".join(["1" if g.intercept else "0", *g.slopes])
        parts.append(f"({inner} {'|' if g.correlated else '||'} {g.by})")
    return f"{formula.outcome} ~ {' + '.join(parts)}"


def _fixed(term: str, column: pl.Series, spread: float, *, one_set: bool, text: _Text) -> None:
    if one_set:
        text.steps.append(f"    # by_{term}: what each level of {term} adds; levels are drawn towards 0")
        text.steps.append(f"    sample by_{term}[l : {_set(term)}] <- Normal(0.0, {_n(2.5 * spread)})")
        text.sum.append(f"by_{term}[{term}[i]]")
        return
    scale = 2.5 * spread / (_float(column.cast(pl.Float64).std()) or 1.0)
    text.steps.append(f"    # b_{term}: one sd of {term} may well move the mean by 2.5 sd of the outcome, either way")
    text.steps.append(f"    sample b_{term} <- Normal(0.0, {_n(scale)})")
    text.sum.append(f"b_{term} * {term}[i]")


def _varying(group: Group, columns: Mapping[str, pl.Series], spread: float, text: _Text) -> None:
    """How the levels of a group differ: non-centred, and correlated where there are several effects."""
    effects = [*(["intercept"] if group.intercept else []), *group.slopes]
    by, levels = group.by, _set(group.by)
    sizes = {"intercept": spread} | {
        one: spread / (_float(columns[one].cast(pl.Float64).std()) or 1.0) for one in group.slopes
    }
    factors = {one: "" if one == "intercept" else f" * {one}[i]" for one in effects}
    if len(effects) == 1 or not group.correlated:
        for one in effects:
            drawn = f"sample {by}_{one}[l : {levels}] <- Normal(0.0, sd_{by}_{one}) [noncentred]"
            text.steps.append(f"    # how much the {one} differs between levels of {by}, and by how much in each")
            text.steps += [f"    sample sd_{by}_{one} <- HalfNormal({_n(sizes[one])})", f"    {drawn}"]
            text.sum.append(f"{by}_{one}[{by}[i]]{factors[one]}")
        return
    effect = f"{levels}Effect"
    text.objects.append(f"object {effect} : {{{', '.join(f'{one}_{by}' for one in effects)}}}")
    text.steps.append(f"    # how much {', '.join(effects)} differ between levels of {by}, and go together (LKJ)")
    text.steps += [f"    sample sd_{by}_{one} <- HalfNormal({_n(sizes[one])})" for one in effects]
    total = f"sum(cor_{by}[e, k] * z_{by}[l, k] for k : {effect})"
    text.steps += [
        f"    let sd_{by} = concat({', '.join(f'sd_{by}_{one}' for one in effects)})",
        f"    sample cor_{by} <- LKJCholesky(2.0) [over={effect}]",
        f"    sample z_{by}[l : {levels}, e : {effect}] <- Normal(0.0, 1.0)",
        f"    let effect_{by}[l : {levels}, e : {effect}] = sd_{by}[e] * {total}",
    ]
    text.sum += [f"effect_{by}[{by}[i], {one}_{by}]{factors[one]}" for one in effects]


def _check(name: str, columns: Mapping[str, pl.Series]) -> None:
    if name not in columns:
        near = nearest(name, list(columns))
        instead = f"; did you mean `{near}`?" if near else f"; there are {listed(columns)}"
        raise WrongFormula(f"no column `{name}`{instead}")
    if gaps := columns[name].null_count():
        cells, them = ("an empty cell", "it") if gaps == 1 else (f"{gaps} empty cells", "them")
        raise WrongFormula(f"column `{name}` has {cells}: fill {them} in, or leave the row{'s'[: gaps > 1]} out")


def _family(y: pl.Series, name: str) -> str:
    """What an outcome looks like."""
    if y.dtype == pl.Boolean or (y.dtype.is_integer() and set(y.unique().to_list()) <= {0, 1}):
        return "bernoulli"
    if y.dtype.is_integer() and _float(y.min()) >= 0:
        which = "say whether they are counts, --family poisson, or measures, --family normal"
        raise WrongFormula(f"`{name}` holds whole numbers: {which}")
    if y.dtype.is_numeric():
        return "normal"
    raise _words(y, name)


def _words(y: pl.Series, name: str) -> WrongFormula:
    """The outcome is text."""
    found = [str(one) for one in y.drop_nulls().unique(maintain_order=True).to_list()]
    shown = f" ({', '.join(f'`{one}`' for one in found)})" if len(found) <= 4 else ""
    what = "write 0 and 1 in their place" if len(found) == 2 else "an outcome is a number, or 0 and 1"
    return WrongFormula(f"`{name}` holds text{shown}: {what}")


def _check_outcome(y: pl.Series, name: str, kind: str) -> None:
    if not (y.dtype.is_numeric() or y.dtype == pl.Boolean):
        raise _words(y, name)
    values = y.cast(pl.Float64)
    if kind == "bernoulli" and not set(values.unique().to_list()) <= {0.0, 1.0}:
        raise WrongFormula(f"`{name}` is not all 0 and 1, which --family bernoulli wants")
    if kind == "poisson" and (_float(values.min()) < 0 or bool((values != values.floor()).any())):
        raise WrongFormula(f"`{name}` is not all whole numbers from 0, which --family poisson wants")


def _set(column: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in column.split("_")) + "Levels"


def _n(number: float) -> str:
    """Two digits are enough for a prior."""
    written = f"{number:.2g}"
    return written if any(mark in written for mark in ".e") else f"{written}.0"


def _float(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
