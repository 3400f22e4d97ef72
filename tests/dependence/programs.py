"""Programs and their graphs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from qvr_core.analysis import analyse
from qvr_core.dependence import dependence_graph
from qvr_core.syntax.source import Cursor

if TYPE_CHECKING:
    from qvr_core.dependence.graph import Graph

HEAD = "object One : FinSet 1\nobject Time : FinSet 6\nobject Item : FinSet 4\nobject Kind : FinSet 3\n"


def graph_of(steps: str) -> Graph:
    """The graph of a program with these steps."""
    lines = "\n".join(f"    {line}" for line in steps.strip().splitlines())
    snapshot = analyse(f"{HEAD}program p : One -> One\n{lines}\n")
    wrong = [f"{d.range.start}: {d.message}" for d in snapshot.diagnostics() if d.severity.name == "ERROR"]
    assert not wrong, wrong
    return dependence_graph(snapshot.model.programs["p"], snapshot.model)


def linear(edges: str, observed: Collection[str] = (), weights: Mapping[tuple[str, str], float] | None = None) -> str:
    """The steps of a linear Gaussian program: `a > b, b > c`, or `a` alone, parents before their children."""
    parents: dict[str, list[str]] = {}
    for part in edges.split(","):
        source, _, target = (each.strip() for each in part.partition(">"))
        parents.setdefault(source, [])
        if target:
            parents.setdefault(target, []).append(source)
    steps: list[str] = []
    for name in in_order(parents):
        terms = [f"{(weights or {}).get((other, name), 1.0)} * {other}" for other in parents[name]]
        word = "observe" if name in observed else "sample"
        steps.append(f"{word} {name} <- Normal({' + '.join(terms) or '0.0'}, 1.0)")
    return "\n".join([*steps, f"return {next(iter(parents))}"])


def in_order(parents: Mapping[str, Iterable[str]]) -> list[str]:
    order: list[str] = []
    while len(order) < len(parents):
        order += [name for name, above in parents.items() if name not in order and set(above) <= set(order)]
    return order


def cursor_at(text: str, mark: str = "$0") -> tuple[str, Cursor]:
    before, _, after = text.partition(mark)
    return before + after, Cursor(before.count("\n"), len(before) - before.rfind("\n") - 1)
