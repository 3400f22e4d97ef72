"""Data types in words: what their terms are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qvr_core.ide.arrows_in_words import density_text
from qvr_core.ide.descriptions import documentation
from qvr_core.ide.language_words import sentence
from qvr_core.ide.prose import Code, Prose, prose
from qvr_core.ide.symbols import Symbol
from qvr_core.ide.view import model_of
from qvr_core.semantics.types.model.arrows import Sort
from qvr_core.semantics.types.model.terms import Decoder, Encoder, constructor_text

if TYPE_CHECKING:
    from qvr_core.analysis import Snapshot

SHOWN = 12
"""Constructors that a hover lists."""


def data_type_text(snapshot: Snapshot, symbol: Symbol) -> Prose:
    """A data type with its constructors, those that end a term first in the sentence below."""
    held = model_of(snapshot).data_types.get(symbol.name)
    if held is None:
        return prose(f"data type `{symbol.name}`")
    shown = [constructor_text(one, held.name) for one in held.constructors]
    more = [] if len(shown) <= SHOWN else [f"{len(shown) - SHOWN} more"]
    lines = [f"data type {held.name}", *(f"    | {text}" for text in (*shown[:SHOWN], *more))]
    ends = [f"`{one.name}`" for one in held.constructors if None not in one.arguments]
    says = f"Finite trees; {' and '.join((', '.join(ends[:-1]), ends[-1])) if len(ends) > 1 else ends[0]} end them."
    return prose(Code("\n".join(lines)), documentation(snapshot, symbol), says if ends else "")


def encoder_text(snapshot: Snapshot, symbol: Symbol) -> Prose:
    """An encoder with its type, and what its cases read."""
    held = model_of(snapshot).term_arrows.get(symbol.name)
    if not isinstance(held, Encoder):
        return prose(f"encoder `{symbol.name}`, which has an error", documentation(snapshot, symbol))
    cases = len(held.cases)
    says = f"{cases} case{'' if cases == 1 else 's'}: a term is encoded from its leaves up."
    sampled = held.sort is Sort.SAMPLED
    head = f"encoder {held.name} : {held.type} {'->' if sampled else '=>'} {held.codomain.written}"
    if sampled:
        says += f" Each node makes the draws of its case. {sentence(density_text(held.density))}"
    return prose(Code(head), documentation(snapshot, symbol), says)


def decoder_text(snapshot: Snapshot, symbol: Symbol) -> Prose:
    """A decoder with its type, and how deep its terms are."""
    held = model_of(snapshot).term_arrows.get(symbol.name)
    if not isinstance(held, Decoder):
        return prose(f"decoder `{symbol.name}`, which has an error", documentation(snapshot, symbol))
    levels = "1 level" if held.depth == 1 else f"{held.depth} levels"
    says = f"Terms of at most {levels}, made from their root down, with an exact density: a kernel makes each choice."
    head = f"decoder {held.name} : {held.domain.written} -> {held.type} [depth={held.depth}]"
    return prose(Code(head), documentation(snapshot, symbol), says)


def constructor_hover(snapshot: Snapshot, symbol: Symbol) -> Prose:
    """A constructor with what it takes."""
    held = model_of(snapshot).data_types.get(symbol.of)
    one = held.constructor(symbol.name) if held is not None else None
    if held is None or one is None:
        return prose(f"constructor `{symbol.name}`")
    return prose(Code(constructor_text(one, held.name)), f"A constructor of `{held.name}`.")
