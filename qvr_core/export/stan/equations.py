"""`solve` in Stan: the right side of the equation as a function, and the call of one of Stan's integrators."""

from __future__ import annotations

import re
from collections.abc import Sequence

from qvr_core.export.stan.declarations import declared
from qvr_core.export.stan.elements import Elements, Places, number
from qvr_core.export.stan.marginalized import looped
from qvr_core.export.stan.places import ALL, Place
from qvr_core.export.stan.shapes import Sizes
from qvr_core.export.stan.stan_names import StanNames
from qvr_core.export.stan.tables import reserved
from qvr_core.semantics.language.builtins import canonical
from qvr_core.semantics.types.model.expressions import Arrange, Builtin, Expr, Solve
from qvr_core.semantics.types.walk import until_arrows, walk

INTEGRATORS = {"rk45": "ode_rk45_tol", "stiff": "ode_bdf_tol"}


def equation_of(value: Expr) -> tuple[Solve, tuple[int, ...]] | None:
    """The equation whose solution a let is, and which axis of it (plates, times, state) each axis of the let is."""
    if isinstance(value, Solve):
        return value, ()
    if isinstance(value, Arrange) and isinstance(value.base, Solve):
        axes = [axis for axis in value.axes if axis is not None]
        return (value.base, tuple(axes)) if len(axes) == len(value.axes) else None
    return None


class Equations:
    """Writes solutions; `lines` are the functions that they call."""

    def __init__(self, elements: Elements) -> None:
        self._elements = elements
        self._names: dict[tuple[str, tuple[Sizes, ...]], str] = {}
        self.lines: list[str] = []

    def solution(self, own: str, expr: Solve, axes: Sequence[int], wanted: Sequence[str]) -> list[str]:
        """A let that is the solution of an equation for each of its plates; `wanted` are its indices."""
        elements, shapes = self._elements, self._elements.shapes
        given = [expr.initial, *expr.arguments, expr.start, expr.at]
        outer = self._plates(expr, given)
        sizes = [shapes.of(one)[expr.plates :] for one in given]
        state, (times,) = sizes[0], sizes[-1]
        rate = self._function(expr, sizes[:-2])
        whole = (*outer, times, *state)
        axes = axes or range(len(whole))
        name, names = elements.names[own], dict(zip(axes, wanted, strict=False))
        shapes.known[own] = tuple(whole[axis] for axis in axes)

        def of_equation(at: Places) -> list[str]:
            with elements.apart() as before:
                first = (
                    elements.row(expr.initial, (*at, ALL), state[0])
                    if state
                    else f"[{elements.text(expr.initial, at)}]'"
                )
                values = [
                    self._argument(one, own_sizes, at)
                    for one, own_sizes in zip(expr.arguments, sizes[1:-2], strict=True)
                ]
                start = elements.text(expr.start, at)
                when = elements.row(expr.at, (*at, ALL), times)
            found = elements.local("states")
            made = self._solved(expr, rate, found, (first, start, when, times, state[0] if state else "1"), values)
            with elements.running(names.get(len(outer), "t")) as turn:
                places = [*at, Place(turn), *([ALL] if state else [])]
                place = [str(places[axis]) for axis in axes]
                value = f"{found}[{turn}]" if state else f"{found}[{turn}][1]"
                copied = [f"{name}[{', '.join(place)}] = {value};"]
                if state:
                    with elements.running(names.get(len(outer) + 1, "s")) as part:
                        place = [part if one == str(ALL) else one for one in place]
                        copied = [
                            f"for ({part} in 1:{state[0]}) {{",
                            f"  {name}[{', '.join(place)}] = {value}[{part}];",
                            "}",
                        ]
                copied = [f"for ({turn} in 1:{times}) {{", *(f"  {line}" for line in copied), "}"]
            return [*before, *made, *copied]

        made = looped(elements, outer, [names.get(at, "i") for at in range(len(outer))], of_equation)
        made = made if outer and made[0].startswith("for (") else ["{", *(f"  {line}" for line in made), "}"]
        return [f"{declared(name, shapes.known[own])};", *made]

    def _plates(self, expr: Solve, given: Sequence[Expr]) -> Sizes:
        """How many equations there are, of each index."""
        found = ["1"] * expr.plates
        for one in given:
            for at, size in enumerate(self._elements.shapes.of(one)[: expr.plates]):
                found[at] = size if found[at] == "1" else found[at]
        return tuple(found)

    def _argument(self, expr: Expr, sizes: Sizes, at: Places) -> str:
        elements = self._elements
        match sizes:
            case []:
                return elements.text(expr, at)
            case [size]:
                return elements.row(expr, (*at, ALL), size)
            case [rows, columns]:
                found = elements.local("table")
                with elements.running("k") as k, elements.running("j") as j:
                    with elements.apart() as before:
                        text = elements.text(expr, (*at, Place(k), Place(j)))
                    elements.before += [
                        f"matrix[{rows}, {columns}] {found};",
                        f"for ({k} in 1:{rows}) {{",
                        f"  for ({j} in 1:{columns}) {{",
                        *(f"    {line}" for line in (*before, f"{found}[{k}, {j}] = {text};")),
                        "  }",
                        "}",
                    ]
                return found
            case _:
                raise elements.shapes.refused(expr, "an argument of three axes")

    def _solved(
        self, expr: Solve, rate: str, found: str, where: tuple[str, str, str, str, str], arguments: Sequence[str]
    ) -> list[str]:
        """Lines that fill `found`, the states at the times."""
        first, start, when, times, width = where
        given = "".join(f", {one}" for one in arguments)
        local = self._elements.local
        begin, at = local("start"), local("times")
        lines = [
            f"real {begin} = {start};",
            f"vector[{times}] {at} = {when};",
            f"array[{times}] vector[{width}] {found};",
        ]
        if expr.method not in INTEGRATORS:
            state, before, h, turn = local("state"), local("before"), local("h"), local("n")
            k = [local(f"k{number}") for number in range(1, 5)]
            step = local("step")
            time = f"{before} + ({step} - 1) * {h}"
            slopes = [
                f"vector[{width}] {k[0]} = {rate}({time}, {state}{given});",
                f"vector[{width}] {k[1]} = {rate}({time} + {h} / 2, {state} + {h} / 2 * {k[0]}{given});",
                f"vector[{width}] {k[2]} = {rate}({time} + {h} / 2, {state} + {h} / 2 * {k[1]}{given});",
                f"vector[{width}] {k[3]} = {rate}({time} + {h}, {state} + {h} * {k[2]}{given});",
                f"{state} += {h} / 6 * ({k[0]} + 2 * {k[1]} + 2 * {k[2]} + {k[3]});",
            ]
            return [
                *lines,
                f'if ({at}[1] < {begin}) reject("the first time is before the start");',
                f"vector[{width}] {state} = {first};",
                f"for ({turn} in 1:{times}) {{",
                f"  real {before} = {turn} == 1 ? {begin} : {at}[{turn} - 1];",
                f"  real {h} = ({at}[{turn}] - {before}) / {expr.steps};",
                f"  for ({step} in 1:{expr.steps}) {{",
                *(f"    {line}" for line in slopes),
                "  }",
                f"  {found}[{turn}] = {state};",
                "}",
            ]
        tolerances = f"{number(expr.rtol).text}, {number(expr.atol).text}, {expr.max_steps}"
        begun = local("first")
        rest = f"{begun}:{times}"
        return [
            *lines,
            f"int {begun} = 1;  // the first time behind the start: Stan does not take the start itself",
            f"while ({begun} <= {times} && {at}[{begun}] == {begin}) {{",
            f"  {found}[{begun}] = {first};",
            f"  {begun} += 1;",
            "}",
            f"if ({begun} <= {times}) {{",
            f"  {found}[{rest}] = {INTEGRATORS[expr.method]}({rate}, {first}, {begin}, "
            f"to_array_1d({at}[{rest}]), {tolerances}{given});",
            "}",
        ]

    def _function(self, expr: Solve, sizes: Sequence[Sizes]) -> str:
        """The name of dz/dt for arguments of such sizes; the state's are the first."""
        key = (expr.function, tuple(sizes))
        if key not in self._names:
            self._names[key] = self._elements.names.fresh(expr.function)
            self._write(expr, self._names[key], sizes)
        return self._names[key]

    def _write(self, expr: Solve, name: str, sizes: Sequence[Sizes]) -> None:
        calls = {canonical(one.function) for one in walk(expr.rate, until_arrows) if isinstance(one, Builtin)}
        plain = {own: own.rpartition(":")[2] for own in expr.names}
        names = StanNames(plain.values(), {*reserved(calls), name})
        inner = Elements(self._elements.reading, _Renamed(plain, names))
        shapes = inner.shapes
        shapes.known.update(zip(expr.names, ((), *sizes), strict=True))
        time, state, *others = (names[own] for own in plain.values())
        taken = [f"real {time}", f"vector {state}"]
        alone = not sizes[0]
        for own, own_sizes in zip(others, sizes[1:], strict=True):
            if len(own_sizes) > 2:
                raise shapes.refused(expr, "an argument of three axes")
            taken.append(f"{('real', 'vector', 'matrix')[len(own_sizes)]} {own}")
        with inner.apart() as before:
            value = f"[{inner.text(expr.rate)}]'" if alone else inner.row(expr.rate, (ALL,), sizes[0][0])
        lines = [*before, f"return {value};"]
        if alone:
            # the state of a single equation is a vector of one
            lines = [re.sub(rf"\b{state}\b", f"{state}[1]", line) for line in lines]
        open_size = next(
            (one for one in shapes.sizes.values() if any(re.search(rf"\b{one}\b", line) for line in lines)), None
        )
        if open_size is not None:
            raise shapes.refused(expr, f"an equation that reads `{open_size}`, a size that comes with the data,")
        self.lines += [f"vector {name}({', '.join(taken)}) {{", *(f"  {line}" for line in lines), "}"]
        self._elements.used |= inner.used


class _Renamed(StanNames):
    """The names of a function by what the program's model calls them."""

    def __init__(self, plain: dict[str, str], names: StanNames) -> None:
        super().__init__((), ())
        self._plain, self._names = plain, names

    def __getitem__(self, name: str) -> str:
        return self._names[self._plain.get(name, name)]

    def __contains__(self, name: str) -> bool:
        return name in self._plain

    def fresh(self, name: str) -> str:
        return self._names.fresh(name)

    def is_taken(self, name: str) -> bool:
        return self._names.is_taken(name)
