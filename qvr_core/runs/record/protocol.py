"""What goes over a worker's stdin and stdout: one JSON object a line.

In: first a `Job`, then at most one `Control`.  Out: events, each with its name under `event`.  The last one is one of
`ENDINGS`; a process that ends without it has crashed, and the client then makes the `Crashed` event itself.
Numbers that are not finite travel as null.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, computed_field

from qvr_core.runs.record.config import RunConfig


class Frozen(BaseModel):
    """Base of all messages: immutable; unknown keys are ignored, so that an older reader follows a newer worker."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    def encoded(self) -> str:
        """The message as one line of JSON, line end included; keys without a value are left out."""
        return self.model_dump_json(exclude_none=True) + "\n"


class Position(Frozen):
    """A place in a text: zero-based line, zero-based UTF-16 code unit."""

    line: int
    character: int


class TextRange(Frozen):
    """Half-open."""

    start: Position
    end: Position


# ---------------------------------------------------------------- to the worker


class Job(Frozen):
    """A run to do.  `text` is the program as it stands (in the editor perhaps unsaved), `path` only names it."""

    run_id: str
    directory: str
    """The run directory, absolute."""
    path: str
    text: str
    location: str = ""
    """Where the text stands for its imports (`semantics.modules.paths`)."""
    imports: dict[str, str] = Field(default_factory=dict[str, str])
    """The texts of all files that it imports, by their locations."""
    program: str | None = None
    """Which program of the file; None: the first export."""
    config: RunConfig
    base: str = "."
    """The folder that relative data paths start from."""
    resume: bool = False
    """Go on from the last good checkpoint of `directory`."""
    changed_data: bool = False
    """Go on although a data file is not what it was."""
    parent: int | None = None
    """Process that the worker must not outlive."""


class Control(Frozen):
    """`cancel` ends the run at the next step with a checkpoint; `checkpoint` makes one now."""

    control: Literal["cancel", "checkpoint"]


# ---------------------------------------------------------------- from the worker


class Baselines(Frozen):
    """Entropies of the text itself, in bits per token: order 0 and order 1."""

    unigram: float
    bigram: float


ENGINES = {"compiled": "as machine code", "replay": "on recorded operations", "plain": "step by step"}
"""How a run goes, by what evaluates its density; earlier releases replayed recorded operations."""


class Started(Frozen):
    """The program is built and the data is read; the first step comes next."""

    event: Literal["started"] = "started"
    run_id: str
    program: str
    algorithm: str
    directory: str
    pid: int
    device: str
    parameters: int
    guide_parameters: int | None = None
    """Those of the guide, where a fit has one."""
    engine: Literal["compiled", "replay", "plain"] | None = None
    """What evaluates the density: machine code, or the program itself; `replay` in runs of earlier releases."""
    engine_why: str | None = None
    """Why it is this one, in words."""
    steps: int
    """Optimiser steps, or draws of each chain with its warm-up."""
    data: str
    """The data in words, for people."""
    baselines: Baselines | None = None
    memory: int | None = None
    """Bytes that the run is estimated to need."""
    resumed_from: int | None = None
    per_row: bool = True
    """Whether a loss is that of a row; else that of all data, as of a statistical program."""

    def sizes(self) -> str:
        """How many parameters there are to fit, in words: '' where there are none, as of chains that sample latents."""
        own = f"{self.parameters:,} parameters" if self.parameters else ""
        guide = f"{self.guide_parameters:,} parameters of the guide" if self.guide_parameters else ""
        return ", ".join(filter(None, (own, guide)))

    def where(self) -> str:
        """What the run runs on, in words."""
        why = f" ({self.engine_why})" if self.engine_why else ""
        if self.engine is None or (self.engine != "compiled" and not why):
            return self.device
        return f"{self.device}, {ENGINES[self.engine]}{why}"


class Progress(Frozen):
    """At most ten a second, but for a hundred of a curve of losses.  `seconds` is time in the run so far, resumed parts
    included; `eta` seconds to go."""

    event: Literal["progress"] = "progress"
    step: int
    steps: int
    seconds: float
    step_time: float | None = None
    """Mean seconds of the steps so far, of an optimiser's last 500."""
    eta: float | None = None
    # SVI
    loss: float | None = None
    """−ELBO of the last step, per row where `Started` says so."""
    smoothed_loss: float | None = None
    """Mean of the last 50 steps, at most the last tenth of those made; no earlier step counts in it."""
    gradient_norm: float | None = None
    skipped: int | None = None
    """Steps skipped so far because a value was not finite."""
    # NUTS
    phase: Literal["warmup", "sampling"] | None = None
    chain: int | None = None
    acceptance: float | None = None
    divergences: int | None = None
    tree_depth: int | None = None
    step_size: float | None = None


class ChainSoFar(Frozen):
    """Some draws of one chain: their numbers, the places in `draws` of those at which it diverged, and the values of
    each of `names` at them."""

    chain: int
    draws: tuple[int, ...]
    diverging: tuple[int, ...] = ()
    values: tuple[tuple[float | None, ...], ...]


class Draws(Frozen):
    """A few draws of running chains, for those who watch: thinned, of some numbers (`names`, the same in each event of
    a run), at most two events a second.  All draws are in `posterior.nc` at the end."""

    event: Literal["draws"] = "draws"
    names: tuple[str, ...]
    total: int
    """Draws that each chain is to make."""
    chains: tuple[ChainSoFar, ...]


class Message(Frozen):
    """Something to tell: a note, a warning, a line the program printed."""

    event: Literal["message"] = "message"
    level: Literal["info", "warning", "error"]
    text: str
    range: TextRange | None = None


class HeldOut(Frozen):
    """Figures on rows that were kept from training, in bits per token.  `bound` is the one-sample mean."""

    event: Literal["held_out"] = "held_out"
    step: int
    seconds: float
    """Seconds of training so far."""
    rows: int
    draws: int
    bits_per_byte: float
    bound: float
    unigram: float
    bigram: float


class Accuracy(Frozen):
    """How often the likeliest value of a site was the true one, with a 95 % interval (Wilson's, for a binomial share).

    `baseline` is what always answering `commonest` gives on the same values.
    """

    site: str
    count: int
    accuracy: float
    low: float
    high: float
    baseline: float
    commonest: str


class Accuracies(Frozen):
    """Shares of right answers on rows that were kept from training."""

    event: Literal["accuracies"] = "accuracies"
    step: int
    seconds: float
    """Seconds of training so far."""
    rows: int
    sites: tuple[Accuracy, ...]


class CheckpointWritten(Frozen):
    event: Literal["checkpoint"] = "checkpoint"
    step: int
    path: str


class PosteriorRow(Frozen):
    """One scalar of the posterior."""

    name: str
    mean: float | None = None
    sd: float | None = None
    q05: float | None = None
    median: float | None = None
    q95: float | None = None
    r_hat: float | None = None
    ess: float | None = None
    unmixed: bool | None = None
    """Whether R-hat is more than chains that have mixed would show; None without chains."""


class Losses(Frozen):
    first: float | None = None
    last: float | None = None
    best: float | None = None
    mean_of_last: float | None = None
    """Mean of the last 50 steps, at most the last tenth of those made."""


class Check(Frozen):
    """One thing that tells whether a fit is to be trusted: what was found; where it is bad, what to do, and where."""

    name: str
    passed: bool
    text: str
    value: float | None = None
    """The figure that decides: a share, or that of the number that is worst off."""
    site: str | None = None
    advice: str | None = None
    settings: dict[str, bool | int | float | str] = {}
    """Those of another run that might mend it, where settings can."""
    range: TextRange | None = None
    foreign: str | None = None
    """`layers.qvr:12`, where the step is one of another file; the range is then that of its import."""

    @computed_field
    @property
    def grave(self) -> bool:
        """Whether the result is not to be trusted, rather than rough or not known well."""
        alone = self.name == "R-hat" and self.site is None
        return not self.passed and self.name not in ROUGH and not alone

    @computed_field
    @property
    def note(self) -> bool:
        """Whether nothing is said against the draws: only leave-one-out figures of some observations are rough."""
        return not self.passed and self.name == "Pareto k"


ROUGH = frozenset(("bulk ESS", "tail ESS", "MCSE", "mixing", "Pareto k"))
"""Checks that ask for more draws, or say that only a leave-one-out figure is rough."""


class Finished(Frozen):
    """The run reached its end (or its time limit: `reason` says so)."""

    event: Literal["finished"] = "finished"
    step: int
    seconds: float
    losses: Losses | None = None
    posterior: tuple[PosteriorRow, ...] = ()
    held_out: HeldOut | None = None
    accuracies: Accuracies | None = None
    divergences: int | None = None
    acceptance: float | None = None
    checks: tuple[Check, ...] = ()
    """Whether the draws are to be trusted, thing by thing; the loss where it says no."""
    warnings: tuple[str, ...] = ()
    """Why the result may not be what was wanted; each was a message as well."""
    reason: str | None = None

    def verdict(self) -> str:
        """`finished`, or which grave checks failed."""
        bad = [f"{one.name} ({one.text})" for one in self.checks if one.grave]
        return f"finished, not to be trusted: {'; '.join(bad)}" if bad else "finished"


class Cancelled(Frozen):
    event: Literal["cancelled"] = "cancelled"
    step: int
    seconds: float
    checkpoint: str | None = None
    posterior: tuple[PosteriorRow, ...] = ()
    """The draws of chains so far, which are stored as well."""


class Failed(Frozen):
    """A failure that the run understood: it is told in the user's words, at the user's line where there is one."""

    event: Literal["failed"] = "failed"
    code: str
    message: str
    range: TextRange | None = None
    foreign: str | None = None
    """As for a check."""
    site: str | None = None
    fixes: tuple[str, ...] = ()
    usage: bool | None = None
    """True where what was asked for cannot be: an option, a name, a file that is not there."""
    log: tuple[str, ...] = ()
    """Last lines of the worker's log, where the failure was not foreseen."""


class Crashed(Frozen):
    """The process ended without a word: made by the client, never by the worker."""

    event: Literal["crashed"] = "crashed"
    returncode: int | None
    signal: str | None = None
    log: tuple[str, ...] = ()


Event = (
    Started
    | Progress
    | Draws
    | Message
    | HeldOut
    | Accuracies
    | CheckpointWritten
    | Finished
    | Cancelled
    | Failed
    | Crashed
)
ENDINGS = (Finished, Cancelled, Failed, Crashed)

_events: TypeAdapter[Event] = TypeAdapter(Annotated[Event, Field(discriminator="event")])


def parse_event(line: str | bytes) -> Event:
    """The event on one line of a worker's stdout.  Raises ValueError where the line is none."""
    return _events.validate_json(line)


def events_schema() -> dict[str, Any]:
    """The JSON Schema of one event."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "event", **_events.json_schema()}
