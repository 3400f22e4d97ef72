"""A family's arguments in the runtime's form: probabilities become logits, a covariance its Cholesky factor."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from qvr_core.arrays.engine import Tensor, arrays, linalg
from qvr_core.runtime.families.soundness import TOLERANCE
from qvr_core.runtime.values.decompositions import cholesky
from qvr_core.runtime.values.errors import InputProblem
from qvr_core.runtime.values.indices import in_transform, recording
from qvr_core.semantics.language.family import Family, Parameter

Conversion = Callable[[Tensor, Sequence[Tensor]], Tensor | tuple[Tensor, Tensor]]
"""What makes a parameter of another one that stands in its place, given the parameters in front of it; both forms of
one that has two."""


def logarithm(name: str) -> str:
    """How the argument of this name is called where its logarithm is given: no program can write it."""
    return f"log of {name}"


def canonical(
    family: Family, arguments: Mapping[str, Tensor], conversions: Mapping[str, Conversion]
) -> tuple[Tensor, ...]:
    """The parameters from arguments by name, those of other parametrisations included."""
    made: list[Tensor] = []
    for parameter in family.parameters:
        if parameter.sizes:
            continue
        names = (parameter.name, *dict(parameter.alternatives))
        name = next((each for one in names for each in (one, logarithm(one)) if each in arguments), None)
        if name is not None and name in conversions:
            found = conversions[name](arguments[name], made)
            made.extend(found if isinstance(found, tuple) else (found,))
        elif name is not None and name == parameter.name:
            made.append(_converted(family, parameter, arguments[name]))
        elif name is not None:
            made.append(_alternative(name, arguments[name]))
        elif parameter.default is not None:
            like = next(iter(arguments.values()), None)
            made.append(arrays.as_tensor(parameter.default, dtype=like.dtype if like is not None else None))
        else:
            raise KeyError(f"{family.name} needs {parameter.name}")
    return tuple(made)


def _converted(family: Family, parameter: Parameter, value: Tensor) -> Tensor:
    match parameter.constraint:
        case "simplex":
            return _log_probs(value)
        case "unit" if parameter.alternatives:
            return _logit(value)
        case "lower triangular":
            _check_factor(family.name, parameter.name, value)
            return value
        case _:
            return value


def _logit(probs: Tensor) -> Tensor:
    # small ones are exact as long as they are numbers; large ones end where rounding makes them 1
    least, eps = arrays.finfo(probs.dtype).tiny, arrays.finfo(probs.dtype).eps
    return arrays.logit(_inside(probs.clamp(least, 1.0 - eps), probs))


def _log_probs(probs: Tensor) -> Tensor:
    # an exact zero stays (nearly) impossible without a NaN gradient
    return _inside(probs.clamp(min=arrays.finfo(probs.dtype).tiny), probs).log()


def _inside(clamped: Tensor, probs: Tensor) -> Tensor:
    """Clamped probabilities; NaN where rounding cannot be why one is outside: it has no density."""
    return arrays.where((probs < -TOLERANCE) | (probs > 1.0 + TOLERANCE), arrays.nan, clamped)


def _check_factor(family: str, name: str, value: Tensor) -> None:
    """Raise `InputProblem` for a matrix with numbers above its diagonal: only its lower half would count."""
    if recording() or in_transform() or value.ndim < 2:
        return
    if not bool((arrays.triu(value, 1).abs() > 0).any()):  # NaN stays: a factor that does not exist has no density
        return
    covariance = ": a covariance is given as `covariance_matrix=…`" if name == "scale_tril" else ""
    raise InputProblem(f"`{name}` of {family} is a Cholesky factor, but it has numbers above its diagonal{covariance}")


def _alternative(name: str, value: Tensor) -> Tensor:
    if name == "covariance_matrix":
        return cholesky(value)
    if name == "precision_matrix":
        # the inverse of a flipped Cholesky factor, flipped back, is the factor of the inverse
        flipped = cholesky(arrays.flip(value, (-2, -1)))
        root = arrays.flip(flipped, (-2, -1)).mT
        identity = arrays.eye(value.shape[-1], dtype=value.dtype, device=value.device)
        return linalg.solve_triangular(root, identity.expand_as(value), upper=False)
    return value
