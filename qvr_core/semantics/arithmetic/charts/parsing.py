"""`parse(deduction, sentence)`: what it is called with, and over which set its weights then run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from qvr_core.semantics.arithmetic.broadcasting import data_like, plate_axes, with_axes
from qvr_core.semantics.arithmetic.elementwise import words
from qvr_core.semantics.language.spelling import candidates, closest
from qvr_core.semantics.scope.environment import StepContext
from qvr_core.semantics.scope.scope import DeductionEntry, Scope
from qvr_core.semantics.types.axes import set_of
from qvr_core.semantics.types.data_text import element_text
from qvr_core.semantics.types.diagnostics import Edit, Fix, Origin, Related
from qvr_core.semantics.types.model.deductions import Deduction
from qvr_core.semantics.types.model.expressions import (
    Bound,
    Builtin,
    Constant,
    Data,
    DeductionRef,
    Expr,
    Lexicon,
    Method,
    TermValue,
    ValueType,
)
from qvr_core.semantics.types.model.steps import StepModel
from qvr_core.semantics.types.program_codes import DATA_MISMATCH, FUNCTION_ARGUMENTS
from qvr_core.semantics.types.sentences import Parse, parsed_data, parses, questions, written_sentence
from qvr_core.semantics.types.spaces import REAL_LINE, Finite, Seq, Unknown
from qvr_core.semantics.types.subspace import fit
from qvr_core.semantics.types.walk import operands, walk
from qvr_core.syntax.tree.arithmetic import ArithCall, Variable
from qvr_core.syntax.tree.names import Span

MOST_LISTED = 6
"""Names in a message that says which there are."""


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
    """Report data that two deductions parse whose words are numbered otherwise: one number would be two words; and
    words and atoms that a deduction lacks."""
    steps = tuple(steps)
    first: dict[str, tuple[Data, Lexicon]] = {}
    for sentence, lexicon in parsed_data(steps):
        before, known = first.setdefault(sentence.name, (sentence, lexicon))
        same = known.labels == lexicon.labels if known.labels is not None else known.deduction == lexicon.deduction
        if not same:
            message = f"`{sentence.name}` holds words of `{lexicon.deduction}` here and of `{known.deduction}` "
            message += "elsewhere: declare both over one set of words, `object Word : {…}`, or parse data of their own"
            related = (Related(f"`{sentence.name}` holds words of `{known.deduction}` here", before.origin),)
            scope.report(DATA_MISMATCH, message, sentence.origin, related)
    for parse in parses(steps):
        _check_words(parse, scope)
    for question, parse in questions(steps):
        _check_atoms(question, parse, scope)


def _check_words(parse: Parse, scope: Scope) -> None:
    """Report words of a sentence in the program that the lexicon lacks; of a lexicon in a file nobody knows here."""
    lexicon = parse.deductions[0].lexicon
    if lexicon.files or not _whole(parse.deductions[:1], scope) or written_sentence(parse.sentence) is None:
        return
    told = set(lexicon.words)
    for literal in walk(parse.sentence, operands):
        if not isinstance(literal, Constant) or not isinstance(literal.value, str):
            continue
        start, end = literal.origin.span
        # with an escape in it nobody knows which letter of the text stands where
        plain = end - start == len(literal.value) + 2
        for found in re.finditer(r"\S+", literal.value):
            word = found.group()
            if word in told:
                continue
            told.add(word)
            span = Span(start + 1 + found.start(), start + 1 + found.end()) if plain else literal.origin.span
            message = f"`{word}` is no word of `{lexicon.deduction}`"
            _no_such(message, word, lexicon.words, Origin(literal.origin.unit, span), scope, plain)


def _check_atoms(question: Method, parse: Parse, scope: Scope) -> None:
    """Report names in an item that no item can hold: neither atoms nor bound by a binder."""
    deductions = _whole(parse.deductions, scope)
    atoms = tuple(dict.fromkeys(atom for one in deductions for atom in one.atoms))
    binders = {binder for one in deductions for binder in one.binders}
    for item in question.args if deductions else ():
        for name, place, around in item.names if isinstance(item, TermValue) else ():
            if name not in atoms and binders.isdisjoint(around):
                message = f"`{name}` is no atom of `{parse.deductions[-1].name}`"
                _no_such(message, name, atoms, place, scope, True)


def _whole(deductions: Sequence[DeductionRef], scope: Scope) -> list[Deduction]:
    """The deductions; none where a line of one cannot be read, which may say what is missing."""
    entries = [scope.lookup(one.name) for one in deductions]
    found = [entry.deduction for entry in entries if isinstance(entry, DeductionEntry) and not entry.deduction.damaged]
    return found if len(found) == len(deductions) else []


def _no_such(message: str, name: str, known: Sequence[str], place: Origin, scope: Scope, exact: bool) -> None:
    near = closest(name, candidates(known))
    more = f" and {len(known) - MOST_LISTED} more" if len(known) > MOST_LISTED else ""
    message += (
        f"; did you mean `{near}`?"
        if near is not None
        else f"; there are {', '.join(f'`{one}`' for one in known[:MOST_LISTED])}{more}"
        if known
        else ", which has none"
    )
    fixes = (Fix(f"Change to `{near}`", (Edit(place, near),)),) if near is not None and exact else ()
    scope.report(FUNCTION_ARGUMENTS, message, place, fixes=fixes)


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
