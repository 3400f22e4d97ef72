"""The one walk over the typed model: what each node is made of, and what can be made from that.

`parts`, `operands`, `values` and `body` stay inside one closed set of nodes; `children` goes through all of them, into
the programs of template instances too.  A name (`Ref`) is a leaf: who follows it says how.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from qvr_core.semantics.types.chain_starts import written_in
from qvr_core.semantics.types.model.arrows import (
    Arrow,
    ArrowBase,
    Attention,
    BatchNorm,
    ChangeBase,
    Compose,
    Conv,
    Curry,
    Dagger,
    Damaged,
    Discretize,
    DropFactors,
    Dropout,
    Embed,
    Fan,
    Freeze,
    FromData,
    Identity,
    Instance,
    Kernel,
    Last,
    Latent,
    Lift,
    LinearMap,
    MeanOverTime,
    Norm,
    Observed,
    PartialTrace,
    Pool,
    Position,
    Ref,
    Repeat,
    Residual,
    Scan,
    Sort,
    Stack,
    TakeFactor,
    Tensor,
    TermArrowBase,
)
from qvr_core.semantics.types.model.expressions import (
    Apply,
    Arrange,
    Bound,
    Builtin,
    Constant,
    Contract,
    Data,
    DeductionRef,
    Expr,
    ExprBase,
    FactorTable,
    FieldOf,
    Function,
    Index,
    IndexValue,
    ListOf,
    Matrix,
    Method,
    Scatter,
    Solve,
    TermValue,
    Window,
)
from qvr_core.semantics.types.model.families import FamilyDraw
from qvr_core.semantics.types.model.file import Model
from qvr_core.semantics.types.model.programs import Program, called
from qvr_core.semantics.types.model.steps import (
    ArrowDraw,
    IndexedValue,
    LetModel,
    MarginalizeModel,
    ObserveModel,
    ParamModel,
    PredictModel,
    SampleModel,
    ScoreModel,
    Site,
    StepModel,
)
from qvr_core.semantics.types.model.terms import Decoder, Encoder

Node = Arrow | Expr | StepModel | Program

N = TypeVar("N")
T = TypeVar("T")


def parts(arrow: Arrow) -> tuple[Arrow, ...]:
    """The arrows that an arrow expression is made of, as written; those that the cases of an encoder or
    a decoder apply."""
    match arrow:
        case Ref():
            return ()
        case Compose(stages=inner) | Tensor(factors=inner) | Fan(branches=inner):
            return inner
        case Scan(cell=inner) | Lift(arrow=inner):
            return (inner,)
        case Stack(body=inner) | Repeat(body=inner) | Residual(body=inner):
            return (inner,)
        case (
            TakeFactor(base=inner) | ChangeBase(base=inner) | Dagger(base=inner) | Curry(base=inner)
            | PartialTrace(base=inner) | DropFactors(base=inner) | Freeze(base=inner)
        ):  # fmt: skip
            return (inner,)
        case Observed(arrow=inner):
            return () if inner is None else (inner,)
        case TermArrowBase():
            return tuple(one for body in bodies(arrow) for one in arrows_of(body))
        case (
            Embed() | Kernel() | LinearMap() | Conv() | Pool() | Norm() | BatchNorm() | Dropout() | Attention()
            | Position() | Latent() | Discretize() | Instance() | Identity() | Last() | MeanOverTime() | FromData()
            | Damaged()
        ):  # fmt: skip
            return ()


def bodies(arrow: TermArrowBase) -> tuple[Expr, ...]:
    """What the cases of an encoder compute; what those of a decoder compute and draw."""
    if isinstance(arrow, Decoder):
        cases = (arrow.choice, *arrow.cases) if arrow.choice is not None else arrow.cases
        return tuple(place for case in cases for place in case.places)
    return tuple(case.body for case in arrow.cases) if isinstance(arrow, Encoder) else ()


def draws_of(body: Expr) -> tuple[Apply, ...]:
    """The sampled arrows that a case of an encoder draws from, each once, in the order of the text."""
    found = {id(one): one for one in walk(body, operands) if isinstance(one, Apply) and one.arrow.sort is Sort.SAMPLED}
    return tuple(found.values())


def operands(expr: Expr) -> tuple[Expr, ...]:
    """The arithmetic that an expression is made of, keywords and the cases of a table included."""
    match expr:
        case Bound() | Constant() | Data() | IndexValue():
            return ()
        case Builtin(args=args, keywords=keywords):
            return (*args, *(value for _, value in keywords)) if keywords else args
        case Apply(args=args):
            return args
        case Index(base=base, indices=items) | Method(base=base, args=items):
            return (base, *items)
        case Contract(factors=factors):
            return factors
        case Scatter(body=body, index=index):
            return (body, index)
        case FieldOf(base=base) | Arrange(base=base) | Window(base=base):
            return (base,)
        case ListOf(items=items):
            return items
        case Function(body=body):
            return (body,)
        case FactorTable(body=body, cases=cases):
            return (*((body,) if body is not None else ()), *(value for _, value in cases))
        case Solve(rate=rate, initial=initial, arguments=given, start=start, at=at):
            return (initial, *given, start, at, rate)
        case Matrix() | TermValue() | DeductionRef():
            return ()


def values(step: StepModel) -> tuple[Expr, ...]:
    """The arithmetic that a step is written with: its value, or the arguments and options of its draw."""
    match step:
        case LetModel(indexed=IndexedValue(values=found, starts=starts)):
            return (*found, *(value for start in starts for value in start))
        case LetModel(value=value) | ScoreModel(value=value):
            return (value,)
        case ParamModel():
            return ()
        case (
            SampleModel(site=site) | ObserveModel(site=site) | PredictModel(site=site)
            | MarginalizeModel(site=site)
        ):  # fmt: skip
            draw = site.draw
            given = tuple(value for _, value in draw.args) if isinstance(draw, FamilyDraw) else draw.args or ()
            options = (site.via, site.mask, site.weight, site.at, site.lengths, *(value for _, value in site.limits))
            given += written_in(site.chain.start) if site.chain is not None else ()
            places = step.reads or () if isinstance(step, MarginalizeModel) else ()
            given += tuple(place for read in places for place in read)
            return (*given, *(value for value in options if value is not None))


def body(step: StepModel) -> tuple[StepModel, ...]:
    """The steps of a `marginalize` block."""
    return step.body if isinstance(step, MarginalizeModel) else ()


def children(node: Node) -> tuple[Node, ...]:
    """All that a node is made of, whatever its kind, in the order of the text."""
    match node:
        case TermArrowBase():
            return bodies(node)
        case ArrowBase():
            return (called(node),) if isinstance(node, Instance) else parts(node)
        case ExprBase():
            return (node.arrow, *operands(node)) if isinstance(node, Apply | Matrix) else operands(node)
        case Program(steps=steps):
            return steps
        case LetModel() | ScoreModel() | ParamModel():
            return values(node)
        case (
            SampleModel(site=site) | ObserveModel(site=site) | PredictModel(site=site)
            | MarginalizeModel(site=site)
        ):  # fmt: skip
            drawn = (site.draw.arrow,) if isinstance(site.draw, ArrowDraw) else ()
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
    steps: Iterable[StepModel], *kinds: type[SampleModel | ObserveModel | PredictModel | MarginalizeModel]
) -> Iterator[Site]:
    """The sites of steps of these kinds, those of `marginalize` blocks included."""
    return (step.site for step in all_steps(steps) if isinstance(step, kinds))


def arrow_named(model: Model, name: str) -> Arrow | Program | None:
    """What a name stands for: a morphism, the expression of a let, an encoder, a decoder, or a program."""
    if name in model.arrows:
        return model.arrows[name]
    if name in model.lets:
        return model.lets[name].arrow
    return model.term_arrows.get(name) or model.programs.get(name)


def arrows_of(node: Node) -> Iterator[Arrow]:
    """The arrows that a program, a step or an expression names, each as it is written there."""
    return (part for part in walk(node, until_arrows) if isinstance(part, ArrowBase))  # pyright: ignore[reportReturnType]


def until_arrows(node: Node) -> tuple[Node, ...]:
    """The children of a node; none of an arrow."""
    return () if isinstance(node, ArrowBase) else children(node)
