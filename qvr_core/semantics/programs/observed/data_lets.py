"""`observe z[i : Row] <- …` of a let above: its numbers are the data, where they are computed from data alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from qvr_core.semantics.programs.step_results import Block
from qvr_core.semantics.scope.environment import Binding, StepContext
from qvr_core.semantics.scope.scope import Scope
from qvr_core.semantics.types.diagnostics import Related
from qvr_core.semantics.types.model.expressions import Apply, Bound, Data, Expr, Matrix
from qvr_core.semantics.types.model.steps import LetModel, ObserveModel, Site
from qvr_core.semantics.types.program_codes import COMPUTED_OUTCOME, LATENT_OUTCOME, OBSERVED_AGAIN, STEP_OPTION
from qvr_core.semantics.types.walk import operands, sites, values, walk
from qvr_core.syntax.tree.names import Name
from qvr_core.syntax.tree.steps import ObserveStep

IN_BLOCK = "the `marginalize` that it stands in"
"""Why a let inside a block is not observed."""


def is_let(step: ObserveStep, ctx: StepContext) -> bool:
    """Whether what a step observes is a let above it."""
    found = ctx.bindings.get(step.name.text)
    return found is not None and found.kind == "let"


def read_by_let(step: LetModel, ctx: StepContext) -> tuple[str, frozenset[str]]:
    """Why the value of a let is none of data alone, '' where it is; and the data names that it is computed from."""
    return (IN_BLOCK, frozenset()) if ctx.marginal else read_by(values(step), step.names, ctx)


def read_by(given: Iterable[Expr], own: Sequence[str], ctx: StepContext) -> tuple[str, frozenset[str]]:
    """The same of arithmetic in a step that binds the names `own`."""
    columns: set[str] = set()
    for part in (part for value in given for part in walk(value, operands)):
        match part:
            case Data(name=name):
                columns.add(name)
            case Apply() | Matrix():
                return "the weights of an arrow", frozenset()
            case Bound(name=name) if name not in own and (found := ctx.bindings.get(name)) is not None:
                if found.kind == "let":
                    if found.drawn:
                        return found.drawn, frozenset()
                    columns |= found.columns
                elif found.kind == "input":
                    return f"the input `{name}`", frozenset()
                elif found.kind not in ("data", "parameter", "index"):
                    return f"`{name}`, which is drawn", frozenset()
            case _:
                pass
    return "", frozenset(columns)


def as_data(step: LetModel, bindings: Iterable[tuple[str, Binding]], ctx: StepContext) -> list[tuple[str, Binding]]:
    """What a let binds, with what it is computed from."""
    drawn, columns = read_by_let(step, ctx)
    return [(name, replace(one, drawn=drawn, columns=columns) if one.kind == "let" else one) for name, one in bindings]


def observed_let(step: ObserveStep, ctx: StepContext) -> Binding | None:
    """The let that a step observes; None where it observes data, or what may not be observed, which is reported."""
    name = step.name.text
    found = ctx.bindings[name] if is_let(step, ctx) else None
    if found is None:
        return None
    related = (Related(f"`{name}` is computed here", found.origin),)
    if found.drawn:
        message = f"`{name}` depends on {found.drawn}: only a let of data alone may be observed"
        ctx.scope.report(LATENT_OUTCOME, message, step.name.span, related)
    elif step.outcome is not None:
        message = f"`{name}` is a let: compute in its line what is observed, `let … = …`, and observe that"
        ctx.scope.report(COMPUTED_OUTCOME, message, step.outcome.span, related)
    ctx.reads[name] = found
    return found


def check_let_options(name: Name, site: Site, ctx: StepContext) -> None:
    """Report what is said of cells that a let cannot lack."""
    if site.missing is not None:
        message = (
            f"`{name.text}` is computed, and has no cells of its own: say of the data what is done with missing ones"
        )
        ctx.scope.report(STEP_OPTION, message, name.span)


# ---------------------------------------------------------------- the program as a whole


def check_observed_again(blocks: Sequence[Block], scope: Scope) -> None:
    """A warning at a let of data that a column is observed through which is observed itself, or through another."""
    found = [site for block in blocks for site in sites(block.models, ObserveModel)]
    if not any(site.of_let for site in found):
        return
    bindings = {name: one for block in blocks for name, one in block.binds.items()}
    observed = {site.name: site.origin for site in found if not site.of_let}
    for site in found:
        if not site.of_let or site.name not in bindings:
            continue
        columns = bindings[site.name].columns
        twice = next((name for name in sorted(columns) if name in observed), None)
        if twice is not None:
            message = f"`{site.name}` is computed from `{twice}`, which is observed, too: the same numbers count twice"
            related = (Related(f"`{twice}` is observed here", observed[twice]),)
            scope.report(OBSERVED_AGAIN, message, site.origin, related)
