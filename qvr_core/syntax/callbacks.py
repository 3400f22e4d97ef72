"""What lark calls when a rule of `grammar.lark` is complete: callbacks that build nodes of our tree, with their spans.

lark's own builder keeps positions for its `Tree` only.  Here each value on the parser's stack is a `Part`: it and the
extent of its text, which counts the signs that the tree drops.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import itemgetter
from typing import Any

from lark.grammar import Rule

from qvr_core.syntax.builder import ACTIONS
from qvr_core.syntax.tokens import Token

Part = tuple[Any, int, int]


def callbacks(rules: Iterable[Rule]) -> dict[Any, Callable[..., Part]]:
    """The callback of each rule, and of each terminal."""
    rules = tuple(rules)
    terminals = {symbol.name for rule in rules for symbol in rule.expansion if symbol.is_term}
    return {rule: _callback(rule) for rule in rules} | dict.fromkeys(terminals, _terminal)


def _terminal(token: Token) -> Part:
    return token, token.start, token.end


def _callback(rule: Rule) -> Callable[[list[Part]], Part]:
    """The callback of a rule, by lark's conventions: quoted signs are dropped, `?rule` hands its only child on, the
    children of a rule `_r` (such as lark's repetitions) are put in the place of its value."""
    name = rule.origin.name
    kept = [i for i, symbol in enumerate(rule.expansion) if not getattr(symbol, "filter_out", False)]
    whole = len(kept) == len(rule.expansion)
    spliced = {i for i, symbol in enumerate(rule.expansion) if not symbol.is_term and symbol.name.startswith("_")}

    if name.startswith("_"):
        return _repetition(kept, spliced)
    if rule.options.expand1 and not rule.alias and len(kept) == 1 and not spliced:
        return _handed_on(kept[0], whole)
    action = ACTIONS[rule.alias or name]

    def plain(parts: list[Part]) -> Part:
        start, end = parts[0][1], parts[-1][2]
        return action([part[0] for part in parts], start, end), start, end

    def filtered(parts: list[Part]) -> Part:
        start, end = parts[0][1], parts[-1][2]
        return action([parts[i][0] for i in kept], start, end), start, end

    def flattened(parts: list[Part]) -> Part:
        start, end = parts[0][1], parts[-1][2]
        children: list[Any] = []
        for i in kept:
            if i in spliced:
                children += parts[i][0]
            else:
                children.append(parts[i][0])
        return action(children, start, end), start, end

    return flattened if spliced else plain if whole else filtered


def _repetition(kept: list[int], spliced: set[int]) -> Callable[[list[Part]], Part]:
    first, *others = kept
    grows = first in spliced

    def items(parts: list[Part]) -> Part:
        value = parts[first][0]
        # nobody else holds the list, and a long repetition is not copied with every item
        children: list[Any] = value if grows else [value]
        for i in others:
            if i in spliced:
                children += parts[i][0]
            else:
                children.append(parts[i][0])
        return children, parts[0][1], parts[-1][2]

    return items


def _handed_on(place: int, whole: bool) -> Callable[[list[Part]], Part]:
    if whole:
        return itemgetter(0)

    def inner(parts: list[Part]) -> Part:
        return parts[place][0], parts[0][1], parts[-1][2]

    return inner
