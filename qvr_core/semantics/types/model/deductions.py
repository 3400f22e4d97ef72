"""Typed compositions (algebras of weights), transformations between them, and deductions (weighted grammars)."""

from __future__ import annotations

from collections.abc import Mapping

from qvr_core.semantics.types.diagnostics import Origin
from qvr_core.semantics.types.model.expressions import Expr
from qvr_core.semantics.types.spaces import Named
from qvr_core.syntax.immutable import immutable, immutable_by_name


@immutable_by_name
class Composition:
    """A selected or defined algebra.  `operations` maps 'tensor_op', 'join', 'unit', 'zero', 'negation' to
    (parameter names, body); empty for a builtin one."""

    name: str
    kind: str
    operations: Mapping[str, tuple[tuple[str, ...], Expr]]
    origin: Origin


@immutable_by_name
class Transformation:
    """A map that a file declares from the weights of the composition `source` to those of `target`.  `keeps` is
    'homomorphism' or 'map'; `body` is what `map(parameter)` gives, None where the text does not say."""

    name: str
    source: str
    target: str
    keeps: str
    parameter: str
    body: Expr | None
    origin: Origin


@immutable
class TermModel:
    """A term: an atom, an integer, a variable, or a constructor with arguments.  kind: 'atom', 'integer', 'variable',
    'constructor'."""

    kind: str
    head: str
    args: tuple[TermModel, ...] = ()


@immutable_by_name
class RuleModel:
    name: str
    premises: tuple[TermModel, ...]
    conclusion: TermModel
    learnable: bool
    attributes: tuple[tuple[str, object], ...]
    origin: Origin


@immutable_by_name
class EntryModel:
    word: str
    category: TermModel
    form: TermModel | None
    learnable: bool
    attributes: tuple[tuple[str, object], ...]
    origin: Origin


@immutable_by_name
class Deduction:
    name: str
    domain: Named
    codomain: Named
    atoms: tuple[str, ...]
    binders: tuple[str, ...]
    rules: tuple[RuleModel, ...]
    lexicon: tuple[EntryModel, ...]
    lexicon_files: tuple[str, ...]
    semiring: str
    start: str | None
    normalised: bool
    depth: int | None
    tolerance: float
    max_iterations: int
    damaged: bool
    """True where a line of it cannot be read, so that there may be more of it than stands here."""
    origin: Origin
