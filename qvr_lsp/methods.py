"""Which function answers which method: `module:function` in `qvr_lsp.features`."""

METHODS = {
    # documents
    "textDocument/didOpen": "synchronisation:did_open",
    "textDocument/didChange": "synchronisation:did_change",
    "textDocument/didClose": "synchronisation:did_close",
    "textDocument/didSave": "synchronisation:did_save",
    "textDocument/diagnostic": "diagnostics:document_diagnostic",
    "workspace/diagnostic": "diagnostics:workspace_diagnostic",
    # reading
    "textDocument/hover": "hover:hover",
    "textDocument/completion": "completion:completion",
    "completionItem/resolve": "completion:resolve",
    "textDocument/signatureHelp": "signature_help:signature_help",
    "textDocument/inlayHint": "inlay_hints:inlay_hints",
    "textDocument/semanticTokens/full": "semantic_tokens:full",
    "textDocument/semanticTokens/full/delta": "semantic_tokens:delta",
    "textDocument/semanticTokens/range": "semantic_tokens:partial",
    "textDocument/codeLens": "code_lens:code_lens",
    # going somewhere
    "textDocument/definition": "navigation:definition",
    "textDocument/declaration": "navigation:definition",
    "textDocument/typeDefinition": "navigation:type_definition",
    "textDocument/references": "navigation:references",
    "textDocument/documentHighlight": "navigation:highlights",
    "textDocument/documentSymbol": "document_symbols:document_symbols",
    "workspace/symbol": "document_symbols:workspace_symbols",
    "textDocument/prepareCallHierarchy": "call_hierarchy:prepare",
    "callHierarchy/incomingCalls": "call_hierarchy:incoming",
    "callHierarchy/outgoingCalls": "call_hierarchy:outgoing",
    "textDocument/documentLink": "document_links:document_links",
    # changing
    "textDocument/rename": "rename:rename",
    "textDocument/prepareRename": "rename:prepare",
    "textDocument/codeAction": "code_actions:code_actions",
    "textDocument/formatting": "formatting:whole",
    "textDocument/rangeFormatting": "formatting:partial",
    "textDocument/onTypeFormatting": "formatting:on_type",
    "textDocument/linkedEditingRange": "ranges:linked_editing",
    "textDocument/foldingRange": "ranges:folding",
    "textDocument/selectionRange": "ranges:selection",
    # the session
    "workspace/executeCommand": "commands:execute",
    "workspace/didChangeConfiguration": "configuration:did_change",
    "workspace/didChangeWatchedFiles": "configuration:did_change_files",
    "workspace/didChangeWorkspaceFolders": "configuration:did_change_folders",
    "window/workDoneProgress/cancel": "commands:cancel_progress",
    # ours
    "qvr/diagram": "diagrams:diagram",
    "qvr/model": "model:model",
    "qvr/runs": "commands:runs",
    "qvr/status": "configuration:status",
}

# The same for a qvr.toml; what is not listed is answered with nothing there.
SETTINGS_METHODS = {
    "textDocument/hover": "settings_file:hover",
    "textDocument/completion": "settings_file:completion",
    "textDocument/definition": "settings_file:definition",
    "textDocument/documentLink": "settings_file:links",
    "textDocument/codeAction": "settings_problems:code_actions",
}
SYNCHRONISATION = frozenset(
    ("textDocument/didOpen", "textDocument/didChange", "textDocument/didClose", "textDocument/didSave")
)
