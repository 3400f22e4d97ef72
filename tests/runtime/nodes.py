"""Typed model nodes written by hand, so that the runtime is tested without the checker."""

from __future__ import annotations

from collections.abc import Mapping

from qvr_core.runtime.build.build import Builder
from qvr_core.runtime.values.arrow import ArrowModule
from qvr_core.semantics.types import model as m
from qvr_core.semantics.types.diagnostics import Origin
from qvr_core.semantics.types.spaces import Finite, Named, Product, Real, Seq, Space
from qvr_core.syntax.tree import Span

ORIGIN = Origin(0, Span(0, 0))
EXACT = m.Density("exact")


def named(space: Space, written: str = "") -> Named:
    return Named(space, written)


def real(width: int) -> Named:
    return named(Real((width,)))


def finite(size: int, nominal: str | None = None) -> Named:
    return named(Finite(size, nominal))


def product(*spaces: Named) -> Named:
    return named(Product(tuple(s.space for s in spaces), (None,) * len(spaces)))


def seq(space: Named) -> Named:
    return named(Seq(space.space))


def base(domain: Named, codomain: Named, sort: m.Sort = m.Sort.SAMPLED) -> dict[str, object]:
    return {"domain": domain, "codomain": codomain, "sort": sort, "origin": ORIGIN, "density": EXACT}


def embed(name: str, size: Named, width: Named) -> m.Embed:
    return m.Embed(name=name, **base(size, width, m.Sort.DETERMINISTIC))  # type: ignore[arg-type]


def kernel(
    name: str,
    domain: Named,
    codomain: Named,
    family: str | None = "Normal",
    scale: float = 1.0,
    fixed: tuple[tuple[str, float], ...] | None = None,
    param_source: str = "mlp",
    hidden_dim: int = 64,
    **options: object,
) -> m.Kernel:
    return m.Kernel(
        name=name,
        family=family,
        fixed=fixed,
        scale=scale,
        param_source=param_source,
        hidden_dim=hidden_dim,
        options=tuple(options.items()),
        **base(domain, codomain),  # type: ignore[arg-type]
    )


def ref(node: m.Arrow, name: str | None = None) -> m.Ref:
    return m.Ref(name=name or node.name, **base(node.domain, node.codomain, node.sort))  # type: ignore


def compose(*stages: m.Arrow) -> m.Compose:
    sort = m.Sort.SAMPLED if any(s.sort is m.Sort.SAMPLED for s in stages) else m.Sort.DETERMINISTIC
    return m.Compose(
        stages=stages, operators=(ORIGIN,) * (len(stages) - 1), **base(stages[0].domain, stages[-1].codomain, sort)
    )  # type: ignore[arg-type]


def tensor(*factors: m.Arrow) -> m.Tensor:
    domain, codomain = product(*(f.domain for f in factors)), product(*(f.codomain for f in factors))
    return m.Tensor(factors=factors, **base(domain, codomain))  # type: ignore[arg-type]


def fan(*branches: m.Arrow) -> m.Fan:
    codomain = product(*(b.codomain for b in branches))
    return m.Fan(branches=branches, replicated=None, **base(branches[0].domain, codomain))  # type: ignore[arg-type]


def scan(cell: m.Arrow, item: Named, state: Named, **flags: bool) -> m.Scan:
    options = {"emit_all": False, "backward": False, "inferred": False, "learned_init": False, **flags}
    codomain = seq(state) if options["emit_all"] else state
    return m.Scan(cell=cell, item=item, state=state, **options, **base(seq(item), codomain, cell.sort))  # type: ignore


def stack(body: m.Arrow, count: int) -> m.Stack:
    return m.Stack(body=body, count=count, **base(body.domain, body.codomain))  # type: ignore[arg-type]


def latent(name: str, domain: Named, codomain: Named, algebra: str, **fields: object) -> m.Latent:
    settings = {"scale": None, "init": "auto", "prior": None, **fields}
    return m.Latent(name=name, algebra=algebra, **settings, **base(domain, codomain, m.Sort.TENSOR))  # type: ignore


def observed(name: str, domain: Named, codomain: Named, algebra: str, source: str | None = None) -> m.Observed:
    return m.Observed(name=name, algebra=algebra, source=source, arrow=None, **base(domain, codomain, m.Sort.TENSOR))  # type: ignore


def matrices(kind: type, domain: Named, codomain: Named, **fields: object) -> m.Arrow:
    """A combinator of tensor arrows."""
    return kind(**fields, **base(domain, codomain, m.Sort.TENSOR))


def lift(arrow: m.Arrow) -> m.Lift:
    return m.Lift(arrow=arrow, **base(seq(arrow.domain), seq(arrow.codomain), arrow.sort))  # type: ignore[arg-type]


def file(*arrows: m.Arrow, lets: Mapping[str, m.Arrow] | None = None) -> m.Model:
    return m.Model(
        objects={},
        arrows={arrow.name: arrow for arrow in arrows},  # type: ignore[union-attr]
        replicated={},
        lets={name: m.LetArrow(name=name, arrow=arrow, origin=ORIGIN) for name, arrow in (lets or {}).items()},
        programs={},
        compositions={},
        deductions={},
        exports=(),
        order=(),
    )


def build(node: m.Arrow, *arrows: m.Arrow, lets: Mapping[str, m.Arrow] | None = None) -> ArrowModule:
    return Builder(file(*arrows, lets=lets)).arrow(node)
