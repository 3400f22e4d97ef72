"""The language server's budgets, measured by a fake editor over stdio.

Files are the declarations of the seq2seq example, repeated under fresh names.  Times are medians and 95th percentiles
in milliseconds, from the moment the message is written until the answer has been read.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import re
import statistics
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from qvr_core.semantics.language.families import FAMILIES
from qvr_core.semantics.language.roles import ROLES
from qvr_core.syntax.lexer import COMBINATORS, keyword_kinds
from tests.lsp.editor import EXAMPLES, Editor, at

LONG_ANSWER = re.compile(rb'\{"jsonrpc":"2.0","id":(\d+),"result":')
LONG_PUBLICATION = re.compile(rb'[^\[]*"textDocument/publishDiagnostics"[^\[]*"uri":("[^"]*")[^\[]*\[')
VERSION_AT_END = re.compile(rb'\],"version":(\d+)\}\}$')
OTHER = "file:///bench/other.qvr"
NAME = re.compile(r"\b([A-Za-z_]\w*)\b")
KEPT = {*keyword_kinds(), *COMBINATORS, *FAMILIES, *ROLES, *(key for role in ROLES.values() for key in role.options)}


@dataclass(frozen=True)
class Figure:
    """One measured quantity beside its budget, both in milliseconds (or megabytes)."""

    what: str
    size: str
    values: tuple[float, ...]
    budget: tuple[float, ...]
    unit: str = "ms"

    @property
    def met(self) -> bool:
        return all(value <= limit for value, limit in zip(self.values, self.budget, strict=True))


def seq2seq(lines: int) -> str:
    """The declarations of seq2seq under fresh names until there are `lines` lines."""
    body = [
        line
        for line in (EXAMPLES / "seq2seq.qvr").read_text().split("\n")
        if line.strip() and not line.startswith(("#", "export"))
    ]
    parts: list[str] = []
    while len(parts) < lines:
        number = len(parts) // len(body)
        parts += [NAME.sub(lambda m: m[1] if m[1] in KEPT else f"{m[1]}_{number}", line) for line in body]  # noqa: B023
    return "\n".join(parts[:lines]) + "\n"


def long_program(steps: int) -> str:
    """One program of many steps."""
    body = ["    sample x0 <- Normal(0.0, 1.0)"]
    body += [f"    let x{n} = tanh(x{n - 1}) * 0.5 + x{max(0, n - 7)}" for n in range(1, steps)]
    tail = f"    observe y <- Normal(x{steps - 1}, 1.0)\n    return y\n"
    return "object R : Real 1\nprogram long : R -> R\n" + "\n".join(body) + "\n" + tail


def statistical_program(parts: int) -> str:
    """One program of index notation over typed data: 20 lines a part, 4 of them with indices."""
    head = "object County, House : FinSet _\nobject Feature : {floor, wood, year}\nprogram homes : House -> House\n"
    body = ["    data county : House -> County", "    data x : House * Feature"]
    for n in range(parts):
        body += [f"    data y{n} : House", f"    data soil{n} : County"]
        body += [f"    sample {name}{n} <- Normal(0.0, 1.0)" for name in ("mu", "gamma", "slope", "drift")]
        body += [f"    sample {name}{n} <- HalfNormal(1.0)" for name in ("tau", "sigma", "width", "scale")]
        body += [
            f"    let {b}{n} = exp({a}{n}) * 0.5 + gamma{n}^2" for a, b in zip(["mu", *"pqrst"], "pqrstv", strict=True)
        ]
        body += [
            f"    sample level{n}[c : County] <- Normal(mu{n} + gamma{n} * soil{n}[c], tau{n}) [noncentred]",
            f"    sample beta{n}[f : Feature] <- Normal(slope{n}, width{n})",
            f"    let eta{n}[i : House] = level{n}[county[i]] + sum(beta{n}[f] * x[i, f] for f : Feature) * 0.5",
            f"    observe y{n}[i : House] <- Normal(eta{n}[i] + drift{n} * v{n}, sigma{n} + scale{n})",
        ]
    return head + "\n".join([*body, "    return eta0"]) + "\n"


def many_hints(count: int) -> str:
    """A line for each of many hints."""
    return "".join(f"object Unused_{number} : Real {number % 50 + 1}\n" for number in range(count))


def spread(times: list[float]) -> tuple[float, float]:
    """Median and 95th percentile, in milliseconds."""
    return statistics.median(times) * 1e3, statistics.quantiles(times, n=20)[-1] * 1e3


async def timed(work: Callable[[], Awaitable[object]]) -> float:
    begun = time.perf_counter()
    await work()
    return time.perf_counter() - begun


async def keystrokes(editor: Editor, uri: str, line: int, column: int, count: int, letter: str = "x") -> list[float]:
    """Type and delete one letter, and wait for the diagnostics each time."""
    times: list[float] = []
    start = {"line": line, "character": column}
    for number in range(count):
        if number % 2 == 0:
            change = {"range": {"start": start, "end": start}, "text": letter}
        else:
            change = {"range": {"start": start, "end": {"line": line, "character": column + 1}}, "text": ""}
        begun = time.perf_counter()
        version = editor.change(uri, change)
        await editor.published(uri, version)
        times.append(time.perf_counter() - begun)
    return times


async def questions(editor: Editor, uri: str, lines: list[str], count: int) -> list[float]:
    """Hover, definition and completion in turn, each after an edit far away: nothing may be answered from memory."""
    times: list[float] = []
    places = [(n, line.index(">>")) for n, line in enumerate(lines) if ">>" in line and line.startswith("let")]
    for number in range(count):
        line, column = places[number * 7919 % len(places)]
        method = ("textDocument/hover", "textDocument/definition", "textDocument/completion")[number % 3]
        where = column + 3 if method != "textDocument/hover" else column - 2
        await keystrokes(editor, uri, len(lines) - 1, 0, 2)
        times.append(await timed(lambda: editor.request(method, at(uri, line, where))))  # noqa: B023
    return times


async def first_analysis(editor: Editor, uri: str, text: str) -> tuple[float, float]:
    """Seconds until the diagnostics of an opened file, and the longest wait of another file's hover meanwhile."""
    small = "file:///bench/other.qvr"
    editor.open(small, "object A : Real 3\nmorphism f : A -> A [role=linear]\n")
    await editor.published(small)
    begun = time.perf_counter()
    editor.open(uri, text)
    opened = asyncio.ensure_future(editor.published(uri))
    longest = 0.0
    while not opened.done():
        longest = max(longest, await timed(lambda: editor.hover(small, 1, 9)))
        await asyncio.sleep(0.002)
    return time.perf_counter() - begun, longest


HEAD = "object X : Real 4\nmorphism x0 : X -> X [role=linear]\n"
CHAIN = HEAD + "".join(f"let x{n} = x{n - 1} >> x0\n" for n in range(1, 5001))
EXPRESSION = HEAD + "let y = " + " >> ".join(["x0"] * 5000) + "\n"
UNKNOWN = HEAD + "".join(f"let known{n} = unknown{n} >> x0\n" for n in range(5000))
BRACKETS = HEAD + "let y = " + "(" * 10_000 + "\n"


def short_messages(data: bytes) -> Any:
    """A message, a long answer without what it says: while it is read, no wait could be measured."""
    begun = LONG_ANSWER.match(data) if len(data) > 200_000 else None
    return {"id": int(begun[1]), "result": None} if begun else json.loads(data)


def short_publications(data: bytes) -> Any:
    """A message, a long publication without its diagnostics: how long this benchmark reads is not the server's time."""
    found = LONG_PUBLICATION.match(data[:500]), VERSION_AT_END.search(data[-100:])
    if len(data) < 100_000 or not all(found):
        return json.loads(data)
    params = {"uri": json.loads(found[0][1]), "version": int(found[1][1]), "diagnostics": []}
    return {"method": "textDocument/publishDiagnostics", "params": params}


async def waits(editor: Editor, work: Awaitable[object]) -> float:
    """The longest wait of a hover in another file, in seconds, while some work is done."""
    doing = asyncio.ensure_future(work)
    await asyncio.sleep(0)
    longest = await timed(lambda: editor.hover(OTHER, 1, 9))
    while not doing.done():
        await asyncio.sleep(0.001)
        longest = max(longest, await timed(lambda: editor.hover(OTHER, 1, 9)))
    await doing
    return longest


async def meanwhile(count: int) -> list[Figure]:
    """The longest hover in another file while one is edited or asked about as a whole."""
    uri = "file:///bench/big.qvr"

    async def opened(editor: Editor, text: str) -> None:
        editor.open(uri, text)
        await editor.published(uri)

    figures: list[Figure] = []
    for what, size, text, strokes, asked in (
        ("chain edit", "5,000 lets", CHAIN, (0, 17), None),
        ("edit above mistakes", "5,000 unknown names", UNKNOWN, (0, 17), None),
        ("expression edit", "5,000 stages", EXPRESSION, (2, 10), None),
        ("model", "5,000 lets", CHAIN, None, "qvr/model"),
        ("symbols", "5,000 lets", CHAIN, None, "textDocument/documentSymbol"),
        ("brackets opened", "10,000 brackets", BRACKETS, None, None),
        ("completion in brackets", "10,000 brackets", BRACKETS, None, "textDocument/completion"),
    ):
        editor = await Editor.start(read=short_messages)
        await editor.initialize()
        editor.open(OTHER, "object A : Real 3\nmorphism f : A -> A [role=linear]\n")
        await editor.published(OTHER)
        await asyncio.sleep(1)
        longest = await waits(editor, opened(editor, text))
        for _ in range(count if strokes or asked else 0):
            work: Awaitable[object]
            if strokes:
                work = keystrokes(editor, uri, *strokes, 2, "1")
            else:
                work = editor.request(str(asked), at(uri, 2, 9000))
            longest = max(longest, await waits(editor, work))
        figures.append(Figure(f"longest hover meanwhile: {what}", size, (longest * 1e3,), (50,)))
        await editor.stop()
    return figures


LIBRARY = """\
object Token : FinSet 200
object Hidden : Real 8
object State : Real 16
morphism embed : Token -> Hidden [role=embed]
morphism cell : Hidden * State -> State [role=kernel, scale=0.1] ~ Normal
morphism head : State -> Token [role=kernel] ~ Categorical
let encode = embed >> scan(cell)
"""


def dependent() -> str:
    """A file of which most statements depend on a width of `LIBRARY`."""
    parts = [f"morphism a{n} : l.Hidden -> Own [role=linear]\nlet b{n} = l.embed >> a{n}\n" for n in range(5)]
    program = "program lm : l.Token -> l.Token\n    sample h <- l.encode\n    observe y <- l.head(h)\n    return y\n"
    return 'import "library.qvr" as l\nobject Own : Real 8\n' + "".join(parts) + program + "export lm\n"


async def dependents(count: int, files: int = 10) -> Figure:
    """From an edit of a width to the diagnostics of the files that import it, all of them open."""
    editor = await Editor.start()
    await editor.initialize()
    library, users = "file:///bench/library.qvr", [f"file:///bench/user_{n}.qvr" for n in range(files)]
    editor.open(library, LIBRARY)
    await editor.published(library)
    for uri in users:
        editor.open(uri, dependent())
        await editor.published(uri)
    await asyncio.sleep(1)
    times: list[float] = []
    place = {"start": {"line": 1, "character": 21}, "end": {"line": 1, "character": 22}}
    for number in range(count):
        editor.arrived.clear()
        begun = time.perf_counter()
        editor.change(library, {"range": place, "text": "98"[number % 2]})
        await editor.until(lambda: {uri for uri, _ in editor.arrived}.issuperset(users))
        times.append(time.perf_counter() - begun)
    await editor.stop()
    return Figure("edit of a width to its dependents' diagnostics", f"{files} files", spread(times), (20, 40))


BUDGETS = {
    60: ((3, 8), (2, 6), 30, 90),
    1000: ((4, 10), (3, 10), 300, 110),
    10_000: ((8, 25), (5, 15), 3000, 300),
}


async def ended(text: str) -> float:
    """Seconds from a closed stdin to the end of a server that has just been given a text."""
    editor = await Editor.start()
    await editor.initialize()
    editor.open("file:///bench/last.qvr", text)
    await asyncio.sleep(0.6)
    assert editor.process.stdin is not None
    editor.process.stdin.close()
    begun = time.perf_counter()
    await editor.process.wait()
    return time.perf_counter() - begun


async def measure(quick: bool) -> list[Figure]:
    gc.disable()  # the fake editor keeps every message, and would pause while it reads an answer
    count = 60 if quick else 200
    figures: list[Figure] = []
    starts: list[float] = []
    for _ in range(5):
        begun = time.perf_counter()
        editor = await Editor.start()
        await editor.initialize()
        starts.append(time.perf_counter() - begun)
        await editor.stop()
    for what, size in (("end after a closed stdin", 60), ("end during a first analysis", 100_000)):
        figures.append(Figure(what, f"{size:,} lines", (1e3 * await ended(seq2seq(size)),), (1000,)))
    figures.append(Figure("spawn to `initialize` answered", "", (statistics.median(starts) * 1e3,), (600,)))
    for size, (stroke, question, first, memory) in BUDGETS.items():
        editor = await Editor.start()
        await editor.initialize()
        # The first small file loads the analyser, and then the features; a file that is opened later finds them there.
        editor.open("file:///bench/warm.qvr", seq2seq(10))
        await editor.published("file:///bench/warm.qvr")
        await asyncio.sleep(1)
        text, uri = seq2seq(size), f"file:///bench/size_{size}.qvr"
        lines = text.split("\n")
        seconds, longest = await first_analysis(editor, uri, text)
        label = f"{size:,} lines"
        figures.append(Figure("first analysis after open", label, (seconds * 1e3,), (first,)))
        figures.append(Figure("longest hover meanwhile, in another file", label, (longest * 1e3,), (120,)))
        middle = next(n for n in range(size // 2, size) if lines[n].startswith("object"))
        name = lines[middle].index(":") - 1
        figures.append(
            Figure(
                "keystroke to diagnostics", label, spread(await keystrokes(editor, uri, middle, name, count)), stroke
            )
        )
        asked = await questions(editor, uri, lines, count)
        figures.append(Figure("hover, definition, completion", label, spread(asked), question))
        figures.append(Figure("server memory", label, (editor.memory() / 1e6,), (memory,), "MB"))
        await editor.stop()
    statistical = statistical_program(10)
    indexed = next(n for n, line in enumerate(statistical.split("\n")) if line.startswith("    let eta5"))
    for what, size, text, line, budget in (
        ("keystroke in a statistical program", "200 lines, 40 indexed", statistical, indexed, (3, 8)),
        ("keystroke in one program", "1,000 steps", long_program(1000), 500, (12, 30)),
        ("keystroke among hints", "1,000 hints", many_hints(1000), 500, (4, 10)),
    ):
        editor = await Editor.start(read=short_publications)
        await editor.initialize()
        uri = "file:///bench/long.qvr"
        editor.open(uri, text)
        await editor.published(uri)
        await asyncio.sleep(1)
        column = len(text.split("\n")[line])
        times = await keystrokes(editor, uri, line, column, count, "1")
        figures.append(Figure(what, size, spread(times), budget))
        await editor.stop()
    figures.append(await dependents(count))
    return figures + await meanwhile(4 if quick else 10)


def table(figures: list[Figure]) -> str:
    rows = [("", "size", "measured", "budget", "")]
    for figure in figures:
        values = " / ".join(f"{value:.1f}" for value in figure.values)
        limits = " / ".join(f"{limit:g}" for limit in figure.budget)
        unit = figure.unit
        rows.append((figure.what, figure.size, f"{values} {unit}", f"{limits} {unit}", "" if figure.met else "MISSED"))
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)


def main(argv: list[str] | None = None) -> int:
    """Print the table; 1 where a budget is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    options = parser.parse_args(argv)
    figures = asyncio.run(measure(options.quick))
    print(table(figures))
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    return 0 if all(figure.met for figure in figures) else 1


if __name__ == "__main__":
    raise SystemExit(main())
