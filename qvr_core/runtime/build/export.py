"""An exported arrow as a program of one step, so that a let answers everything that a program does."""

from __future__ import annotations

from qvr_core.runtime.build.build import Builder
from qvr_core.runtime.values.arrow import ArrowModule
from qvr_core.runtime.values.errors import RuntimeProblem
from qvr_core.semantics.types.counted import counted, in_file
from qvr_core.semantics.types.model.arrows import Arrow, Instance, Ref, Sort
from qvr_core.semantics.types.model.expressions import ValueType
from qvr_core.semantics.types.model.file import Model
from qvr_core.semantics.types.model.programs import DataName, Input, Program
from qvr_core.semantics.types.model.steps import ArrowDraw, ObserveModel, SampleModel, Site

SITE = "value"
"""The one site of an exported arrow."""


def as_program(name: str, arrow: Arrow, builder: Builder) -> ArrowModule:
    """`sample value <- arrow; return value` on the arrow's domain; programs and tensor arrows stay what they are."""
    if isinstance(arrow, Ref) and arrow.name in builder.model.programs:
        return builder.named(arrow.name)
    if isinstance(arrow, Instance) or arrow.sort is Sort.TENSOR:
        return builder.arrow(arrow)
    return builder.built(one_step(name, arrow, builder.model))


def one_step(name: str, arrow: Arrow, model: Model, *, observed: bool = False) -> Program:
    """The program of one step that draws from an arrow, or that observes what the arrow gives; what programs inside
    observe are its data.  Raises `RuntimeProblem` where two of them have one name."""
    inside = [one.step for one in counted(arrow, in_file(model)) if one.word == "observe"]
    if len(set(inside)) < len(inside):
        twice = next(one for one in inside if inside.count(one) > 1)
        raise RuntimeProblem(f"`{name}` observes `{twice}` twice inside: give one of them another name")
    site = Site(
        name=SITE,
        bound=((SITE, arrow.codomain),),
        plate=None,
        element=None,
        draw=ArrowDraw(arrow=arrow, args=None, origin=arrow.origin),
        density=arrow.density,
        over=None,
        via=None,
        mask=None,
        weight=None,
        at=None,
        row_local=False,
        origin=arrow.origin,
    )
    step = ObserveModel(site=site) if observed else SampleModel(site=site)
    return Program(
        name=name,
        inputs=(Input(name=None, space=arrow.domain),),
        template=(),
        declared_domain=arrow.domain,
        declared_codomain=arrow.codomain,
        domain=arrow.domain,
        codomain=arrow.codomain,
        sort=arrow.sort,
        steps=(step,),
        returns=((None, SITE),),
        tupled=False,
        data=tuple(DataName(name=one, type=ValueType(None), origin=arrow.origin, inside=True) for one in inside),
        uses_input=True,
        effects=frozenset({"Sample"}) if arrow.sort is Sort.SAMPLED else frozenset({"Pure"}),
        density=arrow.density,
        origin=arrow.origin,
    )
