"""Grammar rules -> tree nodes: one function per rule of `grammar.lark`, under the rule's name or alias.

A function gets the kept children of its rule (tokens, nodes, spliced lists) and the span they cover.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from qvr_core.syntax import tree
from qvr_core.syntax.lalr import Action, Token
from qvr_core.syntax.tree import Name, Span

_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "0": "\0"}


class Arguments(NamedTuple):
    """What stands between the parentheses of a call."""

    items: tuple[Any, ...]


class Ascription(NamedTuple):
    """Marks an object expression that was written after a step's name."""

    space: tree.ObjectExpr


class TrailingColon(NamedTuple):
    """A colon at the end of a header: accepted, with a hint."""

    span: Span


class Bounds(NamedTuple):
    """The bracket of a space's bounds."""

    options: tree.Options


class Cases(NamedTuple):
    """The braces of a factor's table."""

    items: tuple[tree.FactorCase, ...]


class Kind(NamedTuple):
    """What follows the colon of a parameter."""

    name: Name
    mor: tuple[tree.ObjectExpr, tree.ObjectExpr] | None


def name(token: Token) -> Name:
    return Name(token.text, Span(token.start, token.end))


def token_span(token: Token) -> Span:
    return Span(token.start, token.end)


def number_value(text: str) -> int | float:
    """The value of a number as written: an int only where no point and no exponent stand."""
    try:
        return int(text)
    except ValueError:
        return float(text)


def string_value(text: str) -> str:
    """The value of a quoted string: its escapes resolved, an unknown escape standing for its character."""

    def resolve(match: re.Match[str]) -> str:
        escape = match[1]
        if len(escape) == 5:
            return chr(int(escape[1:], 16))
        return _ESCAPED.get(escape, escape)

    body = text[1:-1]
    return _ESCAPE.sub(resolve, body) if "\\" in body else body


def _names(children: list[Any]) -> tuple[Name, ...]:
    return tuple([name(c) for c in children])


def _one(children: list[Any], kind: type[Any]) -> Any:
    """The child of that type, or None."""
    for child in children:
        if type(child) is kind:
            return child
    return None


def _joined_options(children: list[Any]) -> tree.Options | None:
    """All brackets of a declaration as one."""
    found: list[tree.Options] = [c for c in children if type(c) is tree.Options]
    if len(found) < 2:
        return found[0] if found else None
    items = tuple([item for options in found for item in options.items])
    return tree.Options(items, Span(found[0].span.start, found[-1].span.end))


# ---------------------------------------------------------------- statements


def object_decl(children: list[Any], start: int, end: int) -> tree.ObjectDecl:
    names, space = children
    return tree.ObjectDecl(names, space, Span(start, end))


def morphism_decl(children: list[Any], start: int, end: int) -> tree.MorphismDecl:
    names, domain, codomain, *rest = children
    init = next((c for c in rest if type(c) is not tree.Options), None)
    return tree.MorphismDecl(names, domain, codomain, _joined_options(rest), init, Span(start, end))


def let_decl(children: list[Any], start: int, end: int) -> tree.LetDecl:
    keyword, target, value = children
    return tree.LetDecl(keyword.text, name(target), value, Span(start, end))


def export_decl(children: list[Any], start: int, end: int) -> tree.ExportDecl:
    return tree.ExportDecl(children[0], Span(start, end))


def program_header(children: list[Any], start: int, end: int) -> tree.ProgramHeader:
    parameters: tuple[tree.Parameter, ...] | None = None
    if type(children[1]) is Arguments:
        parameters = children.pop(1).items
    target, domain, codomain, *rest = children
    colon = _one(rest, TrailingColon)
    return tree.ProgramHeader(
        name(target), parameters, domain, codomain, _joined_options(rest), colon and colon.span, Span(start, end)
    )


def composition_header(children: list[Any], start: int, end: int) -> tree.CompositionHeader:
    return tree.CompositionHeader(name(children[0]), _one(children, Name), Span(start, end))


def deduction_header(children: list[Any], start: int, end: int) -> tree.DeductionHeader:
    target, domain, codomain, *rest = children
    return tree.DeductionHeader(name(target), domain, codomain, _joined_options(rest), Span(start, end))


def trailing_colon(children: list[Any], start: int, end: int) -> TrailingColon:
    return TrailingColon(Span(start, end))


def arguments(children: list[Any], start: int, end: int) -> Arguments:
    return Arguments(tuple(children))


def parameter(children: list[Any], start: int, end: int) -> tree.Parameter:
    kind: Kind | None = children[1] if len(children) > 1 else None
    return tree.Parameter(name(children[0]), kind and kind.name, kind and kind.mor, Span(start, end))


def plain_kind(children: list[Any], start: int, end: int) -> Kind:
    return Kind(name(children[0]), None)


def mor_kind(children: list[Any], start: int, end: int) -> Kind:
    return Kind(name(children[0]), (children[1], children[2]))


def names(children: list[Any], start: int, end: int) -> tuple[Name, ...]:
    return _names(children)


# ---------------------------------------------------------------- objects


def coproduct(children: list[Any], start: int, end: int) -> tree.CoproductExpr:
    return tree.CoproductExpr(tuple(children[::2]), tuple([token_span(t) for t in children[1::2]]), Span(start, end))


def product(children: list[Any], start: int, end: int) -> tree.ProductExpr:
    return tree.ProductExpr(tuple(children[::2]), tuple([token_span(t) for t in children[1::2]]), Span(start, end))


def finset(children: list[Any], start: int, end: int) -> tree.FinSetExpr:
    return tree.FinSetExpr(children[0], Span(start, end))


def enumeration(children: list[Any], start: int, end: int) -> tree.EnumExpr:
    return tree.EnumExpr(children[0], Span(start, end))


def space_of_sizes(children: list[Any], start: int, end: int) -> tree.SpaceExpr:
    kind, *sizes = children
    limits: tree.Options | None = sizes.pop().options if type(sizes[-1]) is Bounds else None
    return tree.SpaceExpr(name(kind), tuple(sizes), limits, Span(start, end))


def sequence(children: list[Any], start: int, end: int) -> tree.SeqExpr:
    return tree.SeqExpr(children[0], Span(start, end))


def object_ref(children: list[Any], start: int, end: int) -> tree.ObjectRef:
    return tree.ObjectRef(name(children[0]))


def paren_object(children: list[Any], start: int, end: int) -> tree.ParenObject:
    return tree.ParenObject(children[0], Span(start, end))


def size(children: list[Any], start: int, end: int) -> tree.Size:
    token: Token = children[0]
    value = int(token.text) if token.kind == "INT" else None if token.kind == "UNDERSCORE" else token.text
    return tree.Size(value, Span(start, end))


# ---------------------------------------------------------------- options


def options(children: list[Any], start: int, end: int) -> tree.Options:
    return tree.Options(tuple(children), Span(start, end))


def bounds(children: list[Any], start: int, end: int) -> Bounds:
    return Bounds(tree.Options(tuple(children[1:]), Span(start, end)))


def option(children: list[Any], start: int, end: int) -> tree.Option:
    return tree.Option(children[0], children[1] if len(children) > 1 else None, Span(start, end))


def string(children: list[Any], start: int, end: int) -> tree.String:
    text: str = children[0].text
    return tree.String(string_value(text), text, Span(start, end))


def word_value(children: list[Any], start: int, end: int) -> tree.Word:
    return tree.Word(children[0].text, Span(start, end))


def list_value(children: list[Any], start: int, end: int) -> tree.ListValue:
    return tree.ListValue(tuple(children), Span(start, end))


def number(children: list[Any], start: int, end: int) -> tree.Number:
    text = "".join([t.text for t in children])
    return tree.Number(number_value(text), text, Span(start, end))


def word(children: list[Any], start: int, end: int) -> Name:
    return name(children[0])


# ---------------------------------------------------------------- arrow expressions


def compose(children: list[Any], start: int, end: int) -> tree.ComposeExpr:
    return tree.ComposeExpr(tuple(children[::2]), tuple([token_span(t) for t in children[1::2]]), Span(start, end))


def tensor_product(children: list[Any], start: int, end: int) -> tree.TensorExpr:
    return tree.TensorExpr(tuple(children[::2]), tuple([token_span(t) for t in children[1::2]]), Span(start, end))


def attribute(children: list[Any], start: int, end: int) -> tree.PostfixExpr:
    return tree.PostfixExpr(children[0], children[1], None, Span(start, end))


def attribute_call(children: list[Any], start: int, end: int) -> tree.PostfixExpr:
    return tree.PostfixExpr(children[0], children[1], children[2].items, Span(start, end))


def arrow_ref(children: list[Any], start: int, end: int) -> tree.ArrowRef:
    return tree.ArrowRef(name(children[0]))


def arrow_call(children: list[Any], start: int, end: int) -> tree.ArrowCall:
    return tree.ArrowCall(name(children[0]), children[1].items, Span(start, end))


def paren_arrow(children: list[Any], start: int, end: int) -> tree.ParenArrow:
    return tree.ParenArrow(children[0], Span(start, end))


def arrow_arg(children: list[Any], start: int, end: int) -> tree.ArrowArg:
    key = name(children[0]) if len(children) > 1 else None
    return tree.ArrowArg(key, children[-1], Span(start, end))


# ---------------------------------------------------------------- steps


def _ascribed(children: list[Any]) -> tree.ObjectExpr | None:
    found: Ascription | None = _one(children, Ascription)
    return found and found.space


def sample_step(children: list[Any], start: int, end: int) -> tree.SampleStep:
    draw: tree.Draw = _one(children, tree.Draw)
    return tree.SampleStep(children[0], _ascribed(children), draw, _joined_options(children), Span(start, end))


def observe_step(children: list[Any], start: int, end: int) -> tree.ObserveStep:
    draw: tree.Draw = _one(children, tree.Draw)
    return tree.ObserveStep(name(children[0]), _ascribed(children), draw, _joined_options(children), Span(start, end))


def marginalize_step(children: list[Any], start: int, end: int) -> tree.MarginalizeStep:
    draw: tree.Draw = _one(children, tree.Draw)
    span = Span(start, end)
    return tree.MarginalizeStep(name(children[0]), _ascribed(children), draw, _joined_options(children), span)


def let_step(children: list[Any], start: int, end: int) -> tree.LetStep:
    return tree.LetStep(children[0], children[1], Span(start, end))


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
    return tree.Pattern(_names(children), brackets, Span(start, end))


def ascription(children: list[Any], start: int, end: int) -> Ascription:
    return Ascription(children[0])


def draw(children: list[Any], start: int, end: int) -> tree.Draw:
    target = name(children[0])
    args: tuple[tree.ArithArg, ...] | None = children[1].items if len(children) > 1 else None
    return tree.Draw(target, args, None, Span(target.span.start, end))


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
    found = _one(children, tree.Attributes)
    return tree.RuleItem(name(children[0]), tuple(terms[:-1]), terms[-1], found, Span(start, end))


def lexicon_item(children: list[Any], start: int, end: int) -> tree.LexiconItem:
    source: Token | None = _one(children, Token)
    text = source and source.text
    file = tree.String(string_value(text), text, token_span(source)) if source and text else None
    return tree.LexiconItem(file, _joined_options(children), Span(start, end))


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


ACTIONS: dict[str, Action] = {
    function.__name__: function
    for function in (
        *(object_decl, morphism_decl, let_decl, export_decl, program_header, composition_header, deduction_header),
        *(trailing_colon, parameter, plain_kind, mor_kind, names),
        *(coproduct, product, finset, enumeration, space_of_sizes, sequence, object_ref, paren_object, size),
        *(options, bounds, option, string, word_value, list_value, number, word),
        *(compose, tensor_product, attribute, attribute_call, arrow_ref, arrow_call, paren_arrow, arrow_arg),
        *(sample_step, observe_step, marginalize_step, let_step, score_step, return_step, return_item),
        *(pattern, ascription, draw, draw_expression),
        *(binary, negative, positive, gather, field, method_call, variable, arith_call, literal, paren_arith),
        *(list_arith, lambda_, factor, arith_arg, factor_index, factor_cases, factor_case),
        *(composition_rule, atoms_item, rule_item, lexicon_item, lexicon_entry, term, attributes),
    )
} | {kind: arguments for kind in ("parameters", "arrow_args", "arith_args", "return_tuple", "term_args")}
