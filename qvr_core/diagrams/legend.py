"""What the shapes of a program's diagram say, as a frame of the diagram itself, so that every printer draws it."""

from __future__ import annotations

from dataclasses import replace

from qvr_core.diagrams.graph import Box, Diagram, Node, nodes, put, sheet

MEANINGS = {
    ("data", ""): "data",
    ("site", "observed"): "observed",
    ("site", "imputed"): "observed, gaps imputed",
    ("site", "latent"): "latent",
    ("site", "marginalized"): "summed out",
    ("site", "predicted"): "predicted",
    ("let", ""): "deterministic",
    ("score", ""): "a score of one's own",
}
"""(kind, role) of a node -> what it is."""


def meanings(graph: Diagram) -> list[tuple[str, str, str]]:
    """(kind, role, meaning) of the nodes of a program that has latents; none for a pipeline of arrows."""
    there = {(node.kind, node.role) for node in nodes(graph)}
    found = [(kind, role, text) for (kind, role), text in MEANINGS.items() if (kind, role) in there]
    drawn = any(role in ("latent", "marginalized", "predicted") for _, role, _ in found)
    return found if len(found) > 1 and drawn else []


def with_legend(graph: Diagram) -> Diagram:
    """The diagram with its legend; the same one where there is nothing to tell apart."""
    found = meanings(graph)
    if not found:
        return graph
    page = sheet(graph)
    box = Box(id="legend", kind="legend", label="Legend")
    told = Diagram(dict(graph.nodes), graph.leaving, replace(page, boxes=(*page.boxes, box)))
    for kind, role, text in found:
        put(told, Node(id=f"legend_{role or kind}", kind=kind, role=role, label=text, box=box.id))
    if any(node.returned for node in nodes(graph)):
        put(told, Node(id="legend_returned", kind="output", label="returned", returned=True, box=box.id))
    return told
