"""No question about any text ever fails: every example, damaged at random, asked at random places."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from qvr_core.analysis import Analyzer, Snapshot
from qvr_core.ide import hover, inlays, model_as_json, navigation, outline_and_folding, semantic_tokens
from qvr_core.ide.completion import completion, signature
from qvr_core.ide.edits import fixes, formatting, refactor, rename
from qvr_core.syntax.source import Cursor, Range

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / "examples").glob("?*.qvr")) + sorted((ROOT / "examples" / "broken").glob("?*.qvr"))
WHOLE = Range(Cursor(0, 0), Cursor(10_000, 0))
BLOCKS = sorted((ROOT / "tests" / "spec").rglob("*.md"))

AT_CURSOR = (
    hover.hover,
    completion.complete,
    signature.signature,
    navigation.definition,
    navigation.type_definition,
    navigation.find_references,
    navigation.highlights,
    navigation.linked,
    navigation.callable_at,
    outline_and_folding.selections,
    outline_and_folding.drawable_at,
    rename.prepare,
    lambda snapshot, cursor: rename.rename(snapshot, cursor, "brand_new"),
    lambda snapshot, cursor: refactor.refactorings(snapshot, Range(cursor, cursor)),
    lambda snapshot, cursor: fixes.quick_fixes(snapshot, Range(cursor, cursor)),
    formatting.indentation,
)
OF_FILE = (
    outline_and_folding.outline,
    outline_and_folding.folds,
    formatting.edits,
    fixes.fix_all,
    refactor.organize,
    lambda snapshot: inlays.inlays(snapshot, WHOLE),
    lambda snapshot: semantic_tokens.tokens(snapshot, WHOLE),
    lambda snapshot: model_as_json.model_json(snapshot.model, snapshot.find),
)


def damaged(text: str, dice: random.Random) -> str:
    for _ in range(dice.randint(0, 4)):
        start = dice.randrange(len(text) + 1)
        end = min(len(text), start + dice.choice((0, 1, 3, 10, 40)))
        text = (
            text[:start]
            + dice.choice(("", "(", "]", " >> ", "\n", "é🦄", '"', "let ", ":", "x", "=", ","))
            + text[end:]
        )
    return text


def ask_everything(snapshot: Snapshot, dice: random.Random, places: int) -> None:
    for question in OF_FILE:
        question(snapshot)
    for _ in range(places):
        line = dice.randrange(len(snapshot.lines))
        cursor = Cursor(line, dice.randint(0, len(snapshot.lines[line])))
        for question in AT_CURSOR:
            question(snapshot, cursor)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
@pytest.mark.sampled(3)
def test_damaged_examples(path: Path) -> None:
    dice = random.Random(path.stem)
    text = path.read_text()
    for _ in range(4):
        ask_everything(Analyzer(damaged(text, dice)).snapshot(), dice, 12)


@pytest.mark.parametrize("page", BLOCKS, ids=lambda path: path.stem)
@pytest.mark.sampled(3)
def test_spec_cases(page: Path) -> None:
    dice = random.Random(page.stem)
    for number, part in enumerate(page.read_text().split("```qvr")[1:]):
        if number % 4 == 0:
            ask_everything(Analyzer(damaged(part.split("```")[0].partition("\n")[2], dice)).snapshot(), dice, 6)
