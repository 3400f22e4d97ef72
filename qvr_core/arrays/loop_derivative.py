"""The derivative of a loop: a loop the other way round.

What each turn adds to the derivatives of what it reads is carried back through the turn's own nodes; of what the loop
has computed that is kept which takes more than arithmetic (`recurrences.CHEAP` is done again).
"""

from __future__ import annotations

from collections.abc import Sequence

from qvr_core.arrays import operations as g
from qvr_core.arrays.graph import Array, Unsupported
from qvr_core.arrays.operations import pointwise as p
from qvr_core.arrays.recurrences import Body, Loop, State
from qvr_core.arrays.reverse_accumulation import add_slope, carry_back, rule


@rule("loop")
def _loop(node: Array, d: Array) -> Sequence[Array | None]:
    """A loop the other way round: what each turn adds to the derivatives of what it reads."""
    body: Body = node.params[0]
    if body.reverse:
        raise Unsupported("the second derivative of a loop")
    graph, starts = node.graph, sum(len(state.back) for state in body.states)
    rows, captured = node.args[starts : starts + len(body.items)], node.args[starts + len(body.items) :]
    given, series = body.parts(d), body.parts(node)
    back = Loop(graph, body.count, reverse=True, like=node)
    slopes: dict[int, Array] = {}
    pending: list[list[Array]] = []
    for state, own, made in zip(body.states, given, series, strict=False):
        depth = len(state.back)
        for at, one in enumerate(state.back, 1):
            back.rows[one.number] = g.cut(made, 0, depth - at, depth - at + body.count)
        # what later turns have left for the elements before them
        pending.append([back.state(g.zeros(graph, one.shape)) for one in state.back])
        add_slope(slopes, state.made, p("add", back.item(g.cut(own, 0, depth, depth + body.count)), pending[-1][0]))
        back.rows[state.made.number] = g.cut(made, 0, depth, depth + body.count)
    first = len(body.states)
    for each, own in zip(body.emitted, given[first:], strict=False):
        add_slope(slopes, each, back.item(own))
    first += len(body.emitted)
    for each, made in zip(body.kept, series[first:], strict=False):
        back.rows[each.number] = made
    for each, own in zip(body.summed, given[first + len(body.kept) :], strict=True):
        add_slope(slopes, each, own)
    depends = {one.number for state in body.states for one in state.back}
    depends |= {
        item.number for item, own in zip(body.items, rows, strict=True) if not own.constant and own.kind == "real"
    }
    depends |= {each.number for each in captured if not each.constant and each.kind == "real"}
    inside: list[Array] = []
    for inner in body.nodes:
        if any(arg.number in depends for arg in inner.args):
            depends.add(inner.number)
            inside.append(inner)
    carry_back(slopes, reversed(inside), depends)

    def slope_of(one: Array) -> Array:
        return slopes.get(one.number, g.zeros(graph, one.shape))

    states: list[State] = []
    for state, left in zip(body.states, pending, strict=True):
        for at, (one, own) in enumerate(zip(state.back, left, strict=True)):
            made = slope_of(one)
            states.append(State((own,), p("add", made, left[at + 1]) if at + 1 < len(left) else made))
    wanted = [item for item in body.items if item.number in depends]
    summed = [each for each in captured if each.number in depends]
    _, found = back.run(states, [slope_of(item) for item in wanted], [slope_of(each) for each in summed])
    parts = iter(found)
    firsts: list[Array] = []
    for state, own in zip(body.states, given, strict=False):
        left = [g.select(next(parts), 0, body.count) for _ in state.back]
        firsts += [p("add", g.select(own, 0, at), left[-1 - at]) for at in range(len(left))]
    by_row = {item.number: next(parts) for item in wanted}
    by_value = {each.number: next(parts) for each in summed}
    return [*firsts, *(by_row.get(item.number) for item in body.items), *(by_value.get(one.number) for one in captured)]
