"""What an editor is told of compositions, transformations and changes of base."""

from __future__ import annotations

import pytest

from qvr_core.ide.completion.completion import complete
from qvr_core.ide.edits.rename import rename
from qvr_core.ide.hover import hover
from qvr_core.ide.navigation import definition, find_references
from qvr_core.ide.prose import markdown
from tests.ide.cases import applied, at, text_of

TEXT = """\
composition mine as algebra
    tensor_op(a, b) = a * b
    join(t) = max(t)
    unit = 1.0
    zero = 0.0
object A : FinSet 3
morphism f : A -> A [role=latent]
# Whether there is anything.
transformation there : mine => boolean as homomorphism
    map(x) = x > 0
let g = f.change_base(there)
composition log_prob
morphism l : A -> A [role=latent]
let h = l.change_base(exp)
export g
"""


def marked(mark: str) -> str:
    return TEXT.replace(mark.replace("$0", ""), mark, 1)


@pytest.mark.parametrize(
    ("mark", "words"),
    [
        ("change_base(th$0ere", "transformation there : mine => boolean as homomorphism"),
        ("change_base(th$0ere", "Whether there is anything."),
        ("trans$0formation there", "A map from the weights of one composition"),
        ("there : mi$0ne", "composition mine"),
        ("=> bool$0ean", "and, any"),
        ("as homo$0morphism", "keeps unit, zero, tensor_op and join"),
        ("(e$0xp)", "From `log_prob` to `real`"),
        ("l.change$0_base", "Every weight mapped by a transformation"),
        ("let $0h = ", "h : A -o A"),
        ("let $0h = ", "Weights in `real`."),
    ],
)
def test_hover(mark: str, words: str) -> None:
    answer = hover(*at(marked(mark)))
    assert answer is not None
    assert words in markdown(answer.content)


def test_a_transformation_and_a_composition_are_gone_to_found_and_renamed() -> None:
    used, declared = at(marked("change_base(th$0ere")), at(marked("transformation th$0ere"))
    (place,) = definition(*used)
    assert (place.start.line, place.start.column) == (8, 15)
    assert len(find_references(*declared)) == len(find_references(*used)) == 2
    edits = rename(*used, "present")
    assert isinstance(edits, tuple)
    assert applied(text_of(used[0]), edits) == TEXT.replace("there :", "present :").replace("(there)", "(present)")
    used = at(marked("there : mi$0ne"))
    (place,) = definition(*used)
    assert (place.start.line, place.start.column) == (0, 12)
    edits = rename(*used, "ours")
    assert isinstance(edits, tuple)
    assert applied(text_of(used[0]), edits) == TEXT.replace("mine", "ours")


def test_what_belongs_to_the_language_is_not_renamed() -> None:
    for mark in ("=> bool$0ean", "(e$0xp)", "as homo$0morphism"):
        assert not isinstance(rename(*at(marked(mark)), "other"), tuple)


@pytest.mark.parametrize(
    ("given", "mark", "labels"),
    [
        ("(there)", "($0)", {"there"}),
        ("(exp)", "($0)", {"exp", "best"}),
        ("as homomorphism", "as $0", {"homomorphism", "map"}),
        ("    map(x) = x > 0", "    $0", {"map"}),
        ("f.change_base(there)", "f.$0", {"change_base", "dagger", "curry_left"}),
        ("mine =>", "$0 =>", {"mine", "boolean", "real"}),
    ],
)
def test_completion(given: str, mark: str, labels: set[str]) -> None:
    found = {item.label for item in complete(*at(TEXT.replace(given, mark, 1)))}
    assert labels <= found
    if given in ("(there)", "(exp)", "as homomorphism", "    map(x) = x > 0"):
        assert found == labels
