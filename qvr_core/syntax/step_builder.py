"""Grammar rules of blocks -> tree nodes: steps, arithmetic, rules of compositions and deductions."""

from __future__ import annotations

from typing import Any, TypedDict

from qvr_core.syntax.observed_names import bare_names
from qvr_core.syntax.pieces import (
    Arguments,
    Ascription,
    Binders,
    Cases,
    Condition,
    Start,
    joined_options,
    name,
    names_of,
    number_value,
    one,
    string_value,
    token_span,
)
from qvr_core.syntax.tokens import Token
from qvr_core.syntax.tree.arithmetic import (
    Arith,
    ArithArg,
    ArithCall,
    Binary,
    Binder,
    Comprehension,
    FactorCase,
    FactorExpr,
    FactorIndex,
    Field,
    Gather,
    Lambda,
    ListArith,
    Literal,
    MethodCall,
    ParenArith,
    TupleArith,
    Unary,
    Variable,
)
from qvr_core.syntax.tree.arrows import ArrowCall, ArrowExpr, ArrowRef, ComposeExpr, ParenArrow, PostfixExpr, TensorExpr
from qvr_core.syntax.tree.declarations import CompositionRule
from qvr_core.syntax.tree.deductions import AtomsItem, Attributes, LexiconEntry, LexiconItem, RuleItem, Term
from qvr_core.syntax.tree.names import Name, Span
from qvr_core.syntax.tree.objects import ObjectExpr
from qvr_core.syntax.tree.options import Number, Options, String
from qvr_core.syntax.tree.steps import (
    DataStep,
    Draw,
    LetStep,
    MarginalizeStep,
    ObserveStep,
    ParamStep,
    Pattern,
    PredictStep,
    ReturnItem,
    ReturnStep,
    SampleStep,
    ScoreStep,
)

# ---------------------------------------------------------------- steps


def _ascribed(children: list[Any]) -> ObjectExpr | None:
    found: Ascription | None = one(children, Ascription)
    return found and found.space


class _Indexed(TypedDict, total=False):
    binders: tuple[Binder, ...]
    bracket: Span
    start: Arith


def _indexed(children: list[Any]) -> _Indexed:
    """The indices of a step's name, and what follows its `from`."""
    found = _Indexed()
    for child in children:
        if type(child) is Binders:
            found["binders"], found["bracket"] = child.items, child.span
        elif type(child) is Start:
            found["start"] = child.value
    return found


def sample_step(children: list[Any], start: int, end: int) -> SampleStep:
    draw: Draw = one(children, Draw)
    options, span = joined_options(children), Span(start, end)
    return SampleStep(children[0], _ascribed(children), draw, options, span, **_indexed(children))


def observe_step(children: list[Any], start: int, end: int) -> ObserveStep:
    draw: Draw = one(children, Draw)
    options, span = joined_options(children), Span(start, end)
    first, rest = children[0], _indexed(children)
    if type(first) is Token:
        return ObserveStep(name(first), _ascribed(children), draw, options, span, **rest)
    # which of several it is, the other lines tell: `observed_names`
    seen = next(iter(bare_names(first)), None) or Name("_", first.span)
    return ObserveStep(seen, _ascribed(children), draw, options, span, **rest, outcome=first)


def outcome_call(children: list[Any], start: int, end: int) -> ArithCall:
    value = children[1]
    return ArithCall(name(children[0]), (ArithArg(None, value, value.span),), Span(start, end))


def outcome_paren(children: list[Any], start: int, end: int) -> ParenArith:
    return ParenArith(children[0], Span(start, end))


def predict_step(children: list[Any], start: int, end: int) -> PredictStep:
    draw: Draw = one(children, Draw)
    options, span = joined_options(children), Span(start, end)
    return PredictStep(name(children[0]), _ascribed(children), draw, options, span, **_indexed(children))


def marginalize_step(children: list[Any], start: int, end: int) -> MarginalizeStep:
    draw: Draw = one(children, Draw)
    options, span = joined_options(children), Span(start, end)
    return MarginalizeStep(name(children[0]), _ascribed(children), draw, options, span, **_indexed(children))


def let_step(children: list[Any], start: int, end: int) -> LetStep:
    if len(children) == 2:
        return LetStep(children[0], children[1], Span(start, end))
    value = next(c for c in children[1:] if type(c) is not Binders and type(c) is not Ascription)
    return LetStep(children[0], value, Span(start, end), space=_ascribed(children), **_indexed(children))


def data_step(children: list[Any], start: int, end: int) -> DataStep:
    names, axes, *rest = children
    value = next((c for c in rest if type(c) is not Options), None)
    return DataStep(names, axes, value, joined_options(rest), Span(start, end))


def param_step(children: list[Any], start: int, end: int) -> ParamStep:
    names, axes, *rest = children
    value = next((c for c in rest if type(c) is not Options), None)
    return ParamStep(names, axes, value, joined_options(rest), Span(start, end))


def binders(children: list[Any], start: int, end: int) -> Binders:
    return Binders(tuple(children), Span(start, end))


def binder(children: list[Any], start: int, end: int) -> Binder:
    return Binder(name(children[0]), children[1], Span(start, end))


def start(children: list[Any], start: int, end: int) -> Start:
    return Start(children[0])


def start_options(children: list[Any], start: int, end: int) -> Options:
    return Options(tuple(children[1:]), Span(start, end))


def score_step(children: list[Any], start: int, end: int) -> ScoreStep:
    return ScoreStep(name(children[0]), children[1], Span(start, end))


def return_step(children: list[Any], start: int, end: int) -> ReturnStep:
    (what,) = children
    if type(what) is Arguments:
        return ReturnStep(what.items, True, Span(start, end))
    item = ReturnItem(None, name(what), token_span(what))
    return ReturnStep((item,), False, Span(start, end))


def return_item(children: list[Any], start: int, end: int) -> ReturnItem:
    label: Name | None = children[0] if len(children) > 1 else None
    return ReturnItem(label, name(children[-1]), Span(start, end))


def pattern(children: list[Any], start: int, end: int) -> Pattern:
    brackets = ""
    if children[0].kind in ("LPAR", "LSQB"):
        brackets = "()" if children.pop(0).kind == "LPAR" else "[]"
    return Pattern(names_of(children), brackets, Span(start, end))


def site_name(children: list[Any], start: int, end: int) -> Pattern:
    """`u.tau`: a latent of a template that the model draws from."""
    span = Span(start, end)
    return Pattern((Name(".".join(part.text for part in children), span),), "", span)


def ascription(children: list[Any], start: int, end: int) -> Ascription:
    return Ascription(children[0])


def draw(children: list[Any], start: int, end: int) -> Draw:
    target = name(children[0])
    args: tuple[ArithArg, ...] | None = children[1].items if len(children) > 1 else None
    return Draw(target, args, None, Span(target.span.start, end))


def qualified_draw(children: list[Any], start: int, end: int) -> Draw:
    prefix, target, *rest = children
    args: tuple[ArithArg, ...] | None = rest[0].items if rest else None
    span = Span(prefix.start, target.end)
    expression = PostfixExpr(ArrowRef(name(prefix)), name(target), None, span)
    return Draw(name(prefix), args, expression, Span(prefix.start, end))


def draw_expression(children: list[Any], start: int, end: int) -> Draw:
    expression: ArrowExpr = children[1]
    return Draw(_first_name(expression), None, expression, expression.span)


def _first_name(expression: ArrowExpr) -> Name:
    while True:
        match expression:
            case ArrowRef(found):
                return found
            case ArrowCall(func):
                return func
            case ComposeExpr(parts) | TensorExpr(parts):
                expression = parts[0]
            case PostfixExpr(inner) | ParenArrow(inner):
                expression = inner


# ---------------------------------------------------------------- arithmetic


def binary(children: list[Any], start: int, end: int) -> Binary:
    left, operator, right = children
    return Binary(operator.text, token_span(operator), left, right, Span(start, end))


def negative(children: list[Any], start: int, end: int) -> Unary:
    return Unary("-", children[1], Span(start, end))


def positive(children: list[Any], start: int, end: int) -> Literal:
    text: str = children[1].text
    return Literal(number_value(text), "+" + text, Span(start, end))


def gather(children: list[Any], start: int, end: int) -> Gather:
    return Gather(children[0], tuple(children[1:]), Span(start, end))


def field(children: list[Any], start: int, end: int) -> Field:
    return Field(children[0], children[1], Span(start, end))


def method_call(children: list[Any], start: int, end: int) -> MethodCall:
    return MethodCall(children[0], children[1], children[2].items, Span(start, end))


def variable(children: list[Any], start: int, end: int) -> Variable:
    return Variable(name(children[0]))


def arith_call(children: list[Any], start: int, end: int) -> ArithCall:
    return ArithCall(name(children[0]), children[1].items, Span(start, end))


def literal(children: list[Any], start: int, end: int) -> Literal:
    token: Token = children[0]
    value = string_value(token.text) if token.kind == "STRING" else number_value(token.text)
    return Literal(value, token.text, Span(start, end))


def paren_arith(children: list[Any], start: int, end: int) -> ParenArith:
    return ParenArith(children[0], Span(start, end))


def list_arith(children: list[Any], start: int, end: int) -> ListArith:
    return ListArith(tuple(children), Span(start, end))


def tuple_arith(children: list[Any], start: int, end: int) -> TupleArith:
    return TupleArith(tuple(children), Span(start, end))


def comprehension(children: list[Any], start: int, end: int) -> Comprehension:
    function, body, *rest = children
    condition: Condition | None = one(rest, Condition)
    indices = tuple([c for c in rest if type(c) is Binder])
    return Comprehension(name(function), body, indices, condition and condition.value, Span(start, end))


def condition(children: list[Any], start: int, end: int) -> Condition:
    return Condition(children[0])


def lambda_(children: list[Any], start: int, end: int) -> Lambda:
    return Lambda(name(children[0]), children[1], Span(start, end))


def factor(children: list[Any], start: int, end: int) -> FactorExpr:
    _, *indices, body = children
    return FactorExpr(tuple(indices), body.items if type(body) is Cases else body, Span(start, end))


def arith_arg(children: list[Any], start: int, end: int) -> ArithArg:
    key = name(children[0]) if len(children) > 1 else None
    return ArithArg(key, children[-1], Span(start, end))


def factor_index(children: list[Any], start: int, end: int) -> FactorIndex:
    return FactorIndex(name(children[0]), children[1], Span(start, end))


def factor_cases(children: list[Any], start: int, end: int) -> Cases:
    return Cases(tuple(children))


def factor_case(children: list[Any], start: int, end: int) -> FactorCase:
    index: Token = children[0]
    return FactorCase(Number(int(index.text), index.text, token_span(index)), children[1], Span(start, end))


# ---------------------------------------------------------------- compositions and deductions


def composition_rule(children: list[Any], start: int, end: int) -> CompositionRule:
    parameters: tuple[Name, ...] | None = children[1] if len(children) > 2 else None
    return CompositionRule(name(children[0]), parameters, children[-1], Span(start, end))


def atoms_item(children: list[Any], start: int, end: int) -> AtomsItem:
    keyword, listed = children
    return AtomsItem(keyword.text, listed, Span(start, end))


def rule_item(children: list[Any], start: int, end: int) -> RuleItem:
    terms: list[Term] = [c for c in children if type(c) is Term]
    found = one(children, Attributes)
    return RuleItem(name(children[0]), tuple(terms[:-1]), terms[-1], found, Span(start, end))


def lexicon_item(children: list[Any], start: int, end: int) -> LexiconItem:
    source: Token | None = one(children, Token)
    text = source and source.text
    file = String(string_value(text), text, token_span(source)) if source and text else None
    return LexiconItem(file, joined_options(children), Span(start, end))


def lexicon_entry(children: list[Any], start: int, end: int) -> LexiconEntry:
    word_token, category, form, *rest = children
    text: str = word_token.text
    entry = String(string_value(text), text, token_span(word_token))
    return LexiconEntry(entry, category, form, rest[0] if rest else None, Span(start, end))


def term(children: list[Any], start: int, end: int) -> Term:
    token: Token = children[0]
    head: Name | Number = name(token)
    if token.kind == "INT":
        head = Number(int(token.text), token.text, token_span(token))
    return Term(head, children[1].items if len(children) > 1 else None, Span(start, end))


def attributes(children: list[Any], start: int, end: int) -> Attributes:
    return Attributes(tuple(children[1:]), Span(start, end))


ALL = (
    sample_step,
    observe_step,
    outcome_call,
    outcome_paren,
    predict_step,
    marginalize_step,
    let_step,
    data_step,
    param_step,
    site_name,
    binders,
    binder,
    start,
    start_options,
    qualified_draw,
    tuple_arith,
    comprehension,
    condition,
    score_step,
    return_step,
    return_item,
    pattern,
    ascription,
    draw,
    draw_expression,
    binary,
    negative,
    positive,
    gather,
    field,
    method_call,
    variable,
    arith_call,
    literal,
    paren_arith,
    list_arith,
    lambda_,
    factor,
    arith_arg,
    factor_index,
    factor_cases,
    factor_case,
    composition_rule,
    atoms_item,
    rule_item,
    lexicon_item,
    lexicon_entry,
    term,
    attributes,
)
