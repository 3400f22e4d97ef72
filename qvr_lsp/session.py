"""One editor's session as features see it: the editor, the documents that it has open, its folders, its runs."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from qvr_lsp.client import Client

if TYPE_CHECKING:
    from qvr_lsp.data_checks import DataChecks
    from qvr_lsp.documents import Document, Documents
    from qvr_lsp.progress import ProgressTokens
    from qvr_lsp.runs.fits import Fits
    from qvr_lsp.runs.priors import Priors
    from qvr_lsp.runs.processes import Runs
    from qvr_lsp.workspace import SettingsDocument, Workspace


class Session:
    """Each part is made on its first use: importing what is behind it takes longer than starting."""

    def __init__(
        self,
        client: Client,
        publish: Callable[[Document], None],
        publish_settings: Callable[[SettingsDocument], None],
    ) -> None:
        """`publish` and `publish_settings` show what is wrong with a text that has changed."""
        self.client = client
        self._publish = publish
        self._publish_settings = publish_settings

    @cached_property
    def documents(self) -> Documents:
        from qvr_lsp.documents import Documents

        return Documents(self.client, self._publish)

    @cached_property
    def workspace(self) -> Workspace:
        from qvr_lsp.workspace import Workspace

        return Workspace(self.client, self.documents, self._publish_settings)

    @cached_property
    def data_checks(self) -> DataChecks:
        from qvr_lsp.data_checks import DataChecks

        return DataChecks(self.client, self.documents, self.workspace)

    @cached_property
    def fits(self) -> Fits:
        from qvr_lsp.runs.fits import Fits

        return Fits(self.client, self.documents, self.workspace)

    @cached_property
    def progress(self) -> ProgressTokens:
        from qvr_lsp.progress import ProgressTokens

        return ProgressTokens(self.client)

    @cached_property
    def runs(self) -> Runs:
        from qvr_lsp.runs.processes import Runs

        return Runs(self.client, self.documents, self.workspace, self.progress, self.fits)

    @cached_property
    def priors(self) -> Priors:
        from qvr_lsp.runs.priors import Priors

        return Priors(self.client, self.documents, self.workspace)

    @property
    def active_runs(self) -> int:
        """How many runs are under way."""
        return self.runs.active if "runs" in self.__dict__ else 0

    def text_changed(self, uri: str) -> None:
        """What is under way for the text before."""
        if "priors" in self.__dict__:
            self.priors.edited(uri)

    async def pause(self) -> None:
        """Let every run write its checkpoint and end: at most 3 s."""
        if "runs" in self.__dict__:
            await self.runs.pause_all()

    def stop(self) -> None:
        """The editor is gone: end what was started for it."""
        if "runs" in self.__dict__:
            self.runs.stop_all()
        if "priors" in self.__dict__:
            self.priors.stop()
        if "data_checks" in self.__dict__:
            self.data_checks.stop()
        if "documents" in self.__dict__:
            self.documents.close()
        self.client.stop()
