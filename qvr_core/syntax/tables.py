"""The LALR table of `grammar.lark`, compiled by lark and kept as `grammar.json` beside it.

Reading the table takes a few milliseconds where compiling the grammar takes half a second, and needs no lark at run
time.  `python -m qvr_core.syntax.tables` writes it; a test keeps it fresh.
"""

from __future__ import annotations

import json
from collections import deque
from functools import cache
from pathlib import Path
from typing import Any

from qvr_core.syntax.immutable import immutable

GRAMMAR = Path(__file__).with_name("grammar.lark")
COMPILED = Path(__file__).with_name("grammar.json")

STARTS = (
    "statement",
    "step",
    "deduction_item",
    "lexicon_entry",
    "composition_rule",
    "expr",
    "objexpr",
    "arith",
)


@immutable
class Rule:
    """A production: `size` symbols become one.

    `action` names the builder's function; '' hands the only kept child on.  `kept` are the positions of children that
    the builder sees; `helper` rules (lark's repetitions) make lists that are spliced into the parent's children.
    """

    origin: str
    size: int
    action: str
    kept: tuple[int, ...]
    helper: bool
    splices: bool


@immutable
class Table:
    """LALR(1) table.  An action is a shift to state `n` (n ≥ 0) or a reduction by rule `-n - 1` (n < 0)."""

    rules: tuple[Rule, ...]
    actions: tuple[dict[str, int], ...]
    gotos: tuple[dict[str, int], ...]
    symbols: tuple[str, ...]
    """`symbols[s]` is the grammar symbol that leads into state `s` ('' for a start state)."""
    starts: dict[str, int]
    literals: dict[str, str]
    """Terminal by its fixed text: operators and keywords."""


def compile_grammar() -> dict[str, Any]:
    """Compile `grammar.lark` with lark into what `grammar.json` holds."""
    from lark import Lark
    from lark.grammar import Rule as LarkRule
    from lark.parsers.lalr_analysis import Shift

    compiled = Lark(GRAMMAR.read_text(encoding="utf-8"), parser="lalr", start=list(STARTS), maybe_placeholders=False)
    front: Any = compiled.parser
    table: Any = front.parser._parse_table
    # States and rules are numbered as they are met from the starts on: lark's own numbers differ from run to run.
    order: dict[int, int] = {}
    rules: dict[LarkRule, int] = {}
    symbols: list[str] = []
    actions: list[dict[str, int]] = []
    gotos: list[dict[str, int]] = []
    pending: deque[int] = deque()

    def number(state: int, symbol: str) -> int:
        if state not in order:
            order[state] = len(order)
            symbols.append(symbol)
            actions.append({})
            gotos.append({})
            pending.append(state)
        return order[state]

    starts = {start: number(table.start_states[start], "") for start in STARTS}
    while pending:
        state = pending.popleft()
        for symbol, (kind, argument) in sorted(table.states[state].items(), key=_symbol):
            if kind is Shift:
                into = actions if symbol.isupper() or symbol == "$END" else gotos
                into[order[state]][symbol] = number(argument, symbol)
            else:
                actions[order[state]][symbol] = -rules.setdefault(argument, len(rules)) - 1
    for end in table.end_states.values():
        # lark stops before the end of input is shifted; the driver shifts it, into a state that nothing follows.
        actions[order[end]]["$END"] = order[end]
    return {
        "rules": [_rule_entry(rule) for rule in rules],
        "actions": actions,
        "gotos": gotos,
        "symbols": symbols,
        "starts": starts,
        "literals": {t.pattern.value: t.name for t in compiled.terminals if t.pattern.type == "str"},
    }


def _symbol(entry: tuple[str, Any]) -> str:
    return entry[0]


def _rule_entry(rule: Any) -> list[Any]:
    origin: str = rule.origin.name
    helper = origin.startswith("_")
    kept = [i for i, symbol in enumerate(rule.expansion) if not (symbol.is_term and symbol.filter_out)]
    splices = any(not symbol.is_term and symbol.name.startswith("_") for symbol in rule.expansion)
    hands_on = rule.options.expand1 and not rule.alias and len(kept) == 1 and not splices
    action = "" if helper or hands_on else rule.alias or origin
    return [origin, len(rule.expansion), action, kept, helper, splices]


@cache
def table() -> Table:
    """The table of the grammar."""
    data = json.loads(COMPILED.read_text(encoding="utf-8"))
    return Table(
        rules=tuple(Rule(o, n, a, tuple(k), h, s) for o, n, a, k, h, s in data["rules"]),
        actions=tuple(data["actions"]),
        gotos=tuple(data["gotos"]),
        symbols=tuple(data["symbols"]),
        starts=data["starts"],
        literals=data["literals"],
    )


if __name__ == "__main__":
    COMPILED.write_text(json.dumps(compile_grammar(), separators=(",", ":"), sort_keys=True) + "\n", encoding="utf-8")
