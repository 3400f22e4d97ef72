"""LLVM text of one function, one instruction behind the other: what `target.Target` asks for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from qvr_core.codegen import intrinsics
from qvr_core.codegen.kinds import (
    NOTHING,
    REAL,
    SINGLE,
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
from qvr_core.codegen.target import INSTRUCTIONS

_OF_REALS = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}
_COMPARED = {
    "eq": ("oeq", "eq"), "ne": ("une", "ne"), "lt": ("olt", "slt"), "le": ("ole", "sle"), "gt": ("ogt", "sgt"),
    "ge": ("oge", "sge"),
}  # fmt: skip


class Lines:
    """The text of a function while it grows; `flags` say how far LLVM may go with its arithmetic."""

    def __init__(self, flags: str) -> None:
        self.flags = f"{flags} " if flags else ""
        self.stack: list[str] = []
        """What stands first: room for variables."""
        self.lines: list[str] = []
        self.declared: dict[str, str] = {}
        """Functions that are defined elsewhere."""
        self.serial = 0
        self.ended = False
        """Whether the block has left already."""
        self._loops: list[tuple[str, str]] = []
        """Where `continue` and `break` of each loop around lead."""

    def constant(self, value: float) -> Value:
        return constant(value)

    def arithmetic(self, name: str, one: Value, other: Value, *, bounded: bool = False) -> Value:
        if one.kind == WHOLE:
            return Value(WHOLE, (self.made(f"{name} {'nsw ' if bounded else ''}i64 {one.text}, {other.text}"),))
        return Value(REAL, (self.made(f"{_OF_REALS[name]} {self.flags}double {one.text}, {other.text}"),))

    def bits(self, name: str, one: Value, other: Value) -> Value:
        return Value(WHOLE, (self.made(f"{name} i64 {one.text}, {other.text}"),))

    def negative(self, value: Value) -> Value:
        if value.kind == WHOLE:
            return Value(WHOLE, (self.made(f"sub i64 0, {value.text}"),))
        return Value(REAL, (self.made(f"fneg {self.flags}double {value.text}"),))

    def compared(self, name: str, one: Value, other: Value) -> Value:
        of_reals, of_wholes = _COMPARED[name]
        how = f"fcmp {of_reals} double" if one.kind == REAL else f"icmp {of_wholes} {one.kind}"
        return Value(TRUTH, (self.made(f"{how} {one.text}, {other.text}"),))

    def joined(self, name: str, one: Value, other: Value) -> Value:
        return Value(TRUTH, (self.made(f"{name} i1 {one.text}, {other.text}"),))

    def inverted(self, truth: Value) -> Value:
        return Value(TRUTH, (self.made(f"xor i1 {truth.text}, true"),))

    def selected(self, truth: Value, one: Value, other: Value) -> Value:
        return Value(
            one.kind, (self.made(f"select i1 {truth.text}, {one.kind} {one.text}, {other.kind} {other.text}"),)
        )

    def is_nan(self, value: Value) -> Value:
        return Value(TRUTH, (self.made(f"fcmp uno double {value.text}, 0.0"),))

    def function(self, name: str, arguments: list[Value]) -> Value:
        """What a function of real numbers gives that is an instruction of LLVM, or stands in the C library."""
        if name in INSTRUCTIONS:
            name = f"llvm.{name}.f64"
        given = [self.real(argument).text for argument in arguments]
        self.declared[name] = (
            f"declare double @{name}({', '.join(['double'] * len(given))}) nounwind willreturn memory(none)"
        )
        return Value(REAL, (self.made(f"call {self.flags}double @{name}({', '.join(f'double {g}' for g in given)})"),))

    def extreme(self, order: str, one: Value, other: Value) -> Value:
        kind = wider(number(one), number(other), WHOLE)
        one, other = self.converted(one, kind), self.converted(other, kind)
        return self.selected(self.compared(order, other, one), other, one)

    def real(self, value: Value) -> Value:
        return self.converted(value, REAL)

    def converted(self, value: Value, kind: str) -> Value:
        if value.kind == kind:
            return value
        if value.constant is not None:
            return constant(float(value.constant) if kind == REAL else int(value.constant))
        match value.kind, kind:
            case "i1", "i64":
                text = self.made(f"zext i1 {value.text} to i64")
            case "i1", "double":
                text = self.made(f"uitofp i1 {value.text} to double")
            case "i64", "double":
                text = self.made(f"sitofp i64 {value.text} to double")
            case "double", "i64":
                text = self.made(f"fptosi double {value.text} to i64")
            case _:
                raise Unsupported(f"{value.kind} as {kind}")
        return Value(kind, (text,))

    def shared(self, value: Value) -> Value:
        return value

    def held(self, value: Value) -> Value:
        return value

    # memory

    def at(self, element: str, pointer: Any, index: Value) -> str:
        return self.made(f"getelementptr inbounds {element}, ptr {pointer}, i64 {index.text}")

    def pointer(self, place: str) -> str:
        return place

    def loaded(self, place: str, element: str) -> Value:
        text = self.made(f"load {element}, ptr {place}")
        if element == SINGLE:
            # what is computed is double
            return Value(REAL, (self.made(f"fpext float {text} to double"),))
        return Value(element, (text,))

    def stored(self, place: str, element: str, value: Value) -> None:
        if element == SINGLE:
            text = self.made(f"fptrunc double {self.real(value).text} to float")
        else:
            text = self.converted(value, element).text
        self.emit(f"store {element} {text}, ptr {place}")

    def table(self, name: str) -> str:
        return f"@{name}"

    def variable(self, name: str, kind: Kind) -> Value:
        types = types_of(kind)
        places = tuple(f"%{name}.{at}" for at in range(len(types)))
        self.stack += [f"{place} = alloca {one}" for place, one in zip(places, types, strict=True)]
        return Value(kind, places)

    def read(self, held: Value) -> Value:
        pairs = zip(types_of(held.kind), held.parts, strict=True)
        return Value(held.kind, tuple(self.made(f"load {one}, ptr {place}") for one, place in pairs))

    def write(self, held: Value, value: Value) -> None:
        for one, part, place in zip(types_of(held.kind), value.parts, held.parts, strict=True):
            self.emit(f"store {one} {part}, ptr {place}")

    # calls

    def call(self, name: str, result: str, arguments: Sequence[Value]) -> Value:
        given = ", ".join(
            f"{one} {part}"
            for argument in arguments
            for one, part in zip(types_of(argument.kind), argument.parts, strict=True)
        )
        if result == NOTHING:
            self.emit(f"call void @{name}({given})")
            return Value(NOTHING, ())
        return Value(result, (self.made(f"call {result} @{name}({given})"),))

    def dropped(self, value: Value) -> None:
        """What a call gives may be left."""

    def as_real(self, bits: Value) -> Value:
        return Value(REAL, (self.made(f"bitcast i64 {bits.text} to double"),))

    def as_bits(self, real: Value) -> Value:
        return Value(WHOLE, (self.made(f"bitcast double {real.text} to i64"),))

    def lane(self) -> Value:
        place = self.fresh("lane")
        self.stack.append(f"{place} = alloca [{intrinsics.BLOCK} x double], align 64")
        return Value(Array(REAL, 0), (place,))

    def density(self, address: Value, arrays: Sequence[Value]) -> Value:
        function = self.made(f"inttoptr i64 {address.text} to ptr")
        given = ", ".join(f"ptr {array.text}" for array in arrays)
        return Value(REAL, (self.made(f"call double {function}({given})"),))

    def next_bits(self, generator: Value) -> Value:
        """The first number of a generator is the address of a C function, the second that of its state."""
        function = self.made(f"load ptr, ptr {generator.text}")
        state = self.made(f"load ptr, ptr {self.at(WHOLE, generator.text, constant(1))}")
        return Value(WHOLE, (self.made(f"call i64 {function}(ptr {state})"),))

    # what runs when

    def when(self, test: Callable[[], Value], yes: Callable[[], None], no: Callable[[], None] | None) -> None:
        then, otherwise, after = self.labels("then", "else", "after")
        self.branch(test(), then, otherwise if no else after)
        ends = True
        for label, part in ((then, yes), (otherwise, no)):
            if part:
                self.label(label)
                part()
                ends = ends and self.ended
                if not self.ended:
                    self.leave(after)
            else:
                ends = False
        if ends:
            self.ended = True
        else:
            self.label(after)

    def repeated(self, test: Callable[[], Value], body: Callable[[], None]) -> None:
        again, inside, after = self.labels("again", "inside", "after")
        self.leave(again)
        self.label(again)
        self.branch(test(), inside, after)
        self.label(inside)
        self._looped(body, again, after)
        self.label(after)

    def counted(self, start: Value, stop: Value, step: int, body: Callable[[Value], None], *, few: bool) -> None:
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
        self._looped(lambda: body(Value(WHOLE, (turn,))), onwards, after)
        self.label(onwards)
        turn = self.made(f"load i64, ptr {counter}")
        turn = self.made(f"add nsw i64 {turn}, {step}")
        self.emit(f"store i64 {turn}, ptr {counter}")
        self.emit(f"br label %{again}" + (", !llvm.loop !0" if few else ""))
        self.label(after)

    def onwards(self) -> None:
        self.leave(self._loops[-1][0])

    def broken(self) -> None:
        self.leave(self._loops[-1][1])

    def given(self, kind: str, value: Value | None) -> None:
        self.emit("ret void" if value is None else f"ret {kind} {value.text}")
        self.ended = True

    def shortened(self, all_of: bool, parts: Sequence[Callable[[], Value]]) -> Value:
        place = self.fresh("truth")
        self.stack.append(f"{place} = alloca i1")
        (after,) = self.labels("after")
        for at, part in enumerate(parts):
            found = part()
            self.emit(f"store i1 {found.text}, ptr {place}")
            if at < len(parts) - 1:
                (further,) = self.labels("further")
                ways = (further, after) if all_of else (after, further)
                self.emit(f"br i1 {found.text}, label %{ways[0]}, label %{ways[1]}")
                self.label(further)
        self.leave(after)
        self.label(after)
        return Value(TRUTH, (self.made(f"load i1, ptr {place}"),))

    def either(self, test: Callable[[], Value], yes: Callable[[], Value], no: Callable[[], Value]) -> Value:
        first, second, after = self.labels("then", "else", "after")
        self.branch(test(), first, second)
        ways: list[tuple[Value, int, str]] = []
        for label, part in ((first, yes), (second, no)):
            self.label(label)
            value = part()
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

    def _looped(self, body: Callable[[], None], onwards: str, after: str) -> None:
        self._loops.append((onwards, after))
        body()
        self._loops.pop()
        if not self.ended:
            self.leave(onwards)

    # lines

    def branch(self, truth: Value, yes: str, no: str) -> None:
        self.emit(f"br i1 {truth.text}, label %{yes}, label %{no}")

    def is_true(self, value: Value) -> Value:
        """Whether a number is not 0."""
        zero = "icmp ne i64 {}, 0" if value.kind == WHOLE else "fcmp une double {}, 0.0"
        return Value(TRUTH, (self.made(zero.format(value.text)),))

    def is_infinite(self, value: Value) -> Value:
        size = self.function("fabs", [value])
        return Value(TRUTH, (self.made(f"fcmp oeq double {size.text}, {literal(float('inf'))}"),))

    def leave(self, label: str) -> None:
        self.emit(f"br label %{label}")
        self.ended = True

    def label(self, label: str) -> None:
        self.lines.append(f"{label}:")
        self.ended = False

    def labels(self, *names: str) -> tuple[str, ...]:
        self.serial += 1
        return tuple(f"{name}.{self.serial}" for name in names)

    def fresh(self, name: str) -> str:
        self.serial += 1
        return f"%.{name}{self.serial}"

    def made(self, instruction: str) -> str:
        name = self.fresh("")
        self.emit(f"{name} = {instruction}")
        return name

    def emit(self, line: str) -> None:
        self.lines.append(line)
