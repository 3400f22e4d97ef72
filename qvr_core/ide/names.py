"""Every name in a unit, with the part it plays: what hover, references, rename and highlighting are made from.

The part is read off the syntax alone; `symbols.py` then decides which thing a name stands for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from qvr_core.ide.occurrences import Occurrence, at, behind, import_names, object_names, owner_of, qualified
from qvr_core.semantics.language.combinators import COMBINATORS
from qvr_core.semantics.language.gates import GATED
from qvr_core.semantics.language.mixtures import MIXTURE
from qvr_core.semantics.language.options import OBJECT_KEYS, VALUE_KEYS
from qvr_core.semantics.language.prelude import EVERY_FAMILY
from qvr_core.syntax.tree.arithmetic import (
    Arith,
    ArithArg,
    ArithCall,
    Binary,
    Binder,
    Comprehension,
    FactorExpr,
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
from qvr_core.syntax.tree.arrows import (
    ArrowArg,
    ArrowCall,
    ArrowExpr,
    ArrowRef,
    ComposeExpr,
    ParenArrow,
    PostfixExpr,
    TensorExpr,
)
from qvr_core.syntax.tree.declarations import (
    CompositionHeader,
    CompositionRule,
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
    LetDecl,
    MorphismDecl,
    ObjectDecl,
    ProgramHeader,
    TransformationHeader,
)
from qvr_core.syntax.tree.deductions import AtomsItem, Attributes, LexiconEntry, LexiconItem, RuleItem, Term
from qvr_core.syntax.tree.names import Name, Span
from qvr_core.syntax.tree.objects import (
    CoproductExpr,
    EnumExpr,
    FinSetExpr,
    ObjectExpr,
    ObjectRef,
    ParenObject,
    ProductExpr,
    SeqExpr,
    Size,
    SpaceExpr,
)
from qvr_core.syntax.tree.options import CallValue, Formula, ListValue, Number, Options, String, Value, Word
from qvr_core.syntax.tree.steps import (
    DataStep,
    DrawStep,
    LetStep,
    MarginalizeStep,
    ObserveStep,
    ParamStep,
    PredictStep,
    ReturnStep,
    SampleStep,
    ScoreStep,
)
from qvr_core.syntax.tree.units import Unit

VALUE_OPTIONS = frozenset((*VALUE_KEYS, "lengths", "keep", "low", "high"))
"""Options whose values are names of the program."""

CALLS = frozenset(one.name for one in COMBINATORS.values() if not one.bare)

# Calls whose arguments name objects, not arrows.
OBJECT_CALLS = frozenset(("identity", "trace", "marginalize"))


Found = Iterator[Occurrence]

_cache: dict[int, tuple[Unit[Any], tuple[Occurrence, ...]]] = {}
_CACHED_UNITS = 100_000


def names_of(unit: Unit[Any]) -> tuple[Occurrence, ...]:
    """All names of a unit in the order of the text.  Kept per unit: text that merely moves is not walked again."""
    held = _cache.get(id(unit))
    if held is not None and held[0] is unit:
        return held[1]
    if unit.node is None:
        found = tuple(Occurrence(name.text, name.span, "declare") for name in unit.declares)
    else:
        try:
            found = tuple(sorted(_node(unit.node), key=lambda occurrence: occurrence.span))
        except RecursionError:
            found = ()  # thousands of nested parentheses: nobody asks for the names in them
    if len(_cache) > _CACHED_UNITS:
        _cache.clear()
    _cache[id(unit)] = (unit, found)
    return found


def _node(node: Any) -> Found:
    """The names of a header, a step or an item."""
    match node:
        case ObjectDecl(names=names, space=space):
            yield from (at(name, "declare") for name in names)
            yield from _object(space)
        case MorphismDecl(names=names, domain=domain, codomain=codomain, options=options, init=init):
            yield from (at(name, "declare") for name in names)
            yield from _object(domain)
            yield from _object(codomain)
            yield from _options(options)
            if init is not None:
                yield from _arrow(init)
        case LetDecl(name=name, value=value):
            yield at(name, "declare")
            yield from _arrow(value)
        case ExportDecl(value=value):
            yield from _arrow(value)
        case ProgramHeader(name=name, parameters=parameters, domain=domain, codomain=codomain, options=options):
            yield at(name, "declare")
            for parameter in parameters or ():
                yield at(parameter.name, "parameter", parameter.kind.text if parameter.kind else "")
                if parameter.kind is not None:
                    yield at(parameter.kind, "kind")
                for side in parameter.mor or ():
                    yield from _object(side)
                if parameter.default is not None:
                    yield from _arith(parameter.default, {})
            yield from _object(domain)
            yield from _object(codomain)
            yield from _options(options)
        case DefDecl(name=name, parameters=parameters, body=body, span=span):
            yield at(name, "declare")
            for parameter in parameters:
                yield Occurrence(parameter.name.text, parameter.name.span, "local-bind", "", span)
            yield from _kinds(parameters)
            yield from _arith(body, {parameter.name.text: span for parameter in parameters})
        case DefHeader(name=name, parameters=parameters) | FamilyHeader(name=name, parameters=parameters):
            yield at(name, "declare")
            yield from (at(parameter.name, "parameter") for parameter in parameters)
            yield from _kinds(parameters)
            if isinstance(node, FamilyHeader):
                yield from _object(node.space)
        case CompositionHeader(name=name, kind=kind):
            yield at(name, "declare")
            if kind is not None:
                yield at(kind, "kind")
        case TransformationHeader(name=name, source=source, target=target, kind=kind):
            yield at(name, "declare")
            yield from (at(side, "composition") for side in (source, target))
            if kind is not None:
                yield at(kind, "word", "transformation")
        case DataTypeDecl(name=name, constructors=constructors):
            yield at(name, "declare")
            for one in constructors:
                yield at(one.name, "constructor", name.text)
                for argument in one.arguments:
                    yield from _object(argument)
        case ImportDecl():
            yield from import_names(node)
        case EncoderHeader() | DecoderHeader() | DeductionHeader():
            yield at(node.name, "declare")
            yield from _object(node.domain)
            yield from _object(node.codomain)
            if not isinstance(node, EncoderHeader):
                yield from _options(node.options)
        case _:
            yield from _item(node)


def _kinds(parameters: tuple[FunctionParameter, ...]) -> Found:
    """The spaces and the defaults of a function's or a family's parameters."""
    for parameter in parameters:
        if parameter.space is not None:
            yield from _object(parameter.space)
        if parameter.default is not None:
            yield from _arith(parameter.default, {})


def _item(node: Any) -> Found:
    """The names of a step, or of a line of a deduction or composition."""
    match node:
        case SampleStep(pattern=pattern):
            yield from (at(name, "bind", "sample") for name in pattern.names)
            yield from _drawn(node)
        case ObserveStep(name=name, outcome=outcome):
            yield at(name, "bind", "observe")
            if outcome is not None:
                found = _arith(outcome, _indices(node.binders, node.span))
                yield from (one for one in found if one.span != name.span)
            yield from _drawn(node)
        case PredictStep(name=name):
            yield at(name, "bind", "predict")
            yield from _drawn(node)
        case MarginalizeStep(name=name):
            yield at(name, "bind", "marginalize")
            yield from _drawn(node)
        case LetStep(pattern=pattern, value=value, start=start, space=space):
            yield from (at(name, "bind", "let") for name in pattern.names)
            if space is not None:
                yield from _object(space)
            yield from _binders(node.binders, node.span)
            indices = _indices(node.binders, node.span)
            yield from _arith(value, indices)
            if start is not None:
                yield from _arith(start, indices)
        case (
            DataStep(names=names, axes=axes, value=value, options=options)
            | ParamStep(names=names, axes=axes, value=value, options=options)
        ):
            yield from (at(name, "bind", "data" if isinstance(node, DataStep) else "param") for name in names)
            yield from _object(axes)
            if value is not None:
                yield from _object(value)
            yield from _options(options)
        case ScoreStep(name=name, value=value):
            yield at(name, "bind", "score")
            yield from _arith(value, {})
        case ReturnStep(items=items):
            for item in items:
                if item.label is not None:
                    yield at(item.label, "label")
                yield at(item.name, "returned")
        case AtomsItem(keyword=keyword, names=names):
            yield from (at(name, "atom", keyword) for name in names)
        case RuleItem(name=name, premises=premises, conclusion=conclusion, attributes=attributes):
            yield at(name, "rule")
            for term in (*premises, conclusion):
                yield from _term(term)
            yield from _attributes(attributes)
        case LexiconItem(options=options):
            yield from _options(options)
        case LexiconEntry(category=category, form=form, attributes=attributes):
            yield from _term(category)
            yield from _term(form)
            yield from _attributes(attributes)
        case CompositionRule(name=name, parameters=parameters, body=body, span=span):
            yield at(name, "operation")
            for parameter in parameters or ():
                yield Occurrence(parameter.text, parameter.span, "local-bind", "", span)
            yield from _arith(body, {parameter.text: span for parameter in parameters or ()})
        case _:
            return


def _drawn(step: DrawStep) -> Found:
    """What stands behind the name of a step that draws; its indices hold in this one line."""
    draw, indices = step.draw, _indices(step.binders, step.span)
    yield from _binders(step.binders, step.span)
    if step.space is not None:
        yield from _object(step.space)
        yield from _bounds(step.space, indices)
    if draw.expression is not None:
        yield from _arrow(draw.expression)
        yield from _arith_args(draw.args or (), qualified(draw.expression), indices)
    else:
        yield at(draw.name, _family_or_arrow(draw.name))
        yield from _arith_args(draw.args or (), draw.name.text, indices)
    if isinstance(step.start, ArithCall):
        yield at(step.start.func, _family_or_arrow(step.start.func))
        yield from _arith_args(step.start.args, step.start.func.text, indices)
    elif step.start is not None:
        yield from _arith(step.start, indices)
    yield from _options(step.options)


def _bounds(space: ObjectExpr, indices: dict[str, Span]) -> Found:
    """The names in bounds that are computed."""
    options = space.options if isinstance(space, SpaceExpr) else None
    for option in options.items if options is not None else ():
        if isinstance(option.value, Formula):
            yield from _arith(cast("Arith", option.value.tree), indices)


def _family_or_arrow(name: Name) -> str:
    return "family" if name.text in EVERY_FAMILY or name.text == MIXTURE or name.text in GATED else "arrow"


def _binders(binders: tuple[Binder, ...], scope: Span) -> Found:
    for binder in binders:
        yield Occurrence(binder.name.text, binder.name.span, "local-bind", "", scope)
        yield from _object(binder.space)


def _indices(binders: tuple[Binder, ...], scope: Span) -> dict[str, Span]:
    return {binder.name.text: scope for binder in binders}


def _object(expr: ObjectExpr) -> Found:
    match expr:
        case FinSetExpr(size=size):
            yield from _size(size)
        case EnumExpr(labels=labels):
            yield from map(_label, labels)
        case SpaceExpr(kind=kind, sizes=sizes, options=options):
            yield at(kind, "space")
            for size in sizes:
                yield from _size(size)
            yield from _options(options)
        case SeqExpr(item=inner) | ParenObject(inner=inner):
            yield from _object(inner)
        case ObjectRef(name=name):
            yield from object_names(name)
        case ProductExpr(factors=parts) | CoproductExpr(parts=parts):
            for part in parts:
                yield from _object(part)


def _label(label: Name) -> Occurrence:
    """An element of an enumeration; of one in quotes, what stands between them."""
    start, end = label.span
    return Occurrence(label.text, Span(start + 1, end - 1) if label.quoted else label.span, "label")


def _size(size: Size) -> Found:
    if isinstance(size.value, str):
        yield Occurrence(size.value, size.span, "size")


def _options(options: Options | None) -> Found:
    for option in options.items if options is not None else ():
        yield at(option.key, "option")
        if option.value is not None:
            yield from _value(option.value, option.key.text)


def _value(value: Value, key: str) -> Found:
    part = "value" if key in VALUE_OPTIONS else "object" if key in OBJECT_KEYS else "word"
    part = "arrow" if key in ("guide", "tie", "transpose") else part
    match value:
        case Word(text=text, span=span):
            # an object's `of` is the prefix in front of it
            yield Occurrence(text, span, part, "" if part in ("object", "arrow") else key)
        case ListValue(items=items):
            for item in items:
                yield from _value(item, key)
        case CallValue(func=func, args=args):
            yield at(func, _family_or_arrow(func))
            for argument in args:
                if argument.key is not None:
                    yield at(argument.key, "keyword", func.text)
                yield from _value(argument.value, func.text)
        case _:
            return


def _arrow(expr: ArrowExpr) -> Found:
    match expr:
        case ArrowRef(name=name):
            yield at(name, _arrow_part(name.text))
        case ArrowCall(func=func, args=args):
            yield at(func, "combinator" if func.text in CALLS else _arrow_part(func.text))
            for argument in args:
                yield from _argument(argument, func.text)
        case ComposeExpr(stages=parts) | TensorExpr(factors=parts):
            for part in parts:
                yield from _arrow(part)
        case PostfixExpr(base=base, attribute=attribute, args=args):
            yield from _arrow(base)
            yield at(attribute, "attribute", owner_of(base))
            for argument in args or ():
                yield from _argument(argument, behind(at(attribute, "attribute", owner_of(base))))
        case ParenArrow(inner=inner):
            yield from _arrow(inner)


def _argument(argument: ArrowArg, call: str) -> Found:
    if argument.key is not None:
        yield at(argument.key, "keyword", call)
    match argument.value:
        case ArrowRef(name=name) if argument.key is not None and call in CALLS:
            yield at(name, "word", argument.key.text)
        case ArrowRef(name=name) if call in OBJECT_CALLS:
            yield at(name, "object")
        case ArrowRef(name=name) if call.rpartition(".")[2] == "change_base":
            yield at(name, "transformation")
        case Number():
            return
        case String(value=value, span=span):
            if call == "from_data":
                yield Occurrence(value, Span(span.start + 1, span.end - 1), "data")
        case value:
            yield from _arrow(value)


def _arrow_part(name: str) -> str:
    if name in COMBINATORS and COMBINATORS[name].bare:
        return "combinator"
    return "family" if name in EVERY_FAMILY or name == MIXTURE or name in GATED else "arrow"


def called_part(name: str, *, arithmetic: bool) -> str:
    """The part that a name plays in front of the parentheses of a call."""
    if name in CALLS:
        return "combinator"
    part = _arrow_part(name)
    return "callee" if arithmetic and part == "arrow" else part


def _arith(expr: Arith, local: dict[str, Span]) -> Found:
    match expr:
        case Variable(name=name):
            yield _use(name, "value", local)
        case Literal(value=str(text), span=span):
            yield Occurrence(text, Span(span.start + 1, span.end - 1), "element")
        case Unary(operand=inner) | ParenArith(inner=inner):
            yield from _arith(inner, local)
        case Binary(left=left, right=right):
            yield from _arith(left, local)
            yield from _arith(right, local)
        case ArithCall(func=func, args=args):
            yield _use(func, "callee", local)
            yield from _arith_args(args, func.text, local)
        case Gather(base=base, indices=parts):
            yield from _arith(base, local)
            for part in parts:
                yield from _arith(part, local)
        case Field(base=base, field=field):
            yield from _arith(base, local)
            yield _field(base, field, local)
        case MethodCall(base=base, method=method, args=args):
            yield from _arith(base, local)
            yield _field(base, method, local)
            yield from _arith_args(args, behind(_field(base, method, local)), local)
        case ListArith(items=items) | TupleArith(items=items):
            for item in items:
                yield from _arith(item, local)
        case Lambda(parameter=parameter, body=body, span=span):
            yield Occurrence(parameter.text, parameter.span, "local-bind", "", span)
            yield from _arith(body, {**local, parameter.text: span})
        case FactorExpr(indices=indices, body=body, span=span):
            for index in indices:
                yield Occurrence(index.name.text, index.name.span, "local-bind", "", span)
                yield from _object(index.space)
            inner = {**local, **{index.name.text: span for index in indices}}
            for part in (case.value for case in body) if isinstance(body, tuple) else (body,):
                yield from _arith(part, inner)
        case Comprehension(function=function, body=body, binders=binders, condition=condition, span=span):
            yield _use(function, "callee", local)
            yield from _binders(binders, span)
            inner = {**local, **_indices(binders, span)}
            yield from _arith(body, inner)
            if condition is not None:
                yield from _arith(condition, inner)
        case _:
            return


def _field(base: Arith, field: Name, local: dict[str, Span]) -> Occurrence:
    plain = base.name.text if isinstance(base, Variable) else ""
    return at(field, "attribute", "" if plain in local else plain)


def _arith_args(args: tuple[ArithArg, ...], call: str, local: dict[str, Span]) -> Found:
    for argument in args:
        if argument.key is not None:
            yield at(argument.key, "keyword", call)
        yield from _arith(argument.value, local)


def _use(name: Name, part: str, local: dict[str, Span]) -> Occurrence:
    if name.text in local:
        return Occurrence(name.text, name.span, "local", "", local[name.text])
    return at(name, part)


def _term(term: Term) -> Found:
    if isinstance(term.head, Name):
        yield at(term.head, "term", "constructor" if term.args is not None else "")
    for argument in term.args or ():
        yield from _term(argument)


def _attributes(attributes: Attributes | None) -> Found:
    for item in attributes.items if attributes is not None else ():
        yield at(item.key, "option")
