"""One file, typed: what every layer after the checker reads.  All solved holes are substituted in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from qvr_core.semantics.types.diagnostics import Origin
from qvr_core.semantics.types.model.arrows import Arrow
from qvr_core.semantics.types.model.deductions import Composition, Deduction, Transformation
from qvr_core.semantics.types.model.programs import Program
from qvr_core.semantics.types.model.terms import DataType, Decoder, Encoder
from qvr_core.semantics.types.spaces import Named
from qvr_core.syntax.immutable import immutable, immutable_by_name


@immutable_by_name
class ObjectModel:
    """A declared object.  `alias` is the name it is an alias of."""

    name: str
    space: Named
    alias: str | None
    origin: Origin


@immutable_by_name
class LetArrow:
    """A top-level let: a name for an arrow expression."""

    name: str
    arrow: Arrow
    origin: Origin


@immutable_by_name
class Replicated:
    """A declaration with `replicate=k`: the copies are declared arrows of their own, `f_0` … `f_{k-1}`."""

    name: str
    copies: tuple[str, ...]
    origin: Origin


@immutable_by_name
class Export:
    """`name` is the exported declaration, or `export_<n>` for an anonymous expression (then `arrow` holds it)."""

    name: str
    arrow: Arrow | None
    origin: Origin


@immutable
class Model:
    """One file, typed.  `arrows` holds morphisms by name, replicated copies included."""

    objects: Mapping[str, ObjectModel]
    arrows: Mapping[str, Arrow]
    replicated: Mapping[str, Replicated]
    lets: Mapping[str, LetArrow]
    programs: Mapping[str, Program]
    compositions: Mapping[str, Composition]
    deductions: Mapping[str, Deduction]
    exports: tuple[Export, ...]
    order: tuple[str, ...]
    """Names of all declarations in file order, those of other files first."""
    transformations: Mapping[str, Transformation] = field(default_factory=dict[str, Transformation])
    data_types: Mapping[str, DataType] = field(default_factory=dict[str, DataType])
    term_arrows: Mapping[str, Encoder | Decoder] = field(default_factory=dict[str, Encoder | Decoder])
    """Encoders and decoders."""
    imported: frozenset[str] = frozenset()
    """Names of the declarations of other files."""

    @property
    def own_programs(self) -> dict[str, Program]:
        """The programs that the file itself declares, or exports; no guides."""
        left = self.imported - {export.name for export in self.exports}
        return {
            name: program for name, program in self.programs.items() if name not in left and program.guidance is None
        }

    def guides_of(self, name: str) -> dict[str, Program]:
        """The guides of a program that stand in this file, in the order of the text."""
        found = ((one, self.programs[one]) for one in self.order if one in self.programs and one not in self.imported)
        return {
            one: program for one, program in found if program.guidance is not None and program.guidance.model == name
        }
