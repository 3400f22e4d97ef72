"""The options of a program's header: `effects`, and `lengths` (docs/reference.md#padded-sequences)."""

from __future__ import annotations

from collections.abc import Mapping

from qvr_core.semantics.language.options import EFFECTS, PROGRAM_KEYS, REST
from qvr_core.semantics.language.roles import ROLES
from qvr_core.semantics.language.spelling import closest
from qvr_core.semantics.scope.environment import Binding
from qvr_core.semantics.scope.scope import ArrowEntry, Scope, respelt
from qvr_core.semantics.types.deterministic import deterministic
from qvr_core.semantics.types.diagnostics import DeclarationSite, Edit, Fix, Related
from qvr_core.semantics.types.model.expressions import Bound, Data, Expr, ValueType
from qvr_core.semantics.types.model.extents import Extent
from qvr_core.semantics.types.model.programs import DataName, Program
from qvr_core.semantics.types.program_codes import EFFECT_MISMATCH, PROGRAM_OPTION, TOO_FEW_POSITIONS
from qvr_core.semantics.types.spaces import Finite, Named, Unknown, has_seq
from qvr_core.semantics.types.summed import lets_of
from qvr_core.syntax.immutable import immutable
from qvr_core.syntax.tree.declarations import ProgramHeader
from qvr_core.syntax.tree.names import Name, Span
from qvr_core.syntax.tree.options import ListValue, Option, Options, Word

DEFAULT_POSITIONS = ROLES["position"].options["max_length"].default


@immutable
class HeaderOptions:
    """What the bracket of a header says; `span` is where `effects` stands."""

    effects: frozenset[str] | None
    span: Span
    lengths: Name | None
    keep: tuple[Name, ...] | None = None
    guide: Name | None = None
    """The program that this one is the guide of."""
    guides: bool = False
    """True where the header says that this is a guide."""
    rest: bool = False
    """True where the latents that a guide leaves out have the automatic guide."""

    @property
    def guided_name(self) -> str:
        """The name that `guide=` has, '' where it has none."""
        return "" if self.guide is None else self.guide.text


def read_header_options(header: ProgramHeader, scope: Scope) -> HeaderOptions:
    """The options of a header; reports what else stands in the bracket."""
    effects: frozenset[str] | None = None
    span, lengths = Span(0, 0), None
    keep: tuple[Name, ...] | None = None
    guide, rest = None, None
    for option in header.options.items if header.options is not None else ():
        match option.key.text:
            case "effects":
                effects, span = _effects(option, scope), option.span
            case "lengths":
                lengths = _lengths(option, scope)
            case "keep":
                keep = _keep_option(option, scope)
            case "guide":
                guide = _guide(option, scope)
            case "rest":
                rest = option if _is_mean_field(option, scope) else None
            case _:
                _unknown(option, scope)
    if rest is not None and header.options is not None and not _has(header.options, "guide"):
        message = "`rest` is an option of guides: it says what moves the latents that `guide=…` leaves out"
        scope.report(PROGRAM_OPTION, message, rest.key.span)
    guides = header.options is not None and _has(header.options, "guide")
    return HeaderOptions(effects, span, lengths, keep, guide, guides, rest is not None)


def _has(options: Options, key: str) -> bool:
    return any(option.key.text == key for option in options.items)


def _guide(option: Option, scope: Scope) -> Name | None:
    if isinstance(option.value, Word):
        return Name(option.value.text, option.value.span)
    place = option.span if option.value is None else option.value.span
    scope.report(PROGRAM_OPTION, "`guide` names the program whose latents are drawn here: `guide=model`", place)
    return None


def _is_mean_field(option: Option, scope: Scope) -> bool:
    if isinstance(option.value, Word) and option.value.text in REST:
        return True
    place = option.span if option.value is None else option.value.span
    fix = Fix("Change to `rest=mean_field`", (Edit(scope.origin(option.span), "rest=mean_field"),), True)
    scope.report(PROGRAM_OPTION, "`rest` is `mean_field`", place, fixes=(fix,))
    return False


def _keep_option(option: Option, scope: Scope) -> tuple[Name, ...] | None:
    value = option.value
    items = value.items if isinstance(value, ListValue) else () if value is None else (value,)
    names = tuple(Name(item.text, item.span) for item in items if isinstance(item, Word))
    if value is not None and len(names) == len(items):
        return names
    place = option.span if value is None else value.span
    scope.report(PROGRAM_OPTION, "`keep` lists the lets that are kept: `keep=[eta, rho]`", place)
    return None


def check_keep(names: tuple[Name, ...], program: Program, scope: Scope) -> tuple[str, ...]:
    """The names of `keep`, each a let that depends on a latent."""
    if program.uses_input and names:
        message = f"`{program.name}` reads its input: what it computes differs from row to row and is not kept"
        scope.report(PROGRAM_OPTION, message, names[0].span)
        return ()
    known, summed = deterministic(program), lets_of(program)
    for name in names:
        if name.text in known or name.text in summed:
            continue  # of what is summed out the step that may lack cells says why it is not kept
        near = closest(name.text, known)
        message = f"`{name.text}` is no let that depends on a latent"
        message += (
            f"; did you mean `{near}`?"
            if near
            else f"; those are {', '.join(f'`{k}`' for k in known)}"
            if known
            else ""
        )
        scope.report(PROGRAM_OPTION, message, name.span, fixes=respelt(name, near, scope))
    return tuple(name.text for name in names if name.text in known or name.text in summed)


def _unknown(option: Option, scope: Scope) -> None:
    near = closest(option.key.text, PROGRAM_KEYS)
    message = f"programs have no option `{option.key.text}`"
    message += f"; did you mean `{near}`?" if near else "; they have `effects`, `lengths`, `keep`, `guide` and `rest`"
    fixes = () if near is None else (Fix(f"Change to `{near}`", (Edit(scope.origin(option.key.span), near),), True),)
    scope.report(PROGRAM_OPTION, message, option.key.span, fixes=fixes)


def _effects(option: Option, scope: Scope) -> frozenset[str] | None:
    value = option.value
    items = value.items if isinstance(value, ListValue) else () if value is None else (value,)
    names: set[str] = set()
    good = True
    for item in items:
        if isinstance(item, Word) and item.text in EFFECTS:
            names.add(item.text)
            continue
        good = False
        text = item.text if isinstance(item, Word) else "this"
        near = closest(text, EFFECTS)
        message = f"there is no effect `{text}`" + (f"; did you mean `{near}`?" if near else f": {', '.join(EFFECTS)}")
        fixes = () if near is None else (Fix(f"Change to `{near}`", (Edit(scope.origin(item.span), near),), True),)
        scope.report(EFFECT_MISMATCH, message, item.span, fixes=fixes)
    return frozenset(names) if good else None


# ---------------------------------------------------------------- lengths


def _lengths(option: Option, scope: Scope) -> Name | None:
    if isinstance(option.value, Word):
        return Name(option.value.text, option.value.span)
    place = option.span if option.value is None else option.value.span
    scope.report(PROGRAM_OPTION, "`lengths` names the valid length of each row: `lengths=name`", place)
    return None


@immutable
class Lengths:
    """Where the valid lengths come from: an input, or the data name `datum`."""

    value: Expr
    datum: DataName | None


def check_lengths(
    name: Name, bindings: Mapping[str, Binding], whole: Named, reached: Mapping[str, Extent], scope: Scope
) -> Lengths | None:
    """The lengths of a program that reads `whole` through the arrows `reached`; reports what cannot be."""
    origin = scope.origin(name.span)
    if not has_seq(whole.space):
        if isinstance(whole.space, Unknown) or scope.mistaken:
            # a step with a mistake may be the one that would have read a sequence
            return None
        message = (
            f"`{scope.owner}` reads no sequence that could be padded: nothing here attends, scans or adds positions"
        )
        scope.report(PROGRAM_OPTION, message, name.span)
        return None
    if (scan := next((arrow for arrow, extent in reached.items() if extent.scans), None)) is not None:
        message = f"`{scan}` scans every position of a sequence, the padded ones too: `lengths` is for attention"
        scope.report(PROGRAM_OPTION, message, name.span, _declared(scan, scope, "name"))
        return None
    binding = bindings.get(name.text)
    if binding is None:
        datum = DataName(name=name.text, type=ValueType(None, rows=True), origin=origin)
        return Lengths(Data(type=datum.type, origin=origin, name=name.text), datum)
    if binding.kind != "input":
        message = f"`lengths` names data or an input; `{name.text}` is bound in the body"
        scope.report(PROGRAM_OPTION, message, name.span, [Related(f"`{name.text}` is bound here", binding.origin)])
        return None
    space = binding.named.space
    if not isinstance(space, Finite | Unknown):
        message = f"`lengths` is one whole number for each row, but `{name.text}` is {binding.named.written}"
        scope.report(PROGRAM_OPTION, message, name.span)
        return None
    if isinstance(space, Finite) and isinstance(space.size, int):
        _check_positions(name, int(space.size) - 1, binding.named.written, reached, scope)
    return Lengths(Bound(type=binding.type, origin=origin, name=name.text), None)


def _check_positions(name: Name, longest: int, written: str, reached: Mapping[str, Extent], scope: Scope) -> None:
    for arrow, extent in reached.items():
        if extent.positions is not None and extent.positions < longest:
            message = (
                f"`{name.text}` says that sequences have up to {longest} positions (`{written}` has {longest + 1} "
                f"values), but `{extent.place or arrow}` has learned positions for {extent.positions}"
            )
            where = extent.place or arrow
            fixes: tuple[Fix, ...] = ()
            if isinstance(scope.lookup(where), ArrowEntry) and extent.positions != DEFAULT_POSITIONS:
                edit = Edit(DeclarationSite(where, "option:max_length"), f"max_length={longest}")
                fixes = (Fix(f"Give `{where}` {longest} positions", (edit,), True),)
            related = _declared(where, scope, "option:max_length")
            scope.report(TOO_FEW_POSITIONS, message, name.span, related, fixes=fixes)
            return


def _declared(name: str, scope: Scope, part: str) -> list[Related]:
    known = isinstance(scope.lookup(name), ArrowEntry)
    return [Related(f"`{name}` is declared here", DeclarationSite(name, part))] if known else []
