"""Small pictures as SVG, drawn without a library: densities, intervals, traces, data against what is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from math import isfinite

from qvr_core.runs.record.summary import Band, ChainDraws, Density, Predictive


def density(of: Density, q05: float | None, q95: float | None, label: str) -> str:
    """A density with its 90 % interval below; the prior, where it is known, as a line."""
    width, height = 180, 36
    most = max(of.posterior, default=0) or 1
    area = _steps(of.posterior, most, width, height - 6)
    prior = ""
    if of.prior and of.prior_share:
        total, drawn = sum(of.posterior) or 1, sum(of.prior) or 1
        scaled = [count * of.prior_share * total / drawn for count in of.prior]
        prior = f'<path class="prior" d="M{_steps(scaled, most, width, height - 6)}"/>'
    interval = ""
    span = of.high - of.low
    if q05 is not None and q95 is not None and span > 0:
        left, right = ((value - of.low) / span * width for value in (q05, q95))
        interval = f'<line class="interval" x1="{left:.1f}" x2="{right:.1f}" y1="{height - 2}" y2="{height - 2}"/>'
    filled = f'<path class="density" d="M0,{height - 6}L{area}L{width},{height - 6}Z"/>'
    return _svg(width, height, filled + prior + interval, f"density of {label}")


def _steps(counts: Sequence[float], most: float, width: float, height: float) -> str:
    step = width / max(len(counts), 1)
    points = list[str]()
    for at, count in enumerate(counts):
        y = max(height * (1 - count / most), 0.0)
        points += [f"{at * step:.1f},{y:.1f}", f"{(at + 1) * step:.1f},{y:.1f}"]
    return "L".join(points)


def trace(chains: Sequence[ChainDraws], at: int, label: str) -> str:
    """The draws of each chain in their order; a mark at the foot where one diverged."""
    width, height, beside = 480, 90, 80  # room for a minus, three digits and a power of ten
    known = [value for chain in chains for row in chain.values[at : at + 1] for value in row if value is not None]
    known = [value for value in known if isfinite(value)]
    if not known:
        return ""
    low, high = min(known), max(known)
    span = (high - low) or 1.0
    last = max((draw for chain in chains for draw in chain.draws), default=1) or 1
    body = list[str]()
    for number, chain in enumerate(chains):
        points = " ".join(
            f"{draw / last * width:.1f},{height - 6 - (value - low) / span * (height - 10):.1f}"
            for draw, value in zip(chain.draws, chain.values[at], strict=False)
            if value is not None and isfinite(value)
        )
        body.append(f'<polyline class="chain c{number % 6}" points="{points}"/>')
        body += [
            f'<line class="diverged" x1="{chain.draws[one] / last * width:.1f}" '
            f'x2="{chain.draws[one] / last * width:.1f}" y1="{height - 5}" y2="{height}"/>'
            for one in chain.diverging
            if one < len(chain.draws)
        ]
    body += [f'<text x="{width + 6}" y="{y}">{_number(end)}</text>' for y, end in ((12, high), (height - 6, low))]
    return _svg(width + beside, height, "".join(body), f"draws of {label}, from {low:.4g} to {high:.4g}")


def against_data(of: Predictive, band: Band, source: str) -> str:
    """Shares of the data in bins, and of what the `source` draws: the mean over draws in its 5 to 95 % band."""
    width, height, foot = 560, 200, 18
    most = max([*of.observed, *band.high, 1e-9])
    plot = height - foot
    step = width / max(len(of.observed), 1)
    body = list[str]()
    for at, share in enumerate(of.observed):
        tall = plot * share / most
        body.append(
            f'<rect class="data" x="{at * step + 1:.1f}" y="{plot - tall:.1f}" width="{max(step - 2, 0.5):.1f}" '
            f'height="{tall:.1f}"/>'
        )
    for at, (low, mean, high) in enumerate(zip(band.low, band.mean, band.high, strict=False)):
        x = (at + 0.5) * step
        body.append(
            f'<line class="band" x1="{x:.1f}" x2="{x:.1f}" y1="{plot * (1 - low / most):.1f}" '
            f'y2="{plot * (1 - high / most):.1f}"/><circle class="mean" cx="{x:.1f}" '
            f'cy="{plot * (1 - mean / most):.1f}" r="2.5"/>'
        )
    body.append(f'<text x="0" y="{height - 4}">{_number(of.low)}</text>')
    body.append(f'<text x="{width}" y="{height - 4}" text-anchor="end">{_number(of.high)}</text>')
    return _svg(width, height, "".join(body), f"{of.name}: data and what the {source} draws")


def _number(value: float) -> str:
    return minus(f"{value:.3g}")


def minus(number: str) -> str:
    """A number as people read it, with a minus and no hyphen."""
    return number.replace("-", "−")


def _svg(width: float, height: float, body: str, label: str) -> str:
    return (
        f'<svg viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}" role="img" '
        f'aria-label="{escape(label, quote=True)}">{body}</svg>'
    )
