"""What a step is made of, as its text and its type say it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from qvr_core.ide.to_indices.elements import Change, NotByElement
from qvr_core.semantics.types.axes import set_of
from qvr_core.semantics.types.model.expressions import Expr
from qvr_core.semantics.types.model.families import FamilyDraw
from qvr_core.semantics.types.model.steps import (
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
from qvr_core.semantics.types.spaces import Finite, Named, factors_of
from qvr_core.semantics.types.walk import operands, values, walk
from qvr_core.syntax.tree.arithmetic import Variable
from qvr_core.syntax.tree.names import Name, Span
from qvr_core.syntax.tree.objects import ObjectExpr, ParenObject, ProductExpr
from qvr_core.syntax.tree.options import Option, Options
from qvr_core.syntax.tree.steps import LetStep, MarginalizeStep, ObserveStep, PredictStep, SampleStep
from qvr_core.syntax.tree.units import Placed
from qvr_core.syntax.walk import walk as tree_walk

Drawn = SampleStep | ObserveStep | PredictStep


def all_placed(steps: Sequence[Placed[Any]]) -> Iterator[Placed[Any]]:
    """Steps with those of their blocks."""
    for placed in steps:
        yield placed
        yield from all_placed(placed.children)


def unit_of(step: StepModel) -> int:
    """The unit that a step is written in."""
    return step.origin.unit if isinstance(step, LetModel | ScoreModel | ParamModel) else step.site.origin.unit


def site_of(step: StepModel | None) -> Site | None:
    """What a step draws; None of one that draws nothing."""
    match step:
        case (
            SampleModel(site=site) | ObserveModel(site=site) | PredictModel(site=site)
            | MarginalizeModel(site=site)
        ):  # fmt: skip
            return site
        case _:
            return None


def is_inlined(step: Drawn | MarginalizeStep, site: Site) -> bool:
    """Whether the site is one of a template that the step calls: it is drawn with other arguments than stand here."""
    if not isinstance(site.draw, FamilyDraw):
        return False
    if not step.draw.args or not site.draw.args:
        return site.draw.family != step.draw.name.text
    there = {arg.value.span for arg in step.draw.args}
    return not any(part.origin.span in there for _, value in site.draw.args for part in walk(value, operands))


def plate_of(site: Site) -> Named | None:
    """The sets that a site has a draw for."""
    return site.plate


def option_of(options: Options | None, key: str) -> Option | None:
    """An option by its name."""
    return next((one for one in options.items if one.key.text == key), None) if options is not None else None


def name_of_option(option: Option) -> str:
    """The name that stands behind an option."""
    value: Any = option.value
    name = getattr(value, "name", None) or getattr(value, "func", None)
    text = getattr(name, "text", None)
    if text is None:
        raise NotByElement(f"`{option.key.text}` is no name here")
    return text


def named_by(step: Drawn) -> Name:
    """The name that stands for a draw."""
    return step.pattern.names[0] if isinstance(step, SampleStep) else step.name


def name_span(step: Any) -> Span:
    """Where a step is told of."""
    return step.pattern.span if isinstance(step, SampleStep | LetStep) else step.name.span


def mentions(step: Any, name: str) -> bool:
    """Whether a name stands in a step."""
    return step is not None and any(isinstance(one, Variable) and one.name.text == name for one in tree_walk(step))


def nominal(factor: Any) -> str | None:
    """What a finite set is called."""
    return factor.nominal if isinstance(factor, Finite) else None


def factors_written(space: ObjectExpr) -> tuple[ObjectExpr, ...]:
    """The factors of a product as they are written."""
    while isinstance(space, ParenObject):
        space = space.inner
    return space.factors if isinstance(space, ProductExpr) else (space,)


def text_of_draw(step: Drawn | MarginalizeStep, text: str) -> str:
    """What of a step its indices must not mean already."""
    return text[step.draw.span.start : step.span.end]


def sets_written(step: Drawn, site: Site, plate: Named, text: str) -> tuple[list[str], str]:
    """The sets of the plates as they are written, and what stands behind them: the space of an element."""
    count = len(factors_of(plate.space))
    named = [set_of(name) if (name := nominal(factor)) else "" for factor in factors_of(plate.space)]
    if step.space is None or site.element is not None:
        if "" in named:
            raise NotByElement(f"`{plate.written}` has no name")
        return named, "" if step.space is None else text[step.space.span.start : step.space.span.end]
    factors = [text[part.span.start : part.span.end] for part in factors_written(step.space)]
    if len(factors) >= count:
        return factors[:count], " * ".join(factors[count:])
    if "" in named:
        raise NotByElement(f"`{plate.written}` has no name")
    return named, ""


def by_place(step: StepModel, unit: int) -> dict[Span, Expr]:
    """The expressions of a step by their places."""
    found: dict[Span, Expr] = {}
    for value in values(step):
        for part in walk(value, operands):
            if part.origin.unit == unit:
                found.setdefault(part.origin.span, part)
    return found


def without(options: Options | None, gone: set[str], end: int, text: str) -> list[Change]:
    """Options without some of them; with all of them gone, no brackets either."""
    if options is None:
        return []
    kept = [one for one in options.items if one.key.text not in gone]
    if len(kept) == len(options.items):
        return []
    if not kept:
        start = options.span.start
        while start > end and text[start - 1] in " \t":
            start -= 1
        return [Change(Span(start, options.span.end), "")]
    written = ", ".join(text[one.span.start : one.span.end] for one in kept)
    return [Change(options.span, f"[{written}]")]
