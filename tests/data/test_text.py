"""Text as windows: what a model sees, what it predicts, and the entropies that a model has to beat."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from pathlib import Path

import pytest
import torch

from qvr_core.data.needs import Need, Needs
from qvr_core.data.text import Corpus, TextTask, entropies, guess_task, plan, read_corpus, split

INPUT = Need("input", "x", "finite", "Token", size=256, sequence=True)
SITE = Need("observed", "token", "finite", "Token", size=256)
NEEDS = Needs("model", (INPUT,), (SITE,), ())


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    file = tmp_path / "t.txt"
    file.write_bytes(bytes(range(32, 122)) * 4)
    return read_corpus(str(file))


def planned(corpus: Corpus, task: str, **options: object) -> TextTask:
    asked = {"both_ways": False, "length": 5, "mask": "middle", "mask_token": None, **options}
    return plan(corpus, NEEDS, task=task, **asked)  # type: ignore[arg-type]


def test_next_byte(corpus: Corpus) -> None:
    train, _ = split(corpus, planned(corpus, "next"), 0.0)
    x, observations = train.batch(torch.tensor([0, 3]))
    assert x.tolist() == [[32, 33, 34, 35, 36], [35, 36, 37, 38, 39]]
    assert observations["token"].tolist() == [37, 40]
    assert train.rows == len(corpus) - 5


def test_masked_byte_hides_the_middle_only(corpus: Corpus) -> None:
    task = planned(corpus, "masked")
    train, _ = split(corpus, task, 0.0)
    x, observations = train.batch(torch.tensor([1]))
    assert task.mask_token == 0  # the smallest byte that the text does not use
    assert x.tolist() == [[33, 34, 0, 36, 37]]
    assert observations["token"].tolist() == [35]


def test_random_mask_is_decided_by_the_generator(corpus: Corpus) -> None:
    train, _ = split(corpus, planned(corpus, "masked", mask="random"), 0.0)
    rows = torch.arange(64)
    first, again, other = (train.batch(rows, torch.Generator().manual_seed(seed))[0] for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert ((first == 0).sum(1) == 1).all()
    assert set((first == 0).int().argmax(1).tolist()) == set(range(5))


def test_held_out_windows_share_no_byte_with_training(corpus: Corpus) -> None:
    train, held_out = split(corpus, planned(corpus, "next"), 0.25)
    assert held_out is not None
    last_trained = train.start + train.rows - 1 + 5
    assert last_trained < held_out.start
    assert len(set(held_out.spread(10).tolist())) == 10


def test_sequence_site_predicts_every_position(corpus: Corpus) -> None:
    needs = Needs("model", (INPUT,), (Need("observed", "token", "finite", "Token", size=256, sequence=True),), ())
    task = plan(corpus, needs, both_ways=False, task=None, length=4, mask="middle", mask_token=None)
    train, _ = split(corpus, task, 0.0)
    x, observations = train.batch(torch.tensor([0]))
    assert (x.tolist(), observations["token"].tolist()) == ([[32, 33, 34, 35]], [[33, 34, 35, 36]])
    assert train.tokens_per_row == 4


def test_characters(tmp_path: Path) -> None:
    file = tmp_path / "t.txt"
    file.write_text("häßäh", encoding="utf-8")
    corpus = read_corpus(str(file), "character")
    assert corpus.characters == "hßä"
    assert corpus.tokens.tolist() == [0, 2, 1, 2, 0]


def test_task_follows_the_program() -> None:
    assert guess_task("masked_token", both_ways=False) == "masked"
    assert guess_task("next_token", both_ways=True) == "next"
    assert guess_task("token", both_ways=True) == "masked"
    assert guess_task("token", both_ways=False) == "next"


def test_entropies_are_those_of_the_counts(tmp_path: Path) -> None:
    text = b"the cat sat on the mat and the cat ate the rat " * 5
    file = tmp_path / "t.txt"
    file.write_bytes(text)
    unigram, bigram = entropies(read_corpus(str(file)))

    def entropy(counts: Counter[object]) -> float:
        total = sum(counts.values())
        return -sum(n / total * math.log2(n / total) for n in counts.values())

    assert unigram == pytest.approx(entropy(Counter(text)))
    assert bigram == pytest.approx(entropy(Counter(itertools.pairwise(text))) - entropy(Counter(text[:-1])))
