"""Elements of an enumeration by their labels, and names that look like one misspelt."""

from __future__ import annotations

from collections.abc import Sequence

from qvr_core.semantics.arithmetic.broadcasting import SCALAR, axes
from qvr_core.semantics.language.spelling import closest, distance
from qvr_core.semantics.scope.environment import StepContext
from qvr_core.semantics.scope.scope import ObjectEntry
from qvr_core.semantics.types.axes import set_of
from qvr_core.semantics.types.diagnostics import Edit, Fix
from qvr_core.semantics.types.model.expressions import Constant, Expr, ValueType
from qvr_core.semantics.types.program_codes import HIDDEN_GLOBAL, POSSIBLE_TYPO, UNKNOWN_LABEL
from qvr_core.semantics.types.spaces import Finite, Space, Unknown
from qvr_core.syntax.tree.arithmetic import Arith, Gather, Literal, Variable
from qvr_core.syntax.tree.names import Name, Span
from qvr_core.syntax.walk import walk

SHOWN = 5
"""Labels that a message lists."""


def may_be_label(tree: Arith, ctx: StepContext) -> bool:
    """Whether an expression may name an element: a text in quotes, or a name that is not bound."""
    if isinstance(tree, Literal):
        return isinstance(tree.value, str)
    return isinstance(tree, Variable) and not binds(tree.name.text, ctx)


def label_at(tree: Arith, space: Space | None, ctx: StepContext) -> Expr | None:
    """The element of a set that an expression names, where it names one."""
    if isinstance(tree, Literal):
        return quoted(tree, space, ctx)
    return labelled(tree.name, space, ctx) if isinstance(tree, Variable) else None


def labelled(name: Name, space: Space | None, ctx: StepContext) -> Expr | None:
    """The element of a set that a name says; one that is not bound and nearly says one is told."""
    if not isinstance(space, Finite) or space.labels is None:
        return None
    if binds(name.text, ctx):
        binding = ctx.find(name.text)
        if name.text in space.labels and name.text not in ctx.indices and binding and not binding.type.indexed:
            _note_hidden(name, space, ctx)
        return None
    if name.text in space.labels:
        return element(name.text, name.span, space, ctx)
    if ctx.scope.lookup(name.text) is None:
        _note_misspelt(name, space.labels, ctx)
    return None


def _note_hidden(name: Name, space: Finite, ctx: StepContext) -> None:
    label, place = f'"{name.text}"', ctx.scope.origin(name.span)
    whole = f"`{space.nominal}`" if space.nominal else "this set"
    message = f"`{name.text}` is the value of that name here; the element of {whole} is `{label}`"
    fix = Fix(f"Change to `{label}`", (Edit(place, label),))
    ctx.scope.report(HIDDEN_GLOBAL, message, place, fixes=(fix,))


def quoted(tree: Literal, space: Space | None, ctx: StepContext) -> Constant | None:
    """The element of a set that a text in quotes says, which must be one; None where the set is not known, or an open
    one without its data."""
    if not isinstance(space, Finite) or not isinstance(tree.value, str):
        return None
    if space.labels is None:
        if isinstance(space.size, int):
            return _unlabelled(tree, space, int(space.size), ctx)
        return None
    if tree.value in space.labels:
        return element(tree.value, tree.span, space, ctx)
    near = closest(tree.value, space.labels)
    place = ctx.scope.origin(tree.span)
    fixes = () if near is None else (Fix(f"Change to `{near}`", (Edit(place, _in_quotes(near, tree)),), True),)
    meant = f"; did you mean `{near}`?" if near is not None else f": those are {listed_labels(space.labels)}"
    whole = f"`{space.nominal}`" if space.nominal else "this set"
    ctx.scope.report(UNKNOWN_LABEL, f"`{tree.value}` is no element of {whole}{meant}", place, fixes=fixes)
    return _no_element(tree, ctx)


def _unlabelled(tree: Literal, space: Finite, size: int, ctx: StepContext) -> Constant:
    whole = f"`{space.nominal}`" if space.nominal else "this set"
    message = f"the elements of {whole} are the numbers from 0 to {size - 1}: they have no labels"
    ctx.scope.report(UNKNOWN_LABEL, message, tree.span)
    return _no_element(tree, ctx)


def _no_element(tree: Literal, ctx: StepContext) -> Constant:
    """What stands for a label that there is not: nothing more is said of it."""
    return Constant(type=ValueType(Unknown()), origin=ctx.scope.origin(tree.span), value=0)


def _in_quotes(label: str, tree: Literal) -> str:
    sign = tree.text[:1] if tree.text[:1] in "\"'" else '"'
    return f"{sign}{label}{sign}"


def listed_labels(labels: tuple[str, ...]) -> str:
    """The first labels of a set, for a message."""
    shown = ", ".join(f"`{label}`" for label in labels[:SHOWN])
    return shown if len(labels) <= SHOWN else f"{shown} and {len(labels) - SHOWN} more"


def only_as_label(name: str, trees: Sequence[Arith], ctx: StepContext) -> bool:
    """Whether a name that the step binds stands in it only where it is an element: `let level[f : F] = z[f, level]`."""
    nodes = [node for tree in trees for node in walk(tree)]
    labels = {
        id(index)
        for node in nodes
        if isinstance(node, Gather) and isinstance(node.base, Variable) and node.base.name.text != name
        for index, own in zip(node.indices, _sets(node.base.name.text, ctx), strict=False)
        if isinstance(index, Variable) and index.name.text == name and own is not None and name in own
    }
    return bool(labels) and all(
        id(node) in labels for node in nodes if isinstance(node, Variable) and node.name.text == name
    )


def _sets(name: str, ctx: StepContext) -> list[tuple[str, ...] | None]:
    """The labels of each set that a bound value runs over."""
    found = None if (binding := ctx.find(name)) is None else axes(binding.type)
    entries = [None if own is None else ctx.scope.lookup(set_of(own)) for _, own in found or []]
    spaces = [entry.space.space if isinstance(entry, ObjectEntry) else None for entry in entries]
    return [space.labels if isinstance(space, Finite) else None for space in spaces]


def binds(name: str, ctx: StepContext) -> bool:
    """Whether a name is bound where the step reads it: it then hides a label."""
    return any(name in names for names in (ctx.bindings, ctx.locals, ctx.aliases, ctx.indices, ctx.hidden))


def element(label: str, span: Span, space: Finite, ctx: StepContext) -> Constant:
    """The place of a label in its set."""
    place = (space.labels or ()).index(label)
    return Constant(type=SCALAR, origin=ctx.scope.origin(span), value=place, element_of=space.nominal or "")


def _note_misspelt(name: Name, labels: tuple[str, ...], ctx: StepContext) -> None:
    near = closest(name.text, labels)
    shorter = 0 if near is None else min(len(near), len(name.text))
    limit = 2 if shorter >= 6 else 1
    if near is None or shorter < 4 or distance(name.text, near, limit) > limit:
        return
    place = ctx.scope.origin(name.span)
    message = f"`{name.text}` is data that the program must be given; did you mean the element `{near}`?"
    ctx.scope.report(POSSIBLE_TYPO, message, place, fixes=(Fix(f"Change to `{near}`", (Edit(place, near),)),))
