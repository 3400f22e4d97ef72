"""What is imported after `initialize` is answered: the analyser first, then what later questions need."""

from __future__ import annotations

import asyncio
import gc
import linecache
from collections.abc import Iterable
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from pygls import IS_WASM

if TYPE_CHECKING:
    from qvr_lsp.language_server import QvrLanguageServer

# Seconds after `initialize` was handled when the analyser is loaded: the answer is written then.
AFTER_ANSWER = 0.005

# Seconds after the first file's diagnostics, and after the start, when what later questions need is loaded.
AFTER_FILE, AFTER_START = 0.02, 3.0

# Analysed before the first file is: the grammar's tables are read, and what is imported late is there.
FIRST_TEXT = """\
object A : FinSet 2
object B : Real 2
morphism f : A -> B [role=embed]
morphism g : B -> A ~ Categorical
let h = f >> identity(B)
program p : A -> A
    sample x : B <- Normal(0.0, 1.0)
    let z = tanh(x) * 2.0
    observe y <- g(h)
    return y
export p
"""

LIBRARY = "qvr_core.dependence.lazy_networkx"
"""networkx, for hovers."""

LATER = (
    "qvr_core.dependence",
    "qvr_core.diagrams",
    "qvr_core.ide.completion.completion",
    "qvr_core.ide.completion.imported",
    "qvr_core.ide.completion.signature",
    "qvr_core.ide.edits.formatting",
    "qvr_core.ide.model_as_json",
    "qvr_core.ide.hover",
    "qvr_core.ide.inlays",
    "qvr_core.ide.navigation",
    "qvr_core.ide.outline_and_folding",
    "qvr_core.ide.semantic_tokens",
    "qvr_core.runs.record.data_preview",
    "qvr_core.runs.record.live",
    "qvr_core.semantics.programs.parameter_count",
    "qvr_lsp.answers.call_hierarchy",
    "qvr_lsp.answers.columns",
    "qvr_lsp.answers.diagrams",
    "qvr_lsp.answers.fixes",
    "qvr_lsp.answers.import_paths",
    "qvr_lsp.answers.lenses",
    "qvr_lsp.answers.links",
    "qvr_lsp.answers.renaming",
    "qvr_lsp.answers.settings_file",
    "qvr_lsp.answers.settings_problems",
    "qvr_lsp.answers.other_files",
    "qvr_lsp.runs.fits",
    "qvr_lsp.runs.live",
    "qvr_lsp.runs.processes",
    LIBRARY,
)
"""What features import when they are asked (tests/lsp/test_start.py)."""


@cache
def load_first() -> None:
    """Load what the first file needs, once a process, while the editor is still busy.  What the start has left goes
    first: 12 MB of what attrs made on the way, and the source of it that it keeps for debuggers."""
    linecache.clearcache()
    gc.collect()
    gc.freeze()
    gc.enable()
    from qvr_lsp.updates import analyzer_of, keep_one_heap, with_diagnostics

    keep_one_heap()
    import_module("qvr_lsp.documents")
    with_diagnostics(analyzer_of(FIRST_TEXT))


def load(name: str) -> None:
    try:
        import_module(name)
    except ModuleNotFoundError as error:
        # a page that did not load pydantic has no qvr.toml and no runs
        if error.name not in ("pydantic", "pydantic_core"):
            raise


def load_all(names: Iterable[str] = LATER) -> None:
    for name in names:
        load(name)


async def load_in_turns(names: Iterable[str] = LATER) -> None:
    """The same where there are no threads: between two messages each."""
    for name in names:
        load(name)
        await asyncio.sleep(0)


class Loading:
    """When a session's process loads what later questions need: once."""

    begun = False

    @classmethod
    def soon(cls, ls: QvrLanguageServer, seconds: float) -> None:
        if not cls.begun:
            asyncio.get_running_loop().call_later(seconds, cls._begin, ls)

    @classmethod
    def _begin(cls, ls: QvrLanguageServer) -> None:
        if cls.begun:
            return
        cls.begun = True
        if IS_WASM:
            ls.spawn(load_in_turns())
        else:
            asyncio.get_running_loop().run_in_executor(None, load_all)
