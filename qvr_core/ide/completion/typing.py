"""Types of pieces of text that are still being written: good enough to say what may come next."""

from __future__ import annotations

from collections.abc import Sequence

from qvr_core.semantics.types.model.file import Model
from qvr_core.semantics.types.spaces import Finite, Real, Seq, Space, is_finite, item_of, product
from qvr_core.semantics.types.subspace import fit
from qvr_core.semantics.types.walk import arrow_named
from qvr_core.syntax.tree.arrows import ArrowCall, ArrowRef, ComposeExpr, ParenArrow, PostfixExpr, TensorExpr
from qvr_core.syntax.tree.objects import FinSetExpr, ObjectRef, ParenObject, ProductExpr, SeqExpr, SpaceExpr
from qvr_core.syntax.units import parse_unit


def parsed(start: str, text: str) -> object | None:
    """The tree of a text, None where it has an error."""
    unit = parse_unit(start, text.strip())
    return unit.node if not unit.problems else None


def space_of_text(text: str, model: Model) -> Space | None:
    node = parsed("objexpr", text)
    return space_of(node, model) if node is not None else None


def space_of(node: object, model: Model) -> Space | None:
    """The space of an object expression; None where something in it is not known."""
    match node:
        case ObjectRef(name=name):
            held = model.objects.get(name.text)
            return held.space.space if held is not None else None
        case ParenObject(inner=inner):
            return space_of(inner, model)
        case SeqExpr(item=inner):
            item = space_of(inner, model)
            return Seq(item) if item is not None else None
        case FinSetExpr(size=size) if isinstance(size.value, int):
            return Finite(size.value)
        case SpaceExpr(kind=kind, sizes=sizes) if kind.text == "Real":
            numbers = [size.value for size in sizes if isinstance(size.value, int)]
            return Real(tuple(numbers)) if len(numbers) == len(sizes) else None
        case ProductExpr(factors=factors):
            spaces = [space_of(factor, model) for factor in factors]
            return product((None, space) for space in spaces if space is not None) if None not in spaces else None
        case _:
            return None


def codomain_of_text(text: str, model: Model) -> Space | None:
    node = parsed("expr", text)
    return codomain_of(node, model) if node is not None else None


def codomain_of(node: object, model: Model) -> Space | None:
    """What an arrow expression gives, sequences aside; None where that is not known."""
    match node:
        case ArrowRef(name=name):
            arrow = arrow_named(model, name.text)
            return item_of(arrow.codomain.space) if arrow is not None else None
        case ParenArrow(inner=inner):
            return codomain_of(inner, model)
        case ComposeExpr(stages=stages):
            last = next((stage for stage in reversed(stages) if not _keeps(stage)), None)
            return codomain_of(last, model)
        case TensorExpr(factors=factors):
            return _joined(factors, model)
        case ArrowCall(func=func, args=args) if args:
            inner = [argument.value for argument in args if argument.key is None]
            if func.text == "fan":
                return _joined(inner, model)
            if func.text == "identity" and isinstance(inner[0], ArrowRef):
                return space_of(ObjectRef(inner[0].name), model)
            return codomain_of(inner[0], model) if inner else None
        case PostfixExpr(base=base, attribute=attribute) if attribute.text == "freeze":
            return codomain_of(base, model)
        case _:
            return None


def _keeps(stage: object) -> bool:
    """Whether a stage gives the item that it reads."""
    return isinstance(stage, ArrowRef) and stage.name.text in ("last", "mean_over_time")


def _joined(parts: Sequence[object], model: Model) -> Space | None:
    spaces = [codomain_of(part, model) for part in parts]
    known = [space for space in spaces if space is not None]
    return product((None, space) for space in known) if len(known) == len(spaces) else None


def fits(given: Space, wanted: Space) -> bool:
    """Whether one fits the other, up to lifting to sequences."""
    result = fit(item_of(given), item_of(wanted))
    return result.problem is None and result.widths != "wrong"


# What a role joins, where it does not join everything: whether it wants finite sets, and whether both sides are one.
FINITE_SIDES = {
    "embed": (True, False),
    "linear": (False, False),
    "conv": (False, False),
    "pool": (False, False),
    "norm": (False, False),
    "batch_norm": (False, False),
    "dropout": (False, False),
    "attention": (False, False),
    "position": (False, False),
    "latent": (True, True),
    "observed": (True, True),
    "discretize": (False, True),
}
ONE_SPACE = frozenset(("norm", "batch_norm", "dropout", "attention", "position"))


def _is_bounded(space: Space) -> bool:
    return isinstance(space, Real) and space.low is not None and space.high is not None


def role_joins(role: str, domain: Space | None, codomain: Space | None) -> bool:
    """Whether a role may stand between two spaces; an unknown one counts as fitting."""
    wanted = FINITE_SIDES.get(role)
    if wanted is None or domain is None or codomain is None:
        return True
    sides = [item_of(domain), item_of(codomain)]
    if any(is_finite(side) != finite for side, finite in zip(sides, wanted, strict=True)):
        return False
    if role == "discretize" and not _is_bounded(sides[0]):
        return False
    sizes = [len(side.shape) if isinstance(side, Real) else 1 for side in sides]
    if (role == "pool" and 1 in sizes) or (role in ("conv", "pool") and sizes[0] != sizes[1]):
        return False
    return role not in ONE_SPACE or fits(domain, codomain)
