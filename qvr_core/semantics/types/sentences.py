"""Sentences among the data of a program: the names that it parses, and which words they may hold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from qvr_core.semantics.types.model.deductions import Deduction
from qvr_core.semantics.types.model.expressions import (
    Bound,
    Builtin,
    Constant,
    Data,
    DeductionRef,
    Expr,
    Lexicon,
    ListOf,
    Method,
)
from qvr_core.semantics.types.model.programs import Program
from qvr_core.semantics.types.model.steps import LetModel, StepModel
from qvr_core.semantics.types.spaces import Finite
from qvr_core.semantics.types.walk import all_steps, operands, values, walk
from qvr_core.syntax.immutable import immutable

PADDING = -1
"""Stands behind the last word of a sentence that is shorter than others."""


def lexicon_of(deduction: Deduction) -> Lexicon:
    """The words of a deduction, as far as its text lists them."""
    words = tuple(dict.fromkeys(entry.word for entry in deduction.lexicon))
    space = deduction.domain.space
    labels = space.labels if isinstance(space, Finite) else None
    return Lexicon(deduction.name, words, labels, deduction.lexicon_files)


@immutable
class Parse:
    """A `parse(…)`: the deductions that read in turn, and the sentence as what it is, behind the names of lets."""

    deductions: tuple[DeductionRef, ...]
    sentence: Expr


def parses(steps: Iterable[StepModel]) -> Iterator[Parse]:
    """Each `parse` of deductions that are known."""
    steps = tuple(steps)
    lets = _lets(steps)
    for value in chain.from_iterable(map(values, all_steps(steps))):
        for node in walk(value, operands):
            parse = _parse(node, lets)
            if parse is not None:
                yield parse


def questions(steps: Iterable[StepModel]) -> Iterator[tuple[Method, Parse]]:
    """Each question to a chart (`chart.goal_weight()`), and where the chart comes from."""
    steps = tuple(steps)
    lets = _lets(steps)
    for value in chain.from_iterable(map(values, all_steps(steps))):
        for node in walk(value, operands):
            parse = _parse(_named(node.base, lets), lets) if isinstance(node, Method) else None
            if isinstance(node, Method) and parse is not None:
                yield node, parse


def parsed_data(steps: Iterable[StepModel]) -> Iterator[tuple[Data, Lexicon]]:
    """Each data name where a step parses it, with the words of the deduction that reads it; of several in turn those
    of the first."""
    for parse in parses(steps):
        if isinstance(parse.sentence, Data):
            yield parse.sentence, parse.deductions[0].lexicon


def written_sentence(expr: Expr) -> object:
    """The sentence, or the sentences, that a program writes: text, or lists of such.  None of anything else."""
    if isinstance(expr, Constant):
        return expr.value if isinstance(expr.value, str) else None
    if not isinstance(expr, ListOf) or not expr.items:
        return None
    items = [written_sentence(item) for item in expr.items]
    return None if None in items else items


def sentences_of(program: Program) -> dict[str, Lexicon]:
    """The data names that a program parses, each with the words of the first deduction that reads it."""
    found: dict[str, Lexicon] = {}
    for sentence, lexicon in parsed_data(program.steps):
        found.setdefault(sentence.name, lexicon)
    return found


def _named(expr: Expr, lets: dict[str, Expr]) -> Expr:
    """What a name stands for that a `let` gives to another."""
    seen: set[str] = set()
    while isinstance(expr, Bound) and expr.name in lets and expr.name not in seen:
        seen.add(expr.name)
        expr = lets[expr.name]
    return expr


def _deductions(expr: Expr, lets: dict[str, Expr]) -> tuple[DeductionRef, ...]:
    """The deductions that an expression stands for, in turn; none where one of them is not known."""
    match _named(expr, lets):
        case DeductionRef() as one:
            return (one,)
        case Builtin(function="compose", args=args):
            each = [_deductions(arg, lets) for arg in args]
            return tuple(chain.from_iterable(each)) if all(each) else ()
        case _:
            return ()


def _parse(expr: Expr, lets: dict[str, Expr]) -> Parse | None:
    if not isinstance(expr, Builtin) or expr.function != "parse" or len(expr.args) != 2:
        return None
    deductions = _deductions(expr.args[0], lets)
    return Parse(deductions, _named(expr.args[1], lets)) if deductions else None


def _lets(steps: Iterable[StepModel]) -> dict[str, Expr]:
    single = (step for step in all_steps(steps) if isinstance(step, LetModel) and len(step.names) == 1)
    return {step.names[0]: step.value for step in single}
