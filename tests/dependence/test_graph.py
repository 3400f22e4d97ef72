"""What a program's graph holds: lets, data, plates, chains, sums, scores, weights."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import networkx as nx
import pytest

from qvr_core.analysis import analyse
from qvr_core.dependence import NoAnswer, blanket, dependence_graph, separation
from qvr_core.dependence.json_and_graphml import to_graphml, to_json
from qvr_core.dependence.unrolled import unrolled
from qvr_core.ide.hover import hover
from qvr_core.ide.prose import plain
from tests.dependence.programs import HEAD, cursor_at, graph_of

HIERARCHY = """
data x : Item
data group : Item -> Kind
sample mu <- Normal(0.0, 1.0)
sample level : Kind <- Normal(mu, 1.0)
sample sd <- HalfNormal(1.0)
let mean = level[group] + x
observe y : Item <- Normal(mean, sd)
return mu
"""
STATES = """
sample rho <- Normal(0.0, 0.5)
sample q <- HalfNormal(1.0)
sample x[t : Time] <- Normal(rho * x[t - 1], q) from 0.0
sample r <- HalfNormal(1.0)
observe y[t : Time] <- Normal(x[t], r)
return rho
"""
VOLATILITY = """
sample a <- HalfNormal(1.0)
sample b <- HalfNormal(1.0)
let v[t : Time] = a + b * y[t - 1] ^ 2 from a
observe y[t : Time] <- Normal(0.0, sqrt(v[t]))
return a
"""
MIXTURE = """
sample weights <- Dirichlet(1.0) [over=Kind]
sample centre : Kind <- Normal(0.0, 3.0)
sample sd <- HalfNormal(1.0)
marginalize z : Item <- Categorical(weights)
    let mean = centre[z]
    observe y : Item <- Normal(mean, sd)
return weights
"""


def edges(graph: nx.DiGraph) -> dict[str, str]:
    """The parents of each name that has some."""
    return {name: " ".join(above) for name in graph if (above := sorted(graph.predecessors(name)))}


def test_plates_data_and_lets() -> None:
    graph = graph_of(HIERARCHY)
    assert edges(graph) == {"level": "mu", "mean": "group level x", "y": "mean sd"}
    assert {name: graph.nodes[name]["kind"] for name in graph} == {
        **{"x": "data", "group": "data", "mu": "latent", "level": "latent", "sd": "latent"},
        **{"mean": "let", "y": "observed"},
    }
    assert [graph.nodes[name]["plates"] for name in ("x", "level", "mean", "y", "mu")] == [
        *(("Item",), ("Kind",), ("Item",), ("Item",), ()),
    ]
    assert graph.nodes["sd"]["family"] == "HalfNormal" and graph.nodes["mu"]["returned"]


def test_a_let_is_known_where_all_that_it_reads_is() -> None:
    graph = graph_of(HIERARCHY)
    assert separation(graph, "mu", "y", ["level"]).independent
    assert separation(graph, "mu", "y", ["mean"]).independent
    assert separation(graph, "mean", "y", ["level"]).determined
    assert not separation(graph, "level", "sd", given_data=True).independent


def test_data_is_no_variable() -> None:
    with pytest.raises(NoAnswer, match="`x` is data: a constant"):
        separation(graph_of(HIERARCHY), "x", "y")


def test_blankets_see_through_lets() -> None:
    assert blanket(graph_of(HIERARCHY), "level") == ("mu", "sd", "y")


def test_a_chain_reads_its_own_earlier_elements() -> None:
    graph = graph_of(STATES)
    assert graph.edges["x", "x"]["lags"] == (1,) and graph.edges["x", "y"]["lags"] == (0,)
    assert separation(graph, "rho", "r").independent
    assert not separation(graph, "rho", "r", ["y"]).independent
    assert separation(graph, "rho", "r", ["x", "y"]).independent
    assert separation(graph, "rho", "y", ["x"]).independent
    assert nx.is_directed_acyclic_graph(unrolled(graph))


def test_the_first_elements_of_a_chain_depend_on_what_they_start_from() -> None:
    graph = graph_of(
        STATES.replace("from 0.0", "from Normal(r0, 1.0)").replace(
            "sample x", "sample r0 <- Normal(0.0, 1.0)\nsample x"
        )
    )
    assert graph.edges["r0", "x"]["elements"] == "first" and graph.edges["rho", "x"]["elements"] == "later"
    assert separation(graph, "r0", "rho", ["x"]).independent
    assert not separation(graph, "r0", "rho", ["y"]).independent
    assert not separation(graph, "q", "rho", ["x"]).independent


def test_names_that_read_each_others_earlier_elements() -> None:
    graph = graph_of(VOLATILITY)
    assert {"v", "y"} in nx.strongly_connected_components(graph)
    assert nx.is_directed_acyclic_graph(unrolled(graph))
    assert separation(graph, "a", "b").independent
    assert not separation(graph, "a", "b", given_data=True).independent
    assert not separation(graph, "a", "y").independent
    assert blanket(graph, "a") == ("b", "y")


def test_earlier_elements_that_an_expression_chooses() -> None:
    graph = graph_of(
        "sample phi[j : Kind] <- Normal(0.0, 0.5)\nsample a <- HalfNormal(1.0)\n"
        "let v[t : Time] = a + sum(phi[j] * y[t - 1 - j] for j : Kind) from a\n"
        "observe y[t : Time] <- Normal(0.0, 1.0 + exp(v[t]))\nreturn a"
    )
    assert graph.edges["y", "v"]["gathered"] and not graph.edges["a", "v"]["gathered"]
    assert set(unrolled(graph).predecessors(("v", 1))) == {("phi", 0), ("a", 0), ("y", 0)}
    assert separation(graph, "a", "phi").independent and not separation(graph, "a", "phi", ["y"]).independent
    alone = graph_of(
        "sample phi[j : Kind] <- Normal(0.0, 0.5)\n"
        "observe y[t : Time] <- Normal(sum(phi[j] * y[t - 1 - j] for j : Kind), 1.0)\nreturn phi"
    )
    assert alone.edges["y", "y"]["lags"] == (1,)


def test_an_element_that_depends_on_itself_has_no_answer() -> None:
    text = f"{HEAD}program p : One -> One\n    let (l, b)[t : Time] = (b[t], l[t] - l[t - 1]) from (0.0, 0.0)\n"
    text += "    sample x <- Normal(0.0, 1.0)\n    sample z <- Normal(0.0, 1.0)\n    return x\n"
    model = analyse(text).model
    with pytest.raises(NoAnswer, match="depend on each other at the same element"):
        separation(dependence_graph(model.programs["p"], model), "x", "z")


def test_what_is_summed_out_is_a_variable() -> None:
    graph = graph_of(MIXTURE)
    assert graph.nodes["z"]["kind"] == "summed"
    assert edges(graph) == {"z": "weights", "mean": "centre z", "y": "mean sd"}
    assert separation(graph, "weights", "centre").independent
    assert not separation(graph, "weights", "centre", given_data=True).independent
    assert separation(graph, "weights", "centre", ["z"], given_data=True).independent
    assert separation(graph, "weights", "y", ["z"]).independent


def test_a_score_is_observed() -> None:
    graph = graph_of(
        "sample a <- Normal(0.0, 1.0)\nsample b <- Normal(0.0, 1.0)\nsample c <- Normal(0.0, 1.0)\n"
        "let gap = a - b\nscore near = -(gap * gap)\nreturn a"
    )
    assert not separation(graph, "a", "b").independent and separation(graph, "a", "c").independent
    assert blanket(graph, "a") == ("b",)


def test_predictions_depend_on_what_they_are_made_of() -> None:
    graph = graph_of(
        "sample mu <- Normal(0.0, 1.0)\nobserve y : Item <- Normal(mu, 1.0)\n"
        "predict again <- Normal(mu, 1.0)\nreturn mu"
    )
    assert graph.nodes["again"]["kind"] == "predicted"
    assert not separation(graph, "again", "y").independent and separation(graph, "again", "y", ["mu"]).independent


def test_weights_with_a_prior_are_shared_by_all_who_use_them() -> None:
    text = (
        "object A : FinSet 3\nobject B : Real 1\nmorphism f : A -> B [role=embed] ~ Normal(0.0, 1.0)\n"
        "program p : A -> B\n    data here : Item -> A\n    data there : Item -> A\n"
        "    observe u : Item <- Normal(f(here), 1.0)\n    observe v : Item <- Normal(f(there), 1.0)\n    return u\n"
    )
    snapshot = analyse(HEAD + text)
    graph = dependence_graph(snapshot.model.programs["p"], snapshot.model)
    assert {"u", "v"} <= set(graph.successors("f"))
    assert not separation(graph, "u", "v").independent and separation(graph, "u", "v", ["f"]).independent


def test_every_program_of_the_examples_has_a_graph_and_an_order() -> None:
    from pathlib import Path

    examples = sorted((Path(__file__).parents[2] / "examples").glob("?*.qvr"))
    assert len(examples) > 5
    for path in examples:
        model = analyse(path.read_text(encoding="utf-8")).model
        for program in model.programs.values():
            graph = dependence_graph(program, model)
            assert nx.is_directed_acyclic_graph(unrolled(graph)), path
            for name in graph:
                assert name not in blanket(graph, name)


def test_json_is_read_back_by_networkx() -> None:
    graph = graph_of(STATES)
    found = nx.node_link_graph(json.loads(to_json(graph)), edges="edges")
    assert set(found.edges) == set(graph.edges) and found.nodes["x"]["kind"] == "latent"
    assert found.edges["x", "x"]["lags"] == [1] and found.name == "p"


def test_graphml_is_read_back_by_networkx() -> None:
    graph = graph_of(STATES)
    text = to_graphml(graph)
    ElementTree.fromstring(text.encode())
    found = nx.parse_graphml(text)
    assert set(found.edges) == set(graph.edges) and found.nodes["x"]["plates"] == "Time"


def test_a_hover_tells_what_shields_a_site() -> None:
    lines = "\n".join(f"    {line}" for line in HIERARCHY.strip().splitlines()).replace("level :", "le$0vel :")
    text, cursor = cursor_at(f"{HEAD}program p : One -> One\n{lines}\n")
    snapshot = analyse(text)
    told = hover(snapshot, cursor, blankets=True)
    assert told is not None and "Markov blanket: mu, sd, y" in plain(told.content)
    assert "Markov" not in plain(hover(snapshot, cursor).content)
