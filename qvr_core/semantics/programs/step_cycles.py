"""Steps that read one another, so that no order of theirs is right: they are made by one step, a `let` of several
names."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from functools import cached_property

from qvr_core.semantics.types.diagnostics import Edit, Fix, Origin
from qvr_core.syntax.immutable import immutable
from qvr_core.syntax.tree.arithmetic import Arith, Binary, Gather, TupleArith, Variable
from qvr_core.syntax.tree.declarations import Item
from qvr_core.syntax.tree.names import Span
from qvr_core.syntax.tree.steps import LetStep, ObserveStep, PredictStep, SampleStep
from qvr_core.syntax.tree.units import Placed
from qvr_core.syntax.walk import walk

MOST_STEPS = 64
"""That are gone over for one name: nobody writes one `let` of more."""


@immutable
class Circle:
    """Steps that read one another, the first of them in the program first; `between` are the others down to the last
    of them."""

    steps: tuple[Placed[Item], ...]
    between: tuple[Placed[Item], ...]

    @property
    def names(self) -> list[str]:
        return [name for step in self.steps for name in names_of(step)]


class StepReads:
    """What the lines of a program bind and read, gone over once, when the first circle is looked for."""

    def __init__(self, steps: Sequence[Placed[Item]]) -> None:
        self._steps = steps

    @cached_property
    def _binding(self) -> Mapping[str, int]:
        """The place of the line that binds each name."""
        return {name: place for place, step in enumerate(self._steps) for name in names_of(step)}

    @cached_property
    def _read(self) -> Mapping[int, tuple[int, ...]]:
        """For each line the places of those that it reads."""
        known = self._binding
        return {
            place: tuple(dict.fromkeys(known[name] for name in sorted(_reads(step)) if name in known))
            for place, step in enumerate(self._steps)
        }

    @cached_property
    def _places(self) -> Mapping[int, int]:
        return {step.uid: place for place, step in enumerate(self._steps)}

    def circle(self, user: Placed[Item], binder: Placed[Item]) -> Circle | None:
        """The circle that a step and one further down which it reads are in; None where there is none, or none among
        the first `MOST_STEPS` that the lower one reads."""
        at, below = self._places[user.uid], self._places[binder.uid]
        ways: dict[int, tuple[int, ...]] = {below: (below,)}
        pending = deque([below])
        while pending and at not in ways and len(ways) < MOST_STEPS:
            place = pending.popleft()
            for other in self._read[place]:
                if other not in ways:
                    ways[other] = (*ways[place], other)
                    pending.append(other)
        if at not in ways or at == below:
            return None
        inside = sorted(ways[at])
        between = [place for place in range(inside[0], inside[-1]) if place not in inside]
        return Circle(tuple(self._steps[place] for place in inside), tuple(self._steps[place] for place in between))


def advice(found: Circle) -> str:
    """What to write in place of the steps of a circle."""
    names = " and ".join(f"`{name}`" for name in found.names)
    said = f"{names} read one another"
    if any(not isinstance(step.unit.node, LetStep) for step in found.steps):
        return (
            f"{said}: draw what is random in each of them by a step of its own, and compute them together, "
            f"`let ({', '.join(found.names)})[…] = (…, …) from (…, …)`"
        )
    if all(_at_once(one, other) for one, other in zip(found.steps, reversed(found.steps), strict=True)):
        return f"{said} at the same element, so neither can be computed first: one must read an earlier element"
    if (joined := _joined(found)) is None:
        return f"{said}: make them in one step, `let ({', '.join(found.names)})[…] = (…, …) from (…, …)`"
    return f"{said}: make them in one step, `{joined}`"


def fixes(found: Circle) -> tuple[Fix, ...]:
    """The steps of a circle as one `let`, where the first of them stands."""
    joined = _joined(found)
    first, *others = found.steps
    bound = {name for step in found.between for name in names_of(step)}
    if joined is None or any(bound & _reads(step) for step in others):
        return ()
    edits = [Edit(Origin(first.uid, Span(0, len(first.unit.text))), joined)]
    edits += [Edit(Origin(one.uid, Span(-one.column, len(one.unit.text) + 1)), "") for one in others]
    names = " and ".join(f"`{name}`" for name in found.names)
    return (Fix(f"Make {names} in one step", tuple(edits), True),)


def names_of(step: Placed[Item]) -> list[str]:
    """The names that a line of a program binds."""
    match step.unit.node:
        case LetStep(pattern=pattern) | SampleStep(pattern=pattern):
            return [name.text for name in pattern.names]
        case ObserveStep(name=name) | PredictStep(name=name):
            return [name.text]
        case _:
            return []


def _reads(step: Placed[Item]) -> set[str]:
    node = step.unit.node
    return set() if node is None else {one.name.text for one in walk(node) if isinstance(one, Variable)}


def _joined(found: Circle) -> str | None:
    """One `let` of two steps' names, or None where they do not run over the same indices, begin with nothing, or read
    one another at the same element."""
    first, second = found.steps if len(found.steps) == 2 else (None, None)
    if first is None or second is None:
        return None
    left, right = first.unit.node, second.unit.node
    if not (isinstance(left, LetStep) and isinstance(right, LetStep)) or left.start is None or right.start is None:
        return None
    texts = [(first.unit.text, left, left.start), (second.unit.text, right, right.start)]
    over = [[_at(binder.span, text) for binder in let.binders] for text, let, _ in texts]
    if len(left.pattern.names) != 1 or len(right.pattern.names) != 1 or over[0] != over[1] or left.space or right.space:
        return None
    here = {let.pattern.names[0].text: _same_element(let) for _, let, _ in texts}
    one, other = here
    if other in here[one]:
        if one in here[other]:
            return None
        texts.reverse()
        one, other = other, one
    values, starts = zip(*((_part(let.value, text), _part(start, text)) for text, let, start in texts), strict=True)
    return f"let ({one}, {other})[{', '.join(over[0])}] = ({', '.join(values)}) from ({', '.join(starts)})"


def _at_once(step: Placed[Item], other: Placed[Item]) -> bool:
    """Whether a step reads the very element of another one that it makes itself, or all of them."""
    node = step.unit.node
    if not isinstance(node, LetStep):
        return False
    read = _same_element(node) if node.binders else _reads(step)
    return bool(read & {*names_of(other)})


def _same_element(let: LetStep) -> set[str]:
    """The names that a step reads at the very element that it makes."""
    gathers = [one for one in walk(let.value) if isinstance(one, Gather) and isinstance(one.base, Variable)]
    moved = {id(one) for one in gathers if any(isinstance(index, Binary) for index in one.indices)}
    return {one.base.name.text for one in gathers if id(one) not in moved and isinstance(one.base, Variable)}


def _part(tree: Arith, text: str) -> str:
    """An expression as it is written; a tuple that would fall apart is none of a single name."""
    written = _at(tree.span, text)
    return written if not isinstance(tree, TupleArith) else f"({written})"


def _at(span: Span, text: str) -> str:
    return text[span.start : span.end]
