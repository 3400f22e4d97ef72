"""What editors say of convolutions, pools and batch norms."""

from __future__ import annotations

import pytest

from qvr_core.ide.hover import hover
from qvr_core.ide.prose import markdown
from tests.ide.cases import at

TEXT = """\
object Image : Real 3 28 28
object Feature : Real 8 14 14
object Hidden : Real 64
morphism look : Image -> Feature [role=conv, stride=2, padding=1]
morphism along : Hidden -> Hidden [role=conv, kernel=5, bias=false]
morphism shrink : Feature -> Real 8 7 7 [role=pool, reduce=mean]
morphism even : Feature -> Feature [role=batch_norm]
"""


@pytest.mark.parametrize(
    "name, said",
    [
        ("look", ["Image => Feature", "convolution · window of 3, stride 2, padding 1", "224 parameters"]),
        ("along", ["Seq Hidden => Seq Hidden", "convolution · window of 5, no bias", "20,480 parameters"]),
        ("shrink", ["8 × 14 × 14", "mean of each window of 2, stride 2, padding 0"]),
        ("even", ["batch norm: by the batch in training", "16 parameters"]),
    ],
)
def test_hovers_say_what_the_window_does_and_count_its_weights(name: str, said: list[str]) -> None:
    found = hover(*at(TEXT.replace(f"morphism {name}", f"morphism {name[:-1]}$0{name[-1]}")))
    assert found is not None
    text = markdown(found.content)
    assert [part for part in said if part not in text] == [], text


def test_hovers_say_what_an_option_takes() -> None:
    found = hover(*at(TEXT.replace("padding=1", "padd$0ing=1")))
    assert found is not None
    assert "zeros beyond each edge of the domain" in markdown(found.content).lower()
    assert "a whole number from 0" in markdown(found.content)
