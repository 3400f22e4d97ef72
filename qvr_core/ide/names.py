"""Every name in a unit, with the part it plays: what hover, references, rename and highlighting are made from.

The part is read off the syntax alone; `symbols.py` then decides which thing a name stands for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from qvr_core.ide.occurrences import Occurrence, at, behind, import_names, object_names, owner_of, qualified
from qvr_core.semantics.language.combinators import COMBINATORS
from qvr_core.semantics.language.families import FAMILIES
from qvr_core.semantics.language.mixtures import MIXTURE
from qvr_core.semantics.language.options import OBJECT_KEYS, VALUE_KEYS
from qvr_core.syntax import tree as t
from qvr_core.syntax.tree import Name, Span, Unit

VALUE_OPTIONS = frozenset((*VALUE_KEYS, "lengths", "keep"))
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
        case t.ObjectDecl(names=names, space=space):
            yield from (at(name, "declare") for name in names)
            yield from _object(space)
        case t.MorphismDecl(names=names, domain=domain, codomain=codomain, options=options, init=init):
            yield from (at(name, "declare") for name in names)
            yield from _object(domain)
            yield from _object(codomain)
            yield from _options(options)
            if init is not None:
                yield from _arrow(init)
        case t.LetDecl(name=name, value=value):
            yield at(name, "declare")
            yield from _arrow(value)
        case t.ExportDecl(value=value):
            yield from _arrow(value)
        case t.ProgramHeader(name=name, parameters=parameters, domain=domain, codomain=codomain, options=options):
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
        case t.DefDecl(name=name, parameters=parameters, body=body, span=span):
            yield at(name, "declare")
            for parameter in parameters:
                yield Occurrence(parameter.name.text, parameter.name.span, "local-bind", "", span)
            yield from _kinds(parameters)
            yield from _arith(body, {parameter.name.text: span for parameter in parameters})
        case t.DefHeader(name=name, parameters=parameters) | t.FamilyHeader(name=name, parameters=parameters):
            yield at(name, "declare")
            yield from (at(parameter.name, "parameter") for parameter in parameters)
            yield from _kinds(parameters)
            if isinstance(node, t.FamilyHeader):
                yield from _object(node.space)
        case t.CompositionHeader(name=name, kind=kind):
            yield at(name, "declare")
            if kind is not None:
                yield at(kind, "kind")
        case t.ImportDecl():
            yield from import_names(node)
        case t.DeductionHeader(name=name, domain=domain, codomain=codomain, options=options):
            yield at(name, "declare")
            yield from _object(domain)
            yield from _object(codomain)
            yield from _options(options)
        case _:
            yield from _item(node)


def _kinds(parameters: tuple[t.FunctionParameter, ...]) -> Found:
    """The spaces and the defaults of a function's or a family's parameters."""
    for parameter in parameters:
        if parameter.space is not None:
            yield from _object(parameter.space)
        if parameter.default is not None:
            yield from _arith(parameter.default, {})


def _item(node: Any) -> Found:
    """The names of a step, or of a line of a deduction or composition."""
    match node:
        case t.SampleStep(pattern=pattern):
            yield from (at(name, "bind", "sample") for name in pattern.names)
            yield from _drawn(node)
        case t.ObserveStep(name=name):
            yield at(name, "bind", "observe")
            yield from _drawn(node)
        case t.PredictStep(name=name):
            yield at(name, "bind", "predict")
            yield from _drawn(node)
        case t.MarginalizeStep(name=name):
            yield at(name, "bind", "marginalize")
            yield from _drawn(node)
        case t.LetStep(pattern=pattern, value=value, start=start, space=space):
            yield from (at(name, "bind", "let") for name in pattern.names)
            if space is not None:
                yield from _object(space)
            yield from _binders(node.binders, node.span)
            indices = _indices(node.binders, node.span)
            yield from _arith(value, indices)
            if start is not None:
                yield from _arith(start, indices)
        case t.DataStep(names=names, axes=axes, value=value, options=options):
            yield from (at(name, "bind", "data") for name in names)
            yield from _object(axes)
            if value is not None:
                yield from _object(value)
            yield from _options(options)
        case t.ScoreStep(name=name, value=value):
            yield at(name, "bind", "score")
            yield from _arith(value, {})
        case t.ReturnStep(items=items):
            for item in items:
                if item.label is not None:
                    yield at(item.label, "label")
                yield at(item.name, "returned")
        case t.AtomsItem(keyword=keyword, names=names):
            yield from (at(name, "atom", keyword) for name in names)
        case t.RuleItem(name=name, premises=premises, conclusion=conclusion, attributes=attributes):
            yield at(name, "rule")
            for term in (*premises, conclusion):
                yield from _term(term)
            yield from _attributes(attributes)
        case t.LexiconItem(options=options):
            yield from _options(options)
        case t.LexiconEntry(category=category, form=form, attributes=attributes):
            yield from _term(category)
            yield from _term(form)
            yield from _attributes(attributes)
        case t.CompositionRule(name=name, parameters=parameters, body=body, span=span):
            yield at(name, "operation")
            for parameter in parameters or ():
                yield Occurrence(parameter.text, parameter.span, "local-bind", "", span)
            yield from _arith(body, {parameter.text: span for parameter in parameters or ()})
        case _:
            return


def _drawn(step: t.DrawStep) -> Found:
    """What stands behind the name of a step that draws; its indices hold in this one line."""
    draw, indices = step.draw, _indices(step.binders, step.span)
    yield from _binders(step.binders, step.span)
    if step.space is not None:
        yield from _object(step.space)
    if draw.expression is not None:
        yield from _arrow(draw.expression)
        yield from _arith_args(draw.args or (), qualified(draw.expression), indices)
    else:
        yield at(draw.name, _family_or_arrow(draw.name))
        yield from _arith_args(draw.args or (), draw.name.text, indices)
    if isinstance(step.start, t.ArithCall):
        yield at(step.start.func, _family_or_arrow(step.start.func))
        yield from _arith_args(step.start.args, step.start.func.text, indices)
    elif step.start is not None:
        yield from _arith(step.start, indices)
    yield from _options(step.options)


def _family_or_arrow(name: Name) -> str:
    return "family" if name.text in FAMILIES or name.text == MIXTURE else "arrow"


def _binders(binders: tuple[t.Binder, ...], scope: Span) -> Found:
    for binder in binders:
        yield Occurrence(binder.name.text, binder.name.span, "local-bind", "", scope)
        yield from _object(binder.space)


def _indices(binders: tuple[t.Binder, ...], scope: Span) -> dict[str, Span]:
    return {binder.name.text: scope for binder in binders}


def _object(expr: t.ObjectExpr) -> Found:
    match expr:
        case t.FinSetExpr(size=size):
            yield from _size(size)
        case t.EnumExpr(labels=labels):
            yield from map(_label, labels)
        case t.SpaceExpr(kind=kind, sizes=sizes, options=options):
            yield at(kind, "space")
            for size in sizes:
                yield from _size(size)
            yield from _options(options)
        case t.SeqExpr(item=inner) | t.ParenObject(inner=inner):
            yield from _object(inner)
        case t.ObjectRef(name=name):
            yield from object_names(name)
        case t.ProductExpr(factors=parts) | t.CoproductExpr(parts=parts):
            for part in parts:
                yield from _object(part)


def _label(label: Name) -> Occurrence:
    """An element of an enumeration; of one in quotes, what stands between them."""
    start, end = label.span
    return Occurrence(label.text, Span(start + 1, end - 1) if label.quoted else label.span, "label")


def _size(size: t.Size) -> Found:
    if isinstance(size.value, str):
        yield Occurrence(size.value, size.span, "size")


def _options(options: t.Options | None) -> Found:
    for option in options.items if options is not None else ():
        yield at(option.key, "option")
        if option.value is not None:
            yield from _value(option.value, option.key.text)


def _value(value: t.Value, key: str) -> Found:
    part = "value" if key in VALUE_OPTIONS else "object" if key in OBJECT_KEYS else "word"
    match value:
        case t.Word(text=text, span=span):
            # an object's `of` is the prefix in front of it
            yield Occurrence(text, span, part, "" if part == "object" else key)
        case t.ListValue(items=items):
            for item in items:
                yield from _value(item, key)
        case t.CallValue(func=func, args=args):
            yield at(func, _family_or_arrow(func))
            for argument in args:
                if argument.key is not None:
                    yield at(argument.key, "keyword", func.text)
                yield from _value(argument.value, func.text)
        case _:
            return


def _arrow(expr: t.ArrowExpr) -> Found:
    match expr:
        case t.ArrowRef(name=name):
            yield at(name, _arrow_part(name.text))
        case t.ArrowCall(func=func, args=args):
            yield at(func, "combinator" if func.text in CALLS else _arrow_part(func.text))
            for argument in args:
                yield from _argument(argument, func.text)
        case t.ComposeExpr(stages=parts) | t.TensorExpr(factors=parts):
            for part in parts:
                yield from _arrow(part)
        case t.PostfixExpr(base=base, attribute=attribute, args=args):
            yield from _arrow(base)
            yield at(attribute, "attribute", owner_of(base))
            for argument in args or ():
                yield from _argument(argument, behind(at(attribute, "attribute", owner_of(base))))
        case t.ParenArrow(inner=inner):
            yield from _arrow(inner)


def _argument(argument: t.ArrowArg, call: str) -> Found:
    if argument.key is not None:
        yield at(argument.key, "keyword", call)
    match argument.value:
        case t.ArrowRef(name=name) if argument.key is not None and call in CALLS:
            yield at(name, "word", argument.key.text)
        case t.ArrowRef(name=name) if call in OBJECT_CALLS:
            yield at(name, "object")
        case t.Number():
            return
        case t.String(value=value, span=span):
            if call == "from_data":
                yield Occurrence(value, Span(span.start + 1, span.end - 1), "data")
        case value:
            yield from _arrow(value)


def _arrow_part(name: str) -> str:
    if name in COMBINATORS and COMBINATORS[name].bare:
        return "combinator"
    return "family" if name in FAMILIES or name == MIXTURE else "arrow"


def called_part(name: str, *, arithmetic: bool) -> str:
    """The part that a name plays in front of the parentheses of a call."""
    if name in CALLS:
        return "combinator"
    part = _arrow_part(name)
    return "callee" if arithmetic and part == "arrow" else part


def _arith(expr: t.Arith, local: dict[str, Span]) -> Found:
    match expr:
        case t.Variable(name=name):
            yield _use(name, "value", local)
        case t.Literal(value=str(text), span=span):
            yield Occurrence(text, Span(span.start + 1, span.end - 1), "element")
        case t.Unary(operand=inner) | t.ParenArith(inner=inner):
            yield from _arith(inner, local)
        case t.Binary(left=left, right=right):
            yield from _arith(left, local)
            yield from _arith(right, local)
        case t.ArithCall(func=func, args=args):
            yield _use(func, "callee", local)
            yield from _arith_args(args, func.text, local)
        case t.Gather(base=base, indices=parts):
            yield from _arith(base, local)
            for part in parts:
                yield from _arith(part, local)
        case t.Field(base=base, field=field):
            yield from _arith(base, local)
            yield _field(base, field, local)
        case t.MethodCall(base=base, method=method, args=args):
            yield from _arith(base, local)
            yield _field(base, method, local)
            yield from _arith_args(args, behind(_field(base, method, local)), local)
        case t.ListArith(items=items) | t.TupleArith(items=items):
            for item in items:
                yield from _arith(item, local)
        case t.Lambda(parameter=parameter, body=body, span=span):
            yield Occurrence(parameter.text, parameter.span, "local-bind", "", span)
            yield from _arith(body, {**local, parameter.text: span})
        case t.FactorExpr(indices=indices, body=body, span=span):
            for index in indices:
                yield Occurrence(index.name.text, index.name.span, "local-bind", "", span)
                yield from _object(index.space)
            inner = {**local, **{index.name.text: span for index in indices}}
            for part in (case.value for case in body) if isinstance(body, tuple) else (body,):
                yield from _arith(part, inner)
        case t.Comprehension(function=function, body=body, binders=binders, condition=condition, span=span):
            yield _use(function, "callee", local)
            yield from _binders(binders, span)
            inner = {**local, **_indices(binders, span)}
            yield from _arith(body, inner)
            if condition is not None:
                yield from _arith(condition, inner)
        case _:
            return


def _field(base: t.Arith, field: Name, local: dict[str, Span]) -> Occurrence:
    plain = base.name.text if isinstance(base, t.Variable) else ""
    return at(field, "attribute", "" if plain in local else plain)


def _arith_args(args: tuple[t.ArithArg, ...], call: str, local: dict[str, Span]) -> Found:
    for argument in args:
        if argument.key is not None:
            yield at(argument.key, "keyword", call)
        yield from _arith(argument.value, local)


def _use(name: Name, part: str, local: dict[str, Span]) -> Occurrence:
    if name.text in local:
        return Occurrence(name.text, name.span, "local", "", local[name.text])
    return at(name, part)


def _term(term: t.Term) -> Found:
    if isinstance(term.head, Name):
        yield at(term.head, "term", "constructor" if term.args is not None else "")
    for argument in term.args or ():
        yield from _term(argument)


def _attributes(attributes: t.Attributes | None) -> Found:
    for item in attributes.items if attributes is not None else ():
        yield at(item.key, "option")
