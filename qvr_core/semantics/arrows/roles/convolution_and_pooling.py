"""Roles `conv` and `pool`: a window that moves over the sizes of a space, or over a sequence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from qvr_core.semantics.arrows.options import Settings, removal
from qvr_core.semantics.arrows.roles.declared import deterministic
from qvr_core.semantics.arrows.roles.spaces import demand, one_element
from qvr_core.semantics.scope.scope import Scope, declarations, show
from qvr_core.semantics.scope.sequences import as_sequence
from qvr_core.semantics.types.codes import INVALID_OPTION, ROLE_MISMATCH
from qvr_core.semantics.types.diagnostics import Edit, Fix, Origin
from qvr_core.semantics.types.model.arrows import Arrow, Conv, Pool
from qvr_core.semantics.types.spaces import Dim, Linear, Named, Real, Space, is_hole, is_unknown, item_of
from qvr_core.syntax.tree.declarations import MorphismDecl

MOST_AXES = 2
"""Sizes behind the channels: a length, or height and width."""
MOST_TRIED = 8
"""The widest stride and padding that a fix offers."""


def conv(decl: MorphismDecl, domain: Named, codomain: Named, settings: Settings, scope: Scope) -> Arrow:
    window = settings.count("kernel") or 3
    if _axes(domain.space) or _axes(codomain.space):
        domain, codomain = one_element("conv", domain, codomain, decl, scope)
        _over_sizes("conv", window, settings.count("stride") or 1, decl, domain, codomain, settings, scope)
    else:
        domain, codomain = _over_sequence(decl, domain, codomain, settings, scope)
    return Conv(
        **deterministic(decl, domain, codomain, scope),
        kernel=window,
        stride=settings.count("stride") or 1,
        padding=settings.count("padding") or 0,
        bias=settings.flag("bias"),
    )


def pool(decl: MorphismDecl, domain: Named, codomain: Named, settings: Settings, scope: Scope) -> Arrow:
    window = settings.count("kernel") or 2
    stride, padding = settings.count("stride") or window, settings.count("padding") or 0
    domain, codomain = one_element("pool", domain, codomain, decl, scope)
    if 2 * padding > window:
        message = f"`padding` is at most half of the window, but {padding} is more than half of {window}"
        fix = Fix(f"Change to {window // 2}", (Edit(scope.origin(settings.span("padding")), str(window // 2)),))
        scope.report(INVALID_OPTION, message, settings.span("padding"), fixes=(fix,))
    else:
        _over_sizes("pool", window, stride, decl, domain, codomain, settings, scope)
    return Pool(
        **deterministic(decl, domain, codomain, scope),
        kernel=window,
        stride=stride,
        padding=padding,
        reduce=settings.word("reduce"),
    )


def windows(size: int, window: int, stride: int, padding: int) -> int:
    """How many windows fit along an axis of `size` numbers; below 1 where none does."""
    return (size + 2 * padding - window) // stride + 1


def _axes(space: Space) -> int:
    """The sizes of a space behind the first, which counts channels; 0 where it has one size, or none."""
    item = item_of(space)
    return len(item.shape) - 1 if isinstance(item, Real) else 0


# ---------------------------------------------------------------- over a sequence


def _over_sequence(
    decl: MorphismDecl, domain: Named, codomain: Named, settings: Settings, scope: Scope
) -> tuple[Named, Named]:
    """The elements of a sequence are its channels, and it keeps its length."""
    domain = Named(item_of(domain.space), domain.written.removeprefix("Seq "))
    codomain = Named(item_of(codomain.space), codomain.written.removeprefix("Seq "))
    if demand("conv", "domain", "real", domain, decl.domain, decl, scope):
        demand("conv", "codomain", "real", codomain, decl.codomain, decl, scope)
    for key in ("stride", "padding"):
        given = settings.options.get(key)
        if given is not None and settings.count(key) != settings.role.options[key].default and decl.options is not None:
            scope.report(
                INVALID_OPTION,
                f"over a sequence, which keeps its length, a convolution has no `{key}`; for a picture write its "
                "channels and sizes, as in `Real 1 28 28`",
                settings.span(key),
                fixes=(removal(decl.options, given, scope),),
            )
    return as_sequence(domain), as_sequence(codomain)


# ---------------------------------------------------------------- over sizes


def _over_sizes(
    role: str,
    window: int,
    stride: int,
    decl: MorphismDecl,
    domain: Named,
    codomain: Named,
    settings: Settings,
    scope: Scope,
) -> None:
    """Report where the sizes of the codomain are not those that the window leaves of the domain's."""
    garbled = any(key in settings.options and key not in settings.given for key in ("kernel", "stride", "padding"))
    if garbled or is_unknown(domain.space) or is_unknown(codomain.space):
        return
    for side, space, expr in (("domain", domain, decl.domain), ("codomain", codomain, decl.codomain)):
        if not demand(role, side, "real", space, expr, decl, scope):
            return
        if not 1 <= _axes(space.space) <= MOST_AXES:
            _no_sizes(role, side, space, scope.origin(expr.span), scope)
            return
    assert isinstance(domain.space, Real) and isinstance(codomain.space, Real)
    (channels, *given), (made, *wanted) = domain.space.shape, codomain.space.shape
    if len(given) != len(wanted):
        message = (
            f"role `{role}` keeps the number of sizes, but {show(domain)} has {len(given)} behind its channels and "
            f"{show(codomain)} has {len(wanted)}"
        )
        scope.report(ROLE_MISMATCH, message, decl.codomain.span, declarations(scope, domain, codomain))
        return
    if any(isinstance(size, Linear) for size in given):
        return  # a hole, or a parameter of a template: read again with its value
    padding = settings.count("padding") or 0
    right = [windows(int(size), window, stride, padding) for size in given if isinstance(size, int)]
    if min(right) < 1:
        smallest = min(int(size) for size in given if isinstance(size, int))
        place = settings.span("kernel") if "kernel" in settings.options else decl.domain.span
        scope.report(
            INVALID_OPTION,
            f"a window of {window} is wider than {show(domain)}, of whose sizes one is {smallest}"
            + (f", {smallest + 2 * padding} with its padding" if padding else ""),
            place,
            declarations(scope, domain),
        )
        return
    head = channels if role == "pool" else made
    if any(map(is_hole, (made, *wanted))):
        shape = Real((head, *right))
        scope.require_fit(
            Named(shape, _spelt(shape.shape)), codomain, decl.codomain.span, ROLE_MISMATCH,
            f"role `{role}` makes", "the codomain is",
        )  # fmt: skip
        return
    if right == wanted and made == head:
        return
    _wrong_sizes(role, (window, stride, padding), (head, *right), decl, domain, codomain, settings, scope)


def _no_sizes(role: str, side: str, space: Named, place: Origin, scope: Scope) -> None:
    example = "`Real 3 64` or `Real 3 28 28`"
    message = (
        f"role `{role}` wants channels with one or two sizes as its {side}, as in {example}, but it is {show(space)}"
    )
    scope.report(ROLE_MISMATCH, message, place, declarations(scope, space))


def _wrong_sizes(
    role: str,
    moved: tuple[int, int, int],
    right: tuple[Dim, ...],
    decl: MorphismDecl,
    domain: Named,
    codomain: Named,
    settings: Settings,
    scope: Scope,
) -> None:
    """The error of a codomain that is not what the window makes, with both repairs."""
    window, stride, padding = moved
    spelt = _spelt(right)
    message = (
        f"a window of {window} with stride {stride} and padding {padding} makes `{spelt}` of {show(domain)}, but the "
        f"codomain is {show(codomain)}"
    )
    fixes = [Fix(f"Change the codomain to `{spelt}`", (Edit(scope.origin(decl.codomain.span), spelt),))]
    assert isinstance(domain.space, Real) and isinstance(codomain.space, Real)
    given, wanted = domain.space.shape, codomain.space.shape
    if right[0] == wanted[0]:
        pairs = [
            (int(a), int(b))
            for a, b in zip(given[1:], wanted[1:], strict=True)
            if isinstance(a, int) and isinstance(b, int)
        ]
        other = next(_moves(role, window, stride, padding, pairs), None)
        if other is not None:
            fixes.insert(0, _with_move(other, (stride, padding), decl, settings, scope))
    scope.report(ROLE_MISMATCH, message, decl.codomain.span, declarations(scope, domain, codomain), fixes)


def _moves(
    role: str, window: int, stride: int, padding: int, pairs: Sequence[tuple[int, int]]
) -> Iterator[tuple[int, int]]:
    """Strides and paddings that make the sizes that are written, those that change less first."""
    most = min(window // 2 if role == "pool" else window - 1, MOST_TRIED)
    tried = [(s, p) for s in range(1, MOST_TRIED + 1) for p in range(most + 1)]
    tried.sort(key=lambda move: ((move[0] != stride) + (move[1] != padding), move))
    for move in tried:
        if all(windows(size, window, *move) == out for size, out in pairs):
            yield move


def _with_move(
    move: tuple[int, int], before: tuple[int, int], decl: MorphismDecl, settings: Settings, scope: Scope
) -> Fix:
    """The fix that sets stride and padding."""
    assert decl.options is not None
    edits: list[Edit] = []
    added: list[str] = []
    words: list[str] = []
    for key, value, was in zip(("stride", "padding"), move, before, strict=True):
        if value == was:
            continue
        words.append(f"`{key}={value}`")
        if key in settings.options:
            edits.append(Edit(scope.origin(settings.span(key)), str(value)))
        else:
            added.append(f", {key}={value}")
    if added:
        edits.append(Edit(scope.origin(decl.options.items[-1].span), "".join(added), "after"))
    return Fix(f"Set {' and '.join(words)}", tuple(edits))


def _spelt(shape: Sequence[Dim]) -> str:
    return " ".join(["Real", *("_" if isinstance(size, Linear) else str(int(size)) for size in shape)])
