"""What of a run's deductions no fit would put right: sentences without a derivation, weights without a posterior."""

from __future__ import annotations

from typing import Any

from qvr_core.arrays.engine import arrays, is_tensor
from qvr_core.arrays.typed_engine import listed
from qvr_core.data.binding import RowsOf, Whole
from qvr_core.runs.prepare.failures import Refused
from qvr_core.runtime.programs.deduction import DeductionModule
from qvr_core.runtime.programs.program import ProgramModule
from qvr_core.runtime.tensors.parsed_sentences import Chart, Charts, Parsed
from qvr_core.semantics.types.model.programs import Program
from qvr_core.semantics.types.sentences import goals_asked


def check_derivable(program: Program, model: ProgramModule, train: Any) -> None:
    """Refuse sentences without a derivation whose goal's log weight a step asks for.  Charts are kept for the fit."""
    given = train.observations if isinstance(train, Whole | RowsOf) else {}
    modules = model.deductions
    for name, deduction in dict.fromkeys(goals_asked(program)):
        module, sentences = modules.get(deduction), given.get(name)
        if module is None or not is_tensor(sentences) or module.deduction.semiring not in ("LogProb", "Viterbi"):
            continue
        with arrays.no_grad():
            found = module.parse(sentences)
        each = [found.parsed] if isinstance(found, Chart) else [found.parsed[int(at)] for at in listed(found.places)]
        wrong = [(number, one) for number, one in enumerate(each, 1) if not one.whole]
        if wrong:
            raise _refused(name, module, isinstance(found, Charts), wrong)


def check_posterior(model: ProgramModule) -> None:
    """Refuse to sample the weights of a normalised deduction: with one number added to all weights of a choice the
    density is the same, so it has no finite integral."""
    for name, module in model.deductions.items():
        if module.deduction.normalised and any(True for _ in module.parameters()):
            message = f"the weights of `{name}` have no prior, and of a `normalised` deduction no posterior without one"
            raise Refused("no-prior", message, site=name, fixes=("Fit it by svi: `qvr run svi`",))


def _refused(name: str, module: DeductionModule, several: bool, wrong: list[tuple[int, Parsed]]) -> Refused:
    number, one = wrong[0]
    start = module.deduction.start
    goal = "it" if start is None else f"`{start}`"
    place = f"sentence {number} of `{name}`" if several else f"`{name}`"
    more = f", and {len(wrong) - 1} more have none" if len(wrong) > 1 else ""
    message = f"`{module.deduction.name}` derives no {goal} from {place}, `{' '.join(one.words)}`{more}"
    fixes = ("Correct the sentence, or leave it out", "Add the rule or the entry of the lexicon that it needs")
    return Refused("data", message, site=name, fixes=fixes)
