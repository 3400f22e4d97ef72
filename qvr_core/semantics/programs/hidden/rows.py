"""What the block of a plain `marginalize z : Row <- …` reads of z: its value in each row, of which each is summed out
by itself.

So nothing below may bring values of several rows together.  What reads z (a let, too) carries the axes of its rows
through to what is observed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from qvr_core.semantics.arithmetic.broadcasting import axes
from qvr_core.semantics.language.builtins import BUILTINS
from qvr_core.semantics.language.declared_families import facts_of_draw
from qvr_core.semantics.language.family import Parameter
from qvr_core.semantics.scope.environment import StepContext
from qvr_core.semantics.types.axes import indexed, set_of
from qvr_core.semantics.types.model.expressions import Bound, Builtin, Expr, Index, Window
from qvr_core.semantics.types.model.families import FamilyDraw
from qvr_core.semantics.types.model.steps import LetModel, ObserveModel, SampleModel, Site, StepModel
from qvr_core.semantics.types.program_codes import CANNOT_MARGINALIZE, INDEX_MISMATCH, UNSIZED_DRAW
from qvr_core.semantics.types.spaces import Finite, Named, factors_of
from qvr_core.semantics.types.walk import operands, values
from qvr_core.syntax.immutable import immutable
from qvr_core.syntax.tree.arithmetic import Comprehension
from qvr_core.syntax.tree.declarations import Item
from qvr_core.syntax.tree.names import Name
from qvr_core.syntax.tree.steps import MarginalizeStep, SampleStep, Step
from qvr_core.syntax.tree.units import Placed
from qvr_core.syntax.walk import walk

Sets = frozenset[str]

_MIXING = {
    "softmax", "log_softmax", "softmin", "cumsum", "cumprod", "logcumsumexp", "sort", "argsort", "flip", "normalize",
    "layer_norm", "roll", "tril", "triu",
}  # fmt: skip
"""Functions whose value has the axes of the argument, and that bring elements of the last one together."""


@immutable
class Summed:
    """The block that a step stands in: what it sums out, as written, in which rows or groups, and with which values."""

    name: str
    rows: Named | None
    values: str
    groups: Named | None = None

    @property
    def sets(self) -> Sets:
        factors = () if self.rows is None else factors_of(self.rows.space)
        return frozenset(one.nominal for one in factors if isinstance(one, Finite) and one.nominal is not None)

    @property
    def remedy(self) -> str:
        """The block written with an index for each set of its rows."""
        factors = [] if self.rows is None else [one for one in factors_of(self.rows.space) if isinstance(one, Finite)]
        letters = "ijklmn" if len(factors) <= 6 else ""
        over = ", ".join(f"{letter} : {one.nominal}" for letter, one in zip(letters, factors, strict=False))
        return f"`marginalize {self.name}[{over}] : {self.values} <- …`"


def is_indexed(placed: Placed[Item]) -> bool:
    """Whether a block, or one in it, uses index notation."""
    for child in placed.children:
        node = child.unit.node
        if isinstance(node, MarginalizeStep) and not node.binders and is_indexed(child):
            return True
        if node is not None and not isinstance(node, MarginalizeStep) and _has_indices(node):
            return True
    return False


def _has_indices(node: Item | Step) -> bool:
    return bool(getattr(node, "binders", ())) or any(isinstance(part, Comprehension) for part in walk(node))


def check_rows(node: Step, model: StepModel, block: Summed, told: int, ctx: StepContext) -> tuple[int, ...]:
    """Report what a step of the block does with several rows; where its indices stand that are those of the rows.

    Adds the names that a `let` computes from what is summed out to `ctx.summed`.  `told` is how many mistakes had been
    told before the step.
    """
    given = values(model)
    if isinstance(model, LetModel):
        sets = _depends(given, ctx.summed)
        if sets is not None:
            ctx.summed.update(dict.fromkeys(model.names, sets))
    strict = _has_indices(node)
    for value in given if strict else ():
        unknown = _unknown(value, ctx.summed)
        if unknown is not None and len(ctx.scope.diagnostics) == told:
            message = f"nothing says what values `{block.name}` takes: write {block.remedy}"
            ctx.scope.report(UNSIZED_DRAW, message, unknown.origin)
    for value in given:
        place = _crossing(value, ctx.summed, strict=strict)
        if place is not None and len(ctx.scope.diagnostics) == told:
            _report_crossing(place, block, ctx)
    if isinstance(model, SampleModel | ObserveModel) and len(ctx.scope.diagnostics) == told:
        return _places(node, model.site, given, block, ctx)
    return ()


def check_within(name: Name, block: Summed, ctx: StepContext) -> None:
    """Report a hidden chain in a block that sums out a value for each row: it belongs to none of them."""
    each = block.rows or block.groups
    if each is None:
        return
    message = f"`{name.text}` has indices, and belongs to no {each.written} of `{block.name}`: "
    ctx.scope.report(CANNOT_MARGINALIZE, f"{message}move it out of the block, or sum both out as one state", name.span)


def _report_crossing(place: Expr, block: Summed, ctx: StepContext) -> None:
    rows = "row" if block.rows is None else block.rows.written
    message = f"each {rows} has a `{block.name}` of its own that is summed out by itself, and this reads another's"
    remedy = f"; to read it at a place that data say, write {block.remedy}" if isinstance(place, Index) else ""
    ctx.scope.report(CANNOT_MARGINALIZE, message + remedy, place.origin)


# ---------------------------------------------------------------- what depends on the value


def _depends(given: Iterable[Expr], summed: Mapping[str, Sets]) -> Sets | None:
    """The sets of the rows of what values are computed from; None where nothing that is summed out is read."""
    found: Sets | None = None
    for value in given:
        own = summed.get(value.name) if isinstance(value, Bound) else _depends(operands(value), summed)
        if own is not None:
            found = own if found is None else found | own
    return found


def _labels(value: Expr, own: str) -> list[str]:
    """The axes of a value that run over a set."""
    return [name for _, name in axes(value.type) or [] if name is not None and set_of(name) == own]


def _unknown(value: Expr, summed: Mapping[str, Sets]) -> Expr | None:
    """The innermost value that reads what is summed out in rows, and of which only data tell the axes."""
    if not _depends((value,), summed):
        return None
    inner = next((found for part in operands(value) if (found := _unknown(part, summed)) is not None), None)
    return inner or (value if value.type.space is None else None)


def _crossing(value: Expr, summed: Mapping[str, Sets], *, strict: bool) -> Expr | None:
    """The innermost place where values of several rows come together."""
    inner = operands(value)
    for part in inner:
        found = _crossing(part, summed, strict=strict)
        if found is not None:
            return found
    sets = _depends((value,), summed)
    if not sets:
        return None
    return value if any(_mixes(value, own, summed, strict=strict) for own in sets) else None


def _mixes(value: Expr, own: str, summed: Mapping[str, Sets], *, strict: bool) -> bool:
    read = [part for part in operands(value) if own in (_depends((part,), summed) or ())]
    known = axes(value.type) is not None
    if isinstance(value, Builtin) and any(_last(part) == own for part in read):
        function = BUILTINS.get(value.function)
        if value.function in _MIXING or (function is not None and function.rule in ("reduce", "matmul")):
            return True
    if strict and isinstance(value, Window) and value.shift and read and own in _windowed(value):
        return True
    if isinstance(value, Index) and value.base in read and own in _picked(value):
        return True
    return strict and known and len(_labels(value, own)) != 1


def _last(value: Expr) -> str | None:
    found = axes(value.type)
    name = found[-1][1] if found else None
    return None if name is None else set_of(name)


def _windowed(value: Window) -> list[str]:
    """The set of the axis that an index runs along."""
    found = axes(value.base.type) or []
    name = found[value.axis][1] if -value.axis <= len(found) else None
    return [] if name is None else [set_of(name)]


def _picked(value: Index) -> list[str]:
    """The sets of the axes that indices pick from."""
    found = axes(value.base.type)
    if found is None:
        return [set_of(name) for name in value.base.type.indexed if name is not None]
    return [set_of(name) for _, name in found[: len(value.indices)] if name is not None]


# ---------------------------------------------------------------- what is observed


def _places(node: Step, site: Site, given: Iterable[Expr], block: Summed, ctx: StepContext) -> tuple[int, ...]:
    """The places of the indices of a step that run over the rows of the block, in their order."""
    if isinstance(node, SampleStep) and site.chain is not None:
        message = f"`{site.name}` is one value for all that `{block.name}` may be: draw it above the block"
        ctx.scope.report(CANNOT_MARGINALIZE, message, site.origin)
        return ()
    event = _event(site, ctx.summed)
    if event is not None:
        _report_crossing(event, block, ctx)
        return ()
    if not site.indices or not block.sets or block.rows is None:
        return ()
    labels = [label for value in given if _depends((value,), ctx.summed) is not None for label in _indexed(value)]
    order = [one.nominal for one in factors_of(block.rows.space) if isinstance(one, Finite)]
    names = [one.name for one in site.indices]
    found = [
        names.index(label.partition("#")[2]) for own in order for label in dict.fromkeys(labels) if set_of(label) == own
    ]
    if len(found) == len(order):
        return tuple(found)
    message = f"nothing in `{site.name}` says which {block.rows.written} each element belongs to: read `{block.name}` "
    ctx.scope.report(INDEX_MISMATCH, f"{message}in it, or move it out of the block", site.origin)
    return ()


def _indexed(value: Expr) -> list[str]:
    return [name for _, name in axes(value.type) or [] if name is not None and indexed(name)]


def _event(site: Site, summed: Mapping[str, Sets]) -> Expr | None:
    """An argument of which one draw reads the values of several rows."""
    if not isinstance(site.draw, FamilyDraw):
        return None
    ranks = {name: one.rank for one in facts_of_draw(site.draw).parameters for name in _names(one)}
    for name, value in site.draw.args:
        found = axes(value.type) or []
        own = [set_of(axis) for _, axis in found[len(found) - ranks.get(name, 0) :] if axis is not None]
        if ranks.get(name, 0) and any(axis in (_depends((value,), summed) or ()) for axis in own):
            return value
    return None


def _names(parameter: Parameter) -> list[str]:
    return [parameter.name, *(name for name, _ in parameter.alternatives)]
