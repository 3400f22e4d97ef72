"""How a run looks in a terminal: a bar, the loss as a sparkline, what matters in words; or one JSON event a line."""

from __future__ import annotations

import os
from collections import Counter, deque
from collections.abc import Collection, Iterator, Sequence
from types import TracebackType

from rich.live import Live
from rich.progress import BarColumn, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bar
from rich.table import Column, Table
from rich.text import Text

from qvr_core.cli.console import PlainConsole
from qvr_core.cli.files import write_out
from qvr_core.cli.output.chosen_rows import site_of
from qvr_core.runs.record.protocol import (
    Accuracies,
    Cancelled,
    Check,
    CheckpointWritten,
    Crashed,
    Draws,
    Event,
    Failed,
    Finished,
    HeldOut,
    Job,
    Message,
    PosteriorRow,
    Progress,
    Started,
)
from qvr_core.syntax.printable import printable

BLOCKS = "▁▂▃▄▅▆▇█"
WIDTH = 32
WIDE = 400


class JsonLines:
    """Events as they are, for machines."""

    def show(self, event: Event) -> None:
        write_out(event.encoded())

    def __enter__(self) -> JsonLines:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class Screen:
    """Events for people: progress on stderr, results on stdout."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.out = PlainConsole(highlight=False, soft_wrap=True)
        self.err = PlainConsole(stderr=True, highlight=False, soft_wrap=True)
        self.bar = Bar(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.completed:,.0f}/{task.total:,.0f}"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[note]}"),
            console=self.err,
        )
        self.task: TaskID | None = None
        self.losses: deque[float] = deque(maxlen=512)
        self.live = Live(self.bar, console=self.err, refresh_per_second=8, transient=not self.err.is_terminal)

    def __enter__(self) -> Screen:
        if self.err.is_terminal:
            self.live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def _stop(self) -> None:
        """Leave the bar where it is: what is printed next stands below it."""
        if self.err.is_terminal:
            self.live.stop()

    @property
    def between(self) -> PlainConsole:
        """Where results are printed while the bar runs: one terminal has one cursor, and the bar's console moves it."""
        return self.err if self.out.is_terminal and self.err.is_terminal else self.out

    def show(self, event: Event) -> None:
        if isinstance(event, Finished | Cancelled | Failed | Crashed):
            self._stop()
        match event:
            case Started():
                self._started(event)
            case Progress():
                self._progress(event)
            case HeldOut():
                self.between.print(held_out_line(event))
            case Accuracies():
                for line in accuracy_lines(event):
                    self.between.print(line, markup=False)
            case Message():
                style = {"warning": "yellow", "error": "red"}.get(event.level, "dim")
                self.err.print(event.text, style=style, markup=False)
            case CheckpointWritten() | Draws():
                pass
            case Finished():
                self._finished(event)
            case Cancelled():
                if event.posterior:
                    self._posterior(event)
                again = f"qvr run {self.job.config.algorithm} --resume {self.job.run_id}"
                advice = f"; go on with: {again}" if event.checkpoint is not None else ""
                self.out.print(f"cancelled at step {event.step:,} after {event.seconds:.1f} s{advice}")
            case Failed():
                self._failed(event)
            case Crashed():
                how = f"was killed by {event.signal}" if event.signal else f"ended with status {event.returncode}"
                self.err.print(f"the worker {how}; its last words:", style="bold red")
                for line in event.log:
                    self.err.print("  " + line, style="dim", markup=False)
                if event.signal == "SIGKILL":
                    self.err.print("nobody here killed it: the machine may have run out of memory", style="dim")

    def _started(self, event: Started) -> None:
        sizes = event.sizes()
        self.err.print(f"[bold]{event.program}[/bold]  {f'{sizes} ' if sizes else ''}on {event.where()}")
        if not self.job.config.names_data:
            advice = "no data was given (--data csv:FILE, or `data` in qvr.toml)"
            self.err.print(f"{advice}: {event.data}", style="bold yellow", markup=False)
        else:
            self.err.print(event.data, style="dim", markup=False)
        if event.baselines is not None:
            one, two = event.baselines.unigram, event.baselines.bigram
            self.err.print(f"entropy of the text: {one:.3f} bits, given the token before {two:.3f}", style="dim")
        self.task = self.bar.add_task(
            event.algorithm.upper(), total=event.steps, note="", completed=event.resumed_from or 0
        )

    def _progress(self, event: Progress) -> None:
        if event.loss is not None:
            self.losses.append(event.smoothed_loss if event.smoothed_loss is not None else event.loss)
            note = f"loss {self.losses[-1]:.4g} {sparkline(list(self.losses))}"
        else:
            parts = [event.phase or ""]
            if event.acceptance is not None:
                parts.append(f"acceptance {event.acceptance:.2f}")
            if event.divergences:
                parts.append(f"divergences {event.divergences}")
            note = " ".join(parts)
        if self.task is not None:
            self.bar.update(self.task, completed=event.step, total=event.steps, note=note)

    def _finished(self, event: Finished) -> None:
        if event.losses is not None and event.losses.first is not None and event.losses.mean_of_last is not None:
            self.out.print(f"loss {event.losses.first:.4f} → {event.losses.mean_of_last:.4f} (mean of the last steps)")
        if event.posterior:
            self._posterior(event)
        for line in check_lines(event.checks, self.job.path):
            self.out.print(line)
        why = f" ({event.reason})" if event.reason else ""
        count = len(event.warnings)
        warned = f", with {count} warning{'s' if count > 1 else ''} above" if count else ""
        self.out.print(f"finished {event.step:,} steps in {event.seconds:.1f} s{why}{warned}; {self.job.directory}")

    def _posterior(self, event: Finished | Cancelled) -> None:
        folded = folded_sites(event.posterior, self.job)
        console().print(posterior_table(event.posterior, folded))
        for name in folded:
            asked = f"qvr summary {self.job.run_id} --vars {name}"
            words = f"`{name}` is standardised and only computed with: {asked} lists it"
            self.out.print(words, style="dim", markup=False)

    def _failed(self, event: Failed) -> None:
        self.err.print(f"failed: {event.message}", style="bold red", markup=False)
        if event.range is not None:
            line = event.range.start.line
            lines = self.job.text.splitlines()
            inside = f", which brings {printable(event.foreign)}" if event.foreign else ""
            self.err.print(f"  --> {self.job.path}:{line + 1}{inside}", markup=False)
            if line < len(lines):
                self.err.print(f"  {line + 1} | {lines[line]}", markup=False)
        # A message about data says in itself what to do.
        for fix in (fix for fix in event.fixes if fix not in event.message):
            self.err.print(f"  = fix: {fix}", style="green", markup=False)
        for line in event.log:
            self.err.print("  " + line, style="dim", markup=False)


def console() -> PlainConsole:
    """Where tables go: as wide as the terminal, and not cut where there is none."""
    made = PlainConsole(highlight=False)
    return made if made.is_terminal else PlainConsole(highlight=False, width=WIDE)


def held_out_line(event: HeldOut) -> str:
    """The held-out figure beside what the text itself gives."""
    return (
        f"held out after {event.seconds:.1f} s: {event.bits_per_byte:.3f} bits per token "
        f"(bound {event.bound:.3f}, {event.rows:,} rows, K = {event.draws}); "
        f"text: unigram {event.unigram:.3f}, bigram {event.bigram:.3f}"
    )


def accuracy_lines(event: Accuracies) -> list[str]:
    """How often each observed site was right, beside always answering the commonest value."""
    return [
        f"held out after {event.seconds:.1f} s: `{one.site}` {one.accuracy:.1%} right "
        f"(95 % interval {one.low:.1%} to {one.high:.1%}, {one.count:,} in {event.rows:,} rows); "
        f"always `{one.commonest}`: {one.baseline:.1%}"
        for one in event.sites
    ]


def check_lines(checks: Sequence[Check], path: str) -> Iterator[Text]:
    """One line a check; below a failed one what to do, and where in the program."""
    short = min(os.path.relpath(path), path, key=len)
    for one in checks:
        mark, style = (" ok ", "green") if one.passed else ("note ", "yellow") if one.note else (" !! ", "bold yellow")
        yield Text.assemble((mark, style), f"{one.name:12} ", printable(one.text))
        if one.advice is not None:
            yield Text(f"    → {printable(one.advice)}")
        if one.range is not None:
            place = one.foreign or f"{short}:{one.range.start.line + 1}"
            yield Text(f"      {printable(place)}: `{printable(one.site or '')}`")
    of_draws = [one for one in checks if not one.note]
    failed = sum(not one.passed for one in of_draws)
    of = "" if len(of_draws) == len(checks) else " of the draws"
    if checks:
        every = len(of_draws)
        alone = f"the check{of} {'failed' if failed else 'passed'}"
        several = f"{failed} of {every} checks{of} failed" if failed else f"all {every} checks{of} passed"
        yield Text(alone if every == 1 else several)


FEW = 4
"""Rows of a standardised helper that are shown one by one."""


def folded_sites(rows: Sequence[PosteriorRow], job: Job) -> Sequence[str]:
    """Plates of standard Normals that only computed values read, such as the weights of a basis: nobody reads their
    numbers, and they would push out those that are of interest."""
    counts = Counter(site_of(row.name) for row in rows)
    if max(counts.values(), default=0) <= FEW:
        return ()
    from qvr_core.runs.record.name_roles import standardised

    helpers = standardised(job)
    return [name for name, count in counts.items() if count > FEW and name in helpers]


def posterior_table(rows: Sequence[PosteriorRow], folded: Collection[str] = ()) -> Table:
    """Mean, sd, quantiles, R-hat and effective sample size of every scalar; of a folded site one row with how many its
    numbers are, the largest R-hat and the least effective sample size."""
    seen = set[str]()
    table = Table(Column("name", no_wrap=True), "mean", "sd", "5 %", "median", "95 %", "R-hat", "ESS")
    for row in rows:
        site = site_of(row.name)
        if site in folded:
            if site not in seen:
                seen.add(site)
                own = [one for one in rows if site_of(one.name) == site]
                worst = max((one.r_hat for one in own if one.r_hat is not None), default=None)
                least = min((one.ess for one in own if one.ess is not None), default=None)
                shown = ("" if worst is None else f"{worst:.4g}", "" if least is None else f"{least:.0f}")
                table.add_row(Text(printable(f"{site}[…], {len(own)} numbers")), *[""] * 5, *shown)
            continue
        numbers = (row.mean, row.sd, row.q05, row.median, row.q95, row.r_hat)
        ess = "" if row.ess is None else f"{row.ess:.0f}"
        # a label of a set is text from outside, and no markup
        table.add_row(Text(printable(row.name)), *("" if n is None else f"{n:.4g}" for n in numbers), ess)
    return table


def sparkline(values: list[float]) -> str:
    """The last values as a row of blocks, averaged to at most `WIDTH` of them."""
    if not values:
        return ""
    size = max(1, -(-len(values) // WIDTH))
    means = [sum(part) / len(part) for i in range(0, len(values), size) for part in [values[i : i + size]]]
    low, high = min(means), max(means)
    scale = (len(BLOCKS) - 1) / (high - low) if high > low else 0
    return "".join(BLOCKS[round((value - low) * scale)] for value in means)
