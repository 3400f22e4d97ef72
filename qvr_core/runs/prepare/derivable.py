"""What of a run's deductions no fit would put right: sentences without a derivation, weights without a posterior."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from qvr_core.arrays.engine import arrays, is_tensor
from qvr_core.arrays.typed_engine import listed
from qvr_core.data.binding import RowsOf, Whole
from qvr_core.runs.prepare.failures import Refused
from qvr_core.runtime.programs.deduction import ComposedDeduction, DeductionModule
from qvr_core.runtime.programs.program import ProgramModule
from qvr_core.runtime.tensors.parsed_sentences import Chart, Parsed
from qvr_core.semantics.types.diagnostics import Origin
from qvr_core.semantics.types.model.expressions import Data, Method, TermValue
from qvr_core.semantics.types.model.programs import Program
from qvr_core.semantics.types.sentences import Parse, questions, written_sentence


def check_derivable(program: Program, model: ProgramModule, train: Any) -> None:
    """Refuse sentences without a derivation whose goal's log weight a step asks for, and items that the sentence of a
    program does not have: a log weight of 0 is −1e30.  Charts are kept for the fit."""
    given = train.observations if isinstance(train, Whole | RowsOf) else {}
    # a sentence without any derivation has no item either: that is said of the sentence
    for question, parse in sorted(_asked(program), key=lambda one: one[0].method != "goal_weight"):
        modules = [model.deductions[one.name] for one in parse.deductions if one.name in model.deductions]
        if len(modules) < len(parse.deductions) or modules[-1].deduction.semiring not in ("LogProb", "Viterbi"):
            continue
        name = parse.sentence.name if isinstance(parse.sentence, Data) else None
        sentences = given.get(name) if name is not None else written_sentence(parse.sentence)
        if sentences is None or (name is not None and not is_tensor(sentences)):
            continue
        if question.method == "goal_weight":
            item = None
        elif name is None and question.method == "weight" and isinstance(question.args[0], TermValue):
            item = question.args[0].text
        else:
            continue
        with arrays.no_grad():
            found = (modules[0] if len(modules) == 1 else ComposedDeduction(modules)).parse(sentences)
        each = [found.parsed] if isinstance(found, Chart) else [found.parsed[int(at)] for at in listed(found.places)]
        wrong = [
            (number, one)
            for number, one in enumerate(each, 1)
            if not (one.whole if item is None else one.matching(item))
        ]
        if wrong:
            place = question.args[0].origin if item is not None else parse.sentence.origin
            raise _refused(
                name, item, place if name is None else None, modules[-1], not isinstance(found, Chart), wrong
            )


def _asked(program: Program) -> Iterator[tuple[Method, Parse]]:
    """The questions to charts, each once for the same of one sentence."""
    seen: set[tuple[object, ...]] = set()
    for question, parse in questions(program.steps):
        sentence = parse.sentence.name if isinstance(parse.sentence, Data) else parse.sentence.origin
        items = tuple(one.text for one in question.args if isinstance(one, TermValue))
        key = (question.method, items, tuple(one.name for one in parse.deductions), sentence)
        if key not in seen:
            seen.add(key)
            yield question, parse


def check_posterior(model: ProgramModule) -> None:
    """Refuse to sample the weights of a normalised deduction: with one number added to all weights of a choice the
    density is the same, so it has no finite integral."""
    for name, module in model.deductions.items():
        if module.deduction.normalised and any(True for _ in module.parameters()):
            message = f"the weights of `{name}` have no prior, and of a `normalised` deduction no posterior without one"
            raise Refused("no-prior", message, site=name, fixes=("Fit it by svi: `qvr run svi`",))


def _refused(
    name: str | None,
    item: str | None,
    origin: Origin | None,
    module: DeductionModule,
    several: bool,
    wrong: list[tuple[int, Parsed]],
) -> Refused:
    """`name` of data, `item` where no goal is asked."""
    number, one = wrong[0]
    wanted = item if item is not None else module.deduction.start
    goal = "it" if wanted is None else f"`{wanted}`"
    place = f"`{name}`, " if name is not None else ""
    if several:
        place = f"sentence {number} of {place}" if name is not None else f"sentence {number}, "
    more = f", and {len(wrong) - 1} more have none" if len(wrong) > 1 else ""
    message = f"`{module.deduction.name}` derives no {goal} from {place}`{' '.join(one.words)}`{more}"
    fixes = ("Correct the sentence, or leave it out", "Add the rule or the entry of the lexicon that it needs")
    if item is not None:
        fixes = ("Correct the item, its positions included", fixes[1])
    return Refused("data" if name is not None else "no-derivation", message, site=name, origin=origin, fixes=fixes)
