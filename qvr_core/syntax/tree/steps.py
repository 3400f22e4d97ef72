"""The steps of programs.

The name of a step may carry `binders`, in brackets at `bracket`; `start` is what follows `from`: the first elements of
a step that reads earlier ones.
"""

from __future__ import annotations

from qvr_core.syntax.immutable import immutable
from qvr_core.syntax.tree.arithmetic import Arith, ArithArg, Binder
from qvr_core.syntax.tree.arrows import ArrowExpr
from qvr_core.syntax.tree.names import Name, Span
from qvr_core.syntax.tree.objects import ObjectExpr
from qvr_core.syntax.tree.options import Options


@immutable
class Pattern:
    """What a step binds: one name, or several in brackets.  `brackets` is '', '()' or '[]'."""

    names: tuple[Name, ...]
    brackets: str
    span: Span


@immutable
class Draw:
    """The right of `<-`.  `args` is None where no parentheses were written.

    `expression` is set where an anonymous arrow expression stands in place of a name (an error with a fix that
    extracts it to a let); `name` is then its first name.  So is `l.F(…)`: where `l` is an import's prefix, the checker
    reads a name with arguments.
    """

    name: Name
    args: tuple[ArithArg, ...] | None
    expression: ArrowExpr | None
    span: Span


@immutable
class SampleStep:
    pattern: Pattern
    space: ObjectExpr | None
    draw: Draw
    options: Options | None
    span: Span
    binders: tuple[Binder, ...] = ()
    bracket: Span | None = None
    start: Arith | None = None


@immutable
class ObserveStep:
    name: Name
    space: ObjectExpr | None
    draw: Draw
    options: Options | None
    span: Span
    binders: tuple[Binder, ...] = ()
    bracket: Span | None = None
    start: Arith | None = None
    outcome: Arith | None = None
    """What is observed, where that is a function of the name: `observe log(y)[i : Row] <- …`."""
    rivals: tuple[str, ...] = ()
    """The other names of it that may as well be what is observed."""


@immutable
class PredictStep:
    """`predict f[h : Ahead] <- Normal(m, s)`: drawn from the posterior after the fit."""

    name: Name
    space: ObjectExpr | None
    draw: Draw
    options: Options | None
    span: Span
    binders: tuple[Binder, ...] = ()
    bracket: Span | None = None
    start: Arith | None = None


@immutable
class MarginalizeStep:
    """The opening line of a `marginalize` block; its body is the placed children of the unit."""

    name: Name
    space: ObjectExpr | None
    draw: Draw
    options: Options | None
    span: Span
    binders: tuple[Binder, ...] = ()
    bracket: Span | None = None
    start: Arith | None = None


@immutable
class LetStep:
    pattern: Pattern
    value: Arith
    span: Span
    binders: tuple[Binder, ...] = ()
    bracket: Span | None = None
    start: Arith | None = None
    space: ObjectExpr | None = None


@immutable
class DataStep:
    """`data county : House -> County`: names that come from outside.

    `axes` is what stands behind the colon, `value` what stands behind the arrow; a single value (`data n : Nat`) has
    its kind in `axes`.
    """

    names: tuple[Name, ...]
    axes: ObjectExpr
    value: ObjectExpr | None
    options: Options | None
    span: Span


@immutable
class ParamStep:
    """`param m : County -> Real 3 [init=0.0]`: numbers that a guide learns; the type is written as that of data."""

    names: tuple[Name, ...]
    axes: ObjectExpr
    value: ObjectExpr | None
    options: Options | None
    span: Span


@immutable
class ScoreStep:
    name: Name
    value: Arith
    span: Span


@immutable
class ReturnItem:
    """`v`, or `label: v` in a tuple."""

    label: Name | None
    name: Name
    span: Span


@immutable
class ReturnStep:
    """`return v` (`tupled` false) or `return (a, b: c)`."""

    items: tuple[ReturnItem, ...]
    tupled: bool
    span: Span


DrawStep = SampleStep | ObserveStep | PredictStep | MarginalizeStep


Step = DrawStep | LetStep | ScoreStep | DataStep | ParamStep | ReturnStep
