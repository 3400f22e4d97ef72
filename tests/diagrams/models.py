"""Typed models made by hand, so that diagrams are tested without the checker."""

from itertools import count

from qvr_core.semantics.types.diagnostics import Origin
from qvr_core.semantics.types.model.arrows import (
    Arrow,
    Compose,
    Density,
    Embed,
    Fan,
    Kernel,
    LinearMap,
    Ref,
    Scan,
    Sort,
    Stack,
)
from qvr_core.semantics.types.model.expressions import Bound, Builtin, Constant, Data, Expr, ValueType
from qvr_core.semantics.types.model.families import FamilyDraw
from qvr_core.semantics.types.model.file import LetArrow, Model
from qvr_core.semantics.types.model.programs import Input, Program
from qvr_core.semantics.types.model.steps import (
    ArrowDraw,
    DrawModel,
    LetModel,
    ObserveModel,
    SampleModel,
    Site,
    StepModel,
)
from qvr_core.semantics.types.spaces import Finite, Named, Product, Real, Seq, Space
from qvr_core.syntax.tree.names import Span

_units = count()
EXACT = Density("exact")


def place() -> Origin:
    return Origin(next(_units), Span(0, 1))


def real(name: str, size: int) -> Named:
    return Named(Real((size,)), name)


def finite(name: str, size: int) -> Named:
    return Named(Finite(size, name), name)


def times(*parts: Named) -> Named:
    factors: list[Space] = []
    names: list[str | None] = []
    for part in parts:
        factors.append(part.space)
        names.append(part.written)
    return Named(Product(tuple(factors), tuple(names)), " * ".join(part.written for part in parts))


def seq(named: Named) -> Named:
    return Named(Seq(named.space), f"Seq {named.written}")


def base(domain: Named, codomain: Named, sort: Sort = Sort.SAMPLED) -> dict:
    return {"domain": domain, "codomain": codomain, "sort": sort, "origin": place(), "density": EXACT}


def embed(name: str, domain: Named, codomain: Named) -> Embed:
    return Embed(name=name, **base(domain, codomain, Sort.DETERMINISTIC))


def kernel(name: str, domain: Named, codomain: Named, family: str = "Normal") -> Kernel:
    return Kernel(
        name=name, family=family, fixed=None, scale=0.1, param_source="mlp", hidden_dim=64, options=(),
        **base(domain, codomain),
    )  # fmt: skip


def ref(arrow: Arrow | Program, name: str | None = None) -> Ref:
    return Ref(name=name or arrow.name, **base(arrow.domain, arrow.codomain, arrow.sort))


def chain(*stages: Arrow) -> Compose:
    return Compose(
        stages=stages, operators=tuple(place() for _ in stages[1:]), **base(stages[0].domain, stages[-1].codomain)
    )


def scan(cell: Arrow, item: Named, state: Named, *, backward: bool = False) -> Scan:
    return Scan(
        cell=cell, item=item, state=state, emit_all=False, backward=backward, inferred=backward, learned_init=False,
        **base(seq(item), state),
    )  # fmt: skip


def let(name: str, arrow: Arrow) -> LetArrow:
    return LetArrow(name=name, arrow=arrow, origin=place())


def site(name: str, space: Named, draw: DrawModel, **more: object) -> Site:
    given = {
        "bound": ((name, space),), "plate": None, "element": None, "density": EXACT, "over": None,
        "via": None, "mask": None, "weight": None, "at": None, "row_local": False,
    }  # fmt: skip
    return Site(name=name, draw=draw, origin=place(), **(given | more))


def draw(arrow: Arrow, *names: str) -> ArrowDraw:
    args = tuple(bound(name) for name in names) or None
    return ArrowDraw(arrow=arrow, args=args, origin=place())


def family(name: str, *args: Expr) -> FamilyDraw:
    return FamilyDraw(family=name, args=tuple((str(i), arg) for i, arg in enumerate(args)), origin=place())


def bound(name: str) -> Bound:
    return Bound(name=name, type=ValueType(None), origin=place())


def data(name: str) -> Data:
    return Data(name=name, type=ValueType(None), origin=place())


def number(value: float) -> Constant:
    return Constant(value=value, type=ValueType(Real((1,))), origin=place())


def call(function: str, *args: Expr) -> Builtin:
    return Builtin(function=function, args=args, type=ValueType(Real((1,))), origin=place())


def program(
    name: str,
    domain: Named,
    codomain: Named,
    steps: tuple[StepModel, ...],
    returns: tuple[str, ...],
    *,
    inputs: tuple[tuple[str | None, Named], ...] | None = None,
    uses_input: bool = True,
) -> Program:
    given = inputs if inputs is not None else ((None, domain),)
    return Program(
        name=name,
        inputs=tuple(Input(name=label, space=space) for label, space in given),
        template=(),
        declared_domain=domain,
        declared_codomain=codomain,
        domain=domain,
        codomain=codomain,
        sort=Sort.SAMPLED,
        steps=steps,
        returns=tuple((None, label) for label in returns),
        tupled=len(returns) > 1,
        data=(),
        uses_input=uses_input,
        effects=frozenset(),
        density=EXACT,
        origin=place(),
    )


def model(arrows: list[Arrow], lets: list[LetArrow], programs: list[Program]) -> Model:
    return Model(
        objects={},
        arrows={arrow.name: arrow for arrow in arrows},
        replicated={},
        lets={known.name: known for known in lets},
        programs={known.name: known for known in programs},
        compositions={},
        deductions={},
        exports=(),
        order=tuple(known.name for known in (*arrows, *lets, *programs)),
    )


def bidirectional(back: int = 64) -> Model:
    """The bidirectional language model; `back` is the width of the backward state."""
    token, embedded, combined = finite("Token", 256), real("Embedded", 64), real("Combined", 128)
    forward, backward = real("FwdHidden", 64), real("BwdHidden", back)
    tok_embed = embed("tok_embed", token, embedded)
    fwd_cell = kernel("fwd_cell", times(embedded, forward), forward)
    bwd_cell = kernel("bwd_cell", times(embedded, backward), backward)
    combine = kernel("combine", combined, combined)
    lm_head = kernel("lm_head", combined, token, "Categorical")
    forward_path = let("forward_path", chain(ref(tok_embed), scan(ref(fwd_cell), embedded, forward)))
    backward_path = let("backward_path", chain(ref(tok_embed), scan(ref(bwd_cell), embedded, backward, backward=True)))
    branches = (ref(forward_path.arrow, "forward_path"), ref(backward_path.arrow, "backward_path"))
    fan = Fan(branches=branches, replicated=None, **base(seq(token), times(forward, backward)))
    backbone = let("backbone", chain(fan, ref(combine)))
    body = (
        SampleModel(site=site("h", combined, draw(ref(backbone.arrow, "backbone")))),
        ObserveModel(site=site("masked_token", token, draw(ref(lm_head), "h"), element=token)),
    )
    return model(
        [tok_embed, fwd_cell, bwd_cell, combine, lm_head],
        [forward_path, backward_path, backbone],
        [program("bidirectional_rnn_lm", token, token, body, ("masked_token",))],
    )


def schools() -> Model:
    """Eight schools: plates, data and a let."""
    school, one = finite("School", 8), real("Real 1", 1)
    over = {"plate": school}
    theta = LetModel(
        names=("theta",), value=call("add", bound("mu"), call("mul", bound("tau"), bound("z"))), origin=place()
    )
    body = (
        SampleModel(site=site("mu", one, family("Normal", number(0.0), number(5.0)))),
        SampleModel(site=site("tau", one, family("HalfCauchy", number(5.0)))),
        SampleModel(site=site("z", real("School", 8), family("Normal", number(0.0), number(1.0)), **over)),
        theta,
        ObserveModel(site=site("y", real("School", 8), family("Normal", bound("theta"), data("sigma")), **over)),
    )
    return model([], [], [program("eight_schools", school, school, body, ("mu",), uses_input=False)])


def long_chain(count: int) -> Model:
    """A stack of a let of `count` linear maps, for collapsing."""
    hidden = real("Hidden", 8)
    given = {"bias": True, "rank": None, "init": "default"}
    maps = [LinearMap(name=f"f{i}", **given, **base(hidden, hidden, Sort.DETERMINISTIC)) for i in range(count)]
    block = let("block", chain(*(ref(arrow) for arrow in maps)))
    deep = let("deep", Stack(body=ref(block.arrow, "block"), count=3, **base(hidden, hidden)))
    return model(list(maps), [block, deep], [])
