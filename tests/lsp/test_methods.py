"""Every method of the protocol, as VS Code and as Neovim would ask, with the protocol's own types (pytest-lsp)."""

from __future__ import annotations

import itertools
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
import pytest_lsp
from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pytest_lsp import ClientServerConfig, LanguageClient, client_capabilities, make_test_lsp_client

from qvr_core.ide import symbols
from qvr_lsp.features import document_symbols, server
from tests.lsp.editor import EXAMPLES, ROOT, place

BIDIRECTIONAL = EXAMPLES / "bidirectional_rnn_lm.qvr"
TEXT = BIDIRECTIONAL.read_text()
URI = BIDIRECTIONAL.as_uri()
FOLDER = EXAMPLES


# What the server asks of an editor that says it can do it.
ASKED = (types.CLIENT_REGISTER_CAPABILITY, types.WORKSPACE_CODE_LENS_REFRESH, types.WORKSPACE_INLAY_HINT_REFRESH)


def client_factory() -> LanguageClient:
    """A client that also takes our own notifications."""
    client = make_test_lsp_client()
    for method in ("qvr/status", "qvr/runEvent", *ASKED):
        client.feature(method)(lambda params: None)
    return client


@pytest_lsp.fixture(
    scope="module",
    params=["visual-studio-code", "neovim"],
    config=ClientServerConfig(
        server_command=[sys.executable, "-m", "qvr_lsp.server"],
        server_env={**os.environ, "QVR_LOG_FILE": os.devnull, "PYTHONPATH": str(ROOT)},
        client_factory=client_factory,
    ),
)
async def client(request: pytest.FixtureRequest, lsp_client: LanguageClient):
    await lsp_client.initialize_session(
        types.InitializeParams(
            capabilities=client_capabilities(request.param),
            process_id=os.getpid(),
            root_uri=FOLDER.as_uri(),
            workspace_folders=[types.WorkspaceFolder(uri=FOLDER.as_uri(), name="examples")],
        )
    )
    item = types.TextDocumentItem(uri=URI, language_id="qvr", version=1, text=TEXT)
    lsp_client.text_document_did_open(types.DidOpenTextDocumentParams(text_document=item))
    await lsp_client.wait_for_notification(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
    yield
    await lsp_client.shutdown_session()


DOCUMENT = types.TextDocumentIdentifier(uri=URI)
WHOLE = types.Range(start=types.Position(0, 0), end=types.Position(len(TEXT.split("\n")), 0))


def position(needle: str, shift: int = 0) -> types.Position:
    return types.Position(*place(TEXT, needle, shift))


def lines_at(stretch: types.Range) -> str:
    return TEXT.split("\n")[stretch.start.line][stretch.start.character : stretch.end.character]


async def test_published_diagnostics(client: LanguageClient) -> None:
    assert all(item.severity != types.DiagnosticSeverity.Error for item in client.diagnostics[URI])


async def test_hover(client: LanguageClient) -> None:
    found = await client.text_document_hover_async(types.HoverParams(DOCUMENT, position("let backbone", 5)))
    assert found is not None
    assert isinstance(found.contents, types.MarkupContent)
    assert "backbone : Seq Token -> " in found.contents.value


async def test_completion_and_resolve(client: LanguageClient) -> None:
    found = await client.text_document_completion_async(types.CompletionParams(DOCUMENT, position("role=", 5)))
    assert isinstance(found, types.CompletionList)
    labels = [item.label for item in found.items]
    assert {"kernel", "embed"} <= set(labels) and "linear" not in labels
    item = next(item for item in found.items if item.label == "kernel")
    resolved = await client.completion_item_resolve_async(item)
    assert resolved.documentation is not None


async def test_signature_help(client: LanguageClient) -> None:
    found = await client.text_document_signature_help_async(types.SignatureHelpParams(DOCUMENT, position("scan(", 5)))
    assert found is not None
    assert found.signatures[0].label.startswith("scan(")


async def test_definition_declaration_type_definition(client: LanguageClient) -> None:
    where = position("let backbone = ", 20)
    for ask in (
        client.text_document_definition_async(types.DefinitionParams(DOCUMENT, where)),
        client.text_document_declaration_async(types.DeclarationParams(DOCUMENT, where)),
    ):
        found = await ask
        assert isinstance(found, list)
        assert isinstance(found[0], types.Location)
        assert TEXT.split("\n")[found[0].range.start.line].startswith("let forward_path")
    found = await client.text_document_type_definition_async(types.TypeDefinitionParams(DOCUMENT, where))
    assert isinstance(found, list)
    assert all(TEXT.split("\n")[item.range.start.line].startswith("object") for item in found)


async def test_references_and_highlights(client: LanguageClient) -> None:
    where = position("object Token", 8)
    found = await client.text_document_references_async(
        types.ReferenceParams(types.ReferenceContext(include_declaration=True), DOCUMENT, where)
    )
    assert found is not None
    assert {lines_at(item.range) for item in found} == {"Token"}
    marks = await client.text_document_document_highlight_async(types.DocumentHighlightParams(DOCUMENT, where))
    assert marks is not None
    assert len(marks) == len(found)


async def test_document_and_workspace_symbols(client: LanguageClient) -> None:
    found = await client.text_document_document_symbol_async(types.DocumentSymbolParams(DOCUMENT))
    assert found is not None
    assert any(item.name == "backbone" for item in found)
    program = next(item for item in found if item.name == "bidirectional_rnn_lm")
    assert isinstance(program, types.DocumentSymbol)
    assert program.children
    everywhere = await client.workspace_symbol_async(types.WorkspaceSymbolParams(query="rnn_lm"))
    assert everywhere is not None
    assert {"bidirectional_rnn_lm", "vanilla_rnn_lm"} <= {item.name for item in everywhere}


async def test_inlay_hints(client: LanguageClient) -> None:
    found = await client.text_document_inlay_hint_async(types.InlayHintParams(DOCUMENT, WHOLE))
    assert found is not None
    labels = [item.label for item in found]
    assert any(isinstance(label, str) and label.startswith(": Seq Token") for label in labels)


async def test_semantic_tokens(client: LanguageClient) -> None:
    full = await client.text_document_semantic_tokens_full_async(types.SemanticTokensParams(DOCUMENT))
    assert full is not None
    assert len(full.data) % 5 == 0
    assert full.result_id is not None
    delta = await client.text_document_semantic_tokens_full_delta_async(
        types.SemanticTokensDeltaParams(DOCUMENT, full.result_id)
    )
    assert isinstance(delta, types.SemanticTokensDelta)
    assert not delta.edits
    part = await client.text_document_semantic_tokens_range_async(types.SemanticTokensRangeParams(DOCUMENT, WHOLE))
    assert part is not None
    assert part.data == full.data


async def test_code_actions(client: LanguageClient) -> None:
    start = position("let backbone")
    found = await client.text_document_code_action_async(
        types.CodeActionParams(DOCUMENT, types.Range(start, start), types.CodeActionContext(diagnostics=[]))
    )
    assert found is not None
    only = types.CodeActionContext(diagnostics=[], only=[types.CodeActionKind.SourceFixAll])
    await client.text_document_code_action_async(types.CodeActionParams(DOCUMENT, WHOLE, only))


async def test_code_lenses(client: LanguageClient) -> None:
    found = await client.text_document_code_lens_async(types.CodeLensParams(DOCUMENT))
    assert found is not None
    assert [lens.command.title for lens in found[:3] if lens.command] == ["▶ SVI", "▶ NUTS", "◫ Diagram"]


async def test_rename(client: LanguageClient) -> None:
    where = position("let backbone", 5)
    prepared = await client.text_document_prepare_rename_async(types.PrepareRenameParams(DOCUMENT, where))
    assert prepared is not None
    found = await client.text_document_rename_async(types.RenameParams(DOCUMENT, where, "spine"))
    assert found is not None
    if found.document_changes is None:  # of an editor that takes no versions
        assert found.changes is not None
        edits = found.changes[URI]
    else:
        [change] = found.document_changes
        assert isinstance(change, types.TextDocumentEdit)
        assert change.text_document.uri == URI
        edits = [edit for edit in change.edits if isinstance(edit, types.TextEdit)]
    assert [edit.new_text for edit in edits] == ["spine", "spine"]


async def test_call_hierarchy(client: LanguageClient) -> None:
    items = await client.text_document_prepare_call_hierarchy_async(
        types.CallHierarchyPrepareParams(DOCUMENT, position("let backbone", 5))
    )
    assert items is not None
    incoming = await client.call_hierarchy_incoming_calls_async(types.CallHierarchyIncomingCallsParams(items[0]))
    assert incoming is not None
    assert [call.from_.name for call in incoming] == ["bidirectional_rnn_lm"]
    outgoing = await client.call_hierarchy_outgoing_calls_async(types.CallHierarchyOutgoingCallsParams(items[0]))
    assert outgoing is not None
    assert "forward_path" in [call.to.name for call in outgoing]


async def test_folding_selection_linked_editing_links(client: LanguageClient) -> None:
    folds = await client.text_document_folding_range_async(types.FoldingRangeParams(DOCUMENT))
    assert folds
    chains = await client.text_document_selection_range_async(
        types.SelectionRangeParams(DOCUMENT, [position("scan(", 5)])
    )
    assert chains is not None
    assert chains[0].parent is not None
    linked = await client.text_document_linked_editing_range_async(
        types.LinkedEditingRangeParams(DOCUMENT, position("sample ", 7))
    )
    assert linked is not None
    assert len(linked.ranges) > 1
    assert await client.text_document_document_link_async(types.DocumentLinkParams(DOCUMENT)) is not None


UNTIDY = "object  A:Real 3\nobject B :  Real 3\nprogram p : A -> B\n\n"


def edited(text: str, edits: Sequence[types.TextEdit] | None) -> str:
    """A text of one-byte characters, after edits that do not overlap."""
    assert edits
    starts = [0, *itertools.accumulate(len(line) + 1 for line in text.split("\n"))]
    for edit in sorted(edits, key=lambda each: (each.range.start.line, each.range.start.character), reverse=True):
        start, end = (starts[place.line] + place.character for place in (edit.range.start, edit.range.end))
        text = text[:start] + edit.new_text + text[end:]
    return text


async def test_formatting(client: LanguageClient) -> None:
    options = types.FormattingOptions(tab_size=4, insert_spaces=True)
    tidy = await client.text_document_formatting_async(types.DocumentFormattingParams(DOCUMENT, options))
    assert tidy is not None and not list(tidy)
    uri = (FOLDER / "untidy.qvr").as_uri()
    document = types.TextDocumentIdentifier(uri=uri)
    item = types.TextDocumentItem(uri=uri, language_id="qvr", version=1, text=UNTIDY)
    client.text_document_did_open(types.DidOpenTextDocumentParams(text_document=item))
    second = types.Range(types.Position(1, 0), types.Position(1, 18))
    try:
        whole = await client.text_document_formatting_async(types.DocumentFormattingParams(document, options))
        partial = await client.text_document_range_formatting_async(
            types.DocumentRangeFormattingParams(document, second, options)
        )
        typed = await client.text_document_on_type_formatting_async(
            types.DocumentOnTypeFormattingParams(document, types.Position(3, 0), "\n", options)
        )
    finally:
        client.text_document_did_close(types.DidCloseTextDocumentParams(text_document=document))
    assert edited(UNTIDY, whole).startswith("object A : Real 3\nobject B : Real 3\nprogram p : A -> B\n")
    assert edited(UNTIDY, partial) == UNTIDY.replace("B :  Real", "B : Real")
    assert edited(UNTIDY, typed) == UNTIDY.replace("B\n\n", "B\n    \n")


async def test_pulled_diagnostics(client: LanguageClient) -> None:
    found = await client.text_document_diagnostic_async(types.DocumentDiagnosticParams(DOCUMENT))
    assert isinstance(found, types.RelatedFullDocumentDiagnosticReport)
    again = await client.text_document_diagnostic_async(
        types.DocumentDiagnosticParams(DOCUMENT, previous_result_id=found.result_id)
    )
    assert isinstance(again, types.RelatedUnchangedDocumentDiagnosticReport)
    everywhere = await client.workspace_diagnostic_async(types.WorkspaceDiagnosticParams(previous_result_ids=[]))
    names = {Path(item.uri).name for item in everywhere.items}
    assert {"bidirectional_rnn_lm.qvr", "widths_do_not_add_up.qvr"} <= names


async def test_settings_folders_and_files(client: LanguageClient) -> None:
    client.workspace_did_change_configuration(
        types.DidChangeConfigurationParams(settings={"qvr": {"inlayHints": {"letTypes": False}}})
    )
    found = await client.text_document_inlay_hint_async(types.InlayHintParams(DOCUMENT, WHOLE))
    if client.capabilities.workspace is None or not client.capabilities.workspace.configuration:
        assert found is not None
        assert not [item for item in found if str(item.label).startswith(": ")]
    client.workspace_did_change_configuration(
        types.DidChangeConfigurationParams(settings={"qvr": {"inlayHints": {"letTypes": True}}})
    )
    client.workspace_did_change_watched_files(
        types.DidChangeWatchedFilesParams(
            [types.FileEvent(f"{FOLDER.as_uri()}/qvr.toml", types.FileChangeType.Changed)]
        )
    )
    event = types.WorkspaceFoldersChangeEvent(added=[types.WorkspaceFolder("file:///tmp", "tmp")], removed=[])
    client.workspace_did_change_workspace_folders(types.DidChangeWorkspaceFoldersParams(event))
    event = types.WorkspaceFoldersChangeEvent(added=[], removed=[types.WorkspaceFolder("file:///tmp", "tmp")])
    client.workspace_did_change_workspace_folders(types.DidChangeWorkspaceFoldersParams(event))
    client.set_trace(types.SetTraceParams(types.TraceValue.Off))


async def test_commands(client: LanguageClient, tmp_path: Path) -> None:
    found = await client.workspace_execute_command_async(
        types.ExecuteCommandParams("qvr.diagram", [{"uri": URI, "name": "backbone", "format": "dot"}])
    )
    assert found["text"].startswith("digraph") if isinstance(found, dict) else found.text.startswith("digraph")
    target = tmp_path / "diagram.mmd"
    await client.workspace_execute_command_async(
        types.ExecuteCommandParams("qvr.exportDiagram", [{"uri": URI, "path": str(target)}])
    )
    assert target.read_text().startswith("flowchart LR")
    assert (
        await client.workspace_execute_command_async(types.ExecuteCommandParams("qvr.runs", [{"uri": URI}])) is not None
    )


async def test_edits_saving_and_closing(client: LanguageClient) -> None:
    uri = "file:///tmp/methods/edited.qvr"
    item = types.TextDocumentItem(uri, "qvr", 1, "object A : Real 3\n")
    client.text_document_did_open(types.DidOpenTextDocumentParams(item))
    place = types.Range(types.Position(0, 11), types.Position(0, 15))
    change = types.TextDocumentContentChangePartial(place, "Rael")
    identity = types.VersionedTextDocumentIdentifier(2, uri)
    client.text_document_did_change(types.DidChangeTextDocumentParams(identity, [change]))
    client.text_document_did_save(types.DidSaveTextDocumentParams(types.TextDocumentIdentifier(uri)))
    while not any("Rael" in item.message for item in client.diagnostics.get(uri, ())):
        await client.wait_for_notification(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
    client.text_document_did_close(types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(uri)))
    while client.diagnostics[uri]:
        await client.wait_for_notification(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)


async def test_a_run_is_ended_by_its_progress(client: LanguageClient, tmp_path: Path) -> None:
    path = tmp_path / "mean.qvr"
    path.write_text("program p : FinSet 2 -> FinSet 2\n    sample mu <- Normal(0.0, 1.0)\n    return mu\n")
    options = {"steps": 1_000_000, "data": "synthetic"}
    asked = types.ExecuteCommandParams("qvr.run", [{"uri": path.as_uri(), "algorithm": "svi", "options": options}])
    before = set(client.progress_reports)
    started = await client.workspace_execute_command_async(asked)
    token = next(iter({*client.progress_reports} - before), None)
    if token is None:  # an editor that shows none
        ended = types.ExecuteCommandParams("qvr.cancelRun", [{"runId": started.runId}])
        assert (await client.workspace_execute_command_async(ended)).status in ("cancelling", "cancelled")
        return
    client.window_work_done_progress_cancel(types.WorkDoneProgressCancelParams(token))
    while not isinstance(client.progress_reports[token][-1], types.WorkDoneProgressEnd):
        await client.wait_for_notification(types.PROGRESS)
    assert client.progress_reports[token][-1].message in ("cancelled", "crashed")


async def test_own_requests(client: LanguageClient) -> None:
    model = await client.protocol.send_request_async("qvr/model", {"textDocument": {"uri": URI}})
    assert model.model.lets.backbone.arrow.node == "Compose"
    status = await client.protocol.send_request_async("qvr/status", {})
    assert status.health == "ok"
    drawn = await client.protocol.send_request_async("qvr/diagram", {"textDocument": {"uri": URI}, "name": "backbone"})
    assert drawn.kind == "let"
    runs = await client.protocol.send_request_async("qvr/runs", {"uri": URI})
    assert isinstance(runs, list)
    with pytest.raises(JsonRpcException, match="there is no program `nothing` here"):
        await client.protocol.send_request_async("qvr/prior", {"textDocument": {"uri": URI}, "program": "nothing"})
    place = {"textDocument": {"uri": URI}, "position": {"line": 0, "character": 0}}
    assert await client.protocol.send_request_async("qvr/live", place) is None


async def test_data_are_shown_before_a_run(client: LanguageClient, tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("y\n1.5\n2.5\n")
    path = tmp_path / "data.qvr"
    text = "object R : FinSet 2\nprogram p : R -> R\n    observe y[i : R] <- Normal(0.0, 1.0)\n    return y\n"
    item = types.TextDocumentItem(path.as_uri(), "qvr", 1, text)
    client.text_document_did_open(types.DidOpenTextDocumentParams(item))
    asked = {"textDocument": {"uri": path.as_uri()}, "data": "csv:table.csv"}
    shown = await client.protocol.send_request_async("qvr/dataPreview", asked)
    assert shown.program == "p"
    named = {"textDocument": {"uri": path.as_uri()}}
    before = await client.protocol.send_request_async("qvr/runData", named)
    assert (before.program, before.data, before.declared) == ("p", None, False)
    client.text_document_did_close(types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(path.as_uri())))


def test_every_method_is_asked_here() -> None:
    """By its name, or by the function of pytest-lsp's client."""
    source = Path(__file__).read_text(encoding="utf-8")
    answered = [name for name in server.protocol.fm.features if name not in (types.INITIALIZE, types.INITIALIZED)]
    asked = {name: re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).replace("/", "_").lower() for name in answered}
    assert not [name for name, function in asked.items() if name not in source and f"client.{function}" not in source]


def test_every_kind_of_declaration_has_one_in_outlines() -> None:
    """One that has none fails the outline of each file that declares it."""
    assert document_symbols.KINDS.keys() >= symbols.GLOBAL_KINDS
