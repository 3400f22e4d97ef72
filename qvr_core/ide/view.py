"""Statements of a snapshot by place and by name, and its model by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from qvr_core.semantics.language.family import Family
from qvr_core.semantics.language.prelude import EVERY_FAMILY, PRELUDE_FAMILIES
from qvr_core.semantics.scope.scope import DistributionEntry
from qvr_core.semantics.types.model.arrows import Arrow
from qvr_core.semantics.types.model.deductions import Composition, Deduction, Transformation
from qvr_core.semantics.types.model.file import LetArrow, Model, ObjectModel, Replicated
from qvr_core.semantics.types.model.programs import Program
from qvr_core.semantics.types.model.terms import DataType, Decoder, Encoder
from qvr_core.syntax.source import Cursor
from qvr_core.syntax.tree.units import Statement

if TYPE_CHECKING:
    from qvr_core.analysis import Snapshot


def statement_before(snapshot: Snapshot, cursor: Cursor) -> Statement | None:
    """The last statement that begins at or above the cursor's line."""
    index = snapshot.layout.index_at(cursor.line)
    return snapshot.statements[index] if index >= 0 else None


def statements_between(snapshot: Snapshot, first: int, last: int) -> Sequence[Statement]:
    """The statements that have code on the lines from `first` to `last`, and the one that begins above them."""
    start = max(0, snapshot.layout.index_at(first))
    return snapshot.statements[start : snapshot.layout.index_at(last) + 1]


def statement_named(snapshot: Snapshot, name: str) -> Statement | None:
    """The statement that declares a name; the first one where several do."""
    uid = snapshot.owners.get(name)
    if uid is None:
        return None
    try:
        return snapshot.layout.statement_of(uid)
    except KeyError:
        return None


def first_line(snapshot: Snapshot, cursor: Cursor) -> int:
    """The first line of the statement at a cursor, the comment that documents it included."""
    statement = snapshot.statement_at(cursor)
    line = snapshot.layout.start_line(statement.uid) if statement is not None else cursor.line
    while line > 0 and snapshot.lines[line - 1].startswith("#"):
        line -= 1
    return line


class _Declared(Mapping[str, Any]):
    """The declared names of some kinds, each looked up when it is asked for."""

    def __init__(self, snapshot: Snapshot, kinds: tuple[type, ...], *, others: bool = False) -> None:
        self._snapshot = snapshot
        self._kinds = kinds
        self._others = others

    def __getitem__(self, name: str) -> Any:
        node = self._snapshot.node(name)
        if node is None or isinstance(node, self._kinds) == self._others:
            raise KeyError(name)
        return node

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._snapshot.owners if name in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


_NO_ARROWS = (
    ObjectModel,
    Replicated,
    LetArrow,
    Program,
    Composition,
    Transformation,
    DataType,
    Encoder,
    Decoder,
    Deduction,
)


def arrow_of(snapshot: Snapshot, name: str) -> Arrow | Program | None:
    """What a declared name stands for: a morphism, the expression of a let, an encoder, a decoder, or a program."""
    node: Any = snapshot.node(name)
    if isinstance(node, LetArrow):
        return node.arrow
    return node if isinstance(node, Program | Encoder | Decoder) or not isinstance(node, _NO_ARROWS) else None


def model_of(snapshot: Snapshot) -> Model:
    """The model for those who ask for single names: nothing is gone through.  It has no exports and no order."""
    return Model(
        objects=_Declared(snapshot, (ObjectModel,)),
        arrows=_Declared(snapshot, _NO_ARROWS, others=True),
        replicated=_Declared(snapshot, (Replicated,)),
        lets=_Declared(snapshot, (LetArrow,)),
        programs=_Declared(snapshot, (Program,)),
        compositions=_Declared(snapshot, (Composition,)),
        deductions=_Declared(snapshot, (Deduction,)),
        transformations=_Declared(snapshot, (Transformation,)),
        data_types=_Declared(snapshot, (DataType,)),
        term_arrows=_Declared(snapshot, (Encoder, Decoder)),
        exports=(),
        order=(),
    )


def declared_facts(snapshot: Snapshot, name: str) -> Family | None:
    """What is known of a family that the file declares or imports; None of anything else."""
    if name in snapshot.table.known:
        return PRELUDE_FAMILIES.get(name)
    entry = snapshot.entries.get(name)
    return entry.facts if isinstance(entry, DistributionEntry) else None


def language_family(snapshot: Snapshot, name: str) -> Family | None:
    """The family that the language has under a name, if that is what the file means by it."""
    hidden = name in snapshot.entries and name not in snapshot.table.known
    return None if hidden else EVERY_FAMILY.get(name)
