"""The one walk over the syntax tree: what each node is made of, in the order of the text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar, cast

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
    MethodCall,
    ParenArith,
    TupleArith,
    Unary,
    Variable,
)
from qvr_core.syntax.tree.arrows import ArrowArg, ArrowCall, ArrowRef, ComposeExpr, ParenArrow, PostfixExpr, TensorExpr
from qvr_core.syntax.tree.declarations import (
    CompositionHeader,
    CompositionRule,
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
from qvr_core.syntax.tree.deductions import AtomsItem, Attributes, LexiconEntry, LexiconItem, RuleItem, Term
from qvr_core.syntax.tree.objects import (
    CoproductExpr,
    EnumExpr,
    FinSetExpr,
    ObjectRef,
    ParenObject,
    ProductExpr,
    SeqExpr,
    SpaceExpr,
)
from qvr_core.syntax.tree.options import CallValue, Formula, ListValue, Option, Options, ValueArg
from qvr_core.syntax.tree.steps import (
    DataStep,
    Draw,
    DrawStep,
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

N = TypeVar("N")
Below = tuple[Any, ...]


def _of(kind: type[N], below: Callable[[N], Below]) -> tuple[type[Any], Callable[[Any], Below]]:
    return kind, below


def _some(node: Any) -> Below:
    return () if node is None else (node,)


def _step(step: ObserveStep | PredictStep | MarginalizeStep) -> Below:
    outcome = step.outcome if isinstance(step, ObserveStep) else None
    return (*_some(outcome), step.name, *_drawn(step))


def _drawn(step: DrawStep) -> Below:
    # options may stand on either side of `from`
    parts = (*_some(step.options), *_some(step.start))
    if step.options is not None and step.start is not None and step.start.span < step.options.span:
        parts = (step.start, step.options)
    return (*step.binders, *_some(step.space), step.draw, *parts)


_BELOW = dict(
    (
        _of(ListValue, lambda node: node.items),
        _of(Formula, lambda node: (node.tree,)),
        _of(Option, lambda node: (node.key, *_some(node.value))),
        _of(Options, lambda node: node.items),
        _of(ValueArg, lambda node: (*_some(node.key), node.value)),
        _of(CallValue, lambda node: (node.func, *node.args)),
        # objects
        _of(FinSetExpr, lambda node: (node.size,)),
        _of(EnumExpr, lambda node: node.labels),
        _of(SpaceExpr, lambda node: (node.kind, *node.sizes, *_some(node.options))),
        _of(SeqExpr, lambda node: (node.item,)),
        _of(ObjectRef, lambda node: (node.name,)),
        _of(ParenObject, lambda node: (node.inner,)),
        _of(ProductExpr, lambda node: node.factors),
        _of(CoproductExpr, lambda node: node.parts),
        # arrows
        _of(ArrowRef, lambda node: (node.name,)),
        _of(ArrowArg, lambda node: (*_some(node.key), node.value)),
        _of(ArrowCall, lambda node: (node.func, *node.args)),
        _of(ComposeExpr, lambda node: node.stages),
        _of(TensorExpr, lambda node: node.factors),
        _of(PostfixExpr, lambda node: (node.base, node.attribute, *(node.args or ()))),
        _of(ParenArrow, lambda node: (node.inner,)),
        # arithmetic
        _of(Variable, lambda node: (node.name,)),
        _of(Unary, lambda node: (node.operand,)),
        _of(Binary, lambda node: (node.left, node.right)),
        _of(ArithArg, lambda node: (*_some(node.key), node.value)),
        _of(ArithCall, lambda node: (node.func, *node.args)),
        _of(Gather, lambda node: (node.base, *node.indices)),
        _of(Field, lambda node: (node.base, node.field)),
        _of(MethodCall, lambda node: (node.base, node.method, *node.args)),
        _of(ListArith, lambda node: node.items),
        _of(Lambda, lambda node: (node.parameter, node.body)),
        _of(FactorIndex, lambda node: (node.name, node.space)),
        _of(FactorCase, lambda node: (node.index, node.value)),
        _of(FactorExpr, lambda node: node.indices + (node.body if isinstance(node.body, tuple) else (node.body,))),
        _of(Binder, lambda node: (node.name, node.space)),
        _of(TupleArith, lambda node: node.items),
        _of(Comprehension, lambda node: (node.function, node.body, *node.binders, *_some(node.condition))),
        _of(ParenArith, lambda node: (node.inner,)),
        # steps
        _of(Pattern, lambda node: node.names),
        _of(Draw, lambda node: (node.name, *_some(node.expression), *(node.args or ()))),
        _of(SampleStep, lambda node: (node.pattern, *_drawn(node))),
        _of(ObserveStep, _step),
        _of(PredictStep, _step),
        _of(MarginalizeStep, _step),
        _of(LetStep, lambda node: (node.pattern, *node.binders, *_some(node.space), node.value, *_some(node.start))),
        _of(DataStep, lambda node: (*node.names, node.axes, *_some(node.value), *_some(node.options))),
        _of(ParamStep, lambda node: (*node.names, node.axes, *_some(node.value), *_some(node.options))),
        _of(ScoreStep, lambda node: (node.name, node.value)),
        _of(ReturnItem, lambda node: (*_some(node.label), node.name)),
        _of(ReturnStep, lambda node: node.items),
        # lines of deductions and compositions
        _of(Term, lambda node: (node.head, *(node.args or ()))),
        _of(Attributes, lambda node: node.items),
        _of(AtomsItem, lambda node: node.names),
        _of(RuleItem, lambda node: (node.name, *node.premises, node.conclusion, *_some(node.attributes))),
        _of(LexiconItem, lambda node: (*_some(node.source), *_some(node.options))),
        _of(LexiconEntry, lambda node: (node.word, node.category, node.form, *_some(node.attributes))),
        _of(CompositionRule, lambda node: (node.name, *(node.parameters or ()), node.body)),
        # headers
        _of(ObjectDecl, lambda node: (*node.names, node.space)),
        _of(
            MorphismDecl,
            lambda node: (*node.names, node.domain, node.codomain, *_some(node.options), *_some(node.init)),
        ),
        _of(LetDecl, lambda node: (node.name, node.value)),
        _of(ExportDecl, lambda node: (node.value,)),
        _of(ImportItem, lambda node: (node.name, *_some(node.alias))),
        _of(ImportDecl, lambda node: (node.path, *_some(node.prefix), *(node.items or ()))),
        _of(Parameter, lambda node: (node.name, *_some(node.kind), *(node.mor or ()), *_some(node.default))),
        _of(FunctionParameter, lambda node: (node.name, *_some(node.space), *_some(node.default))),
        _of(DefDecl, lambda node: (node.name, *node.parameters, node.body)),
        _of(DefHeader, lambda node: (node.name, *node.parameters)),
        _of(FamilyHeader, lambda node: (node.name, *node.parameters, node.space)),
        _of(
            ProgramHeader,
            lambda node: (node.name, *(node.parameters or ()), node.domain, node.codomain, *_some(node.options)),
        ),
        _of(CompositionHeader, lambda node: (node.name, *_some(node.kind))),
        _of(TransformationHeader, lambda node: (node.name, node.source, node.target, *_some(node.kind))),
        _of(Constructor, lambda node: (node.name, *node.arguments)),
        _of(EncoderHeader, lambda node: (node.name, node.domain, node.codomain)),
        _of(DecoderHeader, lambda node: (node.name, node.domain, node.codomain, *_some(node.options))),
        _of(DataTypeDecl, lambda node: (node.name, *node.constructors)),
        _of(DeductionHeader, lambda node: (node.name, node.domain, node.codomain, *_some(node.options))),
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


def read_by(step: DrawStep) -> list[Arith]:
    """The arithmetic that a draw reads: its arguments, and what has an index in a computed outcome."""
    outcome = step.outcome if isinstance(step, ObserveStep) else None
    indexed = [] if outcome is None else [part for part in walk(outcome) if isinstance(part, Gather)]
    return [*(arg.value for arg in step.draw.args or ()), *indexed]
