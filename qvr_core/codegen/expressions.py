"""Expressions of the subset as instructions."""

from __future__ import annotations

import ast
import math
from collections.abc import Sequence
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any, Protocol

from qvr_core.codegen.definitions import Definition
from qvr_core.codegen.instructions import BUILTINS, INSTRUCTIONS
from qvr_core.codegen.kinds import (
    NOTHING,
    REAL,
    TRUTH,
    WHOLE,
    Array,
    Kind,
    Unsupported,
    Value,
    constant,
    literal,
    number,
    types_of,
    wider,
)
from qvr_core.codegen.lines import Lines

LIBM = frozenset((
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cos", "cosh", "exp", "expm1", "hypot", "log", "log10",
    "log1p", "pow", "sin", "sinh", "tan", "tanh",
))  # fmt: skip
"""Functions of the C library: those that all systems, and JavaScript, have."""
OWN_INSTRUCTION = frozenset(("sqrt", "floor", "ceil", "copysign", "fabs"))
LARGEST_POWER = 16
"""Whole exponents up to it are products."""


class Surroundings(Protocol):
    """What a function needs of the module around it."""

    def called(self, function: FunctionType, kinds: Sequence[Kind]) -> tuple[str, str]:
        """The name and the returned kind of a function for arguments of these kinds."""
        ...

    def table(self, numbers: tuple[float, ...]) -> tuple[str, str]:
        """The name of a constant array and its element."""
        ...


_ARITHMETIC: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("fadd", "add"), ast.Sub: ("fsub", "sub"), ast.Mult: ("fmul", "mul"),
}  # fmt: skip
_BITS: dict[type[ast.operator], str] = {
    ast.LShift: "shl", ast.RShift: "ashr", ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor",
}  # fmt: skip
_COMPARED: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Eq: ("oeq", "eq"), ast.NotEq: ("une", "ne"), ast.Lt: ("olt", "slt"), ast.LtE: ("ole", "sle"),
    ast.Gt: ("ogt", "sgt"), ast.GtE: ("oge", "sge"),
}  # fmt: skip


class Expressions(Lines):
    """A function whose names mean something: variables on the stack, and what stands outside it."""

    def __init__(self, around: Surroundings, wanted: Definition) -> None:
        super().__init__(wanted.flags)
        self.around, self.wanted = around, wanted
        self.variables: dict[str, Value] = {}
        """Where each lies on the stack."""
        self.place = False
        """Within the index of an array: what is computed there does not overflow."""

    def _values(self, node: ast.expr) -> list[Value]:
        match node:
            case ast.Tuple(parts):
                return [self._expression(part) for part in parts]
            case ast.Attribute(of, "shape"):
                return [Value(WHOLE, (extent,)) for extent in self._expression(of).parts[1:]]
            case _:
                return [self._expression(node)]

    def _expression(self, node: ast.expr) -> Value:
        match node:
            case ast.Constant(bool() | int() | float() as value):
                return constant(value)
            case ast.Name(name) if name in self.variables:
                held = self.variables[name]
                pairs = zip(types_of(held.kind), held.parts, strict=True)
                return Value(held.kind, tuple(self.made(f"load {one}, ptr {place}") for one, place in pairs))
            case ast.Name() | ast.Attribute(ast.Name()):
                found = self._meaning(node)
                if isinstance(found, bool | int | float):
                    return constant(found)
                raise self._unsupported(node)
            case ast.BinOp(left, operator, right):
                return self._binary(node, operator, self._expression(left), self._expression(right))
            case ast.UnaryOp(ast.USub(), of):
                return self._negative(self._expression(of))
            case ast.UnaryOp(ast.Not(), of):
                return Value(TRUTH, (self.made(f"xor i1 {self._truth(of)}, true"),))
            case ast.Compare():
                return self._compared(node)
            case ast.BoolOp(operator, parts):
                return self._joined(isinstance(operator, ast.And), parts)
            case ast.IfExp(test, yes, no):
                return self._either(test, yes, no)
            case ast.Subscript(ast.Attribute(of, "shape"), ast.Constant(int() as axis)):
                return Value(WHOLE, (self._expression(of).parts[1 + axis],))
            case ast.Subscript(of, index):
                return self._element(node, of, index)
            case ast.Call():
                return self._call(node)
            case _:
                raise self._unsupported(node)

    def _meaning(self, node: ast.expr) -> Any:
        """What a name, or a name of a module, stands for outside the function."""
        match node:
            case ast.Name(name):
                found = self.wanted.names.get(name, BUILTINS.get(name))
            case ast.Attribute(ast.Name(name), attribute) if isinstance(self.wanted.names.get(name), ModuleType):
                found = getattr(self.wanted.names[name], attribute, None)
            case _:
                found = None
        if found is None:
            raise self._unsupported(node)
        return found

    def _binary(self, node: ast.AST, operator: ast.operator, left: Value, right: Value) -> Value:
        if type(operator) in _BITS:
            found = self.made(f"{_BITS[type(operator)]} i64 {left.text}, {right.text}")
            return Value(WHOLE, (found,))
        if isinstance(operator, ast.Pow):
            return self._power(left, right)
        if isinstance(operator, ast.Div):
            left, right = self.real(left), self.real(right)
            return Value(REAL, (self.made(f"fdiv {self.flags}double {left.text}, {right.text}"),))
        if isinstance(operator, ast.Mod | ast.FloorDiv):
            if REAL in (left.kind, right.kind):
                raise self._unsupported(node)
            # C rounds towards zero
            rest = self.made(f"srem i64 {left.text}, {right.text}")
            moved = self.made(f"add i64 {rest}, {right.text}")
            rest = self.made(f"srem i64 {moved}, {right.text}")
            if isinstance(operator, ast.Mod):
                return Value(WHOLE, (rest,))
            whole = self.made(f"sub i64 {left.text}, {rest}")
            return Value(WHOLE, (self.made(f"sdiv i64 {whole}, {right.text}"),))
        if type(operator) not in _ARITHMETIC:
            raise self._unsupported(node)
        of_reals, of_wholes = _ARITHMETIC[type(operator)]
        kind = wider(number(left), number(right), WHOLE)
        left, right = self.converted(left, kind), self.converted(right, kind)
        if kind == WHOLE:
            bound = "nsw " if self.place else ""
            return Value(WHOLE, (self.made(f"{of_wholes} {bound}i64 {left.text}, {right.text}"),))
        return Value(REAL, (self.made(f"{of_reals} {self.flags}double {left.text}, {right.text}"),))

    def _power(self, base: Value, exponent: Value) -> Value:
        """A whole exponent that is known is products."""
        known = exponent.constant
        if known is None or known != int(known) or abs(known) > LARGEST_POWER:
            return self.foreign("pow", [base, exponent])
        factor, left = self.real(base), abs(int(known))
        total: Value | None = None
        while left:
            if left & 1:
                total = factor if total is None else self._product(total, factor)
            left >>= 1
            if left:
                factor = self._product(factor, factor)
        total = total or constant(1.0)
        if known < 0:
            return Value(REAL, (self.made(f"fdiv {self.flags}double 1.0, {total.text}"),))
        return total

    def _product(self, left: Value, right: Value) -> Value:
        return Value(REAL, (self.made(f"fmul {self.flags}double {left.text}, {right.text}"),))

    def _negative(self, value: Value) -> Value:
        if value.constant is not None:
            return constant(-value.constant)
        if number(value) != REAL:
            value = self.converted(value, WHOLE)
            return Value(WHOLE, (self.made(f"sub i64 0, {value.text}"),))
        return Value(REAL, (self.made(f"fneg {self.flags}double {value.text}"),))

    def _compared(self, node: ast.Compare) -> Value:
        values = [self._expression(part) for part in (node.left, *node.comparators)]
        found: str | None = None
        for operator, left, right in zip(node.ops, values, values[1:], strict=False):
            if type(operator) not in _COMPARED:
                raise self._unsupported(node)
            kind = wider(number(left), number(right))
            left, right = self.converted(left, kind), self.converted(right, kind)
            of_reals, of_wholes = _COMPARED[type(operator)]
            how = f"fcmp {of_reals} double" if kind == REAL else f"icmp {of_wholes} {kind}"
            here = self.made(f"{how} {left.text}, {right.text}")
            found = here if found is None else self.made(f"and i1 {found}, {here}")
        assert found is not None
        return Value(TRUTH, (found,))

    def _joined(self, all_of: bool, parts: list[ast.expr]) -> Value:
        """`and`, `or`: what follows is looked at only where it counts, if that is more than arithmetic."""
        if all(_plain(part) for part in parts[1:]):
            found = self._truth(parts[0])
            for part in parts[1:]:
                found = self.made(f"{'and' if all_of else 'or'} i1 {found}, {self._truth(part)}")
            return Value(TRUTH, (found,))
        place = self.fresh("truth")
        self.stack.append(f"{place} = alloca i1")
        (after,) = self.labels("after")
        for at, part in enumerate(parts):
            found = self._truth(part)
            self.emit(f"store i1 {found}, ptr {place}")
            if at < len(parts) - 1:
                (further,) = self.labels("further")
                ways = (further, after) if all_of else (after, further)
                self.emit(f"br i1 {found}, label %{ways[0]}, label %{ways[1]}")
                self.label(further)
        self.leave(after)
        self.label(after)
        return Value(TRUTH, (self.made(f"load i1, ptr {place}"),))

    def _either(self, test: ast.expr, yes: ast.expr, no: ast.expr) -> Value:
        if _simple(yes) and _simple(no):
            truth = self._truth(test)
            one, other = self._expression(yes), self._expression(no)
            kind = wider(number(one), number(other))
            one, other = self.converted(one, kind), self.converted(other, kind)
            return Value(kind, (self.made(f"select i1 {truth}, {kind} {one.text}, {kind} {other.text}"),))
        first, second, after = self.labels("then", "else", "after")
        self._branch(test, first, second)
        ways: list[tuple[Value, int, str]] = []
        for label, part in ((first, yes), (second, no)):
            self.label(label)
            value = self._expression(part)
            (last,) = self.labels("last")
            self.leave(last)
            self.label(last)
            ways.append((value, len(self.lines), last))
            self.leave(after)
        kind = wider(*(number(value) for value, _, _ in ways))
        texts: list[str] = []
        for value, at, _ in reversed(ways):
            # the conversion stands before the jump out of its own block
            behind, self.lines = self.lines[at:], self.lines[:at]
            texts.insert(0, self.converted(value, kind).text)
            self.lines += behind
        self.label(after)
        joined = ", ".join(f"[ {text}, %{last} ]" for text, (_, _, last) in zip(texts, ways, strict=True))
        return Value(kind, (self.made(f"phi {kind} {joined}"),))

    def _element(self, node: ast.expr, of: ast.expr, index: ast.expr) -> Value:
        if isinstance(of, ast.Name) and of.id not in self.variables:
            numbers = self._meaning(of)
            if isinstance(numbers, tuple):
                name, element = self.around.table(numbers)
                return self.loaded(self.at(element, f"@{name}", self._index(index).text), element)
        array = self._expression(of)
        if isinstance(array.kind, Array) and array.kind.rank == 2 and not isinstance(index, ast.Tuple):
            row = self.made(f"mul nsw i64 {self._index(index).text}, {array.parts[2]}")
            place = self.at(array.kind.element, array.parts[0], row)
            return Value(Array(array.kind.element, 1), (place, array.parts[2]))
        place, element = self._address(node, of, index)
        return self.loaded(place, element)

    def _address(self, node: ast.expr, of: ast.expr, index: ast.expr) -> tuple[str, str]:
        """Where a number of an array lies, and its element."""
        array = self._expression(of)
        if not isinstance(array.kind, Array):
            raise self._unsupported(node)
        if array.kind.rank == 2:
            if not isinstance(index, ast.Tuple):
                raise self._unsupported(node)
            row, column = (self._index(one).text for one in index.elts)
            start = self.made(f"mul nsw i64 {row}, {array.parts[2]}")
            at = self.made(f"add nsw i64 {start}, {column}")
        else:
            found = self._index(index)
            at = found.text
            if found.constant is not None and found.constant < 0:
                at = self.made(f"add nsw i64 {array.parts[1]}, {at}")
        return self.at(array.kind.element, array.parts[0], at), array.kind.element

    def _index(self, node: ast.expr) -> Value:
        before, self.place = self.place, True
        found = self._whole(node)
        self.place = before
        return found

    def _call(self, node: ast.Call) -> Value:
        function = self._meaning(node.func)
        if node.keywords:
            raise self._unsupported(node)
        arguments = [self._expression(argument) for argument in node.args]
        if function in INSTRUCTIONS:
            return INSTRUCTIONS[function](self, *arguments)
        if isinstance(function, BuiltinFunctionType) and function.__module__ == "math":
            return self._of_math(node, function.__name__, arguments)
        if not isinstance(function, FunctionType):
            raise self._unsupported(node)
        name, result = self.around.called(function, [argument.kind for argument in arguments])
        given = ", ".join(
            f"{one} {part}"
            for argument in arguments
            for one, part in zip(types_of(argument.kind), argument.parts, strict=True)
        )
        if result == NOTHING:
            self.emit(f"call void @{name}({given})")
            return Value(NOTHING, ())
        return Value(result, (self.made(f"call {result} @{name}({given})"),))

    def _of_math(self, node: ast.AST, name: str, arguments: list[Value]) -> Value:
        if name == "isnan":
            return Value(TRUTH, (self.made(f"fcmp uno double {self.real(arguments[0]).text}, 0.0"),))
        if name == "isinf":
            size = self.foreign("llvm.fabs.f64", arguments)
            return Value(TRUTH, (self.made(f"fcmp oeq double {size.text}, {literal(math.inf)}"),))
        if name in OWN_INSTRUCTION:
            return self.foreign(f"llvm.{name}.f64", arguments)
        if name in LIBM:
            return self.foreign(name, arguments)
        raise self._unsupported(node)

    def _whole(self, node: ast.expr) -> Value:
        value = self._expression(node)
        if number(value) == REAL:
            raise self._unsupported(node, "a real number as an index or a bound")
        return self.converted(value, WHOLE)

    def _truth(self, node: ast.expr) -> str:
        value = self._expression(node)
        match number(value):
            case "i1":
                return value.text
            case "i64":
                return self.made(f"icmp ne i64 {value.text}, 0")
            case _:
                return self.made(f"fcmp une double {value.text}, 0.0")

    def _branch(self, test: ast.expr, yes: str, no: str) -> None:
        self.emit(f"br i1 {self._truth(test)}, label %{yes}, label %{no}")

    def _unsupported(self, node: Any, why: str = "") -> Unsupported:
        where = f"{self.wanted.node.name}, line {getattr(node, 'lineno', '?')}"
        what = ast.unparse(node) if isinstance(node, ast.expr | ast.stmt) else type(node).__name__
        return Unsupported(f"{where}: {what.splitlines()[0]}" + (f" ({why})" if why else ""))


def _simple(node: ast.expr) -> bool:
    """Whether a choice may compute it though it is not taken."""
    match node:
        case ast.Constant() | ast.Name() | ast.Attribute(ast.Name()):
            return True
        case ast.UnaryOp(ast.USub(), of):
            return _simple(of)
        case _:
            return False


def _plain(node: ast.expr) -> bool:
    """Whether it reads no array and calls nothing."""
    return not any(isinstance(part, ast.Subscript | ast.Call) for part in ast.walk(node))
