"""Arrows of the typed model as an editor shows them: parts, parameter counts, shapes, density."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from qvr_core.semantics.deductions.rule_instances import weight_count
from qvr_core.semantics.language.families import FAMILIES, raw_width
from qvr_core.semantics.types import model as m
from qvr_core.semantics.types.diagnostics import Origin
from qvr_core.semantics.types.model import Arrow, Density, Model
from qvr_core.semantics.types.spaces import (
    Dim,
    Finite,
    Linear,
    Named,
    Product,
    Seq,
    Space,
    factors_of,
    item_of,
    width,
)

# Width of the table that looks a finite factor up where the domain of a kernel also has real factors.
LOOKUP_WIDTH = 16

BYTES_PER_PARAMETER = 4


def parts(arrow: Arrow) -> tuple[Arrow, ...]:
    """The arrows that an expression is made of, as written."""
    match arrow:
        case m.Compose(stages=items) | m.Tensor(factors=items) | m.Fan(branches=items):
            return items
        case m.Scan(cell=inner) | m.Lift(arrow=inner):
            return (inner,)
        case m.Stack(body=inner) | m.Repeat(body=inner) | m.Residual(body=inner):
            return (inner,)
        case (
            m.TakeFactor(base=inner)
            | m.Dagger(base=inner)
            | m.PartialTrace(base=inner)
            | m.DropFactors(base=inner)
            | m.Freeze(base=inner)
        ):
            return (inner,)
        case m.Observed(arrow=inner) if inner is not None:
            return (inner,)
        case _:
            return ()


def walk(arrow: Arrow) -> Iterator[Arrow]:
    """The arrow and everything in it, outermost first."""
    yield arrow
    for part in parts(arrow):
        yield from walk(part)


def innermost(root: Arrow, unit: int, offset: int) -> Arrow | None:
    """The smallest part of an expression whose text holds the offset."""
    found: Arrow | None = None
    for arrow in walk(root):
        origin = arrow.origin
        if origin.unit == unit and origin.span.start <= offset <= origin.span.end:
            found = arrow
    return found


def operator_at(root: Arrow, unit: int, offset: int) -> tuple[m.Compose, int] | None:
    """The composition and the index of its `>>` at an offset."""
    for arrow in walk(root):
        if isinstance(arrow, m.Compose):
            for index, origin in enumerate(arrow.operators):
                if origin.unit == unit and origin.span.start <= offset <= origin.span.end:
                    return arrow, index
    return None


def arrow_named(model: Model, name: str) -> Arrow | m.Program | None:
    """What a name stands for: a morphism, the expression of a let, or a program."""
    if name in model.arrows:
        return model.arrows[name]
    if name in model.lets:
        return model.lets[name].arrow
    return model.programs.get(name)


# ---------------------------------------------------------------- parameters


@dataclass(slots=True)
class Budget:
    """How many arrows may still be looked at."""

    left: int


def parameter_count(model: Model, arrow: Arrow | m.Program, budget: Budget | None = None) -> int | None:
    """Learned numbers in an arrow; None while a size is unknown, or the weights of a deduction are (`weight_count`),
    and where the budget is used up.

    A name used twice counts once; each layer of a `stack` counts for itself.
    """
    try:
        return _count(model, arrow, set(), budget or Budget(MOST_VISITED))
    except (_UnknownSize, _UsedUp):
        return None


class _UnknownSize(Exception):
    pass


class _UsedUp(Exception):
    pass


MOST_VISITED = 1_000_000


def _count(model: Model, root: Arrow | m.Program, seen: set[str], budget: Budget) -> int:
    total = 0
    pending = [root]
    while pending:
        budget.left -= 1
        if budget.left < 0:
            raise _UsedUp
        match pending.pop():
            case m.Program() as program:
                total += sum(_weights(model, name, seen) for name in _deductions(program))
                pending += program_arrows(program)
            case m.Ref(name=name):
                target = None if name in seen else arrow_named(model, name)
                seen.add(name)
                pending += [] if target is None else [target]
            case m.Instance(program=program):
                pending.append(program)
            case m.Stack(body=body, count=count):
                # Fresh copies: what is shared inside one layer counts once in it, and once more in the next.
                total += count * _count(model, body, set(), budget)
            case arrow:
                total += _own_parameters(arrow)
                pending += parts(arrow)
    return total


def _deductions(program: m.Program) -> Iterator[str]:
    for step in all_steps(program.steps):
        if isinstance(step, m.LetModel | m.ScoreModel):
            yield from (part.name for part in expressions(step.value) if isinstance(part, m.DeductionRef))


def _weights(model: Model, deduction: str, seen: set[str]) -> int:
    found = model.deductions.get(deduction)
    if found is None or deduction in seen:
        return 0
    seen.add(deduction)
    count = weight_count(found)
    if count is None:
        raise _UnknownSize
    return count


def _own_parameters(arrow: Arrow) -> int:
    """Learned numbers of one declared arrow (docs/reference.md#roles); 0 for what has none of its own."""
    match arrow:
        case m.Embed():
            return _product(_finite_sizes(arrow.domain.space)) * _width(arrow.codomain.space)
        case m.LinearMap(rank=rank, bias=bias):
            rows, columns = _width(arrow.domain.space), _width(arrow.codomain.space)
            weight = rows * columns if rank is None else rank * (rows + columns)
            return weight + (columns if bias else 0)
        case m.Norm():
            return 2 * _width(arrow.codomain.space)
        case m.Attention():
            size = _width(item_of(arrow.codomain.space))
            return 4 * size * (size + 1)
        case m.Position(max_length=length):
            return length * _width(item_of(arrow.codomain.space))
        case m.Latent():
            return _product(_finite_sizes(arrow.domain.space)) * _product(_finite_sizes(arrow.codomain.space))
        case m.Kernel():
            return _kernel_parameters(arrow)
        case m.Scan(learned_init=True, state=state):
            return _width(state.space)
        case _:
            return 0


def _kernel_parameters(kernel: m.Kernel) -> int:
    if kernel.fixed is not None:
        return 0
    domain, codomain = item_of(kernel.domain.space), item_of(kernel.codomain.space)
    if kernel.family is None:
        raw = _product(_finite_sizes(codomain))
    elif kernel.family in FAMILIES:
        try:
            raw = raw_width(FAMILIES[kernel.family], codomain, dict(kernel.options))
        except (TypeError, ValueError):
            raise _UnknownSize from None  # the family does not fit its codomain, which is a diagnostic of its own
    else:
        return 0
    finite = [_size(factor.size) for factor in factors_of(domain) if isinstance(factor, Finite)]
    if len(finite) == len(factors_of(domain)):
        return _product(finite) * raw
    lookup = sum(size * LOOKUP_WIDTH for size in finite)
    inputs = sum(_width(factor) for factor in factors_of(domain) if not isinstance(factor, Finite))
    inputs += LOOKUP_WIDTH * len(finite)
    if kernel.param_source == "linear":
        return lookup + (inputs + 1) * raw
    hidden = kernel.hidden_dim
    return lookup + (inputs + 1) * hidden + (hidden + 1) * hidden + (hidden + 1) * raw


def _finite_sizes(space: Space) -> list[int]:
    return [_size(factor.size) for factor in factors_of(item_of(space)) if isinstance(factor, Finite)]


def _product(sizes: list[int]) -> int:
    total = 1
    for size in sizes:
        total *= size
    return total


def _width(space: Space) -> int:
    return _size(width(space))


def _size(dim: Dim) -> int:
    if isinstance(dim, Linear):
        raise _UnknownSize
    return int(dim)


def program_arrows(program: m.Program) -> Iterator[Arrow]:
    """Every arrow that the steps of a program name."""
    for step in all_steps(program.steps):
        match step:
            case m.SampleModel(site=site) | m.ObserveModel(site=site) | m.MarginalizeModel(site=site):
                if isinstance(site.draw, m.ArrowDraw):
                    yield site.draw.arrow
                    for argument in site.draw.args or ():
                        yield from expression_arrows(argument)
                else:
                    for _, argument in site.draw.args:
                        yield from expression_arrows(argument)
            case m.LetModel(value=value) | m.ScoreModel(value=value):
                yield from expression_arrows(value)


def all_steps(steps: tuple[m.StepModel, ...]) -> Iterator[m.StepModel]:
    """Steps in order, those of `marginalize` blocks included."""
    for step in steps:
        yield step
        if isinstance(step, m.MarginalizeModel):
            yield from all_steps(step.body)


def expression_arrows(expr: m.Expr) -> Iterator[Arrow]:
    """Every arrow in an arithmetic expression."""
    for part in expressions(expr):
        if isinstance(part, m.Matrix | m.Apply):
            yield part.arrow


def values(step: m.StepModel) -> Iterator[m.Expr]:
    """The arithmetic that a step is written with."""
    if isinstance(step, m.LetModel | m.ScoreModel):
        yield step.value
        return
    draw = step.site.draw
    yield from (value for _, value in draw.args) if isinstance(draw, m.FamilyDraw) else draw.args or ()
    options = (step.site.via, step.site.mask, step.site.weight, step.site.at)
    yield from (value for value in options if value is not None)


def expressions(expr: m.Expr) -> Iterator[m.Expr]:
    """An expression and everything in it, outermost first."""
    yield expr
    for part in _operands(expr):
        yield from expressions(part)


def _operands(expr: m.Expr) -> tuple[m.Expr, ...]:
    match expr:
        case m.Apply(args=args):
            return args
        case m.Builtin(args=args, keywords=keywords):
            return (*args, *(value for _, value in keywords))
        case m.Index(base=base, indices=items) | m.Method(base=base, args=items):
            return (base, *items)
        case m.FieldOf(base=base):
            return (base,)
        case m.ListOf(items=items):
            return items
        case m.Function(body=body):
            return (body,)
        case m.FactorTable(body=body, cases=cases):
            return (*((body,) if body is not None else ()), *(value for _, value in cases))
        case _:
            return ()


# ---------------------------------------------------------------- words


def memory_text(count: int) -> str:
    """'132,352 parameters (517 kB)', in single precision."""
    size = float(count * BYTES_PER_PARAMETER)
    unit = "B"
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            break
        size /= 1000
    figure = f"{size:.0f}" if unit == "B" or size >= 100 else f"{size:.1f}"
    return f"{count:,} parameter{'' if count == 1 else 's'} ({figure} {unit})"


def shape_text(space: Space) -> str:
    """The tensors that a value of a space is: '(B, L)', '(B, 64), (B, 128)'."""
    if isinstance(space, Product):
        shapes = ", ".join(shape_text(factor) for _, factor in space.head)
        return shapes if len(space.head) == space.count else f"{shapes}, … ({space.count:,} tensors)"
    length = ", L" if isinstance(space, Seq) else ""
    inner = item_of(space)
    if isinstance(inner, Product):
        return ", ".join(shape_text(Seq(factor)) for factor in inner.factors)
    if isinstance(inner, Finite):
        return f"(B{length})" if length else "(B,)"
    size = width(inner)
    return f"(B{length}, {'?' if isinstance(size, Linear) else int(size)})"


def plate_shape(plate: Named | None, element: Named | None) -> str:
    """The tensor that the draws of a plate are: '(B, 8)' for scalars, '(B, 20, 3)' for vectors."""
    axes = ["B"]
    for factor in factors_of(plate.space) if plate is not None else ():
        size = factor.size if isinstance(factor, Finite) else width(factor)
        axes.append("?" if isinstance(size, Linear) else str(int(size)))
    if element is None:
        return f"({', '.join(axes)})"
    if plate is None:
        return shape_text(element.space)
    inner = width(element.space)
    if not isinstance(element.space, Finite) and inner != 1:
        axes.append("?" if isinstance(inner, Linear) else str(int(inner)))
    return f"({', '.join(axes)})"


def density_text(density: Density) -> str:
    """How a density is computed, in words; '' for what has none because it is deterministic."""
    match density.kind:
        case "exact":
            return "exact density"
        case "conditional":
            noun = "innovation" if density.innovations == 1 else "innovations"
            return f"exact density given {density.innovations} {noun}"
        case "summed":
            return f"exact density, summed over {density.summed:,} intermediate values"
        case "score":
            return "score-function gradient: a finite intermediate is too large to be summed out"
        case "none":
            return "no density: a deterministic arrow follows the last draw"
        case _:
            return ""


def sort_word(sort: m.Sort) -> str:
    return {m.Sort.DETERMINISTIC: "deterministic", m.Sort.SAMPLED: "sampled", m.Sort.TENSOR: "tensor"}[sort]


def stages_text(arrow: m.Compose) -> str:
    """A pipeline with the space between each two stages: 'Seq Token → Seq Embedded → Hidden'."""
    spaces = [arrow.stages[0].domain, *(stage.codomain for stage in arrow.stages)]
    return " → ".join(space.written for space in spaces)


def spans_name(origin: Origin, unit: int, start: int, end: int) -> bool:
    """Whether an arrow's origin is exactly the text from `start` to `end`."""
    return origin.unit == unit and origin.span == (start, end)


def is_sequence(named: Named) -> bool:
    return any(isinstance(factor, Seq) for factor in factors_of(named.space))
