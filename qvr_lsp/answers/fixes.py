"""Quick fixes, refactorings, source actions."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING

import attrs
from lsprotocol import types

from qvr_core.ide.answers import Action, TextEdit
from qvr_core.ide.edits.fixes import attempts, fix_all, harmless, quick_fixes, removes_problem
from qvr_core.ide.edits.imports_in_order import organise_imports
from qvr_core.ide.edits.refactor import organize, refactorings
from qvr_core.ide.imports.fixes import import_actions, unknown_names
from qvr_core.ide.undeclared import declare_actions
from qvr_core.syntax.source import Range
from qvr_lsp.answers.other_files import texts_on_disk
from qvr_lsp.diagnostic_conversion import diagnostic
from qvr_lsp.documents import Document, View
from qvr_lsp.features.formatting import text_edits
from qvr_lsp.tried_edits import Try

if TYPE_CHECKING:
    from qvr_core.analysis import Snapshot
    from qvr_lsp.language_server import QvrLanguageServer


# In longer files the checker's fixes are offered without having been tried, and no others.
MOST_TRIED_LINES = 2000

# Fixes offered at once, the worst problems' first: nobody chooses among more, and each is tried.
MOST_OFFERED = 50


def data_fixes(ls: QvrLanguageServer, document: Document, params: types.CodeActionParams) -> list[types.CodeAction]:
    """What mends a program whose data are called otherwise in their file."""
    stretch = document.stretch(params.range)
    if not kind_requested(params.context.only, "quickfix"):
        return []
    return [
        code_action(
            ls,
            document,
            Action(fix.title, "quickfix", tuple(TextEdit(edit.range, edit.text) for edit in fix.edits)),
        )
        for found in ls.data_checks.located(document)
        if found.range.start <= stretch.end and stretch.start <= found.range.end
        for fix in found.fixes
    ]


def fit_fixes(ls: QvrLanguageServer, document: Document, params: types.CodeActionParams) -> list[types.CodeAction]:
    """What may mend an unreliable fit: another way to write the step, another run."""
    if not kind_requested(params.context.only, "quickfix"):
        return []
    stretch = document.stretch(params.range)
    found: list[types.CodeAction] = []
    for problem, fixes, rerun in ls.fits.mends(document):
        if problem.range.start <= stretch.end and stretch.start <= problem.range.end:
            told = [diagnostic(ls, document.uri, document.lines, problem)]
            for fix in fixes:
                edits = tuple(TextEdit(edit.range, edit.text) for edit in fix.edits)
                found.append(
                    attrs.evolve(code_action(ls, document, Action(fix.title, "quickfix", edits)), diagnostics=told)
                )
            if rerun is not None:
                title, argument = rerun
                command = types.Command(title, "qvr.run", arguments=[argument])
                found.append(types.CodeAction(title, types.CodeActionKind.QuickFix, told, command=command))
    return found


def answer(
    ls: QvrLanguageServer,
    document: View,
    params: types.CodeActionParams,
    attempt: Try,
    opened: Sequence[tuple[str, str]] = (),
) -> list[types.CodeAction]:
    """`opened` are the open documents, by location, and their texts."""
    snapshot = document.snapshot
    stretch = document.stretch(params.range)
    only = params.context.only
    trying = len(snapshot.lines) <= MOST_TRIED_LINES
    actions: list[Action] = []
    if kind_requested(only, "quickfix"):
        tried = attempts(snapshot, stretch) if trying else []
        brought = imports_of_unknown(ls, snapshot, stretch, opened) if trying else []
        fixes = (*quick_fixes(snapshot, stretch), *tried, *brought)[:MOST_OFFERED]
        actions += [each for each in fixes if not trying or removes_problem(snapshot, attempt(each.edits), each)]
        declared = declare_actions(snapshot, stretch)
        actions += [each for each in declared if not trying or harmless(snapshot, attempt(each.edits))]
    if kind_requested(only, "refactor"):
        found = refactorings(snapshot, stretch)
        actions += [each for each in found if not trying or harmless(snapshot, attempt(each.edits))]
    if only and kind_requested(only, "source.fixAll"):
        actions.append(Action("Apply all preferred fixes", "source.fixAll", fix_all(snapshot)))
    if only and kind_requested(only, "source.organize"):
        actions.append(Action("Order the declarations", "source.organize", organize(snapshot)))
    if only and kind_requested(only, "source.organizeImports"):
        ordered = organise_imports(snapshot)
        if ordered and harmless(snapshot, attempt(ordered)):
            actions.append(Action("Organise the imports", "source.organizeImports", ordered))
    allowed = [action for action in actions if action.edits and kind_requested(only, action.kind)]
    return [code_action(ls, document, action) for action in allowed]


def imports_of_unknown(
    ls: QvrLanguageServer, snapshot: Snapshot, stretch: Range, opened: Sequence[tuple[str, str]]
) -> list[Action]:
    """What other files declare of the names at a stretch that this one does not know."""
    unknown = unknown_names(snapshot, stretch)
    if not unknown:
        return []
    return list(import_actions(snapshot, unknown, chain(opened, texts_on_disk(ls))))


def kind_requested(only: Sequence[str] | None, kind: str) -> bool:
    """Whether the editor asked for actions of a kind, or for a kind above or below it."""
    if not only:
        return True
    return any(kind == asked or kind.startswith(f"{asked}.") or asked.startswith(f"{kind}.") for asked in only)


def code_action(ls: QvrLanguageServer, document: View, action: Action) -> types.CodeAction:
    snapshot = document.snapshot
    mended = [
        diagnostic(ls, document.uri, snapshot.lines, found)
        for found in (snapshot.diagnostics() if action.code else ())
        if found.code.name == action.code and found.range == action.at
    ]
    edit = edit_of(ls, document, action.edits)
    preferred = True if action.preferred else None
    return types.CodeAction(action.title, action.kind, mended or None, preferred, edit=edit)


def edit_of(ls: QvrLanguageServer, document: View, edits: Sequence[TextEdit]) -> types.WorkspaceEdit:
    """A workspace edit of one document, with its version where the editor takes it."""
    changes = text_edits(document, edits)
    if ls.has("workspace.workspace_edit.document_changes"):
        identity = types.OptionalVersionedTextDocumentIdentifier(document.uri, document.version)
        return types.WorkspaceEdit(document_changes=[types.TextDocumentEdit(identity, changes)])
    return types.WorkspaceEdit(changes={document.uri: changes})
