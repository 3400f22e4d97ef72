"""Functions of arrays, number by number and along axes; infinite and undefined results are no error."""

from __future__ import annotations

import contextlib
import math
import operator
from collections.abc import Callable, Generator
from typing import Any

from qvr_core.arrays.shapes import broadcast
from qvr_core.arrays.without_numpy.array import array, asarray, ndarray, spread
from qvr_core.arrays.without_numpy.array import nonzero as _nonzero
from qvr_core.arrays.without_numpy.kinds import KINDS

inf, nan, pi, newaxis = math.inf, math.nan, math.pi, None


def _quiet(function: Callable[..., float]) -> Callable[..., float]:
    """A function of `math` that gives what a processor gives where Python raises."""

    def apply(*values: float) -> float:
        try:
            return function(*values)
        except OverflowError:
            return math.inf
        except (ValueError, ZeroDivisionError):
            return math.nan

    return apply


def _one(function: Callable[[Any], Any], kind: str | None = "f") -> Callable[..., ndarray]:
    def apply(x: Any, **keywords: Any) -> ndarray:
        own = asarray(x)
        convert = KINDS["f" if kind == "f" else "O"]
        return ndarray([function(convert(value)) for value in own.data], own.shape, kind or own.kind)

    return apply


class _Two:
    """A function of pairs of numbers."""

    def __init__(self, function: Callable[[Any, Any], Any], kind: str | None = None) -> None:
        self.function, self.kind = function, kind

    def __call__(self, x: Any, y: Any, **keywords: Any) -> ndarray:
        one, other = asarray(x), asarray(y)
        kind = max(one.kind, other.kind, key="bifO".index)
        shape = broadcast([one.shape, other.shape])
        function = self.function
        if not other.shape and one.shape == shape:
            value = other.data[0]
            made = [function(each, value) for each in one.data]
        else:
            made = list(map(function, spread(one, shape).data, spread(other, shape).data))
        kind = self.kind or ("i" if kind == "b" else kind)
        return ndarray(made if kind == "b" else list(map(KINDS[kind], made)), shape, kind)

    def outer(self, x: Any, y: Any) -> ndarray:
        """Of each number with each."""
        one, other = asarray(x), asarray(y)
        return self(one.reshape(*one.shape, *[1] * other.ndim), other)

    def at(self, x: ndarray, where: Any, values: Any) -> None:
        """Joined into an array at places, which may repeat."""
        numbers = ndarray(list(range(x.size)), x.shape, "i")[where]
        numbers = numbers if isinstance(numbers, ndarray) else array(int(numbers))
        for at, value in zip(numbers.data, spread(asarray(values), numbers.shape).data, strict=True):
            x.data[at] = self.function(x.data[at], value)


def _divided(x: float, y: float) -> float:
    if y != 0:
        return x / y
    return math.nan if x == 0 or math.isnan(x) else math.copysign(math.inf, x) * math.copysign(1.0, y)


def _power(x: float, y: float) -> float:
    try:
        found = x**y
    except ZeroDivisionError:
        return math.copysign(math.inf, x) if y % 2.0 == 1.0 else math.inf
    except OverflowError:
        return -math.inf if x < 0.0 and y % 2.0 == 1.0 else math.inf
    return math.nan if isinstance(found, complex) else found


def _log(x: float) -> float:
    return math.log(x) if x > 0.0 else -math.inf if x == 0.0 else math.nan


def _logarithm(base: float) -> Callable[[float], float]:
    of = math.log2 if base == 2.0 else math.log10
    return lambda x: of(x) if x > 0.0 else -math.inf if x == 0.0 else math.nan


def _atanh(x: float) -> float:
    return math.copysign(math.inf, x) if abs(x) == 1.0 else _quiet(math.atanh)(x)


def _sinh(x: float) -> float:
    return math.copysign(_quiet(math.sinh)(abs(x)), x)


def _log1p(x: float) -> float:
    return math.log1p(x) if x > -1.0 else -math.inf if x == -1.0 else math.nan


def _logaddexp(x: float, y: float) -> float:
    if x == y:
        return x + math.log(2.0)
    if math.isnan(x) or math.isnan(y):
        return math.nan
    high, low = max(x, y), min(x, y)
    return high + math.log1p(math.exp(low - high))


def _floored(x: float) -> float:
    return float(math.floor(x)) if math.isfinite(x) else x


def _sign(x: float) -> float:
    return float((x > 0) - (x < 0)) if not math.isnan(x) else x


def _whole_quotient(x: Any, y: Any) -> Any:
    return x // y


def _infinite(x: float) -> bool:
    return abs(x) == math.inf


def _largest(x: Any, y: Any) -> Any:
    return x if math.isnan(x) or x >= y else y


def _smallest(x: Any, y: Any) -> Any:
    return x if math.isnan(x) or x <= y else y


_cosine, _sine = _quiet(math.cos), _quiet(math.sin)
exp, expm1, log, log1p = _one(_quiet(math.exp)), _one(_quiet(math.expm1)), _one(_log), _one(_log1p)
sqrt, sin, cos, tan = _one(_quiet(math.sqrt)), _one(_sine), _one(_cosine), _one(_quiet(math.tan))
arcsin, arccos, arctan = _one(_quiet(math.asin)), _one(_quiet(math.acos)), _one(math.atan)
sinh, cosh, tanh = _one(_sinh), _one(_quiet(math.cosh)), _one(math.tanh)
arcsinh, arccosh, arctanh = _one(math.asinh), _one(_quiet(math.acosh)), _one(_atanh)
log2, log10 = _one(_logarithm(2.0)), _one(_logarithm(10.0))
floor, ceil, sign = _one(_floored), _one(lambda x: -_floored(-x)), _one(_sign, None)
negative, absolute, square = _one(operator.neg, None), _one(abs, None), _one(lambda x: x * x, None)
positive = _one(lambda x: x, None)
isnan, isinf, isfinite = _one(math.isnan, "b"), _one(_infinite, "b"), _one(lambda x: abs(x) < math.inf, "b")
isneginf, isposinf = _one(lambda x: x == -math.inf, "b"), _one(lambda x: x == math.inf, "b")
logical_not = _one(operator.not_, "b")
add, subtract, multiply = _Two(operator.add), _Two(operator.sub), _Two(operator.mul)
true_divide, power, arctan2 = _Two(_divided, "f"), _Two(_power), _Two(math.atan2, "f")
divide = true_divide
floor_divide, mod = _Two(_quiet(_whole_quotient)), _Two(_quiet(operator.mod))
maximum, minimum, logaddexp = _Two(_largest), _Two(_smallest), _Two(_logaddexp, "f")
equal, not_equal = _Two(operator.eq, "b"), _Two(operator.ne, "b")
less, less_equal, greater, greater_equal = (_Two(f, "b") for f in (operator.lt, operator.le, operator.gt, operator.ge))
logical_and, logical_or = _Two(lambda x, y: bool(x and y), "b"), _Two(lambda x, y: bool(x or y), "b")
logical_xor = _Two(lambda x, y: bool(x) != bool(y), "b")


def frompyfunc(function: Callable[..., Any], inputs: int, outputs: int) -> Callable[..., ndarray]:
    """A function of numbers as one of arrays."""
    return _one(function, "f")


@contextlib.contextmanager
def errstate(**keywords: Any) -> Generator[None]:
    """Nothing here is an error."""
    yield


def where(test: Any, *values: Any) -> Any:
    """One of two numbers each; with a test alone the places where it holds."""
    truth = asarray(test)
    if not values:
        return _nonzero(truth)
    yes, no = map(asarray, values)
    shape = broadcast([truth.shape, yes.shape, no.shape])
    kind = max(yes.kind, no.kind, key="bifO".index)
    parts = zip(spread(truth, shape).data, spread(yes, shape).data, spread(no, shape).data, strict=True)
    return ndarray([KINDS[kind](one if chosen else other) for chosen, one, other in parts], shape, kind)


def nonzero(x: Any) -> tuple[ndarray, ...]:
    return _nonzero(asarray(x))


def flatnonzero(x: Any) -> ndarray:
    return _nonzero(asarray(x).ravel())[0]


def clip(x: Any, low: Any = None, high: Any = None) -> ndarray:
    found = asarray(x)
    found = found if low is None else maximum(found, low)
    return found if high is None else minimum(found, high)


def rounded(x: Any, decimals: int = 0) -> ndarray:
    return _one(lambda value: float(round(value, decimals)))(x)


def _inverted(x: ndarray) -> ndarray:
    return logical_not(x) if x.kind == "b" else _one(operator.invert, None)(x)


def _operators() -> None:
    """What signs between arrays mean."""
    of_two = {
        "add": add, "sub": subtract, "mul": multiply, "truediv": true_divide, "floordiv": floor_divide, "mod": mod,
        "pow": power, "eq": equal, "ne": not_equal, "lt": less, "le": less_equal, "gt": greater, "ge": greater_equal,
        "and": _Two(lambda x, y: x & y), "or": _Two(lambda x, y: x | y), "xor": _Two(lambda x, y: x ^ y),
    }  # fmt: skip
    for name, function in of_two.items():
        keep = name in ("and", "or", "xor")

        def here(self: ndarray, other: Any, function: _Two = function, keep: bool = keep) -> ndarray:
            found = function(self, other)
            return found.astype(bool) if keep and self.kind == "b" else found

        def there(self: ndarray, other: Any, function: _Two = function) -> ndarray:
            return function(other, self)

        setattr(ndarray, f"__{name}__", here)
        setattr(ndarray, f"__r{name}__", there)
    for name, function in {
        "neg": negative,
        "abs": absolute,
        "invert": _inverted,
    }.items():
        setattr(ndarray, f"__{name}__", function)


_operators()
