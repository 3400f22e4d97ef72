"""Declarations: one-line statements, the headers of block statements (`Header`), and the rules of compositions and
families.  `Item` is a line of any block.
"""

from __future__ import annotations

from qvr_core.syntax.immutable import immutable
from qvr_core.syntax.tree.arithmetic import Arith
from qvr_core.syntax.tree.arrows import ArrowExpr
from qvr_core.syntax.tree.deductions import AtomsItem, LexiconEntry, LexiconItem, RuleItem
from qvr_core.syntax.tree.names import Name, Span
from qvr_core.syntax.tree.objects import ObjectExpr
from qvr_core.syntax.tree.options import Options, String
from qvr_core.syntax.tree.steps import Step


@immutable
class CompositionRule:
    """A line of a composition, `tensor_op(a, b) = a * b`, `unit = 1.0`, of a family, `density(x) = …`, or of a
    transformation, `map(x) = x > 0`; a case of an encoder, `and(a, b) = combine(a, b)`, or of a decoder,
    `and(h) = (left(h), right(h))`."""

    name: Name
    parameters: tuple[Name, ...] | None
    body: Arith
    span: Span


Item = Step | AtomsItem | RuleItem | LexiconItem | LexiconEntry | CompositionRule


@immutable
class ObjectDecl:
    names: tuple[Name, ...]
    space: ObjectExpr
    span: Span


@immutable
class MorphismDecl:
    """`options` joins all brackets that belong to the declaration; `init` is what follows `~`."""

    names: tuple[Name, ...]
    domain: ObjectExpr
    codomain: ObjectExpr
    options: Options | None
    init: ArrowExpr | None
    span: Span


@immutable
class LetDecl:
    keyword: str
    name: Name
    value: ArrowExpr
    span: Span


@immutable
class ExportDecl:
    value: ArrowExpr
    span: Span


@immutable
class ImportItem:
    """`block` or `lstm as cell` behind `from "…" import`."""

    name: Name
    alias: Name | None
    span: Span


@immutable
class ImportDecl:
    """`import "layers.qvr"`, `import "layers.qvr" as l`, `from "layers.qvr" import block, lstm as cell`.

    `prefix` is the `l` of the second form, `items` the names of the third, None in the others.
    """

    path: String
    prefix: Name | None
    items: tuple[ImportItem, ...] | None
    span: Span


@immutable
class Parameter:
    """`x`, `alpha : Real = 1.0`, `f : Mor[A, B]`.  `kind` is None for a plain input; `mor` holds the two objects."""

    name: Name
    kind: Name | None
    mor: tuple[ObjectExpr, ObjectExpr] | None
    span: Span
    default: Arith | None = None


@immutable
class ProgramHeader:
    name: Name
    parameters: tuple[Parameter, ...] | None
    domain: ObjectExpr
    codomain: ObjectExpr
    options: Options | None
    colon: Span | None
    span: Span


@immutable
class CompositionHeader:
    name: Name
    kind: Name | None
    span: Span


@immutable
class DeductionHeader:
    name: Name
    domain: ObjectExpr
    codomain: ObjectExpr
    options: Options | None
    span: Span


@immutable
class FunctionParameter:
    """`x`, `k = 1.0`, and of a family also `scale : Real 1 [low=0.0]`."""

    name: Name
    space: ObjectExpr | None
    default: Arith | None
    span: Span


@immutable
class DefDecl:
    """`def logistic(x, k = 1.0) = 1 / (1 + exp(-k * x))`."""

    name: Name
    parameters: tuple[FunctionParameter, ...]
    body: Arith
    span: Span


@immutable
class DefHeader:
    """`def f(x, k = 1.0)`; the steps of its body are the unit's children."""

    name: Name
    parameters: tuple[FunctionParameter, ...]
    colon: Span | None
    span: Span


@immutable
class FamilyHeader:
    """`family Skew(loc, scale : Real 1 [low=0.0]) : Real 1`; its rules, `CompositionRule`s, are the unit's children.

    `space` is that of one element.
    """

    name: Name
    parameters: tuple[FunctionParameter, ...]
    space: ObjectExpr
    colon: Span | None
    span: Span


@immutable
class TransformationHeader:
    """`transformation support : real => boolean as map`; its rules, `CompositionRule`s, are the unit's children.

    `source` and `target` name compositions.
    """

    name: Name
    source: Name
    target: Name
    kind: Name | None
    span: Span


@immutable
class EncoderHeader:
    """`encoder meaning : Formula -> Code`; its cases, `CompositionRule`s, are the unit's children."""

    name: Name
    domain: ObjectExpr
    codomain: ObjectExpr
    span: Span


@immutable
class DecoderHeader:
    """`decoder unmeaning : Code -> Formula [depth=8]`; its cases, `CompositionRule`s, are the unit's children."""

    name: Name
    domain: ObjectExpr
    codomain: ObjectExpr
    options: Options | None
    span: Span


@immutable
class Constructor:
    """`and(Formula, Formula)`, or `yes` alone; `arguments` are what stands in the parentheses."""

    name: Name
    arguments: tuple[ObjectExpr, ...]
    span: Span


@immutable
class DataTypeDecl:
    """`data type Formula = atom(Name) | not(Formula) | and(Formula, Formula)`."""

    name: Name
    constructors: tuple[Constructor, ...]
    span: Span


Header = (
    ObjectDecl
    | MorphismDecl
    | LetDecl
    | ExportDecl
    | ImportDecl
    | ProgramHeader
    | CompositionHeader
    | DeductionHeader
    | DefDecl
    | DefHeader
    | FamilyHeader
    | TransformationHeader
    | DataTypeDecl
    | EncoderHeader
    | DecoderHeader
)
