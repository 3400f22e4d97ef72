"""No test looks at a clock: it counts work, or waits so long that only a hang is longer."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.patience import HANG, calls

TESTS = Path(__file__).parent
CLOCKS = {"perf_counter", "monotonic", "process_time", "thread_time", "perf_counter_ns", "monotonic_ns"}
LIMITED = {"wait_for", "timeout", "run", "communicate", "wait", "join", "request", "until", "notification"}


def numbers(call: ast.Call) -> Iterator[float]:
    """The seconds that a call is limited to, where they are written out."""
    given = [keyword.value for keyword in call.keywords if keyword.arg == "timeout"]
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if name == "wait_for" and len(call.args) > 1:
        given.append(call.args[1])
    if name == "timeout" and call.args:
        given.append(call.args[0])
    for value in given:
        if isinstance(value, ast.Constant) and isinstance(value.value, int | float):
            yield value.value


def test_no_test_looks_at_a_clock() -> None:
    """But for those that drive a real editor from outside."""
    wrong: list[str] = []
    for path in sorted(TESTS.rglob("*.py")):
        if "e2e" in path.relative_to(TESTS).parts:
            continue
        text = path.read_text(encoding="utf-8")
        if not any(word in text for word in (*CLOCKS, "timeout", "wait_for")):
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Attribute | ast.Name):
                name = node.attr if isinstance(node, ast.Attribute) else node.id
                if name in CLOCKS:
                    wrong.append(f"{path}:{node.lineno} reads a clock: count work instead")
            if isinstance(node, ast.Call):
                short = [seconds for seconds in numbers(node) if seconds < HANG]
                wrong += [f"{path}:{node.lineno} gives up after {seconds} s: wait for HANG" for seconds in short]
    assert not wrong, "\n".join(wrong)


def test_work_is_counted() -> None:
    assert calls(lambda: [abs(n) for n in range(50)]) - calls(lambda: [abs(n) for n in range(20)]) == 30
