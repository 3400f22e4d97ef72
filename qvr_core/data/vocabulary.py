"""Vocabularies of words or byte pairs, made from a text by the `tokenizers` library."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tokenizers import Tokenizer

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
"""The first ids of every vocabulary; of these only [UNK] may stand for a piece of a text."""
PAD, UNKNOWN, CLS, SEP, MASK = range(len(SPECIAL))
SMALLEST = {"word": len(SPECIAL) + 1, "byte_pair": len(SPECIAL) + 256}
"""The fewest ids that a vocabulary of each unit needs."""


@dataclass(frozen=True)
class Vocabulary:
    """`size` ids, the special tokens first; the words or byte pairs follow by how often they occur."""

    tokenizer: Tokenizer
    unit: str

    @property
    def size(self) -> int:
        """How many tokens there are, special ones among them."""
        return self.tokenizer.get_vocab_size()

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of each text."""
        return [each.ids for each in self.tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)]

    def decode(self, ids: Sequence[int]) -> str:
        """Ids as text, special tokens as they are written."""
        return self.tokenizer.decode(list(ids), skip_special_tokens=False)

    def stored(self) -> str:
        """The vocabulary as JSON text: what `restored` reads."""
        return self.tokenizer.to_str()


def restored(unit: str, text: str) -> Vocabulary:
    """A vocabulary as `Vocabulary.stored` wrote it."""
    from tokenizers import Tokenizer

    return Vocabulary(Tokenizer.from_str(text), unit)


def trained(unit: str, texts: Sequence[str], size: int) -> Vocabulary:
    """At most `size` words (in lower case, punctuation apart) or byte pairs; what a text lacks leaves ids unused."""
    # of the extra `run`: statistical programs do without
    from tokenizers import Tokenizer, decoders, normalizers, pre_tokenizers
    from tokenizers.models import BPE, WordLevel
    from tokenizers.trainers import BpeTrainer, WordLevelTrainer

    special = list(SPECIAL)
    if unit == "word":
        tokenizer = Tokenizer(WordLevel(unk_token=SPECIAL[UNKNOWN]))
        tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
        tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
        trainer = WordLevelTrainer(vocab_size=size, special_tokens=special, show_progress=False)
    else:
        tokenizer = Tokenizer(BPE(unk_token=SPECIAL[UNKNOWN]))
        tokenizer.normalizer = normalizers.NFKC()
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
        tokenizer.decoder = decoders.ByteLevel()
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        trainer = BpeTrainer(vocab_size=size, special_tokens=special, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(texts, trainer, length=len(texts))
    # Special tokens are made by us alone: `[MASK]` in a text is five characters.
    tokenizer.encode_special_tokens = True
    return Vocabulary(tokenizer, unit)
