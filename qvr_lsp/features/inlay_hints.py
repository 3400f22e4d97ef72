"""textDocument/inlayHint.  The answer is prepared: a screen has many hints, and is asked about after each keystroke."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from lsprotocol import types

from qvr_lsp.features.resolving import in_thread_if_large, on_part
from qvr_lsp.json_values import Json
from qvr_lsp.language_server import QvrLanguageServer, server

if TYPE_CHECKING:
    from collections.abc import Iterable

    from qvr_core.ide.answers import InlayHint
    from qvr_core.runs.record.last_fit import Beside
    from qvr_lsp.documents import View

LSP_KINDS = {"type": 1, "pipeline": 1, "hole": 1, "direction": 2, "parameter": 2}
SETTINGS = {
    "type": "inlay_let_types",
    "hole": "inlay_holes",
    "pipeline": "inlay_pipelines",
    "direction": "inlay_direction",
    "parameter": "inlay_parameter_names",
}


@server.feature(types.TEXT_DOCUMENT_INLAY_HINT)
@on_part
@in_thread_if_large
def inlay_hints(ls: QvrLanguageServer, document: View, params: types.InlayHintParams) -> list[Json]:
    """types, holes, pipelines, directions, parameter names"""
    from qvr_core.ide.inlays import inlays

    shown = {kind for kind, setting in SETTINGS.items() if getattr(ls.settings, setting)}
    stretch = document.stretch(params.range)
    found = inlays(document.snapshot, stretch)
    hints = [hint_json(document, hint) for hint in found if hint.kind in shown]
    if ls.settings.inlay_posterior:
        beside = with_live(
            ls.fits.beside(document.uri, document.snapshot), ls.live.beside(document.uri, document.snapshot)
        )
        hints += [
            {
                "position": document.position_json(one.cursor),
                "label": one.text,
                "paddingLeft": True,
                "tooltip": one.tooltip,
            }
            for one in beside
            if stretch.start <= one.cursor <= stretch.end
        ]
    return uncut(hints)


MOST_LETTERS = 43
"""VS Code cuts the hints of a line, one behind the other, behind so many letters."""
BARS = re.compile("^(live |prior )?[▁▂▃▄▅▆▇█]+ ")
SPREAD = re.compile(", sd ≤ [^ ]+")


def uncut(hints: list[Json]) -> list[Json]:
    """Hints of which an editor cuts none: of each line the figures of a fit, then types, then the rest, while there is
    room.  What is shortened has the whole in its tooltip."""
    room: dict[int, int] = {}
    kept: list[Json] = []
    for hint in sorted(hints, key=importance):
        line, label = hint["position"]["line"], hint["label"]
        left = room.get(line, MOST_LETTERS)
        if len(label) > left and hint.get("kind", 1) == 1 and left == MOST_LETTERS:
            hint = {**hint, "label": shortened(label), "tooltip": "\n".join(filter(None, (label, hint.get("tooltip"))))}
        if len(hint["label"]) <= left:
            room[line] = left - len(hint["label"])
            kept.append(hint)
    return sorted(kept, key=lambda hint: (hint["position"]["line"], hint["position"]["character"]))


def importance(hint: Json) -> tuple[int, int, int]:
    """The figures of a fit first, which have no kind; then types; then parameters; by their places."""
    return hint.get("kind", 0), hint["position"]["line"], hint["position"]["character"]


def shortened(label: str) -> str:
    """Without the bars of a density or the spread of many numbers; if that is not enough, the beginning."""
    bare = BARS.sub(lambda found: found[1] or "", label)
    if len(bare) > MOST_LETTERS:
        bare = SPREAD.sub("", bare)
    return bare if len(bare) <= MOST_LETTERS else bare[: MOST_LETTERS - 1] + "…"


def with_live(fitted: Iterable[Beside], live: Iterable[Beside]) -> list[Beside]:
    """The figures of runs, and what is drawn as somebody types: a step has one or the other.  A run of the text as it
    is has the better ones; of an older text those of the posterior are."""
    of_runs, of_live = {one.cursor: one for one in fitted}, {one.cursor: one for one in live}
    for cursor, one in of_live.items():
        run = of_runs.get(cursor)
        if run is None or (run.older and one.drawn == "live" and not one.older):
            of_runs[cursor] = one
    return list(of_runs.values())


def hint_json(document: View, hint: InlayHint) -> Json:
    place = document.position_json(hint.cursor)
    result: Json = {"position": place, "label": hint.text.strip() if hint.kind != "direction" else hint.text}
    result["kind"] = LSP_KINDS[hint.kind]
    result["paddingLeft"] = hint.text.startswith(" ")
    result["paddingRight"] = hint.text.endswith(" ")
    if hint.tooltip:
        result["tooltip"] = hint.tooltip
    if hint.edits:
        result["textEdits"] = [{"range": document.range_json(edit.range), "newText": edit.text} for edit in hint.edits]
    return result
