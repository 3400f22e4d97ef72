"""The front end's budgets in process (issue 3, part 7): one keystroke, from the edit to the complete diagnostics.

Files are the declarations of the seq2seq example under fresh names.  Medians, in milliseconds of processor time: what
else the machine does is not counted.
"""

from __future__ import annotations

import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from qvr_core.analysis import Analyzer, Cursor

ROOT = Path(__file__).resolve().parents[1]
EXAMPLE = ROOT / "examples" / "seq2seq.qvr"
DECLARED = re.compile(r"^(?:object|morphism|let|program) (\w+)", re.MULTILINE)
KEYSTROKES = 60

Row = tuple[str, float, float, str]
"""What was measured, the figure, its budget, the unit."""


def seq2seq(lines: int) -> str:
    """The declarations of the example under fresh names until there are `lines` lines."""
    body = (
        "\n".join(line for line in EXAMPLE.read_text("utf-8").split("\n") if line and not line.startswith("#")) + "\n"
    )
    names = set(DECLARED.findall(body))
    parts: list[str] = []
    count = 0
    while count < lines:
        number = len(parts)
        parts.append(re.sub(r"\w+", lambda m, n=number: f"{m[0]}_{n}" if m[0] in names else m[0], body))
        count += body.count("\n")
    return "".join(parts)


def many_users(users: int) -> str:
    """An object with that many arrows on it, in a file of 1,000 lines."""
    body = "".join(f"morphism f{i} : Hub -> Hub [role=linear]\n" for i in range(users))
    return "object Hub : Real 64\n" + body + seq2seq(1000)


def long_program(steps: int) -> str:
    """One program of that many steps."""
    body = ["    sample x0 <- Normal(0.0, 1.0)"]
    body += [f"    let x{n} = tanh(x{n - 1}) * 0.5 + x{max(0, n - 7)}" for n in range(1, steps)]
    tail = f"    observe y <- Normal(x{steps - 1}, 1.0)\n    return y\n"
    return "object R : Real 1\nprogram long : R -> R\n" + "\n".join(body) + "\n" + tail


def timed(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return (time.process_time() - start) * 1e3


def keystroke(analyzer: Analyzer, line: int, column: int, letter: str) -> float:
    """Median time to type, and to delete, one letter."""

    def once(text: str) -> None:
        end = Cursor(line, column + (0 if text else len(letter)))
        analyzer.edit(Cursor(line, column), end, text)
        analyzer.snapshot().diagnostics()

    return statistics.median([timed(lambda text=text: once(text)) for _ in range(KEYSTROKES) for text in (letter, "")])


def place(text: str, pattern: str) -> tuple[int, int]:
    """Line and column of the middle match of a pattern."""
    found = list(re.finditer(pattern, text))
    start = found[len(found) // 2].end()
    line = text.count("\n", 0, start)
    return line, start - (text.rfind("\n", 0, start) + 1)


def rows() -> list[Row]:
    """All figures beside their budgets."""
    found: list[Row] = []
    for lines, budget in ((60, 1.0), (1_000, 1.0), (10_000, 2.0)):
        text = seq2seq(lines)
        fresh: list[Analyzer] = []
        per_line = timed(lambda text=text, fresh=fresh: fresh.append(Analyzer(text))) / text.count("\n")
        analyzer = fresh[0]
        analyzer.snapshot().diagnostics()
        if lines > 60:
            found.append((f"fresh analysis, {lines:,} lines", per_line, 0.25, "ms a line"))
        found.append(
            (f"keystroke in a let, {lines:,} lines", keystroke(analyzer, *place(text, "= fan"), "x"), budget, "ms")
        )
        analyzer.edit(Cursor(0, 0), Cursor(0, 0), " ")
        found.append((f"snapshot, {lines:,} lines", timed(analyzer.snapshot), 1.0, "ms"))
    text = many_users(20)
    found.append(("an object with 20 users", keystroke(Analyzer(text), *place(text, r"Hub : Real 64"), "0"), 2.0, "ms"))
    text = long_program(1_000)
    inside = keystroke(Analyzer(text), *place(text, r"let x500 = tanh\(x499\) \* 0.5"), "1")
    found.append(("inside a program of 1,000 steps", inside, 8.0, "ms"))
    found.extend(importing())
    return found


def importing() -> list[Row]:
    """Time and memory of the front end in a process of its own, compiled to byte code as an installed package is."""
    code = (
        "import time, re; t = time.process_time(); import qvr_core.analysis as a; "
        f"a.analyse(open({str(EXAMPLE)!r}).read()).diagnostics(); "
        "peak = re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read()); "
        "print(time.process_time() - t, int(peak[1]) / 1024)"
    )
    with tempfile.TemporaryDirectory() as compiled:
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        environment["PYTHONPYCACHEPREFIX"] = compiled
        for _ in range(2):
            out = subprocess.check_output([sys.executable, "-c", code], text=True, cwd=ROOT, env=environment)
    seconds, megabytes = map(float, out.split())
    return [("import and first analysis", seconds, 0.25, "s"), ("memory after it", megabytes, 60.0, "MB")]


def main(argv: list[str] | None = None) -> int:
    """Print every figure with the ratio to its budget; 1 where one is missed."""
    print("Front end, in process (median, processor time)")
    missed = 0
    for what, value, budget, unit in rows():
        missed += value > budget
        print(f"  {what:36} {value:8.3f} {unit:9} budget {budget:6.2f}   ×{value / budget:.2f}")
    print(f"  peak memory of this benchmark {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
