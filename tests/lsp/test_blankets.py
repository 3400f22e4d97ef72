"""Markov blankets in hovers: told once networkx is there, and no hover waits for it."""

from __future__ import annotations

import sys
from importlib import import_module

import pytest

from tests.lsp.test_page import Page

TEXT = """\
object One : FinSet 1
program p : One -> One
    sample mu <- Normal(0.0, 1.0)
    sample sd <- HalfNormal(1.0)
    observe y <- Normal(mu, sd)
    return mu
"""


async def test_a_hover_has_a_blanket_once_networkx_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    page, document = Page(), {"uri": "playground:/p.qvr"}
    await page.ask("initialize", {"capabilities": {}})
    page.tell("initialized", {})
    page.tell("textDocument/didOpen", {"textDocument": {**document, "version": 1, "languageId": "qvr", "text": TEXT}})

    async def told() -> str:
        place = {"textDocument": document, "position": {"line": 2, "character": 11}}
        return str((await page.ask("textDocument/hover", place))["result"]["contents"])

    monkeypatch.setitem(sys.modules, "qvr_core.dependence.lazy_networkx", None)
    assert "Markov" not in await told()
    monkeypatch.delitem(sys.modules, "qvr_core.dependence.lazy_networkx")
    import_module("qvr_core.dependence.lazy_networkx")
    assert "Markov blanket: sd, y" in (await told()).replace("`", "")
