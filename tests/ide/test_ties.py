"""What editors say of a head with the matrix of another arrow: hovers, rename, the way to it."""

from __future__ import annotations

from qvr_core.ide.answers import Refusal
from qvr_core.ide.edits.rename import rename
from qvr_core.ide.hover import hover
from qvr_core.ide.navigation import definition
from qvr_core.ide.prose import markdown
from tests.ide.cases import applied, at

TEXT = """\
object Token : FinSet 30
object Hidden : Real 8
morphism tok_embed : Token -> Hidden [role=embed]
morphism square : Hidden -> Hidden [role=linear]
morphism lm_head : Hidden -> Token [role=kernel, tie=tok_embed] ~ Categorical
morphism back : Hidden -> Hidden [role=kernel, tie=transpose(square), bias=false] ~ Poisson
"""


def _hovered(plain: str, marked: str) -> str:
    found = hover(*at(TEXT.replace(plain, marked, 1)))
    assert found is not None
    return markdown(found.content)


def test_hovers_name_the_matrix_and_count_what_is_the_heads_own() -> None:
    head = _hovered("lm_head", "lm_he$0ad")
    assert "linear, with the matrix of `tok_embed`" in head
    assert "30 parameters" in head
    assert "with the matrix of `transpose(square)`, no bias" in _hovered("back", "ba$0ck")
    assert "tok_embed : Token" in _hovered("tie=tok_embed", "tie=tok_em$0bed")


def test_renaming_an_arrow_renames_it_where_its_matrix_is_taken() -> None:
    for name in ("tok_embed", "square"):
        snapshot, cursor = at(TEXT.replace(f"morphism {name}", f"morphism {name}$0"))
        edits = rename(snapshot, cursor, "renamed")
        assert not isinstance(edits, Refusal)
        assert applied(TEXT, edits) == TEXT.replace(name, "renamed")
    snapshot, cursor = at(TEXT.replace("transpose(square)", "transpose(squ$0are)"))
    (place,) = definition(snapshot, cursor)
    assert place.start.line == 3
