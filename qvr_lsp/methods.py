"""The methods of the server, one row each: a method is its row here and its function in `qvr_lsp/features`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from qvr_lsp.shapes import DOCUMENT, IDENTITY, ITEM, PLACE, POSITION, RANGE, STRETCH, VERSION


@dataclass(frozen=True, slots=True)
class Method:
    """`handler` is `module:function` in `qvr_lsp.features`, `shape` that of the parameters (`qvr_lsp.shapes`).
    `value` stands at `capability` in the answer to `initialize`; without one it is always there.  `line` is what
    docs/protocol.md says of it.  `in_settings` answers for a qvr.toml; without one nothing is there."""

    name: str
    handler: str
    shape: Any
    capability: str
    value: Any
    line: str
    in_settings: str = ""


COMMANDS = ("qvr.run", "qvr.cancelRun", "qvr.runs", "qvr.diagram", "qvr.exportDiagram", "qvr.restartWorker")
CODE_ACTION_KINDS = (
    "quickfix",
    "refactor.extract",
    "refactor.inline",
    "refactor.rewrite",
    "source.fixAll",
    "source.organize",
    "source.organizeImports",
)

OPENED = {"textDocument": {"uri": str, "text": str, "version?": VERSION}}
CHANGED = {"textDocument": {"uri": str, "version?": VERSION}, "contentChanges": [{"text": str, "range?": RANGE}]}
DIAGRAM = {**DOCUMENT, "position?": POSITION, "name?": str, "format?": str, "collapse?": bool, "opened?": [str]}
PRIOR = {**DOCUMENT, "position?": POSITION, "program?": str, "draws?": int}
PULLED = {"identifier": "qvr", "interFileDependencies": True}
ACTIONS = {"codeActionKinds": list(CODE_ACTION_KINDS), "resolveProvider": False}
SIGNATURES = {"triggerCharacters": list("(,["), "retriggerCharacters": [")"]}
WHEN_TYPED = {"triggerCharacters": list('>~[=,(.@:-"/')}
RUN = {"commands": list(COMMANDS), "workDoneProgress": True}
TEXTLESS = {"includeText": False}
UNRESOLVED = {"resolveProvider": False}

# fmt: off
ROWS = (
    # documents
    Method("textDocument/didOpen", "synchronisation:did_open", OPENED,
           "textDocumentSync.openClose", True, "a text is the editor's from now on", "synchronisation:did_open"),
    Method("textDocument/didChange", "synchronisation:did_change", CHANGED,
           "textDocumentSync.change", 2, "its edits, applied in order", "synchronisation:did_change"),
    Method("textDocument/didClose", "synchronisation:did_close", DOCUMENT,
           "textDocumentSync.openClose", True, "its diagnostics go away", "synchronisation:did_close"),
    Method("textDocument/didSave", "synchronisation:did_save", DOCUMENT,
           "textDocumentSync.save", TEXTLESS, "nothing: the text in the editor counts", "synchronisation:did_save"),
    Method("textDocument/diagnostic", "diagnostics:document_diagnostic", {**DOCUMENT, "previousResultId?": str},
           "diagnosticProvider", PULLED, "the diagnostics of a text"),
    Method("workspace/diagnostic", "diagnostics:workspace_diagnostic",
           {"previousResultIds?": [{"uri": str, "value": str}]},
           "diagnosticProvider.workspaceDiagnostics", True, "those of every file of the folders"),
    # reading
    Method("textDocument/hover", "hover:hover", PLACE,
           "hoverProvider", True, "what a name means and its type", "settings_file:hover"),
    Method("textDocument/completion", "completion:completion", PLACE,
           "completionProvider", WHEN_TYPED, "what may stand here", "settings_file:completion"),
    Method("completionItem/resolve", "completion:resolve", {},
           "completionProvider.resolveProvider", True, "the documentation of a proposal"),
    Method("textDocument/signatureHelp", "signature_help:signature_help", PLACE,
           "signatureHelpProvider", SIGNATURES, "the arguments of the call around"),
    Method("textDocument/inlayHint", "inlay_hints:inlay_hints", STRETCH,
           "inlayHintProvider", UNRESOLVED, "types, holes, pipelines, directions, parameter names"),
    Method("textDocument/semanticTokens/full", "semantic_tokens:full", DOCUMENT,
           "semanticTokensProvider.full", {}, "what each word is"),
    Method("textDocument/semanticTokens/full/delta", "semantic_tokens:delta", {**DOCUMENT, "previousResultId?": str},
           "semanticTokensProvider.full.delta", True, "what has changed of that"),
    Method("textDocument/semanticTokens/range", "semantic_tokens:partial", STRETCH,
           "semanticTokensProvider.range", True, "the same of some lines"),
    Method("textDocument/codeLens", "code_lens:code_lens", DOCUMENT,
           "codeLensProvider", UNRESOLVED, "run, diagram, parameters, the last run"),
    # going somewhere
    Method("textDocument/definition", "navigation:definition", PLACE,
           "definitionProvider", True, "where a name is declared, in whichever file", "settings_file:definition"),
    Method("textDocument/declaration", "navigation:definition", PLACE, "declarationProvider", True, "the same"),
    Method("textDocument/typeDefinition", "navigation:type_definition", PLACE,
           "typeDefinitionProvider", True, "the objects of its type"),
    Method("textDocument/references", "navigation:references", {**PLACE, "context?": {"includeDeclaration?": bool}},
           "referencesProvider", True, "all uses of a name, in files that import it too"),
    Method("textDocument/documentHighlight", "navigation:highlights", PLACE,
           "documentHighlightProvider", True, "the same, as reads and writes"),
    Method("textDocument/documentSymbol", "document_symbols:document_symbols", DOCUMENT,
           "documentSymbolProvider", {"label": "QVR"}, "the outline"),
    Method("workspace/symbol", "document_symbols:workspace_symbols", {"query?": str},
           "workspaceSymbolProvider", True, "names of every file of the folders"),
    Method("textDocument/prepareCallHierarchy", "call_hierarchy:prepare", PLACE,
           "callHierarchyProvider", True, "the arrow at a place"),
    Method("callHierarchy/incomingCalls", "call_hierarchy:incoming", ITEM,
           "callHierarchyProvider", True, "what uses an arrow"),
    Method("callHierarchy/outgoingCalls", "call_hierarchy:outgoing", ITEM,
           "callHierarchyProvider", True, "what an arrow uses"),
    Method("textDocument/documentLink", "document_links:document_links", DOCUMENT,
           "documentLinkProvider", UNRESOLVED, "imports, data files, addresses, pages of codes", "settings_file:links"),
    # changing
    Method("textDocument/rename", "rename:rename", {**PLACE, "newName": str},
           "renameProvider", True, "a name everywhere, in qvr.toml too"),
    Method("textDocument/prepareRename", "rename:prepare", PLACE,
           "renameProvider.prepareProvider", True, "whether a name may be changed"),
    Method("textDocument/codeAction", "code_actions:code_actions", {**STRETCH, "context?": {"only?": [str]}},
           "codeActionProvider", ACTIONS, "fixes, refactorings", "settings_problems:code_actions"),
    Method("textDocument/formatting", "formatting:whole", DOCUMENT,
           "documentFormattingProvider", True, "the whole text as it should be laid out"),
    Method("textDocument/rangeFormatting", "formatting:partial", STRETCH,
           "documentRangeFormattingProvider", True, "some lines"),
    Method("textDocument/onTypeFormatting", "formatting:on_type", PLACE,
           "documentOnTypeFormattingProvider", {"firstTriggerCharacter": "\n"}, "the indentation of a new line"),
    Method("textDocument/linkedEditingRange", "ranges:linked_editing", PLACE,
           "linkedEditingRangeProvider", True, "places that are typed together"),
    Method("textDocument/foldingRange", "ranges:folding", DOCUMENT,
           "foldingRangeProvider", True, "blocks and comments"),
    Method("textDocument/selectionRange", "ranges:selection", {**DOCUMENT, "positions": [POSITION]},
           "selectionRangeProvider", True, "ever larger parts around a place"),
    # the session
    Method("workspace/executeCommand", "commands:execute", {"command": str, "arguments?": list},
           "executeCommandProvider", RUN, "see Runs"),
    Method("workspace/didChangeConfiguration", "configuration:did_change", {}, "", None, "new settings"),
    Method("workspace/didChangeWatchedFiles", "configuration:did_change_files", {"changes": [IDENTITY]},
           "", None, "qvr.toml is read again, lenses are asked for again"),
    Method("workspace/didChangeWorkspaceFolders", "configuration:did_change_folders",
           {"event": {"added": [IDENTITY], "removed": [IDENTITY]}},
           "workspace.workspaceFolders.changeNotifications", True, "other folders"),
    Method("window/workDoneProgress/cancel", "commands:cancel_progress", {"token": (str, int)},
           "", None, "a run is ended"),
    # ours
    Method("qvr/diagram", "diagrams:diagram", DIAGRAM, "experimental.qvr.diagram", True, "a diagram; see there"),
    Method("qvr/model", "model:model", DOCUMENT, "experimental.qvr.model", True, "the typed model; see there"),
    Method("qvr/dataPreview", "data.preview:data_preview", {**DOCUMENT, "program?": str, "data?": str},
           "experimental.qvr.dataPreview", True, "a table beside the program that reads it; see there"),
    Method("qvr/prior", "prior:prior", PRIOR,
           "experimental.qvr.prior", True, "draws from a program's prior; see there"),
    Method("qvr/runs", "commands:runs", ({"uri?": str}, type(None)),
           "experimental.qvr.runs", True, "the runs of a folder"),
    Method("qvr/status", "configuration:status", (dict, type(None)), "", None, "how the server is"),
)
# fmt: on

METHODS = {row.name: row for row in ROWS}
