"""The syntax tree: frozen dataclasses, each with a span.

A span counts code points from the start of the *unit* that the node was parsed from.  A unit is a piece of text that
is parsed alone: a one-line statement, the header of a block statement, or one step of a block.  Text that merely moves
keeps its tree; only the position of its unit changes (`qvr_core.syntax.statements`).
"""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeVar

from qvr_core.syntax.immutable import immutable

T = TypeVar("T", covariant=True)


class Span(NamedTuple):
    """Half-open range of code points inside a unit."""

    start: int
    end: int


@immutable
class Name:
    """An identifier as written.

    A label of an enumeration may be `quoted`: `text` is then what stands between the quotes, escapes resolved, and the
    span includes the quotes.
    """

    text: str
    span: Span
    quoted: bool = False


# ---------------------------------------------------------------- values of options


@immutable
class Number:
    """A number with its sign; `text` keeps the user's spelling."""

    value: int | float
    text: str
    span: Span


@immutable
class String:
    """A string; `value` has its escapes resolved."""

    value: str
    text: str
    span: Span


@immutable
class Word:
    """A bare word as an option's value (`role=embed`)."""

    text: str
    span: Span


@immutable
class ListValue:
    """`[a, b]` as an option's value."""

    items: tuple[Value, ...]
    span: Span


@immutable
class ValueArg:
    """An argument of a call in an option's value."""

    key: Name | None
    value: Value
    span: Span


@immutable
class CallValue:
    """`Normal(0.0, scale=1.0)` as an option's value."""

    func: Name
    args: tuple[ValueArg, ...]
    span: Span


Value = Number | String | Word | ListValue | CallValue


@immutable
class Option:
    """`key=value`, or a bare `key`."""

    key: Name
    value: Value | None
    span: Span


@immutable
class Options:
    """A bracketed option list with the brackets' span."""

    items: tuple[Option, ...]
    span: Span


# ---------------------------------------------------------------- object expressions


@immutable
class Size:
    """A size: an integer, a name, or `None` for the hole `_`."""

    value: int | str | None
    span: Span


@immutable
class FinSetExpr:
    """`FinSet n`."""

    size: Size
    span: Span


@immutable
class EnumExpr:
    """`{red, "dark green"}`."""

    labels: tuple[Name, ...]
    span: Span


@immutable
class SpaceExpr:
    """`Real 28 28 [low=0.0]`, `Simplex k`, `Covariance d`, …"""

    kind: Name
    sizes: tuple[Size, ...]
    options: Options | None
    span: Span


@immutable
class SeqExpr:
    """`Seq A`."""

    item: ObjectExpr
    span: Span


@immutable
class ObjectRef:
    """A name where an object is expected."""

    name: Name

    @property
    def span(self) -> Span:
        return self.name.span


@immutable
class ParenObject:
    """`( … )` around an object expression."""

    inner: ObjectExpr
    span: Span


@immutable
class ProductExpr:
    """`A * B * …`, flat; `operators` are the spans of the `*`."""

    factors: tuple[ObjectExpr, ...]
    operators: tuple[Span, ...]
    span: Span


@immutable
class CoproductExpr:
    """`A + B + …`, flat."""

    parts: tuple[ObjectExpr, ...]
    operators: tuple[Span, ...]
    span: Span


ObjectExpr = FinSetExpr | EnumExpr | SpaceExpr | SeqExpr | ObjectRef | ParenObject | ProductExpr | CoproductExpr


# ---------------------------------------------------------------- arrow expressions


@immutable
class ArrowRef:
    """A name where an arrow is expected."""

    name: Name

    @property
    def span(self) -> Span:
        return self.name.span


@immutable
class ArrowArg:
    """An argument of a call: an arrow, a number or a string, perhaps by keyword."""

    key: Name | None
    value: ArrowExpr | Number | String
    span: Span


@immutable
class ArrowCall:
    """`fan(f, g)`, `scan(c, emit=all)`, `Normal(0.0, 1.0)`, `template(alpha=1.0)`."""

    func: Name
    args: tuple[ArrowArg, ...]
    span: Span


@immutable
class ComposeExpr:
    """`a >> b >> c`, flat; `operators[i]` stands between `stages[i]` and `stages[i + 1]`."""

    stages: tuple[ArrowExpr, ...]
    operators: tuple[Span, ...]
    span: Span


@immutable
class TensorExpr:
    """`a @ b @ c`, flat."""

    factors: tuple[ArrowExpr, ...]
    operators: tuple[Span, ...]
    span: Span


@immutable
class PostfixExpr:
    """`f.dagger`, `f.trace(X)`, `f.h`."""

    base: ArrowExpr
    attribute: Name
    args: tuple[ArrowArg, ...] | None
    span: Span


@immutable
class ParenArrow:
    """`( … )` around an arrow expression."""

    inner: ArrowExpr
    span: Span


ArrowExpr = ArrowRef | ArrowCall | ComposeExpr | TensorExpr | PostfixExpr | ParenArrow


@immutable
class Binder:
    """`i : I`: an index that runs over a set, for one step or one comprehension."""

    name: Name
    space: ObjectExpr
    span: Span


# ---------------------------------------------------------------- arithmetic


@immutable
class Literal:
    """A number or a string in arithmetic."""

    value: int | float | str
    text: str
    span: Span


@immutable
class Variable:
    """A bound name, a data name, or an arrow."""

    name: Name

    @property
    def span(self) -> Span:
        return self.name.span


@immutable
class Unary:
    """`-x`."""

    operator: str
    operand: Arith
    span: Span


@immutable
class Binary:
    """`x op y` with op one of + - * / ^ < <= > >= == !=."""

    operator: str
    operator_span: Span
    left: Arith
    right: Arith
    span: Span


@immutable
class ArithArg:
    """An argument of a call in arithmetic or in a draw."""

    key: Name | None
    value: Arith
    span: Span


@immutable
class ArithCall:
    """`f(x, y)`."""

    func: Name
    args: tuple[ArithArg, ...]
    span: Span


@immutable
class Gather:
    """`x[i, j]`."""

    base: Arith
    indices: tuple[Arith, ...]
    span: Span


@immutable
class Field:
    """`x.f`."""

    base: Arith
    field: Name
    span: Span


@immutable
class MethodCall:
    """`x.m(args)`."""

    base: Arith
    method: Name
    args: tuple[ArithArg, ...]
    span: Span


@immutable
class ListArith:
    """`[a, b]`."""

    items: tuple[Arith, ...]
    span: Span


@immutable
class Lambda:
    """`x -> e`."""

    parameter: Name
    body: Arith
    span: Span


@immutable
class FactorIndex:
    """`i : I` in a factor."""

    name: Name
    space: ObjectExpr
    span: Span


@immutable
class FactorCase:
    """`0 -> e` in a factor's table."""

    index: Number
    value: Arith
    span: Span


@immutable
class FactorExpr:
    """`factor i : I, j : J in e`, or `in { 0 -> e, 1 -> f }`."""

    indices: tuple[FactorIndex, ...]
    body: Arith | tuple[FactorCase, ...]
    span: Span


@immutable
class TupleArith:
    """`(e1, e2)`: one entry a name of a pattern, several first values, several axes."""

    items: tuple[Arith, ...]
    span: Span


@immutable
class Comprehension:
    """`sum(body for i : I, j : J if condition)`."""

    function: Name
    body: Arith
    binders: tuple[Binder, ...]
    condition: Arith | None
    span: Span


@immutable
class ParenArith:
    """`( … )` around arithmetic."""

    inner: Arith
    span: Span


Arith = (
    Literal
    | Variable
    | Unary
    | Binary
    | ArithCall
    | Gather
    | Field
    | MethodCall
    | ListArith
    | Lambda
    | FactorExpr
    | TupleArith
    | Comprehension
    | ParenArith
)


# ---------------------------------------------------------------- program steps
#
# The name of a step may carry `binders`, in brackets at `bracket`; `start` is what follows `from`: the first elements
# of a step that reads earlier ones.


@immutable
class Pattern:
    """What a step binds: one name, or several in brackets.  `brackets` is '', '()' or '[]'."""

    names: tuple[Name, ...]
    brackets: str
    span: Span


@immutable
class Draw:
    """The right of `<-`.  `args` is None where no parentheses were written.

    `expression` is set where an anonymous arrow expression stands in place of a name (an error with a fix that
    extracts it to a let); `name` is then its first name.  So is `l.F(…)`: where `l` is an import's prefix, the checker
    reads a name with arguments.
    """

    name: Name
    args: tuple[ArithArg, ...] | None
    expression: ArrowExpr | None
    span: Span


@immutable
class SampleStep:
    pattern: Pattern
    space: ObjectExpr | None
    draw: Draw
    options: Options | None
    span: Span
    binders: tuple[Binder, ...] = ()
    bracket: Span | None = None
    start: Arith | None = None


@immutable
class ObserveStep:
    name: Name
    space: ObjectExpr | None
    draw: Draw
    options: Options | None
    span: Span
    binders: tuple[Binder, ...] = ()
    bracket: Span | None = None
    start: Arith | None = None


@immutable
class PredictStep:
    """`predict f[h : Ahead] <- Normal(m, s)`: drawn from the posterior after the fit."""

    name: Name
    space: ObjectExpr | None
    draw: Draw
    options: Options | None
    span: Span
    binders: tuple[Binder, ...] = ()
    bracket: Span | None = None
    start: Arith | None = None


@immutable
class MarginalizeStep:
    """The opening line of a `marginalize` block; its body is the placed children of the unit."""

    name: Name
    space: ObjectExpr | None
    draw: Draw
    options: Options | None
    span: Span
    binders: tuple[Binder, ...] = ()
    bracket: Span | None = None
    start: Arith | None = None


@immutable
class LetStep:
    pattern: Pattern
    value: Arith
    span: Span
    binders: tuple[Binder, ...] = ()
    bracket: Span | None = None
    start: Arith | None = None
    space: ObjectExpr | None = None


@immutable
class DataStep:
    """`data county : House -> County`: names that come from outside.

    `axes` is what stands behind the colon, `value` what stands behind the arrow; a single value (`data n : Nat`) has
    its kind in `axes`.
    """

    names: tuple[Name, ...]
    axes: ObjectExpr
    value: ObjectExpr | None
    options: Options | None
    span: Span


@immutable
class ScoreStep:
    name: Name
    value: Arith
    span: Span


@immutable
class ReturnItem:
    """`v`, or `label: v` in a tuple."""

    label: Name | None
    name: Name
    span: Span


@immutable
class ReturnStep:
    """`return v` (`tupled` false) or `return (a, b: c)`."""

    items: tuple[ReturnItem, ...]
    tupled: bool
    span: Span


DrawStep = SampleStep | ObserveStep | PredictStep | MarginalizeStep
Step = DrawStep | LetStep | ScoreStep | DataStep | ReturnStep


# ---------------------------------------------------------------- deductions and compositions


@immutable
class Term:
    """`NP`, `3`, `span(I, K, X)`.  `args` is None without parentheses."""

    head: Name | Number
    args: tuple[Term, ...] | None
    span: Span


@immutable
class Attributes:
    """`#[learnable, init=0.5]`."""

    items: tuple[Option, ...]
    span: Span


@immutable
class AtomsItem:
    """`atoms a, b` or `binders Lam`."""

    keyword: str
    names: tuple[Name, ...]
    span: Span


@immutable
class RuleItem:
    name: Name
    premises: tuple[Term, ...]
    conclusion: Term
    attributes: Attributes | None
    span: Span


@immutable
class LexiconItem:
    """The line `lexicon` (entries are the unit's children), or `lexicon from "file" [options]`."""

    source: String | None
    options: Options | None
    span: Span


@immutable
class LexiconEntry:
    word: String
    category: Term
    form: Term
    attributes: Attributes | None
    span: Span


@immutable
class CompositionRule:
    """A line of a composition, `tensor_op(a, b) = a * b`, `unit = 1.0`, or of a family: `density(x) = …`."""

    name: Name
    parameters: tuple[Name, ...] | None
    body: Arith
    span: Span


Item = Step | AtomsItem | RuleItem | LexiconItem | LexiconEntry | CompositionRule


# ---------------------------------------------------------------- statements (the header of a unit)


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
)


# ---------------------------------------------------------------- problems and units


@immutable
class SyntaxProblem:
    """A located syntax error of one unit.  `fix` is (title, replacement edits relative to the unit)."""

    code: str
    message: str
    span: Span
    severity: str = "error"
    fix: tuple[str, tuple[tuple[Span, str], ...]] | None = None


@immutable
class Unit(Generic[T]):
    """One parsed piece of text and what went wrong in it.

    `node` is None where nothing could be made of the text; `keyword` and `declares` then still say what the line
    wanted to be, so that a damaged declaration does not make every use of its name an error.
    """

    text: str
    node: T | None
    problems: tuple[SyntaxProblem, ...]
    keyword: str
    declares: tuple[Name, ...]
    renamed: tuple[tuple[str, str], ...] = ()
    """Names of the text with what the node has in their place, where it stands for another file's namespace."""

    @property
    def broken(self) -> bool:
        """True where the text has a syntax error."""
        return any(problem.severity == "error" for problem in self.problems)


@immutable
class Placed(Generic[T]):
    """A unit at its place in a statement.

    `uid` names the place under edits: it is unique in a document, and a unit that merely moves keeps it.  `line` counts
    lines below the statement's first line, `column` code points in that line.  `children` are the lines of the block
    that the unit opens (steps, rules, lexicon entries); nested blocks nest.
    """

    uid: int
    line: int
    column: int
    unit: Unit[T]
    children: tuple[Placed[Item], ...] = ()


@immutable
class Statement:
    """A top-level statement.  `doc` is the comment run that documents it, markers stripped ('' without)."""

    header: Placed[Header]
    doc: str
    problems: tuple[tuple[int, SyntaxProblem], ...]
    """Layout problems of the whole statement, each with the uid of the unit its span counts from."""

    @property
    def uid(self) -> int:
        return self.header.uid
