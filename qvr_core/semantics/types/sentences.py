"""Sentences among the data of a program: the names that it parses, and which words they may hold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from qvr_core.semantics.types.model.deductions import Deduction
from qvr_core.semantics.types.model.expressions import Bound, Builtin, Data, DeductionRef, Expr, Lexicon, Method
from qvr_core.semantics.types.model.programs import Program
from qvr_core.semantics.types.model.steps import LetModel, StepModel
from qvr_core.semantics.types.spaces import Finite
from qvr_core.semantics.types.walk import all_steps, operands, values, walk

PADDING = -1
"""Stands behind the last word of a sentence that is shorter than others."""


def lexicon_of(deduction: Deduction) -> Lexicon:
    """The words of a deduction, as far as its text lists them."""
    words = tuple(dict.fromkeys(entry.word for entry in deduction.lexicon))
    space = deduction.domain.space
    labels = space.labels if isinstance(space, Finite) else None
    return Lexicon(deduction.name, words, labels, deduction.lexicon_files)


def parsed_data(steps: Iterable[StepModel]) -> Iterator[tuple[Data, Lexicon]]:
    """Each data name where a step parses it, with the words of the deduction that reads it."""
    lets: dict[str, Expr] = {}
    for step in all_steps(steps):
        if isinstance(step, LetModel) and len(step.names) == 1:
            lets[step.names[0]] = step.value
        for value in values(step):
            for node in walk(value, operands):
                if isinstance(node, Builtin) and node.function == "parse" and len(node.args) == 2:
                    lexicon, sentence = _lexicon(node.args[0], lets), _named(node.args[1], lets)
                    if lexicon is not None and isinstance(sentence, Data):
                        yield sentence, lexicon


def goals_asked(program: Program) -> Iterator[tuple[str, str]]:
    """Each data name whose sentences a step asks for the goal's weight, and the deduction that parses them."""
    lets = {
        step.names[0]: step.value
        for step in all_steps(program.steps)
        if isinstance(step, LetModel) and len(step.names) == 1
    }
    for step in all_steps(program.steps):
        for value in values(step):
            for node in walk(value, operands):
                if isinstance(node, Method) and node.method == "goal_weight":
                    chart = _named(node.base, lets)
                    if isinstance(chart, Builtin) and chart.function == "parse" and len(chart.args) == 2:
                        deduction, sentence = (_named(arg, lets) for arg in chart.args)
                        if isinstance(deduction, DeductionRef) and isinstance(sentence, Data):
                            yield sentence.name, deduction.name


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


def _lexicon(expr: Expr, lets: dict[str, Expr]) -> Lexicon | None:
    """The words that a deduction reads; of several in turn those of the first."""
    match _named(expr, lets):
        case DeductionRef(lexicon=lexicon):
            return lexicon
        case Builtin(function="compose", args=(first, *_)):
            return _lexicon(first, lets)
        case _:
            return None
