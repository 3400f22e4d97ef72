"""Where what a program adds to a density besides its draws cannot be counted (`types/counted.py` says where it can)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from qvr_core.semantics.scope.scope import ArrowEntry, Scope
from qvr_core.semantics.types.counted import Counted, counted, counted_by
from qvr_core.semantics.types.diagnostics import DeclarationSite, Origin, Related
from qvr_core.semantics.types.model.arrows import Arrow, Instance, Lift, Ref
from qvr_core.semantics.types.model.programs import Program
from qvr_core.semantics.types.program_codes import UNCOUNTED_STEP
from qvr_core.semantics.types.spaces import is_finite, item_of
from qvr_core.semantics.types.walk import parts, walk
from qvr_core.syntax.tree.names import Name, Span


def terms_in(program: Program, scope: Scope) -> tuple[Counted, ...]:
    """What the steps of a program count where it is used as an arrow."""
    return counted_by(program, lambda name: _declared(name, scope))


def terms_of(arrow: Arrow, scope: Scope) -> tuple[Counted, ...]:
    """What the programs in an arrow count; of those in a larger one the place where they stand there has told what
    does not."""
    found = counted(arrow, lambda name: _declared(name, scope))
    return found if isinstance(arrow, Ref | Instance) else tuple(one for one in found if not one.lost)


def _declared(name: str, scope: Scope) -> Sequence[Counted]:
    entry = scope.lookup(name)
    return entry.terms if isinstance(entry, ArrowEntry) else ()


def refuse_terms(arrow: Arrow, name: Name, scope: Scope) -> bool:
    """Report, once a declaration, a program with a step that would not count where `name` is an arrow."""
    terms = [one for one in terms_of(arrow, scope) if one.lost]
    if not terms:
        return False
    if isinstance(arrow, Instance) and not arrow.program.uses_input:
        remedy = "drawn from by a step of its own, without type, indices and options and outside `marginalize`, its "
        remedy += "steps become the program's"
    elif terms[0].lost == "marginalize":
        remedy = f"write the block in the program that draws from `{name.text}`"
    elif terms[0].lost == "returned":
        remedy = f"it is what the program returns; return what is drawn, or draw `{terms[0].step}` with `sample`"
    else:
        remedy = f"draw `{terms[0].step}` with `sample`, and observe in the program that runs"
    _report(terms[0], arrow, name.text, name.span, scope, "where the program is used as an arrow", remedy)
    return True


def refuse_steps(arrow: Arrow, name: str, place: Span | Origin, scope: Scope, where: str, remedy: str = "") -> bool:
    """Report, once a declaration, an arrow whose steps would not count `where` it stands."""
    terms = [one for one in terms_of(arrow, scope) if not one.lost]
    if terms:
        remedy = remedy or f"write the `{terms[0].word}` in the program that draws from `{name}`"
        _report(terms[0], arrow, name, place, scope, where, remedy)
    return bool(terms)


def refuse_summed(stages: Sequence[Arrow], scope: Scope) -> None:
    """Report a stage of a composite that scores behind a finite value, which is summed out."""
    before = None
    for stage in stages:
        if before is not None and refuse_steps(
            stage,
            called_there(stage),
            stage.origin,
            scope,
            f"behind `{called_there(before)}`, whose values are summed out",
            f"draw from `{called_there(before)}` by a step of its own",
        ):
            return
        if stage.density.kind != "deterministic" and is_finite(item_of(stage.codomain.space)):
            before = stage


def refuse_states(body: Arrow, scope: Scope) -> None:
    """Report an arrow of finite values that scores, where its values are passed on from step to step."""
    if is_finite(item_of(body.codomain.space)):
        where, remedy = "where finite values are passed on from step to step", "draw each by a step of its own"
        refuse_steps(body, called_there(body), body.origin, scope, where, remedy)


def called_there(arrow: Arrow) -> str:
    """What an arrow is called where it stands."""
    while isinstance(arrow, Lift):
        arrow = arrow.arrow
    return getattr(arrow, "name", "the arrow")


def data_inside(arrow: Arrow, scope: Scope) -> list[str]:
    """The names under which the data are supplied of what programs in an arrow observe."""
    return [one.step for one in terms_of(arrow, scope) if one.word == "observe" and not one.lost]


def refuse_twice(arrow: Arrow, scope: Scope) -> bool:
    """Report, at the second, two programs of an arrow that observe the same name."""
    names = data_inside(arrow, scope)
    if len(set(names)) == len(names):
        return False
    seen: dict[str, str] = {}
    for part in walk(arrow, parts):
        if not isinstance(part, Ref | Instance):
            continue
        for name in data_inside(part, scope):
            if name in seen and names.count(name) > 1:
                message = (
                    f"`{called_there(part)}` observes `{name}`, as `{seen[name]}` does before it, and data have one "
                )
                message += "name: give one of them another"
                scope.report(UNCOUNTED_STEP, message, part.origin)
                return True
            seen[name] = called_there(part)
    return False


def refuse_taken(arrow: Arrow, place: Origin, taken: Mapping[str, str], scope: Scope) -> dict[str, str]:
    """What an arrow observes, with the words for it; reports a name that is `taken` by what is given there."""
    found = {name: f"what `{called_there(arrow)}` observes" for name in data_inside(arrow, scope)}
    name = next((one for one in found if one in taken), None)
    if name is not None:
        message = f"`{called_there(arrow)}` observes `{name}`, and that is {taken[name]}: give one of them another name"
        scope.report(UNCOUNTED_STEP, message, place)
    return found


def _report(
    term: Counted, arrow: Arrow, name: str, place: Span | Origin, scope: Scope, where: str, remedy: str
) -> None:
    begins = f"`{term.word} {term.name}` of `{name}`"
    if any(told.code is UNCOUNTED_STEP and told.message.startswith(begins) for told in scope.diagnostics):
        return
    declared = arrow.name if isinstance(arrow, Instance) else name
    known = declared in scope.local or scope.lookup(declared) is None
    stands = DeclarationSite(declared, f"step:{term.name}")
    related = () if known or "." in term.name else (Related(f"`{term.word} {term.name}` stands here", stands),)
    scope.report(UNCOUNTED_STEP, f"{begins} would not count here, {where}: {remedy}", place, related)
