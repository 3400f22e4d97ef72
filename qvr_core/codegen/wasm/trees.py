"""WebAssembly of one function: what `target.Target` asks for.

A value is the tree of instructions that computes it, written where it is used; statements are written one behind the
other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import FunctionType
from typing import NamedTuple, Protocol

from qvr_core.codegen.intrinsics import BLOCK
from qvr_core.codegen.kinds import NOTHING, REAL, SINGLE, TRUTH, WHOLE, Array, Kind, Unsupported, Value, number, wider
from qvr_core.codegen.wasm.encoding import END, F64, I32, I64, VOID, f64, i32, i64, unsigned

TYPES = {REAL: F64, WHOLE: I64, TRUTH: I32}
SIZES = {REAL: 8, WHOLE: 8, SINGLE: 4}
_OF_REALS = {"add": 0xA0, "sub": 0xA1, "mul": 0xA2, "div": 0xA3}
_OF_WHOLES = {
    "add": 0x7C, "sub": 0x7D, "mul": 0x7E, "sdiv": 0x7F, "srem": 0x81, "and": 0x83, "or": 0x84, "xor": 0x85,
    "shl": 0x86, "ashr": 0x87, "lshr": 0x88,
}  # fmt: skip
_COMPARED = {
    REAL: {"eq": 0x61, "ne": 0x62, "lt": 0x63, "gt": 0x64, "le": 0x65, "ge": 0x66},
    WHOLE: {"eq": 0x51, "ne": 0x52, "lt": 0x53, "gt": 0x55, "le": 0x57, "ge": 0x59},
    TRUTH: {"eq": 0x46, "ne": 0x47},
}
_CONVERTED = {
    (TRUTH, WHOLE): b"\xad", (TRUTH, REAL): b"\xb8", (WHOLE, REAL): b"\xb9",
    # a number that is too large becomes the largest one, as nothing here may end the page's run
    (REAL, WHOLE): b"\xfc\x06",
}  # fmt: skip
_FUNCTIONS = {"fabs": 0x99, "ceil": 0x9B, "floor": 0x9C, "sqrt": 0x9F, "copysign": 0xA6}
_LOADED = {WHOLE: (0x29, 3), SINGLE: (0x2A, 2), REAL: (0x2B, 3)}
_STORED = {WHOLE: (0x37, 3), SINGLE: (0x38, 2), REAL: (0x39, 3)}
GET, SET, TEE = b"\x20", b"\x21", b"\x22"
BLOCK_OPEN, LOOP, IF, ELSE, BRANCH, BRANCH_IF = b"\x02", b"\x03", b"\x04", b"\x05", b"\x0c", b"\x0d"
UNREACHABLE, RETURN, CALL, DROP, SELECT, NOT, WRAP = b"\x00", b"\x0f", b"\x10", b"\x1a", b"\x1b", b"\x45", b"\xa7"
MULTIPLY, ADD, SHIFT = b"\x6c", b"\x6a", b"\x74"


class Shared:
    """A tree whose value is kept in a local where it is first used."""

    __slots__ = ("local", "tree", "type")

    def __init__(self, tree: Tree, of: int) -> None:
        self.tree, self.type = tree, of
        self.local: int | None = None


Tree = bytes | tuple["Tree", ...] | Shared


class Place(NamedTuple):
    """An address in memory, and how far behind it."""

    address: Tree
    behind: int


class Around(Protocol):
    """What a function needs of the module around it."""

    def of_c(self, name: str) -> FunctionType:
        """The function of the subset for one of C's."""
        ...

    def called(self, function: FunctionType, kinds: Sequence[Kind]) -> tuple[str, str]: ...

    def number(self, name: str) -> int:
        """Of a function that is there."""
        ...

    def density(self) -> int:
        """The number of the module's density."""
        ...

    def random(self) -> FunctionType:
        """What gives the next bits of a generator."""
        ...

    def address(self, table: str) -> int: ...

    def reserved(self, size: int) -> int:
        """Where so many bytes are free."""
        ...


def types_of(kind: Kind) -> list[int]:
    """WebAssembly's types of the parts of a value."""
    return [I32, *([I64] * kind.rank)] if isinstance(kind, Array) else [TYPES[kind]]


class Trees:
    """A function while it grows."""

    def __init__(self, around: Around, kinds: Sequence[Kind]) -> None:
        self.around = around
        self.code = bytearray()
        self.locals: list[int] = []
        self.ended = False
        self.arguments: list[Value] = []
        self._given = 0
        self._depth = 0
        self._loops: list[tuple[int, int]] = []
        """The blocks that `continue` and `break` leave."""
        for kind in kinds:
            types = types_of(kind)
            self.arguments.append(Value(kind, tuple(self._read(self._given + at) for at in range(len(types)))))
            self._given += len(types)

    def constant(self, value: float) -> Value:
        if isinstance(value, bool):
            return Value(TRUTH, (i32(value),), value)
        if isinstance(value, int):
            return Value(WHOLE, (i64(value),), value)
        return Value(REAL, (f64(value),), value)

    def arithmetic(self, name: str, one: Value, other: Value, *, bounded: bool = False) -> Value:
        code = (_OF_WHOLES if one.kind == WHOLE else _OF_REALS)[name]
        return Value(one.kind, ((one.text, other.text, bytes([code])),))

    def bits(self, name: str, one: Value, other: Value) -> Value:
        return Value(WHOLE, ((one.text, other.text, bytes([_OF_WHOLES[name]])),))

    def negative(self, value: Value) -> Value:
        tree = (i64(0), value.text, b"\x7d") if value.kind == WHOLE else (value.text, b"\x9a")
        return Value(value.kind, (tree,))

    def compared(self, name: str, one: Value, other: Value) -> Value:
        assert isinstance(one.kind, str)
        return Value(TRUTH, ((one.text, other.text, bytes([_COMPARED[one.kind][name]])),))

    def joined(self, name: str, one: Value, other: Value) -> Value:
        return Value(TRUTH, ((one.text, other.text, b"\x71" if name == "and" else b"\x72"),))

    def shortened(self, all_of: bool, parts: Sequence[Callable[[], Value]]) -> Value:
        first, *rest = parts
        found: Tree = first().text
        if not rest:
            return Value(TRUTH, (found,))
        further = self.shortened(all_of, rest).text
        yes, no = (further, i32(0)) if all_of else (i32(1), further)
        return Value(TRUTH, ((found, IF, bytes([I32]), yes, ELSE, no, END),))

    def inverted(self, truth: Value) -> Value:
        return Value(TRUTH, ((truth.text, NOT),))

    def is_true(self, value: Value) -> Value:
        return self.compared("ne", value, self.constant(0 if value.kind == WHOLE else 0.0))

    def is_nan(self, value: Value) -> Value:
        value = self.shared(value)
        return self.compared("ne", value, value)

    def is_infinite(self, value: Value) -> Value:
        return self.compared("eq", self.function("fabs", [value]), self.constant(float("inf")))

    def selected(self, truth: Value, one: Value, other: Value) -> Value:
        return Value(one.kind, ((one.text, other.text, truth.text, SELECT),))

    def either(self, test: Callable[[], Value], yes: Callable[[], Value], no: Callable[[], Value]) -> Value:
        truth, one, other = test(), yes(), no()
        kind = wider(number(one), number(other))
        one, other = self.converted(one, kind), self.converted(other, kind)
        return Value(kind, ((truth.text, IF, bytes([TYPES[kind]]), one.text, ELSE, other.text, END),))

    def extreme(self, order: str, one: Value, other: Value) -> Value:
        kind = wider(number(one), number(other), WHOLE)
        one, other = (self.shared(self.converted(value, kind)) for value in (one, other))
        return self.selected(self.compared(order, other, one), other, one)

    def function(self, name: str, arguments: list[Value]) -> Value:
        arguments = [self.real(argument) for argument in arguments]
        if name in _FUNCTIONS:
            return Value(REAL, ((*(argument.text for argument in arguments), bytes([_FUNCTIONS[name]])),))
        called, result = self.around.called(self.around.of_c(name), [REAL] * len(arguments))
        return self.call(called, result, arguments)

    def real(self, value: Value) -> Value:
        return self.converted(value, REAL)

    def converted(self, value: Value, kind: str) -> Value:
        if value.kind == kind:
            return value
        if value.constant is not None:
            return self.constant(float(value.constant) if kind == REAL else int(value.constant))
        if isinstance(value.kind, Array) or (value.kind, kind) not in _CONVERTED:
            raise Unsupported(f"{value.kind} as {kind}")
        return Value(kind, ((value.text, _CONVERTED[value.kind, kind]),))

    def as_real(self, bits: Value) -> Value:
        return Value(REAL, ((bits.text, b"\xbf"),))

    def as_bits(self, real: Value) -> Value:
        return Value(WHOLE, ((real.text, b"\xbd"),))

    def shared(self, value: Value) -> Value:
        if value.constant is not None or (isinstance(value.text, bytes) and value.text[:1] == GET):
            return value
        return Value(value.kind, tuple(map(Shared, value.parts, types_of(value.kind))))

    def held(self, value: Value) -> Value:
        if value.constant is not None:
            return value
        place = self.variable("", value.kind)
        self.write(place, value)
        return self.read(place)

    # memory

    def variable(self, name: str, kind: Kind) -> Value:
        return Value(kind, tuple(self._local(one) for one in types_of(kind)))

    def read(self, held: Value) -> Value:
        return Value(held.kind, tuple(map(self._read, held.parts)))

    def write(self, held: Value, value: Value) -> None:
        for part in value.parts:
            self._put(part)
        for place in reversed(held.parts):
            self.code += SET + unsigned(place)

    def at(self, element: str, pointer: Tree, index: Value) -> Place:
        size = SIZES[element]
        if index.constant is not None and index.constant >= 0:
            return Place(pointer, int(index.constant) * size)
        return Place((pointer, index.text, WRAP, i32(size.bit_length() - 1), SHIFT, ADD), 0)

    def pointer(self, place: Place) -> Tree:
        return (place.address, i32(place.behind), ADD) if place.behind else place.address

    def loaded(self, place: Place, element: str) -> Value:
        code, align = _LOADED[element]
        tree = (place.address, bytes([code, align]), unsigned(place.behind))
        return Value(REAL, ((tree, b"\xbb"),)) if element == SINGLE else Value(element, (tree,))

    def stored(self, place: Place, element: str, value: Value) -> None:
        code, align = _STORED[element]
        number: Tree = (self.real(value).text, b"\xb6") if element == SINGLE else self.converted(value, element).text
        self._put((place.address, number, bytes([code, align]), unsigned(place.behind)))

    def table(self, name: str) -> Tree:
        return i32(self.around.address(name))

    def lane(self) -> Value:
        return Value(Array(REAL, 0), (i32(self.around.reserved(8 * BLOCK)),))

    # calls

    def call(self, name: str, result: str, arguments: Sequence[Value]) -> Value:
        return self._called(self.around.number(name), result, arguments)

    def dropped(self, value: Value) -> None:
        for part in value.parts:
            self._put((part, DROP))

    def density(self, address: Value, arrays: Sequence[Value]) -> Value:
        return self._called(self.around.density(), REAL, [Value(Array(REAL, 0), a.parts[:1]) for a in arrays])

    def next_bits(self, generator: Value) -> Value:
        return self.call(*self.around.called(self.around.random(), [generator.kind]), [generator])

    def _called(self, function: int, result: str, arguments: Sequence[Value]) -> Value:
        tree = (*(part for argument in arguments for part in argument.parts), CALL, unsigned(function))
        if result == NOTHING:
            self._put(tree)
            return Value(NOTHING, ())
        return Value(result, (tree,))

    # what runs when

    def when(self, test: Callable[[], Value], yes: Callable[[], None], no: Callable[[], None] | None) -> None:
        self._put(test().text)
        self._open(IF)
        yes()
        ends, self.ended = self.ended, False
        if no:
            self.code += ELSE
            no()
        ends, self.ended = ends and self.ended, False
        self._close()
        self.ended = ends

    def repeated(self, test: Callable[[], Value], body: Callable[[], None]) -> None:
        after, again = self._open(BLOCK_OPEN), self._open(LOOP)
        self._put((test().text, NOT))
        self._branch(BRANCH_IF, after)
        self._looped(body, again, after)
        self._branch(BRANCH, again)
        self._close()
        self._close()

    def counted(self, start: Value, stop: Value, step: int, body: Callable[[Value], None], *, few: bool) -> None:
        counter = self.variable("", WHOLE)
        self.write(counter, start)
        stop = self.held(stop)
        after, again = self._open(BLOCK_OPEN), self._open(LOOP)
        self._put((self.compared("lt" if step > 0 else "gt", self.read(counter), stop).text, NOT))
        self._branch(BRANCH_IF, after)
        inside = self._open(BLOCK_OPEN)
        self._looped(lambda: body(self.read(counter)), inside, after)
        self._close()
        self.write(counter, self.arithmetic("add", self.read(counter), self.constant(step)))
        self._branch(BRANCH, again)
        self._close()
        self._close()

    def onwards(self) -> None:
        self._branch(BRANCH, self._loops[-1][0])
        self.ended = True

    def broken(self) -> None:
        self._branch(BRANCH, self._loops[-1][1])
        self.ended = True

    def given(self, kind: str, value: Value | None) -> None:
        if value is not None:
            self._put(value.text)
        self.code += RETURN
        self.ended = True

    def finished(self, result: str) -> bytes:
        """All instructions."""
        return bytes(self.code if result == NOTHING else self.code + UNREACHABLE)

    def _looped(self, body: Callable[[], None], onwards: int, after: int) -> None:
        self._loops.append((onwards, after))
        body()
        self._loops.pop()
        self.ended = False

    def _open(self, code: bytes) -> int:
        self.code += code + bytes([VOID])
        self._depth += 1
        return self._depth

    def _close(self) -> None:
        self.code += END
        self._depth -= 1

    def _branch(self, code: bytes, block: int) -> None:
        self.code += code + unsigned(self._depth - block)

    def _local(self, of: int) -> int:
        self.locals.append(of)
        return self._given + len(self.locals) - 1

    def _read(self, local: int) -> bytes:
        return GET + unsigned(local)

    def _put(self, tree: Tree) -> None:
        if isinstance(tree, bytes):
            self.code += tree
        elif isinstance(tree, tuple):
            for part in tree:
                self._put(part)
        elif tree.local is not None:
            self.code += GET + unsigned(tree.local)
        else:
            self._put(tree.tree)
            tree.local = local = self._local(tree.type)
            self.code += TEE + unsigned(local)
