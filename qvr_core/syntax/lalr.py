"""The LALR(1) driver: tokens -> what the builder makes of them, or the place where they stop making sense.

It keeps no state between calls, so any number of threads may parse at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from qvr_core.syntax.immutable import immutable
from qvr_core.syntax.tables import Table


class Token(NamedTuple):
    """A terminal of the grammar with its text and its place in the unit."""

    kind: str
    text: str
    start: int
    end: int


Action = Callable[[list[Any], int, int], Any]


@immutable
class Failure:
    """Token number `position` is acceptable nowhere after the tokens before it; `states` is the stack there."""

    position: int
    states: tuple[int, ...]


def run(table: Table, actions: Mapping[str, Action], tokens: Sequence[Token], start: str) -> Any:
    """Parse `tokens`, whose last is `$END`, from the start symbol.

    Returns the value that the action of the outermost rule made, or a `Failure`.
    """
    shifts, gotos, rules = table.actions, table.gotos, table.rules
    states = [table.starts[start]]
    values: list[Any] = []
    starts: list[int] = []
    ends: list[int] = []
    for position, token in enumerate(tokens):
        kind = token.kind
        while True:
            action = shifts[states[-1]].get(kind)
            if action is None:
                return Failure(position, tuple(_before(table, tokens[:position], start)))
            if action >= 0:
                break
            rule = rules[-action - 1]
            size = rule.size
            first, last = starts[-size], ends[-1]
            children = values[-size:]
            if len(rule.kept) != size:
                children = [children[i] for i in rule.kept]
            if rule.splices:
                children = _spliced(children, rule.helper)
            del states[-size:], values[-size:], starts[-size:], ends[-size:]
            if rule.helper:
                values.append(children)
            elif rule.action:
                values.append(actions[rule.action](children, first, last))
            else:
                values.append(children[0])
            states.append(gotos[states[-1]][rule.origin])
            starts.append(first)
            ends.append(last)
        states.append(action)
        values.append(token)
        starts.append(token.start)
        ends.append(token.end)
    return values[-2]


def _before(table: Table, tokens: Sequence[Token], start: str) -> list[int]:
    """The state stack after `tokens`, before anything was reduced because of what follows: LALR reduces too eagerly
    where the next token turns out to be wrong, and forgets what else could have followed."""
    states = [table.starts[start]]
    for token in tokens:
        states = advance(table, states, token.kind) or states
    return states


def _spliced(children: list[Any], in_place: bool) -> list[Any]:
    """Children with the lists that helper rules made put in their place; a growing repetition grows in place."""
    flat: list[Any] = []
    for child in children:
        if type(child) is not list:
            flat.append(child)
        elif in_place and not flat:
            flat = child  # pyright: ignore[reportUnknownVariableType]
        else:
            flat += child
    return flat


def advance(table: Table, states: Sequence[int], kind: str) -> list[int] | None:
    """The state stack after reading a terminal of that kind, or None where it is not acceptable."""
    reduced = reductions(table, states, kind)
    if reduced is None:
        return None
    return [*reduced, table.actions[reduced[-1]][kind]]


def reductions(table: Table, states: Sequence[int], kind: str) -> list[int] | None:
    """The state stack from which a terminal of that kind is shifted, or None where it is not acceptable."""
    stack = list(states)
    while True:
        action = table.actions[stack[-1]].get(kind)
        if action is None:
            return None
        if action >= 0:
            return stack
        rule = table.rules[-action - 1]
        del stack[-rule.size :]
        stack.append(table.gotos[stack[-1]][rule.origin])


def acceptable(table: Table, states: Sequence[int]) -> frozenset[str]:
    """The terminals that may come next."""
    return frozenset(kind for kind in table.actions[states[-1]] if reductions(table, states, kind) is not None)
