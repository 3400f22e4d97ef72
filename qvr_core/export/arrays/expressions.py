"""Arithmetic in an array target: the nodes of the typed model, one by one, in the target's functions."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence

from qvr_core.export.arrays.dialect import ARITHMETIC, BASES, INFIX, REDUCTIONS, Dialect
from qvr_core.export.arrays.equations import solution
from qvr_core.export.arrays.products import letter, matrix_product
from qvr_core.export.names import Names
from qvr_core.export.reading import Reading, draws_whole, set_of, size_called
from qvr_core.export.refusals import Refused
from qvr_core.lowered.axes import space_dims
from qvr_core.semantics.arithmetic.broadcasting import axes as axes_of
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
    Solve,
    Window,
)
from qvr_core.semantics.types.model.families import FamilyDraw
from qvr_core.semantics.types.model.steps import LetModel, SampleModel
from qvr_core.semantics.types.spaces import Dim, Space
from qvr_core.semantics.types.walk import sites, until_arrows, walk

Earlier = Callable[[str, int], str]
"""How a recursion reads an element of a name, so many back."""


class Expressions:
    """Prints expressions.  Inside a recursion, `along` is its index, which is a number there, and `earlier` says how
    the names that it makes are read."""

    def __init__(self, reading: Reading, names: Names, dialect: Dialect) -> None:
        self.reading = reading
        self.names = names
        self.dialect = dialect
        self.sizes = {name: names.fresh(size_called(name)) for name in reading.open_sets}
        drawn = sites(reading.program.steps, SampleModel)
        self._real = {site.name for site in drawn if isinstance(site.draw, FamilyDraw) and not draws_whole(site)}
        self.plain = {
            step.names[0]
            for step in reading.program.steps
            if isinstance(step, LetModel) and step.indexed is None and isinstance(step.value, Constant)
        }
        self.used: set[str] = set()
        """The helpers that templates have called."""
        self._of_table: Mapping[str, str] = {}
        """The indices of a table that is printed here."""
        self.along: str | None = None
        self.earlier: Earlier | None = None
        self.growing: Mapping[str, str] = {}

    # ------------------------------------------------------------ sizes

    def size(self, dim: Dim) -> str:
        """A size: a number, or the name of an open set's."""
        name = set_of(dim)
        return str(int(dim)) if name is None and isinstance(dim, int) else self.sizes[name or ""]

    def shape(self, dims: tuple[Dim, ...]) -> str:
        """`(n_county, 2)`"""
        return f"({', '.join(map(self.size, dims))}{',' if len(dims) == 1 else ''})"

    def arange(self, first: int, size: str) -> str:
        """`first`, …, `size` − 1."""
        return self.dialect.arange.format(f"{first}, {size}" if first else size)

    # ------------------------------------------------------------ expressions

    def text(self, expr: Expr) -> str:
        """An expression; operators stand in brackets."""
        match expr:
            case Constant(value=value):
                if isinstance(value, str):
                    raise self.refused(expr, "a text")
                return f'float("{value}")' if isinstance(value, float) and not math.isfinite(value) else repr(value)
            case Bound(name=name) if name in self._of_table:
                return self._of_table[name]
            case Bound(name=name):
                return self.growing.get(name, self.names[name]) if name in self.names else name
            case Data(name=name):
                return self._data(expr, name)
            case Builtin():
                return self._builtin(expr)
            case Index():
                return self._index(expr)
            case IndexValue(name=name, first=first, size=size):
                if name == self.along:
                    return self.names[name]
                return self.arange(first, self.size(size))
            case Window():
                return self._window(expr)
            case Contract():
                return self._contract(expr)
            case Scatter(body=body, index=index, size=size):
                return self.template(self.dialect.scatter, self.text(body), self.text(index), self.size(size))
            case Arrange(base=base, axes=axes):
                return self.arranged(base, axes)
            case ListOf(items=items):
                return self._listed(items)
            case Apply():
                return self._apply(expr)
            case FactorTable(cases=cases, body=None) if cases:
                return self._listed([value for _, value in sorted(cases, key=lambda case: case[0])])
            case FactorTable(indices=indices, body=body) if body is not None and not axes_of(body.type):
                return self._table(indices, body)
            case Solve():
                return solution(self, expr)
            case _:
                raise self.refused(expr, "this expression")

    def _table(self, indices: Sequence[tuple[str, Space]], body: Expr) -> str:
        """A table of numbers: its body where each index runs along an axis of its own."""
        outer, sizes = self._of_table, [self.size(getattr(space, "size", 0)) for _, space in indices]
        places = {
            name: self.arange(0, size) + (f"[{', '.join([':', *['None'] * behind])}]" if behind else "")
            for (name, _), size, behind in zip(indices, sizes, reversed(range(len(indices))), strict=True)
        }
        self._of_table = {**outer, **places}
        text = self.text(body)
        self._of_table = outer
        read = {node.name for node in walk(body, until_arrows) if isinstance(node, Bound)}
        return " + ".join([f"({text}", *(f"0.0 * {place}" for name, place in places.items() if name not in read)]) + ")"

    def _listed(self, items: Sequence[Expr]) -> str:
        """An array of values: of numbers alone as it stands, else each of them an array first."""
        texts = list(map(self.text, items))
        if all(isinstance(item, Constant) for item in items):
            return self.dialect.constant.format(f"[{', '.join(texts)}]")
        each = (
            self.dialect.number.format(text) if isinstance(item, Constant) else text
            for item, text in zip(items, texts, strict=True)
        )
        listed = f"[{', '.join(each)}]"
        alike = len(ranks := set(map(_written_rank, items))) == 1 and None not in ranks
        return self.dialect.stack.format(listed if alike else self.dialect.broadcast.format(listed))

    def refused(self, expr: ExprBase, what: str) -> Refused:
        """What the target cannot say, at the expression."""
        return Refused(expr.origin, f"{what} cannot be said in {self.dialect.target}")

    def template(self, template: str, *arguments: str, **named: str) -> str:
        """A template filled in; the helpers that it calls come along."""
        self._use(template)
        return template.format(*arguments, **named)

    def _use(self, text: str) -> None:
        """The helpers that a text calls, and those that they call, are part of the file."""
        called = {name for name in self.dialect.helpers if re.search(rf"\b{name}\b", text)} - self.used
        self.used |= called
        for name in called:
            self._use(self.dialect.helpers[name])

    def _data(self, expr: Data, name: str) -> str:
        if name in self.names:
            return self.names[name]
        if name in self.sizes:
            return self.sizes[name]
        declared = self.reading.snapshot.model.objects.get(name)
        if declared is not None:
            return self.size(getattr(declared.space.space, "size", 0))
        raise self.refused(expr, f"`{name}`")

    def _builtin(self, expr: Builtin) -> str:
        function = canonical(expr.function)
        arguments = [self.text(arg) for arg in expr.args]
        if function in INFIX and function not in self.dialect.functions and len(arguments) == 2:
            if function in ARITHMETIC and (function != "mul" or all(map(is_truth, expr.args))):
                arguments = [self.number(arg, text) for arg, text in zip(expr.args, arguments, strict=True)]
            return f"({arguments[0]} {INFIX[function]} {arguments[1]})"
        if function == "neg":
            return f"(-{self.number(expr.args[0], arguments[0])})"
        if function == "where":
            if not is_truth(expr.args[0]):
                arguments[0] = self.compared("ne", arguments[0], "0")
            if is_constant(expr.args[0]):
                arguments[0] = self.compared("ne", self.dialect.number.format(f"1.0 * {arguments[0]}"), "0")
            return self.template(self.dialect.where, *arguments)
        template = self.dialect.functions.get(function)
        named = {key: self.text(value) for key, value in expr.keywords} if template and function in BASES else {}
        own = function in REDUCTIONS or (template is not None and ("{options}" in template or "{axis}" in template))
        if template is None or (expr.keywords and not named and not own):
            raise self.refused(expr, f"`{expr.function}`")
        if "{axis}" in template:
            return self._reduction(expr, template, arguments)
        if len(arguments) > _taken(template):
            raise self.refused(expr, f"`{expr.function}` of {len(arguments)} arguments")
        if function not in _OF_NUMBERS:
            arguments = [
                self.dialect.number.format(argument) if is_constant(arg) or self._is_plain(arg) else argument
                for arg, argument in zip(expr.args, arguments, strict=True)
            ]
        if named and len(arguments) > 1:
            knots = expr.args[1].items if isinstance(expr.args[1], ListOf) else ()
            arguments[1] = f"[{', '.join(map(self.text, knots))}]"
        rest, options = ", ".join(arguments[1:]), "".join(f", {key}={self.text(one)}" for key, one in expr.keywords)
        return self.template(template, *arguments, all=", ".join(arguments), rest=rest, options=options, **named)

    def _is_plain(self, expr: Expr) -> bool:
        """Whether a value is a let of a plain number, which is one in Python, too."""
        return isinstance(expr, Bound) and expr.name in self.plain

    @staticmethod
    def number(expr: Expr, text: str) -> str:
        """A value as a number: 0 or 1 where it is false or true, for two of these add up to a truth elsewhere."""
        return f"(1.0 * {text})" if is_truth(expr) else text

    def compared(self, function: str, left: str, right: str) -> str:
        """A comparison of two texts."""
        template = self.dialect.functions.get(function)
        return template.format(left, right) if template else f"({left} {INFIX[function]} {right})"

    def _reduction(self, expr: Builtin, template: str, arguments: list[str]) -> str:
        axis = "-1"
        for key, value in expr.keywords:
            if key == "dim":
                axis = self.text(value)
            elif key == "keepdim":
                raise self.refused(expr, f"`{key}=`")
        if len(arguments) > 1:
            axis = arguments[1]
        over = dict(expr.keywords).get("over")
        if over is not None:
            axis = self._axis_over(expr, over)
        return self.template(template, arguments[0], axis=axis)

    def _axis_over(self, expr: Builtin, over: Expr) -> str:
        items = over.items if isinstance(over, ListOf) else (over,)
        wanted = [getattr(item, "name", getattr(item, "value", None)) for item in items]
        plates = expr.args[0].type.indexed
        if not all(isinstance(name, str) and name in plates for name in wanted):
            raise self.refused(expr, "`over=` of this value")
        own = len(expr.args[0].type.sizes) - len(plates)
        found = [str(plates.index(name) - len(plates) + own) for name in wanted if isinstance(name, str)]
        return found[0] if len(found) == 1 else f"({', '.join(found)})"

    # ------------------------------------------------------------ indices

    def _index(self, expr: Index) -> str:
        for index in expr.indices:
            if isinstance(index, Bound) and index.name in self._real:
                raise self.refused(index, "an index that is no whole number")
        slices = self._slices(expr)
        base = self.text(expr.base)
        if slices is None:
            return f"{base}[{', '.join(self.text(index) for index in expr.indices)}]"
        return base if all(one == ":" for one in slices) else f"{base}[{', '.join(slices)}]"

    def _slices(self, expr: Index) -> list[str] | None:
        """The indices as slices and numbers, where each runs through its own axis of the result."""
        found: list[str] = []
        following = sum(not isinstance(index, Constant) for index in expr.indices)
        whole = _sizes(expr.base) or ()
        for at, index in enumerate(expr.indices):
            if isinstance(index, Constant):
                found.append(self.text(index))
                continue
            behind, following = 0, following - 1
            while isinstance(index, Arrange) and index.axes[:1] == (0,) and set(index.axes[1:]) <= {None}:
                behind += len(index.axes) - 1
                index = index.base
            if not isinstance(index, IndexValue) or behind != following or index.name == self.along:
                return None
            # a smaller set reads the first elements of a larger one
            end = "" if whole[at : at + 1] == (index.size,) else self.size(index.size)
            found.append(f"{index.first or ''}:{end}")
        return found

    def _window(self, expr: Window) -> str:
        first, shift = expr.first, expr.shift
        if expr.index == self.along:
            return self._element(expr)
        base = self.text(expr.base)
        low = first - shift
        sizes = _sizes(expr.base) or ()
        own = sizes[expr.axis] if len(sizes) >= -expr.axis else None
        part = own is not None and own != expr.size
        if low == 0 and shift == 0 and not part:
            return base
        known = rank(expr.base)
        if part and low >= 0:
            end = self.size(expr.size)
            end = str(int(end) - shift) if end.isdigit() else f"{end} - {shift}" if shift else end
            inner = f"{low or ''}:{end}"
            return f"{base}[{axis_slice(inner, expr.axis, known)}]"
        if low < 0:
            early = f"{base}[{axis_slice(f'{low + expr.again}:{expr.again}', expr.axis, known)}]"
            rest = f"{base}[{axis_slice(f':{-shift}', expr.axis, known)}]"
            return self.dialect.concatenate.format(early, rest, axis=expr.axis)
        inner = f"{low or ''}:{-shift if shift else ''}"
        return f"{base}[{axis_slice(inner, expr.axis, known)}]"

    def _element(self, expr: Window) -> str:
        """What the index of a recursion is on."""
        base = expr.base
        if isinstance(base, Bound) and base.name in self.growing and self.earlier is not None:
            return self.earlier(base.name, expr.shift)
        place = self.names[expr.index] + (f" - {expr.shift}" if expr.shift else "")
        if expr.first < expr.shift:
            place += f" + {expr.again} * ({self.names[expr.index]} < {expr.shift})"
        return f"{self.text(base)}[{axis_slice(place, expr.axis, rank(base))}]"

    def arranged(self, base: Expr, axes: tuple[int | None, ...]) -> str:
        """Axes in another order, new ones where there are none."""
        if self.along is not None:
            raise self.refused(base, "a recursion over elements that are tables themselves")
        moved = [at for at in axes if at is not None]
        text = self.text(base)
        if not moved and isinstance(base, Constant):
            return text
        if moved != sorted(moved):
            text = self.dialect.permute.format(text, ", ".join(map(str, moved)))
        if None not in axes:
            return text
        lead = 0
        while lead < len(axes) and axes[lead] is None:
            lead += 1
        kept = axes[lead:]
        if None not in kept:
            return text  # broadcasting adds axes in front
        return f"{text}[{', '.join(':' if at is not None else 'None' for at in kept)}]"

    def _contract(self, expr: Contract) -> str:
        factors = [self.number(factor, self.text(factor)) for factor in expr.factors]
        letters: dict[str, str] = {}
        for axis in (axis for axes in expr.axes for axis in axes):
            letters.setdefault(axis, letter(axis, set(letters.values())))
        matrices = [tuple(letters[axis] for axis in axes) for axes in expr.axes]
        result = tuple(letters[axis] for axis in expr.result)
        product = matrix_product(factors, matrices, result)
        if product is not None:
            return product
        rule = ",".join("".join(axes) for axes in matrices) + "->" + "".join(result)
        return self.template(self.dialect.einsum, f'"{rule}"', ", ".join(factors))

    def _apply(self, expr: Apply) -> str:
        """A `linear` arrow whose weights are a site: the weights, the bias in their last column."""
        arrow = expr.arrow
        if isinstance(arrow, Ref):
            arrow = self.reading.snapshot.model.arrows.get(arrow.name)
        plain = isinstance(arrow, LinearMap) and arrow.rank is None and arrow.prior is not None
        if not plain or len(expr.args) != 1 or not isinstance(arrow, LinearMap):
            raise self.refused(expr, "a call of this arrow")
        value, weights = self.text(expr.args[0]), self.names[arrow.name]
        if rank(expr.args[0]) == len(expr.args[0].type.indexed):
            value = f"{value}[..., None]"  # numbers are vectors of one
        made = f"({value} @ {weights}[:, :-1].T + {weights}[:, -1])" if arrow.bias else f"({value} @ {weights}.T)"
        return f"{made}[..., 0]" if getattr(arrow.codomain.space, "shape", ()) == (1,) else made


_OF_NUMBERS = ("zeros", "ones", "eye", "arange", "linspace")
"""Functions of plain numbers."""


def _taken(template: str) -> float:
    """How many arguments a template takes."""
    if "{all}" in template or "{rest}" in template:
        return math.inf
    return 1 + max((int(found) for found in re.findall(r"{(\d)}", template)), default=-1)


def rank(expr: Expr) -> int | None:
    """How many axes a value has, where its type says so."""
    kind = expr.type
    if kind.space is None:
        return None
    space = kind.space
    match type(space).__name__:
        case "Real":
            return len(kind.indexed) + (0 if getattr(space, "shape", ()) == (1,) else len(getattr(space, "shape", ())))
        case "Constrained":
            return len(kind.indexed) + (1 if getattr(space, "vector", True) else 2)
        case "Finite":
            return len(kind.indexed)
        case _:
            return None


def _sizes(expr: Expr) -> tuple[Dim | None, ...] | None:
    """How long the axes of a value are, where its type says so."""
    kind = expr.type
    if kind.space is None or len(kind.sizes) != len(kind.indexed):
        return None
    return (*kind.sizes, *space_dims(kind.space))


def _written_rank(expr: Expr) -> int | None:
    """How many axes the text of a value has, where that is known: new axes in front are left to broadcasting."""
    if not isinstance(expr, Arrange):
        return 0 if isinstance(expr, Constant) else rank(expr)
    lead = next((at for at, axis in enumerate(expr.axes) if axis is not None), len(expr.axes))
    return len(expr.axes) - lead


def is_constant(expr: Expr) -> bool:
    """Whether a value is the same whatever the data: a plain number of Python."""
    return all(isinstance(node, Constant | Builtin) for node in walk(expr, until_arrows))


def is_truth(expr: Expr) -> bool:
    """Whether a value is true or false: made by a comparison."""
    while isinstance(expr, Arrange | Window):
        expr = expr.base
    return isinstance(expr, Builtin) and (expr.function in COMPARISONS or expr.function.startswith("logical_"))


def axis_slice(part: str, axis: int, known: int | None) -> str:
    """`part` at an axis counted from the last."""
    behind = [":"] * (-axis - 1)
    if known == -axis:
        return part
    if known is not None and known > -axis:
        return ", ".join([*[":"] * (known + axis), part, *behind])
    return ", ".join(["...", part, *behind])
