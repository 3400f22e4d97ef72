"""Tree -> text: the canonical spelling of every node."""

from __future__ import annotations

from typing import Any

from qvr_core.syntax.line_breaking import SOFT, SPACE, STEP, Doc, Group, Nest, bracketed, chain, flat, join, render
from qvr_core.syntax.tree.arithmetic import (
    Arith,
    ArithArg,
    ArithCall,
    Binary,
    Binder,
    Comprehension,
    FactorCase,
    FactorExpr,
    FactorIndex,
    Field,
    Gather,
    Lambda,
    ListArith,
    Literal,
    MethodCall,
    ParenArith,
    TupleArith,
    Unary,
    Variable,
)
from qvr_core.syntax.tree.arrows import (
    ArrowArg,
    ArrowCall,
    ArrowExpr,
    ArrowRef,
    ComposeExpr,
    ParenArrow,
    PostfixExpr,
    TensorExpr,
)
from qvr_core.syntax.tree.declarations import (
    CompositionHeader,
    CompositionRule,
    Constructor,
    DataTypeDecl,
    DecoderHeader,
    DeductionHeader,
    DefDecl,
    DefHeader,
    EncoderHeader,
    ExportDecl,
    FamilyHeader,
    FunctionParameter,
    Header,
    ImportDecl,
    ImportItem,
    Item,
    LetDecl,
    MorphismDecl,
    ObjectDecl,
    Parameter,
    ProgramHeader,
    TransformationHeader,
)
from qvr_core.syntax.tree.deductions import AtomsItem, Attributes, LexiconEntry, LexiconItem, RuleItem, Term
from qvr_core.syntax.tree.names import Name
from qvr_core.syntax.tree.objects import (
    CoproductExpr,
    EnumExpr,
    FinSetExpr,
    ObjectExpr,
    ObjectRef,
    ParenObject,
    ProductExpr,
    SeqExpr,
    Size,
    SpaceExpr,
)
from qvr_core.syntax.tree.options import CallValue, Formula, ListValue, Number, Option, Options, String, ValueArg, Word
from qvr_core.syntax.tree.steps import (
    DataStep,
    Draw,
    DrawStep,
    LetStep,
    MarginalizeStep,
    ObserveStep,
    ParamStep,
    Pattern,
    PredictStep,
    ReturnItem,
    ReturnStep,
    SampleStep,
    ScoreStep,
    Step,
)

WIDTH = 120


def to_text(node: Any) -> str:
    """Any node of the tree on one line."""
    return flat(doc_of(node))


def to_lines(node: Any, indent: int, width: int = WIDTH) -> list[str]:
    """A statement or step as lines: one where it fits, broken inside brackets and before operators otherwise."""
    return render(doc_of(node), width, indent, indent).split("\n")


def doc_of(node: Any) -> Doc:
    """The document of a node."""
    match node:
        case Name():
            return _name(node)
        case Word(text):
            return text
        case Number(text=text) | String(text=text) | Literal(text=text):
            return text
        case Formula(tree):
            return doc_of(tree)
        case ListValue(items):
            return bracketed("[", map(doc_of, items), "]")
        case Option(key, value):
            return key.text if value is None else [key.text, "=", doc_of(value)]
        case Options(items):
            return bracketed("[", map(doc_of, items), "]")
        case CallValue(func, args):
            return [func.text, bracketed("(", map(doc_of, args), ")")]
        case ValueArg(key, value):
            return doc_of(value) if key is None else [key.text, "=", doc_of(value)]
        case Attributes(items):
            return bracketed("#[", map(doc_of, items), "]")
        case (
            FinSetExpr() | EnumExpr() | SpaceExpr() | SeqExpr() | ObjectRef()
            | ParenObject() | ProductExpr() | CoproductExpr() | Size()
        ):  # fmt: skip
            return _object(node)
        case (
            ArrowRef() | ArrowArg() | ArrowCall() | ComposeExpr() | TensorExpr()
            | PostfixExpr() | ParenArrow()
        ):  # fmt: skip
            return _arrow(node)
        case (
            Variable() | Unary() | Binary() | ArithArg() | ArithCall() | Gather()
            | Field() | MethodCall() | ListArith() | Lambda() | FactorIndex()
            | FactorCase() | FactorExpr() | Binder() | TupleArith() | Comprehension()
            | ParenArith()
        ):  # fmt: skip
            return _arith(node)
        case Pattern() | Draw() | ReturnItem():
            return _part(node)
        case (
            SampleStep() | ObserveStep() | PredictStep() | MarginalizeStep() | LetStep()
            | ScoreStep() | DataStep() | ParamStep() | ReturnStep()
        ):  # fmt: skip
            return _step(node)
        case (
            Term() | AtomsItem() | RuleItem() | LexiconItem() | LexiconEntry()
            | CompositionRule()
        ):  # fmt: skip
            return _item(node)
        case _:
            return _statement(node)


def _names(names: tuple[Name, ...]) -> str:
    return ", ".join([name.text for name in names])


def _name(name: Name) -> str:
    """A name, or a label in quotes."""
    if not name.quoted:
        return name.text
    return '"' + "".join([_ESCAPES.get(c, c) for c in name.text]) + '"'


_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r", "\0": "\\0"}


def _options(options: Options | None) -> list[Doc]:
    return [" ", doc_of(options)] if options is not None and options.items else []


def _ascribed(space: ObjectExpr | None) -> list[Doc]:
    return [" : ", _object(space)] if space is not None else []


def _imported(item: ImportItem) -> str:
    return item.name.text if item.alias is None else f"{item.name.text} as {item.alias.text}"


# ---------------------------------------------------------------- objects and arrows


def _object(node: ObjectExpr | Size) -> Doc:
    match node:
        case Size(value):
            return "_" if value is None else str(value)
        case FinSetExpr(size):
            return ["FinSet ", _object(size)]
        case EnumExpr(labels):
            return bracketed("{", map(_name, labels), "}")
        case SpaceExpr(kind, sizes, options):
            return [kind.text, *[[" ", _object(size)] for size in sizes], *_options(options)]
        case SeqExpr(item):
            return ["Seq ", _object(item)]
        case ObjectRef(name):
            return name.text
        case ParenObject(inner):
            return ["(", _object(inner), ")"]
        case ProductExpr(factors):
            return chain(_object(factors[0]), [("*", _object(factor)) for factor in factors[1:]])
        case CoproductExpr(parts):
            return chain(_object(parts[0]), [("+", _object(part)) for part in parts[1:]])


def _arrow(node: ArrowExpr | ArrowArg) -> Doc:
    match node:
        case ArrowRef(name):
            return name.text
        case ArrowArg(key, value):
            return [key.text, "=", doc_of(value)] if key is not None else doc_of(value)
        case ArrowCall(func, args):
            return [func.text, bracketed("(", map(_arrow, args), ")")]
        case ComposeExpr(stages):
            return chain(_arrow(stages[0]), [(">>", _arrow(stage)) for stage in stages[1:]])
        case TensorExpr(factors):
            return chain(_arrow(factors[0]), [("@", _arrow(factor)) for factor in factors[1:]])
        case PostfixExpr(base, attribute, args):
            called: list[Doc] = [] if args is None else [bracketed("(", map(_arrow, args), ")")]
            return [_arrow(base), ".", attribute.text, *called]
        case ParenArrow(inner):
            return ["(", _arrow(inner), ")"]


# ---------------------------------------------------------------- arithmetic


def _arith(node: Any) -> Doc:
    match node:
        case Literal(text=text):
            return text
        case Variable(name):
            return name.text
        case Unary(operator, operand):
            return [operator, _arith(operand)]
        case Binary():
            return _binary(node)
        case ArithArg(key, value):
            return [key.text, "=", _arith(value)] if key is not None else _arith(value)
        case ArithCall(func, args):
            return [func.text, bracketed("(", map(_arith, args), ")")]
        case Gather(base, indices):
            return [_arith(base), bracketed("[", map(_arith, indices), "]")]
        case Field(base, field):
            # `3 .h`: a point directly behind digits would belong to the number.
            return [_arith(base), "." if not isinstance(base, Literal) else " .", field.text]
        case MethodCall(base, method, args):
            point = "." if not isinstance(base, Literal) else " ."
            return [_arith(base), point, method.text, bracketed("(", map(_arith, args), ")")]
        case ListArith(items):
            return bracketed("[", map(_arith, items), "]")
        case Lambda(parameter, body):
            return [parameter.text, " -> ", _arith(body)]
        case FactorIndex(name, space) | Binder(name, space):
            return [name.text, " : ", _object(space)]
        case FactorCase(index, value):
            return [index.text, " -> ", _arith(value)]
        case FactorExpr(indices, body):
            head: list[Doc] = ["factor ", *join(", ", map(_arith, indices)), " in "]
            if isinstance(body, tuple):
                return [*head, bracketed("{", map(_arith, body), "}")]
            return [*head, _arith(body)]
        case TupleArith(items):
            return bracketed("(", map(_arith, items), ")")
        case Comprehension(function, body, binders, condition):
            tail: list[Doc] = [SPACE, "for ", *join(", ", map(_arith, binders))]
            if condition is not None:
                tail += [SPACE, "if ", _arith(condition)]
            return [function.text, Group(["(", Nest(STEP, [SOFT, _arith(body), *tail]), SOFT, ")"])]
        case _:
            return ["(", _arith(node.inner), ")"]


_SUMS = ("+", "-")
_PRODUCTS = ("*", "/")


def _binary(node: Binary) -> Doc:
    operator = node.operator
    if operator == "^":
        simple = all(isinstance(side, (Variable, Literal)) for side in (node.left, node.right))
        return [_arith(node.left), "^" if simple else " ^ ", _arith(node.right)]
    if operator not in _SUMS + _PRODUCTS:
        return [_arith(node.left), f" {operator} ", _arith(node.right)]
    alike = _SUMS if operator in _SUMS else _PRODUCTS
    rest: list[tuple[str, Doc]] = []
    left: Arith = node
    while isinstance(left, Binary) and left.operator in alike:
        rest.append((left.operator, _arith(left.right)))
        left = left.left
    return chain(_arith(left), reversed(rest))


# ---------------------------------------------------------------- steps and items


def _part(node: Pattern | Draw | ReturnItem) -> Doc:
    match node:
        case Pattern(names, brackets):
            return brackets[:1] + _names(names) + brackets[1:]
        case Draw(name, args, expression):
            drawn = name.text if expression is None else _arrow(expression)
            return drawn if args is None else [drawn, bracketed("(", map(_arith, args), ")")]
        case ReturnItem(label, name):
            return f"{label.text}: {name.text}" if label is not None else name.text


def _step(node: Step) -> Doc:
    match node:
        case SampleStep(pattern):
            return _drawn(["sample ", _part(pattern)], node)
        case ObserveStep(name, outcome=outcome):
            return _drawn(["observe ", name.text if outcome is None else _arith(outcome)], node)
        case PredictStep(name):
            return _drawn(["predict ", name.text], node)
        case MarginalizeStep(name):
            return _drawn(["marginalize ", name.text], node)
        case LetStep(pattern, value):
            return [
                "let ",
                _part(pattern),
                *_binders(node),
                *_ascribed(node.space),
                " = ",
                _arith(value),
                *_start(node),
            ]
        case DataStep(names, axes, value, options) | ParamStep(names, axes, value, options):
            word = "data" if isinstance(node, DataStep) else "param"
            kind: list[Doc] = [] if value is None else [" -> ", _object(value)]
            return [f"{word} {_names(names)} : ", _object(axes), *kind, *_options(options)]
        case ScoreStep(name, value):
            return ["score ", name.text, " = ", _arith(value)]
        case ReturnStep(items, tupled):
            listed = map(_part, items)
            return ["return ", bracketed("(", listed, ")") if tupled else next(listed)]


def _drawn(head: list[Doc], step: DrawStep) -> Doc:
    typed = [*_binders(step), *_ascribed(step.space)]
    options = _options(step.options)
    tail = [*_start(step), *options] if _keeps_apart(step) else [*options, *_start(step)]
    return [*head, *typed, " <- ", _part(step.draw), *tail]


def _keeps_apart(step: DrawStep) -> bool:
    """Whether a bracket behind `from e` would be read as options, and not as an index of e."""
    keyed = step.options is not None and step.options.items[:1] and step.options.items[0].value is not None
    return bool(keyed) or isinstance(step.start, ArithCall | TupleArith)


def _binders(step: DrawStep | LetStep) -> list[Doc]:
    return [bracketed("[", map(_arith, step.binders), "]")] if step.binders else []


def _start(step: DrawStep | LetStep) -> list[Doc]:
    """What follows `from`, on a line of its own where it does not fit."""
    return [Group(Nest(STEP, [SPACE, "from ", _arith(step.start)]))] if step.start is not None else []


def _item(node: Term | Item) -> Doc:
    match node:
        case Term(head, args):
            return head.text if args is None else [head.text, bracketed("(", map(_item, args), ")")]
        case AtomsItem(keyword, names):
            return f"{keyword} {_names(names)}"
        case RuleItem(name, premises, conclusion, attributes):
            listed: list[Doc] = [*join(", ", map(_item, premises)), SPACE] if premises else []
            rule: list[Doc] = ["rule ", name.text, " : ", *listed, "|- ", _item(conclusion)]
            return [Group(Nest(STEP, rule)), *_attributes(attributes)]
        case LexiconItem(source, options):
            return "lexicon" if source is None else ["lexicon from ", source.text, *_options(options)]
        case LexiconEntry(word, category, form, attributes):
            return [word.text, " : ", _item(category), " = ", _item(form), *_attributes(attributes)]
        case CompositionRule(name, parameters, body):
            listed = [] if parameters is None else [f"({_names(parameters)})"]
            return [name.text, *listed, " = ", _arith(body)]
        case _:
            return _step(node)


def _attributes(attributes: Attributes | None) -> list[Doc]:
    return [" ", doc_of(attributes)] if attributes is not None else []


# ---------------------------------------------------------------- statements


def _statement(node: Header | Parameter | FunctionParameter) -> Doc:
    match node:
        case ObjectDecl(names, space):
            return [f"object {_names(names)} : ", _object(space)]
        case MorphismDecl(names, domain, codomain, options, init):
            head: list[Doc] = [f"morphism {_names(names)} : ", *_typed(domain, codomain), *_options(options)]
            return [*head, " ~ ", _arrow(init)] if init is not None else head
        case LetDecl(keyword, name, value):
            return [f"{keyword} {name.text} = ", _arrow(value)]
        case ExportDecl(value):
            return ["export ", _arrow(value)]
        case ImportDecl(path, prefix, items):
            if items is not None:
                return [f"from {path.text} import ", join(", ", map(_imported, items))]
            return f"import {path.text}" if prefix is None else f"import {path.text} as {prefix.text}"
        case Parameter(name, kind, mor, default=default):
            if kind is None:
                return name.text
            pair: Doc = bracketed("[", map(_object, mor), "]") if mor is not None else ""
            return [name.text, " : ", kind.text, pair, *_default(default)]
        case FunctionParameter(name, space, default):
            return [name.text, *_ascribed(space), *_default(default)]
        case DefDecl(name, parameters, body):
            return [f"def {name.text}", bracketed("(", map(_statement, parameters), ")"), " = ", _arith(body)]
        case DefHeader(name, parameters):
            return [f"def {name.text}", bracketed("(", map(_statement, parameters), ")")]
        case FamilyHeader(name, parameters, space):
            listed = [bracketed("(", map(_statement, parameters), ")")]
            return [f"family {name.text}", *listed, " : ", _object(space)]
        case ProgramHeader(name, parameters, domain, codomain, options):
            listed: list[Doc] = [] if parameters is None else [bracketed("(", map(_statement, parameters), ")")]
            return [f"program {name.text}", *listed, " : ", *_typed(domain, codomain), *_options(options)]
        case CompositionHeader(name, kind):
            return f"composition {name.text}" + (f" as {kind.text}" if kind is not None else "")
        case TransformationHeader(name, source, target, kind):
            claim = f" as {kind.text}" if kind is not None else ""
            return f"transformation {name.text} : {source.text} => {target.text}{claim}"
        case EncoderHeader(name, domain, codomain):
            return [f"encoder {name.text} : ", *_typed(domain, codomain)]
        case DecoderHeader(name, domain, codomain, options):
            return [f"decoder {name.text} : ", *_typed(domain, codomain), *_options(options)]
        case DataTypeDecl(name, constructors):
            first, *others = map(_constructor, constructors)
            return [f"data type {name.text} = ", chain(first, [("|", other) for other in others])]
        case DeductionHeader(name, domain, codomain, options):
            return [f"deduction {name.text} : ", *_typed(domain, codomain), *_options(options)]


def _constructor(node: Constructor) -> Doc:
    return [node.name.text, bracketed("(", map(_object, node.arguments), ")")] if node.arguments else node.name.text


def _default(value: Arith | None) -> list[Doc]:
    return [] if value is None else [" = ", _arith(value)]


def _typed(domain: ObjectExpr, codomain: ObjectExpr) -> list[Doc]:
    return [_object(domain), " -> ", _object(codomain)]
