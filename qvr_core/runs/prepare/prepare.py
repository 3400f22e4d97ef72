"""From a job to what an engine needs: the checked program as a module, and its data as rows."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from qvr_core.analysis import Snapshot
from qvr_core.arrays.engine import Tensor, arrays
from qvr_core.container_types import is_tuple
from qvr_core.data import sentence_pairs
from qvr_core.data import text as texts
from qvr_core.data.binding import bind
from qvr_core.data.column_names import listed
from qvr_core.data.needs import Needs, needs_of, reads_both_ways
from qvr_core.data.sentences import check_files, read_paragraphs
from qvr_core.data.synthetic import synthetic
from qvr_core.data.tables.columns import read_head
from qvr_core.data.tables.parquet import parquet_files
from qvr_core.data.tables.reading import STREAMED, read_columns
from qvr_core.data.vocabulary import Vocabulary, restored, trained
from qvr_core.runs.prepare import typed_data
from qvr_core.runs.prepare.derivable import check_derivable, check_posterior
from qvr_core.runs.prepare.failures import Refused
from qvr_core.runs.prepare.memory import Estimate, check_fits, check_fits_on, estimate
from qvr_core.runs.prepare.runnable import built, built_with_guides, chosen
from qvr_core.runs.record.atomic_files import read_json, write_json
from qvr_core.runs.record.config import UNITS, RunConfig
from qvr_core.runs.record.data_files import path_of
from qvr_core.runs.record.program import analysed
from qvr_core.runs.record.protocol import Baselines, Job
from qvr_core.runs.record.store import RunDirectory
from qvr_core.runtime.programs.handlers import condition, densities
from qvr_core.runtime.programs.program import ProgramModule
from qvr_core.semantics.file.open_sets import KnownSet
from qvr_core.semantics.types.diagnostics import Severity
from qvr_core.semantics.types.model.programs import Program
from qvr_core.semantics.types.model.steps import SampleModel

ONE_THREAD = 64 * 2**20
"""Bytes of parameters, optimiser and activations below which one thread is faster than several."""

Batch = tuple[Any, Mapping[str, Any]]
"""Input and observations (data names included)."""


class Rows(Protocol):
    """Data as numbered rows."""

    @property
    def rows(self) -> int:
        """How many there are."""
        ...

    def batch(self, rows: Tensor, generator: arrays.Generator | None = None) -> Batch:
        """The rows of these numbers."""
        ...


@dataclass(frozen=True)
class Source:
    """A run's data, read."""

    train: Rows
    description: str
    held_out: texts.TextWindows | sentence_pairs.SentencePairs | None = None
    baselines: Baselines | None = None


@dataclass(frozen=True)
class Prepared:
    """A run before its first step."""

    job: Job
    snapshot: Snapshot
    program: Program
    needs: Needs
    model: ProgramModule
    device: arrays.device
    train: Rows
    held_out: texts.TextWindows | sentence_pairs.SentencePairs | None
    baselines: Baselines | None
    description: str
    memory: int
    """Bytes that the run is estimated to need."""
    written: Needs | None = None
    """The needs before the sizes of open sets were known, where data are laid along declared sets."""
    known: Mapping[str, KnownSet] = field(default_factory=dict[str, KnownSet])
    guides: Mapping[str, ProgramModule] = field(default_factory=dict[str, ProgramModule])
    """The guides that the file writes for the program, by name."""

    @property
    def text(self) -> bool:
        return self.job.config.source == "text"

    def move(self, batch: Batch) -> Batch:
        """A batch on the run's device."""
        if self.device.type == "cpu":
            return batch
        x, observations = batch
        return _to(x, self.device), {name: _to(value, self.device) for name, value in observations.items()}


def _to(value: Any, device: arrays.device) -> Any:
    if isinstance(value, Tensor):
        return value.to(device)
    return tuple(_to(part, device) for part in value) if is_tuple(value) else value


def device_of(job: Job) -> arrays.device:
    """The device that was asked for.  Raises `Refused` where this machine has none."""
    name = job.config.device
    kind = name.partition(":")[0]
    if kind != "cpu" and job.config.algorithm == "nuts":
        raise Refused(
            "no-device", f'chains run on the CPU, and device is "{name}"', fixes=('Use device = "cpu"', "Fit it by svi")
        )
    if kind == "cuda" and not arrays.cuda.is_available():
        raise Refused("no-device", 'device = "cuda", but torch finds no GPU here', fixes=('Use device = "cpu"',))
    if kind == "mps" and not arrays.backends.mps.is_available():
        raise Refused("no-device", 'device = "mps", but torch finds none here', fixes=('Use device = "cpu"',))
    # Of several processes on a machine each has a GPU of its own.
    number = int(name.partition(":")[2] or os.environ.get("LOCAL_RANK", "0"))
    device = arrays.device("cuda", number) if kind == "cuda" else arrays.device(name)
    if kind == "cuda" and number >= arrays.cuda.device_count():
        raise Refused("no-device", f'device = "cuda:{number}", but there are {arrays.cuda.device_count()} GPUs')
    if kind == "cuda":
        arrays.cuda.set_device(device)
    return device


def prepare(job: Job, snapshot: Snapshot) -> Prepared:
    """Build the program and read its data.  Raises `Refused`, `DataProblem` or a `RuntimeProblem`."""
    config = job.config
    program = chosen(job, snapshot.model)
    device = device_of(job)
    needs = written = needs_of(program)
    _check_sentences_named(config, needs)
    _check_data_named(config, program)
    _check_held_out(config)
    _check_terms(config, needs)
    typed: typed_data.TypedData | None = None
    known: Mapping[str, KnownSet] = {}
    if typed_data.is_typed(config, needs, snapshot):
        typed = typed_data.read_sources(job, check_fits(Estimate(0, 0, 0, ()), config.memory_limit), program)
        known = typed_data.told(job, needs, program, snapshot, typed)
    if known:
        snapshot = sized(job, known)
        program = chosen(job, snapshot.model, known)
        needs = needs_of(program)
    needed = estimate(
        snapshot.model,
        program,
        config,
        rows=_rows_at_once(config, needs),
        sequence=any(need.sequence for need in needs.inputs),
    )
    room = check_fits_on(device, needed, config)
    if config.source == "pairs":
        check_files(data_path(job))
    _check_positions(config, program)
    arrays.set_num_threads(config.threads or default_threads(needed))
    arrays.set_default_dtype(arrays.float64 if config.precision == "float64" else arrays.float32)
    arrays.manual_seed(config.seed)
    model, guides = built_with_guides(job, known)
    model.to(device)
    if config.algorithm == "nuts":
        check_posterior(model)
    single = config.algorithm == "svi" and (config.precision == "bfloat16" or device.type != "cpu")
    if not single and not any(p.is_floating_point() for p in model.parameters()):
        # chains and guides of such a program move in double precision, those of the file too, and their data are read
        # as they stand
        arrays.set_default_dtype(arrays.float64)
        for guide in guides.values():
            guide.to(arrays.float64)
    match config.source:
        case "text":
            data = _text(job, needs, room, both_ways=reads_both_ways(program, snapshot.model))
        case "pairs":
            data = _pairs(job, program, needs, room)
        case "synthetic" if typed is None or not typed.sources.named:
            data = _synthetic(job, program, needs, known)
        case _ if typed is not None:
            rows = typed_data.bound(job, written, typed, room)
            data = Source(rows, typed_data.description(typed, known, written, program))
        case _:
            data = _table(job, program, needs, room)
    if model.deductions:
        check_derivable(program, model, data.train)
    return Prepared(
        job, snapshot, program, needs, model, device, data.train, data.held_out, data.baselines, data.description,
        needed.total, None if typed is None else written, known, guides,
    )  # fmt: skip


def _check_data_named(config: RunConfig, program: Program) -> None:
    """Refuse to draw data from a program that declares some: whoever has data means theirs."""
    declared = [data.name for data in program.data if data.declared]
    if declared and not config.names_data:
        message = f"`{program.name}` reads {listed(declared)}, and nothing says where the data are"
        fixes = (
            f'Name them: --data csv:FILE, or `data = "csv:FILE"` under [run.{program.name}] in qvr.toml',
            "Draw them from the program itself: --data synthetic",
        )
        raise Refused("no-data", message, fixes=fixes)


def _check_sentences_named(config: RunConfig, needs: Needs) -> None:
    """Refuse to make sentences up: a deduction says how much one weighs, not how one is drawn."""
    named = next((need for need in needs.data if need.lexicon is not None and need.name not in config.tables), None)
    if named is None or named.lexicon is None or config.source in ("csv", "ndjson", "parquet", "npz", "json"):
        return
    if config.source == "synthetic":
        message = f"`{named.name}` holds sentences, and `{named.lexicon.deduction}` parses them but draws none"
    else:
        message = f"`{named.name}` holds sentences, and those are read from tables and json, not from `{config.source}`"
    fixes = (
        f'Name a table with a column `{named.name}`: --data csv:FILE, or `data = "csv:FILE"` under '
        f"[run.{needs.program}] in qvr.toml",
    )
    raise Refused("no-data", message, site=named.name, fixes=fixes)


def _check_terms(config: RunConfig, needs: Needs) -> None:
    """Refuse terms from what has no rows of cells."""
    named = next((need.name for need in needs.inputs if need.terms is not None), None)
    if named is not None and config.source in ("json", "text", "pairs"):
        message = f"`{named}` is a term a row, and those are read from csv, ndjson, parquet and npz"
        raise Refused("data", message, site=named, fixes=("Write a table with a column of terms: ndjson, or csv",))


def _check_held_out(config: RunConfig) -> None:
    """Refuse to keep rows of a table from the fit: only texts and sentence pairs have a figure for them."""
    # rows that are made up may stand in for those of a text, with its settings
    if config.held_out and config.source not in ("text", "pairs", "synthetic"):
        message = (
            f"held_out keeps a part of a text or of sentence pairs from training, and `{config.source}` is neither"
        )
        raise Refused("held-out", message, fixes=("Leave held_out out, and fit a file without those rows",))


def _check_positions(config: RunConfig, program: Program) -> None:
    """Refuse windows that are longer than the positions that the program has learned."""
    extent, length = program.extent, config.sequence_length
    if config.source in ("text", "pairs", "synthetic") and extent.positions is not None and extent.positions < length:
        message = f"sequence_length is {length}, but `{extent.place}` has learned positions for {extent.positions}"
        fixes = (f"Give `{extent.place}` max_length={length}", f"Set sequence_length = {extent.positions}")
        raise Refused("too-few-positions", message, site=extent.place, fixes=fixes)


def _rows_at_once(config: RunConfig, needs: Needs) -> int:
    """Rows that one evaluation of the program sees."""
    if needs.statistical:
        return 1
    return config.rows if config.algorithm == "nuts" else config.batch_rows


def _table(job: Job, program: Program, needs: Needs, room: int | None) -> Source:
    """A file of rows; in parts where it is large, or where a statistical program asks for a part in each step."""
    config, path = job.config, data_path(job)
    in_parts = needs.statistical and config.batch_size is not None and config.algorithm == "svi"
    terms = any(need.terms is not None for need in needs.inputs)
    large = not needs.statistical and not terms and _size(path, config.source) > STREAMED
    if config.source == "npz" or not (in_parts or large):
        columns = read_columns(path, config.source, room)
        count, what = (len(columns.columns), "array") if columns.rows is None else (columns.rows, "row")
        size = f"{count:,} {what}{'' if count == 1 else 's'}"
        return Source(bind(columns, needs, _renamed(config, needs)), f"{columns.path}: {size}")
    if in_parts:
        _check_parts(program, needs)
    if config.source != "parquet":
        read_head(path)
    from qvr_core.data.records import records

    made = records(path, config.source, needs, _renamed(config, needs), Path(job.directory).parents[1] / "cache")
    return Source(made, f"{path}: {made.rows:,} rows, {config.batch_rows:,} in a step")


def _size(path: str, source: str) -> int:
    """Bytes of a file, or of those in a folder of parquet files."""
    files = parquet_files(path) if source == "parquet" else [path]
    return sum(os.path.getsize(name) for name in files if os.path.isfile(name))


def _renamed(config: RunConfig, needs: Needs) -> dict[str, str]:
    """Columns that are called otherwise.  Raises `Refused` for a list of columns, which only declared data have."""
    read = {need.name for need in needs.all}
    for name, columns in config.columns.items():
        if not isinstance(columns, str) and name in read:
            message = f"`columns` lists columns for `{name}`, and nothing says that it runs over two sets"
            raise Refused("columns", message, site=name, fixes=(f"Declare it: `data {name} : Row * Column`",))
    return {name: column for name, column in config.columns.items() if isinstance(column, str)}


def _check_parts(program: Program, needs: Needs) -> None:
    """A part of the rows can stand for all only where no latent has the rows' plate."""
    plates = {
        step.site.elementwise.written
        for step in program.steps
        if isinstance(step, SampleModel) and step.site.elementwise is not None
    }
    for need in needs.observed:
        if need.plate is not None and need.plate[0] in plates:
            message = (
                f"batch_size takes a random part of the rows in each step, but `{need.name}` is indexed by "
                f"`{need.plate[0]}`, which has a latent for every row"
            )
            raise Refused("batch", message, site=need.name, fixes=("Leave batch_size out",))


def sized(job: Job, known: Mapping[str, KnownSet]) -> Snapshot:
    """The program's text with the elements of its open sets.  Raises `Refused` where an error shows only then."""
    snapshot = analysed(job, known)
    wrong = next((found for found in snapshot.diagnostics() if found.severity is Severity.ERROR), None)
    if wrong is not None:
        sizes = ", ".join(f"`{name}` has {found.size}" for name, found in known.items())
        raise Refused("data-size", f"line {wrong.range.start.line + 1}: {wrong.message} (in these data {sizes})")
    return snapshot


def _synthetic(job: Job, program: Program, needs: Needs, known: Mapping[str, KnownSet]) -> Source:
    """Rows drawn from the program with parameters of their own, which the fit does not see."""
    config = job.config
    with arrays.random.fork_rng(devices=[]):
        arrays.manual_seed(config.seed + 1)
        truth = built(job, known)

    def draw(x: Any, data: Mapping[str, Tensor]) -> dict[str, Tensor]:
        with arrays.no_grad():
            run = truth.execute(x, condition(data), densities(False))
        return {need.name: _tensor(run.sites[need.name].value) for need in needs.observed}

    rows = synthetic(needs, draw, rows=config.rows, length=config.sequence_length, seed=config.seed + 1)
    what = "data" if needs.statistical else f"{rows.rows:,} rows"
    return Source(rows, f"synthetic: {what} drawn from `{program.name}` itself (seed {config.seed + 1})")


def _tensor(value: Any) -> Tensor:
    assert isinstance(value, Tensor)
    return value


def default_threads(needed: Estimate) -> int:
    """One thread for a small program: its operations are too short to share, and threads that wait would spin."""
    work = needed.parameters + needed.activations
    return 1 if work < ONE_THREAD else arrays.get_num_threads()


def data_path(job: Job) -> str:
    """The data file, as a path that the user recognises: the shorter of the relative and the absolute one."""
    path = str(path_of(job))
    return min(os.path.relpath(path), path, key=len)


def _text(job: Job, needs: Needs, room: int | None, *, both_ways: bool) -> Source:
    config = job.config
    corpus = texts.read_corpus(data_path(job), _unit(config), room)
    task = texts.plan(
        corpus,
        needs,
        both_ways=both_ways,
        task=config.task,
        length=config.sequence_length,
        mask=config.mask,
        mask_token=config.mask_token,
    )
    share = 0.1 if config.held_out is None else config.held_out
    train, held_out = texts.split(corpus, task, share)
    unigram, bigram = texts.entropies(corpus)
    what = (
        f"masked {corpus.unit} (id {task.mask_token} stands for it, position {task.mask})"
        if task.task == "masked"
        else f"next {corpus.unit}"
    )
    description = (
        f"{corpus.path}: {len(corpus):,} {corpus.unit}s, windows of {task.length}, {what}; "
        f"{train.rows:,} training windows" + (f", {held_out.rows:,} held out" if held_out else "")
    )
    return Source(train, description, held_out, Baselines(unigram=unigram, bigram=bigram))


def _pairs(job: Job, program: Program, needs: Needs, room: int | None) -> Source:
    config, path = job.config, data_path(job)
    positions = program.extent.positions
    task = sentence_pairs.plan(path, needs, length=config.sequence_length, unit=_unit(config), positions=positions)
    share = 0.1 if config.held_out is None else config.held_out
    train, held = sentence_pairs.parted(read_paragraphs(path, room), share, path)
    words = vocabulary_of(RunDirectory.of(job), config.token_unit, train, task.tokens.size or 0)
    rows = sentence_pairs.SentencePairs(train, words, task, path)
    held_out = sentence_pairs.SentencePairs(held, words, task, path) if held else None
    description = (
        f"{path}: {rows.tokens:,} tokens, a vocabulary of {words.size:,} ({words.unit}, {rows.unknown:.1%} unknown); "
        f"pairs of at most {task.length}, {rows.rows:,} for training"
        + (f", {held_out.rows:,} held out" if held_out else "")
    )
    return Source(rows, description, held_out)


def vocabulary_of(run: RunDirectory, unit: str, paragraphs: Sequence[Sequence[str]], size: int) -> Vocabulary:
    """The vocabulary of a run: made once from its training part, then the one that its directory holds."""
    file = run.path / "vocabulary.json"
    if file.exists():
        return restored(unit, read_json(file)["tokenizer"])
    made = trained(unit, [sentence for paragraph in paragraphs for sentence in paragraph], size)
    if run.path.is_dir():
        write_json(file, {"unit": unit, "tokenizer": made.stored()})
    return made


def _unit(config: RunConfig) -> str:
    """The unit of a token.  Raises `Refused` where the source has no such unit."""
    known = UNITS[config.source]
    if config.token_unit not in known:
        message = f"the tokens of `{config.source}` data are of unit {' or '.join(known)}, not {config.token_unit}"
        raise Refused("unit", message, fixes=(f'Set unit = "{known[0]}"',))
    return config.token_unit
