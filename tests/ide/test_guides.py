"""What editors say of guides: hovers, completion, rename, diagrams, lenses."""

from __future__ import annotations

from qvr_core.diagrams import build, main_name
from qvr_core.ide.answers import Refusal
from qvr_core.ide.completion.completion import complete
from qvr_core.ide.edits.formatting import edits as formatted
from qvr_core.ide.edits.rename import rename
from qvr_core.ide.hover import hover
from qvr_core.ide.navigation import definition
from qvr_core.ide.prose import markdown
from qvr_lsp.answers.lenses import runnable_programs
from tests.ide.cases import applied, at

TEXT = """\
object School : FinSet 8
program eight : School -> School
    sample mu <- Normal(0.0, 5.0)
    sample theta[s : School] <- Normal(mu, 1.0)
    observe y[s : School] <- Normal(theta[s], 2.0)
    return theta
program q : School -> School [guide=eight]
    param shift : School [init=0.5]
    sample mu <- Normal(1.0, 2.0)
    sample theta[s : School] <- Normal(mu + shift[s] + y[s], 1.0)
"""


def hovered(marked: str) -> str:
    plain = marked.replace("$0", "")
    assert TEXT.count(plain) == 1
    found = hover(*at(TEXT.replace(plain, marked)))
    assert found is not None
    return markdown(found.content)


def offered(text: str) -> list[str]:
    return [item.label for item in complete(*at(text))]


def test_hovers_say_what_is_learned_and_of_what_it_is_the_guide() -> None:
    assert "param shift : School" in hovered("param shi$0ft")
    assert "Learned by a fit with this guide, from 0.5" in hovered("param shi$0ft")
    shown = hovered("program q$0 ")
    assert "Guide of `eight`" in shown
    assert "Draws: `mu`, `theta`" in shown
    assert "8 parameters" in shown
    assert "program eight" in hovered("guide=eig$0ht")


def test_completion_offers_models_options_and_the_latents_that_are_left() -> None:
    head = TEXT.partition("program q")[0]
    assert offered(head + "program q : School -> School [guide=$0]\n    sample mu <- Normal(0.0, 1.0)\n") == ["eight"]
    assert {"guide", "rest"} <= set(offered(head + "program q : School -> School [$0]\n    return x\n"))
    assert offered(head + "program q : School -> School [guide=eight, rest=$0]\n") == ["mean_field"]
    begun = head + "program q : School -> School [guide=eight]\n    sample mu <- Normal(0.0, 1.0)\n    sample $0\n"
    assert offered(begun) == ["theta"]
    assert offered(head + "program q : School -> School [guide=eight]\n    param m : School [$0]\n") == ["init"]
    assert "q" not in offered(TEXT + "let f = $0\n")


def test_renaming_the_model_renames_it_in_its_guide() -> None:
    snapshot, cursor = at(TEXT.replace("program eight", "program ei$0ght"))
    edits = rename(snapshot, cursor, "schools")
    assert not isinstance(edits, Refusal)
    assert "[guide=schools]" in applied(TEXT, edits)
    snapshot, cursor = at(TEXT.replace("guide=eight", "guide=ei$0ght"))
    (place,) = definition(snapshot, cursor)
    assert place.start.line == 1


def test_a_guide_has_no_lens_and_a_diagram_with_what_it_learns() -> None:
    snapshot, _ = at(TEXT + "$0")
    assert runnable_programs(snapshot.model) == ["eight"]
    drawn = build(snapshot.model, "q")
    assert any(node.label == "shift" and node.note == "learned" for node in drawn.nodes.values())
    assert main_name(snapshot.model) == "eight"


def test_param_lines_are_laid_out() -> None:
    text = TEXT.replace("param shift : School [init=0.5]", "param shift,b:School->Real 1[low=0.0][init = 0.5]")
    snapshot, _ = at(text + "$0")
    edits = formatted(snapshot)
    assert "param shift, b : School -> Real 1 [low=0.0] [init=0.5]" in applied(text, tuple(edits))
