"""Grammar rules -> tree nodes: one function per rule of `grammar.lark`, under the rule's name or alias.

A function gets the kept children of its rule (tokens, nodes, spliced lists) and the span they cover.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from qvr_core.syntax import step_builder, tree
from qvr_core.syntax.pieces import (
    Arguments,
    Bounds,
    Default,
    Kind,
    TrailingColon,
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

# ---------------------------------------------------------------- statements


def object_decl(children: list[Any], start: int, end: int) -> tree.ObjectDecl:
    names, space = children
    return tree.ObjectDecl(names, space, Span(start, end))


def morphism_decl(children: list[Any], start: int, end: int) -> tree.MorphismDecl:
    names, domain, codomain, *rest = children
    init = next((c for c in rest if type(c) is not tree.Options), None)
    return tree.MorphismDecl(names, domain, codomain, joined_options(rest), init, Span(start, end))


def let_decl(children: list[Any], start: int, end: int) -> tree.LetDecl:
    keyword, target, value = children
    return tree.LetDecl(keyword.text, name(target), value, Span(start, end))


def export_decl(children: list[Any], start: int, end: int) -> tree.ExportDecl:
    return tree.ExportDecl(children[0], Span(start, end))


def import_decl(children: list[Any], start: int, end: int) -> tree.ImportDecl:
    path, *prefix = children
    return tree.ImportDecl(_quoted(path), name(prefix[0]) if prefix else None, None, Span(start, end))


def import_from(children: list[Any], start: int, end: int) -> tree.ImportDecl:
    path, *items = children
    return tree.ImportDecl(_quoted(path), None, tuple(items), Span(start, end))


def import_item(children: list[Any], start: int, end: int) -> tree.ImportItem:
    alias = name(children[1]) if len(children) > 1 else None
    return tree.ImportItem(name(children[0]), alias, Span(start, end))


def _quoted(token: Token) -> tree.String:
    return tree.String(string_value(token.text), token.text, token_span(token))


def program_header(children: list[Any], start: int, end: int) -> tree.ProgramHeader:
    parameters: tuple[tree.Parameter, ...] | None = None
    if type(children[1]) is Arguments:
        parameters = children.pop(1).items
    target, domain, codomain, *rest = children
    colon = one(rest, TrailingColon)
    return tree.ProgramHeader(
        name(target), parameters, domain, codomain, joined_options(rest), colon and colon.span, Span(start, end)
    )


def composition_header(children: list[Any], start: int, end: int) -> tree.CompositionHeader:
    return tree.CompositionHeader(name(children[0]), one(children, Name), Span(start, end))


def deduction_header(children: list[Any], start: int, end: int) -> tree.DeductionHeader:
    target, domain, codomain, *rest = children
    return tree.DeductionHeader(name(target), domain, codomain, joined_options(rest), Span(start, end))


def trailing_colon(children: list[Any], start: int, end: int) -> TrailingColon:
    return TrailingColon(Span(start, end))


def arguments(children: list[Any], start: int, end: int) -> Arguments:
    return Arguments(tuple(children))


def def_decl(children: list[Any], start: int, end: int) -> tree.DefDecl:
    target, parameters, body = children
    return tree.DefDecl(name(target), parameters.items, body, Span(start, end))


def def_header(children: list[Any], start: int, end: int) -> tree.DefHeader:
    target, parameters, *rest = children
    colon = one(rest, TrailingColon)
    return tree.DefHeader(name(target), parameters.items, colon and colon.span, Span(start, end))


def family_header(children: list[Any], start: int, end: int) -> tree.FamilyHeader:
    target, parameters, space, *rest = children
    colon = one(rest, TrailingColon)
    return tree.FamilyHeader(name(target), parameters.items, space, colon and colon.span, Span(start, end))


def function_parameter(children: list[Any], start: int, end: int) -> tree.FunctionParameter:
    target, *rest = children
    given: Default | None = one(rest, Default)
    space = next((c for c in rest if type(c) is not Default), None)
    return tree.FunctionParameter(name(target), space, given and given.value, Span(start, end))


def default(children: list[Any], start: int, end: int) -> Default:
    return Default(children[0])


def parameter(children: list[Any], start: int, end: int) -> tree.Parameter:
    kind: Kind | None = children[1] if len(children) > 1 else None
    given: Default | None = one(children, Default)
    return tree.Parameter(
        name(children[0]), kind and kind.name, kind and kind.mor, Span(start, end), given and given.value
    )


def plain_kind(children: list[Any], start: int, end: int) -> Kind:
    return Kind(name(children[0]), None)


def mor_kind(children: list[Any], start: int, end: int) -> Kind:
    return Kind(name(children[0]), (children[1], children[2]))


def names(children: list[Any], start: int, end: int) -> tuple[Name, ...]:
    return names_of(children)


# ---------------------------------------------------------------- objects


def coproduct(children: list[Any], start: int, end: int) -> tree.CoproductExpr:
    return tree.CoproductExpr(tuple(children[::2]), tuple([token_span(t) for t in children[1::2]]), Span(start, end))


def product(children: list[Any], start: int, end: int) -> tree.ProductExpr:
    return tree.ProductExpr(tuple(children[::2]), tuple([token_span(t) for t in children[1::2]]), Span(start, end))


def finset(children: list[Any], start: int, end: int) -> tree.FinSetExpr:
    return tree.FinSetExpr(children[0], Span(start, end))


def enumeration(children: list[Any], start: int, end: int) -> tree.EnumExpr:
    return tree.EnumExpr(tuple(children), Span(start, end))


def space_of_sizes(children: list[Any], start: int, end: int) -> tree.SpaceExpr:
    kind, *sizes = children
    limits: tree.Options | None = sizes.pop().options if type(sizes[-1]) is Bounds else None
    return tree.SpaceExpr(name(kind), tuple(sizes), limits, Span(start, end))


def sequence(children: list[Any], start: int, end: int) -> tree.SeqExpr:
    return tree.SeqExpr(children[0], Span(start, end))


def object_ref(children: list[Any], start: int, end: int) -> tree.ObjectRef:
    return tree.ObjectRef(name(children[0]))


def qualified_object(children: list[Any], start: int, end: int) -> tree.ObjectRef:
    prefix, target = children
    return tree.ObjectRef(Name(f"{prefix.text}.{target.text}", Span(start, end)))


def paren_object(children: list[Any], start: int, end: int) -> tree.ParenObject:
    return tree.ParenObject(children[0], Span(start, end))


def size(children: list[Any], start: int, end: int) -> tree.Size:
    token: Token = children[0]
    value = int(token.text) if token.kind == "INT" else None if token.kind == "UNDERSCORE" else token.text
    return tree.Size(value, Span(start, end))


def label(children: list[Any], start: int, end: int) -> Name:
    token: Token = children[0]
    return name(token) if token.kind == "NAME" else Name(string_value(token.text), Span(start, end), quoted=True)


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


def call_value(children: list[Any], start: int, end: int) -> tree.CallValue:
    return tree.CallValue(name(children[0]), tuple(children[1:]), Span(start, end))


def value_arg(children: list[Any], start: int, end: int) -> tree.ValueArg:
    key = name(children[0]) if len(children) > 1 else None
    return tree.ValueArg(key, children[-1], Span(start, end))


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


Action = Callable[[list[Any], int, int], Any]

ACTIONS: dict[str, Action] = {
    function.__name__: function
    for function in (
        *(object_decl, morphism_decl, let_decl, export_decl, program_header, composition_header, deduction_header),
        *(def_decl, def_header, family_header, import_decl, import_from, import_item),
        *(trailing_colon, parameter, default, plain_kind, mor_kind, names),
        *(
            coproduct,
            product,
            finset,
            enumeration,
            space_of_sizes,
            sequence,
            object_ref,
            paren_object,
            size,
            qualified_object,
        ),
        *(label, options, bounds, option, string, word_value, list_value, call_value, value_arg, number, word),
        *(compose, tensor_product, attribute, attribute_call, arrow_ref, arrow_call, paren_arrow, arrow_arg),
        *step_builder.ALL,
    )
} | {
    **dict.fromkeys(("parameters", "def_parameters", "family_parameters"), arguments),
    **dict.fromkeys(("arrow_args", "arith_args", "return_tuple", "term_args"), arguments),
    **dict.fromkeys(("def_parameter", "family_parameter"), function_parameter),
}
