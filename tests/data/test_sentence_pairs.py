"""Sentence pairs: what a row holds, how tokens are masked, and what is said where a program or a text does not fit."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from qvr_core.data.needs import Needs, needs_of
from qvr_core.data.problems import DataProblem
from qvr_core.data.sentence_pairs import SentencePairs, parted, plan
from qvr_core.data.sentences import read_paragraphs, sentences
from qvr_core.data.vocabulary import CLS, MASK, PAD, SEP, SPECIAL, restored, trained
from tests.standalone import standalone

EXAMPLE = Path(__file__).parents[2] / "examples" / "bert_pretraining.qvr"
SOURCE = EXAMPLE.read_text(encoding="utf-8")


def needs(source: str = SOURCE) -> Needs:
    return needs_of(standalone(source).model.programs["bert_pretraining"])


def made_up(paragraphs: int, seed: int = 0) -> list[list[str]]:
    """Paragraphs of sentences that say which one they are: `w<paragraph> s<number> …`."""
    draw = random.Random(seed)
    words = [f"word{i}" for i in range(300)]
    return [
        [f"p{i} s{j} " + " ".join(draw.choices(words, k=draw.randint(2, 20))) for j in range(draw.randint(2, 6))]
        for i in range(paragraphs)
    ]


@pytest.fixture(scope="module")
def pairs() -> SentencePairs:
    text = made_up(400)
    vocabulary = trained("word", [sentence for paragraph in text for sentence in paragraph], 4000)
    return SentencePairs(text, vocabulary, plan("text", needs(), length=48, unit="word"), "text")


def batches(pairs: SentencePairs, count: int, rows: int = 256):
    for number in range(count):
        generator = torch.Generator().manual_seed(number)
        yield pairs.batch(torch.randint(pairs.rows, (rows,), generator=generator), generator)


def test_a_row_is_two_sentences_between_special_tokens(pairs: SentencePairs) -> None:
    for (tokens, segments), observed in batches(pairs, 4):
        assert tokens.shape == segments.shape and tokens.shape[1] <= 48
        assert int(observed["valid"].max()) == tokens.shape[1]
        row = torch.arange(len(tokens))[:, None]
        whole = tokens.clone()
        counted = observed["counted"]
        whole[row.expand_as(counted)[counted], observed["selected"][counted]] = observed["masked_token"][counted]
        for ids, kinds, length in zip(whole.tolist(), segments.tolist(), observed["valid"].tolist(), strict=True):
            assert ids[0] == CLS and ids[length - 1] == SEP and set(ids[length:]) <= {PAD}
            middle = ids.index(SEP)
            assert Counter(ids[:length])[SEP] == 2 and ids.count(CLS) == 1 and MASK not in ids
            assert kinds == [0] * (middle + 1) + [1] * (length - middle - 1) + [0] * (len(ids) - length)


def test_a_true_next_sentence_follows_and_another_is_of_another_paragraph(pairs: SentencePairs) -> None:
    words = {number: word for word, number in pairs.vocabulary.tokenizer.get_vocab().items()}
    checked = 0
    for (tokens, _), observed in batches(pairs, 4):
        row = torch.arange(len(tokens))[:, None].expand_as(observed["counted"])
        tokens[row[observed["counted"]], observed["selected"][observed["counted"]]] = observed["masked_token"][
            observed["counted"]
        ]
        for ids, follows in zip(tokens.tolist(), observed["follows"].tolist(), strict=True):
            middle = ids.index(SEP)
            (p, s), (q, t) = [words[i] for i in ids[1:3]], [words[i] for i in ids[middle + 1 : middle + 3]]
            assert int(t[1:]) >= 1
            assert (p == q and int(t[1:]) == int(s[1:]) + 1) if follows else p != q
            checked += 1
    assert checked == 1024


def test_masking_over_a_hundred_thousand_tokens(pairs: SentencePairs) -> None:
    seen = selected = hidden = kept = other = next_ones = rows = 0
    for (tokens, _), observed in batches(pairs, 24):
        at, counted, truth = observed["selected"], observed["counted"], observed["masked_token"][observed["counted"]]
        row = torch.arange(len(tokens))[:, None].expand_as(at)
        shown = tokens[row[counted], at[counted]]
        assert int(truth.min()) >= len(SPECIAL)
        hidden += int((shown == MASK).sum())
        kept += int((shown == truth).sum())
        other += int(((shown != MASK) & (shown != truth)).sum())
        assert set(shown[shown < len(SPECIAL)].tolist()) <= {MASK}
        for positions, mask in zip(at.tolist(), counted.tolist(), strict=True):
            chosen = [position for position, counts in zip(positions, mask, strict=True) if counts]
            assert len(set(chosen)) == len(chosen)
        # every valid position holds a word of the text but the three special ones
        seen += int((observed["valid"] - 3).sum())
        selected += len(truth)
        next_ones += int(observed["follows"].sum())
        rows += len(tokens)
    assert seen > 100_000
    # five standard errors of a binomial share
    assert abs(selected / seen - 0.15) < 5 * (0.15 * 0.85 / seen) ** 0.5
    assert abs(hidden / selected - 0.8) < 5 * (0.8 * 0.2 / selected) ** 0.5
    # a random token is the true one now and then
    words = pairs.vocabulary.size - len(SPECIAL)
    assert abs(kept / selected - 0.1 - 0.1 / words) < 5 * (0.1 * 0.9 / selected) ** 0.5
    assert abs(other / selected - 0.1 + 0.1 / words) < 5 * (0.1 * 0.9 / selected) ** 0.5
    assert abs(next_ones / rows - 0.5) < 5 * 0.5 / rows**0.5


def test_a_batch_is_a_function_of_rows_and_seed(pairs: SentencePairs) -> None:
    rows = torch.arange(20)

    def one(seed: int):
        (tokens, segments), observed = pairs.batch(rows, torch.Generator().manual_seed(seed))
        return [tokens, segments, *observed.values()]

    assert all(torch.equal(a, b) for a, b in zip(one(3), one(3), strict=True))
    assert not all(a.shape == b.shape and torch.equal(a, b) for a, b in zip(one(3), one(4), strict=True))


@pytest.mark.parametrize("unit", ["word", "byte_pair"])
def test_a_vocabulary_is_made_of_the_text_and_restored_as_it_was(unit: str) -> None:
    text = [sentence for paragraph in made_up(60) for sentence in paragraph]
    made, again = trained(unit, text, 600), trained(unit, text, 600)
    assert made.stored() == again.stored()
    assert made.size <= 600
    assert [made.tokenizer.id_to_token(i) for i in range(len(SPECIAL))] == list(SPECIAL)
    stored = restored(unit, made.stored())
    assert stored.encode(text) == made.encode(text)
    # a special token that stands in a text is ordinary characters
    assert not {PAD, CLS, SEP, MASK} & set(made.encode(["a [MASK] and a [SEP] [CLS] [PAD]"])[0])


def test_byte_pairs_know_every_character() -> None:
    made = trained("byte_pair", [sentence for paragraph in made_up(20) for sentence in paragraph], 400)
    assert "".join(made.decode([i]) for i in made.encode(["word1 word2"])[0]).strip() == "word1 word2"
    assert 1 not in made.encode(["Ünïcode — ∀x"])[0]


def test_paragraphs_and_sentences(tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_text("Third one. It ends here.\n")
    (tmp_path / "a.txt").write_text("First one, e.g.\nThis is not a new one. Is it? Yes!\n \n\nDr. No is second.\n")
    found = read_paragraphs(str(tmp_path / "*.txt"))
    assert found == [
        ["First one, e.g. This is not a new one.", "Is it?", "Yes!"],
        ["Dr. No is second."],
        ["Third one.", "It ends here."],
    ]
    assert sentences('He said "Stop." (And then he left.) 3.5 is a number.') == [
        'He said "Stop."',
        "(And then he left.) 3.5 is a number.",
    ]


def test_no_paragraph_is_in_both_parts() -> None:
    text = made_up(50)
    train, held = parted([*text, ["alone"]], 0.2, "text")
    assert len(train) == 40 and len(held) == 10
    assert {paragraph[0] for paragraph in train}.isdisjoint(paragraph[0] for paragraph in held)


# ---------------------------------------------------------------- what does not fit


def refusal(source: str, *, length: int = 64, unit: str = "word") -> str:
    with pytest.raises(DataProblem) as caught:
        plan("text", needs(source), length=length, unit=unit)
    return str(caught.value)


AGAIN = "    observe again : Follows <- next_out(summary)\n"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (" [lengths=valid]", "", "does not say where it reads their lengths"),
        (" [at=selected, mask=counted]", "", "stand at some positions of a row only"),
        (", mask=counted", "", "stand at some positions of a row only"),
        ("FinSet 3000", "FinSet 5", "too few for a vocabulary"),
        ("Follows : {random, next}", "Follows : {random, next, before}", "one sentence follows another or not"),
        ("Segment : {first, second}", "Segment : {first}", "there are two segments"),
        ("    return masked_token\n", f"{AGAIN}    return masked_token\n", "`follows` and `again` could both be"),
        ("summary = tanh(", "summary = bias + tanh(", "wants `bias`"),
    ],
)
def test_a_program_that_does_not_fit_is_reported_why(old: str, new: str, words: str) -> None:
    assert SOURCE.count(old) == 1
    assert words in refusal(SOURCE.replace(old, new))


def test_rows_that_are_too_short_and_byte_pairs_without_bytes() -> None:
    assert "does not fit into 8 positions" in refusal(SOURCE, length=8)
    assert "needs 261" in refusal(SOURCE.replace("FinSet 3000", "FinSet 100"), unit="byte_pair")


def test_other_tokens_are_predicted_than_read() -> None:
    other = SOURCE.replace("object Token :", "object Other : FinSet 2000\nobject Token :")
    for old in ("Hidden -> Token", "masked_token : Token", "* Segment -> Token"):
        other = other.replace(old, old.replace("Token", "Other"))
    assert "2000 tokens are predicted and 3000 read (for `masked_token`)" in refusal(other)


def test_one_paragraph_holds_no_pair_of_another(pairs: SentencePairs) -> None:
    with pytest.raises(DataProblem, match="there are not two paragraphs with two sentences that hold a word"):
        SentencePairs(made_up(1), pairs.vocabulary, pairs.task, "text")


def test_a_program_of_one_sequence_has_no_pairs() -> None:
    text = (EXAMPLE.parent / "transformer_lm.qvr").read_text()
    lm = needs_of(standalone(text).model.programs["transformer_lm"])
    with pytest.raises(DataProblem, match="a sequence of tokens and one of segments"):
        plan("text", lm, length=64, unit="word")


@pytest.mark.parametrize(
    ("content", "words"),
    [("One sentence alone.\n", "0 paragraphs of two sentences"), (b"\xff\xfe\x00", "byte 0 is not UTF-8")],
)
def test_a_text_that_does_not_fit_is_reported_why(tmp_path: Path, content: str | bytes, words: str) -> None:
    file = tmp_path / "t.txt"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(DataProblem, match=words):
        parted(read_paragraphs(str(file)), 0.1, str(file))


@pytest.mark.parametrize(
    ("name", "words"), [("*.md", "no file is called"), ("gone.txt", "no such file"), ("", "folder")]
)
def test_files_that_are_not_there(tmp_path: Path, name: str, words: str) -> None:
    with pytest.raises(DataProblem, match=words):
        read_paragraphs(str(tmp_path / name))


def test_only_one_of_the_two_tasks(pairs: SentencePairs) -> None:
    alone = SentencePairs(made_up(10), pairs.vocabulary, replace(pairs.task, masked=None), "text")
    (tokens, _), observed = alone.batch(torch.arange(6))
    assert set(observed) == {"follows", "valid"}
    assert MASK not in np.unique(tokens.numpy())
