"""What a program needs from outside: its inputs, observed sites and data names, read off the typed model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from qvr_core.data.purposes import most_elements, purposes_of
from qvr_core.semantics.language.declared_families import facts_of_draw
from qvr_core.semantics.language.outcomes import computed_name, drawn_words
from qvr_core.semantics.language.truncated import family_words, truncated_name
from qvr_core.semantics.programs.undeclared.aligned_data import without_aligned
from qvr_core.semantics.types.data_text import data_text, missing_advice
from qvr_core.semantics.types.diagnostics import Origin
from qvr_core.semantics.types.model.arrows import Attention, Conv, Ref, Scan
from qvr_core.semantics.types.model.expressions import Data, Lexicon
from qvr_core.semantics.types.model.families import FamilyDraw
from qvr_core.semantics.types.model.file import Model
from qvr_core.semantics.types.model.programs import DataName, Program
from qvr_core.semantics.types.model.steps import (
    ArrowDraw,
    MarginalizeModel,
    ObserveModel,
    PredictModel,
    SampleModel,
    Site,
    StepModel,
)
from qvr_core.semantics.types.sentences import sentences_of
from qvr_core.semantics.types.spaces import Constrained, Finite, Named, Product, Real, Seq, Space, Terms
from qvr_core.semantics.types.walk import Node, arrow_named, children, sites, walk


@dataclass(frozen=True, slots=True)
class Axis:
    """A set that data run over, or whose elements they hold: its name (None: anonymous), its size (None: it comes with
    the data) and its labels, where it has some."""

    name: str | None
    size: int | None
    labels: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Need:
    """One thing that must be supplied.

    `role` is 'input', 'observed' or 'data'.  `kind` is 'finite' (0 … size−1), 'count' (0, 1, 2, …), 'real', 'terms' or
    'sentences'; `size` is the number of values of a finite one; `width` the number of columns of a real one.  `low` and
    `high` bound a real value.  `plate` is the declared index set of a site, with its size; `shared`: a latent runs over
    it too, so there must be that many rows.  `labels` those of an enumeration.  `purpose` is what a data name is for,
    where an option says it: ('lengths', ''), or 'at', 'mask', 'weight', 'via', or how it censors or truncates, with the
    site's name; 'times' with the function whose equation is solved at these; 'lowest' and 'highest' with the hidden
    count that it bounds.
    `kind` is 'any' where the program leaves it open.  Where a `data` step declares it, `axes` are the sets that it runs
    over, `values` is the set that its elements belong to, `element` the shape of one element, and `constraint` says
    where that is a 'Simplex', a 'Covariance' and so on.  `missing` is what an observed step does with cells without a
    value: 'impute', 'drop', 'lengths' (none is needed beyond those), or '' where it does not say.  `aligned` says that
    a single number may stand for the axes.
    """

    role: str
    name: str
    kind: str
    written: str
    origin: Origin | None = None
    size: int | None = None
    width: int = 1
    sequence: bool = False
    low: float | None = None
    high: float | None = None
    excluded: tuple[float, ...] = ()
    """Ends of the support that have no density, so that no observed value may stand there."""
    plate: tuple[str, int] | None = None
    shared: bool = False
    labels: tuple[str, ...] | None = None
    purpose: tuple[str, str] | None = None
    axes: tuple[Axis, ...] | None = None
    values: Axis | None = None
    element: tuple[int, ...] = ()
    several: tuple[int, ...] = ()
    """The sizes of an input, or of what an arrow is observed to draw, that has more than one: `Real 1 28 28`."""
    constraint: str = ""
    missing: str = ""
    aligned: bool = False
    inferred: bool = False
    """True of data without a line of their own: nobody has said which numbers they are."""
    drawn: str = ""
    """The family that an observed step draws from."""
    counted: str = ""
    """The data name that says how many elements each sequence of ragged data, or of an observed step, has."""
    terms: Terms | None = None
    """The data type whose terms an input is."""
    lexicon: Lexicon | None = None
    """The words of sentences, which a deduction parses."""
    counts: tuple[tuple[str, tuple[Axis, ...]], ...] = ()
    """Of lengths: the names whose sequences they count, with the sets that these run over."""

    @property
    def endless(self) -> bool:
        """Whether ∞ is a value: the upper end of an interval that has none."""
        return self.purpose is not None and self.purpose[0] == "interval"

    @property
    def fill_in(self) -> str:
        """What to do about a missing value."""
        advice = f"; {missing_advice(self.name)}" if self.role == "observed" and self.terms is None else ""
        if self.role == "data" and self.kind == "real" and self.axes:
            advice = f"; a line `observe {self.name} <- … [missing=impute]` gives the values a model of their own"
        return f"Fill it in, or leave the row out{advice}"


@dataclass(frozen=True, slots=True)
class Needs:
    """Everything a program needs.  A statistical program never uses its input: `inputs` is then empty."""

    program: str
    inputs: tuple[Need, ...]
    observed: tuple[Need, ...]
    data: tuple[Need, ...]
    computed: tuple[Need, ...] = ()
    """What is observed and computed from the data, so that nothing is to be supplied."""

    @property
    def statistical(self) -> bool:
        """Whether the program reads no input: its data are bound whole, not row by row."""
        return not self.inputs

    @property
    def all(self) -> tuple[Need, ...]:
        """Inputs, observed names and data, in this order."""
        return (*self.inputs, *self.observed, *self.data)


def open_sets(model: Model) -> list[str]:
    """The sets of a file whose elements come with the data; their aliases are the same sets."""
    found = (each.space.space for each in model.objects.values())
    return list(dict.fromkeys(
        space.nominal for space in found
        if isinstance(space, Finite) and not isinstance(space.size, int) and space.nominal is not None
    ))  # fmt: skip


def needs_of(program: Program) -> Needs:
    """What `program` needs from outside."""
    inputs: list[Need] = []
    if program.uses_input:
        factors = _factors(program.domain.space)
        names = [item.name for item in program.inputs]
        for number, space in enumerate(factors):
            named = names[number] if len(names) == len(factors) else None
            name = named or ("x" if len(factors) == 1 else f"x_{number}")
            inputs.append(_need("input", name, space, program.domain.written, program.origin))
    latent = _latent_plates(program.steps)
    declared = {item.name: item for item in program.data if item.declared}
    sites = (_observed(site, latent) for site in observed_sites(program.steps) if not site.of_let)
    observed = tuple(_as_declared(need, declared.get(need.name)) for need in sites)
    computed = tuple(_observed(site, latent) for site in observed_sites(program.steps) if site.of_let)
    scored = {need.name for need in observed}
    purposes, groups, most = purposes_of(program), dict(_groups(program.steps)), most_elements(program)
    labels = _labels(program.steps)
    data: list[Need] = []
    typed = any(need.axes is not None for need in observed) or any(map(_laid_out, program.data))
    for item in (item if typed else without_aligned(item) for item in program.data):
        if item.name in scored:
            continue
        if item.declared or item.over:
            need = _as_declared(_data_name(item.name, item.type.space, item.origin, labels), item)
            high = most.get(item.name, need.high)
            data.append(replace(need, purpose=purposes.get(item.name), high=high))
            continue
        need = replace(_data_name(item.name, item.type.space, item.origin, labels), purpose=purposes.get(item.name))
        if need.kind == "any" and item.name in groups:
            written, size = groups[item.name]
            need = replace(need, kind="finite", size=size, written=written, labels=labels.get(written))
        data.append(need)
    lexicons = sentences_of(program)
    data = [_sentences(need, lexicons.get(need.name)) for need in data]
    ragged = [need for need in (*observed, *data) if need.counted and need.axes]
    for at, need in enumerate(data):
        counts = tuple((one.name, one.axes or ()) for one in ragged if one.counted == need.name)
        data[at] = replace(need, counts=counts) if counts else need
    return Needs(program.name, tuple(inputs), observed, tuple(data), computed)


def _sentences(need: Need, lexicon: Lexicon | None) -> Need:
    """What a data name needs that is parsed; the places of one sentence stay what they are."""
    if lexicon is None or (need.axes is not None and not need.sequence):
        return need
    written = need.written if need.axes is not None else f"sentences of `{lexicon.deduction}`"
    return replace(need, kind="sentences", lexicon=lexicon, written=written, sequence=True, values=None)


def names_of(needs: Needs) -> set[str]:
    """What columns may be named for: inputs, data, what is observed, and the sets that they speak of."""
    sets = (axis.name for need in needs.all for axis in (*(need.axes or ()), *([need.values] if need.values else ())))
    return {need.name for need in needs.all} | {name for name in sets if name is not None}


def _laid_out(item: DataName) -> bool:
    """Whether a data name is read by its type: its place among others alone, over sets of known size, asks for none."""
    return item.declared or (
        bool(item.over) and (not item.aligned or not all(map(_sized, (*item.over, item.type.space))))
    )


def _sized(space: Space | None) -> bool:
    return not isinstance(space, Finite) or isinstance(space.size, int)


def _as_declared(need: Need, item: DataName | None) -> Need:
    """A need with what a `data` step says of it."""
    if item is None:
        return need
    found = _data_name(item.name, item.type.space, item.origin, {})
    space = item.type.space.item if isinstance(item.type.space, Seq) else item.type.space
    kind = {"count": "count", "bool": "finite"}.get(item.numbers, found.kind)
    kind = need.kind if need.role == "observed" and found.kind == "real" and not item.numbers else kind
    kind = "any" if kind == "real" and (item.aligned or not item.declared) else kind
    low = found.low if need.low is None else need.low if found.low is None else max(need.low, found.low)
    high = found.high if need.high is None else need.high if found.high is None else min(need.high, found.high)
    return replace(
        need,
        kind=kind,
        origin=item.origin,
        written=data_text(item.type, item.numbers, item.lengths),
        size=found.size or need.size,
        width=max(found.width, need.width),
        sequence=found.sequence,
        low=low,
        high=high,
        labels=need.labels or getattr(space, "labels", None),
        axes=tuple(_axis(over) for over in item.over),
        values=_axis(space) if isinstance(space, Finite) else None,
        element=_element(space),
        constraint=space.kind if isinstance(space, Constrained) else "",
        aligned=item.aligned,
        inferred=not item.declared,
        missing=need.missing or ("lengths" if item.lengths else ""),
        counted=need.counted or item.lengths,
    )


def _axis(space: Finite) -> Axis:
    return Axis(space.nominal, _number(space.size), space.labels)


def _element(space: Space | None) -> tuple[int, ...]:
    """The shape of one element; () for a number."""
    match space:
        case Real(shape=shape) if all(isinstance(size, int) for size in shape):
            found = tuple(int(size) for size in shape if isinstance(size, int))
            return () if found == (1,) else found
        case Constrained(kind="Simplex", size=int() as size):
            return (int(size),)
        case Constrained(size=int() as size):
            return (int(size), int(size))
        case _:
            return ()


def _groups(
    steps: tuple[StepModel, ...], over: tuple[str, int | None] | None = None
) -> Iterator[tuple[str, tuple[str, int | None]]]:
    """(data name, the set whose elements it numbers, with its size) for what `via` and `at` of a family's site name."""
    for step in steps:
        match step:
            case MarginalizeModel(body=body, over=Named(space=Finite(size=size), written=written)):
                yield from _groups(body, (written, _number(size)))
            case MarginalizeModel(body=body):
                yield from _groups(body, over)
            case SampleModel(site=site) | ObserveModel(site=site) | PredictModel(site=site) if isinstance(
                site.draw, FamilyDraw
            ):
                for option in (site.via, site.at):
                    if isinstance(option, Data):
                        yield option.name, over or _looked_up(site.draw, site)
            case _:
                pass


def _looked_up(draw: FamilyDraw, site: Site) -> tuple[str, int | None]:
    """The plate of the arguments that are looked up for each row."""
    own = getattr(named.space, "nominal", None) if (named := site.element or site.plate) is not None else None
    types = [value.type for _, value in draw.args if value.type.sizes]
    if not types:
        return "data", None
    found = min(types, key=lambda type: type.indexed[:1] == (own,))
    return (found.indexed[0] if found.indexed else None) or "data", _number(found.sizes[0])


def observed_sites(steps: tuple[StepModel, ...]) -> Iterator[Site]:
    """All observed sites, those inside `marginalize` blocks included."""
    return sites(steps, ObserveModel)


def _latent_plates(steps: tuple[StepModel, ...]) -> frozenset[str]:
    """The index sets that a latent runs over."""
    sites = (step.site for step in steps if isinstance(step, SampleModel))
    return frozenset(plate.written for site in sites if (plate := site.elementwise) is not None)


def reads_both_ways(program: Program, model: Model) -> bool:
    """True where a position sees what follows it: scans in both directions, attention that is not causal, or a
    convolution."""
    directions: set[bool] = set()
    for node in reachable(program, model):
        match node:
            case Scan(backward=backward):
                directions.add(backward)
            case Attention(causal=False):
                return True
            case Conv(domain=Named(space=Seq()), kernel=kernel) if kernel > 1:
                return True
            case _:
                pass
    return len(directions) == 2


def _factors(space: Space) -> tuple[Space, ...]:
    """The factors of a product, each with the sequence that stands around it."""
    match space:
        case Product(factors=factors):
            return factors
        case Seq(item=Product(factors=factors)):
            return tuple(Seq(item=factor) for factor in factors)
        case _:
            return (space,)


def _number(size: object) -> int | None:
    return size if isinstance(size, int) else None


def _need(role: str, name: str, space: Space, written: str, origin: Origin | None) -> Need:
    sequence = isinstance(space, Seq)
    item = space.item if isinstance(space, Seq) else space
    match item:
        case Finite(size=size, labels=labels):
            return Need(role, name, "finite", written, origin, size=_number(size), sequence=sequence, labels=labels)
        case Real(shape=shape, low=low, high=high):
            width = 1
            for size in shape:
                width *= _number(size) or 1
            several = _element(item) if len(shape) > 1 else ()
            return Need(
                role, name, "real", written, origin, width=width, sequence=sequence, low=low, high=high, several=several
            )
        case Constrained(kind=kind, size=size):
            n = _number(size) or 1
            width = n if item.vector else n * n
            low = 0.0 if kind == "Simplex" else None
            return Need(role, name, "real", written, origin, width=width, sequence=sequence, low=low)
        case Terms():
            return Need(role, name, "terms", written, origin, terms=item)
        case _:
            return Need(role, name, "any", written, origin, sequence=sequence)


def _observed(site: Site, latent: frozenset[str]) -> Need:
    (name, named), *_ = site.bound
    if isinstance(site.draw, ArrowDraw):
        return _need("observed", name, named.space, named.written, site.origin)
    support = facts_of_draw(site.draw).support
    plate: tuple[str, int] | None = None
    size: int | None = None
    if site.element is not None and isinstance(site.element.space, Finite):
        size = _number(site.element.space.size)
    over = site.plate if site.each_row else site.elementwise
    if over is not None and isinstance(over.space, Finite) and (count := _number(over.space.size)) is not None:
        plate = (over.written, count)
    if support.size is not None:
        size = support.size
    kind = support.kind if support.kind in ("finite", "count") else "real"
    return Need(
        "observed",
        name,
        kind,
        family_words(site.draw.family),
        site.origin,
        size=size,
        low=support.low,
        high=support.high,
        excluded=_excluded(site),
        plate=plate,
        shared=plate is not None and plate[0] in latent and site.via is None and site.at is None,
        sequence=isinstance(named.space, Seq),
        axes=_open_axes(site),
        missing=site.missing.how if site.missing is not None else "lengths" if site.lengths is not None else "",
        drawn=_drawn(site.draw, name),
        counted=site.lengths.name if isinstance(site.lengths, Data) else "",
    )


def _drawn(draw: FamilyDraw, name: str) -> str:
    """What a value is observed as, in words."""
    whole = truncated_name(draw.family) or draw.family
    return drawn_words(whole, name) if computed_name(whole) is not None else family_words(draw.family)


def _excluded(site: Site) -> tuple[float, ...]:
    """Ends of the support that no observed value may be at: one that is censored, masked or an interval's may."""
    family = facts_of_draw(site.draw) if isinstance(site.draw, FamilyDraw) else None
    if family is None or not family.open or site.limits or site.mask is not None:
        return ()
    support = family.support
    return (0.0,) if support.kind == "Simplex" else tuple(end for end in (support.low, support.high) if end is not None)


def _open_axes(site: Site) -> tuple[Axis, ...] | None:
    """The sets that an observed plate runs over, where the size of one comes with the data or cells may be missing."""
    if site.elementwise is None or site.via is not None or site.at is not None:
        return None
    axes = tuple(_axis(one) for one in _factors(site.elementwise.space) if isinstance(one, Finite))
    may_lack = site.missing is not None or site.lengths is not None
    return axes if may_lack or any(axis.size is None for axis in axes) else None


def _labels(steps: tuple[StepModel, ...]) -> dict[str, tuple[str, ...]]:
    """The labels of every enumeration that a latent runs over, by its name."""
    named = (step.site.element or step.site.plate for step in steps if isinstance(step, SampleModel))
    spaces = (one.space for one in named if one is not None)
    return {
        space.nominal: space.labels for space in spaces if isinstance(space, Finite) and space.nominal and space.labels
    }


def _data_name(name: str, space: Space | None, origin: Origin, labels: Mapping[str, tuple[str, ...]]) -> Need:
    """A data name; one that is an index takes the labels of the set that it is an index of."""
    if space is None:
        return Need("data", name, "any", "data", origin)
    if isinstance(space, Finite) and space.nominal is not None:
        return replace(_need("data", name, space, space.nominal, origin), labels=labels.get(space.nominal))
    return _need("data", name, space, "data", origin)


def reachable(program: Program, model: Model) -> Iterator[Node]:
    """Every node that the program's steps lead to, each declared name once."""
    seen = {program.name}
    waiting: list[Node] = [program]
    while waiting:
        for node in walk(waiting.pop(), children):
            yield node
            if isinstance(node, Ref) and node.name not in seen:
                seen.add(node.name)
                target = arrow_named(model, node.name)
                waiting += [] if target is None else [target]
