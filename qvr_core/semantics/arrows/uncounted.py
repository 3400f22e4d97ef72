"""Programs with `score` or `observe` where they are used as arrows: what these steps add to a density is lost there."""

from __future__ import annotations

from qvr_core.semantics.scope.scope import ArrowEntry, Scope
from qvr_core.semantics.types.diagnostics import DeclarationSite, Related
from qvr_core.semantics.types.model.arrows import Arrow, Instance, Ref
from qvr_core.semantics.types.model.programs import Program, called
from qvr_core.semantics.types.model.steps import ObserveModel, ScoreModel
from qvr_core.semantics.types.program_codes import UNCOUNTED_STEP
from qvr_core.semantics.types.walk import all_steps
from qvr_core.syntax.tree.names import Name


def terms_in(program: Program) -> tuple[str, ...]:
    """The steps of a program that add to its density and are no draws of it."""
    found: list[str] = []
    for step in all_steps(program.steps):
        if isinstance(step, ScoreModel):
            found.append(f"score {step.name}")
        elif isinstance(step, ObserveModel):
            found.append(f"observe {step.site.name}")
    return tuple(found)


def terms_of(arrow: Arrow, scope: Scope) -> tuple[str, ...]:
    """Those of the program that an arrow is; of one in a larger arrow the place where it stands there has told."""
    if isinstance(arrow, Instance):
        return terms_in(called(arrow))
    entry = scope.lookup(arrow.name) if isinstance(arrow, Ref) else None
    return entry.terms if isinstance(entry, ArrowEntry) else ()


def refuse_terms(arrow: Arrow, name: Name, scope: Scope) -> bool:
    """Report, once a declaration, a program whose `score` or `observe` would not count where `name` is an arrow."""
    terms = terms_of(arrow, scope)
    if not terms:
        return False
    begins = f"`{terms[0]}` of `{name.text}`"
    if any(told.code is UNCOUNTED_STEP and told.message.startswith(begins) for told in scope.diagnostics):
        return True
    kind, _, step = terms[0].partition(" ")
    message = f"{begins} would not count here, where the program is used as an arrow: "
    if isinstance(arrow, Instance) and not arrow.program.uses_input:
        message += "drawn from by a step of its own, without type, indices and options and outside `marginalize`, its "
        message += "steps become the program's"
    elif kind == "score":
        message += f"write the `score` in the program that draws from `{name.text}`"
    else:
        message += f"draw `{step}` with `sample`, and observe in the program that runs"
    declared = arrow.name if isinstance(arrow, Instance) else name.text
    related = (
        ()
        if declared in scope.local
        else (Related(f"`{terms[0]}` stands here", DeclarationSite(declared, f"step:{step}")),)
    )
    scope.report(UNCOUNTED_STEP, message, name.span, related)
    return True
