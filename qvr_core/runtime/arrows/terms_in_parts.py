"""What programs inside an arrow score and observe, under the names that it has in the whole
(`semantics/types/counted.py`).

Data go the other way: a site says them under the names of its arrow, and each arrow that names, repeats or lifts its
parts says them anew under theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Generator as Yields
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from qvr_core.arrays.engine import Generator, Tensor, arrays
from qvr_core.runtime.values.arrow import ArrowModule, Drawn, Noise, NoiseSpec, Term, Value
from qvr_core.runtime.values.drawing import plus
from qvr_core.runtime.values.errors import InputProblem
from qvr_core.runtime.values.leaves import adopt
from qvr_core.semantics.types.counted import names_in_whole


@dataclass(frozen=True, slots=True)
class Inside:
    """What programs inside an arrow observe, (B, …) by its names for them; `redraw` asks for draws in their place."""

    data: Mapping[str, Tensor]
    redraw: bool = False


_INSIDE: ContextVar[Inside | None] = ContextVar("inside", default=None)


@contextmanager
def given_inside(data: Mapping[str, Tensor], *, redraw: bool) -> Yields[None]:
    """While an arrow is drawn from, or a value of it scored: what its programs observe."""
    token = _INSIDE.set(Inside(data, redraw))
    try:
        yield
    finally:
        _INSIDE.reset(token)


def inside() -> Inside:
    """What the programs of the arrow at hand observe."""
    return _INSIDE.get() or Inside({})


@contextmanager
def of_part(change: Callable[[Mapping[str, Tensor]], Mapping[str, Tensor]]) -> Yields[None]:
    """The same for a part of the arrow at hand, for which `change` says its data."""
    whole = inside()
    if not whole.data:
        yield
        return
    with given_inside(change(whole.data), redraw=whole.redraw):
        yield


def at_place(name: str, value: Tensor, place: int, count: int) -> Tensor:
    """Of data with a last axis of `count` places what is at one of them.  Raises `InputProblem`."""
    if value.shape[-1:] != (count,):
        bare = name.rpartition(".")[2]
        found = tuple(value.shape[1:])
        message = f"`{bare}` is observed at {count} places, along a last axis; found shape {found} in each row"
        raise InputProblem(message, site=bare)
    return value[..., place]


class TermsNamed(ArrowModule):
    """`body`, whose terms have other names outside: `names` says which of those that change.  Terms that get one name
    together are along a last axis; so is a single one of `gathered`."""

    def __init__(self, body: ArrowModule, names: Mapping[str, str], gathered: Sequence[str] = ()) -> None:
        super().__init__()
        self.domain, self.codomain = body.domain, body.codomain
        self.body = (body,)
        self.names, self.gathered = dict(names), tuple(gathered)
        self.sampled, self.has_density, self.paths = body.sampled, body.has_density, body.paths
        self.terms = {self.names.get(name, name): word for name, word in body.terms.items()}
        self.places = {new: [own for own in body.terms if self.names.get(own, own) == new] for new in self.terms}
        adopt(self, [body])

    def as_innovation(self) -> ArrowModule:
        inner = self.body[0].as_innovation()
        return self if inner is self.body[0] else TermsNamed(inner, self.names, self.gathered)

    def output_like(self, x: Value) -> Value:
        return self.body[0].output_like(x)

    def noise_specs(self, x: Value) -> list[NoiseSpec]:
        return self.body[0].noise_specs(x)

    def draw(
        self,
        x: Value,
        noise: Noise | None = None,
        *,
        generator: Generator | None = None,
        want_log_prob: bool = True,
    ) -> Drawn:
        with of_part(self._inner):
            drawn = self.body[0].draw(x, noise, generator=generator, want_log_prob=want_log_prob)
        return self._renamed(drawn)

    def _conditioned(self, x: Value, y: Value, innovations: Noise | None = None) -> Drawn:
        with of_part(self._inner):
            drawn = self.body[0].conditioned(x, y, innovations)
        return self._renamed(drawn)

    def densities(self, x: Value, y: Value, innovations: Noise | None = None) -> tuple[Tensor, Tensor | None]:
        with of_part(self._inner):
            return self.body[0].densities(x, y, innovations)

    def _inner(self, data: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Data under the names of the body."""
        return {
            own: at_place(name, data[name], place, len(own_names)) if name in self.gathered else data[name]
            for name, own_names in self.places.items()
            if name in data
            for place, own in enumerate(own_names)
        }

    def _renamed(self, drawn: Drawn) -> Drawn:
        found: dict[str, list[Term]] = {}
        for name, term in drawn.terms.items():
            found.setdefault(self.names.get(name, name), []).append(term)
        drawn.terms = {
            name: along_a_last_axis(each) if name in self.gathered else each[0] for name, each in found.items()
        }
        return drawn


def along_a_last_axis(terms: Sequence[Term]) -> Term:
    """The same step at several places as one."""
    log_prob: Tensor | None = None
    for term in terms:
        log_prob = plus(log_prob, term.log_prob)
    given = all(term.given for term in terms)
    return Term(arrays.stack([term.value for term in terms], dim=-1), log_prob, given)


def apart(arrows: Sequence[ArrowModule]) -> list[ArrowModule]:
    """Parts of a whole; a name that several have gets the place of each."""
    names = names_in_whole([list(arrow.terms) for arrow in arrows], range(len(arrows)))
    return [TermsNamed(arrow, own) if own else arrow for arrow, own in zip(arrows, names, strict=True)]


def in_branches(
    arrows: Sequence[ArrowModule], heads: Sequence[object], together: Callable[[list[ArrowModule]], ArrowModule]
) -> ArrowModule:
    """A fan, as `together` makes it; what branches of one arrow score is along an axis."""
    names = names_in_whole([list(arrow.terms) for arrow in arrows], heads)
    return _gathered(arrows, names, together)


def in_steps(arrows: Sequence[ArrowModule], together: Callable[[list[ArrowModule]], ArrowModule]) -> ArrowModule:
    """An arrow's turns one after the other, as `together` makes them; what they score is along an axis."""
    return _gathered(arrows, [{name: name for name in arrow.terms} for arrow in arrows], together)


def _gathered(
    arrows: Sequence[ArrowModule],
    names: Sequence[Mapping[str, str]],
    together: Callable[[list[ArrowModule]], ArrowModule],
) -> ArrowModule:
    """`names` says what changes: a name that stays what it is stands for all that have it."""
    if not any(names):
        return together(list(arrows))
    placed = [
        TermsNamed(arrow, {name: f"{place}.{name}" for name in own}) if own else arrow
        for place, (arrow, own) in enumerate(zip(arrows, names, strict=True))
    ]
    one = {f"{place}.{name}": name for place, own in enumerate(names) for name, new in own.items() if new == name}
    made = together(placed)
    return TermsNamed(made, one, tuple(dict.fromkeys(one.values()))) if one else made
