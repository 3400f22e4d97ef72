"""What programs inside an arrow score, under the names that it has in the whole (`semantics/types/counted.py`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from qvr_core.arrays.engine import Generator, Tensor, arrays
from qvr_core.runtime.values.arrow import ArrowModule, Drawn, Noise, NoiseSpec, Term, Value
from qvr_core.runtime.values.leaves import adopt
from qvr_core.semantics.types.counted import names_in_whole


class TermsNamed(ArrowModule):
    """`body`, whose terms have other names outside: `names` says which of those that change.  Terms that get one name
    together are along a last axis; so is a single one of `gathered`."""

    def __init__(self, body: ArrowModule, names: Mapping[str, str], gathered: Sequence[str] = ()) -> None:
        super().__init__()
        self.domain, self.codomain = body.domain, body.codomain
        self.body = (body,)
        self.names, self.gathered = dict(names), tuple(gathered)
        self.sampled, self.has_density, self.paths = body.sampled, body.has_density, body.paths
        self.terms = tuple(dict.fromkeys(self.names.get(name, name) for name in body.terms))
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
        return self._renamed(self.body[0].draw(x, noise, generator=generator, want_log_prob=want_log_prob))

    def conditioned(self, x: Value, y: Value, innovations: Noise | None = None) -> Drawn:
        return self._renamed(self.body[0].conditioned(x, y, innovations))

    def densities(self, x: Value, y: Value, innovations: Noise | None = None) -> tuple[Tensor, Tensor | None]:
        return self.body[0].densities(x, y, innovations)

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
    log_prob = sum((term.log_prob for term in terms[1:]), terms[0].log_prob)
    return Term(arrays.stack([term.value for term in terms], dim=-1), log_prob)


def apart(arrows: Sequence[ArrowModule]) -> list[ArrowModule]:
    """Parts of a whole; a name that several have gets the place of each."""
    names = names_in_whole([arrow.terms for arrow in arrows], range(len(arrows)))
    return [TermsNamed(arrow, own) if own else arrow for arrow, own in zip(arrows, names, strict=True)]


def in_branches(
    arrows: Sequence[ArrowModule], heads: Sequence[object], together: Callable[[list[ArrowModule]], ArrowModule]
) -> ArrowModule:
    """A fan, as `together` makes it; what branches of one arrow score is along an axis."""
    names = names_in_whole([arrow.terms for arrow in arrows], heads)
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
