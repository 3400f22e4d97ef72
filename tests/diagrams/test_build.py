"""From a typed model to the graph that a user sees."""

from pathlib import Path

import pytest

from qvr_core.analysis import Analyzer
from qvr_core.diagrams import Diagram, NoDiagram, build, nodes, sheet, to_dot, to_mermaid, to_tikz, wires
from qvr_core.diagrams.legend import meanings
from tests.diagrams import models
from tests.standalone import standalone

SCHOOLS = """\
object School : FinSet 8
program p : School -> Real 1
    data sigma : School
    sample mu <- Normal(0.0, 5.0)
    sample tau <- HalfNormal(5.0)
    sample z : School <- Normal(0.0, 1.0)
    let theta = mu + tau * z
    observe y : School <- Normal(theta, sigma)
    return mu
"""
RADON = """\
object County, House : FinSet _
program p : House -> Real 1
    data county : House -> County
    data floor : House
    data uranium : County
    sample b <- Normal(0.0, 1.0)
    sample level[c : County] <- Normal(b * uranium[c], 1.0)
    observe y[h : House] <- Normal(level[county[h]] + b * floor[h], 1.0)
    return b
"""


def value_wires(graph: Diagram) -> set[tuple[str, str]]:
    return {(source, target) for source, target, wire in wires(graph) if wire.kind == "value"}


def test_bidirectional_has_the_shape_of_the_seed() -> None:
    graph = build(models.bidirectional(), "bidirectional_rnn_lm")
    assert value_wires(graph) == {
        ("Token", "tok_embed"),
        ("tok_embed", "fwd_cell"),
        ("tok_embed", "bwd_cell"),
        ("fwd_cell", "combine"),
        ("bwd_cell", "combine"),
        ("combine", "lm_head"),
        ("lm_head", "masked_token"),
    }


def test_scans_are_frames_that_say_their_direction_and_their_state_returns() -> None:
    graph = build(models.bidirectional(), "bidirectional_rnn_lm")
    frames = {box.kind: box.label for box in sheet(graph).boxes if box.kind == "scan"}
    labels = [box.label for box in sheet(graph).boxes if box.kind == "scan"]
    assert labels == ["scan →", "scan ← from the end"], frames
    assert {(s, t) for s, t, wire in wires(graph) if wire.kind == "state"} == {
        ("fwd_cell", "fwd_cell"),
        ("bwd_cell", "bwd_cell"),
    }


def test_wires_carry_space_width_and_the_name_of_the_site() -> None:
    graph = build(models.bidirectional(), "bidirectional_rnn_lm")
    labels = {(s, t): (wire.label, wire.width) for s, t, wire in wires(graph) if wire.kind == "value"}
    assert labels["tok_embed", "fwd_cell"] == ("Embedded 64", 64)
    assert labels["fwd_cell", "combine"] == ("FwdHidden 64", 64)
    assert labels["combine", "lm_head"] == ("h : Combined 128", 128)


def test_a_mismatch_is_marked_on_the_wires_that_do_not_fit_and_nowhere_else() -> None:
    graph = build(models.bidirectional(back=32), "bidirectional_rnn_lm")
    marked = {(s, t): wire.mismatch for s, t, wire in wires(graph) if wire.mismatch}
    assert set(marked) == {("fwd_cell", "combine"), ("bwd_cell", "combine")}
    assert "64 + 32 = 96" in marked["fwd_cell", "combine"]
    assert "128" in marked["fwd_cell", "combine"]


def test_a_node_knows_its_declaration_first_and_then_its_uses() -> None:
    model = models.bidirectional()
    graph = build(model, "bidirectional_rnn_lm")
    known = {node.id: node for node in nodes(graph)}
    assert known["combine"].origin == model.arrows["combine"].origin
    assert model.programs["bidirectional_rnn_lm"].steps[0].site.origin in known["combine"].also
    assert known["combine"].site == "h"
    assert known["masked_token"].returned


def test_a_let_has_its_domain_and_codomain_at_its_ends() -> None:
    graph = build(models.bidirectional(), "forward_path")
    assert [node.id for node in nodes(graph) if node.kind == "input"] == ["Token"]
    assert [node.id for node in nodes(graph) if node.kind == "output"] == ["FwdHidden"]


def test_a_sampled_arrow_drawn_twice_is_two_nodes_that_show_their_shared_weights() -> None:
    hidden = models.real("Hidden", 8)
    step = models.kernel("step", hidden, hidden)
    model = models.model([step], [models.let("twice", models.chain(models.ref(step), models.ref(step)))], [])
    drawn = [node for node in nodes(build(model, "twice")) if node.declared == "step"]
    assert len(drawn) == 2
    assert all(node.shared for node in drawn)


def test_plates_collect_their_sites_and_data() -> None:
    graph = build(standalone(SCHOOLS))
    plates = [box for box in sheet(graph).boxes if box.kind == "plate"]
    assert [box.label for box in plates] == ["School (8)"]
    known = {node.id: node for node in nodes(graph)}
    assert known["sigma"].kind == "data"
    assert {known[name].box for name in ("z", "theta", "y", "sigma")} == {plates[0].id}
    assert known["mu"].box is None
    assert known["theta"].note == "mu + tau * z"
    assert {("mu", "theta"), ("tau", "theta"), ("z", "theta"), ("theta", "y"), ("sigma", "y")} <= value_wires(graph)


def test_data_stand_in_plates_that_no_step_has_made_before() -> None:
    graph = build(standalone(RADON))
    where = {node.label: node.box for node in nodes(graph)}
    assert where["county"] == where["floor"] == where["y"] == "plate_House"
    assert where["uranium"] == where["level"] == "plate_County"


def test_a_statistical_program_has_no_input_node_and_says_what_it_returns() -> None:
    graph = build(models.schools(), "eight_schools")
    assert not [node for node in nodes(graph) if node.kind == "input"]
    assert [node.label for node in nodes(graph) if node.returned] == ["mu"]
    assert not [node for node in nodes(graph) if node.kind == "output"]


def test_wires_between_values_say_no_types() -> None:
    assert {wire.label for _, _, wire in wires(build(models.schools(), "eight_schools"))} == {""}


def test_a_legend_tells_apart_what_a_program_draws() -> None:
    text = (Path(__file__).parents[2] / "examples/statistics/missing_predictors.qvr").read_text(encoding="utf-8")
    graph = build(standalone(text))
    assert [(kind, role) for kind, role, _ in meanings(graph)] == [
        ("data", ""), ("site", "observed"), ("site", "imputed"), ("site", "latent"),
    ]  # fmt: skip
    (fed,) = [node for node in nodes(graph) if node.label == "fed"]
    assert fed.role == "imputed"
    for written in (to_dot(graph), to_mermaid(graph), to_tikz(graph)):
        assert "Legend" in written and "observed, gaps imputed" in written.replace("{,}", ",")
    assert "dashed" in next(line for line in to_dot(graph).splitlines() if line.strip().startswith("fed "))
    assert meanings(example("rlstm_lm")) == []


def test_large_frames_collapse_and_open_again() -> None:
    model = models.long_chain(200)
    small = build(model, "deep")
    assert len(small) == 3
    assert sheet(small).collapsed == ("stack",)
    (box,) = [node for node in nodes(small) if node.kind == "box"]
    assert "200 nodes" in box.detail
    assert len(build(model, "deep", opened=["stack", "block"])) == 202
    assert len(build(model, "deep", collapse=False)) == 202
    assert len(build(models.long_chain(20), "deep")) == 22


def test_an_unknown_name_is_reported_with_the_known_ones() -> None:
    with pytest.raises(NoDiagram, match=r"'backbon'.*backbone"):
        build(models.bidirectional(), "backbon")


def test_a_file_without_arrows_says_so() -> None:
    with pytest.raises(NoDiagram, match="nothing to draw"):
        build(models.model([], [], []))


def test_without_a_name_the_last_program_is_drawn() -> None:
    assert sheet(build(models.bidirectional())).name == "bidirectional_rnn_lm"


def example(name: str) -> Diagram:
    path = Path(__file__).resolve().parents[2] / "examples" / f"{name}.qvr"
    return build(standalone(path.read_text(encoding="utf-8")))


def test_arithmetic_that_an_arrow_is_called_with_is_a_value_of_its_own() -> None:
    graph = example("rlstm_lm")
    known = {node.label: node.id for node in nodes(graph)}
    assert {("i", known["i * j"]), ("j", known["i * j"]), (known["i * j"], "forget"), ("state", "forget")} <= (
        value_wires(graph)
    )
    assert ("i", "forget") not in value_wires(graph)


def test_both_states_of_a_cell_return_and_every_state_leaves_as_a_sequence() -> None:
    graph = example("rlstm_lm")
    labels = {(s, t, wire.kind): wire.label for s, t, wire in wires(graph)}
    assert labels["h2", "state", "state"] == "h 64"
    assert labels["c2", "state", "state"] == "c 64"
    assert labels["h2", "lm_head", "value"] == "h : Seq Real 64"
    assert labels["c2", "h2", "value"] == ""


def test_what_a_call_gives_to_two_names_comes_from_what_makes_it() -> None:
    graph = example("mogrifier_rlstm_lm")
    assert {("x2", "write"), ("h2", "write"), ("h2", "forget"), ("x2", "r")} <= value_wires(graph)
    assert ("x2", "forget") not in value_wires(graph)
    assert [box.label for box in sheet(graph).boxes if box.kind == "repeat"] == ["repeat × 2, same weights"]


def test_an_encoder_shows_attention_residuals_and_where_lengths_and_positions_go() -> None:
    text = (Path(__file__).parents[2] / "examples" / "bert_pretraining.qvr").read_text(encoding="utf-8")
    graph = build(standalone(text), "bert_pretraining")
    assert {
        ("place", "attend"),
        ("place", "attended"),
        ("attend", "attended"),
        ("attended", "attend_norm"),
        ("attend_norm", "fed"),
        ("narrow", "fed"),
        ("fed", "feed_norm"),
    } <= value_wires(graph)
    assert {(source, target) for source, target, wire in wires(graph) if wire.kind == "index"} == {
        ("valid", "attend"),
        ("selected", "masked_token"),
        ("counted", "masked_token"),
    }
    kinds = {node.id: (node.kind, node.note) for node in nodes(graph)}
    assert kinds["attend"] == ("arrow", "attention") and kinds["valid"][0] == "data"
    assert [box.label for box in sheet(graph).boxes if box.kind == "stack"] == ["stack × 2, fresh copies"]


def stages(count: int) -> str:
    chain = " >> ".join(f"f{number}" for number in range(count))
    arrows = "".join(f"morphism f{number} : A -> A [role=linear]\n" for number in range(count))
    return f"object A : Real 3\n{arrows}let deep = {chain}\n"


def test_a_long_chain_is_folded_to_its_ends_and_opens() -> None:
    snapshot = Analyzer(stages(60)).snapshot()
    whole = build(snapshot, "deep")
    assert len(whole) == 62
    small = build(snapshot, "deep", fold=True)
    assert [node.id for node in nodes(small)] == [
        "A",
        "f0",
        "f1",
        "f2",
        "fold_f0",
        "f57",
        "f58",
        "f59",
        *list(small.nodes)[-1:],
    ]
    (middle,) = [node for node in nodes(small) if node.kind == "box"]
    assert (middle.label, middle.note) == ("54 stages", "f3 … f56")
    assert sheet(small).collapsed == ("fold_f0",)
    # the cursor in any of the stages is at the node
    places = {place for node in nodes(whole) if node.id in ("f3", "f30", "f56") for place in (node.origin, *node.also)}
    assert places <= {middle.origin, *middle.also}
    assert {("f2", "fold_f0"), ("fold_f0", "f57")} <= value_wires(small)
    opened = build(snapshot, "deep", fold=True, opened=["fold_f0"])
    assert len(opened) == 62
    # what is small is drawn as it is
    assert len(build(Analyzer(stages(20)).snapshot(), "deep", fold=True)) == 22


def test_a_chain_that_does_not_fit_is_not_folded_away() -> None:
    text = stages(60).replace("morphism f30 : A -> A", "object B : Real 4\nmorphism f30 : B -> A")
    small = build(Analyzer(text).snapshot(), "deep", fold=True)
    assert any(wire.mismatch for _, _, wire in wires(small))
    assert {"f29", "f30"} <= set(small.nodes)


TERMS = """\
object Name : {p, q}
object Code : Real 4
data type Formula = atom(Name) | truth | and(Formula, Formula)
morphism letter : Name -> Code [role=embed]
morphism start : One -> Code [role=embed]
morphism both : Code * Code -> Code [role=linear]
encoder meaning : Formula -> Code
    atom(n) = letter(n)
    truth = start(0)
    and(a, b) = tanh(both(a, b))
program p(f) : Formula -> Code
    let y = meaning(f)
    return y
"""


def test_an_encoder_is_a_frame_of_its_cases() -> None:
    for name in ("p", "meaning"):
        graph = build(standalone(TERMS), name)
        inside = {node.label for node in nodes(graph) if node.box is not None}
        assert inside == {
            "meaning", "atom(n)", "letter", "truth", "0", "start", "and(a, b)", "both", "tanh(both(a, b))"
        }  # fmt: skip
        assert {box.label for box in sheet(graph).boxes} == {"meaning: a case a constructor"}
        found = value_wires(graph)
        assert {("atom", "letter"), ("and", "both"), ("both", "value_2")} <= found
        made = {source for source, target in found if target == "meaning_2"}
        assert made == {"letter", "start", "value_2"}
        assert [wire.mismatch for _, _, wire in wires(graph) if wire.mismatch] == []


def test_draws_of_cases_are_drawn_as_sampled() -> None:
    text = TERMS.replace("role=linear", "role=kernel] ~ Normal #").replace("let y =", "sample y <-")
    found = {node.id: node.sort for node in nodes(build(standalone(text), "p"))}
    assert (found["both"], found["letter"], found["meaning_2"]) == ("->", "=>", "->")


DECODED = """\
object Name : {p, q}
object Code : Real 4
data type Formula = atom(Name) | truth | and(Formula, Formula)
morphism choose : Code -> {atom, truth, and} [role=kernel] ~ Categorical
morphism letter : Code -> Name [role=kernel] ~ Categorical
morphism left, right : Code -> Code [role=linear]
decoder unmeaning : Code -> Formula [depth=3]
    Formula(h) = choose(h)
    atom(h) = letter(h)
    and(h) = (tanh(left(h)), right(h))
program p(code) : Code -> Formula
    observe f <- unmeaning(code)
    return f
"""


def test_a_decoder_is_a_frame_of_its_choice_and_its_cases() -> None:
    for name in ("p", "unmeaning"):
        graph = build(standalone(DECODED), name)
        inside = {node.label for node in nodes(graph) if node.box is not None}
        assert inside == {
            "unmeaning", "Formula(h)", "choose", "atom(h)", "letter", "truth", "and(h)", "left", "tanh(left(h))",
            "right",
        }  # fmt: skip
        assert {box.label for box in sheet(graph).boxes} == {"unmeaning: a case a constructor"}
        found = value_wires(graph)
        assert {("Formula", "choose"), ("atom", "letter"), ("and", "left"), ("and", "right")} <= found
        assert {source for source, target in found if target == "unmeaning_2"} == {"letter", "value", "right"}
        chosen = {target for source, target, wire in wires(graph) if source == "choose" and wire.kind == "index"}
        assert chosen == {"atom", "truth", "and"}
        assert [wire.mismatch for _, _, wire in wires(graph) if wire.mismatch] == []
