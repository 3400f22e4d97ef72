"""What the posterior as one types costs and gives: keystrokes of two servers, one of which draws, in turns; and the
time from the last keystroke until the figures of radon stand behind its steps.

`python -m benchmarks live`.  Processor time is that of the server alone; that of what draws is not in it.  The same
from a key of a real VS Code: `tests/e2e/vscode/live.mjs`.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import os
import shutil
import statistics
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.server import Figure, spread, table
from tests.lsp.editor import EXAMPLES, FULL, Editor, place

ABLE = {**FULL, "workspace": {**FULL["workspace"], "inlayHint": {"refreshSupport": True}}}
TOML = '[run.radon]\ndata = "csv:radon.csv"\ntables = { County = "csv:radon_counties.csv" }\n'
SLOWER = 1.15
"""What a keystroke may cost more, of processor time, where the server draws."""
GOAL = 1000.0
"""Milliseconds from the last keystroke to the figures."""
WORD = "Normal(0.0, 2.0)"


@dataclass
class Typed:
    """A server and what its keystrokes took: until the diagnostics, until the inlays behind them, on the processor."""

    editor: Editor
    uri: str
    text: str
    waits: list[float] = field(default_factory=list[float])
    hints: list[float] = field(default_factory=list[float])
    processor: list[float] = field(default_factory=list[float])
    keys: int = 0

    async def key(self) -> None:
        line, column = place(self.text, WORD, len(WORD) - 1)
        start = {"line": line, "character": column}
        end = start if self.keys % 2 == 0 else {"line": line, "character": column + 1}
        change = {"range": {"start": start, "end": end}, "text": "1" if self.keys % 2 == 0 else ""}
        self.keys += 1
        began, spent = time.perf_counter(), processor_time(self.editor.pid)
        version = self.editor.change(self.uri, change)
        await self.editor.published(self.uri, version)
        self.waits.append(time.perf_counter() - began)
        whole = {"start": {"line": 0, "character": 0}, "end": {"line": 99, "character": 0}}
        await self.editor.request("textDocument/inlayHint", {"textDocument": {"uri": self.uri}, "range": whole})
        self.hints.append(time.perf_counter() - began)
        self.processor.append(processor_time(self.editor.pid) - spent)

    async def drawn(self) -> None:
        """Until there is an answer for the text as it is."""
        version = self.editor._version[self.uri]
        await self.editor.notification("qvr/live", lambda told: told["version"] == version and told["state"] == "drawn")


def processor_time(pid: int) -> float:
    """Seconds of all threads of a process (Linux)."""
    tasks = Path(f"/proc/{pid}/task")
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks.iterdir()) / 1e9


async def opened(folder: Path, live: str) -> Typed:
    folder.mkdir()
    source = EXAMPLES / "statistics"
    for name in ("radon.qvr", "radon.csv", "radon_counties.csv"):
        shutil.copy(source / name, folder)
    (folder / "qvr.toml").write_text(TOML)
    options = {"live": live}
    editor = await Editor.start(cwd=folder)
    editor.answers["workspace/configuration"] = [options]
    await editor.initialize(ABLE, folder=folder, options=options)
    path = folder / "radon.qvr"
    typed = Typed(editor, path.as_uri(), path.read_text())
    editor.open(typed.uri, typed.text)
    await editor.published(typed.uri)
    return typed


async def measure(quick: bool) -> list[Figure]:
    rounds = 6 if quick else 30
    with tempfile.TemporaryDirectory() as place_:
        off, on = await opened(Path(place_) / "off", "off"), await opened(Path(place_) / "on", "posterior")
        await on.drawn()
        figures_after: list[float] = []
        for each in (off, on):
            for _ in range(4):
                await each.key()
            each.waits.clear(), each.hints.clear(), each.processor.clear()
        for _ in range(rounds):
            # a burst, and a key into the midst of what is drawn then
            for pause in (0.05, 0.05, 0.05, 0.36):
                for each in (off, on):
                    await each.key()
                await asyncio.sleep(pause)
        for _ in range(max(5, rounds * 2 // 3)):
            began = time.perf_counter()
            await on.key()
            await on.drawn()
            figures_after.append(time.perf_counter() - began)
        for each in (off, on):
            await each.editor.stop()
    processor = [statistics.median(each.processor) * 1e3 for each in (off, on)]
    label = f"radon, {len(on.waits)} keys"
    none = (math.inf, math.inf)
    return [
        Figure("keystroke to diagnostics, off", label, spread(off.waits), none),
        Figure("the same, posterior", label, spread(on.waits), none),
        Figure("keystroke to inlays, off", label, spread(off.hints), none),
        Figure("the same, posterior", label, spread(on.hints), none),
        Figure("processor of a keystroke, off; posterior", label, tuple(processor), (math.inf, SLOWER * processor[0])),
        Figure("keystroke to live figures", f"{len(figures_after)} keys", spread(figures_after), (GOAL, 2 * GOAL)),
    ]


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
