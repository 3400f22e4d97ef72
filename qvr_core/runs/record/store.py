"""The run directory: `.qvr/runs/<time>-<program>/`.

    job.json           what was asked: configuration, program name, paths
    program.qvr        the program's text as it was run
    imports.json       the texts of the files that it imports, by their locations
    environment.json   versions, git state, the hash of the program's text
    process.json       the worker's pid and start time, to tell a running run from a crashed one
    lock               held by the process that works on the run, see `lock.py`
    data.json          size, time and digest of every data file, see `data_files.py`
    events.log         every event but the merged-away ones, each line with its CRC-32
    worker.log         the worker's stderr
    checkpoints/       one folder each, see `checkpoint.py`
    vocabulary.json    sentence pairs: the words or byte pairs of the training part
    posterior.nc       NUTS: draws (NetCDF); posterior.json holds their digest
    summary.json       mean, spread, density, ranks of every number of the posterior, see `summary.py`
    elpd/              what refits without some of the observations have found, see `evaluation/refitted.py`
    ending.json        the last event

Everything is written whole or not at all, and checked when read.  Nothing here imports torch.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from qvr_core.runs.record.atomic_files import (
    DamagedFile,
    cut_torn_line,
    digest,
    file_digest,
    read_json,
    read_stamped,
    stamped,
    write_bytes,
    write_json,
)
from qvr_core.runs.record.config import RunConfig
from qvr_core.runs.record.imports import digest_of, read_imports, write_imports
from qvr_core.runs.record.lock import Lock
from qvr_core.runs.record.protocol import Event, Failed, Finished, Job, Progress, Started, parse_event


class NoSuchRun(Exception):
    """No run of that id, or several that begin with it; the message lists what there is."""


class NotResumable(Exception):
    """There is nothing to go on with; the message says why, and what to do."""


@dataclass(frozen=True)
class RunDirectory:
    """One run on disk."""

    path: Path

    @classmethod
    def of(cls, job: Job) -> RunDirectory:
        return cls(Path(job.directory))

    @property
    def run_id(self) -> str:
        return self.path.name

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoints"

    @property
    def log(self) -> Path:
        return self.path / "worker.log"

    @property
    def posterior(self) -> Path:
        return self.path / "posterior.nc"

    @property
    def summary(self) -> Path:
        return self.path / "summary.json"

    @property
    def statistics(self) -> Path:
        """What lets of data computed from all of the data of the fit: new rows are scaled by it."""
        return self.path / "statistics.json"

    def is_there(self) -> bool:
        """Whether the run still has its folder, with what was asked in it."""
        return (self.path / "job.json").is_file()

    def seal_posterior(self) -> None:
        """Note the digest of the posterior's file, once it is written."""
        write_json(self.path / "posterior.json", {"sha256": file_digest(self.posterior)})

    def check_posterior(self) -> None:
        """Raise `DamagedFile` where the posterior is not as it was written, OSError where there is none."""
        if read_json(self.path / "posterior.json")["sha256"] != file_digest(self.posterior):
            raise DamagedFile(f"{self.posterior} is damaged: its content does not match its checksum")

    def job(self) -> Job:
        """What was asked, with the text of the program.  Raises `DamagedFile`, OSError."""
        try:
            content = read_json(self.path / "job.json")
            raw = (self.path / "program.qvr").read_bytes()
        except FileNotFoundError as error:
            raise DamagedFile(f"run {self.run_id} is damaged: {error.filename} is missing") from error
        except IsADirectoryError as error:
            raise DamagedFile(f"{error.filename} is damaged: it is a folder, where the run keeps a file") from error
        if digest(raw) != content.pop("program_sha256", None):
            raise DamagedFile(f"{self.path / 'program.qvr'} is damaged: it is not the program that was run")
        text = raw.decode("utf-8", "surrogatepass")
        imports = read_imports(self.path, content.pop("imports_sha256", None))
        return Job.model_validate({**content, "text": text, "imports": imports, "directory": str(self.path)})

    def ask(self, job: Job) -> None:
        """Write what is asked: the settings of a new run, or those that a resumed one goes on with."""
        left_out = {"text", "imports", "directory", "parent", "resume", "changed_data"}
        asked = job.model_dump(mode="json", exclude=left_out)
        asked["program_sha256"] = digest(job.text.encode("utf-8", "surrogatepass"))
        if job.imports:
            asked["imports_sha256"] = digest_of(job.imports)
        write_json(self.path / "job.json", asked)

    def subject(self) -> tuple[Path, str | None]:
        """The file that was run, absolute, and its program (None where it is not known yet).  Raises `DamagedFile`,
        OSError, ValueError, KeyError."""
        content = read_json(self.path / "job.json")
        file = Path(os.path.abspath(Path(content["base"]) / content["path"]))
        if content.get("program"):
            return file, content["program"]
        return file, next((event.program for event in self.events() if isinstance(event, Started)), None)

    def append(self, event: Event) -> None:
        """Add an event to the log.  The whole line goes out in one write, behind the last whole line."""
        with open(self.path / "events.log", "a+b") as file:
            cut_torn_line(file)
            file.write(stamped(event.encoded()).encode())

    def events(self) -> Iterator[Event]:
        """All events so far, oldest first.  Raises `DamagedFile` where the log is not what was written."""
        try:
            for line in read_stamped(self.path / "events.log"):
                yield parse_event(line)
        except FileNotFoundError:
            return

    def enter(self) -> Lock:
        """Take the run for this process; what a killed one left half written goes.  Raises `Held`, OSError."""
        lock = Lock(self.path, process_start(os.getpid()))
        for partial in (*self.path.glob(".*.part"), *self.checkpoints.glob("**/.*.part")):
            # a file may be gone with the folder that it was in
            shutil.rmtree(partial) if partial.is_dir() else partial.unlink(missing_ok=True)
        (self.path / "ending.json").unlink(missing_ok=True)
        write_json(self.path / "process.json", {"pid": os.getpid(), "started": process_start(os.getpid())})
        return lock

    def end(self, event: Event) -> None:
        """Write the last event."""
        # By way of JSON text: a number that is not finite is null there.
        write_json(self.path / "ending.json", json.loads(event.encoded()))

    def ending(self) -> Event | None:
        """The last event, or None where there is none yet."""
        try:
            content = read_json(self.path / "ending.json")
        except FileNotFoundError:
            return None
        return parse_event(json.dumps(content))

    def step(self) -> int:
        """The step of the newest checkpoint of a fit by svi; 0 where there is none."""
        return _newest_step(self.checkpoints)

    def draws(self) -> dict[int, int]:
        """By chain the transition of its newest checkpoint."""
        found: dict[int, int] = {}
        for folder in self.checkpoints.glob("chains-*"):
            first, last = map(int, folder.name.split("-")[1:])
            for chain in range(first, last + 1):
                found[chain] = max(found.get(chain, 0), _newest_step(folder))
        return found

    def status(self) -> str:
        """'queued', 'running', 'finished', 'cancelled', 'failed' or 'crashed', read off the disk and the process table,
        so that it is true after any kill."""
        ending = self.ending()
        if ending is not None:
            return ending.event
        try:
            process = read_json(self.path / "process.json")
        except FileNotFoundError:
            return "queued"
        alive = process_start(int(process["pid"])) == process["started"] and process["started"] is not None
        return "running" if alive else "crashed"

    def delete(self) -> None:
        """Remove the run's folder: first its name, so that no half of a run is ever listed.  Raises OSError."""
        aside = self.path.parent.parent / f".deleted-{self.run_id}-{os.getpid()}"
        os.replace(self.path, aside)
        shutil.rmtree(aside)

    def refused(self) -> bool:
        """Whether the run failed before its first step: there is nothing of it but the message."""
        return isinstance(self.ending(), Failed) and not any(isinstance(event, Started) for event in self.events())

    def log_tail(self, lines: int = 20) -> tuple[str, ...]:
        """The last lines that the worker printed."""
        try:
            with open(self.log, "rb") as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - 64_000))
                return tuple(file.read().decode("utf-8", "replace").splitlines()[-lines:])
        except FileNotFoundError:
            return ()


def _newest_step(folder: Path) -> int:
    return max((int(path.name.partition("-")[2]) for path in folder.glob("step-*")), default=0)


@dataclass(frozen=True)
class Overview:
    """One line of `qvr runs`.

    `last_loss` is the mean of the last steps.  `problem` says what is damaged, where something is; `refused`: no step
    was made.
    """

    run_id: str
    program: str
    algorithm: str
    status: str
    created: datetime
    last_loss: float | None
    ending: Event | None
    problem: str | None
    refused: bool


class RunStore:
    """All runs under one folder (the folder of qvr.toml, else the working directory)."""

    def __init__(self, root: Path) -> None:
        self.folder = root / ".qvr" / "runs"

    def create(
        self,
        *,
        path: str,
        text: str,
        program: str | None,
        config: RunConfig,
        base: str,
        parent: int | None = None,
        location: str = "",
        imports: Mapping[str, str] | None = None,
    ) -> Job:
        """Make a run directory and the job that describes it.  `parent` is the process the worker must not outlive;
        `imports` are the texts of all files that the text, at its `location`, imports."""
        self.folder.mkdir(parents=True, exist_ok=True)
        ignore = self.folder.parent / ".gitignore"
        if not ignore.exists():
            write_bytes(ignore, b"*\n")
        label = re.sub(r"[^A-Za-z0-9_]+", "-", program or Path(path).stem) or "run"
        directory = self._fresh(f"{self._moment(label):%Y%m%d-%H%M%S}-{label}")
        job = Job(
            run_id=directory.name,
            directory=str(directory.resolve()),
            path=path,
            text=text,
            location=location,
            imports=dict(imports or {}),
            program=program,
            config=config,
            base=base,
            parent=parent,
        )
        write_bytes(directory / "program.qvr", text.encode("utf-8", "surrogatepass"))
        write_imports(directory, job.imports)
        RunDirectory(directory).ask(job)
        return job

    def _moment(self, label: str) -> datetime:
        """When a run that begins now is said to begin: behind all others, whatever was done to the clock."""
        now, names = datetime.now().replace(microsecond=0), self.names()
        newest = _stamped(names[-1]) if names else None
        if newest is None or newest < now or (newest == now and _label(names[-1]) == label):
            return now
        return newest if _label(names[-1]) == label else newest + timedelta(seconds=1)

    def _fresh(self, name: str) -> Path:
        """A new folder called `name`, or `name-2`, `name-3`, … where two runs start in one second."""
        for count in range(1, 10_000):
            directory = self.folder / (name if count == 1 else f"{name}-{count}")
            with contextlib.suppress(FileExistsError):
                directory.mkdir()
                return directory
        raise FileExistsError(self.folder / name)

    def resume(self, run_id: str, *, parent: int | None = None, more: int = 0) -> Job:
        """The job that goes on with a run; with `more` draws of each chain than were asked for.  Raises `NotResumable`
        for one at work, and for chains that have all of their draws."""
        run = self.open(run_id)
        job, status = run.job(), run.status()
        if status == "running":
            raise NotResumable(f"run {run.run_id} is running: cancel it, or wait for its end")
        ending, config = run.ending(), job.config
        if config.algorithm == "nuts":
            samples = config.samples + more
            if not more and isinstance(ending, Finished) and ending.reason is None:
                raise NotResumable(
                    f"run {run.run_id} is finished: its chains have all of their {samples:,} draws; "
                    f"`--more {samples}` draws as many again"
                )
            config = config.model_copy(update={"samples": samples})
        elif more:
            raise NotResumable(f"run {run.run_id} is a fit by svi, which has steps, not draws: give more `steps`")
        return job.model_copy(update={"config": config, "resume": True, "parent": parent})

    def open(self, run_id: str, *, drawn: bool = False) -> RunDirectory:
        """The run of that id, of an unambiguous beginning of it, the newest of a program of that name, or of all
        (`last`): the newest that was not refused.

        With `drawn`, of a program the newest that can be drawn from, where there is one.  Raises `NoSuchRun`.
        """
        names = self.names()
        called = names if run_id == "last" else [name for name in names if _label(name) == run_id]
        if called:
            newest = [RunDirectory(self.folder / name) for name in reversed(called)]
            if drawn and run_id != "last" and (left := next(filter(_drawn, newest), None)) is not None:
                return left
            return next((run for run in newest if not _refused(run)), newest[0])
        found = [run_id] if run_id in names else [name for name in names if name.startswith(run_id)]
        if len(found) == 1:
            return RunDirectory(self.folder / found[0])
        if not names:
            raise NoSuchRun(f"there are no runs in {self.folder}")
        if found:
            raise NoSuchRun(f"`{run_id}` is the beginning of several runs: {', '.join(found[:10])}")
        raise NoSuchRun(f"no run `{run_id}` in {self.folder}; the newest are {', '.join(names[-5:])}")

    def names(self) -> list[str]:
        """Ids of all runs, oldest first."""
        try:
            return sorted((entry.name for entry in os.scandir(self.folder) if entry.is_dir()), key=_order)
        except FileNotFoundError:
            return []

    def newest_of(self, file: Path, program: str) -> RunDirectory | None:
        """The newest run of a program of a file; what is damaged is passed over."""
        for name in reversed(self.names()):
            run = RunDirectory(self.folder / name)
            with contextlib.suppress(DamagedFile, OSError, ValueError, KeyError):
                if run.subject() == (file, program):
                    return run
        return None

    def overviews(self) -> list[Overview]:
        """All runs, newest first.  A damaged one is listed with its problem."""
        return [overview(RunDirectory(self.folder / name)) for name in reversed(self.names())]


def _order(run_id: str) -> tuple[str, int, str]:
    """Ids sort by their moment, those of one second by their number."""
    count = re.search(r"-(\d+)$", run_id[15:])
    return run_id[:15], int(count[1]) if count else 1, run_id


def _stamped(run_id: str) -> datetime | None:
    """The moment in an id."""
    with contextlib.suppress(ValueError):
        return datetime.strptime(run_id[:15], "%Y%m%d-%H%M%S")
    return None


def _label(run_id: str) -> str:
    """The program in an id, which is `20261122-213108-radon`, or `…-radon-2` for the second of one second."""
    return re.sub(r"^\d+-\d+-|-\d+$", "", run_id)


def _refused(run: RunDirectory) -> bool:
    try:
        return run.refused()
    except (DamagedFile, OSError, ValueError):
        return False


def _drawn(run: RunDirectory) -> bool:
    """Whether a run left draws, or a fit by svi that did not fail."""
    try:
        return run.posterior.exists() or (run.step() > 0 and run.status() not in ("failed", "crashed"))
    except (DamagedFile, OSError, ValueError):
        return False


def overview(run: RunDirectory) -> Overview:
    """What `qvr runs` shows of one run."""
    created = datetime.fromtimestamp(run.path.stat().st_mtime)
    created = _stamped(run.run_id) or created
    program, algorithm, status, loss, ending, problem = run.run_id[16:], "", "damaged", None, None, None
    begun = False
    try:
        content = read_json(run.path / "job.json")
        program, algorithm = content.get("program") or program, content["config"]["algorithm"]
        status, ending = run.status(), run.ending()
        for event in run.events():
            if isinstance(event, Progress) and event.loss is not None:
                loss = event.loss if event.smoothed_loss is None else event.smoothed_loss
            if isinstance(event, Started):
                program, begun = event.program, True
    except (DamagedFile, OSError, ValueError, KeyError) as error:
        problem = str(error)
    if isinstance(ending, Finished) and ending.losses is not None and ending.losses.mean_of_last is not None:
        loss = ending.losses.mean_of_last
    refused = isinstance(ending, Failed) and not begun and problem is None
    return Overview(run.run_id, program, algorithm, status, created, loss, ending, problem, refused)


def process_start(pid: int) -> str | None:
    """When a live process started, as the kernel counts it; None where there is none.

    A pid is used again in time, a pid with its start time is not.  Without /proc only the pid itself can be asked.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        if Path("/proc/self/stat").exists() or os.name != "posix":
            return None
        try:
            os.kill(pid, 0)
        except OSError:
            return None
        return "alive"
    return None if fields[0] in "ZX" else fields[19]
