"""Inlay hints as an editor shows them: of no line more than VS Code shows without cutting."""

from qvr_lsp.features.inlay_hints import MOST_LETTERS, uncut
from qvr_lsp.json_values import Json


def hint(character: int, label: str, kind: int | None = None, line: int = 3) -> Json:
    made: Json = {"position": {"line": line, "character": character}, "label": label}
    return made if kind is None else {**made, "kind": kind}


def labels(*hints: Json) -> list[str]:
    return [one["label"] for one in uncut(list(hints))]


def test_figures_of_a_fit_come_before_the_names_of_parameters() -> None:
    figures = "▁▂▄█▇▅▃▂ −0.48 ± 0.14 · R̂ 1.01"
    assert labels(hint(20, "concentration=", 2), hint(30, "df=", 2), hint(40, figures)) == ["df=", figures]


def test_what_is_too_long_loses_the_picture_first_then_the_spread() -> None:
    one = uncut([hint(40, "▁▂▄█▇▅▃▂ −0.48231 ± 0.14221 · R̂ 1.01 · older text")])[0]
    assert one["label"] == "−0.48231 ± 0.14221 · R̂ 1.01 · older text"
    assert one["tooltip"].startswith("▁▂▄█▇▅▃▂ −0.48231")
    assert labels(hint(40, "1,234 × −0.893 … 1.28, sd ≤ 0.222 · R̂ ≤ 1.53")) == ["1,234 × −0.893 … 1.28 · R̂ ≤ 1.53"]
    assert labels(hint(9, ": " + "Seq Token -> " * 5, 1))[0].endswith("…")


def test_no_line_has_more_than_is_shown() -> None:
    shown = labels(*(hint(place, "Embedded", 1) for place in range(10)), hint(1, "Other", 1, line=4))
    assert sum(map(len, shown[:-1])) <= MOST_LETTERS and shown[-1] == "Other"
