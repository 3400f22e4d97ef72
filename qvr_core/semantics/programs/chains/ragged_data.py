"""`data x : Person * Item -> Real 1 [lengths=n]`: ragged data, and what has their lengths with them.

A step over the same sets has the lengths of the data without saying so, a let that reads them at its own indices has
them, and a sum runs over what is there (`semantics/arithmetic/elements/ragged_sums.py`).
(docs/reference.md#ragged-data-chains-of-unequal-length)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from qvr_core.semantics.arithmetic.arithmetic import check_arith
from qvr_core.semantics.arrows.objects import written
from qvr_core.semantics.arrows.options import removal
from qvr_core.semantics.programs.chains.ragged_reads import Counted, inherited, lengths_of, lengths_text
from qvr_core.semantics.scope.environment import MISTAKEN, Binding, Running, StepContext
from qvr_core.semantics.types.axes import set_of
from qvr_core.semantics.types.diagnostics import Origin, Related
from qvr_core.semantics.types.model.expressions import Expr, ValueType
from qvr_core.semantics.types.model.steps import LetModel
from qvr_core.semantics.types.program_codes import AXES_MISMATCH, STEP_OPTION
from qvr_core.semantics.types.spaces import Finite, Named, Unknown
from qvr_core.syntax.tree.arithmetic import Variable
from qvr_core.syntax.tree.declarations import Item
from qvr_core.syntax.tree.names import Name, Span
from qvr_core.syntax.tree.objects import ObjectExpr, ParenObject, ProductExpr
from qvr_core.syntax.tree.options import Option, Word
from qvr_core.syntax.tree.steps import DataStep
from qvr_core.syntax.tree.units import Placed

_KEY = "lengths over "
"""No name of a file begins so: under it and their sets stand the lengths of ragged data among a program's names."""
_NOWHERE = Origin(0, Span(0, 0))


def ragged_sets(lines: Sequence[Placed[Item]]) -> dict[str, Binding]:
    """For the sets that ragged data of a program run over: the names of their lengths."""
    found: dict[str, list[str]] = {}
    for placed in lines:
        node = placed.unit.node
        for option in () if not isinstance(node, DataStep) or node.options is None else node.options.items:
            if option.key.text == "lengths" and isinstance(option.value, Word) and isinstance(node, DataStep):
                key = _KEY + " * ".join(_factors(node.axes))
                found.setdefault(key, []).append(option.value.text)
    unknown = ValueType(Unknown())
    return {
        key: Binding("lengths", unknown, Named(Unknown(), "?"), _NOWHERE, columns=frozenset(names))
        for key, names in found.items()
    }


def _factors(expr: ObjectExpr) -> list[str]:
    while isinstance(expr, ParenObject):
        expr = expr.inner
    if isinstance(expr, ProductExpr):
        return [text for factor in expr.factors for text in _factors(factor)]
    return [written(expr)]


def data_lengths(step: DataStep, over: Sequence[Finite] | None, ctx: StepContext) -> str:
    """The name of the lengths that a `data` line says, '' where it says none; reports other options, and what cannot be
    lengths of these data."""
    found = ""
    for option in step.options.items if step.options is not None else ():
        assert step.options is not None
        if option.key.text != "lengths":
            message = f"`data` has no option `{option.key.text}`; it has `lengths`"
            ctx.scope.report(STEP_OPTION, message, option.key.span, fixes=(removal(step.options, option, ctx.scope),))
        elif over is not None:
            found = _checked(step, option, over, ctx) or MISTAKEN
    return found


def _checked(step: DataStep, option: Option, over: Sequence[Finite], ctx: StepContext) -> str:
    name, value = step.names[0].text, option.value
    leading = [one.nominal or str(one) for one in over[:-1]]
    wanted = counts_over(leading)
    if not over:
        message = f"`lengths` counts the elements along the last set of data, and `{name}` is a single value"
        ctx.scope.report(STEP_OPTION, message, option.span)
        return ""
    if not isinstance(value, Word):
        message = f"`lengths` names how many elements there are: declare `data n : {wanted}`, and write `lengths=n`"
        ctx.scope.report(STEP_OPTION, message, option.span)
        return ""
    declared = ctx.find(value.text)
    if declared is None or declared.kind != "data" or declared.numbers != "count":
        message = f"`lengths` are whole numbers from 0 that come with the data: declare `data {value.text} : {wanted}` "
        ctx.scope.report(STEP_OPTION, message + "above this line", value.span)
        return ""
    if list(map(_set_of, declared.type.indexed)) != [_set_of(one.nominal) for one in over[:-1]]:
        message = f"`{name}` has a sequence for {each_of(leading)}: declare `data {value.text} : {wanted}`"
        related = (Related(f"`{value.text}` is declared here", declared.origin),)
        ctx.scope.report(AXES_MISMATCH, message, value.span, related)
        return ""
    return value.text


def _set_of(axis: str | None) -> str | None:
    return None if axis is None else set_of(axis)


def counts_over(leading: Sequence[str]) -> str:
    """What lengths are declared to be that have a count for each element of some sets: `Person -> Nat`."""
    return f"{' * '.join(leading)} -> Nat" if leading else "Nat"


def each_of(leading: Sequence[str]) -> str:
    """What has a sequence each, in words."""
    return f"each element of {' * '.join(leading)}" if leading else "all of its elements together"


def implied_lengths(name: Name, indices: Sequence[Running], said: Expr | None, ctx: StepContext) -> Expr | None:
    """The lengths of a step: what it says, else those of the data that it observes, else those of data over its sets.

    Reports lengths that are not those of the data, and data over its sets that have different ones.
    """
    own = ctx.bindings.get(name.text)
    observed = ""
    if own is not None and own.kind == "data":
        # read, and so checked again with its line; what the step binds itself it does not read
        ctx.find(name.text)
        observed = own.lengths
    if observed == MISTAKEN:
        return None
    if said is not None:
        if observed and lengths_text(said) != observed and own is not None:
            message = f"`{name.text}` has `lengths={observed}` where it is declared: leave the option out here"
            related = (Related(f"`{name.text}` is declared here", own.origin),)
            ctx.scope.report(STEP_OPTION, message, said.origin, related)
            return None
        return said
    among = ctx.find(_KEY + " * ".join(one.named.written for one in indices))
    if not observed and among is not None:
        names = sorted(
            one for one in among.columns if (found := ctx.find(one)) is not None and found.numbers == "count"
        )
        if len(names) > 1:
            listed = " or ".join(f"`[lengths={one}]`" for one in names)
            message = f"data over the sets of `{name.text}` have different lengths: say which it has, {listed}"
            ctx.scope.report(STEP_OPTION, message, name.span)
            return None
        observed = names[0] if names else ""
    return check_arith(Variable(Name(observed, name.span)), ctx) if observed else None


def with_lengths(let: LetModel, bindings: Sequence[tuple[str, Binding]], ctx: StepContext) -> list[tuple[str, Binding]]:
    """The names of a let, with the lengths of what it reads at its own indices."""
    known = _known(ctx.reads)
    found = {} if let.indexed is None or not known else dict(inherited(let, known))
    return [
        (name, replace(one, lengths=lengths_text(found[name].lengths)) if name in found else one)
        for name, one in bindings
    ]


def _known(read: Mapping[str, Binding | None]) -> dict[str, Counted]:
    return {
        name: Counted(name, name, lengths_of(one.lengths, one.origin), len(one.type.indexed), one.origin)
        for name, one in read.items()
        if one is not None and one.lengths not in ("", MISTAKEN)
    }
