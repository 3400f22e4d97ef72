"""torch's complaints about shapes, in the words of the program: which step met data that do not fit."""

from __future__ import annotations

import re

from qvr_core.runtime.errors import InputProblem


class ShapeMisfit(InputProblem, RuntimeError):
    """Values that do not broadcast; still what torch raised, for those who go on row by row after it."""


_SIZES = re.compile(r"The size of tensor a \((\d+)\) must match the size of tensor b \((\d+)\)")
_SHAPES = re.compile(r"dimension of length (\d+) .*should be broadcastable to \[.*?(\d+)\]")


def shape_misfit(program: str, step: object, error: RuntimeError) -> ShapeMisfit | None:
    """What to say of an error about sizes that do not broadcast; None for any other error."""
    found = _SIZES.search(str(error)) or _SHAPES.search(str(error))
    if found is None:
        return None
    names = (name,) if (name := getattr(step, "name", None)) else getattr(step, "names", ())
    place = ", ".join(f"`{name}`" for name in names) or "a step"
    return ShapeMisfit(
        f"program `{program}`, {place}: {found[1]} entries meet {found[2]}: its values, the data and the input must "
        "have as many",
        site=names[0] if names else None,
    )
