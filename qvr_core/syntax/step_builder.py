"""Grammar rules of blocks -> tree nodes: steps, arithmetic, rules of compositions and deductions."""

from __future__ import annotations

from typing import Any, TypedDict

from qvr_core.syntax import tree
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
from qvr_core.syntax.tree import Name, Span

# ---------------------------------------------------------------- steps


def _ascribed(children: list[Any]) -> tree.ObjectExpr | None:
    found: Ascription | None = one(children, Ascription)
    return found and found.space


class _Indexed(TypedDict, total=False):
    binders: tuple[tree.Binder, ...]
    bracket: Span
    start: tree.Arith


def _indexed(children: list[Any]) -> _Indexed:
    """The indices of a step's name, and what follows its `from`."""
    found = _Indexed()
    for child in children:
        if type(child) is Binders:
            found["binders"], found["bracket"] = child.items, child.span
        elif type(child) is Start:
            found["start"] = child.value
    return found


def sample_step(children: list[Any], start: int, end: int) -> tree.SampleStep:
    draw: tree.Draw = one(children, tree.Draw)
    options, span = joined_options(children), Span(start, end)
    return tree.SampleStep(children[0], _ascribed(children), draw, options, span, **_indexed(children))


def observe_step(children: list[Any], start: int, end: int) -> tree.ObserveStep:
    draw: tree.Draw = one(children, tree.Draw)
    options, span = joined_options(children), Span(start, end)
    return tree.ObserveStep(name(children[0]), _ascribed(children), draw, options, span, **_indexed(children))


def predict_step(children: list[Any], start: int, end: int) -> tree.PredictStep:
    draw: tree.Draw = one(children, tree.Draw)
    options, span = joined_options(children), Span(start, end)
    return tree.PredictStep(name(children[0]), _ascribed(children), draw, options, span, **_indexed(children))


def marginalize_step(children: list[Any], start: int, end: int) -> tree.MarginalizeStep:
    draw: tree.Draw = one(children, tree.Draw)
    options, span = joined_options(children), Span(start, end)
    return tree.MarginalizeStep(name(children[0]), _ascribed(children), draw, options, span, **_indexed(children))


def let_step(children: list[Any], start: int, end: int) -> tree.LetStep:
    if len(children) == 2:
        return tree.LetStep(children[0], children[1], Span(start, end))
    value = next(c for c in children[1:] if type(c) is not Binders and type(c) is not Ascription)
    return tree.LetStep(children[0], value, Span(start, end), space=_ascribed(children), **_indexed(children))


def data_step(children: list[Any], start: int, end: int) -> tree.DataStep:
    names, axes, *rest = children
    value = next((c for c in rest if type(c) is not tree.Options), None)
    return tree.DataStep(names, axes, value, joined_options(rest), Span(start, end))


def binders(children: list[Any], start: int, end: int) -> Binders:
    return Binders(tuple(children), Span(start, end))


def binder(children: list[Any], start: int, end: int) -> tree.Binder:
    return tree.Binder(name(children[0]), children[1], Span(start, end))


def start(children: list[Any], start: int, end: int) -> Start:
    return Start(children[0])


def start_options(children: list[Any], start: int, end: int) -> tree.Options:
    return tree.Options(tuple(children[1:]), Span(start, end))


def score_step(children: list[Any], start: int, end: int) -> tree.ScoreStep:
    return tree.ScoreStep(name(children[0]), children[1], Span(start, end))


def return_step(children: list[Any], start: int, end: int) -> tree.ReturnStep:
    (what,) = children
    if type(what) is Arguments:
        return tree.ReturnStep(what.items, True, Span(start, end))
    item = tree.ReturnItem(None, name(what), token_span(what))
    return tree.ReturnStep((item,), False, Span(start, end))


def return_item(children: list[Any], start: int, end: int) -> tree.ReturnItem:
    label: Name | None = children[0] if len(children) > 1 else None
    return tree.ReturnItem(label, name(children[-1]), Span(start, end))


def pattern(children: list[Any], start: int, end: int) -> tree.Pattern:
    brackets = ""
    if children[0].kind in ("LPAR", "LSQB"):
        brackets = "()" if children.pop(0).kind == "LPAR" else "[]"
    return tree.Pattern(names_of(children), brackets, Span(start, end))


def ascription(children: list[Any], start: int, end: int) -> Ascription:
    return Ascription(children[0])


def draw(children: list[Any], start: int, end: int) -> tree.Draw:
    target = name(children[0])
    args: tuple[tree.ArithArg, ...] | None = children[1].items if len(children) > 1 else None
    return tree.Draw(target, args, None, Span(target.span.start, end))


def qualified_draw(children: list[Any], start: int, end: int) -> tree.Draw:
    prefix, target, *rest = children
    args: tuple[tree.ArithArg, ...] | None = rest[0].items if rest else None
    span = Span(prefix.start, target.end)
    expression = tree.PostfixExpr(tree.ArrowRef(name(prefix)), name(target), None, span)
    return tree.Draw(name(prefix), args, expression, Span(prefix.start, end))


def draw_expression(children: list[Any], start: int, end: int) -> tree.Draw:
    expression: tree.ArrowExpr = children[1]
    return tree.Draw(_first_name(expression), None, expression, expression.span)


def _first_name(expression: tree.ArrowExpr) -> Name:
    while True:
        match expression:
            case tree.ArrowRef(found):
                return found
            case tree.ArrowCall(func):
                return func
            case tree.ComposeExpr(parts) | tree.TensorExpr(parts):
                expression = parts[0]
            case tree.PostfixExpr(inner) | tree.ParenArrow(inner):
                expression = inner


# ---------------------------------------------------------------- arithmetic


def binary(children: list[Any], start: int, end: int) -> tree.Binary:
    left, operator, right = children
    return tree.Binary(operator.text, token_span(operator), left, right, Span(start, end))


def negative(children: list[Any], start: int, end: int) -> tree.Unary:
    return tree.Unary("-", children[1], Span(start, end))


def positive(children: list[Any], start: int, end: int) -> tree.Literal:
    text: str = children[1].text
    return tree.Literal(number_value(text), "+" + text, Span(start, end))


def gather(children: list[Any], start: int, end: int) -> tree.Gather:
    return tree.Gather(children[0], tuple(children[1:]), Span(start, end))


def field(children: list[Any], start: int, end: int) -> tree.Field:
    return tree.Field(children[0], children[1], Span(start, end))


def method_call(children: list[Any], start: int, end: int) -> tree.MethodCall:
    return tree.MethodCall(children[0], children[1], children[2].items, Span(start, end))


def variable(children: list[Any], start: int, end: int) -> tree.Variable:
    return tree.Variable(name(children[0]))


def arith_call(children: list[Any], start: int, end: int) -> tree.ArithCall:
    return tree.ArithCall(name(children[0]), children[1].items, Span(start, end))


def literal(children: list[Any], start: int, end: int) -> tree.Literal:
    token: Token = children[0]
    value = string_value(token.text) if token.kind == "STRING" else number_value(token.text)
    return tree.Literal(value, token.text, Span(start, end))


def paren_arith(children: list[Any], start: int, end: int) -> tree.ParenArith:
    return tree.ParenArith(children[0], Span(start, end))


def list_arith(children: list[Any], start: int, end: int) -> tree.ListArith:
    return tree.ListArith(tuple(children), Span(start, end))


def tuple_arith(children: list[Any], start: int, end: int) -> tree.TupleArith:
    return tree.TupleArith(tuple(children), Span(start, end))


def comprehension(children: list[Any], start: int, end: int) -> tree.Comprehension:
    function, body, *rest = children
    condition: Condition | None = one(rest, Condition)
    indices = tuple([c for c in rest if type(c) is tree.Binder])
    return tree.Comprehension(name(function), body, indices, condition and condition.value, Span(start, end))


def condition(children: list[Any], start: int, end: int) -> Condition:
    return Condition(children[0])


def lambda_(children: list[Any], start: int, end: int) -> tree.Lambda:
    return tree.Lambda(name(children[0]), children[1], Span(start, end))


def factor(children: list[Any], start: int, end: int) -> tree.FactorExpr:
    _, *indices, body = children
    return tree.FactorExpr(tuple(indices), body.items if type(body) is Cases else body, Span(start, end))


def arith_arg(children: list[Any], start: int, end: int) -> tree.ArithArg:
    key = name(children[0]) if len(children) > 1 else None
    return tree.ArithArg(key, children[-1], Span(start, end))


def factor_index(children: list[Any], start: int, end: int) -> tree.FactorIndex:
    return tree.FactorIndex(name(children[0]), children[1], Span(start, end))


def factor_cases(children: list[Any], start: int, end: int) -> Cases:
    return Cases(tuple(children))


def factor_case(children: list[Any], start: int, end: int) -> tree.FactorCase:
    index: Token = children[0]
    return tree.FactorCase(tree.Number(int(index.text), index.text, token_span(index)), children[1], Span(start, end))


# ---------------------------------------------------------------- compositions and deductions


def composition_rule(children: list[Any], start: int, end: int) -> tree.CompositionRule:
    parameters: tuple[Name, ...] | None = children[1] if len(children) > 2 else None
    return tree.CompositionRule(name(children[0]), parameters, children[-1], Span(start, end))


def atoms_item(children: list[Any], start: int, end: int) -> tree.AtomsItem:
    keyword, listed = children
    return tree.AtomsItem(keyword.text, listed, Span(start, end))


def rule_item(children: list[Any], start: int, end: int) -> tree.RuleItem:
    terms: list[tree.Term] = [c for c in children if type(c) is tree.Term]
    found = one(children, tree.Attributes)
    return tree.RuleItem(name(children[0]), tuple(terms[:-1]), terms[-1], found, Span(start, end))


def lexicon_item(children: list[Any], start: int, end: int) -> tree.LexiconItem:
    source: Token | None = one(children, Token)
    text = source and source.text
    file = tree.String(string_value(text), text, token_span(source)) if source and text else None
    return tree.LexiconItem(file, joined_options(children), Span(start, end))


def lexicon_entry(children: list[Any], start: int, end: int) -> tree.LexiconEntry:
    word_token, category, form, *rest = children
    text: str = word_token.text
    entry = tree.String(string_value(text), text, token_span(word_token))
    return tree.LexiconEntry(entry, category, form, rest[0] if rest else None, Span(start, end))


def term(children: list[Any], start: int, end: int) -> tree.Term:
    token: Token = children[0]
    head: Name | tree.Number = name(token)
    if token.kind == "INT":
        head = tree.Number(int(token.text), token.text, token_span(token))
    return tree.Term(head, children[1].items if len(children) > 1 else None, Span(start, end))


def attributes(children: list[Any], start: int, end: int) -> tree.Attributes:
    return tree.Attributes(tuple(children[1:]), Span(start, end))


ALL = (
    sample_step,
    observe_step,
    predict_step,
    marginalize_step,
    let_step,
    data_step,
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
