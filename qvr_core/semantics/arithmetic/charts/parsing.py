"""`parse(deduction, sentence)`: what it is called with, and over which set its weights then run."""

from __future__ import annotations

from collections.abc import Iterable

from qvr_core.semantics.arithmetic.broadcasting import data_like, plate_axes, with_axes
from qvr_core.semantics.arithmetic.elementwise import words
from qvr_core.semantics.scope.environment import StepContext
from qvr_core.semantics.scope.scope import DeductionEntry, Scope
from qvr_core.semantics.types.axes import set_of
from qvr_core.semantics.types.data_text import element_text
from qvr_core.semantics.types.diagnostics import Related
from qvr_core.semantics.types.model.expressions import Bound, Builtin, Data, DeductionRef, Expr, Lexicon, ValueType
from qvr_core.semantics.types.model.steps import StepModel
from qvr_core.semantics.types.program_codes import DATA_MISMATCH, FUNCTION_ARGUMENTS
from qvr_core.semantics.types.sentences import parsed_data
from qvr_core.semantics.types.spaces import REAL_LINE, Finite, Seq, Unknown
from qvr_core.semantics.types.subspace import fit
from qvr_core.syntax.tree.arithmetic import ArithCall, Variable


def chart_type(args: tuple[Expr, ...], expr: ArithCall, ctx: StepContext) -> ValueType:
    """The type of the weights of `parse(…)`: one for each sentence of declared data; else only data can tell."""
    types = [arg.type for arg in args]
    if not _check_deduction(args[0], expr, ctx) or len(args) < 2:
        return data_like(types)
    sentence, place = args[1], expr.args[-1].span
    binding = ctx.find(sentence.name) if isinstance(sentence, Data) else None
    if binding is None or binding.kind != "data" or isinstance(binding.type.space, Unknown):
        return data_like(types)
    space, plates = binding.type.space, plate_axes(binding.type)
    wanted = _set_of_words(args[0], ctx)
    over = " * ".join(set_of(plate) for _, plate in plates if plate is not None)
    name = sentence.name if isinstance(sentence, Data) else ""
    if not isinstance(space, Seq) or not isinstance(space.item, Finite):
        if isinstance(space, Finite) and len(plates) == 1:
            return data_like(types)  # one sentence, a word for each place
        line = f"data {name} : {over} -> Seq {wanted}" if over else f"data {name} : Seq {wanted}"
        held = "numbers" if space is None or space == REAL_LINE else element_text(space)
        message = f"`parse` reads sequences of words, and `{name}` holds {held}: `{line}`"
        related = (Related(f"`{name}` is declared here", binding.origin),)
        ctx.scope.report(FUNCTION_ARGUMENTS, message, place, related)
        return data_like(types)
    if len(plates) > 1:
        message = f"`parse` reads a sentence, or one for each element of a set, and `{name}` runs over {over}"
        ctx.scope.report(FUNCTION_ARGUMENTS, message, place)
        return data_like(types)
    entry = ctx.scope.lookup(args[0].name) if isinstance(args[0], DeductionRef) else None
    if isinstance(entry, DeductionEntry) and fit(space.item, entry.deduction.domain.space).problem is not None:
        message = f"`{name}` holds words of {element_text(space.item)}, but `{entry.name}` reads those of {wanted}"
        related = (Related(f"`{name}` is declared here", binding.origin),)
        ctx.scope.report(DATA_MISMATCH, message, place, related)
    return with_axes(plates, REAL_LINE, like=())


def check_sentences(steps: Iterable[StepModel], scope: Scope) -> None:
    """Report data that two deductions parse whose words are numbered otherwise: one number would be two words."""
    first: dict[str, tuple[Data, Lexicon]] = {}
    for sentence, lexicon in parsed_data(steps):
        before, known = first.setdefault(sentence.name, (sentence, lexicon))
        same = known.labels == lexicon.labels if known.labels is not None else known.deduction == lexicon.deduction
        if not same:
            message = f"`{sentence.name}` holds words of `{lexicon.deduction}` here and of `{known.deduction}` "
            message += "elsewhere: declare both over one set of words, `object Word : {…}`, or parse data of their own"
            related = (Related(f"`{sentence.name}` holds words of `{known.deduction}` here", before.origin),)
            scope.report(DATA_MISMATCH, message, sentence.origin, related)


def _set_of_words(deduction: Expr, ctx: StepContext) -> str:
    entry = ctx.scope.lookup(deduction.name) if isinstance(deduction, DeductionRef) else None
    return entry.deduction.domain.written if isinstance(entry, DeductionEntry) else "Word"


def _check_deduction(first: Expr, expr: ArithCall, ctx: StepContext) -> bool:
    # only of a name: what has none is called as the whole input is, which this program would then read
    binding = ctx.find(first.name) if isinstance(first, Bound | Data) else None
    composed = isinstance(first, Builtin) and first.function == "compose"
    if isinstance(first, DeductionRef) or composed or (binding is not None and binding.kind == "deduction"):
        return True
    if ctx.aliases or isinstance(first.type.space, Unknown):
        return False
    tree = expr.args[0].value
    if isinstance(first, Data) and isinstance(tree, Variable):
        # a deduction is no data
        ctx.free = [free for free in ctx.free if free.name != first.name]
        ctx.data.pop(first.name, None)
        ctx.scope.unknown(tree.name, "deduction")
        return False
    message = f"`parse` wants a deduction, but {words(expr.args[0].value, 'the first argument')} is not one"
    ctx.scope.report(FUNCTION_ARGUMENTS, message, expr.args[0].span)
    return False
