"""Censoring and truncation of an observed step (docs/reference.md#censoring-and-truncation).

The density of an element is that of its value, or the probability of where the value is known to lie; truncation
divides either by the probability of the bounds.  Of a discrete family both ends of `T ≥ t` and of the bounds count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from qvr_core.arrays.engine import Tensor, arrays
from qvr_core.runtime.families import RuntimeFamily
from qvr_core.runtime.families.cumulative.quantiles import truncated_draw
from qvr_core.runtime.families.links import Params
from qvr_core.runtime.families.on_spaces.truncated import between, log_mass, open_end
from qvr_core.runtime.programs.arithmetic import Evaluate, Parts, compile_expr
from qvr_core.runtime.programs.frame import Frame
from qvr_core.runtime.values.errors import MissingData
from qvr_core.runtime.values.indices import in_transform, recording
from qvr_core.runtime.values.layout import Where
from qvr_core.semantics.types.model.expressions import Expr

Given = Mapping[str, Tensor]
"""What the options say, by their names, each fitted to the value."""


class Limits:
    """The options of one step that censor or truncate."""

    def __init__(
        self, options: tuple[tuple[str, Expr], ...], family: RuntimeFamily, where: Where, parts: Parts
    ) -> None:
        self.options: dict[str, Evaluate] = {key: compile_expr(expr, parts) for key, expr in options}
        self.bounds = {key: option for key, option in self.options.items() if key.startswith("truncate_")}
        self.family = family
        self.where = where
        self._sound: tuple[Tensor, ...] = ()

    def shapes(self, frame: Frame, *, sized: bool) -> Iterator[tuple[int, ...]]:
        """The shape of what each option says of an element that is drawn.  Such a one is not censored: where the step
        is `sized`, data that censor may lack."""
        for key, option in self.options.items():
            try:
                cell = option(frame)
            except MissingData:
                if key in self.bounds or not sized:
                    raise
            else:
                yield tuple(cell.value.shape[int(cell.rows) :])

    def log_prob(self, value: Tensor, parameters: Params, given: Given) -> Tensor:
        """Log densities, elementwise; −∞ for a value outside the bounds."""
        self._check(value, given)
        family, low, high = self.family, given.get("truncate_lower"), given.get("truncate_upper")
        known: list[tuple[Tensor, Tensor]] = []
        if "right_censored" in given:
            known.append((given["right_censored"] != 0, log_mass(family, open_end(family, value), high, parameters)))
        if "left_censored" in given:
            start = None if low is None else open_end(family, low)
            known.append((given["left_censored"] != 0, log_mass(family, start, value, parameters)))
        if (end := given.get("interval")) is not None:
            top = end if high is None else arrays.minimum(end, high.to(end.dtype))
            known.append((end != value, log_mass(family, value, top, parameters)))
        exact = parameters
        for limited, _ in known:
            exact = family.moving(~limited, exact)
        density = family.log_prob(value, *exact)
        for limited, mass in known:
            density = arrays.where(limited, mass, density)
        return between(density, family, value, low, high, parameters)

    def draw(self, noise: Tensor, parameters: Params, given: Given) -> Tensor:
        """Values between the bounds from uniform noise."""
        drawn = truncated_draw(self.family, noise, given.get("truncate_lower"), given.get("truncate_upper"), parameters)
        if bool(arrays.isnan(drawn).any()) and not recording():
            raise self.where.misfit(
                f"bounds with something of {self.family.name} between them",
                f"none for {int(drawn.isnan().sum())} draws",
            )
        return drawn

    def _check(self, value: Tensor, given: Given) -> None:
        """Raises `InputProblem` for what data cannot say of a value; tensors are looked at once."""
        seen = (value, *given.values())
        if recording() or in_transform():
            return
        if len(seen) == len(self._sound) and all(a is b for a, b in zip(seen, self._sound, strict=True)):
            return
        for wrong, wanted, found in _RULES:
            if (entries := wrong(value, given)) is not None and bool(entries.any()):
                raise self.where.misfit(wanted, found(value, given, entries))
        self._sound = seen


_Wrong = Callable[[Tensor, Given], Tensor | None]


def _no_flag(key: str) -> _Wrong:
    return lambda value, given: (given[key] != 0) & (given[key] != 1) if key in given else None


def _first(key: str) -> Callable[[Tensor, Given, Tensor], str]:
    return lambda value, given, entries: f"{given[key].expand(entries.shape)[entries][0].item():g}"


def _both(value: Tensor, given: Given) -> Tensor | None:
    if not {"right_censored", "left_censored"} <= given.keys():
        return None
    return (given["right_censored"] != 0) & (given["left_censored"] != 0)


def _backwards(value: Tensor, given: Given) -> Tensor | None:
    end = given.get("interval")
    return None if end is None else ~(end >= value)


def _ends(value: Tensor, given: Given, entries: Tensor) -> str:
    start, end = (part.expand(entries.shape)[entries][0].item() for part in (value, given["interval"]))
    return f"{end:g} for the value {start:g}"


# Which entries are wrong, what is expected, and what was found.
_RULES: tuple[tuple[_Wrong, str, Callable[[Tensor, Given, Tensor], str]], ...] = (
    *((_no_flag(key), f"0 or 1 in `{key}`", _first(key)) for key in ("right_censored", "left_censored")),
    (_both, "`right_censored` or `left_censored`, not both of one element", lambda value, given, entries: "both"),
    (_backwards, "`interval`, the upper end, at or above the value", _ends),
)
