"""The LALR table of `grammar.lark`, compiled by lark and kept as `grammar.json` beside it.

Reading the table takes a few milliseconds where compiling the grammar takes half a second.  What one version of lark
has written need not suit another: where the installed one is not that of `grammar.json`, the grammar is compiled and
the result kept in the user's cache.  Both are JSON made by lark's `serialize`; its `save`, `load` and `cache=` are
pickles.

`python -m qvr_core.syntax.grammar` writes `grammar.json`; a test keeps it fresh.
"""

# lark's types are partial.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

import json
import os
import tempfile
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import lark
from lark.common import LexerConf
from lark.grammar import Rule
from lark.lexer import Lexer, LexerState
from lark.parsers.lalr_analysis import IntParseTable, Reduce, Shift
from lark.parsers.lalr_parser import LALR_Parser
from lark.utils import SerializeMemoizer

from qvr_core.syntax.callbacks import callbacks
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


class UnitLexer(Lexer):
    """Hands lark the tokens of a unit: `tokenize` has read them, and repairs may have changed them since."""

    __future_interface__ = 2

    def __init__(self, conf: LexerConf | None = None) -> None:
        """What lark knows of terminals is of no use here."""

    def lex(self, lexer_state: LexerState, parser_state: Any) -> Iterator[lark.Token]:
        tokens: Any = lexer_state.text
        # lark ends the tokens by itself
        return iter(tokens[:-1])


def compiled_grammar() -> lark.Lark:
    """`grammar.lark`, compiled anew."""
    return lark.Lark(
        GRAMMAR.read_text(encoding="utf-8"),
        parser="lalr",
        lexer=UnitLexer,
        start=list(STARTS),
        maybe_placeholders=False,
    )


def serialized(grammar: lark.Lark) -> dict[str, Any]:
    """What `grammar.json` holds: the table and its rules as lark serializes them, and the fixed texts of terminals."""
    front: Any = grammar.parser
    memo = SerializeMemoizer([Rule])
    table = _numbered(front.parser._parse_table).serialize(memo)
    literals = {t.pattern.value: t.name for t in grammar.terminals if t.pattern.type == "str"}
    return {"lark": lark.__version__, "table": table, "rules": memo.serialize(), "literals": literals}


def _numbered(table: IntParseTable) -> IntParseTable:
    """The table with its states numbered as they are met from the starts on: lark's numbers differ from run to run."""
    order: dict[int, int] = {}
    states: dict[int, dict[str, tuple[Any, Any]]] = {}
    pending: deque[int] = deque()

    def number(state: int) -> int:
        if state not in order:
            order[state] = len(order)
            pending.append(state)
        return order[state]

    starts = {start: number(table.start_states[start]) for start in STARTS}
    while pending:
        state = pending.popleft()
        row = sorted(table.states[state].items(), key=lambda entry: entry[0])
        states[order[state]] = {
            symbol: (Shift, number(argument)) if action is Shift else (Reduce, argument)
            for symbol, (action, argument) in row
        }
    return IntParseTable(states, starts, {start: order[table.end_states[start]] for start in STARTS})


@immutable
class Grammar:
    """The grammar at run time."""

    parser: LALR_Parser
    literals: dict[str, str]
    """Terminal by its fixed text: operators and keywords."""
    symbols: dict[int, str]
    """The symbol that leads into each state of the table; none into a start."""


def deserialized(data: dict[str, Any]) -> Grammar:
    """The grammar from what JSON holds, whose keys are all texts."""
    held = data["table"]
    rules: dict[int, Rule] = SerializeMemoizer.deserialize(_by_number(data["rules"]), {"Rule": Rule}, {})
    table = {
        **held,
        "tokens": _by_number(held["tokens"]),
        "states": {int(state): _by_number(row) for state, row in held["states"].items()},
    }
    parser = LALR_Parser.deserialize(table, rules, callbacks(rules.values()))
    rows = parser.parser.parse_table.states.values()
    symbols = {argument: symbol for row in rows for symbol, (action, argument) in row.items() if action is Shift}
    return Grammar(parser, data["literals"], symbols)


def _by_number(entries: dict[str, Any]) -> dict[int, Any]:
    return {int(key): value for key, value in entries.items()}


@cache
def grammar() -> Grammar:
    """The grammar.  Any number of threads may use it: its parser keeps no state between calls."""
    data = json.loads(COMPILED.read_text(encoding="utf-8"))
    return deserialized(data) if data["lark"] == lark.__version__ else _of_another_version()


# ---------------------------------------------------------------- another version of lark


def _of_another_version() -> Grammar:
    """The grammar as the installed lark compiles it: from the user's cache, or made anew, where that is damaged too."""
    place = _cache_path()
    with suppress(OSError, ValueError):
        digest, _, text = place.read_text(encoding="utf-8").partition("\n")
        if digest == _digest(text):
            return deserialized(json.loads(text))
    text = json.dumps(serialized(compiled_grammar()), separators=(",", ":"))
    with suppress(OSError):
        _keep(place, f"{_digest(text)}\n{text}")
    return deserialized(json.loads(text))


def _keep(place: Path, text: str) -> None:
    """Write a file as a whole or not at all, whoever else writes it."""
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=place.parent, delete=False) as file:
        file.write(text)
    try:
        os.replace(file.name, place)
    except OSError:
        os.unlink(file.name)


def _cache_path() -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    made_from = _digest(GRAMMAR.read_text(encoding="utf-8"))[:16]
    folder = (Path(base) if base else Path.home() / ".cache") / "qvr" / "grammar"
    return folder / f"{made_from}-lark-{lark.__version__}.json"


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


if __name__ == "__main__":
    COMPILED.write_text(json.dumps(serialized(compiled_grammar()), separators=(",", ":")) + "\n", encoding="utf-8")
