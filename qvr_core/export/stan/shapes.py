"""How large the values of a program are, as texts of Stan, and which are whole numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from qvr_core.export.names import Names
from qvr_core.export.reading import Reading, set_of, size_called
from qvr_core.export.refusals import Refused
from qvr_core.export.stan.spelled import PRODUCTS, spelled
from qvr_core.export.stan.tables import BASES, REDUCED
from qvr_core.semantics.language.builtins import COMPARISONS, canonical
from qvr_core.semantics.types.model.arrows import LinearMap, Ref
from qvr_core.semantics.types.model.expressions import (
    Apply,
    Arrange,
    Bound,
    Builtin,
    Constant,
    Contract,
    Data,
    Expr,
    ExprBase,
    FactorTable,
    Index,
    IndexValue,
    ListOf,
    Scatter,
    Window,
)
from qvr_core.semantics.types.spaces import Dim, Real

Sizes = tuple[str, ...]


class Shapes:
    """`known` are the sizes of what is declared, `whole` the names of whole numbers, `codes` those of codes."""

    def __init__(self, reading: Reading, names: Names) -> None:
        self.reading = reading
        self.names = names
        self.sizes = {name: names.fresh(size_called(name)) for name in reading.open_sets}
        self.known: dict[str, Sizes] = {item.name: self.texts(item.sizes) for item in reading.data}
        self.whole = {item.name for item in reading.data if item.whole}
        self.codes = {item.name for item in reading.data if item.kind == "index"}
        self.inline: dict[str, Expr] = {}
        """Lets that stand for their values: those of a block that is summed out."""

    def size(self, dim: Dim) -> str:
        """A size: a number, or the name of an open set's."""
        name = set_of(dim)
        return str(int(dim)) if name is None and isinstance(dim, int) else self.sizes[name or ""]

    def texts(self, dims: Sequence[Dim]) -> Sizes:
        """Sizes as texts."""
        return tuple(map(self.size, dims))

    def declared_size(self, name: str) -> str | None:
        """The size of a set that an expression names; None where the name is that of data, which come first."""
        if name in self.known:
            return None
        if name in self.sizes:
            return self.sizes[name]
        found = self.reading.snapshot.model.objects.get(name)
        return None if found is None else self.size(getattr(found.space.space, "size", 0))

    # ------------------------------------------------------------ sizes of expressions

    def of(self, expr: Expr) -> Sizes:
        """The sizes of a value; an axis that is only there to broadcast has '1'."""
        match expr:
            case Constant():
                return ()
            case Bound(name=name) | Data(name=name):
                if name in self.inline:
                    return self.of(self.inline[name])
                return self.known.get(name, ())
            case Builtin():
                return self._builtin(expr)
            case Index(base=base, indices=indices):
                return (*broadcast([self.of(one) for one in indices]), *self.of(base)[len(indices) :])
            case IndexValue(first=first, size=size):
                return (less(self.size(size), first),)
            case Window(base=base, axis=axis, first=first, size=size):
                sizes = list(self.of(base))
                sizes[axis] = less(self.size(size), first)
                return tuple(sizes)
            case Contract(factors=factors, axes=axes, result=result):
                lengths = self.contracted(factors, axes)
                return tuple(lengths[axis] for axis in result)
            case Scatter(body=body, size=size):
                return (*self.of(body)[:-1], self.size(size))
            case Arrange(base=base, axes=axes):
                sizes = self.of(base)
                return tuple("1" if axis is None else sizes[axis] for axis in axes)
            case ListOf(items=items):
                return (str(len(items)), *broadcast([self.of(item) for item in items]))
            case FactorTable(cases=cases, body=None) if cases:
                return (str(len(cases)), *broadcast([self.of(value) for _, value in cases]))
            case Apply(args=(arg,)):
                _, out = self.linear(expr)
                lead = len(arg.type.indexed)
                return (*self.of(arg)[:lead], *out)
            case _:
                raise self.refused(expr, "this expression")

    def refused(self, expr: ExprBase, what: str) -> Refused:
        """What Stan cannot say, at the expression."""
        return Refused(expr.origin, f"{what} cannot be said in Stan")

    def contracted(self, factors: Sequence[Expr], axes: Sequence[Sequence[str]]) -> Mapping[str, str]:
        """How long each axis of a product is."""
        found: dict[str, str] = {}
        for factor, own in zip(factors, axes, strict=True):
            for axis, size in zip(own, self.of(factor), strict=True):
                if found.get(axis, "1") == "1":
                    found[axis] = size
        return found

    def linear(self, expr: Apply) -> tuple[LinearMap, Sizes]:
        """A `linear` arrow whose weights are a site, and the sizes of what it gives."""
        arrow = expr.arrow
        if isinstance(arrow, Ref):
            arrow = self.reading.snapshot.model.arrows.get(arrow.name)
        if not isinstance(arrow, LinearMap) or arrow.rank is not None or arrow.prior is None or len(expr.args) != 1:
            raise self.refused(expr, "a call of this arrow")
        space = arrow.codomain.space
        if not isinstance(space, Real) or len(space.shape) != 1:
            raise self.refused(expr, "a call of this arrow")
        return arrow, () if space.shape == (1,) else self.texts(space.shape)

    def _builtin(self, expr: Builtin) -> Sizes:
        function = canonical(expr.function)
        if (other := self.spelled(expr)) is not None:
            return self.of(other)
        if function == "eye":
            return (self.stated(expr.args[0]), self.stated(expr.args[-1]))
        if function == "outer":
            return tuple(self.of(arg)[-1] for arg in expr.args)
        if function in ("diag", "diag_embed") and len(sizes := self.of(expr.args[0])) == 1:
            return (*sizes, *sizes)
        if function in ("zeros", "ones"):
            return tuple(self.stated(arg) for arg in expr.args)
        if function in REDUCED:
            sizes = list(self.of(expr.args[0]))
            del sizes[self.axis(expr)]
            return tuple(sizes)
        if function == "size":
            return ()
        if function in BASES:
            axes = () if function == "hsgp_frequencies" else self.of(expr.args[0])
            return (*axes, columns(expr))
        return broadcast([self.of(arg) for arg in expr.args])

    def spelled(self, expr: Builtin) -> Expr | None:
        """A function of whole values as the nodes that say its elements; None of any other."""
        if canonical(expr.function) not in (*PRODUCTS, "transpose", "concat"):
            return None
        return spelled(expr, [len(self.of(arg)) for arg in expr.args])

    def stated(self, expr: Expr) -> str:
        """A size that an expression states: a number or a set."""
        match expr:
            case Constant(value=int() as value):
                return str(value)
            case Data(name=name) if (size := self.declared_size(name)) is not None:
                return size
            case _:
                raise self.refused(expr, "this size")

    def axis(self, expr: Builtin) -> int:
        """The axis of a reduction, from the first."""
        rank = len(self.of(expr.args[0]))
        axis = expr.args[1] if len(expr.args) > 1 else None
        for key, value in expr.keywords:
            if key == "dim":
                axis = value
            elif key == "over":
                return self._over(expr, value)
            else:
                raise self.refused(expr, f"`{key}=`")
        if axis is None:
            axis_number: object = -1
        elif isinstance(axis, Builtin) and axis.function == "neg" and isinstance(axis.args[0], Constant):
            axis_number = -int(axis.args[0].value)
        else:
            axis_number = getattr(axis, "value", None)
        if not isinstance(axis_number, int) or not -rank <= axis_number < rank:
            raise self.refused(expr, f"`{expr.function}` over this axis")
        return axis_number % rank

    def _over(self, expr: Builtin, over: Expr) -> int:
        items = over.items if isinstance(over, ListOf) else (over,)
        wanted = getattr(items[0], "name", getattr(items[0], "value", None))
        plates = expr.args[0].type.indexed
        if len(items) != 1 or wanted not in plates:
            raise self.refused(expr, "`over=` of this value")
        return plates.index(wanted)

    # ------------------------------------------------------------ whole numbers

    def is_whole(self, expr: Expr) -> bool:
        """Whether a value is a whole number of Stan."""
        match expr:
            case Constant(value=value):
                return isinstance(value, int)
            case Bound(name=name) | Data(name=name):
                if name in self.inline:
                    return self.is_whole(self.inline[name])
                return name in self.whole or name not in self.known
            case IndexValue():
                return True
            case Window(base=base) | Arrange(base=base) | Index(base=base):
                return self.is_whole(base)
            case Builtin(function=function, args=args):
                name = canonical(function)
                if name in COMPARISONS or name.startswith("logical_") or name == "size":
                    return True
                if name == "where":
                    return all(self.is_whole(arg) for arg in args[1:])
                if name == "mul" and not any(map(self.is_truth, args)):
                    return False
                return name in ("add", "sub", "mul", "neg", "clamp") and all(self.is_whole(arg) for arg in args)
            case _:
                return False

    def is_truth(self, expr: Expr) -> bool:
        """Whether a value is 0 or 1."""
        while isinstance(expr, Arrange | Window):
            expr = expr.base
        return isinstance(expr, Builtin) and (
            canonical(expr.function) in COMPARISONS or canonical(expr.function).startswith("logical_")
        )

    def is_code(self, expr: Expr) -> bool:
        """Whether a value is an element of a set, which counts from 1 in Stan and from 0 in the program."""
        match expr:
            case Bound(name=name) | Data(name=name):
                return name in self.codes or (name in self.inline and self.is_code(self.inline[name]))
            case IndexValue():
                return True
            case Window(base=base) | Arrange(base=base) | Index(base=base):
                return self.is_code(base)
            case Builtin(function=function, args=(left, right)) if canonical(function) in ("add", "sub"):
                return self.is_code(left) and self.is_whole(right) and not self.is_code(right)
            case _:
                return False


def columns(expr: Builtin) -> str:
    """How many functions a basis has."""
    options = {name: getattr(value, "value", 0) for name, value in expr.keywords}
    if expr.function != "bspline":
        return str(options["m"])
    return str(len(getattr(expr.args[1], "items", ())) + options["degree"] - 1)


def broadcast(all_: Sequence[Sizes]) -> Sizes:
    """The sizes of values together, aligned at their last axes."""
    rank = max(map(len, all_), default=0)
    found = ["1"] * rank
    for sizes in all_:
        for at, size in enumerate(reversed(sizes), 1):
            if found[-at] == "1":
                found[-at] = size
    return tuple(found)


def less(size: str, by: int) -> str:
    """A size without so many elements."""
    if not by:
        return size
    return str(int(size) - by) if size.isdigit() else f"{size} - {by}"
