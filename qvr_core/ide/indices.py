"""What is said of indices, `i` of `let eta[i : Row] = …` or of `sum(… for i : Row)`, and of steps that look back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from qvr_core.ide.completion.typing import space_of
from qvr_core.ide.prose import Code, Prose, prose
from qvr_core.ide.symbols import Found, declarations
from qvr_core.ide.view import model_of
from qvr_core.semantics.language.truncated import family_words
from qvr_core.semantics.types.chain_starts import draws_of
from qvr_core.semantics.types.model.steps import (
    IndexedValue,
    LetModel,
    MarginalizeModel,
    ObserveModel,
    ParamModel,
    PredictModel,
    RunningIndex,
    SampleModel,
    ScoreModel,
    Site,
    StepModel,
)
from qvr_core.semantics.types.spaces import Finite, Linear
from qvr_core.semantics.types.walk import all_steps
from qvr_core.syntax.tree.arithmetic import Binder, Comprehension
from qvr_core.syntax.tree_to_text import to_text
from qvr_core.syntax.walk import walk

if TYPE_CHECKING:
    from qvr_core.analysis import Snapshot

COUNTS = ("no", "one", "two", "three", "four", "five", "six")
PLACES = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh")
SHOWN_LABELS = 8


def index_text(snapshot: Snapshot, found: Found) -> Prose:
    """An index: its set, how far it runs; () for a name that is no index."""
    held = binder_of(snapshot, found)
    if held is None:
        return ()
    binder, reduction = held
    lag = 0 if reduction else _lag(snapshot, found)
    space = space_of(binder.space, model_of(snapshot))
    over = to_text(binder.space)
    runs = "" if not isinstance(space, Finite) else f" It runs {_extent(space, lag)}."
    said = (
        f"An index of this `{reduction}`: it stands for each element of `{over}` in turn."
        if reduction
        else f"An index of this line, which holds for each element of `{over}`."
    )
    return prose(Code(f"{binder.name.text} : {over}"), f"{said}{runs}", "Outside brackets it counts from 0.")


def binder_of(snapshot: Snapshot, found: Found) -> tuple[Binder, str] | None:
    """The binder of an index, and the function that it belongs to ('' for one of a step)."""
    if found.symbol.kind != "local":
        return None
    spans = {place.span for place in declarations(snapshot, found.symbol)}
    node: Any = found.placed.unit.node
    for binder in getattr(node, "binders", ()):
        if binder.name.span in spans:
            return binder, ""
    for part in walk(node):
        if isinstance(part, Comprehension):
            for binder in part.binders:
                if binder.name.span in spans:
                    return binder, part.function.text
    return None


def _lag(snapshot: Snapshot, found: Found) -> int:
    names = found.statement.header.unit.declares
    program = model_of(snapshot).programs.get(names[0].text) if names else None
    for step in all_steps(program.steps) if program is not None else ():
        indices = _running(step)
        if indices and _unit(step) == found.placed.uid:
            return next((one.lag for one in indices if one.name == found.symbol.name), 0)
    return 0


def _unit(step: StepModel) -> int:
    return step.origin.unit if isinstance(step, LetModel | ScoreModel | ParamModel) else step.site.origin.unit


def _running(step: StepModel) -> tuple[RunningIndex, ...]:
    match step:
        case LetModel(indexed=IndexedValue(indices=indices)):
            return indices
        case (
            SampleModel(site=site) | ObserveModel(site=site) | PredictModel(site=site)
            | MarginalizeModel(site=site)
        ):  # fmt: skip
            return site.chain.indices if site.chain is not None else ()
        case _:
            return ()


def _extent(space: Finite, lag: int) -> str:
    if lag:
        return f"from the {_place(lag)} element on, since the line reads {count(lag)} back"
    if space.labels is not None:
        shown = ", ".join(f"`{label}`" for label in space.labels[:SHOWN_LABELS])
        return f"through {shown}" + (f" and {len(space.labels) - SHOWN_LABELS} more" if len(space.labels) > 8 else "")
    if isinstance(space.size, Linear):
        return "through all of them; they come with the data"
    return f"through {elements(int(space.size))}"


def _place(at: int) -> str:
    return PLACES[at] if at < len(PLACES) else f"{at + 1}th"


def count(number: int) -> str:
    return COUNTS[number] if number < len(COUNTS) else str(number)


def elements(number: int) -> str:
    return "1 element" if number == 1 else f"{number} elements"


# ---------------------------------------------------------------- steps that look back


def chain_note(site: Site) -> str:
    """How the draws of a site depend on earlier ones; '' where they do not."""
    chain = site.chain
    lag = 0 if chain is None else chain.indices[chain.at].lag
    if chain is None or not lag:
        return ""
    first = "The first element is" if lag == 1 else f"The first {count(lag)} elements are"
    before = _before(lag)
    if chain.start is None:
        return f"{first} given with the data and not scored; every later one is scored given {before}."
    families = [f"`{family_words(draw.family)}`" for draw in draws_of(chain.start)]
    if families:
        drawn = families[0] if len({*families}) == 1 else f"{', '.join(families[:-1])} and {families[-1]}"
        each = " each" if len(families) > 1 and len({*families}) == 1 else ""
        return f"A chain: each element is drawn given {before}. {first}{each} drawn from {drawn}."
    return f"A chain: each element is drawn given {before}. {first} set by `from`, without a density."


def _before(lag: int) -> str:
    return "the one before it" if lag == 1 else f"the {count(lag)} before it"


def order_note(step: LetModel) -> str:
    """That a let runs in order, or where its first elements come from; '' for a let that looks back at nothing."""
    held = step.indexed
    lag = max((one.lag for one in held.indices), default=0) if held is not None else 0
    if held is None or not lag:
        return ""
    if held.lags:
        begins = [f"{count(own)} of `{name}`" for name, own in zip(step.names, held.lags, strict=True)]
        return f"Runs in order. `from` gives the first elements: {', '.join(begins)}."
    first = "`from` gives the first element" if lag == 1 else f"`from` gives the first {count(lag)} elements"
    back = "one element back" if lag == 1 else f"up to {count(lag)} elements back"
    return f"Runs in order: it reads itself {back}. {first}." if held.recursive else f"Reads {back}; {first}."
