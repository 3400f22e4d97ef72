"""The parameters of our own requests and commands, as lsprotocol has those of the protocol: attrs classes whose members
are written in camel case on the wire.

No future annotations here: the converter reads the types.
"""

from typing import Any, NewType

import attrs
from lsprotocol import types

Draws = NewType("Draws", int)
"""How many draws: none or more."""


@attrs.frozen(kw_only=True)
class Nothing:
    """A request without parameters."""


@attrs.frozen(kw_only=True)
class DiagramParams:
    """qvr/diagram: by `name`, of what stands at `position`, or of the file's first export."""

    text_document: types.TextDocumentIdentifier
    position: types.Position | None = None
    name: str | None = None
    format: str = "graph"
    collapse: bool = True
    opened: list[str] | None = None


@attrs.frozen(kw_only=True)
class ModelParams:
    """qvr/model."""

    text_document: types.TextDocumentIdentifier


@attrs.frozen(kw_only=True)
class DataPreviewParams:
    """qvr/dataPreview: of the data that qvr.toml names for a program, or of `data`."""

    text_document: types.TextDocumentIdentifier
    program: str | None = None
    data: str | None = None


@attrs.frozen(kw_only=True)
class RunDataParams:
    """qvr/runData: of `program`, or of the main one."""

    text_document: types.TextDocumentIdentifier
    program: str | None = None


@attrs.frozen(kw_only=True)
class PriorParams:
    """qvr/prior: of `program`, of the one around `position`, or of the main one."""

    text_document: types.TextDocumentIdentifier
    position: types.Position | None = None
    program: str | None = None
    draws: int | None = None


@attrs.frozen(kw_only=True)
class LiveParams:
    """qvr/live: the cursor has come to rest at `position`."""

    text_document: types.TextDocumentIdentifier
    position: types.Position


@attrs.frozen(kw_only=True)
class RunsParams:
    """qvr/runs and `qvr.runs`: of the folder that a file belongs to."""

    uri: str | None = None


@attrs.frozen(kw_only=True)
class RunArguments:
    """`qvr.run`: start a run, or go on with the one whose id is `resume`."""

    uri: str
    program: str | None = None
    algorithm: str | None = None
    options: dict[str, Any] | None = None
    resume: str | None = None


@attrs.frozen(kw_only=True)
class CancelRunArguments:
    """`qvr.cancelRun`."""

    run_id: str


@attrs.frozen(kw_only=True)
class RestartArguments:
    """`qvr.restartWorker`: with `more` draws of each chain than the run was asked for."""

    run_id: str
    uri: str | None = None
    more: Draws = Draws(0)


@attrs.frozen(kw_only=True)
class ShowDiagramArguments:
    """`qvr.diagram`."""

    uri: str
    name: str | None = None
    position: types.Position | None = None
    format: str = "graph"
    collapse: bool = True
    opened: list[str] | None = None


@attrs.frozen(kw_only=True)
class ExportDiagramArguments:
    """`qvr.exportDiagram`: to a file, whose suffix says as what where no `format` does."""

    uri: str
    path: str
    name: str | None = None
    position: types.Position | None = None
    format: str | None = None
    collapse: bool = True


@attrs.frozen(kw_only=True)
class ReadParams:
    """play/read."""

    path: str


@attrs.frozen(kw_only=True)
class SaveParams:
    """play/save: over the content that `stamp` was given for; a `new` file only where there is none."""

    path: str
    text: str
    stamp: str | None = None
    new: bool = False


@attrs.frozen(kw_only=True)
class RecordParams:
    """play/run."""

    uri: str
    run_id: str


PARAMS: dict[str, type] = {
    "qvr/diagram": DiagramParams,
    "qvr/model": ModelParams,
    "qvr/dataPreview": DataPreviewParams,
    "qvr/runData": RunDataParams,
    "qvr/prior": PriorParams,
    "qvr/live": LiveParams,
    "qvr/runs": RunsParams,
    "qvr/status": Nothing,
    "play/folder": Nothing,
    "play/read": ReadParams,
    "play/save": SaveParams,
    "play/run": RecordParams,
}
"""By method."""

COMMANDS: dict[str, type] = {
    "qvr.run": RunArguments,
    "qvr.cancelRun": CancelRunArguments,
    "qvr.runs": RunsParams,
    "qvr.diagram": ShowDiagramArguments,
    "qvr.exportDiagram": ExportDiagramArguments,
    "qvr.restartWorker": RestartArguments,
}
"""By command, the one argument that it takes."""
