"""C11: four times as much text is four times the work, whatever is repeated: work is counted in calls, not in time."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType

import pytest

from qvr_core.analysis import Analyzer
from qvr_core.semantics.language import spelling
from qvr_core.semantics.programs import program_rules

HEAD = (
    "object X : Real 4\nobject F : FinSet 3\nobject S : FinSet 8\nmorphism a : X -> X [role=linear]\n"
    "morphism k : X -> X [role=kernel] ~ Normal\n"
)
PROGRAM = HEAD + "program p : X -> X\n    sample y <- Normal(0.0, 1.0)\n"
END = "    return y\n"
COUNT = 80
"""Repetitions; the work is compared with that of four times as many."""
RATIO = 6.0
"""Of a logarithm or two beside what is linear; what is quadratic has sixteen."""

Text = Callable[[int], str]


def lines(head: str, line: str, tail: str = "") -> Text:
    return lambda count: head + "".join(line.format(i=i, j=i + 1) + "\n" for i in range(count)) + tail


def inline(head: str, item: str, between: str, tail: str) -> Text:
    return lambda count: head + between.join(item.format(i=i, j=i + 1) for i in range(count)) + tail


TEXTS: dict[str, Text] = {
    "unknown statements": lines("", "foo{i} bar : 3"),
    "unknown objects": lines(HEAD, "morphism m{i} : X{i} -> Y{i} [role=linear]"),
    "lets": lines(HEAD, "let b{i} = a >> a"),
    "imports of nothing": lines("", 'import "a{i}.qvr" as b{i}'),
    "lines of backslashes": lines("", "\\"),
    "continued lines": lines("let b = a \\\n", "  >> a \\"),
    "open brackets on lines": lines("", "let b = ("),
    "unknown names": lines(PROGRAM, "    let b{i} = z{i} + 1.0", END),
    "unknown functions": lines(PROGRAM, "    let b{i} = foo{i}(y)", END),
    "unknown indices": lines(PROGRAM, "    let b{i} = y[z{i}]", END),
    "unknown families": lines(PROGRAM, "    sample b{i} <- Norml{i}(0.0, 1.0)", END),
    "names of later steps": lines(PROGRAM, "    let b{i} = b{j}", END),
    "data without declaration": lines(PROGRAM, "    observe o{i} : S <- Normal(w{i} * v{i}, 1.0)", END),
    "data that nothing uses": lines(PROGRAM, "    data d{i} : S", END),
    "recursions": lines(PROGRAM, "    let b{i}[s : S] = 0.5 * b{i}[s - 1] from 0.0", END),
    "returns": lines(PROGRAM, "    return y"),
    "holes that are equal": lines(
        HEAD + "object A0 : Real _\n", "object A{j} : Real _\nmorphism m{i} : A{i} -> A{j} [role=norm]"
    ),
    "holes that cannot be": lines(
        HEAD + "object A : Real _\n", "object B{i} : Real {j}\nmorphism m{i} : A -> B{i} [role=norm]"
    ),
    "unknown options": inline(HEAD + "morphism m : X -> X [", "o{i}=3", ", ", "]\n"),
    "brackets of options": inline(HEAD + "morphism m : X -> X ", "[o{i}=3]", " ", "\n"),
    "unknown options of a step": inline(PROGRAM + "    sample z <- Normal(0.0, 1.0) [", "o{i}=3", ", ", f"]\n{END}"),
    "arguments": inline(PROGRAM + "    let z = foo(", "y", ", ", f")\n{END}"),
    "arguments of a builtin": inline(PROGRAM + "    let z = exp(", "q{i}", ", ", f")\n{END}"),
    "arguments of a family": inline(PROGRAM + "    sample z <- Normal(", "y", ", ", f")\n{END}"),
    "named arguments": inline(PROGRAM + "    sample z <- Normal(", "loc{i}=y", ", ", f")\n{END}"),
    "reserved words as names": inline(PROGRAM + "    let z = ", "object", " + ", f"\n{END}"),
    "names in a damaged line": inline("object ", "a{i}", ", ", " = Real 3\n"),
    "labels": inline("object A : {", "l", ", ", "}\n"),
    "indices": inline(PROGRAM + "    let z = sum(y for ", "a{i} : S", ", ", f")\n{END}"),
    "indices of a step": inline(PROGRAM + "    sample z[", "a{i} : S", ", ", f"] <- Normal(0.0, 1.0)\n{END}"),
    "brackets behind a start": inline(
        PROGRAM + "    sample h[t : S] <- Normal(h[t - 1], 1.0) from f(y)", "[y, z]", "", f"\n{END}"
    ),
    "brackets": inline(PROGRAM + "    let z = ", "([", "", f"y\n{END}"),
    "brackets that close others": inline(PROGRAM + "    let z = ", "(", "", "]" * 600 + f"\n{END}"),
    "parts of a tuple": inline(PROGRAM + "    return (", "y{i}", ", ", ")\n"),
    "inputs": inline(HEAD + "program p(", "a{i} : Foo", ", ", f") : X -> X\n    sample y <- Normal(0.0, 1.0)\n{END}"),
}


def work(text: str) -> int:
    """The calls that an analysis makes."""
    calls = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        Analyzer(text).snapshot().diagnostics()
    finally:
        sys.setprofile(before)
    return calls


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.sampled(3)
def test_c11_the_work_grows_with_the_text(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # names are compared with one another up to these bounds, and beyond them not at all
    monkeypatch.setattr(spelling, "MOST_CANDIDATES", COUNT // 2)
    monkeypatch.setattr(program_rules, "MOST_COMPARED", COUNT)
    text = TEXTS[name]
    work(text(2))  # tables that are read once
    few = work(text(COUNT))
    assert work(text(4 * COUNT)) < RATIO * few


def test_c11_too_many_indices_are_one_error() -> None:
    (found,) = [
        item for item in Analyzer(TEXTS["indices"](33)).snapshot().diagnostics() if item.code.name == "too-deep"
    ]
    assert found.message == "33 indices run here at once, and no more than 32 may; name parts of it"
    assert not [
        item for item in Analyzer(TEXTS["indices"](32)).snapshot().diagnostics() if item.code.name == "too-deep"
    ]


def test_c11_of_many_reserved_words_the_first_are_told() -> None:
    found = Analyzer(TEXTS["reserved words as names"](1000)).snapshot().diagnostics()
    told = [item.message for item in found if item.code.name == "reserved-name"]
    assert len(told) == 1
    assert told[0].endswith("; what stands behind the first 20 such words is not looked at")
