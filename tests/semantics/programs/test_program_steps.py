"""Long programs: an edit types again only what reads something new, and ends where a fresh check does."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from qvr_core.analysis import Analyzer, Cursor, Snapshot
from qvr_core.semantics.programs import step_typing
from qvr_core.syntax.tree.declarations import Item
from qvr_core.syntax.tree.units import Placed
from tests.seeds import seeds
from tests.spec.cases import read_cases

MODELS = [case.source for case in read_cases(Path(__file__).parents[2] / "spec" / "programs" / "models.md")]
WORDS = (
    "(",
    ")",
    "x",
    "theta",
    "<-",
    " ",
    " + 1.0",
    "Real 3",
    "mu",
    "1",
    "_",
    "\n",
    "    let z = 1.0\n",
    "#",
    "exp(",
    ":",
)


def long_program(steps: int) -> str:
    """Steps of all kinds, each on the ones before it."""
    lines = ["object H : Real 8", "morphism f : H -> H [role=linear]", "program p(x) : H -> H"]
    last = "x"
    for index in range(0, steps, 4):
        lines.append(f"    let a{index} = tanh(f({last})) + 0.5 * {last}")
        lines.append(f"    sample s{index} <- Normal(a{index}, 1.0)")
        lines.append(f"    let b{index} = a{index} * s{index}")
        lines.append(f"    observe o{index} <- Normal(b{index}, 1.0)")
        last = f"b{index}"
    return "\n".join([*lines, f"    return {last}", "export p", ""])


def found(snapshot: Snapshot) -> list[tuple[object, ...]]:
    return sorted((*d.range.start, *d.range.end, d.code.name, d.message) for d in snapshot.diagnostics())


def edit(analyzer: Analyzer, text: str, start: tuple[int, int], end: tuple[int, int], new: str) -> str:
    """Apply an edit to an analyzer and to a text."""
    analyzer.edit(Cursor(*start), Cursor(*end), new)
    lines = text.split("\n")
    before = "\n".join([*lines[: start[0]], lines[start[0]][: start[1]]])
    after = "\n".join([lines[end[0]][end[1] :], *lines[end[0] + 1 :]])
    return before + new + after


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The text of every step that is typed while a test runs."""
    seen: list[str] = []
    original = step_typing._check  # pyright: ignore[reportPrivateUsage]

    def counted(placed: Placed[Item], *rest: Any) -> step_typing.StepResult:
        seen.append(placed.unit.text.strip())
        return original(placed, *rest)

    monkeypatch.setattr(step_typing, "_check", counted)
    return seen


def test_an_edit_that_changes_no_type_types_one_step(typed: list[str]) -> None:
    text = long_program(400)
    analyzer = Analyzer(text)
    analyzer.snapshot().diagnostics()
    typed.clear()
    line = text.split("\n")[43]
    column = line.index("0.5")
    edit(analyzer, text, (43, column), (43, column + 3), "0.25")
    assert not analyzer.snapshot().diagnostics()
    assert len(typed) == 1


def test_a_new_line_types_itself_only(typed: list[str]) -> None:
    text = long_program(400)
    analyzer = Analyzer(text)
    analyzer.snapshot().diagnostics()
    typed.clear()
    edit(analyzer, text, (43, 0), (43, 0), "    let extra = 1.0\n")
    assert [d.code.name for d in analyzer.snapshot().diagnostics()] == ["unused-binding"]
    assert typed == ["let extra = 1.0"]


def test_a_changed_type_reaches_its_readers(typed: list[str]) -> None:
    text = long_program(40)
    analyzer = Analyzer(text)
    analyzer.snapshot().diagnostics()
    typed.clear()
    number = next(i for i, line in enumerate(text.split("\n")) if "let b20" in line)
    text = edit(analyzer, text, (number, 0), (number + 1, 0), "    let b20 = [1.0, 2.0, 3.0]\n")
    now = analyzer.snapshot()
    assert found(now) == found(Analyzer(text).snapshot())
    assert [d.code.name for d in now.diagnostics()] == ["wrong-size"]
    assert not any("a0" in step for step in typed[:3])


def test_a_declaration_that_changes_reaches_the_steps_that_use_it() -> None:
    text = long_program(40)
    analyzer = Analyzer(text)
    analyzer.snapshot().diagnostics()
    text = edit(analyzer, text, (1, 16), (1, 17), "Real 9")
    now = analyzer.snapshot()
    assert now.diagnostics()
    assert found(now) == found(Analyzer(text).snapshot())


@pytest.mark.parametrize("seed", seeds(4, 100))
def test_random_edits_end_where_a_fresh_check_does(seed: int) -> None:
    rng = random.Random(seed)
    text = rng.choice(MODELS)
    analyzer = Analyzer(text)
    for _ in range(15):
        lines = text.split("\n")
        line = rng.randrange(len(lines))
        kind = rng.random()
        if kind < 0.25 and line + 1 < len(lines):
            start, end, new = (line, 0), (line + 1, 0), ""
        elif kind < 0.5:
            start = end = (line, 0)
            new = rng.choice(lines) + "\n"
        else:
            column = rng.randint(0, len(lines[line]))
            start, end = (line, column), (line, min(len(lines[line]), column + rng.randint(0, 4)))
            new = rng.choice(WORDS)
        text = edit(analyzer, text, start, end, new)
        assert found(analyzer.snapshot()) == found(Analyzer(text).snapshot()), text


def test_a_template_sees_its_new_parameters() -> None:
    text = "program p(n : FinSet) : n -> Real 1\n    sample x : n <- Normal(0.0, 1.0)\n    return x\nexport p\n"
    analyzer = Analyzer(text)
    analyzer.snapshot().diagnostics()
    text = edit(analyzer, text, (0, 14), (0, 20), "Real")
    assert found(analyzer.snapshot()) == found(Analyzer(text).snapshot())


def test_a_fixed_name_types_only_its_own_step(typed: list[str]) -> None:
    text = long_program(400)
    analyzer = Analyzer(text)
    first = found(analyzer.snapshot())
    line = text.split("\n")[43]
    column = line.index("0.5") - 3
    broken = edit(analyzer, text, (43, column), (43, column), "zzz")
    assert found(analyzer.snapshot()) != first
    typed.clear()
    assert edit(analyzer, broken, (43, column), (43, column + 3), "") == text
    assert found(analyzer.snapshot()) == first
    assert typed == [line.strip()]


@pytest.mark.parametrize("seed", [*seeds(4, 100), 1393])
def test_edits_that_come_and_go_end_where_a_fresh_check_does(seed: int) -> None:
    rng = random.Random(seed)
    text = rng.choice(MODELS)
    analyzer = Analyzer(text)
    undo: list[tuple[tuple[int, int], tuple[int, int], str]] = []
    for _ in range(40):
        if undo and rng.random() < 0.5:
            start, end, new = undo.pop()
        else:
            lines = text.split("\n")
            line = rng.randrange(len(lines))
            column = rng.randint(0, len(lines[line]))
            start, end = (line, column), (line, min(len(lines[line]), column + rng.randint(0, 4)))
            new = rng.choice([word for word in WORDS if "\n" not in word])
            undo.append(((line, column), (line, column + len(new)), lines[line][column : end[1]]))
        text = edit(analyzer, text, start, end, new)
        assert found(analyzer.snapshot()) == found(Analyzer(text).snapshot()), text


def test_another_family_of_the_same_type_reaches_its_readers() -> None:
    text = (
        "object Row : FinSet 9\nprogram p : Row -> Row\n    sample a <- Uniform(x, y)\n"
        "    observe o : Row <- Normal(0.0, a)\n    return o\n"
    )
    analyzer = Analyzer(text)
    assert not analyzer.snapshot().diagnostics()
    text = edit(analyzer, text, (2, 16), (2, 23), "Normal")
    assert [d.code.name for d in analyzer.snapshot().diagnostics()] == ["argument-support"]
    text = edit(analyzer, text, (2, 0), (2, 0), "    let unused = 1.0\n")
    assert found(analyzer.snapshot()) == found(Analyzer(text).snapshot())
    text = edit(analyzer, text, (3, 16), (3, 22), "Uniform")
    assert [d.code.name for d in analyzer.snapshot().diagnostics()] == ["unused-binding"]


def test_a_declaration_reaches_what_a_block_observes() -> None:
    text = (
        "object Row, Col : FinSet 9\nprogram p : Row -> Row\n    data y : Row\n"
        "    marginalize z : Row <- Bernoulli(0.5)\n        observe y : Row <- Normal(z, 1.0)\n    return y\n"
    )
    analyzer = Analyzer(text)
    assert [d.code.name for d in analyzer.snapshot().diagnostics()] == ["unused"]
    text = edit(analyzer, text, (2, 13), (2, 16), "Col")
    assert "data-mismatch" in [d.code.name for d in analyzer.snapshot().diagnostics()]
    assert found(analyzer.snapshot()) == found(Analyzer(text).snapshot())
