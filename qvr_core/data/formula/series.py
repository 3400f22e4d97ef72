"""`ar(p=1)`: what stays of what the predictors left at earlier rows."""

from __future__ import annotations

from qvr_core.data.formula import syntax
from qvr_core.data.formula.families import moments
from qvr_core.data.formula.numbers import exact
from qvr_core.data.formula.outcomes import TRANSFORMS, Outcome
from qvr_core.data.formula.problems import LeftOut
from qvr_core.data.formula.syntax import Call, Name
from qvr_core.data.formula.text import Text


def autoregression(node: Call, y: str, outcome: Outcome, kind: str, mean: str, text: Text) -> str:
    """The shares of the residuals before, as text behind the mean.  Raises `LeftOut`."""
    if node.name != "ar":
        raise LeftOut(f"there is no program for `{node.name}()` yet")
    if kind not in ("normal", "student", "lognormal"):
        raise LeftOut(f"--family {kind} has no residuals")
    keywords = dict(node.keywords)
    if "gr" in keywords:
        raise LeftOut("one series for each group has no program yet")
    time = node.arguments[0] if node.arguments else keywords.get("time")
    if isinstance(time, Name):
        column = text.table.columns[time.text]
        order = column.series.drop_nulls()
        if not order.is_sorted():
            raise LeftOut(f"the rows are not in the order of `{time.text}`: sort the table")
    row, k = text.row, text.letters[0]
    lags = int(syntax.number(keywords.get("p"), 1))
    transform = outcome.transform if outcome.transform in TRANSFORMS else ""
    transform = "log" if kind == "lognormal" else transform
    before = f"{y}[{row} - 1 - {k}]" if lags > 1 else f"{y}[{row} - 1]"
    before = TRANSFORMS[transform].inside.replace("x", before, 1) if transform == "sqrt" else before
    before = f"{transform}({before})" if transform and transform != "sqrt" else before
    if outcome.transform == "scale":
        middle, sd = moments(outcome.column.numbers)
        before = f"({before} - {exact(middle)}) / {exact(sd)}"
    ar = text.free("ar")
    where = "at each earlier row" if lags > 1 else "a row before"
    note = f"    # {ar}: how much of what the predictors left {where} stays"
    if lags == 1:
        text.steps += [note, f"    sample {ar} <- TruncatedNormal(0.0, 0.5, low=-1.0, high=1.0)"]
        return f" + {ar} * ({before} - {mean}[{row} - 1])"
    text.objects["Lag"] = f"object Lag : FinSet {lags}"
    text.steps += [note, f"    sample {ar}[{k} : Lag] <- Normal(0.0, 0.5)"]
    return f" + sum({ar}[{k}] * ({before} - {mean}[{row} - 1 - {k}]) for {k} : Lag)"
