"""The one walk over the syntax tree: what each node is made of, in the order of the text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar, cast

from qvr_core.syntax import tree as t

N = TypeVar("N")
Below = tuple[Any, ...]


def _of(kind: type[N], below: Callable[[N], Below]) -> tuple[type[Any], Callable[[Any], Below]]:
    return kind, below


def _some(node: Any) -> Below:
    return () if node is None else (node,)


def _step(step: t.ObserveStep | t.PredictStep | t.MarginalizeStep) -> Below:
    return (step.name, *_drawn(step))


def _drawn(step: t.DrawStep) -> Below:
    # options may stand on either side of `from`
    parts = (*_some(step.options), *_some(step.start))
    if step.options is not None and step.start is not None and step.start.span < step.options.span:
        parts = (step.start, step.options)
    return (*step.binders, *_some(step.space), step.draw, *parts)


_BELOW = dict(
    (
        _of(t.ListValue, lambda node: node.items),
        _of(t.Option, lambda node: (node.key, *_some(node.value))),
        _of(t.Options, lambda node: node.items),
        _of(t.ValueArg, lambda node: (*_some(node.key), node.value)),
        _of(t.CallValue, lambda node: (node.func, *node.args)),
        # objects
        _of(t.FinSetExpr, lambda node: (node.size,)),
        _of(t.EnumExpr, lambda node: node.labels),
        _of(t.SpaceExpr, lambda node: (node.kind, *node.sizes, *_some(node.options))),
        _of(t.SeqExpr, lambda node: (node.item,)),
        _of(t.ObjectRef, lambda node: (node.name,)),
        _of(t.ParenObject, lambda node: (node.inner,)),
        _of(t.ProductExpr, lambda node: node.factors),
        _of(t.CoproductExpr, lambda node: node.parts),
        # arrows
        _of(t.ArrowRef, lambda node: (node.name,)),
        _of(t.ArrowArg, lambda node: (*_some(node.key), node.value)),
        _of(t.ArrowCall, lambda node: (node.func, *node.args)),
        _of(t.ComposeExpr, lambda node: node.stages),
        _of(t.TensorExpr, lambda node: node.factors),
        _of(t.PostfixExpr, lambda node: (node.base, node.attribute, *(node.args or ()))),
        _of(t.ParenArrow, lambda node: (node.inner,)),
        # arithmetic
        _of(t.Variable, lambda node: (node.name,)),
        _of(t.Unary, lambda node: (node.operand,)),
        _of(t.Binary, lambda node: (node.left, node.right)),
        _of(t.ArithArg, lambda node: (*_some(node.key), node.value)),
        _of(t.ArithCall, lambda node: (node.func, *node.args)),
        _of(t.Gather, lambda node: (node.base, *node.indices)),
        _of(t.Field, lambda node: (node.base, node.field)),
        _of(t.MethodCall, lambda node: (node.base, node.method, *node.args)),
        _of(t.ListArith, lambda node: node.items),
        _of(t.Lambda, lambda node: (node.parameter, node.body)),
        _of(t.FactorIndex, lambda node: (node.name, node.space)),
        _of(t.FactorCase, lambda node: (node.index, node.value)),
        _of(t.FactorExpr, lambda node: node.indices + (node.body if isinstance(node.body, tuple) else (node.body,))),
        _of(t.Binder, lambda node: (node.name, node.space)),
        _of(t.TupleArith, lambda node: node.items),
        _of(t.Comprehension, lambda node: (node.function, node.body, *node.binders, *_some(node.condition))),
        _of(t.ParenArith, lambda node: (node.inner,)),
        # steps
        _of(t.Pattern, lambda node: node.names),
        _of(t.Draw, lambda node: (node.name, *_some(node.expression), *(node.args or ()))),
        _of(t.SampleStep, lambda node: (node.pattern, *_drawn(node))),
        _of(t.ObserveStep, _step),
        _of(t.PredictStep, _step),
        _of(t.MarginalizeStep, _step),
        _of(t.LetStep, lambda node: (node.pattern, *node.binders, *_some(node.space), node.value, *_some(node.start))),
        _of(t.DataStep, lambda node: (*node.names, node.axes, *_some(node.value), *_some(node.options))),
        _of(t.ScoreStep, lambda node: (node.name, node.value)),
        _of(t.ReturnItem, lambda node: (*_some(node.label), node.name)),
        _of(t.ReturnStep, lambda node: node.items),
        # lines of deductions and compositions
        _of(t.Term, lambda node: (node.head, *(node.args or ()))),
        _of(t.Attributes, lambda node: node.items),
        _of(t.AtomsItem, lambda node: node.names),
        _of(t.RuleItem, lambda node: (node.name, *node.premises, node.conclusion, *_some(node.attributes))),
        _of(t.LexiconItem, lambda node: (*_some(node.source), *_some(node.options))),
        _of(t.LexiconEntry, lambda node: (node.word, node.category, node.form, *_some(node.attributes))),
        _of(t.CompositionRule, lambda node: (node.name, *(node.parameters or ()), node.body)),
        # headers
        _of(t.ObjectDecl, lambda node: (*node.names, node.space)),
        _of(
            t.MorphismDecl,
            lambda node: (*node.names, node.domain, node.codomain, *_some(node.options), *_some(node.init)),
        ),
        _of(t.LetDecl, lambda node: (node.name, node.value)),
        _of(t.ExportDecl, lambda node: (node.value,)),
        _of(t.ImportItem, lambda node: (node.name, *_some(node.alias))),
        _of(t.ImportDecl, lambda node: (node.path, *_some(node.prefix), *(node.items or ()))),
        _of(t.Parameter, lambda node: (node.name, *_some(node.kind), *(node.mor or ()), *_some(node.default))),
        _of(t.FunctionParameter, lambda node: (node.name, *_some(node.space), *_some(node.default))),
        _of(t.DefDecl, lambda node: (node.name, *node.parameters, node.body)),
        _of(t.DefHeader, lambda node: (node.name, *node.parameters)),
        _of(t.FamilyHeader, lambda node: (node.name, *node.parameters, node.space)),
        _of(
            t.ProgramHeader,
            lambda node: (node.name, *(node.parameters or ()), node.domain, node.codomain, *_some(node.options)),
        ),
        _of(t.CompositionHeader, lambda node: (node.name, *_some(node.kind))),
        _of(t.DeductionHeader, lambda node: (node.name, node.domain, node.codomain, *_some(node.options))),
    )
)


def _leaf(node: Any) -> Below:
    return ()


def children(node: Any) -> Below:
    """The nodes that a node is made of, its names included; none of a name, a number, a size or a word."""
    return _BELOW.get(cast("type[Any]", type(node)), _leaf)(node)


def walk(node: Any) -> Iterator[Any]:
    """A node and all below it, outermost first; nothing for a unit that has none."""
    pending = [] if node is None else [node]
    while pending:
        found = pending.pop()
        yield found
        pending += reversed(children(found))
