"""Hover: what a name, an operator, an option or a word of the language is, here."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from qvr_core.ide import arrows
from qvr_core.ide.answers import Hover
from qvr_core.ide.keywords import CALL_WORDS, COMBINATORS, KEYWORDS, POSTFIX
from qvr_core.ide.symbols import Found, Symbol, lookup, place_of, references, symbol_at
from qvr_core.ide.view import model_of
from qvr_core.semantics import model as m
from qvr_core.semantics.builtins import BUILTINS
from qvr_core.semantics.diagnostics import Origin
from qvr_core.semantics.display import space_text, structure
from qvr_core.semantics.families import FAMILIES, support_words
from qvr_core.semantics.roles import ROLES, OptionSpec
from qvr_core.semantics.spaces import Finite, Named, Unknown, factors_of, item_of
from qvr_core.syntax.source import Cursor
from qvr_core.syntax.tree import Placed, Span, Statement

if TYPE_CHECKING:
    from qvr_core.analysis import Snapshot

OPERATOR = re.compile(r">>|[@~*]|<-|->")
WORD = re.compile(r"[A-Za-z_]\w*")
SHOWN_USES = 8


def hover(snapshot: Snapshot, cursor: Cursor) -> Hover | None:
    """What stands at the cursor; None where there is nothing to say."""
    found = symbol_at(snapshot, cursor)
    if found is not None:
        markdown = _symbol(snapshot, found)
        return Hover(markdown, place_of(snapshot, found)) if markdown else None
    place = snapshot.unit_at(cursor)
    if place is None:
        return None
    statement, placed, offset = place
    return _operator(snapshot, statement, placed, offset) or _word(snapshot, placed, offset)


def code(text: str) -> str:
    return f"```qvr\n{text}\n```"


def paragraphs(*parts: str) -> str:
    return "\n\n".join(part for part in parts if part)


# ---------------------------------------------------------------- names


def _symbol(snapshot: Snapshot, found: Found) -> str:
    symbol = found.symbol
    match symbol.kind:
        case "object":
            return object_text(snapshot, symbol)
        case "morphism" | "let" | "program":
            return arrow_text(snapshot, found.occurrence.text if symbol.kind == "morphism" else symbol.name)
        case "composition":
            return paragraphs(
                code(f"composition {symbol.name}"), KEYWORDS["composition"].summary, _doc(snapshot, symbol)
            )
        case "deduction":
            return _deduction(snapshot, symbol)
        case "site" | "binding" | "input" | "template":
            return _bound(snapshot, found)
        case "data":
            return _data(snapshot, found)
        case "family":
            return family_text(symbol.name)
        case "combinator":
            return _combinator(snapshot, found)
        case "builtin":
            return builtin_text(symbol.name)
        case "option":
            return option_text(symbol.name, symbol.of)
        case "word":
            return _option_word(found)
        case "keyword":
            return _keyword_argument(symbol)
        case "space":
            return keyword_text(symbol.name)
        case "attribute":
            return _attribute(symbol.name)
        case "size":
            return paragraphs(
                f"`{symbol.name}`: a size, the same wherever the file names it", _size_value(snapshot, found)
            )
        case "local":
            return f"`{symbol.name}`: bound here"
        case "label":
            return f"`{symbol.name}`: an element, or the name of a factor"
        case "atom" | "rule":
            return f"`{symbol.name}`: {symbol.kind} of this deduction"
        case "kind" if symbol.name in KEYWORDS:
            return keyword_text(symbol.name)
        case _:
            return ""


def _doc(snapshot: Snapshot, symbol: Symbol) -> str:
    held = lookup(snapshot, symbol.name)
    return held.statement.doc if held is not None else ""


def object_text(snapshot: Snapshot, symbol: Symbol) -> str:
    """An object: its space, size, and where it is used."""
    held = model_of(snapshot).objects.get(symbol.name)
    if held is None:
        return paragraphs(f"object `{symbol.name}`, which has an error", _doc(snapshot, symbol))
    lines = [f"object {held.name} : {structure(held.space.space)}"]
    alias = f"Another name of `{held.alias}`." if held.alias else ""
    shape = f"Values have shape `{arrows.shape_text(held.space.space)}`."
    written = held.space.written
    composed = f"Written `{written}`." if written not in (held.name, structure(held.space.space)) else ""
    return paragraphs(code(lines[0]), _doc(snapshot, symbol), alias, composed, shape, _uses(snapshot, symbol))


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


def arrow_text(snapshot: Snapshot, name: str) -> str:
    """A morphism, let or program: type, sort, shapes, parameters, density, doc."""
    model = model_of(snapshot)
    symbol = Symbol("", name)
    if name in model.replicated:
        return _replicated(snapshot, model.replicated[name])
    arrow = arrows.arrow_named(model, name)
    if arrow is None or isinstance(arrow, m.Damaged):
        return paragraphs(f"`{name}`, which has an error", _doc(snapshot, symbol))
    if isinstance(arrow, m.Program):
        return program_text(snapshot, arrow)
    count = arrows.parameter_count(model, arrow)
    return paragraphs(
        code(f"{name} : {arrow.domain.written} {arrow.sort.value} {arrow.codomain.written}"),
        _doc(snapshot, symbol),
        _kind(arrow),
        _widths(arrow.domain, arrow.codomain),
        _pipeline(arrow),
        arrows.memory_text(count) if count else "",
        _sentence(arrows.density_text(arrow.density)),
    )


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "." if text else ""


def _kind(arrow: m.Arrow) -> str:
    sort = arrows.sort_word(arrow.sort)
    match arrow:
        case m.Kernel(family=family, fixed=fixed, param_source=source, hidden_dim=hidden):
            if fixed is not None:
                values = ", ".join(f"{key}={value:g}" for key, value in fixed)
                return f"{sort} · kernel · `{family}({values})`, the same for every input"
            drawn = f" · `~ {family}`" if family is not None else ", rows sum to 1"
            finite = all(isinstance(factor, Finite) for factor in factors_of(item_of(arrow.domain.space)))
            network = "table" if finite else f"{source}, {hidden} hidden units" if source == "mlp" else source
            scale = f" · scale {arrow.scale:g}" if family and family in FAMILIES and FAMILIES[family].has_scale else ""
            return f"{sort} · kernel{drawn}{scale} · {network}"
        case m.Embed():
            return f"{sort} · embed: a learned vector per element"
        case m.LinearMap(rank=rank, bias=bias):
            extra = f", rank {rank}" if rank is not None else ""
            return f"{sort} · linear{extra}{'' if bias else ', no bias'}"
        case m.Attention(heads=heads, causal=causal):
            return f"{sort} · attention · {heads} head{'s' if heads != 1 else ''}{', causal' if causal else ''}"
        case m.Position(max_length=length):
            return f"{sort} · learned positions up to {length}"
        case m.Norm():
            return f"{sort} · layer norm"
        case m.Latent(algebra=algebra, prior=prior):
            return f"{sort} · latent weights in `{algebra}`" + (f" · prior `{prior[0]}`" if prior else "")
        case m.Observed(algebra=algebra):
            return f"{sort} · observed, in `{algebra}`"
        case m.Discretize(bins=bins):
            return f"{sort} · {bins} bins"
        case _:
            return sort


def _widths(domain: Named, codomain: Named) -> str:
    shapes = f"`{arrows.shape_text(domain.space)} -> {arrows.shape_text(codomain.space)}`"
    return f"{space_text(domain)} to {space_text(codomain)}\n\nShapes: {shapes}"


def _pipeline(arrow: m.Arrow) -> str:
    compose = arrow.arrow if isinstance(arrow, m.Lift) else arrow
    text = ""
    if isinstance(compose, m.Compose):
        text = f"Stages: {arrows.stages_text(compose)}"
    scans = [part for part in arrows.walk(arrow) if isinstance(part, m.Scan)]
    notes = [_scan_note(part) for part in scans]
    return paragraphs(text, *notes)


def _scan_note(scan: m.Scan) -> str:
    cell = scan.cell.name if isinstance(scan.cell, m.Ref) else "the cell"
    gives = "every state" if scan.emit_all else "the final state"
    way = "from its end" if scan.backward else "from its start"
    why = " (read off the name)" if scan.inferred else ""
    return f"`{cell}` reads the sequence {way}{why} and gives {gives}, {space_text(scan.state)}."


def _replicated(snapshot: Snapshot, family: m.Replicated) -> str:
    first = model_of(snapshot).arrows.get(family.copies[0]) if family.copies else None
    if first is None:
        return f"`{family.name}`: {len(family.copies)} copies"
    count = arrows.parameter_count(model_of(snapshot), first)
    copies = f"{len(family.copies)} independent copies, `{family.copies[0]}` … `{family.copies[-1]}`."
    return paragraphs(
        code(f"{family.name} : {first.domain.written} {first.sort.value} {first.codomain.written}"),
        _doc(snapshot, Symbol("", family.name)),
        _kind(first),
        copies,
        _widths(first.domain, first.codomain),
        f"{arrows.memory_text(count * len(family.copies))} in all" if count else "",
    )


def program_text(snapshot: Snapshot, program: m.Program) -> str:
    """A program: type, sites, data names, parameters, density."""
    sites = {"sample": list[str](), "observe": list[str](), "marginalize": list[str]()}
    for step in arrows.all_steps(program.steps):
        match step:
            case m.SampleModel(site=site):
                sites["sample"].append(site.name)
            case m.ObserveModel(site=site):
                sites["observe"].append(site.name)
            case m.MarginalizeModel(site=site):
                sites["marginalize"].append(site.name)
            case _:
                pass
    words = {"sample": "Latent", "observe": "Observed", "marginalize": "Summed out"}
    listed = [
        f"{words[kind]}: {', '.join(f'`{name}`' for name in dict.fromkeys(names))}"
        for kind, names in sites.items()
        if names
    ]
    data = ", ".join(f"`{item.name}`" for item in program.data)
    count = arrows.parameter_count(model_of(snapshot), program)
    template = ", ".join(f"`{item.name} : {item.kind}`" for item in program.template)
    return paragraphs(
        code(f"program {program.name} : {program.domain.written} {program.sort.value} {program.codomain.written}"),
        _doc(snapshot, Symbol("", program.name)),
        f"Template over {template}." if template else "",
        _widths(program.domain, program.codomain) if program.uses_input else _rows(program),
        "  \n".join(listed),
        f"Data: {data}" if data else "",
        arrows.memory_text(count) if count else "",
        _sentence(arrows.density_text(program.density)) if program.uses_input else "",
    )


def _rows(program: m.Program) -> str:
    gives = ", ".join(label or name for label, name in program.returns)
    return f"Never uses its input: the declared type names its rows. Returns {gives or 'nothing'}."


def _deduction(snapshot: Snapshot, symbol: Symbol) -> str:
    held = model_of(snapshot).deductions.get(symbol.name)
    if held is None:
        return f"deduction `{symbol.name}`"
    learnable = sum(rule.learnable for rule in held.rules) + sum(entry.learnable for entry in held.lexicon)
    return paragraphs(
        code(f"deduction {held.name} : {held.domain.written} -> {held.codomain.written}"),
        _doc(snapshot, symbol),
        f"{len(held.rules)} rules, {len(held.lexicon)} lexicon entries, {learnable} of them learnable.",
        f"Semiring {held.semiring}" + (f", start `{held.start}`" if held.start else ""),
    )


# ---------------------------------------------------------------- names of a program


def _program_of(snapshot: Snapshot, statement: Statement) -> m.Program | None:
    names = statement.header.unit.declares
    return model_of(snapshot).programs.get(names[0].text) if names else None


def _bound(snapshot: Snapshot, found: Found) -> str:
    program = _program_of(snapshot, found.statement)
    name = found.symbol.name
    if program is None:
        return f"`{name}`: {found.symbol.kind}"
    if found.symbol.kind == "input":
        for item in program.inputs:
            if item.name == name:
                shape = arrows.shape_text(item.space.space)
                return paragraphs(
                    code(f"{name} : {item.space.written}"), f"Input · {space_text(item.space)} · `{shape}`"
                )
    if found.symbol.kind == "template":
        for item in program.template:
            if item.name == name:
                sides = f"[{item.mor[0].written}, {item.mor[1].written}]" if item.mor else ""
                return paragraphs(code(f"{name} : {item.kind}{sides}"), "Parameter of the template, given by keyword")
    for step in arrows.all_steps(program.steps):
        text = _step(step, name)
        if text:
            return text
    return f"`{name}`: {found.symbol.kind}"


def _step(step: m.StepModel, name: str) -> str:
    match step:
        case m.SampleModel(site=site) if name == site.name or name in (bound for bound, _ in site.bound):
            return site_text(site, name, "latent")
        case m.ObserveModel(site=site) if name == site.name:
            return site_text(site, name, "observed")
        case m.MarginalizeModel(site=site) if name == site.name:
            return site_text(site, name, "summed out exactly")
        case m.LetModel(names=names, value=value) if name in names:
            return paragraphs(code(f"let {', '.join(names)}"), value_text(value.type))
        case m.ScoreModel(name=own) if own == name:
            return paragraphs(code(f"score {name}"), "Added to the log joint density")
        case _:
            return ""


def site_text(site: m.Site, name: str, role: str) -> str:
    """A site: shape, support, latent or observed, density."""
    space = next((space for bound, space in site.bound if bound == name), None)
    if space is not None and isinstance(space.space, Unknown):
        space = None
    match site.draw:
        case m.FamilyDraw(family=family):
            drawn = f"from `{family}`"
            support = f"Support: {support_text(family)}" if family in FAMILIES else ""
        case m.ArrowDraw(arrow=arrow):
            drawn = f"from `{arrow.name}`" if isinstance(arrow, m.Ref) else "from an arrow"
            support = ""
    plate = site.ascribed if site.ascription in (m.Ascription.PLATE, m.Ascription.ROW_DRAWS) else None
    shape = f"Shape: `{arrows.plate_shape(plate, space)}`" if space is not None or plate is not None else ""
    return paragraphs(
        code(f"{name} : {space.written}" if space is not None else name),
        f"{role} · {drawn}" + (f" · {space_text(space)}" if space is not None else ""),
        shape,
        f"One draw per element of {space_text(plate)}." if plate is not None else "",
        support,
        _sentence(arrows.density_text(site.density)),
        "Drawn anew in each row of the batch." if site.row_local and plate is not None else "",
    )


def support_text(name: str) -> str:
    return support_words(FAMILIES[name]).removeprefix("from ")


def value_text(kind: m.ValueType) -> str:
    """The type of a value in arithmetic."""
    parts = [structure(kind.space) if kind.space is not None else "depends on the data"]
    if kind.indexed:
        parts.append("indexed by " + ", ".join(f"`{name}`" if name else "an anonymous set" for name in kind.indexed))
    parts.append("differs from row to row" if kind.rows else "the same for all rows")
    return " · ".join(parts)


def _data(snapshot: Snapshot, found: Found) -> str:
    name = found.symbol.name
    users = [program for program in snapshot.model.programs.values() if any(item.name == name for item in program.data)]
    kinds = [value_text(item.type) for program in users for item in program.data if item.name == name]
    names = ", ".join(f"`{program.name}`" for program in users)
    return paragraphs(
        code(name),
        f"Data: supplied at run time{f' to {names}' if names else ''}.",
        kinds[0] if kinds else "",
    )


# ---------------------------------------------------------------- the language


def family_text(name: str) -> str:
    """A family: parameters, constraints, support."""
    family = FAMILIES[name]
    signature = ", ".join(
        item.name if item.default is None else f"{item.name}={item.default:g}" for item in family.parameters
    )
    rows = [
        f"- `{item.name}`: {item.constraint}"
        + (f" ({item.shape})" if item.shape != "element" else "")
        + (f", also called {', '.join(f'`{alias}`' for alias in item.aliases)}" if item.aliases else "")
        + (f", or given as {', '.join(f'`{other}`' for other, _ in item.alternatives)}" if item.alternatives else "")
        for item in family.parameters
    ]
    return paragraphs(
        code(f"{name}({signature})"), _sentence(family.summary), "\n".join(rows), f"Support: {support_text(name)}"
    )


def builtin_text(name: str) -> str:
    function = BUILTINS[name]
    return paragraphs(code(f"{name}({', '.join(function.parameters)})"), _sentence(function.summary))


def combinator_text(name: str) -> str:
    entry = COMBINATORS[name]
    return paragraphs(code(entry.call), entry.summary, f"`{entry.rule}`", f"Weights: {entry.weights}.")


def keyword_text(word: str) -> str:
    entry = KEYWORDS[word]
    return paragraphs(f"**{word}**: {entry.summary}", code(entry.example))


def option_text(key: str, owner: str) -> str:
    """An option: meaning, default, legal values."""
    spec = ROLES[owner].options.get(key) if owner in ROLES else None
    if spec is not None:
        return paragraphs(f"**{key}** (option of `{owner}`)", _sentence(spec.meaning), _legal(spec))
    text = STEP_OPTIONS.get(key)
    return paragraphs(f"**{key}**", text) if text else ""


def _legal(spec: OptionSpec) -> str:
    kinds = {
        "positive": "a number above 0",
        "fraction": "a number from 0 up to but not including 1",
        "count": "a whole number from 1",
        "flag": "`true` or `false`",
        "word": "one of " + ", ".join(f"`{word}`" for word in spec.words),
    }
    default = spec.default
    shown = "none" if default is None else str(default).lower() if isinstance(default, bool) else str(default)
    return f"Takes {kinds[spec.kind]}. Default: {shown}."


STEP_OPTIONS = {
    "via": "An integer vector: the group of each row. Its length is the number of rows.",
    "over": "On `sample` the event axis; on `marginalize` the groups.",
    "iid_over": "The batch plate: independent draws along this axis.",
    "mask": "Rows where it is false do not count.",
    "weight": "The log density of each row is multiplied by it.",
    "at": "Only the rows that this index selects are scored.",
    "reduction": "How the values of a marginalized site are joined: `logsumexp`.",
    "effects": "What the body may do: a subset of `Sample`, `Score`, `Marginal`, `Pure`.",
    "low": "The lower bound of the space.",
    "high": "The upper bound of the space.",
    "semiring": "`LogProb`, `Viterbi`, `Boolean` or `Counting`.",
    "start": "The atom that a whole sentence must have.",
    "depth": "The deepest category that is built.",
    "tolerance": "Changes below this count as the fixed point.",
    "max_iterations": "After so many rounds the chart stops.",
    "learnable": "Gives the rule or entry a learned log-weight.",
    "bounded": "Keeps the log-weight of a cyclic rule negative.",
}


def _option_word(found: Found) -> str:
    symbol = found.symbol
    if symbol.of == "role" and symbol.name in ROLES:
        role = ROLES[symbol.name]
        return paragraphs(
            f"**{symbol.name}** (a role): {role.summary}", f"{role.between}, {arrows.sort_word(role.sort)}"
        )
    return option_text(symbol.of, "") if symbol.of in STEP_OPTIONS else f"`{symbol.name}`: value of `{symbol.of}`"


def _keyword_argument(symbol: Symbol) -> str:
    entry = COMBINATORS.get(symbol.of)
    if entry is not None:
        meaning = dict(entry.parameters).get(symbol.name, "")
        words = CALL_WORDS.get((symbol.of, symbol.name), ())
        return paragraphs(
            f"**{symbol.name}** (of `{symbol.of}`): {meaning}", f"One of {', '.join(words)}" if words else ""
        )
    if symbol.of in FAMILIES:
        return family_text(symbol.of)
    return ""


def _attribute(name: str) -> str:
    if name in POSTFIX:
        call, summary = POSTFIX[name]
        return paragraphs(code(call), summary)
    return f"`.{name}`: a factor of the value, or a method"


def _size_value(snapshot: Snapshot, found: Found) -> str:
    names = found.placed.unit.declares
    held = model_of(snapshot).objects.get(names[0].text) if names else None
    return f"Here: {structure(held.space.space)}" if held is not None else ""


# ---------------------------------------------------------------- operators and words


def _operator(snapshot: Snapshot, statement: Statement, placed: Placed[Any], offset: int) -> Hover | None:
    match = next(
        (found for found in OPERATOR.finditer(placed.unit.text) if found.start() <= offset <= found.end()), None
    )
    if match is None:
        return None
    text = _operator_text(snapshot, statement, placed, match[0], match.start())
    stretch = snapshot.range(Origin(placed.uid, Span(match.start(), match.end())))
    return Hover(text, stretch) if text else None


def _operator_text(snapshot: Snapshot, statement: Statement, placed: Placed[Any], sign: str, offset: int) -> str:
    root = _let_of(snapshot, statement)
    if sign == ">>" and root is not None:
        held = arrows.operator_at(root, placed.uid, offset)
        if held is not None:
            compose, index = held
            left, right = compose.stages[index], compose.stages[index + 1]
            return paragraphs(
                code("f >> g"),
                f"Left gives {space_text(left.codomain)}, right wants {space_text(right.domain)}.",
                f"`{compose.domain.written} {compose.sort.value} {compose.codomain.written}`",
            )
    if sign == "@" and root is not None:
        for arrow in arrows.walk(root):
            if isinstance(arrow, m.Tensor) and arrow.origin.unit == placed.uid:
                sides = f"`{arrow.domain.written} {arrow.sort.value} {arrow.codomain.written}`"
                return paragraphs(code("f @ g"), "Side by side: each on its own part of the input.", sides)
    return paragraphs(code(SIGNS[sign][0]), SIGNS[sign][1]) if sign in SIGNS else ""


SIGNS = {
    ">>": ("f >> g", "First f, then g: the codomain of f must fit the domain of g."),
    "@": ("f @ g", "Side by side: dom f * dom g to cod f * cod g."),
    "~": ("morphism f : A -> B ~ Family", "What the kernel draws from; a prior or a value for tensor arrows."),
    "<-": ("sample v <- f(x)", "Draws v from an arrow or a family."),
    "->": ("f : A -> B", "From the domain to the codomain; the role decides the sort of the arrow."),
    "*": ("A * B", "The product: both values side by side. Widths of real spaces add."),
}


def _let_of(snapshot: Snapshot, statement: Statement) -> m.Arrow | None:
    names = statement.header.unit.declares
    if names and names[0].text in model_of(snapshot).lets:
        return model_of(snapshot).lets[names[0].text].arrow
    for export in snapshot.model.exports if statement.header.unit.keyword == "export" else ():
        if export.origin.unit == statement.header.uid:
            return export.arrow
    return None


def _combinator(snapshot: Snapshot, found: Found) -> str:
    general = combinator_text(found.symbol.name)
    root = _let_of(snapshot, found.statement)
    if root is None:
        return general
    here = _instance(root, found)
    if here is None:
        return general
    typed = code(f"{found.symbol.name} : {here.domain.written} {here.sort.value} {here.codomain.written}")
    note = _scan_note(here) if isinstance(here, m.Scan) else ""
    shapes = f"Shapes: `{arrows.shape_text(here.domain.space)} -> {arrows.shape_text(here.codomain.space)}`"
    return paragraphs(typed, note, shapes, general)


COMBINATOR_NODES: dict[str, tuple[type, ...]] = {
    "fan": (m.Fan,),
    "scan": (m.Scan,),
    "stack": (m.Stack,),
    "repeat": (m.Repeat,),
    "residual": (m.Residual,),
    "identity": (m.Identity,),
    "last": (m.Last,),
    "mean_over_time": (m.MeanOverTime,),
    "from_data": (m.FromData,),
}


def _instance(root: m.Arrow, found: Found) -> m.Arrow | None:
    """The node that a combinator's name begins."""
    kinds = COMBINATOR_NODES.get(found.symbol.name, ())
    for arrow in arrows.walk(root):
        begins = arrow.origin.unit == found.placed.uid and arrow.origin.span.start == found.occurrence.span.start
        if begins and isinstance(arrow, kinds):
            return arrow
    return None


def _word(snapshot: Snapshot, placed: Placed[Any], offset: int) -> Hover | None:
    for match in WORD.finditer(placed.unit.text):
        if match.start() <= offset <= match.end() and match[0] in KEYWORDS:
            stretch = snapshot.range(Origin(placed.uid, Span(match.start(), match.end())))
            return Hover(keyword_text(match[0]), stretch)
    return None
