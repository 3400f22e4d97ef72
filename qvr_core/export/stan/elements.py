"""One element of a value as an expression of Stan: the nodes of the typed model, one by one.

What an expression cannot hold (a sum over an axis) is computed in front of it: `before` are those lines.
"""

from __future__ import annotations

import math
import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager

from qvr_core.export.names import Names
from qvr_core.export.reading import Reading
from qvr_core.export.stan.places import (
    ALL,
    AND,
    EQUAL,
    LESS,
    OR,
    POWER,
    PRODUCT,
    SUM,
    TERNARY,
    UNARY,
    Place,
    Text,
    shifted,
)
from qvr_core.export.stan.shapes import Shapes
from qvr_core.export.stan.stan_names import identifier
from qvr_core.export.stan.tables import ALONG, BASES, FUNCTIONS, HELPERS, REDUCED
from qvr_core.semantics.language.builtins import canonical
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
from qvr_core.semantics.types.walk import until_arrows, walk

Places = tuple[Place, ...]
INFIX = {
    "add": ("+", SUM), "sub": ("-", SUM), "mul": ("*", PRODUCT), "div": ("/", PRODUCT),
    "lt": ("<", LESS), "le": ("<=", LESS), "gt": (">", LESS), "ge": (">=", LESS), "eq": ("==", EQUAL),
    "ne": ("!=", EQUAL), "logical_and": ("&&", AND), "logical_or": ("||", OR),
}  # fmt: skip
_ROW = re.compile(r"(\w+)\[((?:[^\[\]]|\[[^\[\]]*\])*, )?\0\]")


class Elements:
    """Prints elements.  `columns` are the names whose last axis is a vector of its own, not a row of a matrix."""

    def __init__(self, reading: Reading, names: Names) -> None:
        self.reading = reading
        self.names = names
        self.shapes = Shapes(reading, names)
        self.columns: set[str] = set()
        self.called: dict[str, str] = {}
        """Names that are read under another one: data whose missing cells are filled in."""
        self.used: set[str] = set()
        self.before: list[str] = []
        self._active: set[str] = set()
        self._local: set[str] = set()

    # ------------------------------------------------------------ names within a statement

    def local(self, wanted: str) -> str:
        """A name that nothing around has."""
        wanted = re.sub(r"\W", "", wanted).strip("_") or "i"
        name = wanted
        while self.names.is_taken(name) or name in self._active or name in self._local:
            name += "_"
        self._local.add(name)
        return name

    @contextmanager
    def running(self, wanted: str, *, own: bool = False) -> Generator[str]:
        """The variable of a loop; `own` where that name of the program is nothing else."""
        written = re.sub(r"\W", "", wanted.rpartition("#")[2])
        name = identifier(written) or "i"
        letters = iter("ijklnopqrstuvw")
        while (not own or name != written) and (
            self.names.is_taken(name) or name in self._active or name in self._local
        ):
            name = next(letters, f"{name}_")
        self._active.add(name)
        yield name
        self._active.discard(name)

    @contextmanager
    def apart(self) -> Generator[list[str]]:
        """Collects what stands in front of the expressions printed here."""
        outer, self.before = self.before, []
        yield self.before
        self.before = outer

    def statement_over(self) -> None:
        """Local names may be had again."""
        self._local.clear()

    # ------------------------------------------------------------ elements

    def text(self, expr: Expr, at: Places = ()) -> str:
        """An element of a value."""
        return self.of(expr, at).text

    def of(self, expr: Expr, at: Places) -> Text:
        """An element of a value; `at` are its places, of which the last belong to the value's axes."""
        at = at[len(at) - len(self.shapes.of(expr)) :]
        if self.shapes.is_code(expr) and ALL not in at:
            return self.code(expr, at).moved(-1).printed
        match expr:
            case Constant(value=value):
                if isinstance(value, str):
                    raise self.shapes.refused(expr, "a text")
                return number(value)
            case Bound(name=name) | Data(name=name):
                return self._named(expr, name, at)
            case Builtin():
                return self._builtin(expr, at)
            case Index(base=base, indices=indices):
                lead = len(at) - (len(self.shapes.of(base)) - len(indices))
                return self.of(base, (*(self.code(one, at[:lead]) for one in indices), *at[lead:]))
            case Window(base=base, axis=axis):
                places = list(at)
                places[axis] = shifted(places[axis], expr.first - expr.shift, expr.again)
                return self.of(base, tuple(places))
            case Arrange(base=base):
                return self.of(base, self._arranged(expr, at))
            case Contract():
                return self._contract(expr, at)
            case Scatter():
                return self._scatter(expr, at)
            case ListOf(items=items):
                return self._item(expr, items, at)
            case FactorTable(cases=cases):
                return self._item(expr, [value for _, value in sorted(cases, key=lambda case: case[0])], at)
            case Apply():
                return self._apply(expr, at)
            case _:
                raise self.shapes.refused(expr, "this expression")

    def code(self, expr: Expr, at: Places) -> Place:
        """An element of a set as a place, from 1."""
        at = at[len(at) - len(self.shapes.of(expr)) :]
        match expr:
            case Constant(value=int() as value):
                return Place(str(value + 1))
            case IndexValue(first=first):
                return at[-1].moved(first)
            case Bound(name=name) | Data(name=name) if name in self.shapes.codes:
                return Place(self._named(expr, name, at).text)
            case Bound(name=name) if name in self.shapes.inline:
                return self.code(self.shapes.inline[name], at)
            case Arrange(base=base):
                return self.code(base, self._arranged(expr, at))
            case Window(base=base, axis=axis):
                places = list(at)
                places[axis] = shifted(places[axis], expr.first - expr.shift, expr.again)
                return self.code(base, tuple(places))
            case Index(base=base, indices=indices):
                lead = len(at) - (len(self.shapes.of(base)) - len(indices))
                return self.code(base, (*(self.code(one, at[:lead]) for one in indices), *at[lead:]))
            case Builtin(function=function, args=(left, right)) if canonical(function) in ("add", "sub"):
                minus = canonical(function) == "sub"
                if isinstance(right, Constant) and isinstance(right.value, int):
                    return self.code(left, at).moved(-right.value if minus else right.value)
                one, other = self.code(left, at), self.code(right, at)
                sign = "-" if minus else "+"
                behind = f"({other.text})" if minus and re.search(r" [-+] ", other.text) else other.text
                shift = one.shift - other.shift + 1 if minus else one.shift + other.shift - 1
                return Place(f"{one.text} {sign} {behind}", shift)
            case _:
                if not self.shapes.is_whole(expr):
                    raise self.shapes.refused(expr, "an index that is no whole number")
                return Place(self.of(expr, at).at(SUM), 1)

    def _arranged(self, expr: Arrange, at: Places) -> Places:
        places: dict[int, Place] = {axis: place for axis, place in zip(expr.axes, at, strict=True) if axis is not None}
        return tuple(places[axis] for axis in sorted(places))

    def _named(self, expr: ExprBase, name: str, at: Places) -> Text:
        if name in self.shapes.inline:
            return self.of(self.shapes.inline[name], at)
        if name in self.shapes.known:
            own = self.called.get(name, self.names[name])
            return Text(f"{own}[{', '.join(map(str, at))}]" if at else own)
        size = self.shapes.declared_size(name)
        if size is None:
            raise self.shapes.refused(expr, f"`{name}`")
        return Text(size)

    def _item(self, expr: ExprBase, items: Sequence[Expr], at: Places) -> Text:
        if at[:1] == (ALL,):
            raise self.shapes.refused(expr, "a table in this place")
        if at[0].text.isdigit():
            return self.of(items[int(str(at[0])) - 1], at[1:])
        made = ", ".join(self.of(item, at[1:]).text for item in items)
        return Text(f"[{made}][{at[0]}]")

    # ------------------------------------------------------------ functions

    def _builtin(self, expr: Builtin, at: Places) -> Text:
        function, args = canonical(expr.function), expr.args
        if (other := self.shapes.spelled(expr)) is not None:
            return self.of(other, at)
        if function in REDUCED:
            return self._reduced(expr, function, at)
        if function in ALONG:
            return self._along(expr, function, at)
        if function in BASES:
            return self._basis(expr, function, at)
        if expr.keywords:
            raise self.shapes.refused(expr, f"`{expr.function}` with options")
        if function in ("zeros", "ones"):
            return Text("0.0" if function == "zeros" else "1.0")
        if function == "size":
            return Text(self.shapes.stated(args[0]))
        if ALL in at:
            raise self.shapes.refused(expr, "a whole row of this")
        if function in INFIX and len(args) == 2:
            return self._infix(expr, function, at)
        if function == "eye":
            return Text(f"{at[0]} == {at[1]} ? 1.0 : 0.0", TERNARY)
        if function in ("diag", "diag_embed") and len(self.shapes.of(args[0])) == 1:
            return Text(f"{at[0]} == {at[1]} ? {self.of(args[0], at[:1]).at(OR)} : 0.0", TERNARY)
        if function == "outer" and len(at) == 2:
            left, right = self.of(args[0], at[:1]), self.of(args[1], at[1:])
            return Text(f"{left.at(PRODUCT)} * {right.at(PRODUCT + 1)}", PRODUCT)
        if function == "clamp" and len(args) == 3:
            whole = all(map(self.shapes.is_whole, args))
            low, high = ("max", "min") if whole else ("fmax", "fmin")
            x, least, most = (self.of(arg, at).text for arg in args)
            return Text(f"{high}({low}({x}, {least}), {most})")
        if function == "neg":
            return Text(f"-{self.of(args[0], at).at(UNARY)}", UNARY)
        if function == "logical_not":
            return Text(f"!{self.of(args[0], at).at(UNARY)}", UNARY)
        if function == "pow":
            base, power = self.of(args[0], at), self.of(args[1], at)
            return Text(f"{base.at(POWER + 1)}^{power.at(POWER + 1)}", POWER)
        if function == "where":
            condition, then, other = (self.of(arg, at) for arg in args)
            if not self.shapes.is_whole(args[0]):
                condition = Text(f"{condition.at(EQUAL)} != 0", EQUAL)
            return Text(f"{condition.at(OR)} ? {then.at(OR)} : {other.at(OR)}", TERNARY)
        template = FUNCTIONS.get(function)
        if template is None:
            raise self.shapes.refused(expr, f"`{expr.function}`")
        self.used |= {function} & HELPERS.keys()
        return Text(template.format(*(self.of(arg, at).text for arg in args)))

    def _infix(self, expr: Builtin, function: str, at: Places) -> Text:
        sign, level = INFIX[function]
        left, right = expr.args
        codes = [self.shapes.is_code(arg) for arg in expr.args]
        compared = level in (LESS, EQUAL) or function == "sub"
        if compared and any(codes) and all(self.shapes.is_whole(arg) for arg in expr.args) and (
            all(codes) or level in (LESS, EQUAL)
        ):  # fmt: skip
            one, other = self.code(left, at).printed, self.code(right, at).printed
        else:
            one, other = self.of(left, at), self.of(right, at)
            if function == "div" and self.shapes.is_whole(left) and self.shapes.is_whole(right):
                one = Text(f"1.0 * {one.at(PRODUCT)}", PRODUCT)
            if function == "mul" and all(map(self.shapes.is_whole, expr.args)) and not self.shapes.is_whole(expr):
                one = Text(f"1.0 * {one.at(PRODUCT)}", PRODUCT)  # whole numbers of Stan end at 2^31
        return Text(f"{one.at(level)} {sign} {other.at(level + 1)}", level)

    def _reduced(self, expr: Builtin, function: str, at: Places) -> Text:
        value = expr.args[0]
        axis, size = self.shapes.axis(expr), self.shapes.of(value)
        return Text(REDUCED[function].format(self.row(value, (*at[:axis], ALL, *at[axis:]), size[axis])))

    def _along(self, expr: Builtin, function: str, at: Places) -> Text:
        value = expr.args[0]
        axis, size = self.shapes.axis(expr), self.shapes.of(value)
        made = ALONG[function].format(self.row(value, (*at[:axis], ALL, *at[axis + 1 :]), size[axis]))
        return Text(made if at[axis] == ALL else f"{made}[{at[axis]}]")

    def _basis(self, expr: Builtin, function: str, at: Places) -> Text:
        """A function of a basis at a number."""
        if ALL in at:
            raise self.shapes.refused(expr, "a whole row of this")
        value = expr.args[0]
        options = {name: self.text(one) for name, one in expr.keywords}
        self.used |= {function, *(("hsgp_frequencies",) if function == "hsgp" else ())}
        x = "" if function == "hsgp_frequencies" else f"{self.text(value, at[:-1])}, "
        place = at[-1]
        if function == "bspline":
            knots = self.row(expr.args[1], (ALL,), *self.shapes.of(expr.args[1]))
            return Text(f"bspline({x}{place}, {knots}, {options['degree']})")
        sizes = self.shapes.of(value)
        if len(sizes) != 1:
            raise self.shapes.refused(expr, "the range of a value with several axes")
        row = self.row(value, (ALL,), sizes[0])
        return Text(f"{function}({x}{place}, min({row}), max({row}), {options['c']})")

    # ------------------------------------------------------------ rows and sums

    def row(self, expr: Expr, at: Places, size: str, *, upright: bool = True) -> str:
        """The elements along the axis whose place is `ALL`, as a vector; where not `upright`, maybe as a row."""
        own = at[len(at) - len(self.shapes.of(expr)) :]
        if ALL not in own:
            return f"rep_vector({self.text(expr, own)}, {size})"
        match expr:
            case ListOf(items=items) if own == (ALL,):
                made = ", ".join(self.text(item) for item in items)
                return f"[{made}]'"
            case Builtin(function="zeros" | "ones" as function):
                return f"rep_vector({'0' if function == 'zeros' else '1'}, {size})"
            case _:
                plain = self._plain_row(expr, own, upright=upright)
                return plain if plain is not None else self._gathered(expr, own, size)

    def _plain_row(self, expr: Expr, at: Places, *, upright: bool) -> str | None:
        base = expr
        while isinstance(base, Window | Index | Arrange):
            base = base.base
        name = getattr(base, "name", "")
        if not isinstance(base, Bound | Data) or name not in self.shapes.known or name in self.shapes.whole:
            return None
        found = _ROW.fullmatch(self.of(expr, at).text)
        if found is None:
            return None
        own, places = found[1], (found[2] or "").removesuffix(", ")
        if not places:
            return own
        turned = "'" if upright and name not in self.columns else ""
        return f"{own}[{places}]{turned}"

    def _gathered(self, expr: Expr, at: Places, size: str) -> str:
        """A vector of its own, filled in front of the statement."""
        name = self.local("row")
        with self.running("k") as k:
            places = tuple(Place(k, one.shift) if one.text == ALL.text else one for one in at)
            with self.apart() as lines:
                value = self.text(expr, places)
        self.before += [f"vector[{size}] {name};", f"for ({k} in 1:{size}) {{"]
        self.before += [f"  {line}" for line in (*lines, f"{name}[{k}] = {value};")] + ["}"]
        return name

    def _contract(self, expr: Contract, at: Places) -> Text:
        sizes = self.shapes.contracted(expr.factors, expr.axes)
        summed = [axis for axis in sizes if axis not in expr.result]
        given = dict(zip(expr.result, at, strict=True))
        if len(summed) == 1:
            rows = self._rows(expr, given, summed[0])
            if rows is not None:
                return rows
        total = self.local("total")
        return Text(self._total(total, summed, sizes, given, expr))

    def _rows(self, expr: Contract, given: dict[str, Place], axis: str) -> Text | None:
        """A product of two rows, or the sum of one."""
        texts: list[str] = []
        scalars: list[str] = []
        for factor, axes in zip(expr.factors, expr.axes, strict=True):
            places = tuple(ALL if one == axis else given[one] for one in axes)
            if ALL not in places:
                scalars.append(self.of(factor, places).at(PRODUCT))
                continue
            row = self._plain_row(factor, places, upright=False)
            if row is None:
                return None
            texts.append(row)
        if not 1 <= len(texts) <= 2:
            return None
        made = f"sum({texts[0]})" if len(texts) == 1 else f"dot_product({texts[0]}, {texts[1]})"
        return Text(" * ".join([*scalars, made]), PRODUCT if scalars else 9)

    def _total(
        self, total: str, summed: Sequence[str], sizes: Mapping[str, str], given: dict[str, Place], expr: Contract
    ) -> str:
        lines: list[str] = []
        indent = ""
        opened: list[object] = []
        for axis in summed:
            loop = self.running(axis)
            name = loop.__enter__()
            opened.append(loop)
            given = {**given, axis: Place(name)}
            lines.append(f"{indent}for ({name} in 1:{sizes[axis]}) {{")
            indent += "  "
        with self.apart() as inner:
            factors = [
                self.of(factor, tuple(given[one] for one in axes)).at(PRODUCT if at == 0 else PRODUCT + 1)
                for at, (factor, axes) in enumerate(zip(expr.factors, expr.axes, strict=True))
            ]
        lines += [indent + line for line in (*inner, f"{total} += {' * '.join(factors)};")]
        for loop in reversed(opened):
            indent = indent[2:]
            lines.append(f"{indent}}}")
            loop.__exit__(None, None, None)  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
        self.before += [f"real {total} = 0;", *lines]
        return total

    def _scatter(self, expr: Scatter, at: Places) -> Text:
        total = self.local("total")
        (size,) = self.shapes.of(expr.index)
        with self.running(next(iter(_indices(expr.body)), "i")) as i:
            with self.apart() as inner:
                where = self.code(expr.index, (Place(i),)).printed.at(EQUAL + 1)
                value = self.text(expr.body, (*at[:-1], Place(i)))
            self.before += [
                f"real {total} = 0;",
                f"for ({i} in 1:{size}) {{",
                f"  if ({where} == {at[-1].printed.at(EQUAL + 1)}) {{",
                *(f"    {line}" for line in (*inner, f"{total} += {value};")),
                "  }",
                "}",
            ]
        return Text(total)

    def _apply(self, expr: Apply, at: Places) -> Text:
        """A `linear` arrow: the weights, the bias in their last column."""
        arrow, out = self.shapes.linear(expr)
        (arg,) = expr.args
        weights = self.names[arrow.name]
        lead = len(arg.type.indexed)
        row, places = (at[-1] if out else Place("1")), at[:lead]
        sizes = self.shapes.of(arg)
        if len(sizes) == lead:  # numbers are vectors of one
            product = Text(f"{weights}[{row}, 1] * {self.of(arg, places).at(PRODUCT + 1)}", PRODUCT)
        else:
            value = self.row(arg, (*places, ALL), sizes[-1], upright=False)
            columns = f"1:{sizes[-1]}" if arrow.bias else ""
            product = Text(f"dot_product({weights}[{row}, {columns}], {value})")
        if not arrow.bias:
            return product
        count = getattr(arrow.domain.space, "shape", (0,))[0]
        return Text(f"{product.text} + {weights}[{row}, {count + 1}]", SUM)

    def helped(self, name: str, arguments: str) -> str:
        """A call of a function that the file has of its own."""
        self.used |= {"log_normalised", "log_clamped"} if name == "log_normalised" else {name}
        return f"{name}({arguments})"


def number(value: float) -> Text:
    """A number."""
    if isinstance(value, float) and not math.isfinite(value):
        return Text("not_a_number()" if math.isnan(value) else f"{'negative' if value < 0 else 'positive'}_infinity()")
    text = repr(value)
    return Text(text, UNARY if text.startswith("-") else 9)


def _indices(expr: Expr) -> Iterator[str]:
    for node in walk(expr, until_arrows):
        if isinstance(node, Window):
            yield node.index
