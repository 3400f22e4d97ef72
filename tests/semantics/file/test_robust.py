"""The front end does not fail, whatever the text (invariant 3)."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qvr_core.analysis import Analyzer, Cursor, analyse

ROOT = Path(__file__).resolve().parents[3]
BLOCK = re.compile(r"```qvr.*\n((?:.*\n)*?)```")
TEXTS = [path.read_text("utf-8") for path in sorted((ROOT / "examples").rglob("?*.qvr"))]
TEXTS += [
    block for path in sorted((ROOT / "tests/spec").rglob("*.md")) for block in BLOCK.findall(path.read_text("utf-8"))
]
TOKENS = sorted({token for text in TEXTS for token in re.findall(r"\w+|[^\w\s]|\n    |\n", text)})


def take_in(text: str) -> None:
    """Everything that is ever asked of a text."""
    snapshot = analyse(text)
    lines = len(snapshot.lines)
    for item in snapshot.diagnostics():
        assert item.message
        assert item.range.start <= item.range.end
        assert item.range.end.line < lines
    assert snapshot.model is snapshot.model


@given(st.text(max_size=300))
@settings(max_examples=120)
def test_any_text(text: str) -> None:
    take_in(text)


@given(st.lists(st.sampled_from(TOKENS), max_size=60))
@settings(max_examples=120)
def test_any_tokens(tokens: list[str]) -> None:
    take_in(" ".join(tokens))


@pytest.mark.parametrize("seed", range(8))
def test_mutated_and_truncated_programs(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(60):
        text = rng.choice(TEXTS)
        if rng.random() < 0.3:
            text = text[: rng.randrange(len(text) + 1)]
        parts = re.findall(r"\w+|[^\w\s]|\s+", text) or [""]
        for _ in range(rng.randrange(4)):
            parts[rng.randrange(len(parts))] = rng.choice(TOKENS)
        take_in("".join(parts))


def test_a_long_chain_of_lets_is_no_recursion() -> None:
    chain = "".join(f"let a{n} = a{n + 1} >> f\n" for n in range(3000))
    text = "object X : Real 2\nmorphism f : X -> X [role=linear]\n" + chain + "let a3000 = f\n"
    snapshot = analyse(text)
    assert snapshot.model.lets["a0"].arrow.codomain.written == "X"


def test_a_long_circle_is_one_error() -> None:
    text = "".join(f"let a{n} = a{(n + 1) % 300}\n" for n in range(300))
    errors = [item for item in analyse(text).diagnostics() if item.severity.name == "ERROR"]
    assert [item.code.name for item in errors] == ["cycle"]


def test_deep_brackets() -> None:
    take_in("let a = " + "(" * 5000 + "b" + ")" * 5000)
    take_in("object A : " + "(" * 5000)


def test_many_errors_stay_quick() -> None:
    text = "".join(f"morphism m{n} : Nowhere{n} -> Nothing ~ Norml\n" for n in range(1500))
    analyzer = Analyzer(text)
    assert len(analyzer.snapshot().diagnostics()) >= 3000
    analyzer.edit(Cursor(700, 9), Cursor(700, 9), "x")
    assert len(analyzer.snapshot().diagnostics()) >= 3000
