"""One server process for the tests of a module."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio

from tests.lsp.editor import Editor


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def editor() -> AsyncIterator[Editor]:
    session = await Editor.start()
    await session.initialize()
    yield session
    assert await session.stop() == 0
