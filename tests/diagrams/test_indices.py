"""Diagrams of programs in index notation."""

from __future__ import annotations

from qvr_core.analysis import Analyzer
from qvr_core.diagrams import build, to_dot, to_mermaid
from qvr_core.diagrams.graph import nodes, sheet, wires

TEXT = """\
object Person : FinSet 4
object Effect : FinSet 2
object Row : FinSet 50
object Time : FinSet 30
program p : Row -> Real 1
    data person : Row -> Person
    sample u[p : Person, e : Effect] <- Normal(0.0, 1.0)
    let eta[i : Row] = sum(u[person[i], e] * x[i, e] for e : Effect)
    observe y[i : Row] <- Normal(eta[i], 1.0)
    let v[t : Time] = 0.1 + 0.2 * z[t - 1]^2 + 0.5 * v[t - 1] from 1.0
    observe z[t : Time] <- Normal(0.0, sqrt(v[t]))
    sample h[t : Time] <- Normal(0.5 * h[t - 1] + 0.1 * h[t - 2], 1.0) from Normal(0.0, 2.0)
    return eta
"""


def test_indices_are_nested_frames_and_labels_are_as_written() -> None:
    graph = build(Analyzer(TEXT).snapshot(), "p")
    boxes = {box.id: box for box in sheet(graph).boxes}
    found = {node.label: node for node in nodes(graph) if node.kind != "output"}

    def frames(label: str) -> list[str]:
        path, box = list[str](), found[label].box
        while box is not None:
            path.append(boxes[box].label)
            box = boxes[box].parent
        return path

    assert frames("u") == ["Effect (2)", "Person (4)"]
    assert frames("eta") == frames("y") == frames("person") == ["Row (50)"]
    assert frames("v") == frames("z") == frames("h") == ["Time (30)"]
    assert found["eta"].detail == "eta = sum(u[person[i], e] * x[i, e] for e : Effect)"
    assert found["y"].note == "Normal(eta[i], 1.0)"


def test_steps_that_read_one_another_are_wired_and_a_chain_to_itself() -> None:
    graph = build(Analyzer(TEXT).snapshot(), "p")
    found = {(graph.nodes[a].label, graph.nodes[b].label): wire for a, b, wire in wires(graph)}
    assert {("person", "eta"), ("u", "eta"), ("eta", "y"), ("z", "v"), ("v", "z")} <= set(found)
    assert (found["v", "v"].kind, found["v", "v"].label) == ("state", "1 back")
    assert (found["h", "h"].kind, found["h", "h"].label) == ("state", "2 back")
    assert ("z", "z") not in found
    assert [node.kind for node in nodes(graph) if node.label == "z"] == ["site"]


def test_every_format_shows_them() -> None:
    graph = build(Analyzer(TEXT).snapshot(), "p")
    for text in (to_dot(graph), to_mermaid(graph)):
        assert "Person (4)" in text and "2 back" in text


def test_a_model_without_its_text_is_drawn_as_well() -> None:
    graph = build(Analyzer(TEXT).snapshot().model, "p")
    assert next(node.note for node in nodes(graph) if node.label == "v").startswith("0.1 + 0.2 * z[t - 1] ^ 2")


HIDDEN = """\
object Elk, Hour, Fix : FinSet _
object State : {resting, roaming}
program p : Fix -> Fix
    data elk : Fix -> Elk
    data hour : Fix -> Hour
    sample P[s : State] <- Dirichlet(ones(State)) [over=State]
    let near[e : Elk, t : Hour] = 0.1 * t
    marginalize z[e : Elk, t : Hour] : State <- Categorical(P[z[e, t - 1]]) from Categorical([0.5, 0.5])
        observe step[i : Fix] <- Normal(z[elk[i], hour[i]] + near[elk[i], hour[i]], 1.0)
    marginalize k[t : Hour] : State <- Categorical([0.5, 0.5])
        observe y[t : Hour] <- Normal(k[t], 1.0)
    return P
"""


def test_what_is_summed_out_stands_in_its_plates_and_is_wired_to_what_reads_it() -> None:
    graph = build(Analyzer(HIDDEN).snapshot(), "p")
    boxes = {box.id: box for box in sheet(graph).boxes}
    found = {node.label: node for node in nodes(graph) if node.kind != "output"}

    def frames(label: str) -> list[str]:
        box = found[label].box
        path = list[str]()
        while box is not None:
            path.append(boxes[box].label)
            box = boxes[box].parent
        return path

    assert frames("near") == ["Hour", "Elk"]
    assert frames("z") == ["Hour", "Elk", "Σ over z"]
    assert frames("step") == ["Fix", "Σ over z"]
    assert frames("k") == frames("y") == ["Hour", "Σ over k"]
    made = {(graph.nodes[a].label, graph.nodes[b].label): wire for a, b, wire in wires(graph)}
    assert {("z", "step"), ("elk", "step"), ("hour", "step"), ("k", "y")} <= set(made)
    assert made["elk", "step"].kind == "index"
    assert made["z", "z"].label == "1 back"
    assert ("k", "k") not in made


def test_a_set_is_no_data_and_data_are_shaded_as_observed() -> None:
    graph = build(Analyzer(HIDDEN).snapshot(), "p")
    assert {node.label for node in nodes(graph) if node.kind == "data"} == {"elk", "hour"}
    assert "class elk,hour,legend_data data" in to_mermaid(graph)
    shaded = [line.split()[0] for line in to_dot(graph, legend=False).splitlines() if "#d9d5e3" in line]
    assert sorted(shaded) == ["elk", "hour", "step", "y"]


def test_a6_what_reads_earlier_elements_of_another_step_closes_no_cycle() -> None:
    """Two steps that read each other, one of them its earlier elements: that wire is dashed and says how far back."""
    graph = build(Analyzer(TEXT).snapshot(), "p")
    found = {(graph.nodes[a].label, graph.nodes[b].label): wire for a, b, wire in wires(graph)}
    assert (found["z", "v"].kind, found["z", "v"].label) == ("state", "1 back")
    assert found["v", "z"].kind == "value"
    text = """\
object Time : FinSet 30
program q : Time -> Real 1
    sample a <- Normal(0.0, 1.0)
    sample change[t : Time] <- Normal(0.0, 1.0)
    let level[t : Time] = level[t - 1] + change[t - 1] from a
    observe y[t : Time] <- Normal(level[t] + change[t], 1.0)
    return level
"""
    graph = build(Analyzer(text).snapshot(), "q")
    found = {(graph.nodes[a].label, graph.nodes[b].label): wire for a, b, wire in wires(graph)}
    assert (found["change", "level"].kind, found["change", "level"].label) == ("state", "1 back")
    assert found["change", "y"].kind == "value"
