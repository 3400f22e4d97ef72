"""No test looks at a clock: it counts work, or waits so long that only a hang is longer."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

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


@pytest.mark.parametrize("path", sorted(TESTS.rglob("*.py")), ids=lambda path: str(path.relative_to(TESTS)))
def test_no_test_looks_at_a_clock(path: Path) -> None:
    if "e2e" in path.parts:
        pytest.skip("a real editor is driven from outside")
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute | ast.Name):
            name = node.attr if isinstance(node, ast.Attribute) else node.id
            assert name not in CLOCKS, f"{path.name}:{node.lineno} reads a clock: count work instead"
        if isinstance(node, ast.Call):
            short = [seconds for seconds in numbers(node) if seconds < HANG]
            assert not short, f"{path.name}:{node.lineno} gives up after {short[0]} s: wait for HANG"


def test_work_is_counted() -> None:
    assert calls(lambda: [abs(n) for n in range(50)]) - calls(lambda: [abs(n) for n in range(20)]) == 30
