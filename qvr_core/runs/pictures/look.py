"""How pictures look, light and dark, and the files they are written to: PNG, SVG, or HTML with both."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Generator, Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

WIDTH = 8.0
"""Inches: at 650 pixels the smallest letters are still 10 high."""
LETTERS = 10.5
ACROSS = 5
"""Entries of a legend beside each other."""
BAND = {"facecolor": "0.5", "alpha": 0.25}
"""The envelope of ArviZ' plots, as a legend shows it."""
ENVELOPE = {"color": BAND["facecolor"], "alpha": BAND["alpha"]}
Entry = tuple[str, dict[str, Any]]
"""A line of a legend: its text, and how it is drawn."""
PLAIN: dict[str, Any] = {"Date": None, "Creator": None, "Format": None, "Type": None}
"""Nothing of when and by what a picture was drawn: the same run gives the same file."""
SUFFIXES = (".png", ".svg", ".html")
LIGHT = ("#ffffff", "#1b1f24", "#57606a", ("#1f6fc4", "#c4621a", "#2d8a4e", "#a3479f", "#b8393c", "#6b7280"))
DARK = ("#16191d", "#e6e9ed", "#a8b1bb", ("#6cb0ff", "#f0a35e", "#6fd18f", "#d992e6", "#ff8f88", "#b6bec8"))


@contextlib.contextmanager
def theme(*, dark: bool) -> Generator[None]:
    """Inside, figures have the colours of a light page, or of a dark one."""
    import matplotlib
    from cycler import cycler
    from matplotlib import pyplot

    page, text, soft, cycle = DARK if dark else LIGHT
    colours = {
        "figure.facecolor": page, "axes.facecolor": page, "savefig.facecolor": page,
        "text.color": text, "axes.labelcolor": text, "axes.titlecolor": text, "axes.edgecolor": soft,
        "xtick.color": soft, "ytick.color": soft, "xtick.labelcolor": text, "ytick.labelcolor": text,
        "legend.labelcolor": text, "lines.color": cycle[0], "patch.facecolor": cycle[0], "grid.color": soft,
        "axes.prop_cycle": cycler(color=cycle),
    }  # fmt: skip
    shape = {
        "font.size": LETTERS, "axes.titlesize": LETTERS + 1, "axes.labelsize": LETTERS, "figure.titlesize": LETTERS + 1,
        "xtick.labelsize": LETTERS - 1, "ytick.labelsize": LETTERS - 1, "legend.fontsize": LETTERS - 1,
        "axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False,
        "figure.constrained_layout.use": True, "svg.hashsalt": page, "svg.fonttype": "none", "savefig.dpi": 144,
    }  # fmt: skip
    with matplotlib.rc_context({**colours, **shape}):
        try:
            yield
        finally:
            pyplot.close("all")


def write(output: Path, draw: Callable[[], Any], *, title: str, caption: str, dark: bool) -> None:
    """Draw a figure, `draw()`, and write it as the name of `output` says; an HTML page holds the picture for light and
    for dark readers, fetches nothing, and says the caption.  Raises OSError."""
    import matplotlib

    matplotlib.use("agg")
    if output.suffix != ".html":
        with theme(dark=dark):
            draw().savefig(output, metadata=PLAIN if output.suffix == ".svg" else None)
        return
    drawn = {True: "", False: ""}
    for side in drawn:
        with theme(dark=side):
            text = io.StringIO()
            draw().savefig(text, format="svg", metadata=PLAIN)
            drawn[side] = text.getvalue().partition("<svg")[2]
    output.write_text(_page(title, caption, drawn[False], drawn[True]), encoding="utf-8")


def _page(title: str, caption: str, light: str, dark: str) -> str:
    name, said = escape(title), escape(caption)
    style = (
        ":root { color-scheme: light dark } body { margin: 0 auto; max-width: 66rem; padding: 1rem; "
        f"font: 16px/1.5 system-ui, sans-serif; background: {LIGHT[0]}; color: {LIGHT[1]} }} "
        "h1 { font-size: 1.15rem } figure { margin: 0 } svg { width: 100%; height: auto } .dark { display: none } "
        f"@media (prefers-color-scheme: dark) {{ body {{ background: {DARK[0]}; color: {DARK[1]} }} "
        ".light { display: none } .dark { display: block } }"
    )
    picture = f'role="img" aria-label="{escape(caption or title, quote=True)}"'
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{name}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{style}</style></head>\n'
        f'<body><main><h1>{name}</h1>\n<figure><div class="light"><svg {picture} {light}</div>\n'
        f'<div class="dark"><svg {picture} {dark}</div>\n'
        f"<figcaption>{said}</figcaption></figure></main></body></html>\n"
    )


def figure_of(collection: Any) -> Any:
    """The matplotlib figure of one of ArviZ's plots."""
    return collection.viz["figure"].item()


def axes_of(collection: Any, name: str) -> Any:
    """The axes on which ArviZ drew a variable."""
    return collection.viz["plot"][name].item()


def grid_size(panels: int, columns: int, height: float) -> dict[str, Any]:
    """`figure_kwargs` of a figure of so many panels."""
    rows = -(-panels // columns)
    return {"figsize": (WIDTH, max(height * rows, 2.6))}


def between(*values: Any, low: float = 0.005, high: float = 0.995, margin: float = 0.05) -> tuple[float, float]:
    """The range of an axis: from quantile to quantile of what is drawn, so that one far draw does not flatten the
    rest."""
    ends = np.array([np.nanquantile(np.asarray(each, np.float64), (low, high)) for each in values if np.size(each)])
    left, right = float(ends[:, 0].min()), float(ends[:, 1].max())
    room = margin * (right - left) or max(abs(left), 1.0) * margin
    return left - room, right + room


def legend_below(figure: Any, entries: Sequence[Entry]) -> None:
    """A legend under the panels, where it hides nothing: (text, how its line is drawn)."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles = [
        Patch(label=text, **style) if "facecolor" in style else Line2D([], [], label=text, **style)
        for text, style in entries
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=min(len(handles), ACROSS))


def chain_entries(chains: int) -> list[Entry]:
    """The entries of a legend that tell chains apart."""
    return [(f"chain {at + 1}", {"color": f"C{at % 6}"}) for at in range(min(chains, ACROSS - 1))]
