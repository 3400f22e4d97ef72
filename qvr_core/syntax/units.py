"""One unit of text -> a `Unit`: a tree node, or located problems in words.

`parsed_unit` is cached by text: the same line is parsed once, wherever it stands and however often it moves.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from typing import Any

from qvr_core.syntax.internal_error import failed_unit
from qvr_core.syntax.lexer import COMBINATORS, keyword_kinds, tokenize
from qvr_core.syntax.mistakes.openers import KEYWORDS, is_foreign_block, near_word, opener
from qvr_core.syntax.mistakes.recovery import balanced, explained
from qvr_core.syntax.parser import Failure, accepted, parse
from qvr_core.syntax.problems import problem
from qvr_core.syntax.tokens import Token
from qvr_core.syntax.tree.arithmetic import FactorExpr
from qvr_core.syntax.tree.declarations import (
    CompositionHeader,
    CompositionRule,
    DataTypeDecl,
    DecoderHeader,
    DeductionHeader,
    DefDecl,
    DefHeader,
    EncoderHeader,
    FamilyHeader,
    LetDecl,
    MorphismDecl,
    ObjectDecl,
    Parameter,
    ProgramHeader,
    TransformationHeader,
)
from qvr_core.syntax.tree.deductions import AtomsItem, RuleItem
from qvr_core.syntax.tree.names import Name, Span
from qvr_core.syntax.tree.steps import (
    DataStep,
    LetStep,
    MarginalizeStep,
    ObserveStep,
    ParamStep,
    PredictStep,
    SampleStep,
    ScoreStep,
)
from qvr_core.syntax.tree.units import SyntaxProblem, Unit
from qvr_core.syntax.walk import children

# What a typed parameter of a program may be.
KINDS = ("FinSet", "Real", "Nat", "Object", "Mor")
# Every layer walks the tree by recursion; deeper trees would break Python's stack.
DEEPEST = 100
MOST_INDICES = 32
"""In force at one place: each is an axis, and arrays have no more."""

MOST_CLASHES = 20
"""Reserved words of a unit that are read as names: it is parsed again with each."""


def parse_unit(start: str, text: str) -> Unit[Any]:
    """Parse a unit from a start symbol of the grammar.  Never raises, whatever the text."""
    try:
        return parsed_unit(start, text)
    except Exception as error:
        return failed_unit(text, error)


@lru_cache(maxsize=8192)
def parsed_unit(start: str, text: str) -> Unit[Any]:
    """The same, but for a failure of ours, which is not remembered."""
    tokens, problems = tokenize(text, start)
    first = tokens[0]
    keyword = first.text if first.kind != "STRING" else ""
    node: Any = None
    if start in KEYWORDS and (keyword not in KEYWORDS[start] or first.kind == "NAME"):
        foreign = is_foreign_block(tokens, start)
        found, keyword = opener(tokens, start)
        if foreign or not problems:
            problems = [found]
        if foreign:
            return Unit(text, None, (found,), first.text, ())
        if not keyword:
            # `foo p …`: whatever `foo` was to do, `p` is what it would have declared.
            second = tokens[1] if len(tokens) > 1 and first.kind == tokens[1].kind == "NAME" else None
            declares = (Name(second.text, Span(second.start, second.end)),) if second else ()
            return Unit(text, None, tuple(problems), first.text, declares)
    # the string that runs to the end of the line has taken the closing brackets along
    unclosed = any(p.code == "unclosed-string" for p in problems)
    tokens, sure = balanced(tokens, [] if unclosed else problems)
    node, failure = _parse(tokens, start, problems)
    if not sure:
        node = None
    if failure is not None and not any(p.severity == "error" for p in problems):
        found, node = explained(text, failure)
        problems.append(found)
    if len(tokens) > DEEPEST and (message := _too_deep(node)):
        problems.append(problem("too-deep", message, node.span))
        held, node = [node], None
        _let_go(held)
    if isinstance(node, ProgramHeader) and node.parameters:
        node = _with_known_kinds(node, node.parameters, problems)
    problems += _warnings(tokens, node)
    names = _declared(node) if node is not None else _guessed(tokens, keyword)
    problems += _clashes(names, problems)
    problems.sort(key=lambda p: p.span)
    return Unit(text, node, tuple(problems), keyword, names)


def _parse(tokens: list[Token], start: str, problems: list[SyntaxProblem]) -> tuple[Any, Failure | None]:
    """Run the parser; a keyword where only a name fits is read as that name, with a problem."""
    clashes: list[SyntaxProblem] = []
    keywords = keyword_kinds()
    while True:
        result = parse(tokens, start)
        if not isinstance(result, Failure):
            problems += clashes
            return result, None
        token = tokens[result.position]
        if token.text not in keywords or "NAME" not in accepted(result.reader()):
            if clashes:
                problems.append(clashes[0])
            return None, result
        message = f"`{token.text}` is a reserved word and cannot be used as a name: call it `{token.text}_`"
        if start == "step":
            message += f" (a column `{token.text}` is read by it with `--columns {token.text}_={token.text}`)"
        if len(clashes) == MOST_CLASHES:
            first, *others = clashes
            message = f"{first.message}; what stands behind the first {MOST_CLASHES} such words is not looked at"
            problems += [problem("reserved-name", message, first.span), *others]
            return None, None
        clashes.append(problem("reserved-name", message, Span(token.start, token.end)))
        tokens[result.position] = token.read_as("NAME")


def _with_known_kinds(
    node: ProgramHeader, parameters: tuple[Parameter, ...], problems: list[SyntaxProblem]
) -> ProgramHeader:
    """The header with every parameter of an unknown kind as a plain input, and a problem for each."""
    known: list[Parameter] = []
    for parameter in parameters:
        kind = parameter.kind
        if kind is None or (kind.text in KINDS and (parameter.mor is not None) == (kind.text == "Mor")):
            known.append(parameter)
            continue
        meant = near_word(kind.text.capitalize(), KINDS)
        fix = (f"Replace it with `{meant}`", ((kind.span, meant),)) if meant in KINDS[:4] else None
        message = f"a parameter is `FinSet`, `Real`, `Nat`, `Object` or `Mor[A, B]`, not `{kind.text}`"
        problems.append(problem("syntax-error", message, kind.span, fix))
        known.append(replace(parameter, kind=None, mor=None))
    return replace(node, parameters=tuple(known))


def _let_go(held: list[Any]) -> None:
    """Free trees that nobody else holds from the top down: freed with its parent, each node inside another takes a
    piece of C's stack, and in WebAssembly that ends the interpreter."""
    pending = deque(held)
    held.clear()
    while pending:
        pending.extend(children(pending.popleft()))


def _too_deep(node: Any) -> str:
    """What is wrong where too many nodes stand inside each other, or too many indices are in force at one place;
    nothing where that is not so."""
    pending: list[tuple[Any, int, int]] = [(node, 1, 0)]
    while pending:
        found, depth, indices = pending.pop()
        if depth > DEEPEST:
            return "this is nested too deeply; name parts of it"
        indices += len(getattr(found, "binders", None) or ())
        indices += len(found.indices) if isinstance(found, FactorExpr) else 0
        if indices > MOST_INDICES:
            return f"{indices:,} indices run here at once, and no more than {MOST_INDICES} may; name parts of it"
        pending += [(child, depth + 1, indices) for child in children(found)]
    return ""


# ---------------------------------------------------------------- what a unit declares


def _declared(node: Any) -> tuple[Name, ...]:
    """The names that a node binds."""
    match node:
        case (
            ObjectDecl(names=names) | MorphismDecl(names=names) | AtomsItem(names=names)
            | DataStep(names=names) | ParamStep(names=names)
        ):  # fmt: skip
            return names
        case SampleStep(pattern=pattern) | LetStep(pattern=pattern):
            return tuple([name for name in pattern.names if name.text != "_"])
        case (
            LetDecl(name=name)
            | ProgramHeader(name=name)
            | CompositionHeader(name=name)
            | DeductionHeader(name=name)
            | DefDecl(name=name)
            | DefHeader(name=name)
            | FamilyHeader(name=name)
            | TransformationHeader(name=name)
            | DataTypeDecl(name=name)
            | EncoderHeader(name=name)
            | DecoderHeader(name=name)
            | ObserveStep(name=name)
            | PredictStep(name=name)
            | MarginalizeStep(name=name)
            | ScoreStep(name=name)
            | RuleItem(name=name)
            | CompositionRule(name=name)
        ):
            return (name,) if name.text != "_" or not isinstance(node, ObserveStep) else ()
        case _:
            return ()


def _guessed(tokens: list[Token], keyword: str) -> tuple[Name, ...]:
    """The names that a damaged line seems to declare: those between its keyword and the first sign of another part."""
    if keyword in ("export", "import", "from", "return", "lexicon", "") or len(tokens) < 2:
        return ()
    if keyword == "score" and tokens[2:3] and tokens[2].kind != "EQUAL":
        return ()
    found: list[Name] = []
    many = keyword in ("object", "morphism", "atoms", "binders", "data", "param") or tokens[1].kind in ("LPAR", "LSQB")
    for before, token in pairwise(tokens):
        if token.kind == "NAME":
            if found and before.kind == "NAME":
                break
            found.append(Name(token.text, Span(token.start, token.end)))
            if not many:
                break
        elif token.kind not in ("COMMA", "LPAR", "LSQB", "UNDERSCORE"):
            break
    return tuple(found)


def _clashes(names: tuple[Name, ...], problems: list[SyntaxProblem]) -> list[SyntaxProblem]:
    """Declared names that combinators have taken."""
    seen = {p.span for p in problems}
    return [
        problem("reserved-name", f"`{name.text}` is a combinator and cannot be used as a name", name.span)
        for name in names
        if name.text in COMBINATORS and name.span not in seen
    ]


def _warnings(tokens: list[Token], node: Any) -> list[SyntaxProblem]:
    """The hint at a colon that ends a header."""
    if node is None or len(tokens) < 3 or tokens[-2].kind != "COLON":
        return []
    span = Span(tokens[-2].start, tokens[-2].end)
    fix = ("Remove the colon", ((span, ""),))
    return [problem("header-colon", "a header needs no colon at its end", span, fix)]
