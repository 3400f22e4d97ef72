"""Statements of the subset, as operations of a target, and what the functions of one module have in common."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any, TypeVar

from qvr_core.codegen.definitions import Definition, definition
from qvr_core.codegen.expressions import Expressions, Surroundings
from qvr_core.codegen.kinds import NOTHING, REAL, WHOLE, Array, Kind, Value, wider
from qvr_core.codegen.target import Target

RETURNED = "return"
Made = TypeVar("Made", bound=Target)
MOST_WRITTEN_OUT = 32
"""Statements of a loop whose turns are known."""


class Functions:
    """What functions of one module have in common: each is made for the kinds that it is called with, once."""

    def __init__(self) -> None:
        self._instances: dict[Any, tuple[str, str]] = {}
        self._tables: dict[int, tuple[str, str, tuple[float, ...]]] = {}
        self._serial = 0

    def called(self, function: FunctionType, kinds: Sequence[Kind]) -> tuple[str, str]:
        """The name and the returned kind of a function for arguments of these kinds."""
        key = (function, tuple(kinds))
        if key not in self._instances:
            self._serial += 1
            name = f"{function.__name__}.{self._serial}"
            self._instances[key] = (name, self.instance(name, definition(function), kinds))
        return self._instances[key]

    def table(self, numbers: tuple[float, ...]) -> tuple[str, str]:
        """The name of a constant array and its element."""
        if id(numbers) not in self._tables:
            element = WHOLE if all(isinstance(number, int) for number in numbers) else REAL
            self._tables[id(numbers)] = (f"table.{len(self._tables)}", element, numbers)
        name, element, _ = self._tables[id(numbers)]
        return name, element

    def instance(self, name: str, wanted: Definition, kinds: Sequence[Kind]) -> str:
        """Make a function for the module's own use; what kind it returns."""
        raise NotImplementedError

    def filled(self, wanted: Definition, begun: Callable[[], tuple[Made, Sequence[Value]]]) -> tuple[Made, str]:
        """A function with its statements, and what kind it returns; `begun` gives an empty one and its arguments,
        again where a variable turns out to be of another kind than its first value."""
        known: dict[str, str] = {}
        while True:
            to, arguments = begun()
            body = _Body(self, wanted, to, known)
            try:
                body.filled(arguments)
            except _Widened as wider:
                known[wider.name] = wider.kind
            else:
                return to, body.result or NOTHING


class _Widened(Exception):
    """A variable is of another kind than its first assignment said."""

    def __init__(self, name: str, kind: str) -> None:
        super().__init__(name)
        self.name, self.kind = name, kind


def _few(start: float | None, stop: float | None, step: int, body: Sequence[ast.stmt]) -> bool:
    """Whether a loop is written out: what is around it may then become vectors."""
    if (
        start is None
        or stop is None
        or any(isinstance(part, ast.For | ast.While) for one in body for part in ast.walk(one))
    ):
        return False
    return len(range(int(start), int(stop), step)) * len(body) <= MOST_WRITTEN_OUT


class _Body(Expressions):
    """One function for arguments of some kinds; `known` are those of variables whose first assignment does not tell."""

    def __init__(self, around: Surroundings, wanted: Definition, to: Target, known: Mapping[str, str]) -> None:
        super().__init__(around, wanted, to)
        self.known = known
        self.result: str | None = known.get(RETURNED)

    def filled(self, arguments: Sequence[Value]) -> None:
        """All statements of the function."""
        node = self.wanted.node
        names = [argument.arg for argument in node.args.args]
        if len(names) != len(arguments):
            raise self._unsupported(node, f"{len(arguments)} arguments for {len(names)}")
        for name, argument in zip(names, arguments, strict=True):
            self._assign(node, name, argument)
        self._block(node.body)

    def _block(self, statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            if self.to.ended:
                return
            self._statement(statement)

    def _statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Expr(ast.Constant(str())) | ast.Pass():
                pass
            case ast.Expr(ast.Call() as call):
                self.to.dropped(self._call(call))
            case ast.Assign(targets, value):
                values = self._values(value)
                if len(targets) > 1:
                    values = list(map(self.to.held, values))
                for target in targets:
                    self._put(target, values)
            case ast.AugAssign(target, operator, value):
                old = self._expression(target)
                self._put(target, [self._binary(node, operator, old, self._expression(value))])
            case ast.If(test, body, otherwise):
                self._if(test, body, otherwise)
            case ast.While(test, body, []):
                self._while(test, body)
            case ast.For(ast.Name(name), over, body, []):
                self._for(node, name, over, body)
            case ast.Break() | ast.Continue():
                self.to.broken() if isinstance(node, ast.Break) else self.to.onwards()
            case ast.Return(value):
                self._return(node, value)
            case _:
                raise self._unsupported(node)

    def _put(self, target: ast.expr, values: list[Value]) -> None:
        match target:
            case ast.Tuple(targets):
                if len(targets) != len(values):
                    raise self._unsupported(target, f"{len(values)} values for {len(targets)} names")
                for one, value in zip(targets, values, strict=True):
                    self._put(one, [value])
            case ast.Name(name):
                self._assign(target, name, *values)
            case ast.Subscript(of, index):
                place, element = self._address(target, of, index)
                (value,) = values
                self.to.stored(place, element, value)
            case _:
                raise self._unsupported(target)

    def _assign(self, node: ast.AST, name: str, value: Value) -> None:
        if name not in self.variables:
            self.variables[name] = self.to.variable(name, self.known.get(name, value.kind))
        held = self.variables[name]
        if held.kind != value.kind:
            if isinstance(held.kind, Array) or isinstance(value.kind, Array):
                raise self._unsupported(node, f"{name} becomes something else")
            widest = wider(held.kind, value.kind)
            if widest != held.kind:
                raise _Widened(name, widest)
            value = self.to.converted(value, held.kind)
        self.to.write(held, value)

    def _if(self, test: ast.expr, body: list[ast.stmt], otherwise: list[ast.stmt]) -> None:
        no = (lambda: self._block(otherwise)) if otherwise else None
        self.to.when(lambda: self._truth(test), lambda: self._block(body), no)

    def _while(self, test: ast.expr, body: list[ast.stmt]) -> None:
        self.to.repeated(lambda: self._truth(test), lambda: self._block(body))

    def _for(self, node: ast.AST, name: str, over: ast.expr, body: list[ast.stmt]) -> None:
        start, stop, step, array = self.to.constant(0), None, 1, None
        match over:
            case ast.Call(ast.Name("range"), arguments):
                bounds = [self._whole(argument) for argument in arguments]
                if len(bounds) == 3:
                    known = bounds.pop().constant
                    if not known:
                        raise self._unsupported(node, "a step that is not known")
                    step = int(known)
                start, stop = bounds if len(bounds) == 2 else (start, bounds[0])
            case _:
                array = self.to.held(self._expression(over))
                if not isinstance(array.kind, Array) or array.kind.rank != 1:
                    raise self._unsupported(node)
                stop = Value(WHOLE, (array.parts[1],))

        def turned(turn: Value) -> None:
            if array is not None:
                assert isinstance(array.kind, Array)
                turn = self.to.loaded(self.to.at(array.kind.element, array.parts[0], turn), array.kind.element)
            self._assign(node, name, turn)
            self._block(body)

        few = array is None and _few(start.constant, stop.constant, step, body)
        self.to.counted(start, stop, step, turned, few=few)

    def _return(self, node: ast.AST, value: ast.expr | None) -> None:
        if value is None:
            self.result = NOTHING
            self.to.given(NOTHING, None)
        else:
            given = self._expression(value)
            if isinstance(given.kind, Array):
                raise self._unsupported(node, "an array is returned")
            kind = given.kind if self.result is None else wider(self.result, given.kind)
            if self.result not in (None, kind):
                raise _Widened(RETURNED, kind)
            self.result = kind
            self.to.given(kind, self.to.converted(given, kind))
