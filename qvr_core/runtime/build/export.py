"""An exported arrow as a program of one step, so that a let answers everything that a program does."""

from __future__ import annotations

from qvr_core.runtime.build.build import Builder
from qvr_core.runtime.values.arrow import ArrowModule
from qvr_core.semantics.types import model as m

SITE = "value"
"""The one site of an exported arrow."""


def as_program(name: str, arrow: m.Arrow, builder: Builder) -> ArrowModule:
    """`sample value <- arrow; return value` on the arrow's domain; programs and tensor arrows stay what they are."""
    if isinstance(arrow, m.Ref) and arrow.name in builder.model.programs:
        return builder.named(arrow.name)
    if isinstance(arrow, m.Instance) or arrow.sort is m.Sort.TENSOR:
        return builder.arrow(arrow)
    return builder.built(one_step(name, arrow))


def one_step(name: str, arrow: m.Arrow, *, observed: bool = False) -> m.Program:
    """The program of one step that draws from an arrow, or that observes what the arrow gives."""
    site = m.Site(
        name=SITE,
        bound=((SITE, arrow.codomain),),
        ascription=m.Ascription.NONE,
        ascribed=None,
        draw=m.ArrowDraw(arrow=arrow, args=None, origin=arrow.origin),
        density=arrow.density,
        over=None,
        via=None,
        mask=None,
        weight=None,
        at=None,
        row_local=False,
        origin=arrow.origin,
    )
    step = m.ObserveModel(site=site) if observed else m.SampleModel(site=site)
    return m.Program(
        name=name,
        inputs=(m.Input(name=None, space=arrow.domain),),
        template=(),
        declared_domain=arrow.domain,
        declared_codomain=arrow.codomain,
        domain=arrow.domain,
        codomain=arrow.codomain,
        sort=arrow.sort,
        steps=(step,),
        returns=((None, SITE),),
        tupled=False,
        data=(),
        uses_input=True,
        effects=frozenset({"Sample"}) if arrow.sort is m.Sort.SAMPLED else frozenset({"Pure"}),
        density=arrow.density,
        origin=arrow.origin,
    )
