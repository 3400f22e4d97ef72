"""textDocument/codeAction: quick fixes, refactorings, source actions."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from qvr_core.ide.answers import Action, TextEdit
from qvr_core.ide.edits.fixes import attempts, fix_all, harmless, quick_fixes, removes_problem
from qvr_core.ide.edits.imports_in_order import organise_imports
from qvr_core.ide.edits.refactor import organize, refactorings
from qvr_core.ide.imports.fixes import import_actions, unknown_names
from qvr_core.ide.undeclared import declare_actions
from qvr_core.syntax.source import Range
from qvr_lsp.conversions import convert_one
from qvr_lsp.documents import Document, View
from qvr_lsp.features.resolving import on_document, require_unchanged
from qvr_lsp.other_files import texts_on_disk
from qvr_lsp.rpc import Encoded, Json, encoded_in_chunks
from qvr_lsp.trials import Try

if TYPE_CHECKING:
    from qvr_core.analysis import Snapshot
    from qvr_lsp.session import Session


# In longer files the checker's fixes are offered without having been tried, and no others.
MOST_TRIED_LINES = 2000

# Fixes offered at once, the worst problems' first: nobody chooses among more, and each is tried.
MOST_OFFERED = 50


@on_document
async def code_actions(session: Session, document: Document, params: Json) -> Encoded:
    """Found and tried in a thread; they only fit the text that they were found in."""
    edits, view = document.edits, document.frozen()
    opened = [(each.location, each.text) for each in session.documents if each.ready]
    more = [*data_fixes(session, document, params), *fit_fixes(session, document, params)]
    found = await document.trials().use(
        lambda attempt: encoded_in_chunks([*answer(session, view, params, attempt, opened), *more])
    )
    require_unchanged(document, edits)
    return found


def data_fixes(session: Session, document: Document, params: Json) -> list[Json]:
    """What mends a program whose data are called otherwise in their file."""
    stretch = document.stretch(params["range"])
    if not kind_requested((params.get("context") or {}).get("only"), "quickfix"):
        return []
    return [
        action_json(
            session,
            document,
            Action(fix.title, "quickfix", tuple(TextEdit(edit.range, edit.text) for edit in fix.edits)),
        )
        for found in session.data_checks.located(document)
        if found.range.start <= stretch.end and stretch.start <= found.range.end
        for fix in found.fixes
    ]


def fit_fixes(session: Session, document: Document, params: Json) -> list[Json]:
    """What may mend an unreliable fit: another way to write the step, another run."""
    if not kind_requested((params.get("context") or {}).get("only"), "quickfix"):
        return []
    stretch = document.stretch(params["range"])
    found: list[Json] = []
    for problem, fixes, rerun in session.fits.mends(document):
        if problem.range.start <= stretch.end and stretch.start <= problem.range.end:
            told = {"diagnostics": [convert_one(session.client, document.uri, document.lines, problem)]}
            for fix in fixes:
                edits = tuple(TextEdit(edit.range, edit.text) for edit in fix.edits)
                found.append({**action_json(session, document, Action(fix.title, "quickfix", edits)), **told})
            if rerun is not None:
                title, argument = rerun
                command = {"title": title, "command": "qvr.run", "arguments": [argument]}
                found.append({"title": title, "kind": "quickfix", "command": command, **told})
    return found


def answer(
    session: Session, document: View, params: Json, attempt: Try, opened: Sequence[tuple[str, str]] = ()
) -> list[Json]:
    """`opened` are the open documents, by location, and their texts."""
    snapshot = document.snapshot
    stretch = document.stretch(params["range"])
    only = (params.get("context") or {}).get("only")
    trying = len(snapshot.lines) <= MOST_TRIED_LINES
    actions: list[Action] = []
    if kind_requested(only, "quickfix"):
        tried = attempts(snapshot, stretch) if trying else []
        brought = imports_of_unknown(session, snapshot, stretch, opened) if trying else []
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
    return [action_json(session, document, action) for action in allowed]


def imports_of_unknown(
    session: Session, snapshot: Snapshot, stretch: Range, opened: Sequence[tuple[str, str]]
) -> list[Action]:
    """What other files declare of the names at a stretch that this one does not know."""
    unknown = unknown_names(snapshot, stretch)
    if not unknown:
        return []
    return list(import_actions(snapshot, unknown, chain(opened, texts_on_disk(session))))


def kind_requested(only: Any, kind: str) -> bool:
    """Whether the editor asked for actions of a kind, or for a kind above or below it."""
    if not isinstance(only, list) or not only:
        return True
    return any(kind == asked or kind.startswith(f"{asked}.") or asked.startswith(f"{kind}.") for asked in only)


def action_json(session: Session, document: View, action: Action) -> Json:
    result: Json = {
        "title": action.title,
        "kind": action.kind,
        "edit": edit_json(session, document, action.edits),
    }
    if action.preferred:
        result["isPreferred"] = True
    if action.code:
        snapshot = document.snapshot
        result["diagnostics"] = [
            convert_one(session.client, document.uri, snapshot.lines, found)
            for found in snapshot.diagnostics()
            if found.code.name == action.code and found.range == action.at
        ]
    return result


def edit_json(session: Session, document: View, edits: Sequence[TextEdit]) -> Json:
    """A workspace edit of one document, with its version where the editor takes it."""
    changes = [{"range": document.range(item.range), "newText": item.text} for item in edits]
    if session.client.has("workspace.workspaceEdit.documentChanges"):
        identity = {"uri": document.uri, "version": document.version}
        return {"documentChanges": [{"textDocument": identity, "edits": changes}]}
    return {"changes": {document.uri: changes}}
