"""lark at work: whatever its version, from any thread."""

from __future__ import annotations

import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import lark
import pytest

from qvr_core.syntax import grammar
from qvr_core.syntax.grammar import STARTS
from qvr_core.syntax.lexer import tokenize
from qvr_core.syntax.parser import Failure, accepted, parse, read
from tests.syntax.generated import sentence

TEXT = "sample theta[p : Person] : Real 2 <- Normal(mu[p] * 2, sd=s.x) [noncentred]"


def parsed(text: str, start: str = "step") -> object:
    return parse(tokenize(text, start)[0], start)


class Compilations:
    """How often the grammar is compiled."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> lark.Lark:
        self.count += 1
        return compiled_grammar()


compiled_grammar = grammar.compiled_grammar


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Compilations]:
    """Another version of lark than the one that `grammar.json` was made by, and an empty cache."""
    counted = Compilations()
    monkeypatch.setattr(grammar, "compiled_grammar", counted)
    monkeypatch.setattr(lark, "__version__", "1.3.99")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    grammar.grammar.cache_clear()
    yield counted
    grammar.grammar.cache_clear()


def kept(folder: Path) -> Path:
    (file,) = (folder / "qvr" / "grammar").iterdir()
    return file


def test_a_table_for_another_version_of_lark_is_made_once(compilations: Compilations, tmp_path: Path) -> None:
    first = parsed(TEXT)
    assert compilations.count == 1 and "1.3.99" in kept(tmp_path).name
    grammar.grammar.cache_clear()
    assert parsed(TEXT) == first and compilations.count == 1


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: content[:-1000],
        lambda content: content.replace(b"[0,17]", b"[0,18]", 1),
        lambda content: b"\xff\xfe" + content,
    ],
    ids=["emptied", "cut", "changed", "no-text"],
)
def test_a_damaged_table_in_the_cache_is_made_anew(damage, compilations: Compilations, tmp_path: Path) -> None:
    first = parsed(TEXT)
    file = kept(tmp_path)
    whole = file.read_bytes()
    assert damage(whole) != whole
    file.write_bytes(damage(whole))
    grammar.grammar.cache_clear()
    assert parsed(TEXT) == first and compilations.count == 2
    assert file.read_bytes() == whole


def test_a_cache_that_cannot_be_written_does_no_harm(compilations: Compilations, tmp_path: Path) -> None:
    (tmp_path / "qvr").write_text("a file where a folder should be")
    assert not isinstance(parsed(TEXT), Failure) and compilations.count == 1


def test_threads_parse_at_once() -> None:
    source = random.Random(7)
    texts = [(start, sentence(source, start)) for start in STARTS * 40]
    alone = [parsed(text, start) for start, text in texts]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda unit: parsed(unit[1], unit[0]), texts)) == alone


def test_what_may_follow_is_known_before_what_does_is_read() -> None:
    tokens = tokenize("sample x <- Normal(0, 1", "step")[0]
    failure = parse(tokens, "step")
    assert isinstance(failure, Failure) and tokens[failure.position].kind == "$END"
    assert {"COMMA", "RPAR", "PLUS", "CARET", "LSQB"} <= accepted(failure.reader())
    assert "COMPARISON" in accepted(failure.reader())
    assert read(tokens[:3], "step") is not None and read(tokens[2:3], "step") is None
