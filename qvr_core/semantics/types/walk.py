"""The one walk over the typed model: what each node is made of, and what can be made from that.

`parts`, `operands`, `values` and `body` stay inside one closed set of nodes; `children` goes through all of them, into
the programs of template instances too.  A name (`Ref`) is a leaf: who follows it says how.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from qvr_core.semantics.types import model as m
from qvr_core.semantics.types.chain_starts import written_in
from qvr_core.semantics.types.model import Arrow, ArrowBase, Expr, ExprBase, Model, Program, Site, StepModel

Node = Arrow | Expr | StepModel | Program

N = TypeVar("N")
T = TypeVar("T")


def parts(arrow: Arrow) -> tuple[Arrow, ...]:
    """The arrows that an arrow expression is made of, as written."""
    match arrow:
        case m.Ref():
            return ()
        case m.Compose(stages=inner) | m.Tensor(factors=inner) | m.Fan(branches=inner):
            return inner
        case m.Scan(cell=inner) | m.Lift(arrow=inner):
            return (inner,)
        case m.Stack(body=inner) | m.Repeat(body=inner) | m.Residual(body=inner):
            return (inner,)
        case (
            m.TakeFactor(base=inner) | m.Dagger(base=inner) | m.PartialTrace(base=inner) | m.DropFactors(base=inner)
            | m.Freeze(base=inner)
        ):  # fmt: skip
            return (inner,)
        case m.Observed(arrow=inner):
            return () if inner is None else (inner,)
        case (
            m.Embed() | m.Kernel() | m.LinearMap() | m.Norm() | m.Attention() | m.Position() | m.Latent()
            | m.Discretize() | m.Instance() | m.Identity() | m.Last() | m.MeanOverTime() | m.FromData() | m.Damaged()
        ):  # fmt: skip
            return ()


def operands(expr: Expr) -> tuple[Expr, ...]:
    """The arithmetic that an expression is made of, keywords and the cases of a table included."""
    match expr:
        case m.Bound() | m.Constant() | m.Data() | m.IndexValue():
            return ()
        case m.Builtin(args=args, keywords=keywords):
            return (*args, *(value for _, value in keywords)) if keywords else args
        case m.Apply(args=args):
            return args
        case m.Index(base=base, indices=items) | m.Method(base=base, args=items):
            return (base, *items)
        case m.Contract(factors=factors):
            return factors
        case m.Scatter(body=body, index=index):
            return (body, index)
        case m.FieldOf(base=base) | m.Arrange(base=base) | m.Window(base=base):
            return (base,)
        case m.ListOf(items=items):
            return items
        case m.Function(body=body):
            return (body,)
        case m.FactorTable(body=body, cases=cases):
            return (*((body,) if body is not None else ()), *(value for _, value in cases))
        case m.Matrix() | m.TermValue() | m.DeductionRef():
            return ()


def values(step: StepModel) -> tuple[Expr, ...]:
    """The arithmetic that a step is written with: its value, or the arguments and options of its draw."""
    match step:
        case m.LetModel(indexed=m.IndexedValue(values=found, starts=starts)):
            return (*found, *(value for start in starts for value in start))
        case m.LetModel(value=value) | m.ScoreModel(value=value):
            return (value,)
        case (
            m.SampleModel(site=site) | m.ObserveModel(site=site) | m.PredictModel(site=site)
            | m.MarginalizeModel(site=site)
        ):  # fmt: skip
            draw = site.draw
            given = tuple(value for _, value in draw.args) if isinstance(draw, m.FamilyDraw) else draw.args or ()
            options = (site.via, site.mask, site.weight, site.at, site.lengths, *(value for _, value in site.limits))
            given += written_in(site.chain.start) if site.chain is not None else ()
            places = step.reads or () if isinstance(step, m.MarginalizeModel) else ()
            given += tuple(place for read in places for place in read)
            return (*given, *(value for value in options if value is not None))


def body(step: StepModel) -> tuple[StepModel, ...]:
    """The steps of a `marginalize` block."""
    return step.body if isinstance(step, m.MarginalizeModel) else ()


def children(node: Node) -> tuple[Node, ...]:
    """All that a node is made of, whatever its kind, in the order of the text."""
    match node:
        case ArrowBase():
            return (node.program,) if isinstance(node, m.Instance) else parts(node)
        case ExprBase():
            return (node.arrow, *operands(node)) if isinstance(node, m.Apply | m.Matrix) else operands(node)
        case Program(steps=steps):
            return steps
        case m.LetModel() | m.ScoreModel():
            return values(node)
        case (
            m.SampleModel(site=site) | m.ObserveModel(site=site) | m.PredictModel(site=site)
            | m.MarginalizeModel(site=site)
        ):  # fmt: skip
            drawn = (site.draw.arrow,) if isinstance(site.draw, m.ArrowDraw) else ()
            return (*drawn, *values(node), *body(node))


def walk(node: N, below: Callable[[N], Iterable[N]]) -> Iterator[N]:
    """A node and all below it, outermost first, in the order of the text."""
    pending = [node]
    while pending:
        found = pending.pop()
        yield found
        pending += reversed(tuple(below(found)))


def fold(node: N, below: Callable[[N], Iterable[N]], combine: Callable[[N, list[T]], T]) -> T:
    """What `combine` makes of a node and of what it made of the node's children."""
    inner = below(node)
    return combine(node, [fold(child, below, combine) for child in inner] if inner else [])


def all_steps(steps: Iterable[StepModel]) -> Iterator[StepModel]:
    """Steps in order, those of `marginalize` blocks included."""
    for step in steps:
        yield from walk(step, body)


def sites(
    steps: Iterable[StepModel], *kinds: type[m.SampleModel | m.ObserveModel | m.PredictModel | m.MarginalizeModel]
) -> Iterator[Site]:
    """The sites of steps of these kinds, those of `marginalize` blocks included."""
    return (step.site for step in all_steps(steps) if isinstance(step, kinds))


def arrow_named(model: Model, name: str) -> Arrow | Program | None:
    """What a name stands for: a morphism, the expression of a let, or a program."""
    if name in model.arrows:
        return model.arrows[name]
    if name in model.lets:
        return model.lets[name].arrow
    return model.programs.get(name)


def arrows_of(node: Node) -> Iterator[Arrow]:
    """The arrows that a program, a step or an expression names, each as it is written there."""
    return (part for part in walk(node, until_arrows) if isinstance(part, ArrowBase))  # pyright: ignore[reportReturnType]


def until_arrows(node: Node) -> tuple[Node, ...]:
    """The children of a node; none of an arrow."""
    return () if isinstance(node, ArrowBase) else children(node)
