"""Functions in a subset of Python as LLVM text.

The sampler, what the generated loops call, and the loops themselves are plain Python, which tests can run, and which
reads like the sampler in numpy beside it.  The subset: functions of whole and real numbers and of arrays whose numbers
lie row by row; assignments, `if`, `while`, `for … in range(…)`, `return`; arithmetic, comparisons, `x if c else y`;
numbers and tables of the module; calls of `math`, of `intrinsics`, and of other functions in it.  A variable has one
kind: a whole number that becomes a real one somewhere is real everywhere.  A function is compiled for each combination
of kinds that it is called with.

A module says in `FLAGS` how far LLVM may go with its arithmetic, and in `INLINE` that each call is written out, or that
none is: a large function in many places costs the compiler more than its calls cost a run.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from types import FunctionType
from typing import Any

from qvr_core.codegen.definitions import Definition, definition
from qvr_core.codegen.expressions import Expressions
from qvr_core.codegen.kinds import NOTHING, REAL, WHOLE, Array, Kind, Value, literal, types_of, wider

RETURNED = "return"
MOST_WRITTEN_OUT = 32
"""Statements of a loop whose turns are known."""
WRITTEN_OUT = '!0 = distinct !{!0, !1}\n!1 = !{!"llvm.loop.unroll.full"}'


class Unit:
    """One module of LLVM: functions for the kinds that they are called with, tables, and names of the C library."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._instances: dict[Any, tuple[str, str]] = {}
        self._declared: dict[str, str] = {}
        self._tables: dict[int, tuple[str, str, tuple[float, ...]]] = {}
        self._serial = 0

    def entry(self, name: str, wanted: Definition, kinds: Sequence[Kind], *, apart: bool = False) -> str:
        """Define `name` with C's calling convention, an array as its pointer and extents; what kind it returns.
        `apart`: what its pointers point to overlaps nowhere."""
        return self._define(name, wanted, kinds, "", "noalias " if apart else "")

    def called(self, function: FunctionType, kinds: Sequence[Kind]) -> tuple[str, str]:
        """The name and the returned kind of a function for arguments of these kinds."""
        key = (function, tuple(kinds))
        if key not in self._instances:
            wanted = definition(function)
            self._serial += 1
            name = f"{function.__name__}.{self._serial}"
            result = self._define(name, wanted, kinds, "internal ", "")
            self._instances[key] = (name, result)
        return self._instances[key]

    def table(self, numbers: tuple[float, ...]) -> tuple[str, str]:
        """The name of a constant array and its element."""
        if id(numbers) not in self._tables:
            element = WHOLE if all(isinstance(number, int) for number in numbers) else REAL
            self._tables[id(numbers)] = (f"table.{len(self._tables)}", element, numbers)
        name, element, _ = self._tables[id(numbers)]
        return name, element

    def text(self) -> str:
        """The whole."""
        tables = (
            f"@{name} = private unnamed_addr constant [{len(numbers)} x {element}] "
            f"[{', '.join(f'{element} {literal(number)}' for number in numbers)}]"
            for name, element, numbers in self._tables.values()
        )
        return "\n".join([*tables, *self._declared.values(), *self._parts, WRITTEN_OUT, ""])

    def _define(self, name: str, wanted: Definition, kinds: Sequence[Kind], linkage: str, pointers: str) -> str:
        known: dict[str, str] = {}
        while True:
            body = _Body(self, wanted, known)
            try:
                text = body.written(name, kinds, linkage, pointers)
            except _Widened as wider:
                known[wider.name] = wider.kind
                continue
            self._parts.append(text)
            self._declared |= body.declared
            return body.result or NOTHING


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

    def __init__(self, unit: Unit, wanted: Definition, known: Mapping[str, str]) -> None:
        super().__init__(unit, wanted)
        self.known = known
        self.result: str | None = known.get(RETURNED)
        self.loops: list[tuple[str, str]] = []
        """Where `continue` and `break` of each loop around lead."""

    def written(self, name: str, kinds: Sequence[Kind], linkage: str, pointers: str) -> str:
        node = self.wanted.node
        names = [argument.arg for argument in node.args.args]
        if len(names) != len(kinds):
            raise self._unsupported(node, f"{len(kinds)} arguments for {len(names)}")
        heads: list[str] = []
        for argument, kind in zip(names, kinds, strict=True):
            types = types_of(kind)
            parts = tuple(f"%arg.{len(heads) + at}" for at in range(len(types)))
            heads += [f"{one} {pointers if one == 'ptr' else ''}{part}" for one, part in zip(types, parts, strict=True)]
            self._assign(node, argument, Value(kind, parts))
        self._block(node.body)
        if not self.ended:
            self.emit("ret void" if self.result in (None, NOTHING) else "unreachable")
        inline = self.wanted.inline if linkage else ""
        head = f"define {linkage}{self.result or NOTHING} @{name}({', '.join(heads)}) {inline}nounwind {{"
        return "\n".join([head, "entry:", *self.stack, *self.lines, "}", ""])

    def _block(self, statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            if self.ended:
                return
            self._statement(statement)

    def _statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Expr(ast.Constant(str())) | ast.Pass():
                pass
            case ast.Expr(ast.Call() as call):
                self._call(call)
            case ast.Assign(targets, value):
                values = self._values(value)
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
                self.leave(self.loops[-1][isinstance(node, ast.Break)])
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
                self.emit(f"store {element} {self.stored(value, element)}, ptr {place}")
            case _:
                raise self._unsupported(target)

    def _assign(self, node: ast.AST, name: str, value: Value) -> None:
        if name not in self.variables:
            kind = self.known.get(name, value.kind)
            places = tuple(f"%{name}.{at}" for at in range(len(value.parts)))
            self.stack += [f"{place} = alloca {one}" for place, one in zip(places, types_of(kind), strict=True)]
            self.variables[name] = Value(kind, places)
        held = self.variables[name]
        if held.kind != value.kind:
            if isinstance(held.kind, Array) or isinstance(value.kind, Array):
                raise self._unsupported(node, f"{name} becomes something else")
            widest = wider(held.kind, value.kind)
            if widest != held.kind:
                raise _Widened(name, widest)
            value = self.converted(value, held.kind)
        for one, part, place in zip(types_of(held.kind), value.parts, held.parts, strict=True):
            self.emit(f"store {one} {part}, ptr {place}")

    def _if(self, test: ast.expr, body: list[ast.stmt], otherwise: list[ast.stmt]) -> None:
        yes, no, after = self.labels("then", "else", "after")
        self._branch(test, yes, no if otherwise else after)
        ends = True
        for label, statements in ((yes, body), (no, otherwise)):
            if statements:
                self.label(label)
                self._block(statements)
                ends = ends and self.ended
                if not self.ended:
                    self.leave(after)
            else:
                ends = False
        if ends:
            self.ended = True
        else:
            self.label(after)

    def _while(self, test: ast.expr, body: list[ast.stmt]) -> None:
        again, inside, after = self.labels("again", "inside", "after")
        self.leave(again)
        self.label(again)
        self._branch(test, inside, after)
        self.label(inside)
        self._looped(body, again, after)
        self.label(after)

    def _for(self, node: ast.AST, name: str, over: ast.expr, body: list[ast.stmt]) -> None:
        start, stop, step, array = Value(WHOLE, ("0",), 0), None, 1, None
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
                array = self._expression(over)
                if not isinstance(array.kind, Array) or array.kind.rank != 1:
                    raise self._unsupported(node)
                stop = Value(WHOLE, (array.parts[1],))
        counter = self.fresh("turn")
        self.stack.append(f"{counter} = alloca i64")
        self.emit(f"store i64 {start.text}, ptr {counter}")
        again, inside, onwards, after = self.labels("again", "inside", "onwards", "after")
        self.leave(again)
        self.label(again)
        turn = self.made(f"load i64, ptr {counter}")
        going = self.made(f"icmp {'slt' if step > 0 else 'sgt'} i64 {turn}, {stop.text}")
        self.emit(f"br i1 {going}, label %{inside}, label %{after}")
        self.label(inside)
        value = Value(WHOLE, (turn,))
        if array is not None:
            assert isinstance(array.kind, Array)
            value = self.loaded(self.at(array.kind.element, array.parts[0], turn), array.kind.element)
        self._assign(node, name, value)
        self._looped(body, onwards, after)
        self.label(onwards)
        turn = self.made(f"load i64, ptr {counter}")
        turn = self.made(f"add nsw i64 {turn}, {step}")
        self.emit(f"store i64 {turn}, ptr {counter}")
        few = array is None and _few(start.constant, stop.constant, step, body)
        self.emit(f"br label %{again}" + (", !llvm.loop !0" if few else ""))
        self.label(after)

    def _looped(self, body: list[ast.stmt], onwards: str, after: str) -> None:
        self.loops.append((onwards, after))
        self._block(body)
        self.loops.pop()
        if not self.ended:
            self.leave(onwards)

    def _return(self, node: ast.AST, value: ast.expr | None) -> None:
        if value is None:
            self.result = NOTHING
            self.emit("ret void")
        else:
            given = self._expression(value)
            if isinstance(given.kind, Array):
                raise self._unsupported(node, "an array is returned")
            kind = given.kind if self.result is None else wider(self.result, given.kind)
            if self.result not in (None, kind):
                raise _Widened(RETURNED, kind)
            self.result = kind
            self.emit(f"ret {kind} {self.converted(given, kind).text}")
        self.ended = True
