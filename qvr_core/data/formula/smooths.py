"""Curves of one predictor: splines of given knots, a smooth whose wiggles the data choose, a Gaussian process."""

from __future__ import annotations

import math

import numpy as np

from qvr_core.data.formula import arithmetic, atoms
from qvr_core.data.formula.numbers import exact, short
from qvr_core.data.formula.problems import LeftOut
from qvr_core.data.formula.scale import Place
from qvr_core.data.formula.syntax import Call, Name, Node, number, written

SPLINE = """\
# A cubic B-spline: a bump over four steps, one in each direction of its knot and one more; and its slope.
def bump(u) = (relu(2.0 - abs(u))^3 - 4.0 * relu(1.0 - abs(u))^3) / 6.0
def bump_slope(u) = sign(u) * (2.0 * relu(1.0 - abs(u))^2 - 0.5 * relu(2.0 - abs(u))^2)

# The spline of knot k, u in steps from the first knot: where data lie its bump, beyond them a straight line.
def in_data(u, last) = clamp(u, min=1.0, max=last)
def spline(u, last, k) = bump(in_data(u, last) - k) + (u - in_data(u, last)) * bump_slope(in_data(u, last) - k)
"""
WAVES = 20


def written_out(node: Node, into: Place) -> str:
    """The term of a sum.  Raises `LeftOut`."""
    assert isinstance(node, Call)
    if len(node.arguments) != 1:
        raise LeftOut("smooths of several columns have no program yet")
    inner = node.arguments[0]
    match node.name:
        case "bs" | "cr":
            return _spline(node, inner, into)
        case "s":
            return _smooth(node, inner, into)
        case "gp":
            if node.keyword("by") is not None:
                raise LeftOut("a Gaussian process for each level has no program yet")
            return _process(inner, into)
        case _:
            raise LeftOut(f"there is no program for `{node.name}()` yet")


def _values(inner: Node, into: Place) -> tuple[str, str, float, float]:
    """The text at the row, a label, the least and the greatest value."""
    found = arithmetic.values(inner, into.text.table)
    known = found[~np.isnan(found)]
    if len(np.unique(known)) < 4:
        raise LeftOut("a curve wants four values at the least")
    there = arithmetic.said(inner, lambda one: into.text.number(into.text.table.columns[one]))
    return there, _label(inner, into), float(known.min()), float(known.max())


def _label(inner: Node, into: Place) -> str:
    from qvr_core.data.formula.columns import word_of

    known = into.text.table.columns
    return known[inner.text].word if isinstance(inner, Name) and inner.text in known else word_of(written(inner))


def _knots(name: str, there: str, low: float, high: float, many: int, into: Place) -> tuple[str, str]:
    """The set of `many` evenly spread splines over a range, and that of knot k at the row: bumps alone are 0 beyond the
    data, and a curve that falls to its mean there predicts what nobody means."""
    k = into.text.letters[-1]
    knots = into.text.free("".join(part[:1].upper() + part[1:] for part in name.split("_")) + "Knot")
    into.text.objects[knots] = f"object {knots} : FinSet {many}"
    if SPLINE not in into.text.defined:
        into.text.defined.append(SPLINE)
    step = (high - low) / (many - 3)
    first = low - step
    less = f"{there} - {exact(first)}" if first >= 0 else f"{there} + {exact(-first)}"
    return knots, f"spline(({less}) / {exact(step)}, {exact(float(many - 2))}, {k})"


def _spline(node: Call, inner: Node, into: Place) -> str:
    """`bs(x, df=5)`: as many free coefficients, each with the prior of the others."""
    degree = int(number(node.keyword("degree"), 3))
    if degree != 3:
        raise LeftOut("splines are cubic")
    df = int(number(node.keyword("df"), number(node.keyword("knots"), 2) + 3))
    if not 3 <= df <= 60:
        raise LeftOut("splines have from 3 to 60 degrees of freedom")
    there, label, low, high = _values(inner, into)
    name, free = into.name(f"{into.part}bs_{label}"), into.name(f"{into.part}free_bs_{label}")
    knots, bump = _knots(name, there, low, high, df + 1, into)
    k = into.text.letters[-1]
    into.text.steps += [
        f"    # {name}: a curve of {label} of {df} degrees of freedom,",
        f"    # about its mean, knots evenly spaced from {low:.4g} to {high:.4g}",
        f"    sample {free}[{k} : {knots}] <- Normal(0.0, {short(into.scale.wide)})",
        f"    let {name}[{k} : {knots}] = {free}[{k}] - mean({free})",
    ]
    into.text.keep.append(name)
    return f"sum({name}[{k}] * {bump} for {k} : {knots})"


def _smooth(node: Call, inner: Node, into: Place) -> str:
    """`s(x)`: spline weights that walk by steps whose size the data say; with `by` a curve for each level."""
    many = int(number(node.keyword("k"), 10))
    if not 4 <= many <= 60:
        raise LeftOut("a smooth has from 4 to 60 knots")
    there, label, low, high = _values(inner, into)
    name = into.name(f"{into.part}s_{label}")
    sd, walk = into.name(f"sd_{name}"), into.name(f"walk_{name}")
    knots, bump = _knots(name, there, low, high, many, into)
    k, other = into.text.letters[-1], into.text.letters[-2]
    comment = f"a smooth curve of {label} about its mean: {many} evenly spaced splines whose weights walk"
    by = node.keyword("by")
    step = short(into.scale.spread)
    into.text.small_steps(0.99)
    if by is None:
        into.text.say(f"{name}: {comment}; {sd}: the size of a step")
        into.text.steps += [
            f"    sample {sd} <- HalfNormal({step})",
            f"    sample {walk} : {knots} <- GaussianRandomWalk({sd}) [noncentred]",
            f"    let {name}[{k} : {knots}] = {walk}[{k}] - mean({walk})",
        ]
        into.text.keep.append(name)
        return f"sum({name}[{k}] * {bump} for {k} : {knots})"
    if not atoms.is_factor(by, into.text):
        raise LeftOut("`by` wants a column of text, or factor(…)")
    levels = atoms.factor(by, into.text)
    at = into.text.letters[0]
    into.text.say(f"{name}: {comment}, one for each level of {levels.word}; {sd}: the size of a step")
    into.text.steps += [
        f"    sample {sd} <- HalfNormal({step})",
        f"    sample {walk}[{at} : {levels.levels}] <- GaussianRandomWalk({sd}) [over={knots}, noncentred]",
        f"    let {name}[{at} : {levels.levels}, {k} : {knots}] = "
        f"{walk}[{at}, {k}] - mean({walk}[{at}, {other}] for {other} : {knots})",
    ]
    into.text.keep.append(name)
    return f"sum({name}[{levels.word}[{into.text.row}], {k}] * {bump} for {k} : {knots})"


def _process(inner: Node, into: Place) -> str:
    """`gp(x)`: the Hilbert space approximation of a squared exponential kernel (Solin and Särkkä 2020; Riutort-Mayol
    et al. 2023), on 1.5 times the range."""
    there, label, low, high = _values(inner, into)
    half = (high - low) / 2
    boundary = 1.5 * half
    name = into.name(f"{into.part}gp_{label}")
    length, size, z, middle = (into.name(f"{kind}_{name}") for kind in ("length", "size", "z", "middle"))
    waves = into.text.free("".join(part[:1].upper() + part[1:] for part in name.split("_")) + "Wave")
    into.text.objects[waves] = f"object {waves} : FinSet {WAVES}"
    k = into.text.letters[-1]
    slow = exact(math.pi / (2 * boundary))
    start = (low + high) / 2 - boundary
    less = f"{there} - {exact(start)}" if start >= 0 else f"{there} + {exact(-start)}"
    root = exact(1.0 / math.sqrt(boundary))
    into.text.small_steps(0.99)
    into.text.steps += [
        f"    # {name}: a Gaussian process over {label} about its mean there, by {WAVES} sines;",
        f"    # {size}: how far it goes, {length}: over what distance in {label} it turns",
        f"    sample {size} <- HalfNormal({short(into.scale.spread)})",
        f"    sample {length} <- LogNormal({short(math.log(half))}, 0.5)",
        f"    sample {z}[{k} : {waves}] <- Normal(0.0, 1.0)",
        f"    let {name}[{k} : {waves}] = {size} * sqrt(2.50663 * {length}) *",
        f"        exp(-0.25 * ({length} * {slow} * ({k} + 1))^2) * {z}[{k}]",
        # the integral of a sine over the range of the data, by its length: else the longest goes with the intercept
        f"    let {middle}[{k} : {waves}] = {exact(1.5 / math.pi)} * (cos({exact(math.pi / 6)} * ({k} + 1)) -",
        f"        cos({exact(math.pi * 5 / 6)} * ({k} + 1))) / ({k} + 1)",
    ]
    into.text.keep.append(name)
    return f"{root} * sum({name}[{k}] * (sin({slow} * ({k} + 1) * ({less})) - {middle}[{k}]) for {k} : {waves})"
