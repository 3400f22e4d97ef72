"""Grammar rules -> tree nodes: one function per rule of `grammar.lark`, under the rule's name or alias.

A function gets the kept children of its rule (tokens, nodes, spliced lists) and the span they cover.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from qvr_core.syntax import step_builder
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
from qvr_core.syntax.tree.arithmetic import Literal, Unary, Variable
from qvr_core.syntax.tree.arrows import ArrowArg, ArrowCall, ArrowRef, ComposeExpr, ParenArrow, PostfixExpr, TensorExpr
from qvr_core.syntax.tree.declarations import (
    CompositionHeader,
    Constructor,
    DataTypeDecl,
    DecoderHeader,
    DeductionHeader,
    DefDecl,
    DefHeader,
    EncoderHeader,
    ExportDecl,
    FamilyHeader,
    FunctionParameter,
    ImportDecl,
    ImportItem,
    LetDecl,
    MorphismDecl,
    ObjectDecl,
    Parameter,
    ProgramHeader,
    TransformationHeader,
)
from qvr_core.syntax.tree.names import Name, Span
from qvr_core.syntax.tree.objects import (
    CoproductExpr,
    EnumExpr,
    FinSetExpr,
    ObjectRef,
    ParenObject,
    ProductExpr,
    SeqExpr,
    Size,
    SpaceExpr,
)
from qvr_core.syntax.tree.options import (
    CallValue,
    Formula,
    ListValue,
    Number,
    Option,
    Options,
    String,
    Value,
    ValueArg,
    Word,
)

# ---------------------------------------------------------------- statements


def object_decl(children: list[Any], start: int, end: int) -> ObjectDecl:
    names, space = children
    return ObjectDecl(names, space, Span(start, end))


def morphism_decl(children: list[Any], start: int, end: int) -> MorphismDecl:
    names, domain, codomain, *rest = children
    init = next((c for c in rest if type(c) is not Options), None)
    return MorphismDecl(names, domain, codomain, joined_options(rest), init, Span(start, end))


def let_decl(children: list[Any], start: int, end: int) -> LetDecl:
    keyword, target, value = children
    return LetDecl(keyword.text, name(target), value, Span(start, end))


def export_decl(children: list[Any], start: int, end: int) -> ExportDecl:
    return ExportDecl(children[0], Span(start, end))


def import_decl(children: list[Any], start: int, end: int) -> ImportDecl:
    path, *prefix = children
    return ImportDecl(_quoted(path), name(prefix[0]) if prefix else None, None, Span(start, end))


def import_from(children: list[Any], start: int, end: int) -> ImportDecl:
    path, *items = children
    return ImportDecl(_quoted(path), None, tuple(items), Span(start, end))


def import_item(children: list[Any], start: int, end: int) -> ImportItem:
    alias = name(children[1]) if len(children) > 1 else None
    return ImportItem(name(children[0]), alias, Span(start, end))


def _quoted(token: Token) -> String:
    return String(string_value(token.text), token.text, token_span(token))


def program_header(children: list[Any], start: int, end: int) -> ProgramHeader:
    parameters: tuple[Parameter, ...] | None = None
    if type(children[1]) is Arguments:
        parameters = children.pop(1).items
    target, domain, codomain, *rest = children
    colon = one(rest, TrailingColon)
    return ProgramHeader(
        name(target), parameters, domain, codomain, joined_options(rest), colon and colon.span, Span(start, end)
    )


def composition_header(children: list[Any], start: int, end: int) -> CompositionHeader:
    return CompositionHeader(name(children[0]), one(children, Name), Span(start, end))


def deduction_header(children: list[Any], start: int, end: int) -> DeductionHeader:
    target, domain, codomain, *rest = children
    return DeductionHeader(name(target), domain, codomain, joined_options(rest), Span(start, end))


def trailing_colon(children: list[Any], start: int, end: int) -> TrailingColon:
    return TrailingColon(Span(start, end))


def arguments(children: list[Any], start: int, end: int) -> Arguments:
    return Arguments(tuple(children))


def def_decl(children: list[Any], start: int, end: int) -> DefDecl:
    target, parameters, body = children
    return DefDecl(name(target), parameters.items, body, Span(start, end))


def def_header(children: list[Any], start: int, end: int) -> DefHeader:
    target, parameters, *rest = children
    colon = one(rest, TrailingColon)
    return DefHeader(name(target), parameters.items, colon and colon.span, Span(start, end))


def family_header(children: list[Any], start: int, end: int) -> FamilyHeader:
    target, parameters, space, *rest = children
    colon = one(rest, TrailingColon)
    return FamilyHeader(name(target), parameters.items, space, colon and colon.span, Span(start, end))


def transformation_header(children: list[Any], start: int, end: int) -> TransformationHeader:
    target, source, codomain, *rest = children
    return TransformationHeader(name(target), name(source), name(codomain), one(rest, Name), Span(start, end))


def encoder_header(children: list[Any], start: int, end: int) -> EncoderHeader:
    target, domain, codomain, *_ = children
    return EncoderHeader(name(target), domain, codomain, Span(start, end))


def decoder_header(children: list[Any], start: int, end: int) -> DecoderHeader:
    target, domain, codomain, *rest = children
    return DecoderHeader(name(target), domain, codomain, joined_options(rest), Span(start, end))


def data_type_decl(children: list[Any], start: int, end: int) -> DataTypeDecl:
    _, target, *constructors = children
    return DataTypeDecl(name(target), tuple(constructors), Span(start, end))


def constructor(children: list[Any], start: int, end: int) -> Constructor:
    given: Arguments | None = one(children, Arguments)
    return Constructor(name(children[0]), () if given is None else given.items, Span(start, end))


def function_parameter(children: list[Any], start: int, end: int) -> FunctionParameter:
    target, *rest = children
    given: Default | None = one(rest, Default)
    space = next((c for c in rest if type(c) is not Default), None)
    return FunctionParameter(name(target), space, given and given.value, Span(start, end))


def default(children: list[Any], start: int, end: int) -> Default:
    return Default(children[0])


def parameter(children: list[Any], start: int, end: int) -> Parameter:
    kind: Kind | None = children[1] if len(children) > 1 else None
    given: Default | None = one(children, Default)
    return Parameter(name(children[0]), kind and kind.name, kind and kind.mor, Span(start, end), given and given.value)


def plain_kind(children: list[Any], start: int, end: int) -> Kind:
    return Kind(name(children[0]), None)


def mor_kind(children: list[Any], start: int, end: int) -> Kind:
    return Kind(name(children[0]), (children[1], children[2]))


def names(children: list[Any], start: int, end: int) -> tuple[Name, ...]:
    return names_of(children)


# ---------------------------------------------------------------- objects


def coproduct(children: list[Any], start: int, end: int) -> CoproductExpr:
    return CoproductExpr(tuple(children[::2]), tuple([token_span(t) for t in children[1::2]]), Span(start, end))


def product(children: list[Any], start: int, end: int) -> ProductExpr:
    return ProductExpr(tuple(children[::2]), tuple([token_span(t) for t in children[1::2]]), Span(start, end))


def finset(children: list[Any], start: int, end: int) -> FinSetExpr:
    return FinSetExpr(children[0], Span(start, end))


def enumeration(children: list[Any], start: int, end: int) -> EnumExpr:
    return EnumExpr(tuple(children), Span(start, end))


def bounded_counts(children: list[Any], start: int, end: int) -> SpaceExpr:
    return SpaceExpr(name(children[0]), (), children[1].options, Span(start, end))


def space_of_sizes(children: list[Any], start: int, end: int) -> SpaceExpr:
    kind, *sizes = children
    limits: Options | None = sizes.pop().options if type(sizes[-1]) is Bounds else None
    return SpaceExpr(name(kind), tuple(sizes), limits, Span(start, end))


def sequence(children: list[Any], start: int, end: int) -> SeqExpr:
    return SeqExpr(children[0], Span(start, end))


def object_ref(children: list[Any], start: int, end: int) -> ObjectRef:
    return ObjectRef(name(children[0]))


def qualified_object(children: list[Any], start: int, end: int) -> ObjectRef:
    prefix, target = children
    return ObjectRef(Name(f"{prefix.text}.{target.text}", Span(start, end)))


def paren_object(children: list[Any], start: int, end: int) -> ParenObject:
    return ParenObject(children[0], Span(start, end))


def size(children: list[Any], start: int, end: int) -> Size:
    token: Token = children[0]
    value = int(token.text) if token.kind == "INT" else None if token.kind == "UNDERSCORE" else token.text
    return Size(value, Span(start, end))


def label(children: list[Any], start: int, end: int) -> Name:
    token: Token = children[0]
    return name(token) if token.kind == "NAME" else Name(string_value(token.text), Span(start, end), quoted=True)


# ---------------------------------------------------------------- options


def options(children: list[Any], start: int, end: int) -> Options:
    return Options(tuple(children), Span(start, end))


def bounds(children: list[Any], start: int, end: int) -> Bounds:
    return Bounds(Options(tuple(children[1:]), Span(start, end)))


def limit(children: list[Any], start: int, end: int) -> Option:
    """A bound of a space: a number or a name where it is one, as options of declarations have it."""
    value = _bound_value(children[1]) if len(children) > 1 else None
    return Option(children[0], value, Span(start, end))


def _bound_value(tree: Any) -> Value:
    inner = tree.operand if type(tree) is Unary and tree.operator == "-" else tree
    if type(inner) is Literal:
        if isinstance(inner.value, str):
            return String(inner.value, inner.text, inner.span) if inner is tree else Formula(tree, tree.span)
        text = inner.text if inner is tree else f"-{inner.text}"
        return Number(inner.value if inner is tree else -inner.value, text, tree.span)
    if type(tree) is Variable:
        return Word(tree.name.text, tree.span)
    return Formula(tree, tree.span)


def option(children: list[Any], start: int, end: int) -> Option:
    return Option(children[0], children[1] if len(children) > 1 else None, Span(start, end))


def string(children: list[Any], start: int, end: int) -> String:
    text: str = children[0].text
    return String(string_value(text), text, Span(start, end))


def word_value(children: list[Any], start: int, end: int) -> Word:
    return Word(children[0].text, Span(start, end))


def list_value(children: list[Any], start: int, end: int) -> ListValue:
    return ListValue(tuple(children), Span(start, end))


def call_value(children: list[Any], start: int, end: int) -> CallValue:
    return CallValue(name(children[0]), tuple(children[1:]), Span(start, end))


def value_arg(children: list[Any], start: int, end: int) -> ValueArg:
    key = name(children[0]) if len(children) > 1 else None
    return ValueArg(key, children[-1], Span(start, end))


def number(children: list[Any], start: int, end: int) -> Number:
    text = "".join([t.text for t in children])
    return Number(number_value(text), text, Span(start, end))


def word(children: list[Any], start: int, end: int) -> Name:
    return name(children[0])


# ---------------------------------------------------------------- arrow expressions


def compose(children: list[Any], start: int, end: int) -> ComposeExpr:
    return ComposeExpr(tuple(children[::2]), tuple([token_span(t) for t in children[1::2]]), Span(start, end))


def tensor_product(children: list[Any], start: int, end: int) -> TensorExpr:
    return TensorExpr(tuple(children[::2]), tuple([token_span(t) for t in children[1::2]]), Span(start, end))


def attribute(children: list[Any], start: int, end: int) -> PostfixExpr:
    return PostfixExpr(children[0], children[1], None, Span(start, end))


def attribute_call(children: list[Any], start: int, end: int) -> PostfixExpr:
    return PostfixExpr(children[0], children[1], children[2].items, Span(start, end))


def arrow_ref(children: list[Any], start: int, end: int) -> ArrowRef:
    return ArrowRef(name(children[0]))


def arrow_call(children: list[Any], start: int, end: int) -> ArrowCall:
    return ArrowCall(name(children[0]), children[1].items, Span(start, end))


def paren_arrow(children: list[Any], start: int, end: int) -> ParenArrow:
    return ParenArrow(children[0], Span(start, end))


def arrow_arg(children: list[Any], start: int, end: int) -> ArrowArg:
    key = name(children[0]) if len(children) > 1 else None
    return ArrowArg(key, children[-1], Span(start, end))


Action = Callable[[list[Any], int, int], Any]

ACTIONS: dict[str, Action] = {
    function.__name__: function
    for function in (
        *(object_decl, morphism_decl, let_decl, export_decl, program_header, composition_header, deduction_header),
        *(def_decl, def_header, family_header, transformation_header, import_decl, import_from, import_item),
        *(data_type_decl, constructor, encoder_header, decoder_header),
        *(trailing_colon, parameter, default, plain_kind, mor_kind, names),
        *(
            coproduct,
            product,
            finset,
            enumeration,
            space_of_sizes,
            bounded_counts,
            sequence,
            object_ref,
            paren_object,
            size,
            qualified_object,
        ),
        *(label, options, bounds, limit, option, string, word_value, list_value, call_value, value_arg, number, word),
        *(compose, tensor_product, attribute, attribute_call, arrow_ref, arrow_call, paren_arrow, arrow_arg),
        *step_builder.ALL,
    )
} | {
    **dict.fromkeys(("parameters", "def_parameters", "family_parameters"), arguments),
    **dict.fromkeys(("arrow_args", "arith_args", "return_tuple", "term_args", "constructor_args"), arguments),
    **dict.fromkeys(("def_parameter", "family_parameter"), function_parameter),
}
