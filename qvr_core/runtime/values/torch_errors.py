"""torch's complaints about shapes, dtypes, devices and matrices, in the words of the program, with the step."""

from __future__ import annotations

import re

from qvr_core.arrays.engine import arrays
from qvr_core.runtime.values.errors import InputProblem


class Misfit(InputProblem, RuntimeError):
    """Values that do not go together; still what torch raised, for those who go on row by row after it."""


_SIZES = re.compile(r"The size of tensor a \((\d+)\) must match the size of tensor b \((\d+)\)")
_SHAPES = re.compile(r"dimension of length (\d+) .*should be broadcastable to \[.*?(\d+)\]")
_PRODUCT = re.compile(r"batch2 tensor to be: \[\d+, (\d+)\] but got: \[\d+, (\d+)\]|\(\d+x(\d+) and (\d+)x\d+\)")
_OUTPUT = re.compile(r"output with shape (\[.*?\]) doesn't match the broadcast shape (\[.*?\])")
_DTYPES = re.compile(r"to have the same dtype, but got:? (\w+) (?:and|!=) (\w+)")

_DEVICES = re.compile(r"\b(?:[a-z]+:\d+|cpu)\b")


def misfit(program: str, step: object, error: RuntimeError) -> Misfit | None:
    """What to say of an error about sizes, dtypes or devices that do not meet; None for any other error."""
    text = str(error).replace("must have", "to have")
    if isinstance(error, arrays.linalg.LinAlgError):  # pyright: ignore[reportPrivateImportUsage]
        what = "a matrix is not positive definite, or singular; add a little to its diagonal (`K + 1e-6 * eye(n)`)"
    elif found := _SIZES.search(text) or _SHAPES.search(text):
        what = f"{found[1]} entries meet {found[2]}: its values, the data and the input must have as many"
    elif found := _PRODUCT.search(text):
        first, second = (size for size in found.groups() if size is not None)
        what = f"a product over {first} and {second} entries: its two sides, the data among them, must have as many"
    elif found := _OUTPUT.search(text):
        what = f"values of shape {found[1]} meet {found[2]}: its values, the data and the input must go together"
    elif found := _DTYPES.search(text):
        what = (
            f"{found[1].lower()} numbers meet {found[2].lower()}: the input, the data and the parameters must be of "
            "one dtype (`x.float()`, or `model.double()`)"
        )
    elif "on the same device" in text and len(devices := sorted(set(_DEVICES.findall(text)))) > 1:
        what = (
            f"numbers on {devices[-1]} meet some on {devices[0]}: the input, the data and the parameters must lie on "
            f'one device (`x.to("{devices[-1]}")`, or `model.cpu()`)'
        )
    else:
        return None
    names = (name,) if (name := getattr(step, "name", None)) else getattr(step, "names", ())
    place = ", ".join(f"`{name}`" for name in names) or "a step"
    return Misfit(f"program `{program}`, {place}: {what}", site=names[0] if names else None)
