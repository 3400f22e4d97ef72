"""Typed model nodes written by hand, so that the runtime is tested without the checker."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict

from qvr_core.runtime.build.build import Builder
from qvr_core.runtime.values.arrow import ArrowModule
from qvr_core.semantics.types.diagnostics import Origin
from qvr_core.semantics.types.model.arrows import (
    Arrow,
    Compose,
    Density,
    Embed,
    Fan,
    Kernel,
    Latent,
    Lift,
    Observed,
    Prior,
    Ref,
    Scan,
    Sort,
    Stack,
    Tensor,
)
from qvr_core.semantics.types.model.file import LetArrow, Model
from qvr_core.semantics.types.spaces import Finite, Named, Product, Real, Seq, Space
from qvr_core.syntax.tree.names import Span

ORIGIN = Origin(0, Span(0, 0))
EXACT = Density("exact")


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


class Shared(TypedDict):
    """What every arrow has."""

    domain: Named
    codomain: Named
    sort: Sort
    origin: Origin
    density: Density


def base(domain: Named, codomain: Named, sort: Sort = Sort.SAMPLED) -> Shared:
    return {"domain": domain, "codomain": codomain, "sort": sort, "origin": ORIGIN, "density": EXACT}


def embed(name: str, size: Named, width: Named) -> Embed:
    return Embed(name=name, **base(size, width, Sort.DETERMINISTIC))


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
) -> Kernel:
    return Kernel(
        name=name,
        family=family,
        fixed=fixed,
        scale=scale,
        param_source=param_source,
        hidden_dim=hidden_dim,
        options=tuple(options.items()),
        **base(domain, codomain),
    )


def name_of(node: Arrow) -> str:
    """The name of a declared arrow."""
    return str(getattr(node, "name", ""))


def ref(node: Arrow, name: str | None = None) -> Ref:
    return Ref(name=name or name_of(node), **base(node.domain, node.codomain, node.sort))


def compose(*stages: Arrow) -> Compose:
    sort = Sort.SAMPLED if any(s.sort is Sort.SAMPLED for s in stages) else Sort.DETERMINISTIC
    return Compose(
        stages=stages, operators=(ORIGIN,) * (len(stages) - 1), **base(stages[0].domain, stages[-1].codomain, sort)
    )


def tensor(*factors: Arrow) -> Tensor:
    domain, codomain = product(*(f.domain for f in factors)), product(*(f.codomain for f in factors))
    return Tensor(factors=factors, **base(domain, codomain))


def fan(*branches: Arrow) -> Fan:
    codomain = product(*(b.codomain for b in branches))
    return Fan(branches=branches, replicated=None, **base(branches[0].domain, codomain))


def scan(
    cell: Arrow,
    item: Named,
    state: Named,
    *,
    emit_all: bool = False,
    backward: bool = False,
    inferred: bool = False,
    learned_init: bool = False,
) -> Scan:
    return Scan(
        cell=cell,
        item=item,
        state=state,
        emit_all=emit_all,
        backward=backward,
        inferred=inferred,
        learned_init=learned_init,
        **base(seq(item), seq(state) if emit_all else state, cell.sort),
    )


def stack(body: Arrow, count: int) -> Stack:
    return Stack(body=body, count=count, **base(body.domain, body.codomain))


def latent(
    name: str,
    domain: Named,
    codomain: Named,
    algebra: str,
    *,
    scale: float | None = None,
    init: str = "auto",
    prior: Prior | None = None,
) -> Latent:
    shared = base(domain, codomain, Sort.TENSOR)
    return Latent(name=name, algebra=algebra, scale=scale, init=init, prior=prior, **shared)


def observed(name: str, domain: Named, codomain: Named, algebra: str, source: str | None = None) -> Observed:
    return Observed(name=name, algebra=algebra, source=source, arrow=None, **base(domain, codomain, Sort.TENSOR))


def matrices(kind: type, domain: Named, codomain: Named, **fields: object) -> Arrow:
    """A combinator of tensor arrows."""
    return kind(**fields, **base(domain, codomain, Sort.TENSOR))


def lift(arrow: Arrow) -> Lift:
    return Lift(arrow=arrow, **base(seq(arrow.domain), seq(arrow.codomain), arrow.sort))


def file(*arrows: Arrow, lets: Mapping[str, Arrow] | None = None) -> Model:
    return Model(
        objects={},
        arrows={name_of(arrow): arrow for arrow in arrows},
        replicated={},
        lets={name: LetArrow(name=name, arrow=arrow, origin=ORIGIN) for name, arrow in (lets or {}).items()},
        programs={},
        compositions={},
        deductions={},
        exports=(),
        order=(),
    )


def build(node: Arrow, *arrows: Arrow, lets: Mapping[str, Arrow] | None = None) -> ArrowModule:
    return Builder(file(*arrows, lets=lets)).arrow(node)
