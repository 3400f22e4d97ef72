"""Guides: programs that draw the latents of another one, checked against it (docs/reference.md#guides)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain

from qvr_core.operations.intervals import ANYTHING, INFINITE, Interval
from qvr_core.semantics.arithmetic.broadcasting import Axis, axes
from qvr_core.semantics.arrows.uncounted import called_there, refuse_steps
from qvr_core.semantics.language.spelling import closest
from qvr_core.semantics.programs.data_agreement import runs_over, same_axes, sets_over
from qvr_core.semantics.programs.guides.guided import item_of_sequence
from qvr_core.semantics.programs.program_rules import candidates
from qvr_core.semantics.programs.step_results import Block, StepResult
from qvr_core.semantics.scope.environment import Binding, FreeName
from qvr_core.semantics.scope.families import family_named
from qvr_core.semantics.scope.scope import (
    ArrowEntry,
    DamagedEntry,
    GuideEntry,
    Scope,
    TemplateEntry,
)
from qvr_core.semantics.types.diagnostics import DeclarationSite, Edit, Fix, Origin, Related
from qvr_core.semantics.types.model.expressions import ValueType
from qvr_core.semantics.types.model.families import FamilyDraw
from qvr_core.semantics.types.model.programs import Guidance, Guided, Latent
from qvr_core.semantics.types.model.steps import (
    ArrowDraw,
    ParamModel,
    SampleModel,
    Site,
)
from qvr_core.semantics.types.program_codes import GUIDE_MISMATCH, HIDDEN_GLOBAL, PARAM_STEP, STEP_OPTION
from qvr_core.semantics.types.spaces import Finite, Named, Seq, Unknown, factors_of
from qvr_core.semantics.types.subspace import fit
from qvr_core.semantics.types.type_text import structure
from qvr_core.semantics.types.walk import all_steps, sites
from qvr_core.syntax.immutable import immutable
from qvr_core.syntax.tree.declarations import Item, ProgramHeader
from qvr_core.syntax.tree.names import Name, Span
from qvr_core.syntax.tree.steps import DataStep, MarginalizeStep, ObserveStep, PredictStep, ScoreStep
from qvr_core.syntax.tree.units import Placed

# ---------------------------------------------------------------- the program that a guide is written for


@immutable
class Model:
    """The program whose guide is checked."""

    name: str
    guided: Guided
    domain: Named
    reads_input: bool
    place: Span
    """Where the header names it."""
    rest: bool


def guided_model(name: Name, rest: bool, header: ProgramHeader, scope: Scope) -> Model | None:
    """The program that a header names as its guide's; reports what has no guides."""
    entry = scope.lookup(name.text)
    typed = next((one for one in header.parameters or () if one.kind is not None), None)
    if typed is not None:
        message = f"`{header.name.text}` has parameters that a call fills in, and nobody calls a guide"
        scope.report(GUIDE_MISMATCH, message, typed.span)
        return None
    if entry is None:
        scope.unknown(name, "program")
    elif isinstance(entry, ArrowEntry) and entry.guided is not None:
        return Model(name.text, entry.guided, entry.domain, not entry.ignores_input, name.span, rest)
    elif not isinstance(entry, DamagedEntry):
        what = "is no program"
        if isinstance(entry, TemplateEntry):
            what = "is a template, whose latents are those of each call: write the guide of the program that calls it"
        elif isinstance(entry, GuideEntry):
            what = f"is itself a guide, of `{entry.model}`"
        related = (Related(f"`{name.text}` is declared here", DeclarationSite(name.text)),)
        scope.report(GUIDE_MISMATCH, f"`{name.text}` {what}", name.span, related)
    return None


def data_bindings(model: Model, lines: Sequence[Placed[Item]]) -> dict[str, Binding]:
    """What a guide may read of its program's data; what it binds itself, which is a mistake, it is told."""
    own = {name.text for placed in lines for name in placed.unit.declares}
    return {
        item.name: Binding(
            "data",
            item.type,
            Named(item.type.space or Unknown(), structure(item.type.space or Unknown())),
            item.origin,
            numbers=item.numbers,
            over=item.over,
        )
        for item in model.guided.data
        if item.name not in own
    }


def sequence_inputs(model: Model, names: Sequence[str]) -> frozenset[str]:
    """The inputs of a guide that its program reads as sequences; `names` has one for each flat factor."""
    spaces = factors_of(model.domain.space)
    if len(spaces) != len(names):
        return frozenset()
    return frozenset(name for name, space in zip(names, spaces, strict=True) if isinstance(space, Seq))


# ---------------------------------------------------------------- the checks


def check_guide(
    model: Model,
    header: ProgramHeader,
    lines: Sequence[Placed[Item]],
    blocks: Sequence[Block],
    bindings: Mapping[str, Binding],
    whole: Named,
    uses_input: bool,
    scope: Scope,
) -> Guidance:
    """Compare the steps of a guide with the latents of its program, and report what is otherwise."""
    unit = scope.unit
    for placed in lines:
        scope.unit = placed.uid
        _check_line(placed, model, scope)
    scope.unit = unit
    results = list(chain.from_iterable(block.results for block in blocks))
    latents = {one.name: one for one in model.guided.latents}
    drawn: set[str] = set()
    for site in sites(chain.from_iterable(block.models for block in blocks), SampleModel):
        drawn.add(site.name)
        if isinstance(site.draw, ArrowDraw):
            arrow = site.draw.arrow
            where, remedy = "in a guide, whose density is that of what it draws", "draw from an arrow without it"
            refuse_steps(arrow, called_there(arrow), site.draw.origin, scope, where, remedy)
        if site.auxiliary:
            _check_auxiliary(site, latents, model, scope)
        elif site.name in latents:
            _check_latent(site, latents[site.name], bindings, model, scope)
        else:
            _no_latent(site, latents, model, scope)
    _check_free(results, latents, model, bindings, scope)
    _check_weights(results, scope)
    scope.unit = unit
    _check_header(model, header, whole, uses_input, scope)
    if not scope.mistaken:
        _check_missing(model, header, [one for one in latents.values() if one.name not in drawn], scope)
    return Guidance(model=model.name, rest=model.rest)


def check_no_guide(lines: Sequence[Placed[Item]], blocks: Sequence[Block], scope: Scope) -> None:
    """Report, in a program that is no guide, what belongs to guides alone."""
    for step in all_steps(chain.from_iterable(block.models for block in blocks)):
        if isinstance(step, ParamModel):
            name = step.names[0]
            message = f"`param` is a step of guides: in a program `{name}` has a prior, `sample {name} <- …`"
            scope.report(PARAM_STEP, message, step.origin)
        elif isinstance(step, SampleModel) and step.site.auxiliary:
            message = f"`{step.site.name}` is a latent of this program: `auxiliary` is for draws of a guide"
            scope.report(STEP_OPTION, message, step.site.origin)
    _check_dotted(lines, blocks, scope)


def _check_dotted(lines: Sequence[Placed[Item]], blocks: Sequence[Block], scope: Scope) -> None:
    unit = scope.unit
    for placed in lines:
        for name in placed.unit.declares:
            if "." in name.text and placed.unit.keyword == "sample":
                scope.unit = placed.uid
                message = f"`{name.text}` is the name of a template's latent: only a guide draws it under that name"
                scope.report(GUIDE_MISMATCH, message, name.span)
    scope.unit = unit


_WHY: dict[type[object], str] = {
    ObserveStep: "a guide observes nothing: what its program observes is data here",
    PredictStep: "a guide predicts nothing: it only draws the latents of its program",
    MarginalizeStep: "a guide sums nothing out: it draws the latents of its program, discrete ones too",
    ScoreStep: "a guide scores nothing: its density is that of what it draws",
    DataStep: "the data of a guide are those of its program, which it may read as they are called there",
}


def _check_line(placed: Placed[Item], model: Model, scope: Scope) -> None:
    message = _WHY.get(type(placed.unit.node))
    if message is None:
        return
    word = Span(0, len(placed.unit.keyword))
    fixes: tuple[Fix, ...] = ()
    if isinstance(placed.unit.node, DataStep):
        whole = Origin(placed.uid, Span(0, len(placed.unit.text)))
        fixes = (Fix("Remove this line", (Edit(whole, "", "line"),), True),)
    scope.report(GUIDE_MISMATCH, message, word, _named(model), fixes)


def _named(model: Model) -> tuple[Related, ...]:
    return (Related(f"`{model.name}` is declared here", DeclarationSite(model.name)),)


def _there(latent: Latent, model: Model) -> tuple[Related, ...]:
    return (Related(f"`{latent.name}` is drawn here in `{model.name}`", latent.origin),)


def _check_auxiliary(site: Site, latents: Mapping[str, Latent], model: Model, scope: Scope) -> None:
    if site.name in latents:
        message = f"`{site.name}` is a latent of `{model.name}`, and no auxiliary draw: its density counts"
        scope.report(GUIDE_MISMATCH, message, site.origin, _there(latents[site.name], model))


def _no_latent(site: Site, latents: Mapping[str, Latent], model: Model, scope: Scope) -> None:
    if site.name in model.guided.observed:
        message = f"`{site.name}` is observed in `{model.name}`: a guide reads it, and draws latents"
        scope.report(GUIDE_MISMATCH, message, site.origin, _named(model))
        return
    near = closest(site.name, latents)
    message = f"`{model.name}` has no latent `{site.name}`"
    message += f"; did you mean `{near}`?" if near else "; a draw on the way to one is `[auxiliary]`"
    fixes = (Fix(f"Change to `{near}`", (Edit(site.origin, near),), True),) if near else ()
    related = _there(latents[near], model) if near else _named(model)
    scope.report(GUIDE_MISMATCH, message, site.origin, related, fixes)


def _check_latent(site: Site, latent: Latent, bindings: Mapping[str, Binding], model: Model, scope: Scope) -> None:
    """A draw of the guide beside the latent of its name: plates, the space of an element, where its numbers lie."""
    related = _there(latent, model)
    # the name is the latent's: that a declaration has it, too, is no news
    scope.withdraw(HIDDEN_GLOBAL, site.origin)

    def report(message: str) -> None:
        scope.report(GUIDE_MISMATCH, message, site.origin, related)

    name = site.name
    if latent.imputed:
        report(f"the missing cells of `{name}` are latents of `{model.name}` that no step draws: `[rest=mean_field]`")
        return
    if latent.still == "has no density":
        report(f"`{name}` ends in a deterministic arrow in `{model.name}`: it has no density, so no guide can draw it")
        return
    if site.density.kind in ("none", "deterministic"):
        how = "is computed" if site.density.kind == "deterministic" else "ends in a deterministic arrow"
        report(f"`{name}` {how} here, so its draw has no density: let its arrow end in a draw")
        return
    if site.weight is not None or site.mask is not None:
        report(f"every element of `{name}` counts in the density of a guide: leave `mask` and `weight` out")
        return
    family = family_named(site.draw.family, scope) if isinstance(site.draw, FamilyDraw) else None
    if family is not None and (family.improper or not family.drawn):
        report(f"`{family.name}` cannot be drawn from, and a guide draws `{name}`")
        return
    if latent.lengths != (site.lengths is not None):
        here, there = ("some", "all") if site.lengths is not None else ("all", "only some")
        report(f"{here} elements of `{name}` exist here, and {there} of them in `{model.name}` (`lengths`)")
        return
    kind = site.type
    if kind is None or isinstance(kind.space, Unknown) or isinstance(latent.type.space, Unknown):
        return
    have, own = axes(latent.type), axes(kind)
    if have is None or own is None:
        return
    plates = len(latent.type.indexed), len(kind.indexed)
    if len(have) == len(own) and same_axes(have, own) and plates[0] != plates[1]:
        pass  # a plate of scalars is a vector of as many
    elif plates[0] != plates[1] or not same_axes(_plates(latent.type), _plates(kind)):
        there, here = sets_over(_plates(latent.type)), sets_over(_plates(kind))
        order = ": keep to one order" if sorted(there) == sorted(here) else ""
        report(f"`{name}` is {_runs(there)} in `{model.name}`, and {_runs(here)} here{order or _indices(latent)}")
        return
    elif not _same_space(site, latent, kind, model, scope):
        return
    _check_range(site, latent, model, scope)


def _runs(names: Sequence[str]) -> str:
    return runs_over(names).replace("over", "a plate over")


def _indices(latent: Latent) -> str:
    """How weights are indexed, whose sets have no names in the model."""
    plates = _plates(latent.type)
    if any(name is not None for _, name in plates) or not plates:
        return ""
    binders = ", ".join(f"{chr(ord('i') + at)} : {chr(ord('I') + at)}" for at in range(len(plates)))
    sizes = " and ".join(str(size) for size, _ in plates)
    return f": write `sample {latent.name}[{binders}] <- …`, with sets of {sizes} elements"


def _plates(kind: ValueType) -> list[Axis]:
    return list(zip(kind.sizes, kind.indexed, strict=True))


def _same_space(site: Site, latent: Latent, kind: ValueType, model: Model, scope: Scope) -> bool:
    given, wanted = kind.space or Unknown(), latent.type.space or Unknown()
    text = latent.named.written or structure(wanted)
    if isinstance(given, Seq) != isinstance(wanted, Seq) or (fit(wanted, given).problem and fit(given, wanted).problem):
        message = f"`{site.name}` is {structure(given)} here, and {text} in `{model.name}`"
        scope.report(GUIDE_MISMATCH, message, site.origin, _there(latent, model))
        return False
    plain = Named(given, structure(given))
    return scope.require_fit(
        plain if not fit(given, wanted).problem else Named(wanted, text),
        Named(wanted, text),
        site.origin,
        GUIDE_MISMATCH,
        f"here `{site.name}` is",
        f"in `{model.name}` it is",
        _there(latent, model),
        local=True,
    )


def _check_range(site: Site, latent: Latent, model: Model, scope: Scope) -> None:
    here, there = site.range or ANYTHING, latent.range
    where = f"in `{model.name}` `{site.name}`"
    if here.whole != there.whole and (here.exact or there.exact or here.whole):
        kinds = ("whole numbers", "numbers of all kinds")
        message = f"{where} has {kinds[not there.whole]}, and this draw gives {kinds[not here.whole]}"
        scope.report(GUIDE_MISMATCH, message, site.origin, _there(latent, model))
        return
    known = here.exact or isinstance(site.draw, ArrowDraw)
    if (
        known
        and not isinstance(item_of_sequence(latent.type.space), Finite)
        and (here.low < there.low or here.high > there.high)
    ):
        message = f"{where} lies {_lies(there)}, and this draw gives numbers {_outside(here, there)}"
        advice = _advice(there)
        scope.report(GUIDE_MISMATCH, message + (f": {advice}" if advice else ""), site.origin, _there(latent, model))


def _lies(one: Interval) -> str:
    if one.high == INFINITE:
        return f"above {one.low:g}"
    return f"below {one.high:g}" if one.low == -INFINITE else f"between {one.low:g} and {one.high:g}"


def _outside(here: Interval, there: Interval) -> str:
    return f"below {there.low:g}" if here.low < there.low else f"above {there.high:g}"


def _advice(there: Interval) -> str:
    if (there.low, there.high) == (0.0, INFINITE):
        return "a LogNormal or a Gamma stays above 0"
    return "a LogitNormal or a Beta stays between 0 and 1" if (there.low, there.high) == (0.0, 1.0) else ""


def _check_free(
    results: Sequence[StepResult],
    latents: Mapping[str, Latent],
    model: Model,
    bindings: Mapping[str, Binding],
    scope: Scope,
) -> None:
    """Names that nothing above binds: latents that are not drawn there, or nobody's."""
    told: set[str] = set()
    for free in (free for result in results for free in result.free):
        if free.name in told or free.name in bindings:
            continue
        told.add(free.name)
        if free.name in latents:
            message = f"`{free.name}` is a latent of `{model.name}` that this guide does not draw"
            scope.report(GUIDE_MISMATCH, message, free.origin, _there(latents[free.name], model))
        elif not free.argument:
            _unknown(free, model, bindings, scope)


def _unknown(free: FreeName, model: Model, bindings: Mapping[str, Binding], scope: Scope) -> None:
    near = closest(free.name, [name for name in candidates(bindings) if name])
    message = f"`{free.name}` is neither bound in this guide nor data of `{model.name}`"
    message += f"; did you mean `{near}`?" if near else ""
    fixes = (Fix(f"Change to `{near}`", (Edit(free.origin, near),), True),) if near else ()
    scope.report(GUIDE_MISMATCH, message, free.origin, _named(model), fixes)


def _check_weights(results: Sequence[StepResult], scope: Scope) -> None:
    for result in results:
        entry = next((one for one in result.entries.values() if isinstance(one, ArrowEntry) and one.weights), None)
        if entry is not None and result.binds:
            name = entry.weights[0].name
            message = f"the weights of `{name}` have a prior: a guide's own are learned, so it cannot apply them"
            related = (Related(f"`{name}` is declared here", DeclarationSite(name)),)
            scope.report(GUIDE_MISMATCH, message, next(iter(result.binds.values())).origin, related)
            return


def _check_header(model: Model, header: ProgramHeader, whole: Named, uses_input: bool, scope: Scope) -> None:
    if uses_input and not model.reads_input:
        message = f"`{model.name}` never reads its input, so its guide has none to read: read its data by name"
        scope.report(GUIDE_MISMATCH, message, model.place, _named(model))
    elif model.reads_input:
        scope.require_fit(
            model.domain,
            whole,
            header.domain.span,
            GUIDE_MISMATCH,
            f"`{model.name}` reads",
            "its guide here",
            _named(model),
            local=True,
        )


def _check_missing(model: Model, header: ProgramHeader, lacking: Sequence[Latent], scope: Scope) -> None:
    if not lacking:
        return
    related = tuple(chain.from_iterable(_there(one, model) for one in lacking[:8]))
    if model.rest:
        stuck = next((one for one in lacking if one.still), None)
        if stuck is not None:
            message = f"`{stuck.name}` {stuck.still} in `{model.name}`: no mean-field Normal moves it, so draw it here"
            scope.report(GUIDE_MISMATCH, message, model.place, _there(stuck, model))
        return
    names = [f"the missing cells of `{one.name}`" if one.imputed else f"`{one.name}`" for one in lacking]
    shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    verb = "is a latent" if len(names) == 1 and not lacking[0].imputed else "are latents"
    message = f"{shown} {verb} of `{model.name}` that this guide does not draw"
    movable = not any(one.still for one in lacking)
    if movable:
        message += "; `rest=mean_field` leaves what is missing to the automatic guide"
    edit = Edit(scope.origin(model.place), ", rest=mean_field", "after")
    fixes = (Fix("Leave the rest to the automatic guide", (edit,)),) if movable else ()
    scope.report(GUIDE_MISMATCH, message, model.place, related, fixes)
