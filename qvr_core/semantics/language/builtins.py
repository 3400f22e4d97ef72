"""The builtin functions of arithmetic: one table (docs/reference.md#functions).

Pointwise functions, reductions over the last axis and activations carry torch's own names and mean what they mean
there; `over` names the axis by its set instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from qvr_core.syntax.immutable import immutable


@immutable
class BuiltinFunction:
    """A builtin function.

    `rule` says how the result is typed: 'pointwise' (all arguments broadcast), 'keep' (shape of the first argument),
    'reduce' (the last axis goes), 'compare' (pointwise, 0 or 1), 'concat', 'chunk', 'matmul', 'outer', 'parse',
    'compose', or 'free' (depends on the data).  `most` is None where any number of arguments will do.
    `reserved` is False for words that a program may well bind itself (`mean`, `scale`); called, they are the builtin.
    """

    name: str
    least: int
    most: int | None
    rule: str
    summary: str
    keywords: tuple[str, ...] = ()
    reserved: bool = True
    parameters: tuple[str, ...] = ()


_SAID = {
    "sigmoid": "1 / (1 + exp(−x)), the probability of log odds x",
    "logit": "log(x / (1 − x)), the log odds of a probability x",
    "exp": "e to the power of x",
    "log": "the natural logarithm of x",
    "log1p": "log(1 + x), exact for small x",
    "expm1": "exp(x) − 1, exact for small x",
    "sqrt": "the square root of x",
    "square": "x times x",
    "abs": "x without its sign",
    "ndtr": "the probability that a standard Normal is at most x",
    "lgamma": "the logarithm of the gamma function of x",
}
"""What the commonest functions are, in words."""


def _pointwise(names: str, *, arity: int = 1, reserved: bool = True) -> list[BuiltinFunction]:
    words = "elementwise" if arity == 1 else "elementwise, with broadcasting"
    parameters = ("x",) if arity == 1 else ("x", "y")
    said = {name: f"{_SAID.get(name, name)}, {words}" for name in names.split()}
    return [
        BuiltinFunction(name, arity, arity, "pointwise", summary, reserved=reserved, parameters=parameters)
        for name, summary in said.items()
    ]


def _reductions(names: str, *, reserved: bool = True) -> list[BuiltinFunction]:
    return [
        BuiltinFunction(
            name, 1, 2, "reduce", f"{name} over the last axis", ("dim", "keepdim", "over"), reserved, ("x", "dim")
        )
        for name in names.split()
    ]


def _shape_keeping(names: str, *, reserved: bool = True) -> list[BuiltinFunction]:
    return [
        BuiltinFunction(name, 1, 2, "keep", f"{name} along the last axis", ("dim", "over"), reserved, ("x", "dim"))
        for name in names.split()
    ]


_POINTWISE = (
    "abs exp exp2 expm1 log log1p log2 log10 sqrt rsqrt square reciprocal sin cos tan asin acos atan sinh cosh tanh "
    "asinh acosh atanh erf erfc erfinv sigmoid lgamma digamma ceil floor logsigmoid relu relu6 gelu silu mish softsign "
    "tanhshrink hardsigmoid hardswish selu logical_not isnan isfinite"
)
_ACTIVATIONS = {
    "softplus": ("beta", "threshold"),
    "elu": ("alpha",),
    "celu": ("alpha",),
    "leaky_relu": ("negative_slope",),
    "hardtanh": ("min_val", "max_val"),
    "hardshrink": ("lambd",),
    "softshrink": ("lambd",),
}

_FUNCTIONS: tuple[BuiltinFunction, ...] = (
    *_pointwise(_POINTWISE),
    *_pointwise(
        "sign round neg logit trunc frac sinc deg2rad rad2deg ndtr log_ndtr ndtri", reserved=False
    ),
    *_pointwise(
        "minimum maximum atan2 logaddexp logical_and logical_or",
        arity=2,
    ),
    *_pointwise(
        "pow add sub mul div fmod remainder copysign hypot floor_divide xlogy", arity=2, reserved=False
    ),
    *_reductions("logsumexp argmax argmin amax amin nansum"),
    *_reductions("sum mean prod std var median max min norm any all", reserved=False),
    *_shape_keeping("softmax log_softmax softmin cumsum cumprod logcumsumexp"),
    *_shape_keeping("sort argsort flip normalize", reserved=False),
    *(
        BuiltinFunction(name, 1, 1 + len(extra), "keep", f"the activation {name}", extra, parameters=("x", *extra))
        for name, extra in _ACTIVATIONS.items()
    ),
    BuiltinFunction("clamp", 1, 3, "keep", "cut off outside min to max", ("min", "max"), True, ("x", "min", "max")),
    BuiltinFunction("layer_norm", 1, 1, "keep", "standardise over the last axis", ("eps",), parameters=("x",)),
    BuiltinFunction("where", 3, 3, "pointwise", "a, where condition holds, else b", parameters=("condition", "a", "b")),
    BuiltinFunction("concat", 1, None, "concat", "join the last axes", ("dim",), parameters=("x", "y")),
    BuiltinFunction("chunk", 2, 2, "chunk", "n equal pieces of the last axis", ("chunks", "dim"), True, ("x", "n")),
    BuiltinFunction("dot", 2, 2, "reduce", "Σ x · y over the last axis", reserved=False, parameters=("x", "y")),
    BuiltinFunction("matmul", 2, 2, "matmul", "matrix product over the last axes", parameters=("x", "y")),
    BuiltinFunction("mv", 2, 2, "matmul", "matrix times vector", parameters=("A", "x")),
    BuiltinFunction("mm", 2, 2, "matmul", "matrix times matrix", parameters=("A", "B")),
    BuiltinFunction("bmm", 2, 2, "matmul", "matrix product, batch by batch", parameters=("A", "B")),
    BuiltinFunction("outer", 2, 2, "free", "every product of two entries", reserved=False, parameters=("x", "y")),
    BuiltinFunction("transpose", 1, 3, "free", "swap the last two axes", reserved=False, parameters=("x",)),
    BuiltinFunction("diag", 1, 1, "free", "diagonal matrix of a vector, or diagonal of a matrix", parameters=("x",)),
    BuiltinFunction("diag_embed", 1, 1, "free", "diagonal matrix of a vector", parameters=("x",)),
    BuiltinFunction("inverse", 1, 1, "free", "inverse of a matrix", parameters=("A",)),
    BuiltinFunction("cholesky", 1, 1, "free", "lower triangular factor of a covariance matrix", parameters=("A",)),
    BuiltinFunction("det", 1, 1, "free", "determinant", parameters=("A",)),
    BuiltinFunction("logdet", 1, 1, "free", "log determinant", parameters=("A",)),
    BuiltinFunction("eye", 1, 2, "free", "identity matrix of n rows", parameters=("n",)),
    BuiltinFunction("zeros", 1, None, "free", "zeros of the given sizes", parameters=("n",)),
    BuiltinFunction("ones", 1, None, "free", "ones of the given sizes", parameters=("n",)),
    BuiltinFunction("zeros_like", 1, 1, "keep", "zeros of the same shape", parameters=("x",)),
    BuiltinFunction("ones_like", 1, 1, "keep", "ones of the same shape", parameters=("x",)),
    BuiltinFunction("full_like", 2, 2, "keep", "the same shape, filled with a value", parameters=("x", "value")),
    BuiltinFunction("arange", 1, 3, "free", "0, 1, …, n − 1", parameters=("n",)),
    BuiltinFunction("linspace", 3, 3, "free", "n evenly spaced numbers", parameters=("start", "end", "n")),
    BuiltinFunction("one_hot", 1, 2, "free", "a 1 at the index, else 0", ("num_classes",), True, ("index", "n")),
    BuiltinFunction("tril", 1, 1, "keep", "lower triangle", parameters=("A",)),
    BuiltinFunction("triu", 1, 1, "keep", "upper triangle", parameters=("A",)),
    BuiltinFunction("unsqueeze", 1, 2, "free", "a new axis of length 1", ("dim",), parameters=("x", "dim")),
    BuiltinFunction("squeeze", 1, 2, "free", "drop an axis of length 1", ("dim",), parameters=("x", "dim")),
    BuiltinFunction("reshape", 2, None, "free", "the same numbers in another shape", parameters=("x", "size")),
    BuiltinFunction("flatten", 1, 2, "free", "one axis", parameters=("x",)),
    BuiltinFunction("roll", 2, 3, "keep", "shift along the last axis", parameters=("x", "shifts")),
    BuiltinFunction("diff", 1, 2, "free", "differences along the last axis", reserved=False, parameters=("x",)),
    BuiltinFunction("size", 1, 2, "free", "length of the last axis", ("dim",), False, ("x", "dim")),
    BuiltinFunction("numel", 1, 1, "free", "number of entries", parameters=("x",)),
    BuiltinFunction("detach", 1, 1, "keep", "the value without its gradient", parameters=("x",)),
    BuiltinFunction("parse", 2, 2, "parse", "chart of a deduction on a sentence", parameters=("deduction", "sentence")),
    BuiltinFunction(
        "compose", 2, None, "compose", "deductions in turn: goals become axioms", parameters=("first", "second")
    ),
)  # fmt: skip

_ORDINARY_WORDS = (
    "layer_norm mv mm bmm diag diag_embed inverse cholesky det logdet eye zeros ones arange linspace one_hot "
    "tril triu unsqueeze squeeze reshape flatten roll numel detach square reciprocal floor ceil"
)
"""Names that programs use for things of their own."""

ALIASES: Mapping[str, str] = {
    "cat": "concat", "clip": "clamp", "expit": "sigmoid", "inv_logit": "sigmoid", "true_divide": "div",
}  # fmt: skip
"""Other names of functions, and the names that the tables know them by; none of them is reserved."""

_BY_NAME = {
    function.name: replace(function, reserved=function.reserved and function.name not in _ORDINARY_WORDS.split())
    for function in _FUNCTIONS
}
BUILTINS: Mapping[str, BuiltinFunction] = _BY_NAME | {
    alias: replace(_BY_NAME[name], name=alias, reserved=False) for alias, name in ALIASES.items()
}
"""Every builtin function by each of its names."""

OPERATORS: Mapping[str, str] = {
    "+": "add", "-": "sub", "*": "mul", "/": "div", "^": "pow",
    "<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne",
}  # fmt: skip
"""The model's name of each infix operator (`Builtin.function`)."""

COMPARISONS = frozenset(("lt", "le", "gt", "ge", "eq", "ne"))


def canonical(name: str) -> str:
    """The name that the tables know a function by."""
    return ALIASES.get(name, name)


def arity_words(function: BuiltinFunction) -> str:
    """'1 argument', '2 or 3 arguments', 'at least 1 argument'."""
    if function.most is None:
        return f"at least {_count(function.least)}"
    if function.least == function.most:
        return _count(function.least)
    joint = "or" if function.most == function.least + 1 else "to"
    return f"{function.least} {joint} {_count(function.most)}"


def _count(number: int) -> str:
    return f"{number} argument" if number == 1 else f"{number} arguments"
