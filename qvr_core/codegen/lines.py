"""Instructions of one function, one behind the other: arithmetic between kinds, places of memory, blocks."""

from __future__ import annotations

from qvr_core.codegen.kinds import (
    REAL,
    SINGLE,
    WHOLE,
    Unsupported,
    Value,
    constant,
    number,
    wider,
)


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

    def foreign(self, name: str, arguments: list[Value]) -> Value:
        """What a function of real numbers gives that is defined elsewhere, in LLVM or in the C library."""
        given = [self.real(argument).text for argument in arguments]
        self.declared[name] = (
            f"declare double @{name}({', '.join(['double'] * len(given))}) nounwind willreturn memory(none)"
        )
        return Value(REAL, (self.made(f"call {self.flags}double @{name}({', '.join(f'double {g}' for g in given)})"),))

    def extreme(self, order: str, one: Value, other: Value) -> Value:
        kind = wider(number(one), number(other), WHOLE)
        one, other = self.converted(one, kind), self.converted(other, kind)
        how = f"fcmp o{order} double" if kind == REAL else f"icmp s{order} i64"
        taken = self.made(f"{how} {other.text}, {one.text}")
        return Value(kind, (self.made(f"select i1 {taken}, {kind} {other.text}, {kind} {one.text}"),))

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

    def stored(self, value: Value, element: str) -> str:
        if element == SINGLE:
            return self.made(f"fptrunc double {self.real(value).text} to float")
        return self.converted(value, element).text

    def loaded(self, place: str, element: str) -> Value:
        text = self.made(f"load {element}, ptr {place}")
        if element == SINGLE:
            # what is computed is double
            return Value(REAL, (self.made(f"fpext float {text} to double"),))
        return Value(element, (text,))

    def at(self, element: str, pointer: str, index: str) -> str:
        return self.made(f"getelementptr inbounds {element}, ptr {pointer}, i64 {index}")

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
