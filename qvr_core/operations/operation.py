"""The record of an operation, and short ways of writing one.

A record holds names and small formulas only, so the checker reads it without numpy or torch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from qvr_core.operations.intervals import Interval
from qvr_core.syntax.immutable import immutable, immutable_by_name

Slope = Callable[[Any, Any], Any]
"""By x and y = f(x), in the arithmetic of `arrays.derivatives.Term`: `x * 2.0`, `x.cos()`."""

TRAITS = {
    "whole": "whole numbers stay whole numbers",
    "jumps": "its values jump: no derivative tells how a mean moves",
    "bounds": "where its values lie is part of their type",
    "itself": "of one number it is that number",
    "in turn": "over several axes it is over one after the other",
    "of sets": "it takes sets in place of sizes",
    "counts axes": "its arguments behind the first are numbers of axes",
    "all axes": "it looks at all axes at once",
    "together": "several values are laid out alike first",
}
"""What else is asked of a function of programs."""


@immutable
class BuiltinFunction:
    """A builtin function, as programs call it.

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
    aliases: tuple[str, ...] = ()
    traits: frozenset[str] = frozenset()
    rank: int = 0
    """How many axes an element must have; functions along one axis want one, too."""
    defined_from: float | None = None
    """Functions that not every number has: the number from which on there is one."""
    neutral: float | None = None
    """Of what reduces over indices: what an element that is left out counts as."""

    @property
    def along_axis(self) -> bool:
        """Whether it works along an axis, which `over=` may name."""
        return "over" in self.keywords


Group = Literal["unary", "binary", "comparison", "logical", "cast", "choice", "reduction", "structural", "matrix"]
ITSELF = ""
"""A loop over it becomes vector instructions as it stands."""
ONE_BY_ONE = "one by one"
"""It has no vector form: a loop that calls it runs number by number."""


@immutable_by_name
class Node:
    """An operation of the graph of arrays (`arrays.graph`)."""

    group: Group
    name: str = ""
    """What the graph calls it; '' like the operation."""
    torch: tuple[str, ...] = ()
    """All of torch's names of it, where it is one of torch's functions as it stands."""
    numpy: str = ""
    """numpy's name of it; `special.…` is of `arrays.special`; '' where `arrays.evaluate` has a rule."""
    slope: Slope | None = None
    """dy/dx."""
    divisor: Slope | None = None
    """dx/dy, where that is the simpler one."""
    loop: str = ""
    """Its text in a loop, or the function that it calls: one of `math`, or of `codegen.kernels`."""
    vector: str = ITSELF
    """The function that it calls in a loop of vectors."""
    neutral: tuple[float | None, float | None] = (None, None)
    """The number on the left, and on the right, that leaves the other as it is."""
    traits: frozenset[str] = frozenset()
    """'cheap': a loop's derivative does it again rather than keep its values; 'flat': constant between its jumps;
    'kind': the kind of numbers that it gives is that of its arguments."""


@immutable_by_name
class Targets:
    """What `qvr export` prints: a function, or a template of the arguments; '' where the target has nothing."""

    torch: str = ""
    numpyro: str = ""
    pymc: str = ""
    stan: str = ""


NOWHERE = Targets()


@immutable_by_name
class Operation:
    """What an operation is.  `function` is None where programs cannot call it, `node` where it is made of others."""

    name: str
    function: BuiltinFunction | None = None
    sign: str = ""
    """How programs write it between two values."""
    interval: Interval | Callable[[Interval], Interval] | None = None
    """Where its values lie: always, or by where its first argument lies."""
    interval_of_two: Callable[[Interval, Interval], Interval] | None = None
    node: Node | None = None
    targets: Targets = NOWHERE

    def template(self, target: str) -> str:
        """The template of a target, '' where it has none: `{0}` is the first argument, `{rest}` are the others, `{all}`
        all of them; `{axis}` is an axis, `{options}` what is given by name."""
        text: str = getattr(self.targets, target)
        if not text or "{" in text:
            return text
        count = 2 if self.function is None else self.function.least
        axis = ", {axis}" if self.function is not None and self.function.along_axis and target != "stan" else ""
        return f"{text}({', '.join(f'{{{at}}}' for at in range(count))}{axis})"


# ---------------------------------------------------------------- ways of writing one


def words(text: str, *, marked: str = "") -> frozenset[str]:
    """Traits, with a comma between them."""
    return frozenset(part.strip() for part in f"{text},{marked}".split(",") if part.strip())


def alike(name: str, **others: str) -> Targets:
    """Targets that call a function alike; what they call otherwise or have not ('') is said."""
    return Targets(**{"torch": f"torch.{name}", "numpyro": f"jnp.{name}", "pymc": f"pt.{name}", "stan": name, **others})


def everywhere(template: str) -> Targets:
    """The same text in all targets that are libraries of arrays."""
    return Targets(torch=template, numpyro=template, pymc=template)


def pointwise(
    name: str,
    arity: int = 1,
    said: str = "",
    *,
    free: bool = False,
    aliases: tuple[str, ...] = (),
    traits: str = "",
    defined_from: float | None = None,
    sign: str = "",
    interval: Interval | Callable[[Interval], Interval] | None = None,
    interval_of_two: Callable[[Interval, Interval], Interval] | None = None,
    node: Node | None = None,
    targets: Targets = NOWHERE,
) -> Operation:
    """A function of numbers one by one; `free` is a word that programs may bind themselves."""
    summary = f"{said or name}, elementwise" + ("" if arity == 1 else ", with broadcasting")
    function = BuiltinFunction(
        name, arity, arity, "pointwise", summary, (), not free, ("x",) if arity == 1 else ("x", "y"), aliases,
        words(traits), 0, defined_from,
    )  # fmt: skip
    return Operation(
        name=name, function=function, sign=sign, interval=interval, interval_of_two=interval_of_two, node=node,
        targets=targets,
    )  # fmt: skip


SAID_ALONG = {
    "sum": "the sum", "mean": "the mean", "prod": "the product", "std": "the standard deviation", "var": "the variance",
    "median": "the median", "max": "the greatest value", "min": "the least value", "any": "1 where any value holds",
    "all": "1 where all values hold", "cumsum": "the running sum", "cumprod": "the running product",
    "sort": "the values in ascending order", "softmax": "probabilities from log weights, exp(x) by their sum,",
    "logsumexp": "the logarithm of the sum of exp(x)", "argmax": "the place of the greatest value",
    "argmin": "the place of the least value",
}  # fmt: skip
"""Functions along an axis in words, where their names say little."""


def along(
    name: str,
    rule: Literal["reduce", "keep"],
    *,
    free: bool = False,
    aliases: tuple[str, ...] = (),
    traits: str = "",
    neutral: float | None = None,
    interval: Interval | Callable[[Interval], Interval] | None = None,
    node: Node | None = None,
    targets: Targets = NOWHERE,
) -> Operation:
    """A function along an axis, the last one by default."""
    keywords, side = (("dim", "keepdim", "over"), "over") if rule == "reduce" else (("dim", "over"), "along")
    summary = f"{SAID_ALONG.get(name, name)} {side} the last axis"
    function = BuiltinFunction(
        name, 1, 2, rule, summary, keywords, not free, ("x", "dim"), aliases, words(traits), 0, None, neutral,
    )  # fmt: skip
    return Operation(name=name, function=function, interval=interval, node=node, targets=targets)


def builtin(
    name: str,
    arity: tuple[int, int | None],
    rule: str,
    summary: str,
    parameters: str,
    *,
    keywords: tuple[str, ...] = (),
    free: bool = False,
    aliases: tuple[str, ...] = (),
    traits: str = "",
    rank: int = 0,
    interval: Interval | Callable[[Interval], Interval] | None = None,
    interval_of_two: Callable[[Interval, Interval], Interval] | None = None,
    node: Node | None = None,
    targets: Targets = NOWHERE,
) -> Operation:
    """Any other function of programs: its fewest and most arguments, and what they are called."""
    function = BuiltinFunction(
        name, *arity, rule, summary, keywords, not free, tuple(parameters.split()), aliases, words(traits), rank,
    )  # fmt: skip
    return Operation(
        name=name, function=function, interval=interval, interval_of_two=interval_of_two, node=node, targets=targets,
    )  # fmt: skip


def unary(
    loop: str = "",
    *,
    name: str = "",
    torch: str = "",
    numpy: str = "",
    slope: Slope | None = None,
    divisor: Slope | None = None,
    vector: str = ONE_BY_ONE,
    traits: str = "",
) -> Node:
    """A real function of one number."""
    return Node(
        group="unary", name=name, torch=tuple(torch.split()), numpy=numpy, slope=slope, divisor=divisor, loop=loop,
        vector=vector, traits=words(traits),
    )  # fmt: skip


def between(
    group: Group,
    loop: str,
    *,
    name: str = "",
    torch: str = "",
    numpy: str = "",
    vector: str = ITSELF,
    neutral: tuple[float | None, float | None] = (None, None),
    traits: str = "",
) -> Node:
    """A function of two numbers; its derivative is a rule of `arrays.derivatives`."""
    marked = "cheap, flat" if group in ("comparison", "logical") else ""
    return Node(
        group=group, name=name, torch=tuple(torch.split()), numpy=numpy, loop=loop, vector=vector, neutral=neutral,
        traits=words(traits, marked=marked),
    )  # fmt: skip
