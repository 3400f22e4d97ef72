"""What a run is told: one flat table of keys, from flags, from `[run.<program>]` in qvr.toml, or by default.

Every key has a description, bounds and a default here and nowhere else; the JSON Schema (`qvr schema`), the editor's
completion in qvr.toml and the command line's messages are made from it.
"""

from __future__ import annotations

import difflib
import re
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator

from qvr_core.cluster.address import address_of

Algorithm = Literal["svi", "nuts"]
GuideName = Literal[
    "auto", "prior", "normal", "delta", "multivariate_normal", "low_rank", "laplace", "mixture", "pathfinder",
    "dais", "iaf", "spline",
]  # fmt: skip
OF_TORCH = ("mixture", "pathfinder", "dais", "iaf", "spline")
"""Those that run on torch alone: mixtures, what asks for the model's gradient, and flows, which are networks."""
OF_ALL_DATA = ("pathfinder", "dais")
"""Those that read the data, all of them."""
OwnGuide = Annotated[str, Field(pattern=r"^[A-Za-z_]\w*$")]
"""The name of a guide that the file writes as a program."""
SOURCES = ("synthetic", "text", "pairs", "csv", "parquet", "ndjson", "npz", "json")
TABLES = ("csv", "parquet", "ndjson", "npz", "json")
SUFFIXES = {
    "csv": "csv",
    "parquet": "parquet",
    "ndjson": "ndjson",
    "jsonl": "ndjson",
    "npz": "npz",
    "json": "json",
    "txt": "text",
}

UNITS = {"text": ("byte", "character"), "pairs": ("word", "byte_pair")}
"""What a token can be, by source; the first is the default."""

Count = Annotated[int, Field(ge=1)]
Positive = Annotated[float, Field(gt=0)]


class RunConfig(BaseModel):
    """Everything that decides what a run does.  Immutable, and closed: an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    algorithm: Algorithm = Field(default="svi", description="How the program is fitted: `svi` or `nuts`.")
    data: str = Field(
        default="",
        description="Where the data comes from: `synthetic` (drawn from the program itself, which is the default of "
        "programs that declare no data), or a source and a path such as `text:book.txt`, "
        "`pairs:prose/*.txt`, `csv:trial.csv`, `parquet:…`, `ndjson:…`, `npz:…`, "
        "`json:…` (arrays by name, as for Stan). A relative path in qvr.toml "
        "starts at its folder, one given as a flag where you stand.",
    )
    seed: Annotated[int, Field(ge=0, lt=2**63)] = Field(default=0, description="Seed of everything random in the run.")
    device: str = Field(default="cpu", description="`cpu`, `cuda`, `cuda:1` or `mps`.")
    precision: Literal["float32", "float64", "bfloat16"] = Field(
        default="float32",
        description="Number format of networks; `bfloat16` runs them under autocast. Programs without weights compute "
        "in double precision.",
    )
    threads: Count | None = Field(
        default=None, description="Threads of the worker; by default 1 for a small program, else torch's own choice."
    )

    # stochastic variational inference
    steps: Count = Field(default=2000, description="Optimiser steps.")
    batch_size: Count | None = Field(
        default=None,
        description="Rows in each step. By default 64 where the program reads its rows, and all rows where it does "
        "not; fewer there means a random part of the observations, scaled up to stand for all of them.",
    )
    learning_rate: Positive | None = Field(
        default=None,
        description="Learning rate at the start. By default 0.001, and 0.02 where the program does not read its input.",
    )
    optimizer: Literal["adam", "adamw", "sgd", "rmsprop", "adagrad"] = Field(
        default="adam", description="A torch optimiser."
    )
    schedule: Literal["constant", "linear", "cosine", "exponential"] | None = Field(
        default=None,
        description="How the learning rate changes over the steps; all but `constant` end at 1 % of it. By default "
        "`constant`, and `cosine` where the program does not read its input.",
    )
    guide: GuideName | OwnGuide = Field(
        default="auto",
        description="Variational family: `prior` (latents drawn from the model itself), `normal`, `delta`, "
        "`multivariate_normal`, `low_rank`, `laplace`, `mixture` (of four Normals), `pathfinder` (that mixture, begun "
        "where four ways up the posterior lead), `dais` (draws that walk from a Normal to the posterior), the "
        "normalising flows `iaf` and `spline`; or the name of a program `[guide=…]` of the file. `auto` is the guide "
        "that the file writes for the program, where it has one; else `prior` where the program reads its input (its "
        "latents are then drawn anew in each row) and has parameters, else `normal`.",
    )
    objective: Literal["elbo", "iwae", "renyi"] = Field(
        default="elbo",
        description="The bound that is maximised: `elbo`, the importance-weighted `iwae`, or `renyi` between them, of "
        "the order `alpha`; the latter two take several `particles`.",
    )
    alpha: Annotated[float, Field(ge=0, lt=1)] = Field(
        default=0.5, description="The order of `renyi`: 0 is `iwae`, towards 1 it falls to `elbo`."
    )
    gradient: Literal["full", "sticking", "doubly"] = Field(
        default="full",
        description="`sticking` leaves the score of the guide out of the gradient of `elbo` (sticking the landing): "
        "the same mean, and no noise where the guide is the posterior. `doubly` is its like for `iwae` and `renyi` "
        "(doubly reparameterised): of many particles the plain gradient of the guide is mostly noise.",
    )
    particles: Count = Field(default=1, description="Draws of the latents per row and step.")
    clip_gradient: Positive | None = Field(default=None, description="Gradients are scaled down to at most this norm.")
    nan: Literal["stop", "skip"] = Field(
        default="stop",
        description="A loss or gradient that is not finite stops the run, or the step is skipped and counted.",
    )

    # Markov chain Monte Carlo
    warmup: Annotated[int, Field(ge=0)] = Field(
        default=1_000, description="Warm-up draws of each chain, which are discarded."
    )
    samples: Count = Field(default=1_000, description="Kept draws of each chain.")
    chains: Count = Field(default=4, description="Independent chains.")
    target_accept: Annotated[float, Field(gt=0, lt=1)] = Field(
        default=0.8, description="Acceptance that adaptation aims at."
    )
    max_tree_depth: Annotated[int, Field(ge=1, le=20)] = Field(
        default=10, description="At most 2^depth leapfrog steps a draw."
    )
    engine: Annotated[
        Literal["auto", "compiled", "plain"],
        # what earlier releases recorded and replayed
        BeforeValidator(lambda given: "plain" if given == "replay" else given),
    ] = Field(
        default="auto",
        description="What evaluates the density: machine code (`compiled`), or the program itself (`plain`). `auto` "
        "compiles where the program allows.",
    )
    init: Literal["random", "pathfinder"] = Field(
        default="random",
        description="Where chains start: at `random`, or at draws of Normals that an optimiser meets on its way up the "
        "density (`pathfinder`), worth it where the posterior is far from zero; not for network parameters.",
    )
    step_size: Positive | None = Field(
        default=None, description="Leapfrog step at the start; found by search by default."
    )
    prior_scale: Positive | Literal["fan_in"] = Field(
        default=1.0, description="Standard deviation of the Normal prior put on every network parameter."
    )
    lift: bool | None = Field(
        default=None,
        description="Put priors on the network parameters and sample them too. By default where the program has any.",
    )

    cluster: str = Field(
        default="none",
        description="Where chains, replicates and refits run: on this machine by itself (`none`), on N processes of it "
        "(`local[N]`), on the workers of a scheduler of Dask (`tcp://HOST:PORT`, `tls://HOST:PORT`), or on N jobs of "
        "SLURM (`slurm[N]`). The draws are the same.",
    )

    # data
    rows: Count = Field(default=512, description="Rows drawn from the program itself by `synthetic` data.")
    sequence_length: Count = Field(default=8, description="Length of a window of text, and of a synthetic sequence.")
    task: Literal["next", "masked"] | None = Field(
        default=None, description="What a text run predicts: the byte after the window, or a masked byte inside it. "
        "Without it the program decides: one that reads its sequence backward too, or that names a mask, is masked.",
    )  # fmt: skip
    mask: Literal["middle", "random"] | Annotated[int, Field(ge=0)] = Field(
        default="middle", description="Which position of the window is masked: `middle`, `random`, or an index from 0."
    )
    mask_token: Annotated[int, Field(ge=0)] | None = Field(
        default=None,
        description="The id that stands for the mask; by default the smallest one that the data does not use.",
    )
    unit: Literal["byte", "character", "word", "byte_pair"] | None = Field(
        default=None,
        description="What one token is: `byte` (the default) or `character` of a text, `word` (the default) or "
        "`byte_pair` of sentence pairs, whose vocabulary is made from the training part and has the program's size.",
    )
    held_out: Annotated[float, Field(ge=0, lt=1)] | None = Field(
        default=None,
        description="Share of a text or of sentence pairs that is kept from training: the end of the one, evenly "
        "spread paragraphs of the other; 0.1 unless told. Other data have none.",
    )
    held_out_rows: Count = Field(default=4096, description="Held-out rows that the last figure is computed on.")
    held_out_draws: Count = Field(default=16, description="Draws of the latents per held-out row (K).")
    held_out_after: tuple[Positive, ...] = Field(
        default=(), description="Seconds of training after which a held-out figure is reported on the way."
    )
    param: dict[str, float | int | str] = Field(
        default_factory=dict[str, float | int | str],
        description="Parameters of a template: name = a number, or the name of a declaration.",
    )
    columns: dict[str, str | tuple[str, ...]] = Field(
        default_factory=dict[str, "str | tuple[str, ...]"],
        description="Where a column or array is called otherwise: name in the program = name in the file. A list names "
        "the columns of a data name over two sets, one for each element of the second; the name of a set stands for "
        "the column that says which element each row is about.",
    )
    tables: dict[str, str] = Field(
        default_factory=dict[str, str],
        description="Further files: the name of a set whose elements are the rows of one, or a data name = a source "
        "and a path such as `csv:counties.csv`. On the command line `--data County=csv:counties.csv`.",
    )
    one_based: bool | None = Field(
        default=None,
        description="Whole numbers that stand for the elements of a set of declared size count from 1, not 0. By "
        "default in `json` files, as Stan writes them.",
    )
    shuffle: bool = Field(default=True, description="Draw the rows of a step in an order made from the seed.")

    # limits
    checkpoint_seconds: Positive = Field(default=30.0, description="A checkpoint at least this often.")
    checkpoint_steps: Count | None = Field(default=None, description="A checkpoint every so many steps as well.")
    time_limit: Positive | None = Field(default=None, description="Seconds after which the run ends with what it has.")
    memory_limit: Count | None = Field(
        default=None, description="Bytes the run may use; what the machine (or its cgroup) has left by default."
    )

    @field_validator("data")
    @classmethod
    def _known_source(cls, value: str) -> str:
        source, _, path = value.partition(":")
        if not value:
            return value
        if source not in SOURCES:
            meant = _meant(value)
            guess = f"; did you mean `{meant}`?" if meant else f": one of {', '.join(SOURCES)}"
            raise ValueError(f"unknown data source `{source}`{guess}")
        if source == "synthetic" and path:
            raise ValueError("`synthetic` data takes no path")
        if source != "synthetic" and not path:
            raise ValueError(f"`{source}` needs a path: `{source}:PATH`")
        return value

    @field_validator("tables")
    @classmethod
    def _known_tables(cls, value: dict[str, str]) -> dict[str, str]:
        for name, table in value.items():
            source, _, path = table.partition(":")
            if source not in TABLES or not path:
                meant = _meant(table)
                guess = f"; did you mean `{meant}`?" if meant else f": one of {', '.join(TABLES)}, and a path"
                raise ValueError(f"`{name}` is read from `{table}`{guess}")
        return value

    @field_validator("device")
    @classmethod
    def _known_device(cls, value: str) -> str:
        if not re.fullmatch(r"cpu|mps|cuda(:[0-9]+)?", value):
            raise ValueError(f"unknown device `{value}`: `cpu`, `cuda`, `cuda:<number>` or `mps`")
        return value

    @field_validator("cluster")
    @classmethod
    def _known_cluster(cls, value: str) -> str:
        address_of(value)
        return value

    def for_program(self, *, statistical: bool) -> RunConfig:
        """With a learning rate and a schedule that suit a program: few latents that all data share move far and must
        come to rest, a network's weights neither."""
        fit = (0.02, "cosine") if statistical else (1e-3, "constant")
        rate = fit[0] if self.learning_rate is None else self.learning_rate
        return self.model_copy(update={"learning_rate": rate, "schedule": self.schedule or fit[1]})

    def placed(self, folder: Path) -> RunConfig:
        """With the paths of further files absolute; relative ones start at `folder`."""
        tables = {
            name: f"{source}:{folder / path}"
            for name, (source, _, path) in ((name, table.partition(":")) for name, table in self.tables.items())
        }
        return self.model_copy(update={"tables": tables}) if tables else self

    @property
    def token_unit(self) -> str:
        """The unit of a text or of sentence pairs."""
        return self.unit or UNITS[self.source][0]

    @property
    def batch_rows(self) -> int:
        """Rows in a step of a program that reads its rows."""
        return self.batch_size or 64

    @property
    def source(self) -> str:
        """The part of `data` before the colon; `synthetic` where nothing is said."""
        return self.data.partition(":")[0] or "synthetic"

    @property
    def names_data(self) -> bool:
        """Whether anything says where data are: a file, a table, or that they are to be drawn."""
        return bool(self.data or self.tables)

    def drawing_data(self) -> RunConfig:
        """The same, where data that nothing names are drawn from the program itself."""
        return self if self.names_data else self.model_copy(update={"data": "synthetic"})

    @property
    def data_path(self) -> str:
        """The part of `data` after the colon; empty for synthetic data."""
        return self.data.partition(":")[2]


def _meant(data: str) -> str | None:
    """`csv:trial.csv` for `cvs:trial.csv` and `trial.csv`."""
    source, _, path = data.partition(":")
    if path and (near := difflib.get_close_matches(source, SOURCES, 1)):
        return f"{near[0]}:{path}"
    suffix = SUFFIXES.get(data.rpartition(".")[2].lower())
    return f"{suffix}:{data}" if suffix else None


class DataSettings(BaseModel):
    """Where one data name is found, whichever program reads it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    columns: str | tuple[str, ...] | None = Field(
        default=None,
        description="What the name is called in the file; a list names the columns of a data name over two sets, one "
        "for each element of the second.",
    )

    @field_validator("columns")
    @classmethod
    def _distinct(cls, value: str | tuple[str, ...] | None) -> str | tuple[str, ...] | None:
        names = () if value is None or isinstance(value, str) else value
        if value in ((), ""):
            raise ValueError("`columns` names no column")
        twice = next((name for at, name in enumerate(names) if name in names[:at]), None)
        if twice is not None:
            raise ValueError(f"`columns` names `{twice}` twice")
        return value


class Settings(BaseModel):
    """A whole qvr.toml: `[run.<program>]` per program, `[defaults]` for all of them, `[data.<name>]` per data name."""

    model_config = ConfigDict(frozen=True, extra="forbid", title="qvr.toml")

    defaults: RunConfig = Field(default_factory=RunConfig, description="Keys of every run, unless its table says else.")
    run: dict[str, RunConfig] = Field(
        default_factory=dict[str, RunConfig], description="One table per program: `[run.my_program]`."
    )
    data: dict[str, DataSettings] = Field(
        default_factory=dict[str, DataSettings], description="One table per data name: `[data.x]`."
    )


def settings_schema() -> dict[str, Any]:
    """The JSON Schema of qvr.toml, in the dialect that editors' TOML plugins read."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **Settings.model_json_schema()}
