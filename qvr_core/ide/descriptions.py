"""What declared things are: objects, arrows, programs, sites."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import TYPE_CHECKING

from qvr_core.ide import arrows_in_words
from qvr_core.ide.axes import axes_of, let_type
from qvr_core.ide.hovers.sites import words_of_site
from qvr_core.ide.imports.homes import home_named
from qvr_core.ide.language_words import sentence
from qvr_core.ide.prose import Code, Comment, Prose, prose
from qvr_core.ide.symbols import Symbol, lookup, references
from qvr_core.ide.types_in_words import element_words, let_words, set_words
from qvr_core.ide.view import model_of
from qvr_core.semantics.arrows.parameters import UnknownSize, parameter_shapes
from qvr_core.semantics.deductions.rule_instances import weight_count
from qvr_core.semantics.language.declared_families import facts_of
from qvr_core.semantics.language.families import FAMILIES
from qvr_core.semantics.programs.parameter_count import parameter_count
from qvr_core.semantics.scope.scope import ArrowEntry
from qvr_core.semantics.types.model.arrows import (
    Arrow,
    Attention,
    BatchNorm,
    Compose,
    Conv,
    Damaged,
    Discretize,
    Dropout,
    Embed,
    Kernel,
    Latent,
    Lift,
    LinearMap,
    Norm,
    Observed,
    Pool,
    Position,
    Ref,
    Scan,
    Sort,
)
from qvr_core.semantics.types.model.families import DeclaredFamily
from qvr_core.semantics.types.model.file import Replicated
from qvr_core.semantics.types.model.programs import Program
from qvr_core.semantics.types.model.steps import (
    LetModel,
    MarginalizeModel,
    ObserveModel,
    PredictModel,
    SampleModel,
)
from qvr_core.semantics.types.spaces import Finite, Named, Space, factors_of, has_seq, item_of
from qvr_core.semantics.types.type_text import space_text, structure
from qvr_core.semantics.types.walk import all_steps, arrow_named, parts, sites, walk
from qvr_core.syntax.tree.declarations import DefDecl, DefHeader, FamilyHeader
from qvr_core.syntax.tree.steps import LetStep
from qvr_core.syntax.tree.units import Statement
from qvr_core.syntax.tree_to_text import to_text

if TYPE_CHECKING:
    from qvr_core.analysis import Snapshot

SHOWN_USES = 8


def documentation(snapshot: Snapshot, symbol: Symbol) -> Comment:
    held = lookup(snapshot, symbol.name)
    if held is None and (home := home_named(snapshot, symbol.name)) is not None:
        return Comment(home.statement.doc)
    return Comment(held.doc if held is not None else "")


def object_text(snapshot: Snapshot, symbol: Symbol) -> Prose:
    """An object: its space, size, and where it is used."""
    held = model_of(snapshot).objects.get(symbol.name)
    if held is None:
        return prose(f"object `{symbol.name}`, which has an error", documentation(snapshot, symbol))
    lines = [f"object {held.name} : {structure(held.space.space)}"]
    alias = f"Another name of `{held.alias}`." if held.alias else ""
    shape = set_words(held.space.space) or _vectors(held.space.space)
    written = held.space.written
    composed = f"Written `{written}`." if written not in (held.name, structure(held.space.space)) else ""
    members = _membership(snapshot, held.name) if isinstance(held.space.space, Finite) else ""
    return prose(
        Code(lines[0]), documentation(snapshot, symbol), alias, composed, shape, members, _uses(snapshot, symbol)
    )


def _membership(snapshot: Snapshot, name: str) -> str:
    """Whose values are the elements of a set, and what has a value for each of them."""
    labels: dict[str, None] = {}
    valued: dict[str, dict[str, None]] = {"observed": {}, "given": {}, "latent": {}, "summed out": {}}
    for program in model_of(snapshot).programs.values():
        known = axes_of(program)
        role = {item.name: "given" for item in program.data}
        role |= {site.name: "latent" for site in sites(program.steps, SampleModel)}
        role |= {site.name: "summed out" for site in sites(program.steps, MarginalizeModel)}
        role |= {site.name: "observed" for site in sites(program.steps, ObserveModel)}
        for each, (axes, _, element) in known.items():
            own = role.get(each)
            if element == name and own not in (None, "latent") and name not in axes:
                labels[f"`{each}`"] = None
            if name in axes and own is not None and (own != "latent" or len(axes) == 1):
                valued[own][f"`{each}`"] = None
    names = f"The values of {_listed(labels)} are its elements." if labels else ""
    parts = [f"{_listed(own)} {'is' if len(own) == 1 else 'are'} {role}" for role, own in valued.items() if own]
    return " ".join(filter(None, (names, f"Of each, {'; '.join(parts)}." if parts else "")))


def _listed(shown: Iterable[str]) -> str:
    """`a, b and c`, the first of them where they are many."""
    each = list(shown)
    first = each[:SHOWN_USES] + ([f"{len(each) - SHOWN_USES} more"] if len(each) > SHOWN_USES else [])
    return first[0] if len(first) == 1 else f"{', '.join(first[:-1])} and {first[-1]}"


def _vectors(space: Space) -> str:
    """What is in a space: `A vector of 4 numbers; of B rows at once the shape is (B, 4).`"""
    words = element_words(space)
    shape = arrows_in_words.shape_text(space)
    one = {"one number": "One number", "": "Values"}.get(words, f"A vector of {words}" if "numbers" in words else words)
    return f"{sentence(one).rstrip('.')}; a batch of B rows of them has the shape `{shape}`."


def _uses(snapshot: Snapshot, symbol: Symbol) -> str:
    users: dict[str, None] = {}
    for found in references(snapshot, symbol):
        unit = found.statement.header.unit
        name = unit.declares[0].text if unit.declares else unit.keyword
        if found.occurrence.part != "declare":
            users[name] = None
    if not users:
        return "Not used."
    shown = ", ".join(f"`{name}`" for name in list(users)[:SHOWN_USES])
    more = f" and {len(users) - SHOWN_USES} more" if len(users) > SHOWN_USES else ""
    return f"Used by {shown}{more}."


def arrow_text(snapshot: Snapshot, name: str) -> Prose:
    """A morphism, let or program: type, sort, shapes, parameters, density, doc."""
    model = model_of(snapshot)
    symbol = Symbol("", name)
    if name in model.replicated:
        return _replicated(snapshot, model.replicated[name])
    arrow = arrow_named(model, name)
    if arrow is None or isinstance(arrow, Damaged):
        return prose(f"`{name}`, which has an error", documentation(snapshot, symbol))
    if isinstance(arrow, Program):
        return program_text(snapshot, arrow)
    count = parameter_count(model, arrow)
    return prose(
        Code(f"{name} : {arrow.domain.written} {arrow.sort.value} {arrow.codomain.written}"),
        documentation(snapshot, symbol),
        SORTS.get(arrow.sort, ""),
        _network(arrow) or _kind(arrow),
        _algebra(snapshot, name, arrow),
        _widths(arrow.domain, arrow.codomain),
        _pipeline(arrow),
        arrows_in_words.memory_text(count) if count else "",
        _prior(arrow),
        _density(arrow),
    )


def _algebra(snapshot: Snapshot, name: str, arrow: Arrow) -> str:
    """In which composition a tensor arrow composes that is made of others: a change of base may have led there."""
    entry = snapshot.entries.get(name)
    if isinstance(arrow, Latent | Observed) or not isinstance(entry, ArrowEntry) or entry.algebra is None:
        return ""
    return f"Weights in `{entry.algebra}`."


SORTS = {
    Sort.DETERMINISTIC: "`=>`: it computes its result and draws nothing.",
    Sort.SAMPLED: "`->`: its result is drawn at random.",
}


def _density(arrow: Arrow | Program) -> str:
    """How exactly a fit knows the probability of what an arrow draws."""
    density = arrow.density
    if density.kind == "conditional":
        return f"A fit knows the density of its result exactly, given {arrows_in_words.innovations_text(density)}."
    if density.kind == "exact":
        return "A fit knows the density of its result exactly: nothing is estimated by simulation."
    return sentence(arrows_in_words.density_text(density))


def _prior(arrow: Arrow) -> str:
    """What the weights of a morphism are drawn from, and how many they are."""
    if not isinstance(arrow, Embed | LinearMap | Kernel) or arrow.prior is None:
        return ""
    family, arguments = arrow.prior
    drawn = f"{family}({', '.join(f'{value:g}' for _, value in arguments)})"
    try:
        count = sum(map(prod, parameter_shapes(arrow).values()))
    except UnknownSize:
        return f"Weights: latent, each drawn from `{drawn}`"
    return f"Weights: {count:,} latent numbers, each drawn from `{drawn}`"


def _network(arrow: Arrow) -> str:
    """What a kernel does, in words."""
    if not isinstance(arrow, Kernel) or arrow.fixed is not None or arrow.family is None or arrow.tie is not None:
        return ""
    own = arrow.declared
    family = facts_of(own) if isinstance(own, DeclaredFamily) else FAMILIES.get(arrow.family)
    if family is None:
        return ""
    finite = all(isinstance(factor, Finite) for factor in factors_of(item_of(arrow.domain.space)))
    how = (
        "a table, with a row for each input," if finite
        else f"a network of two hidden layers of {arrow.hidden_dim}" if arrow.param_source == "mlp"
        else "a linear map"
    )  # fmt: skip
    starts = f" Training starts with a scale of {arrow.scale:g} and learns it." if family.has_scale else ""
    return (
        f"Given {_article(arrow.domain)}, draws {_article(arrow.codomain)}: {how} gives the parameters of a "
        f"`{arrow.family}`, and the result is one draw from it.{starts}"
    )


def _article(space: Named) -> str:
    """`a Token`, `an Embedded and a Hidden`."""
    parts = [part.strip("() ") for part in space.written.split("*")]
    return " and ".join(f"{'an' if part[:1].lower() in 'aeiou' else 'a'} `{part}`" for part in parts)


def _kind(arrow: Arrow) -> str:
    sort = "" if arrow.sort in SORTS else f"{arrows_in_words.sort_word(arrow.sort)} · "
    match arrow:
        case Kernel(family=family, fixed=fixed, param_source=source, hidden_dim=hidden):
            if fixed is not None:
                values = ", ".join(f"{key}={value:g}" for key, value in fixed)
                return f"Draws from `{family}({values})`, the same for every input; it has no weights."
            drawn = f" · `~ {family}`" if family is not None else ", rows sum to 1"
            finite = all(isinstance(factor, Finite) for factor in factors_of(item_of(arrow.domain.space)))
            if arrow.tie is not None:
                written = f"transpose({arrow.tie.name})" if arrow.tie.transposed else arrow.tie.name
                bias = "" if arrow.bias else ", no bias"
                return f"{sort}kernel{drawn} · linear, with the matrix of `{written}`{bias}"
            network = "table" if finite else f"{source}, {hidden} hidden units" if source == "mlp" else source
            scale = f" · scale {arrow.scale:g}" if family and family in FAMILIES and FAMILIES[family].has_scale else ""
            return f"{sort}kernel{drawn}{scale} · {network}"
        case Embed():
            return f"{sort}embed: a learned vector per element"
        case LinearMap(rank=rank, bias=bias):
            extra = f", rank {rank}" if rank is not None else ""
            return f"{sort}linear{extra}{'' if bias else ', no bias'}"
        case Attention(heads=heads, causal=causal):
            return f"{sort}attention · {heads} head{'s' if heads != 1 else ''}{', causal' if causal else ''}"
        case Position(max_length=length):
            return f"{sort}learned positions up to {length}"
        case Conv(kernel=kernel, stride=stride, padding=padding, bias=bias):
            moved = "" if has_seq(arrow.domain.space) else f", stride {stride}, padding {padding}"
            return f"{sort}convolution · window of {kernel}{moved}{'' if bias else ', no bias'}"
        case Pool(kernel=kernel, stride=stride, padding=padding, reduce=reduce):
            what = "mean" if reduce == "mean" else "maximum"
            return f"{sort}{what} of each window of {kernel}, stride {stride}, padding {padding}"
        case Norm():
            return f"{sort}layer norm"
        case BatchNorm():
            return f"{sort}batch norm: by the batch in training, else by what it has stored"
        case Dropout(p=p, once=once):
            return f"{sort}dropout of {p:.0%} in training{', once a sequence' if once else ''}"
        case Latent(algebra=algebra, prior=prior):
            return f"{sort}latent weights in `{algebra}`" + (f" · prior `{prior[0]}`" if prior else "")
        case Observed(algebra=algebra):
            return f"{sort}observed, in `{algebra}`"
        case Discretize(bins=bins):
            return f"{sort}{bins} bins"
        case _:
            return sort.removesuffix(" · ")


def _widths(domain: Named, codomain: Named) -> Prose:
    return prose(
        f"{space_text(domain)} to {space_text(codomain)}", arrows_in_words.shapes_text(domain.space, codomain.space)
    )


def _pipeline(arrow: Arrow) -> Prose:
    compose = arrow.arrow if isinstance(arrow, Lift) else arrow
    text = ""
    if isinstance(compose, Compose):
        text = f"Stages: {arrows_in_words.stages_text(compose)}"
    scans = [part for part in walk(arrow, parts) if isinstance(part, Scan)]
    notes = [scan_note(part) for part in scans]
    return prose(text, *notes)


def scan_note(scan: Scan) -> str:
    cell = f"`{scan.cell.name}`" if isinstance(scan.cell, Ref) else "The cell"
    gives = "every state" if scan.emit_all else "the final state"
    way = "from its end" if scan.backward else "from its start"
    why = " (read off the name)" if scan.inferred else ""
    return f"{cell} reads the sequence {way}{why} and gives {gives}, {space_text(scan.state)}."


def _replicated(snapshot: Snapshot, family: Replicated) -> Prose:
    first = model_of(snapshot).arrows.get(family.copies[0]) if family.copies else None
    if first is None:
        return prose(f"`{family.name}`: {len(family.copies)} copies")
    count = parameter_count(model_of(snapshot), first)
    copies = f"{len(family.copies)} independent copies, `{family.copies[0]}` … `{family.copies[-1]}`."
    return prose(
        Code(f"{family.name} : {first.domain.written} {first.sort.value} {first.codomain.written}"),
        documentation(snapshot, Symbol("", family.name)),
        _kind(first),
        copies,
        _widths(first.domain, first.codomain),
        f"{arrows_in_words.memory_text(count * len(family.copies))} in all" if count else "",
    )


def program_text(snapshot: Snapshot, program: Program) -> Prose:
    """A program: type, sites, data names, parameters, density."""
    drawn_by = {"sample": list[str](), "observe": list[str](), "predict": list[str](), "marginalize": list[str]()}
    for step in all_steps(program.steps):
        match step:
            case SampleModel(site=site):
                drawn_by["sample"].append(site.name)
            case ObserveModel(site=site):
                drawn_by["observe"].append(site.name)
            case PredictModel(site=site):
                drawn_by["predict"].append(site.name)
            case MarginalizeModel(site=site):
                drawn_by["marginalize"].append(site.name)
            case _:
                pass
    drawn = "Latent" if program.guidance is None else "Draws"
    words = {"sample": drawn, "observe": "Observed", "predict": "Predicted", "marginalize": "Summed out"}
    listed = [
        f"{words[kind]}: {', '.join(f'`{name}`' for name in dict.fromkeys(names))}"
        for kind, names in drawn_by.items()
        if names
    ]
    data = ", ".join(f"`{item.name}`" for item in program.data)
    count = parameter_count(model_of(snapshot), program)
    template = ", ".join(f"`{item.written}`" for item in program.template)
    unsized = any(item.kind == "Object" for item in program.template)  # its calls say how wide it is
    return prose(
        Code(f"program {program.name} : {_declared_type(program)}"),
        documentation(snapshot, Symbol("", program.name)),
        f"Template over {template}." if template else "",
        _guidance(program),
        () if unsized else _reads(program),
        "\n".join(listed),
        f"Data: {data}" if data else "",
        arrows_in_words.memory_text(count) if count and not unsized else "",
        _density(program) if program.uses_input and program.guidance is None else "",
    )


def _declared_type(program: Program) -> str:
    """As the header has it where nothing comes in: then it only names the rows."""
    if program.uses_input:
        return f"{program.domain.written} {program.sort.value} {program.codomain.written}"
    return f"{program.declared_domain.written} -> {program.declared_codomain.written}"


def _guidance(program: Program) -> str:
    """Of what program a guide is one."""
    if program.guidance is None:
        return ""
    rest = "; its other latents have independent Normals" if program.guidance.rest else ""
    return f"Guide of `{program.guidance.model}`, which `qvr run svi` fits with it{rest}."


def _reads(program: Program) -> Prose:
    if program.guidance is not None:
        return ()
    return _widths(program.domain, program.codomain) if program.uses_input else prose(_rows(program))


def _rows(program: Program) -> str:
    words = _words_of(program)
    gives = " and ".join(
        f"`{label or name}`" + (f" ({words[name]})" if words.get(name) else "") for label, name in program.returns
    )
    seen = list(dict.fromkeys(f"`{site.name}`" for site in sites(program.steps, ObserveModel)))
    model = f"A model of {' and '.join(seen)}." if seen else "A model that observes no data."
    rows = f"Its data have one row for each element of `{program.declared_domain.written}`."
    return f"{model} {rows} It returns {gives or 'nothing'}."


def _words_of(program: Program) -> dict[str, str]:
    """What each name of a program is: `one number for each county`."""
    found: dict[str, str] = {}
    for step in all_steps(program.steps):
        match step:
            case LetModel(names=names):
                said = {name: let_words(let_type(step, name)).rstrip(".") for name in names}
                found |= {name: text[:1].lower() + text[1:] for name, text in said.items()}
            case (
                SampleModel(site=site) | ObserveModel(site=site) | PredictModel(site=site)
                | MarginalizeModel(site=site)
            ):  # fmt: skip
                found |= {name: words_of_site(site, name) for name, _ in site.bound}
            case _:
                pass
    return found


def deduction_text(snapshot: Snapshot, symbol: Symbol) -> Prose:
    held = model_of(snapshot).deductions.get(symbol.name)
    if held is None:
        return prose(f"deduction `{symbol.name}`")
    learnable = sum(rule.learnable for rule in held.rules) + sum(entry.learnable for entry in held.lexicon)
    return prose(
        Code(f"deduction {held.name} : {held.domain.written} -> {held.codomain.written}"),
        documentation(snapshot, symbol),
        f"{len(held.rules)} rules, {len(held.lexicon)} lexicon entries, {learnable} of them learnable.",
        f"Semiring {held.semiring}" + (f", start `{held.start}`" if held.start else ""),
        arrows_in_words.memory_text(weights) if (weights := weight_count(held)) else "",
    )


def function_text(snapshot: Snapshot, symbol: Symbol) -> Prose:
    """A function or a family of the file: its header."""
    held = lookup(snapshot, symbol.name) or home_named(snapshot, symbol.name)
    node = held.statement.header.unit.node if held is not None else None
    if isinstance(node, DefDecl):
        node = DefHeader(node.name, node.parameters, None, node.span)
    return prose(Code(to_text(node)) if node is not None else "", documentation(snapshot, symbol))


def bound_text(statement: Statement, name: str) -> Prose:
    """A parameter of a declared family or function, or what a line of its body binds."""
    node = statement.header.unit.node
    if not isinstance(node, FamilyHeader | DefHeader | DefDecl):
        return ()
    kind = "family" if isinstance(node, FamilyHeader) else "function"
    for parameter in node.parameters:
        if parameter.name.text == name:
            text = statement.header.unit.text[parameter.span.start : parameter.span.end]
            return prose(Code(text), f"Parameter of the {kind} `{node.name.text}`.")
    step = next((child for child in statement.header.children if _binds(child.unit.node, name)), None)
    return prose(Code(step.unit.text), f"Of the {kind} `{node.name.text}`.") if step is not None else ()


def _binds(node: object, name: str) -> bool:
    return isinstance(node, LetStep) and any(each.text == name for each in node.pattern.names)


RULES_OF_FAMILIES = {
    "density": "the log density of one element, −∞ outside of the support",
    "draw": "one draw, made of draws from other families; without it the family is observed and sampled by NUTS only",
    "cdf": "the probability of an element up to this one, for censoring and truncation",
    "log_survival": "the log probability of an element above this one, for tails that 1 − cdf would lose",
    "standard": "an element made of a standardised one, shift + factor · z, which `[noncentred]` moves",
}
