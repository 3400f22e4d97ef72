"""Expressions of the subset, as operations of a target."""

from __future__ import annotations

import ast
import functools
from collections.abc import Sequence
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any, Protocol

from qvr_core.codegen.definitions import Definition
from qvr_core.codegen.instructions import BUILTINS, INSTRUCTIONS
from qvr_core.codegen.kinds import REAL, TRUTH, WHOLE, Array, Kind, Unsupported, Value, number, wider
from qvr_core.codegen.target import INSTRUCTIONS as OF_A_MACHINE
from qvr_core.codegen.target import Target

LIBM = frozenset((
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cos", "cosh", "exp", "expm1", "hypot", "log", "log10",
    "log1p", "pow", "sin", "sinh", "tan", "tanh",
))  # fmt: skip
"""Functions of the C library: those that all systems, and JavaScript, have."""
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


_ARITHMETIC: dict[type[ast.operator], str] = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul"}
_BITS: dict[type[ast.operator], str] = {
    ast.LShift: "shl", ast.RShift: "ashr", ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor",
}  # fmt: skip
_COMPARED: dict[type[ast.cmpop], str] = {
    ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge",
}  # fmt: skip


class Expressions:
    """A function whose names mean something: variables, and what stands outside it."""

    def __init__(self, around: Surroundings, wanted: Definition, to: Target) -> None:
        self.around, self.wanted, self.to = around, wanted, to
        self.variables: dict[str, Value] = {}
        """Where each lies."""
        self.place = False
        """Within the index of an array: what is computed there does not overflow."""

    def _values(self, node: ast.expr) -> list[Value]:
        match node:
            case ast.Tuple(parts):
                # one of them may be what another is put into
                return [self.to.held(self._expression(part)) for part in parts]
            case ast.Attribute(of, "shape"):
                return [Value(WHOLE, (extent,)) for extent in self._expression(of).parts[1:]]
            case _:
                return [self._expression(node)]

    def _expression(self, node: ast.expr) -> Value:
        match node:
            case ast.Constant(bool() | int() | float() as value):
                return self.to.constant(value)
            case ast.Name(name) if name in self.variables:
                return self.to.read(self.variables[name])
            case ast.Name() | ast.Attribute(ast.Name()):
                found = self._meaning(node)
                if isinstance(found, bool | int | float):
                    return self.to.constant(found)
                raise self._unsupported(node)
            case ast.BinOp(left, operator, right):
                return self._binary(node, operator, self._expression(left), self._expression(right))
            case ast.UnaryOp(ast.USub(), of):
                return self._negative(self._expression(of))
            case ast.UnaryOp(ast.Not(), of):
                return self.to.inverted(self._truth(of))
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
            return self.to.bits(_BITS[type(operator)], left, right)
        if isinstance(operator, ast.Pow):
            return self._power(left, right)
        if isinstance(operator, ast.Div):
            return self.to.arithmetic("div", self.to.real(left), self.to.real(right))
        if isinstance(operator, ast.Mod | ast.FloorDiv):
            if REAL in (left.kind, right.kind):
                raise self._unsupported(node)
            return self._divided(left, right, rest=isinstance(operator, ast.Mod))
        if type(operator) not in _ARITHMETIC:
            raise self._unsupported(node)
        kind = wider(number(left), number(right), WHOLE)
        left, right = self.to.converted(left, kind), self.to.converted(right, kind)
        return self.to.arithmetic(_ARITHMETIC[type(operator)], left, right, bounded=self.place)

    def _divided(self, left: Value, right: Value, *, rest: bool) -> Value:
        """Python's `%` and `//`: C rounds towards zero."""
        to = self.to
        left, right = to.shared(left), to.shared(right)
        moved = to.arithmetic("add", to.bits("srem", left, right), right)
        remainder = to.bits("srem", moved, right)
        return remainder if rest else to.bits("sdiv", to.arithmetic("sub", left, remainder), right)

    def _power(self, base: Value, exponent: Value) -> Value:
        """A whole exponent that is known is products."""
        known = exponent.constant
        if known is None or known != int(known) or abs(known) > LARGEST_POWER:
            return self.to.function("pow", [base, exponent])
        factor, left = self.to.shared(self.to.real(base)), abs(int(known))
        total: Value | None = None
        while left:
            if left & 1:
                total = factor if total is None else self.to.arithmetic("mul", total, factor)
            left >>= 1
            if left:
                factor = self.to.shared(self.to.arithmetic("mul", factor, factor))
        total = total or self.to.constant(1.0)
        return self.to.arithmetic("div", self.to.constant(1.0), total) if known < 0 else total

    def _negative(self, value: Value) -> Value:
        if value.constant is not None:
            return self.to.constant(-value.constant)
        return self.to.negative(value if number(value) == REAL else self.to.converted(value, WHOLE))

    def _compared(self, node: ast.Compare) -> Value:
        values = [self._expression(part) for part in (node.left, *node.comparators)]
        # what stands between two signs is compared twice
        values[1:-1] = map(self.to.shared, values[1:-1])
        found: Value | None = None
        for operator, left, right in zip(node.ops, values, values[1:], strict=False):
            if type(operator) not in _COMPARED:
                raise self._unsupported(node)
            kind = wider(number(left), number(right))
            left, right = self.to.converted(left, kind), self.to.converted(right, kind)
            here = self.to.compared(_COMPARED[type(operator)], left, right)
            found = here if found is None else self.to.joined("and", found, here)
        assert found is not None
        return found

    def _joined(self, all_of: bool, parts: list[ast.expr]) -> Value:
        """`and`, `or`: what follows is looked at only where it counts, if that is more than arithmetic."""
        if all(_plain(part) for part in parts[1:]):
            found = self._truth(parts[0])
            for part in parts[1:]:
                found = self.to.joined("and" if all_of else "or", found, self._truth(part))
            return found
        return self.to.shortened(all_of, [functools.partial(self._truth, part) for part in parts])

    def _either(self, test: ast.expr, yes: ast.expr, no: ast.expr) -> Value:
        if _simple(yes) and _simple(no):
            truth = self._truth(test)
            one, other = self._expression(yes), self._expression(no)
            kind = wider(number(one), number(other))
            return self.to.selected(truth, self.to.converted(one, kind), self.to.converted(other, kind))
        return self.to.either(lambda: self._truth(test), lambda: self._expression(yes), lambda: self._expression(no))

    def _element(self, node: ast.expr, of: ast.expr, index: ast.expr) -> Value:
        if isinstance(of, ast.Name) and of.id not in self.variables:
            numbers = self._meaning(of)
            listed: tuple[float, ...] = numbers
            if isinstance(numbers, tuple):
                name, element = self.around.table(listed)
                return self.to.loaded(self.to.at(element, self.to.table(name), self._index(index)), element)
        array = self._expression(of)
        if isinstance(array.kind, Array) and array.kind.rank == 2 and not isinstance(index, ast.Tuple):
            columns = Value(WHOLE, (array.parts[2],))
            row = self.to.arithmetic("mul", self._index(index), columns, bounded=True)
            place = self.to.at(array.kind.element, array.parts[0], row)
            return Value(Array(array.kind.element, 1), (self.to.pointer(place), array.parts[2]))
        place, element = self._address(node, of, index)
        return self.to.loaded(place, element)

    def _address(self, node: ast.expr, of: ast.expr, index: ast.expr) -> tuple[Any, str]:
        """Where a number of an array lies, and its element."""
        array = self._expression(of)
        if not isinstance(array.kind, Array):
            raise self._unsupported(node)
        if array.kind.rank == 2:
            if not isinstance(index, ast.Tuple):
                raise self._unsupported(node)
            row, column = (self._index(one) for one in index.elts)
            start = self.to.arithmetic("mul", row, Value(WHOLE, (array.parts[2],)), bounded=True)
            at = self.to.arithmetic("add", start, column, bounded=True)
        else:
            at = self._index(index)
            if at.constant is not None and at.constant < 0:
                at = self.to.arithmetic("add", Value(WHOLE, (array.parts[1],)), at, bounded=True)
        return self.to.at(array.kind.element, array.parts[0], at), array.kind.element

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
            return INSTRUCTIONS[function](self.to, *arguments)
        if isinstance(function, BuiltinFunctionType) and function.__module__ == "math":
            return self._of_math(node, function.__name__, arguments)
        if not isinstance(function, FunctionType):
            raise self._unsupported(node)
        name, result = self.around.called(function, [argument.kind for argument in arguments])
        return self.to.call(name, result, arguments)

    def _of_math(self, node: ast.AST, name: str, arguments: list[Value]) -> Value:
        if name == "isnan":
            return self.to.is_nan(self.to.real(arguments[0]))
        if name == "isinf":
            return self.to.is_infinite(self.to.real(arguments[0]))
        if name in OF_A_MACHINE or name in LIBM:
            return self.to.function(name, arguments)
        raise self._unsupported(node)

    def _whole(self, node: ast.expr) -> Value:
        value = self._expression(node)
        if number(value) == REAL:
            raise self._unsupported(node, "a real number as an index or a bound")
        return self.to.converted(value, WHOLE)

    def _truth(self, node: ast.expr) -> Value:
        value = self._expression(node)
        return value if number(value) == TRUTH else self.to.is_true(value)

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
