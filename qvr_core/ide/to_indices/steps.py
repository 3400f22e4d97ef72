"""What each step of a program becomes: the edits that write its plates as indices, or why it stays as it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from qvr_core.ide.to_indices.elements import Axes, Axis, Change, Elements, NotByElement, Picked, Plate, axes_of_type
from qvr_core.ide.to_indices.letters import Letters
from qvr_core.ide.to_indices.step_parts import (
    Drawn,
    all_placed,
    by_place,
    factors_written,
    is_inlined,
    mentions,
    name_of_option,
    name_span,
    named_by,
    nominal,
    option_of,
    plate_of,
    sets_written,
    site_of,
    text_of_draw,
    unit_of,
    without,
)
from qvr_core.semantics.language.declared_families import facts_of_draw
from qvr_core.semantics.types.model.expressions import Bound, Data, Expr, Index
from qvr_core.semantics.types.model.families import FamilyDraw
from qvr_core.semantics.types.model.programs import Program
from qvr_core.semantics.types.model.steps import (
    LetModel,
    MarginalizeModel,
    ObserveModel,
    PredictModel,
    SampleModel,
    Site,
    StepModel,
)
from qvr_core.semantics.types.spaces import Finite, Named, factors_of
from qvr_core.semantics.types.walk import all_steps, operands, values, walk
from qvr_core.syntax.immutable import immutable
from qvr_core.syntax.tree.arithmetic import Variable
from qvr_core.syntax.tree.names import Span
from qvr_core.syntax.tree.objects import ObjectRef
from qvr_core.syntax.tree.steps import LetStep, MarginalizeStep, ObserveStep, PredictStep, SampleStep
from qvr_core.syntax.tree.units import Placed, Statement
from qvr_core.syntax.walk import walk as parts_of


@immutable
class Rewriting:
    """A step with its changes; steps of one `group` are changed together or not at all."""

    unit: int
    group: int
    changes: tuple[Change, ...]


@immutable
class Left:
    """A step that stays as it is, and why."""

    unit: int
    span: Span
    reason: str


@immutable
class Summed:
    """A block that sums out: what it sums, the sets that it has a value for, and whether rows say which by `via=`."""

    name: str
    sets: tuple[Plate, ...]
    grouped: bool


class ProgramSteps:
    """The steps of one program, each with what it becomes."""

    def __init__(
        self, statement: Statement, program: Program, others: frozenset[str], by_element: frozenset[str]
    ) -> None:
        """`others` are names that no index may have; `by_element` what may be called for one element."""
        self._statement, self._by_element = statement, by_element
        self._models: dict[int, StepModel] = {}
        for step in all_steps(program.steps):
            # what a call of a template brings has the place of the call
            self._models[unit_of(step)] = step
        self._letters = Letters(statement, others)
        self._data = {item.name: item for item in program.data}
        self._objects = {one.name for one in program.template if one.kind == "Object"}
        self._axes = Axes({item.name: item.type for item in program.data}, {})
        self.rewritings: list[Rewriting] = []
        self.left: list[Left] = []

    def read(self) -> None:
        """Go over all steps, from the top down."""
        old = any(self._is_old(placed) for placed in all_placed(self._statement.header.children))
        for placed in self._statement.header.children if old else ():
            self._add(placed, None, placed.uid)

    def _is_old(self, placed: Placed[Any]) -> bool:
        """Whether a step has a plate without an index."""
        step, model = placed.unit.node, self._models.get(placed.uid)
        if isinstance(step, LetStep):
            return step.space is not None and not step.binders
        site = site_of(model)
        if site is None or not isinstance(step, Drawn | MarginalizeStep) or is_inlined(step, site):
            return False
        if step.binders:
            return option_of(step.options, "iid_over") is not None
        if isinstance(model, MarginalizeModel) and model.over is not None:
            return True
        picked = any(option_of(step.options, key) for key in ("via", "at"))
        return picked or plate_of(site) is not None or self._is_of_call(step)

    def _add(self, placed: Placed[Any], summed: Summed | None, group: int) -> bool:
        """Whether a step could be written with indices, or needs none."""
        step, model = placed.unit.node, self._models.get(placed.uid)
        try:
            match step, model:
                case LetStep(), LetModel():
                    changes = self._let(placed, step, model, summed)
                case MarginalizeStep(), MarginalizeModel() if not step.binders:
                    return self._marginalize(placed, step, model)
                case (
                    (SampleStep() | ObserveStep() | PredictStep()),
                    (SampleModel() | ObserveModel() | PredictModel()),
                ) if (not step.binders or option_of(step.options, "iid_over")) and not is_inlined(step, model.site):
                    changes = self._drawn(placed, step, model.site, summed)
                case _:
                    return summed is None or not mentions(step, summed.name)
        except NotByElement as problem:
            if self._is_old(placed) or summed is not None:
                self.left.append(Left(placed.uid, name_span(step), str(problem)))
            return False
        if changes:
            self.rewritings.append(Rewriting(placed.uid, group, tuple(changes)))
        return True

    # ------------------------------------------------------------ draws

    def _drawn(self, placed: Placed[Any], step: Drawn, site: Site, summed: Summed | None) -> list[Change]:
        if self._is_of_call(step):
            raise NotByElement("a call of the template says whether that is a set or a space")
        plate = plate_of(site)
        old = [option for key in ("via", "at") if (option := option_of(step.options, key)) is not None]
        if plate is None and site.via is not None:
            plate = self._rows_of(site.via)
        if plate is None:
            if old and old[0].key.text == "at" and not isinstance(site.draw, FamilyDraw):
                raise NotByElement("`at` selects positions of a sequence, over which no index runs")
            if old:
                raise NotByElement(f"nothing says over which set the rows of `{old[0].key.text}` run")
            if summed is not None and mentions(step, summed.name):
                raise NotByElement("nothing says over which set it runs")
            return []
        if isinstance(step, SampleStep) and step.pattern.brackets:
            raise NotByElement("a pattern takes no index")
        if step.binders:
            raise NotByElement("it has indices and a plate besides")
        if any(option.key.text == "at" for option in old):
            raise NotByElement("`at` selects rows, which no index of a set does")
        name, text = named_by(step), placed.unit.text
        sets, rest = sets_written(step, site, plate, text)
        plates = self._plates(plate, sets, text_of_draw(step, text))
        picked, hidden = self._picked(site, step, plates, summed)
        outcome = step.outcome if isinstance(step, ObserveStep) else None
        if outcome is not None and {part.name.text for part in parts_of(outcome) if isinstance(part, Variable)} - {
            name.text
        }:
            raise NotByElement("what is observed is computed of other values, too: write those with indices")
        behind = name.span.end if outcome is None else outcome.span.end
        end = behind if step.space is None else step.space.span.end
        written = ", ".join(f"{one.index} : {of}" for one, of in zip(plates, sets, strict=True))
        changes = [Change(Span(behind, end), f"[{written}]{f' : {rest}' if rest else ''}")]
        changes += self._arguments(placed, step, site, plates, picked, hidden, unknown=summed is not None)
        gone = {"via", "iid_over"}
        changes += without(step.options, gone, step.draw.span.end, text)
        return changes

    def _is_of_call(self, step: Drawn | MarginalizeStep) -> bool:
        """Whether what stands behind the colon is an object that a call of the template names."""
        return isinstance(step.space, ObjectRef) and step.space.name.text in self._objects

    def _rows_of(self, index: Expr) -> Named | None:
        """The set that declared data run over."""
        item = self._data.get(index.name) if isinstance(index, Data) else None
        return Named(item.over[0], item.over[0].nominal or "") if item is not None and len(item.over) == 1 else None

    def _letter(self, plates: Sequence[Plate], within: str) -> Callable[[str], str]:
        """An index for a sum inside a step that runs over `plates`."""
        taken = " ".join([within, *(plate.index for plate in plates)])
        return lambda over: self._letters.of([over], taken)[0]

    def _plates(self, plate: Named, sets: Sequence[str], within: str) -> tuple[Plate, ...]:
        letters = self._letters.of(sets, within)
        factors = [factor for factor in factors_of(plate.space) if isinstance(factor, Finite)]
        if len(factors) != len(sets):
            raise NotByElement(f"`{plate.written}` is no product of finite sets")
        return tuple(
            Plate(factor.nominal, factor.size, letter) for factor, letter in zip(factors, letters, strict=True)
        )

    def _picked(
        self, site: Site, step: Drawn, plates: Sequence[Plate], summed: Summed | None
    ) -> tuple[Picked | None, Mapping[str, str]]:
        """How `via` looks up, and which element of a state the step reads."""
        via = option_of(step.options, "via")
        index = None
        if via is not None:
            if len(plates) != 1 or site.via is None:
                raise NotByElement("`via` goes with one set of rows")
            index = f"{getattr(via.value, 'text', None) or name_of_option(via)}[{plates[0].index}]"
        if summed is not None and mentions(step, summed.name):
            if summed.grouped and index is not None:
                return None, {summed.name: f"[{index}]"}
            places = [next((one.index for one in plates if one.name == wanted.name), None) for wanted in summed.sets]
            if None in places or via is not None:
                raise NotByElement(f"nothing says which element of `{summed.name}` it reads")
            read = ", ".join(place for place in places if place is not None)
            return None, {summed.name: f"[{read}]" if read else ""}
        if index is None:
            return None, {}
        kind = None if site.via is None else site.via.type
        if isinstance(site.via, Data) and site.via.name in self._data:
            kind = self._data[site.via.name].type
        of = None if kind is None or not isinstance(kind.space, Finite) else kind.space.nominal
        return Picked(of, index), {}

    def _arguments(
        self,
        placed: Placed[Any],
        step: Drawn | MarginalizeStep,
        site: Site,
        plates: Sequence[Plate],
        picked: Picked | None,
        hidden: Mapping[str, str],
        *,
        unknown: bool = False,
    ) -> list[Change]:
        typed = by_place(self._models[placed.uid], placed.uid)
        draw = site.draw
        facts = facts_of_draw(draw) if isinstance(draw, FamilyDraw) else None
        nameless = facts is not None and not facts.event and site.element is None
        elements = Elements(
            typed,
            self._axes,
            plates,
            picked,
            hidden,
            nameless=nameless,
            unknown=unknown,
            by_element=self._by_element,
            letter=self._letter(plates, placed.unit.text),
        )
        ranks = {} if facts is None else {one.name: one.rank for one in facts.parameters}
        own = {value.origin.span: name for name, value in draw.args} if isinstance(draw, FamilyDraw) else {}
        changes: list[Change] = []
        for arg in step.draw.args or ():
            rank = ranks.get(own.get(arg.value.span, ""), 0)
            value = typed.get(arg.value.span)
            found = () if value is None else self._axes.of(value) or ()
            event: Sequence[Axis] = found[len(found) - rank :] if rank and len(found) >= rank else ()
            changes += elements.inside(arg.value, event)
        return changes

    # ------------------------------------------------------------ lets

    def _let(self, placed: Placed[Any], step: LetStep, model: LetModel, summed: Summed | None) -> list[Change]:
        if step.binders or step.start is not None or step.pattern.brackets:
            return []
        found = self._axes_of_let(step, model, summed)
        front = [(name, size) for name, size in found if name is not None]
        if not front or list(found[: len(front)]) != front:
            if step.space is None:
                return []
            raise NotByElement("nothing says over which sets it runs")
        text = placed.unit.text
        sets = [name for name, _ in front]
        if step.space is not None:
            written = [text[part.span.start : part.span.end] for part in factors_written(step.space)]
            sets = written if len(written) == len(front) else sets
        letters = self._letters.of(sets, text)
        plates = tuple(Plate(name, size, letter) for (name, size), letter in zip(front, letters, strict=True))
        name = step.pattern.names[0]
        end = name.span.end if step.space is None else step.space.span.end
        binders = ", ".join(f"{letter} : {of}" for letter, of in zip(letters, sets, strict=True))
        place = ", ".join(letters[: 0 if summed is None else len(summed.sets)])
        hidden = {} if summed is None else {summed.name: f"[{place}]" if place else ""}
        elements = Elements(
            by_place(model, placed.uid),
            self._axes,
            plates,
            None,
            hidden,
            nameless=False,
            by_element=self._by_element,
            letter=self._letter(plates, text),
        )
        changes = [Change(Span(name.span.end, end), f"[{binders}]")]
        changes += elements.inside(step.value)
        self._axes.lets[name.text] = tuple(front)
        return changes

    def _axes_of_let(self, step: LetStep, model: LetModel, summed: Summed | None) -> Sequence[Axis]:
        """The sets that a let is written for: those of its type, of the state that it reads, or of data that have no
        other line to tell them; none of any other let, which stays."""
        if summed is not None and mentions(step, summed.name):
            if summed.grouped:
                raise NotByElement(f"`{summed.name}` has a value for each group, and rows read this")
            own = [(one.name, one.size) for one in summed.sets]
            names = [name for name, _ in own]
            return [*own, *(axis for axis in self._axes.of(model.value) or () if axis[0] not in names)]
        if step.space is not None:
            return axes_of_type(model.value.type) or ()
        return (self._axes.of(model.value) or ()) if self._reads_undeclared(model) else ()

    def _reads_undeclared(self, model: LetModel) -> bool:
        """Whether the sets of data are told by what reads this let alone."""
        read = [self._data.get(part.name) for part in walk(model.value, operands) if isinstance(part, Data)]
        return any(item is not None and not item.declared and item.type.indexed for item in read)

    # ------------------------------------------------------------ blocks that sum out

    def _marginalize(self, placed: Placed[Any], step: MarginalizeStep, model: MarginalizeModel) -> bool:
        """A block is written anew as a whole."""
        kept = len(self.rewritings)
        try:
            summed, changes = self._head(placed, step, model)
        except NotByElement as problem:
            if self._is_old(placed) or any(map(self._is_old, placed.children)):
                self.left.append(Left(placed.uid, step.name.span, str(problem)))
            return False
        if not any(
            isinstance(child.unit.node, ObserveStep) and not child.unit.node.binders for child in placed.children
        ):
            return True
        self.rewritings.append(Rewriting(placed.uid, placed.uid, tuple(changes)))
        if not all(self._add(child, summed, placed.uid) for child in placed.children):
            del self.rewritings[kept:]
            return False
        return True

    def _head(self, placed: Placed[Any], step: MarginalizeStep, model: MarginalizeModel) -> tuple[Summed, list[Change]]:
        site, text = model.site, placed.unit.text
        plate = model.over or model.rows
        if not isinstance(site.draw, FamilyDraw) or facts_of_draw(site.draw).support.kind != "finite":
            raise NotByElement("only the states of a finite set have an index")
        if any(option_of(step.options, key) for key in ("mask", "weight", "at", "via", "iid_over")):
            raise NotByElement("an option of this block has no equal with indices")
        if any(isinstance(child.unit.node, MarginalizeStep) for child in placed.children):
            raise NotByElement("blocks in a block are written with indices from the start")
        over = option_of(step.options, "over")
        if plate is None:
            if step.options is not None:
                raise NotByElement("an option of this block has no equal with indices")
            named = [] if step.space else [Change(Span(step.name.span.end, step.name.span.end),
                                                  f" : {self._states(site, model)}")]  # fmt: skip
            return Summed(step.name.text, (), grouped=False), named
        if over is None:
            sets = [text[part.span.start : part.span.end] for part in factors_written(step.space)] if step.space else []
            states = self._states(site, model)
        else:
            sets = [name or plate.written for name in (nominal(factor) for factor in factors_of(plate.space))]
            states = text[step.space.span.start : step.space.span.end] if step.space else self._states(site, model)
        plates = self._plates(plate, sets, text_of_draw(step, text))
        binders = ", ".join(f"{one.index} : {of}" for one, of in zip(plates, sets, strict=True))
        end = step.name.span.end if step.space is None else step.space.span.end
        changes = [Change(Span(step.name.span.end, end), f"[{binders}] : {states}")]
        changes += self._arguments(placed, step, site, plates, None, {})
        changes += without(step.options, {"over", "reduction"}, step.draw.span.end, text)
        return Summed(step.name.text, plates, over is not None), changes

    def _states(self, site: Site, model: MarginalizeModel) -> str:
        """The set that a state is of: whose elements it looks up, else what the family draws from."""
        for value in (value for step in all_steps(model.body) for value in values(step)):
            for part in walk(value, operands):
                found = self._axes.of(part.base) if isinstance(part, Index) else None
                if found is None or not isinstance(part, Index):
                    continue
                for (name, _), index in zip(found, part.indices, strict=False):
                    if name is not None and isinstance(index, Bound) and index.name == site.name:
                        return name
        space = site.bound[0][1].space if site.bound else None
        draw = site.draw
        if isinstance(draw, FamilyDraw) and len(draw.args) == 1:
            found = self._axes.of(draw.args[0][1])
            facts = facts_of_draw(draw)
            if found and facts.parameters and next((one.rank for one in facts.parameters), 0) and found[-1][0]:
                return found[-1][0]
        if isinstance(space, Finite) and space.nominal is not None:
            return space.nominal
        if isinstance(space, Finite) and isinstance(space.size, int):
            return f"FinSet {int(space.size)}"
        raise NotByElement("nothing says of which set a state is")
