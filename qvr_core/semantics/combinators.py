"""Arrow expressions: names, `>>`, `@`, `fan`, and the calls of the other combinators (LANGUAGE.md 5)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from qvr_core.semantics.arrow_text import arrow_text, plain
from qvr_core.semantics.calls import CALLS, Call
from qvr_core.semantics.codes import (
    ALGEBRA_MISMATCH,
    BARE_REPLICATED,
    CALL_ARGUMENTS,
    COMPOSE_MISMATCH,
    FAN_MISMATCH,
    SAME_DIRECTION_FAN,
    SEQUENCE_MISMATCH,
    SHARED_WEIGHTS,
    SORT_MISMATCH,
    UNKNOWN_COMBINATOR,
    WRONG_KIND,
)
from qvr_core.semantics.density import DETERMINISTIC, beside, then
from qvr_core.semantics.diagnostics import Code, DeclarationSite, Edit, Fix, Origin, Related
from qvr_core.semantics.families import FAMILIES
from qvr_core.semantics.fits import fit
from qvr_core.semantics.model import (
    Arrow,
    Compose,
    Damaged,
    Fan,
    FromData,
    Identity,
    Instance,
    Lift,
    Ref,
    Sort,
    Tensor,
)
from qvr_core.semantics.postfix import check_postfix
from qvr_core.semantics.scope import (
    UNKNOWN,
    ArrowEntry,
    DamagedEntry,
    FamilyEntry,
    ObjectEntry,
    Scope,
    TemplateEntry,
    show,
)
from qvr_core.semantics.sequences import can_lift, lift
from qvr_core.semantics.spaces import Linear, Named, has_seq, is_finite, is_unknown, item_of, product, width
from qvr_core.semantics.spelling import closest
from qvr_core.semantics.wiring import algebra_of, scanned_direction
from qvr_core.syntax.tree import (
    ArrowCall,
    ArrowExpr,
    ArrowRef,
    ComposeExpr,
    Name,
    Number,
    PostfixExpr,
    Span,
    String,
    TensorExpr,
)


def check_arrow_expr(expr: ArrowExpr, scope: Scope, given: Named | None = None) -> Arrow:
    """The typed arrow that an expression denotes; reports what is wrong with it.

    `given` is the space that reaches it, where that is known: `last` and `mean_over_time` take their type from it.
    """
    expr = plain(expr)
    match expr:
        case ArrowRef(name=name):
            if name.text in _BARE_CALLS:
                return CALLS[name.text](Call(name, (), expr.span, given, scope, check_arrow_expr))
            return arrow_of(name, scope)
        case ComposeExpr():
            return _compose(expr, scope, given)
        case TensorExpr():
            return _tensor(expr, scope)
        case ArrowCall():
            return _call(expr, scope, given)
        case PostfixExpr():
            return check_postfix(expr, check_arrow_expr(expr.base, scope, given), scope)
        case _:
            return damaged(scope.origin(expr.span))


def damaged(origin: Origin) -> Damaged:
    """Stands for an arrow that could not be typed; it fits everywhere."""
    return Damaged(domain=UNKNOWN, codomain=UNKNOWN, sort=Sort.DETERMINISTIC, origin=origin, density=DETERMINISTIC)


_BARE_CALLS = ("last", "mean_over_time", "identity")


# ---------------------------------------------------------------- names


def arrow_of(name: Name, scope: Scope) -> Arrow:
    """The arrow that a name stands for, as a `Ref`; reports names that mean something else."""
    entry = scope.lookup(name.text)
    origin = scope.origin(name.span)
    if isinstance(entry, ArrowEntry):
        return Ref(
            name=entry.name,
            domain=entry.domain,
            codomain=entry.codomain,
            sort=entry.sort,
            origin=origin,
            density=entry.density,
        )
    if entry is None:
        _unknown_arrow(name, scope)
    elif isinstance(entry, FamilyEntry):
        _bare_replicated(entry, name, scope)
    elif not isinstance(entry, DamagedEntry):
        kinds: dict[type[object], str] = {
            ObjectEntry: "an object",
            TemplateEntry: "a program with parameters: call it with its arguments",
        }
        what = kinds.get(type(entry), "no arrow")
        related = (
            ()
            if name.text in scope.local
            else (Related(f"`{name.text}` is declared here", DeclarationSite(name.text)),)
        )
        scope.report(WRONG_KIND, f"an arrow is wanted here, but `{name.text}` is {what}", name.span, related)
    return damaged(origin)


def _unknown_arrow(name: Name, scope: Scope) -> None:
    if name.text in FAMILIES:
        message = f"an arrow is wanted here, but `{name.text}` is a family: declare a morphism `… ~ {name.text}`"
        scope.report(WRONG_KIND, message, name.span)
    elif name.text in CALLS:
        scope.report(CALL_ARGUMENTS, f"`{name.text}` wants arguments: `{name.text}(…)`", name.span)
    else:
        scope.unknown(name, "arrow")


def _bare_replicated(entry: FamilyEntry, name: Name, scope: Scope) -> None:
    copies = entry.copies
    listed = f"`{copies[0]}`" if len(copies) == 1 else f"`{copies[0]}` … `{copies[-1]}`"
    place = scope.origin(name.span)
    scope.report(
        BARE_REPLICATED,
        f"`{entry.name}` stands for {len(copies)} arrows, {listed}: choose one, or fan out over all of them",
        name.span,
        (Related(f"`{entry.name}` is replicated here", DeclarationSite(entry.name, "option:replicate")),),
        (
            Fix(f"Change to `fan({entry.name})`", (Edit(place, f"fan({entry.name})"),)),
            Fix(f"Change to `{copies[0]}`", (Edit(place, copies[0]),)),
        ),
    )


# ---------------------------------------------------------------- `>>`


def _compose(expr: ComposeExpr, scope: Scope, given: Named | None) -> Arrow:
    pieces, operators = _flatten(expr)
    stages: list[Arrow] = []
    for index, piece in enumerate(pieces):
        stage = check_arrow_expr(piece, scope, stages[-1].codomain if stages else given)
        if stages:
            _connect(stages, stage, pieces[index - 1], piece, operators[index - 1], scope)
        else:
            stages.append(stage)
    _hint_repeats(pieces, stages, scope)
    return composed(stages, [scope.origin(span) for span in operators], scope.origin(expr.span))


def composed(stages: Sequence[Arrow], operators: Sequence[Origin], origin: Origin) -> Compose:
    """`a >> b >> …` of stages that are known to fit."""
    density = stages[0].density
    for before, stage in pairwise(stages):
        density = then(density, before.codomain.space, stage.density)
    return Compose(
        domain=stages[0].domain,
        codomain=stages[-1].codomain,
        sort=_joint_sort(stages),
        origin=origin,
        density=density,
        stages=tuple(stages),
        operators=tuple(operators),
    )


def _flatten(expr: ComposeExpr) -> tuple[list[ArrowExpr], list[Span]]:
    pieces: list[ArrowExpr] = []
    operators: list[Span] = []
    for index, stage in enumerate(expr.stages):
        inner = plain(stage)
        if index:
            operators.append(expr.operators[index - 1])
        if isinstance(inner, ComposeExpr):
            more, between = _flatten(inner)
            pieces.extend(more)
            operators.extend(between)
        else:
            pieces.append(stage)
    return pieces, operators


def _connect(
    stages: list[Arrow], stage: Arrow, left: ArrowExpr, right: ArrowExpr, operator: Span, scope: Scope
) -> None:
    """Add `stage` after `stages`, lifting whichever side works on single elements."""
    given, wanted = stages[-1].codomain.space, stage.domain.space
    if has_seq(wanted) and not has_seq(given) and not is_unknown(given):
        if all(can_lift(earlier) for earlier in stages):
            stages[:] = [lift(earlier) for earlier in stages]
        else:
            _missing_sequence(stages, stage, left, right, operator, scope)
            stages.append(stage)
            return
    elif has_seq(given) and not has_seq(wanted) and not is_unknown(wanted):
        stage = lift(stage)
    _check_sorts(stages[-1], stage, left, right, operator, scope)
    scope.require_fit(
        stages[-1].codomain,
        stage.domain,
        operator,
        COMPOSE_MISMATCH,
        f"`{arrow_text(plain(left))}` gives",
        f"`{arrow_text(plain(right))}` wants",
        replica=_replica(stages[-1]),
    )
    stages.append(stage)


def _replica(arrow: Arrow) -> tuple[str, int] | None:
    """The replicated arrow that a fan goes over, and the width of one copy."""
    if isinstance(arrow, Lift):
        arrow = arrow.arrow
    if not isinstance(arrow, Fan) or arrow.replicated is None:
        return None
    size = width(item_of(arrow.branches[0].codomain.space))
    return None if isinstance(size, Linear) else (arrow.replicated, int(size))


def _missing_sequence(
    stages: list[Arrow], stage: Arrow, left: ArrowExpr, right: ArrowExpr, operator: Span, scope: Scope
) -> None:
    fixes: tuple[Fix, ...] = ()
    inner = plain(left)
    if isinstance(inner, ArrowCall) and inner.func.text == "scan":
        end = Span(inner.span.end - 1, inner.span.end - 1)
        fixes = (Fix("Give every state: `emit=all`", (Edit(scope.origin(end), ", emit=all"),), True),)
    scope.report(
        SEQUENCE_MISMATCH,
        f"`{arrow_text(left)}` gives one {show(stages[-1].codomain)}, but `{arrow_text(right)}` reads a sequence",
        operator,
        fixes=fixes,
    )


def _joint_sort(arrows: Sequence[Arrow]) -> Sort:
    sorts = {arrow.sort for arrow in arrows}
    if Sort.TENSOR in sorts:
        return Sort.TENSOR
    return Sort.SAMPLED if Sort.SAMPLED in sorts else Sort.DETERMINISTIC


def _check_sorts(first: Arrow, second: Arrow, left: ArrowExpr, right: ArrowExpr, operator: Span, scope: Scope) -> None:
    if Sort.TENSOR not in (first.sort, second.sort):
        return
    for arrow, expr in ((first, left), (second, right)):
        if arrow.sort is Sort.TENSOR or isinstance(arrow, Damaged | Identity):
            continue
        if is_finite(arrow.domain.space) and is_finite(arrow.codomain.space):
            continue  # a table of probabilities is a matrix too
        message = f"`>>` joins tensor arrows with tensor arrows, but `{arrow_text(expr)}` is none"
        scope.report(SORT_MISMATCH, message, operator)
        return
    one, other = algebra_of(first, scope), algebra_of(second, scope)
    if one is not None and other is not None and one != other:
        message = f"`{arrow_text(left)}` composes in `{one}`, but `{arrow_text(right)}` in `{other}`"
        scope.report(ALGEBRA_MISMATCH, message, operator)


def _hint_repeats(pieces: Sequence[ArrowExpr], stages: Sequence[Arrow], scope: Scope) -> None:
    for before, piece in pairwise(pieces):
        one, other = plain(before), plain(piece)
        if isinstance(one, ArrowRef) and isinstance(other, ArrowRef) and one.name.text == other.name.text:
            name = one.name.text
            if isinstance(scope.lookup(name), ArrowEntry):
                message = (
                    f"`{name}` stands here with the parameters that it has before; `stack({name}, 2)` has fresh ones"
                )
                scope.report(SHARED_WEIGHTS, message, other.span)


# ---------------------------------------------------------------- `@` and `fan`


def joined(parts: Sequence[Named]) -> Named:
    """The product of spaces, as the user would write it."""
    if len(parts) == 1:
        return parts[0]
    space = product((part.written if part.written.isidentifier() else None, part.space) for part in parts)
    return Named(space, " * ".join(f"({p.written})" if " + " in p.written else p.written for p in parts))


def _tensor(expr: TensorExpr, scope: Scope) -> Arrow:
    factors = [check_arrow_expr(factor, scope) for factor in expr.factors]
    for index in range(1, len(factors)):
        _check_sorts(
            factors[index - 1], factors[index], expr.factors[index - 1], expr.factors[index],
            expr.operators[index - 1], scope,
        )  # fmt: skip
    _hint_shared(expr.factors, scope)
    return Tensor(
        domain=joined([factor.domain for factor in factors]),
        codomain=joined([factor.codomain for factor in factors]),
        sort=_joint_sort(factors),
        origin=scope.origin(expr.span),
        density=beside([factor.density for factor in factors]),
        factors=tuple(factors),
    )


def _fan(call: Call) -> Arrow:
    scope = call.scope
    branches: list[tuple[Arrow, ArrowExpr]] = []
    replicated: str | None = None
    for arg in call.args:
        if arg.key is not None or isinstance(arg.value, Number | String):
            scope.report(CALL_ARGUMENTS, "`fan` takes arrows only", arg.span)
            continue
        inner = plain(arg.value)
        entry = scope.lookup(inner.name.text) if isinstance(inner, ArrowRef) else None
        if isinstance(entry, FamilyEntry) and isinstance(inner, ArrowRef):
            copies = [arrow_of(Name(copy, inner.name.span), scope) for copy in entry.copies]
            branches.extend((copy, inner) for copy in copies)
            replicated = entry.name if len(call.args) == 1 else None
            continue
        arrow = check_arrow_expr(inner, scope, call.given)
        if isinstance(arrow, Fan) and arrow.replicated is not None:
            branches.extend((branch, inner) for branch in arrow.branches)
            replicated = arrow.replicated if len(call.args) == 1 else None
        else:
            branches.append((arrow, inner))
    if not branches:
        if not call.args:
            scope.report(CALL_ARGUMENTS, "`fan` wants at least one arrow", call.span)
        return damaged(scope.origin(call.span))
    if replicated is None:
        _hint_shared([expr for _, expr in branches], scope)
        _hint_directions(branches, scope)
    return fanned(branches, replicated, call.span, scope)


def fanned(branches: Sequence[tuple[Arrow, ArrowExpr]], replicated: str | None, span: Span, scope: Scope) -> Fan:
    """All branches on one input: plain branches are lifted where others read sequences."""
    arrows = [arrow for arrow, _ in branches]
    if any(has_seq(arrow.domain.space) for arrow in arrows):
        arrows = [arrow if is_unknown(arrow.domain.space) else lift(arrow) for arrow in arrows]
    domain, first = arrows[0].domain, branches[0][1]
    seen: set[str] = set()
    for arrow, (_, expr) in zip(arrows[1:], branches[1:], strict=True):
        if is_unknown(domain.space) or (
            fit(domain.space, arrow.domain.space).problem is not None
            and fit(arrow.domain.space, domain.space).problem is None
        ):
            domain, first = arrow.domain, expr
            continue
        if (text := arrow_text(expr)) in seen:
            continue
        seen.add(text)
        scope.require_fit(
            domain, arrow.domain, expr.span, FAN_MISMATCH, f"`{arrow_text(first)}` reads", f"`{text}` reads"
        )
    return Fan(
        domain=domain,
        codomain=joined([arrow.codomain for arrow in arrows]),
        sort=_joint_sort(arrows),
        origin=scope.origin(span),
        density=beside([arrow.density for arrow in arrows]),
        branches=tuple(arrows),
        replicated=replicated,
    )


def _hint_shared(exprs: Sequence[ArrowExpr], scope: Scope) -> None:
    seen: set[str] = set()
    for expr in map(plain, exprs):
        if not isinstance(expr, ArrowRef) or not isinstance(scope.lookup(expr.name.text), ArrowEntry):
            continue
        name = expr.name.text
        if name in seen:
            message = (
                f"this branch has the same parameters as the other `{name}`; `replicate=` makes independent copies"
            )
            scope.report(SHARED_WEIGHTS, message, expr.span)
        seen.add(name)


def _hint_directions(branches: Sequence[tuple[Arrow, ArrowExpr]], scope: Scope) -> None:
    seen: dict[str, ArrowExpr] = {}
    for arrow, expr in branches:
        direction = scanned_direction(arrow, scope)
        if direction in seen and arrow_text(seen[direction]) != arrow_text(expr):
            message = f"`{arrow_text(seen[direction])}` and `{arrow_text(expr)}` both read the sequence {direction}"
            scope.report(SAME_DIRECTION_FAN, message, expr.span)
            return
        if direction is not None:
            seen[direction] = expr


# ---------------------------------------------------------------- calls


def _call(expr: ArrowCall, scope: Scope, given: Named | None) -> Arrow:
    name = expr.func
    call = Call(name, expr.args, expr.span, given, scope, check_arrow_expr)
    if name.text == "fan":
        return _fan(call)
    if name.text == "from_data":
        return _from_data(call)
    if name.text in CALLS:
        return CALLS[name.text](call)
    entry = scope.lookup(name.text)
    if isinstance(entry, TemplateEntry):
        return _instance(entry, expr, scope)
    if isinstance(entry, DamagedEntry):
        return damaged(scope.origin(expr.span))
    if isinstance(entry, ArrowEntry):
        message = f"`{name.text}` is an arrow, not a combinator: compose it with `>>`, or apply it in a program"
        scope.report(CALL_ARGUMENTS, message, name.span)
        return damaged(scope.origin(expr.span))
    if entry is not None or name.text in FAMILIES:
        return arrow_of(name, scope)
    near = closest(name.text, (*CALLS, "fan", "from_data"))
    fixes = () if near is None else (Fix(f"Change to `{near}`", (Edit(scope.origin(name.span), near),), True),)
    message = f"there is no combinator `{name.text}`" + (f"; did you mean `{near}`?" if near else "")
    scope.report(UNKNOWN_COMBINATOR, message, name.span, fixes=fixes)
    return damaged(scope.origin(expr.span))


def _instance(entry: TemplateEntry, expr: ArrowCall, scope: Scope) -> Arrow:
    from qvr_core.semantics.templates import instantiate

    result = instantiate(entry, expr, scope)
    if result is None:
        return damaged(scope.origin(expr.span))
    program, arguments = result
    return Instance(
        name=entry.name,
        domain=program.domain,
        codomain=program.codomain,
        sort=program.sort,
        origin=scope.origin(expr.span),
        density=program.density,
        arguments=arguments,
        program=program,
    )


def _from_data(call: Call) -> Arrow:
    args = call.args
    source = args[0].value if len(args) == 1 else None
    if not isinstance(source, String):
        call.scope.report(CALL_ARGUMENTS, '`from_data` takes the name of the data: from_data("name")', call.span)
        return damaged(call.scope.origin(call.span))
    return FromData(
        domain=UNKNOWN,
        codomain=UNKNOWN,
        sort=Sort.TENSOR,
        origin=call.scope.origin(call.span),
        density=DETERMINISTIC,
        source=source.value,
    )


# ---------------------------------------------------------------- for programs


def apply_arrow(
    arrow: Arrow, given: Named, place: Span | Origin, scope: Scope, code: Code, gives: str, wants: str
) -> Arrow:
    """`arrow` as it is applied to a value of `given`: lifted where that is a sequence; reports where it does not fit.

    A plain value given to an arrow over sequences is reported unless the caller has made it a sequence before.
    """
    if has_seq(given.space) and can_lift(arrow) and not is_unknown(arrow.domain.space):
        arrow = lift(arrow)
    scope.require_fit(given, arrow.domain, place, code, gives, wants)
    return arrow
