"""`qvr run svi FILE`, `qvr run nuts FILE`: fit a program in a worker process and watch it."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn

import typer
from pydantic.fields import FieldInfo
from typer.core import TyperGroup

from qvr_core.cli.console import PlainConsole, say
from qvr_core.cli.files import analysed_file, read_program, read_settings, source_flags, stop, store
from qvr_core.runs.client.client import ENVIRONMENT, WorkerProcess
from qvr_core.runs.client.forked import ForkedProcess, can_fork
from qvr_core.runs.record.atomic_files import DamagedFile
from qvr_core.runs.record.config import RunConfig
from qvr_core.runs.record.program import imports_of, of_snapshot
from qvr_core.runs.record.protocol import Crashed, Event, Failed, Job
from qvr_core.runs.record.settings import UsageProblem, main_program, resolve
from qvr_core.runs.record.settings_file import find_settings
from qvr_core.runs.record.store import NoSuchRun, NotResumable, RunDirectory, RunStore
from qvr_core.semantics.types.model.file import Model


class Algorithms(TyperGroup):
    """The algorithms as commands; a file in their place is told."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name = args[0]
        if name not in self.commands and (name.endswith(".qvr") or Path(name).is_file()):
            rest = " ".join([name, *(word for word in args[1:] if word not in self.commands)])
            stop(f"the algorithm comes first: qvr run svi {rest} (or nuts)")
        return super().resolve_command(ctx, args)


app = typer.Typer(add_completion=False, cls=Algorithms, help="Fit a program.", no_args_is_help=True)

FIXED = ("file", "program", "settings", "as_json", "plot", "resume", "more", "changed_data", "explain", "nproc")


def _command(algorithm: str) -> Callable[..., str]:
    """The command of one algorithm: its own flags, and one for every key of a run's configuration.  It gives the id of
    the run to whoever calls it; the object of the context is the text in the file's place."""

    def command(ctx: typer.Context, **given: Any) -> str:
        fixed = {name: given.pop(name, None) for name in FIXED}
        given["param"] = ",".join(given["param"] or ()) or None
        given.update(source_flags(given["data"] or (), given["tables"]))
        flags = {"algorithm": algorithm, **{key: raw for key, raw in given.items() if raw is not None}}
        return execute(flags=flags, text=ctx.obj, **fixed)

    option = typer.Option
    parameters = [
        _parameter("ctx", typer.Context, inspect.Parameter.empty),
        _parameter("file", str | None, typer.Argument(None, help="A .qvr file.")),
        _parameter("program", str | None, option(None, "--program", "-p", help="Which program of the file.")),
        _parameter("settings", Path | None, option(None, "--settings", help="Another qvr.toml.")),
        _parameter("as_json", bool, option(False, "--json", help="One event per line, as JSON.")),
        _parameter(
            "plot",
            Path | None,
            option(None, "--plot", help="Draw the loss, or the traces of the chains, into this image at the end."),
        ),
        _parameter("resume", str | None, option(None, "--resume", help="Go on with this run (`last`: the newest).")),
        *([_parameter("more", int | None, option(None, "--more", min=1, help=MORE))] if algorithm == "nuts" else []),
        _parameter("changed_data", bool, option(False, "--changed-data", help="Resume although data have changed.")),
        _parameter("explain", bool, option(False, "--explain", help="Show every setting and where it comes from.")),
        _parameter("nproc", int, option(1, "--nproc", min=1, help="Processes on this machine that share each step.")),
    ]
    for key, info in RunConfig.model_fields.items():
        if key != "algorithm":
            flag = "--" + key.replace("_", "-")
            panel = "Settings, which qvr.toml may hold as well"
            kind, word = (list[str] | None, REPEATED[key]) if key in REPEATED else (str | None, "VALUE")
            hidden = algorithm not in ONLY_OF.get(key, (algorithm,))
            shown = option(None, flag, help=_meaning(info), rich_help_panel=panel, metavar=word, hidden=hidden)
            parameters.append(_parameter(key, kind, shown))
    command.__signature__ = inspect.Signature(parameters)  # pyright: ignore[reportFunctionMemberAccess]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command


def _meaning(info: FieldInfo) -> str:
    """What a setting means, of which rich shall read nothing in brackets as markup."""
    return (info.description or "").replace("[", r"\[")


ONLY_OF = {"init": ("nuts",), "cluster": ("nuts",)}
"""Settings that the help of other algorithms does not show."""
MORE = "With --resume: so many draws of each chain on top of those that were asked for."
REPEATED = {"param": "NAME=VALUE", "data": "[NAME=]VALUE"}
"""Flags that may be given several times."""


def _parameter(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


app.command("svi", help="Fit by stochastic variational inference.")(_command("svi"))
app.command("nuts", help="Sample the posterior by the No-U-Turn sampler.")(_command("nuts"))


def execute(
    *,
    flags: dict[str, str],
    file: str | None,
    program: str | None,
    settings: Path | None,
    as_json: bool,
    plot: Path | None,
    resume: str | None,
    more: int | None,
    changed_data: bool,
    explain: bool,
    nproc: int,
    text: str | None = None,
) -> str:
    """Run a program to its end, and give the id of the run; exit status 1 where it failed or crashed, 2 where what was
    asked cannot be.  `text` stands in place of what the file holds."""
    if (file is None) == (resume is None):
        stop("name a file to run, or a run to --resume")
    if more is not None and resume is None:
        stop("--more draws go on with a run: name it with --resume")
    if flags["algorithm"] != "nuts" and flags.get("cluster", "none") != "none":
        stop("--cluster is for chains (qvr run nuts): --nproc N shares the steps of svi among processes")
    if nproc > 1 and text is not None:
        stop("--nproc is for `qvr run`, with the program in a file")
    if nproc > 1 and not explain:
        raise typer.Exit(_under_torchrun(nproc))

    def make_job() -> Job:
        if resume is not None:
            return _resumed(resume, flags, explain, more or 0).model_copy(update={"changed_data": changed_data})
        assert file is not None
        return _fresh(file, program, settings, flags, explain, text)

    if "TORCHELASTIC_RUN_ID" in os.environ:
        status = _as_one_of_many(make_job, as_json=as_json, device=flags.get("device", "cpu"))
        sys.stdout.flush()
        sys.stderr.flush()
        # Everything is written: threads of torch.distributed may still run, and would abort an orderly end.
        os._exit(status)
    job = make_job()
    ending = asyncio.run(watch(job, _fork(), as_json=as_json))
    if plot is not None:
        _picture(RunStore(_root(job)), job.run_id, plot)
    if isinstance(ending, Failed | Crashed):
        raise typer.Exit(2 if isinstance(ending, Failed) and ending.usage else 1)
    return job.run_id


def _fork() -> ForkedProcess | None:
    """A worker that has loaded what this process has, the checker's grammar too; None where it has to start anew."""
    try:
        return ForkedProcess(ENVIRONMENT) if can_fork() else None
    except OSError as error:
        stop(f"the worker could not be started: {error}", 1)


def _picture(runs: RunStore, run_id: str, plot: Path) -> None:
    from qvr_core.runs.record.plots_without_arviz import plot_run

    try:
        if not plot_run(runs.open(run_id), runs, plot):
            say(f"{plot}: the run left neither losses nor draws to show", err=True)
    except (OSError, ValueError) as problem:
        stop(f"{plot}: {problem}", 1)


def _under_torchrun(nproc: int) -> int:
    """The same command, in `nproc` processes."""
    arguments = sys.argv[1:]
    at = next(i for i, word in enumerate(arguments) if word.startswith("--nproc"))
    rest = arguments[:at] + arguments[at + (1 if "=" in arguments[at] else 2) :]
    launcher = [sys.executable, "-m", "qvr_core.runs.client.launch", str(nproc)]
    return subprocess.run([*launcher, *rest], check=False).returncode


def _as_one_of_many(make_job: Callable[[], Job], *, as_json: bool, device: str) -> int:
    """This process is one of those that `torchrun` started; the leading one shows the run."""
    from qvr_core.cli.output.run_display import JsonLines, Screen
    from qvr_core.runs.worker.distributed_run import run_together

    if os.environ.get("RANK") != "0":
        return run_together(make_job, lambda event: None, device)
    job = make_job()
    view = JsonLines() if as_json else Screen(job)
    with view:
        return run_together(lambda: job, view.show, device)


def _root(job: Job) -> Path:
    return Path(job.directory).parents[2]


def _fresh(
    file: str,
    program: str | None,
    settings: Path | None,
    flags: dict[str, str],
    explain: bool,
    held: str | None = None,
) -> Job:
    """The job of a new run: flag before qvr.toml before default; `held` is the text where the file's does not count."""
    text = read_program(file) if held is None else held
    found = settings or find_settings(Path(file).parent if file != "-" else Path.cwd())
    toml = read_settings(found) if found is not None else None
    snapshot = analysed_file(file, text)
    model = snapshot.model
    name = program or main_program(model)
    try:
        resolved = resolve(name or "", toml, flags)
    except UsageProblem as problem:
        stop(str(problem))
    if found is not None and toml is not None:
        _check_toml(found, toml)
        _warn_of_misnamed(found, toml, file, name or "")
        _check_named_data(found, toml, model, name)
    if explain:
        _explain(resolved.config, resolved.origins)
    root = found.parent if found is not None else Path.cwd()
    # A path given as a flag starts where the user stands, one in qvr.toml at the file.
    base = Path.cwd() if resolved.origins["data"] == "flag" else root
    tables = Path.cwd() if resolved.origins["tables"] == "flag" else root
    config = resolved.config.placed(tables)
    path = str(Path(file).resolve()) if file != "-" else "stdin.qvr"
    runs = store()
    try:
        return runs.create(
            path=path,
            text=text,
            program=name,
            config=config,
            base=str(base),
            parent=os.getpid(),
            location=snapshot.location,
            imports=imports_of(snapshot),
        )
    except OSError as error:
        stop(f"runs cannot be stored in {runs.folder}: {error.strerror}", 1)


def unstored(file: str, flags: dict[str, str], program: str | None = None) -> Job:
    """What a run of a file would be asked, by its qvr.toml and flags; nothing is written."""
    text = read_program(file)
    found = find_settings(Path(file).parent)
    toml = read_settings(found) if found is not None else None
    snapshot = analysed_file(file, text)
    name = program or main_program(snapshot.model)
    try:
        resolved = resolve(name or "", toml, flags)
    except UsageProblem as problem:
        stop(str(problem))
    root = found.parent if found is not None else Path.cwd()
    base = Path.cwd() if resolved.origins["data"] == "flag" else root
    tables = Path.cwd() if resolved.origins["tables"] == "flag" else root
    folder = store().folder / "unstored"
    config = resolved.config.placed(tables)
    path = str(Path(file).resolve())
    plain = Job(run_id="", directory=str(folder), path=path, text=text, program=name, config=config, base=str(base))
    return of_snapshot(plain, snapshot)


def _check_toml(path: Path | None, toml: str) -> None:
    from qvr_core.runs.record.settings import check_settings

    problems = check_settings(toml)[1]
    for problem in problems:
        say(f"{path}:{problem.start.line + 1}:{problem.start.column + 1}: {problem.message}", err=True)
    if problems:
        raise typer.Exit(2)


def _warn_of_misnamed(settings: Path, toml: str, file: str, program: str) -> None:
    """Say which table of a qvr.toml does not count because its program's name is misspelt."""
    from qvr_core.runs.record.settings import misnamed_table

    # A table may be for a program of another file.
    folder = Path(file).resolve().parent if file != "-" else Path.cwd()
    texts = (path.read_text(encoding="utf-8", errors="replace") for path in folder.glob("?*.qvr") if path.is_file())
    declared = {name for text in texts for name in re.findall(r"^[ \t]*program[ \t]+(\w+)", text, re.MULTILINE)}
    found = misnamed_table(toml, program, declared)
    if found is not None:
        line, name = found
        problem = f"no program `{name}` in {Path(file).name}; did you mean `{program}`?"
        typer.secho(f"{settings.name}:{line}: {problem} The table does not count.", err=True, fg="yellow")


def _check_named_data(settings: Path, toml: str, model: Model, name: str | None) -> None:
    """End with the table of a qvr.toml that was meant for a data name of the program."""
    from qvr_core.data.needs import names_of, needs_of
    from qvr_core.runs.record.settings import misnamed_data

    program = model.programs.get(name or "")
    found = None if program is None else misnamed_data(toml, names_of(needs_of(program)))
    if found is not None:
        line, wrong, meant = found
        problem = f"`{name}` reads nothing called `{wrong}`; did you mean `[data.{meant}]`?"
        stop(f"{settings.name}:{line}: {problem}")


LIMITS = {"time_limit", "checkpoint_seconds", "checkpoint_steps", "threads", "memory_limit"}
CHANGEABLE = {"svi": LIMITS | {"steps", "nan"}, "nuts": LIMITS | {"cluster"}}
"""What a resumed run may have another value of."""


def _resumed(run_id: str, flags: dict[str, str], explain: bool, more: int) -> Job:
    """The job that goes on with a run, with `more` draws; only limits may be changed on the way."""
    changed = {key: raw for key, raw in flags.items() if key != "algorithm"}
    algorithm = flags["algorithm"]
    wrong = sorted(set(changed) - CHANGEABLE[algorithm])
    if wrong:
        instead = "; --more draws on" if "samples" in wrong else ""
        stop(f"a resumed run keeps its settings: {', '.join(wrong)} cannot change{instead}")
    try:
        begun = store().open(run_id).job()
        if begun.config.algorithm != algorithm:
            stop(f"run {begun.run_id} is {begun.config.algorithm}, not {algorithm}")
        job = store().resume(run_id, parent=os.getpid(), more=more)
        values = job.config.model_dump() | {key: getattr(resolve("", None, changed).config, key) for key in changed}
        at, places = RunDirectory.of(job).step(), RunDirectory.of(job).draws()
    except (NoSuchRun, NotResumable, UsageProblem) as problem:
        stop(str(problem))
    except (DamagedFile, OSError) as problem:
        stop(str(problem), 1)
    if job.config.algorithm == "svi" and values["steps"] <= at:
        stop(f"run {job.run_id} is already at step {at:,}; `steps` counts from the start: give more than {at}")
    config = RunConfig.model_validate(values)
    if explain:
        kept = job.config.model_dump(exclude_defaults=True)
        origins = {key: "the run" if key in kept else "default" for key in RunConfig.model_fields}
        at_draws = ", ".join(f"{places.get(chain, 0):,}" for chain in range(config.chains))
        say(f"run {job.run_id} goes on from " + (f"step {at:,}" if algorithm == "svi" else f"draws {at_draws}"))
        _explain(config, {**origins, **dict.fromkeys(changed, "flag")})
    return job.model_copy(update={"config": config})


def _explain(config: RunConfig, origins: Mapping[str, str]) -> NoReturn:
    """Show every setting and end the command."""
    from rich.table import Column, Table

    table = Table(Column("setting", no_wrap=True), "value", Column("from", no_wrap=True), "meaning")
    for key, info in RunConfig.model_fields.items():
        origin = origins[key]
        style = "dim" if origin == "default" else "bold"
        value = json.dumps(config.model_dump(mode="json")[key], ensure_ascii=False)
        table.add_row(key, value, origin, _meaning(info), style=style)
    PlainConsole().print(table)
    raise typer.Exit


async def watch(job: Job, forked: ForkedProcess | None, *, as_json: bool) -> Event:
    """Run a job in a worker and show its events; Ctrl-C cancels it."""
    from qvr_core.cli.output.run_display import JsonLines, Screen

    try:
        worker = await (WorkerProcess.spawn(sys.executable) if forked is None else WorkerProcess.of_fork(forked))
    except OSError as error:
        stop(f"the worker could not be started: {error}", 1)
    view = JsonLines() if as_json else Screen(job)
    with view:
        loop = asyncio.get_running_loop()
        import signal

        cancelling: list[asyncio.Task[Event | None]] = []

        def cancel() -> None:
            if cancelling:
                worker.kill()
            else:
                cancelling.append(asyncio.create_task(worker.cancel()))

        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, cancel)
        try:
            await worker.run(job, view.show)
            return await worker.wait()
        except OSError:
            # The events have nowhere to go: the run ends, but with its checkpoint.
            with contextlib.suppress(OSError):
                await worker.cancel()
            raise
        finally:
            worker.kill()
