"""The states of a hidden chain as axes, and as text."""

from __future__ import annotations

from qvr_core.semantics.arithmetic.broadcasting import Axis, axes
from qvr_core.semantics.arithmetic.elementwise import words
from qvr_core.semantics.arithmetic.unindexed_values import report_whole
from qvr_core.semantics.programs.chains.along import Along
from qvr_core.semantics.programs.family_draws import TypedFamily
from qvr_core.semantics.scope.environment import StepContext
from qvr_core.semantics.types.axes import axis_of
from qvr_core.semantics.types.program_codes import INDEX_MISMATCH
from qvr_core.semantics.types.spaces import Finite, Named
from qvr_core.syntax.tree.arithmetic import Gather, Variable
from qvr_core.syntax.tree.names import Name


def state_label(name: Name, states: Named, back: int) -> str:
    nominal = states.space.nominal if isinstance(states.space, Finite) else None
    return axis_of(nominal, name.text + "'" * back)


def state_axis(name: Name, states: Named, back: int) -> Axis:
    """The axis of all values of a state, `back` elements before."""
    size = states.space.size if isinstance(states.space, Finite) else None
    return (int(size) if isinstance(size, int) else None, state_label(name, states, back))


def element_text(name: Name, along: Along, back: int) -> str:
    """The state at the element of a step, or one before it along the last index, as text."""
    places = [one.name for one in along.indices if one.name]
    places[-1:] = [f"{place} - {back}" if back else place for place in places[-1:]]
    return f"{name.text}[{', '.join(places)}]" if places else name.text


def refuse_whole(drawn: TypedFamily, states: Named, element: str, ctx: StepContext) -> None:
    """Report an argument that runs over all states, of which each element has one, `element`."""
    own = states.space.nominal if isinstance(states.space, Finite) else None
    for argument in drawn.arguments:
        shape = axes(argument.value.type) or []
        given = [name for _, name in shape[: max(0, len(shape) - argument.parameter.rank)]]
        if own is not None and own in given:
            where = ctx.scope.origin(argument.tree.span)
            report_whole(argument.value, words(argument.tree, f"`{argument.name}`"), own, element, where, ctx)


def refuse_single(drawn: TypedFamily, name: Name, states: Named, element: str, ctx: StepContext) -> None:
    """Report `Categorical(P[z[t - 1]])` of one vector `P`, where each previous state, `element`, wants a row.

    What is one number for each previous state would be read as the vector over the next ones.
    """
    before = state_label(name, states, 1)
    for argument in drawn.arguments:
        shape = axes(argument.value.type) or []
        own = shape[len(shape) - argument.parameter.rank :] if argument.parameter.rank else []
        if before not in [label for _, label in own]:
            continue
        tree = argument.tree
        base = tree.base.name.text if isinstance(tree, Gather) and isinstance(tree.base, Variable) else None
        said = words(tree, f"`{argument.name}`")
        put = f"`{base}` is one vector: give each state a row, `{base}[s : {states.written}]`"
        remedy = put if base is not None else f"it wants a row, a vector for each `{element}`"
        message = f"{said} is one number for each `{element}`, and {drawn.family.name} wants a vector there; {remedy}"
        ctx.scope.report(INDEX_MISMATCH, message, tree.span)
