"""An engine's word on a case beside the interpreter's."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from tests.generator.engines import Answer, Engine, NotForThis, Refused
from tests.generator.interpreter import Interpreter, Scored
from tests.generator.sets import far
from tests.generator.steps import Case

TOLERANCE = 1e-9
"""Difference of log densities, relative to the sizes of their terms."""
UNDEFINED = "undefined"
"""The kind of what the interpreter has no number for: a draw so far out that numbers end."""


@dataclass(frozen=True)
class Difference:
    """What is wrong: its kind (one word and what it is about), and a sentence with both numbers."""

    engine: str
    kind: str
    words: str


def compared(case: Case, engine: Engine) -> Difference | None:
    """None where both say the same, or have nothing to say."""
    try:
        answer = engine.score(case)
    except NotForThis:
        return None
    except Refused as problem:
        codes = re.findall(r"error\[([a-z-]+)\]", str(problem))
        return Difference(engine.name, f"refused {codes[0] if codes else ''}", str(problem))
    except Exception as problem:
        # whatever it is, it is a finding
        words = re.sub(r"[`'\d].*", "", str(problem).splitlines()[0] if str(problem) else "")
        return Difference(engine.name, f"{type(problem).__name__} {words[:40]}", f"{type(problem).__name__}: {problem}")
    for row, latents in enumerate(answer.rows):
        if far(latents):
            return Difference(engine.name, UNDEFINED, "values are far out")
        try:
            wanted = Interpreter(case, latents, answer.drawn).scored()
        except (OverflowError, ValueError, ZeroDivisionError) as problem:
            return Difference(engine.name, UNDEFINED, str(problem))
        if math.isnan(wanted.total) or wanted.total == math.inf:
            return Difference(engine.name, UNDEFINED, f"log density {wanted.total}")
        found = _row(answer, row, wanted)
        if found is not None:
            return Difference(engine.name, found[0], f"row {row}: {found[1]}")
    return None


def _row(answer: Answer, row: int, wanted: Scored) -> tuple[str, str] | None:
    """What is wrong in one row."""
    if not same(answer.total[row], wanted.total, wanted.size):
        kind = "density" if math.isfinite(answer.total[row]) else f"density {answer.total[row]}"
        return kind, f"log density {answer.total[row]!r}, by elements {wanted.total!r}"
    for name, places in wanted.pointwise.items():
        if name not in answer.pointwise:
            continue
        here = answer.pointwise[name][row]
        if not here.shape or any(len(place) != here.ndim for place in places):
            continue
        for place, density in places.items():
            if not same(float(here[place]), density, abs(density)):
                return "pointwise", f"`{name}{list(place)}` {float(here[place])!r}, by elements {density!r}"
        for place in wanted.silent.get(name, ()):
            if not math.isnan(here[place]):
                return "pointwise", f"`{name}{list(place)}` {float(here[place])!r}, and it does not count"
    return None


def same(found: float, wanted: float, size: float) -> bool:
    """To the tolerance."""
    if math.isinf(wanted) or math.isinf(found):
        return found == wanted
    return abs(found - wanted) <= TOLERANCE * max(1.0, size)


def first_difference(case: Case, engines: Sequence[Engine]) -> Difference | None:
    """Of several engines."""
    return next((found for engine in engines if (found := compared(case, engine)) is not None), None)
