"""Work-done progress: pygls's tokens, freed when their work ends."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any, cast
from uuid import uuid4

from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.progress import Progress


class FreedProgress(Progress):
    """pygls keeps the token of all work that was ever done."""

    def end(self, token: types.ProgressToken, value: types.WorkDoneProgressEnd) -> None:
        super().end(token, value)
        tokens_of(self).pop(token, None)


def tokens_of(progress: Progress) -> dict[types.ProgressToken, Future[Any]]:
    """What ends with the cancellation of each token; pygls leaves its type open."""
    return cast(Any, progress).tokens


class Bar:
    """One bar in the editor.  Where the editor shows none, every call is silently nothing."""

    def __init__(self, progress: Progress, token: str | None) -> None:
        self._progress = progress
        self._token = token

    def begin(self, title: str, *, message: str = "", cancellable: bool = False) -> None:
        if self._token is not None:
            value = types.WorkDoneProgressBegin(
                title=title, cancellable=cancellable, message=message or None, percentage=0
            )
            self._progress.begin(self._token, value)

    def report(self, message: str, percentage: int | None = None) -> None:
        if self._token is not None:
            bounded = None if percentage is None else max(0, min(100, percentage))
            self._progress.report(self._token, types.WorkDoneProgressReport(message=message, percentage=bounded))

    def end(self, message: str) -> None:
        if self._token is not None:
            self._progress.end(self._token, types.WorkDoneProgressEnd(message=message))
        self._token = None


def _stopped(stop: Callable[[], Any], cancelled: Future[Any]) -> None:
    stop()


async def new_bar(progress: Progress, shown: bool, stop: Callable[[], Any]) -> Bar:
    """A new bar, asked of the editor where it has any; `stop` is called when the user cancels it."""
    token = f"qvr-{uuid4()}"
    try:
        if shown:
            await cast(Any, progress).create_async(token)
            tokens_of(progress)[token].add_done_callback(partial(_stopped, stop))
            return Bar(progress, token)
    except JsonRpcException:
        pass  # the editor refuses
    return Bar(progress, None)
