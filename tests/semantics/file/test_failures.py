"""A2: an analysis that fails says so.  Each rule of the front end is made to throw in turn."""

from __future__ import annotations

import gc
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any

import pytest
from typer.testing import CliRunner

from qvr_core.analysis import Analyzer, Cursor, Snapshot, analyse
from qvr_core.cli import app
from qvr_core.semantics.types.model.file import Model

ROOT = Path(__file__).resolve().parents[3]
FRONT_END = tuple(str(ROOT / "qvr_core" / part) for part in ("syntax", "semantics", "analysis.py"))

GROUP = """\
# A set of its own.
object Row{n} : FinSet 4
object Group{n} : FinSet 2
object Wide{n} : Real 3
object Open{n} : Real _
morphism step{n} : Wide{n} -> Wide{n} [role=linear]
morphism noise{n} : Wide{n} -> Wide{n} [scale=0.5] ~ Normal
morphism more{n} : Wide{n} -> Wide{n} [role=linear, replicate=2]
morphism open{n} : Wide{n} -> Open{n} [role=linear]
let both{n} = step{n} >> noise{n} >> (fan(more{n}) >> open_more{n})
morphism open_more{n} : Wide{n} * Wide{n} -> Open{n} [role=linear]
let deep{n} = stack(residual(step{n}), 2)
def curve{n}(x, k = 1.0) = 1 / (1 + exp(-k * x))
family Bent{n}(loc) : Real 1
    density(x) = -0.5 * (x - loc)^2
program fit{n} : Row{n} -> Row{n}
    data g : Row{n} -> Group{n}
    sample a[j : Group{n}] <- Normal(0.0, 1.0)
    sample h[i : Row{n}] <- Normal(0.5 * h[i - 1], 1.0) from Normal(0.0, 1.0)
    let m[i : Row{n}] = a[g[i]] + curve{n}(h[i]) + sum(a[k] for k : Group{n})
    marginalize z : Group{n} <- Categorical([0.5, 0.5])
        observe w <- Normal(z, 1.0)
    observe y[i : Row{n}] <- Normal(m[i], 1.0) [missing=drop]
    return m
program cell{n}(x, s) : Wide{n} * Wide{n} -> Wide{n}
    let both = tanh(x + s)
    sample e <- noise{n}(both)
    return e
let run{n} = scan(cell{n})
export run{n}
program wrong{n} : Row{n} -> Row{n}
    let q = missing{n}(1.0) + unkown
    sample a <- Norml(0.0, 1.0)
    return b
morphism narrow{n} : Row{n} -> Nowhere{n}
let circle{n} = circle{n} >> step{n}
object Broken{n} : FinSet
"""
TEXT = GROUP.format(n="A") + GROUP.format(n="B")


class Thrown(Exception):
    """What no rule throws by itself."""


class Plan:
    """What the function that throws does instead: which call of it throws, None for each."""

    original: FunctionType
    call: int | None = None
    calls = 0


def stand_in(*args: Any, **more: Any) -> Any:
    from tests.semantics.file.test_failures import Plan, Thrown

    Plan.calls += 1
    if Plan.call is None or Plan.calls == Plan.call:
        raise Thrown("on purpose")
    return Plan.original(*args, **more)


@contextmanager
def throwing(function: FunctionType, call: int | None = None) -> Iterator[None]:
    """The function throws wherever it is known, by whatever name."""
    held = function.__code__, function.__defaults__, function.__kwdefaults__
    Plan.original = FunctionType(held[0], function.__globals__, function.__name__, held[1])
    Plan.original.__kwdefaults__ = held[2]
    Plan.call, Plan.calls = call, 0
    function.__code__, function.__defaults__, function.__kwdefaults__ = stand_in.__code__, None, None
    forget()
    try:
        yield
    finally:
        function.__code__, function.__defaults__, function.__kwdefaults__ = held
        forget()


CACHES = [
    value
    for name, module in list(sys.modules.items())
    if name.startswith("qvr_core.")
    for value in vars(module).values()
    if hasattr(value, "cache_clear")
]


def forget() -> None:
    for each in CACHES:
        each.cache_clear()


def reached() -> dict[FunctionType, int]:
    """Every function of the front end that an analysis of the text calls, and how often."""
    calls: Counter[CodeType] = Counter()

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(FRONT_END):
            calls[frame.f_code] += 1

    forget()
    sys.setprofile(note)
    try:
        Analyzer(TEXT).snapshot().diagnostics()
    finally:
        sys.setprofile(None)
    # By `type`: other test files have loaded torch, and what stands for a dead object there answers no `isinstance`.
    gc.unfreeze()
    known = {each.__code__: each for each in gc.get_objects() if type(each) is FunctionType}
    gc.freeze()
    found = {known[code]: count for code, count in calls.items() if code in known and not code.co_freevars}
    return dict(sorted(found.items(), key=lambda item: name_of(item[0])))


def name_of(function: FunctionType) -> str:
    return f"{function.__module__}.{function.__qualname__}"


GROUND = {
    *("Analyzer", "Snapshot", "Overlay", "Tracked", "Layout", "SourceText", "__init__"),
    *("located", "split_lines", "state", "frozen", "_hold"),
}
"""What holds the text and the state, without which there is nothing to say anything with."""


def is_rule(function: FunctionType) -> bool:
    path = function.__qualname__.split(".")
    return GROUND.isdisjoint(path) and "<lambda>" not in path and function.__name__ != "immutable"


def told(snapshot: Snapshot) -> set[tuple[int, str]]:
    return {(one.range.start.line, one.code.name) for one in snapshot.diagnostics()}


def wrong_always(function: FunctionType) -> list[str]:
    """What is wrong where a rule throws whenever it is asked."""
    with throwing(function):
        analyzer = Analyzer(TEXT)
        found = [one.code.name for one in analyzer.snapshot().diagnostics()]
        assert analyzer.snapshot().model is not None
        if not Plan.calls:
            return []
        wrong = [] if "internal-error" in found else ["nothing is told"]
    end = Cursor(TEXT.count("\n"), 0)
    analyzer.edit(Cursor(0, 0), end, "")
    analyzer.edit(Cursor(0, 0), Cursor(0, 0), TEXT)
    return (
        wrong
        if told(analyzer.snapshot()) == expected()[1]
        else [*wrong, "what is said once the rule is mended differs"]
    )


def wrong_once(function: FunctionType, call: int) -> list[str]:
    """What is wrong where a rule throws once, for one of all that it is asked about."""
    with throwing(function, call):
        snapshot = Analyzer(TEXT).snapshot()
        found = [one for one in snapshot.diagnostics() if one.code.name == "internal-error"]
        model, now = snapshot.model, told(snapshot)
    if Plan.calls < call:
        return []
    wrong = [] if len(found) == 1 else [f"{len(found)} internal errors"]
    at = {line for one in found for line in range(one.range.start.line, one.range.end.line + 1)}
    more = {(line, code) for line, code in now - expected()[1] if code != "internal-error"}
    if more:
        wrong.append(f"false {sorted(more)}")
    whole, _ = expected()
    names = (*whole.objects, *whole.arrows, *whole.lets, *whole.programs)
    lost = {name for name in names if name not in (*model.objects, *model.arrows, *model.lets, *model.programs)}
    if len({group for name in lost for group in "AB" if group in name}) > 1 or (at == {0} and lost):
        wrong.append(f"lost {sorted(lost)}")
    return wrong


@cache
def expected() -> tuple[Model, set[tuple[int, str]]]:
    """What the text means and what is said of it where nothing throws."""
    snapshot = analyse(TEXT)
    return snapshot.model, told(snapshot)


@cache
def rules() -> dict[FunctionType, int]:
    return {function: count for function, count in reached().items() if is_rule(function)}


def wrong_of(functions: list[FunctionType]) -> dict[str, list[str]]:
    found = {name_of(one): wrong_always(one) + wrong_once(one, 1 + rules()[one] // 3) for one in functions}
    return {name: wrong for name, wrong in found.items() if wrong}


def test_a2_checks_that_throw_are_told_and_cost_no_other_declaration() -> None:
    some = [each for each in rules() if each.__name__.startswith(("check", "type_", "find", "update", "diagn"))]
    assert len(some) > 50
    assert not wrong_of(some[::12])  # all of them are below


@pytest.mark.slow
def test_a2_every_function_that_throws_is_told_and_costs_no_other_declaration() -> None:
    assert len(rules()) > 700
    assert not wrong_of(list(rules()))


def test_a2_the_message_says_what_to_report_and_where() -> None:
    check = next(one for one in rules() if one.__name__ == "check_arith")
    with throwing(check):
        found = next(one for one in analyse(TEXT).diagnostics() if one.code.name == "internal-error")
    assert "Thrown: on purpose" in found.message
    assert "test_failures.py" not in found.message and ".py:" in found.message
    assert "qvr explain internal-error" in found.message


def test_a2_the_command_line_ends_with_1_and_no_traceback(tmp_path: Path) -> None:
    path = tmp_path / "good.qvr"
    path.write_text("object A : Real 2\nobject B : Real 3\nmorphism f : A -> B [role=linear]\nexport f\n")
    check = next(one for one in rules() if one.__name__ == "check_morphism")
    with throwing(check):
        result = CliRunner().invoke(app, ["check", str(path)])
    assert result.exit_code == 1
    assert "error[internal-error]" in result.output and "good.qvr:3:1" in result.output
    assert "Traceback" not in result.output and "unknown-name" not in result.output
