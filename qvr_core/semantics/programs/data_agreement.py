"""An observed name that a `data` step declares: what is observed must be what was declared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from qvr_core.semantics.arithmetic.broadcasting import Axis, axes, with_axes
from qvr_core.semantics.language.truncated import family_words
from qvr_core.semantics.programs.sites import TypedSite
from qvr_core.semantics.scope.environment import Binding, StepContext
from qvr_core.semantics.types.axes import set_of
from qvr_core.semantics.types.diagnostics import Related
from qvr_core.semantics.types.model.expressions import ValueType
from qvr_core.semantics.types.model.steps import ArrowDraw
from qvr_core.semantics.types.program_codes import DATA_MISMATCH
from qvr_core.semantics.types.spaces import Finite, Named, Real, Seq, Space, Unknown, product
from qvr_core.semantics.types.type_text import structure
from qvr_core.syntax.tree.names import Name


def agreed(name: Name, typed: TypedSite, ctx: StepContext) -> TypedSite:
    """The site, checked against the declaration of its name; a draw without axes takes those of the data."""
    declared = ctx.reads[name.text] = ctx.bindings.get(name.text)
    if declared is None or declared.kind not in ("data", "let") or declared.drawn:
        return typed
    if isinstance(declared.type.space, Unknown) or isinstance(typed.type.space, Unknown):
        return typed
    if typed.type.space is None:
        # its arguments are data of unknown shape
        return replace(typed, type=replace(declared.type, rows=typed.type.rows), named=declared.named)
    problem = _problem(name.text, declared, typed)
    if problem is not None:
        related = (Related(f"`{name.text}` is {_binding_words(declared)} here", declared.origin),)
        ctx.scope.report(DATA_MISMATCH, problem, name.span, related)
        return replace(typed, type=ValueType(Unknown(), rows=typed.type.rows))
    return _with_axes(declared, typed)


def other_type(declared: ValueType, given: ValueType) -> str | None:
    """What a declared type says otherwise than that of a value given for it, as the end of a sentence; else None."""
    have, own = axes(declared), axes(given)
    if have is None or own is None or isinstance(declared.space, Unknown) or isinstance(given.space, Unknown):
        return None
    if len(have) != len(own) or not same_axes(have, own):
        return f"is declared {runs_over(sets_over(have))}, and this is {runs_over(sets_over(own))}"
    there, here = _item(declared.space), _item(given.space)
    if isinstance(there, Finite) and isinstance(here, Finite) and here.nominal and there.nominal:
        return None if here.nominal == there.nominal else f"holds elements of {there.nominal}, not of {here.nominal}"
    if isinstance(there, Finite) and there.nominal and isinstance(here, Real):
        return f"holds elements of {there.nominal}, and this is a number"
    return None


def _with_axes(declared: Binding, typed: TypedSite) -> TypedSite:
    have, own = axes(declared.type), axes(typed.type)
    if have is None or own is None or typed.type.rows or len(have) <= len(own) or typed.family is None:
        return typed
    plates = have[: len(have) - typed.family.family.event]
    kind = with_axes(plates, typed.type.space or Unknown(), like=[typed.type], event=typed.type.event)
    factors = [(name, Finite(size, name)) for size, name in plates if size is not None]
    over = Named(product(factors), " * ".join(sets_over(plates)))
    site = replace(typed.site, plate=over, element=None, each_row=False)
    return replace(typed, site=site, type=kind)


def _problem(name: str, declared: Binding, typed: TypedSite) -> str | None:
    """What the declaration and the draw say differently, as a message."""
    if (wrong := _elements(name, declared, typed)) is not None:
        return wrong
    have, own = axes(declared.type), axes(typed.type)
    if have is None or own is None or typed.type.rows:
        return None
    # what is drawn once for all is independent along the axes of the data
    free = typed.site.element is None and typed.site.plate is None
    if len(own) < len(have) and (free or not own) and same_axes(have[len(have) - len(own) :], own):
        return None
    if len(own) == len(have) and same_axes(have, own):
        return None
    there, here, made = sets_over(have), sets_over(own), _binding_words(declared)
    if sorted(there) == sorted(here):
        message = f"`{name}` is {made} over {_product(there)}, and this step draws it over {_product(here)}"
        return f"{message}: keep to one order"
    return f"`{name}` is {made} {runs_over(there)}, but this step draws {_drawn(here)}"


def _binding_words(declared: Binding) -> str:
    return "computed" if declared.kind == "let" else "declared"


def same_axes(have: Sequence[Axis], own: Sequence[Axis]) -> bool:
    """Whether axes run over the same sets, one by one; those without a name go by their size."""
    return all(_same_axis(one, other) for one, other in zip(have, own, strict=True))


def _same_axis(one: Axis, other: Axis) -> bool:
    (size, name), (other_size, other_name) = one, other
    if name is not None and other_name is not None:
        return set_of(name) == set_of(other_name)
    return not (isinstance(size, int) and isinstance(other_size, int)) or int(size) == int(other_size)


def sets_over(found: Sequence[Axis]) -> list[str]:
    """What axes run over, in words."""
    return [
        set_of(name) if name is not None else f"{int(size)} elements" if isinstance(size, int) else "_"
        for size, name in found
    ]


def _product(names: Sequence[str]) -> str:
    return " * ".join(names)


def runs_over(names: Sequence[str]) -> str:
    """'over School * Item', or 'a single value'."""
    return f"over {_product(names)}" if names else "a single value"


def _drawn(names: Sequence[str]) -> str:
    return f"it over {_product(names)}" if names else "a single value"


# ---------------------------------------------------------------- elements


def _elements(name: str, declared: Binding, typed: TypedSite) -> str | None:
    there, here = _item(declared.type.space), _item(typed.type.space)
    draw = typed.site.draw
    who = getattr(draw.arrow, "name", "the arrow") if isinstance(draw, ArrowDraw) else family_words(draw.family)
    match there, here:
        case Finite(), Finite():
            return _sets(name, there, here, declared)
        case Finite(nominal=str() as nominal), Real():
            return f"`{name}` holds elements of {nominal}, but `{who}` draws numbers"
        case Real(), Finite(nominal=str() as nominal):
            return f"`{name}` is declared as numbers, but `{who}` draws elements of {nominal}: declare `-> {nominal}`"
        case _:
            return None


def _sets(name: str, there: Finite, here: Finite, declared: Binding) -> str | None:
    if there.nominal is not None and here.nominal is not None:
        wrong = there.nominal != here.nominal
    else:
        wrong = isinstance(there.size, int) and isinstance(here.size, int) and int(there.size) != int(here.size)
    if not wrong:
        return None
    drawn = here.nominal or structure(here)
    return f"`{name}` is declared as {declared.named.written}, but this step draws elements of {drawn}"


def _item(space: Space | None) -> Space | None:
    return space.item if isinstance(space, Seq) else space
