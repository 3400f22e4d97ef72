"""Decoders, checked: how a term is made from a state, a kernel for each choice (docs/reference.md#terms)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from qvr_core.semantics.arithmetic.arithmetic import check_arith
from qvr_core.semantics.arithmetic.broadcasting import flattened
from qvr_core.semantics.arrows.objects import check_object_expr, written
from qvr_core.semantics.language.options import DECODER_KEYS
from qvr_core.semantics.language.spelling import closest
from qvr_core.semantics.scope.environment import Binding, StepContext
from qvr_core.semantics.scope.scope import UNKNOWN, Scope, declarations, respelt, show
from qvr_core.semantics.terms.cases import Constructors, Mistakes, declared, refuse_batch_norm, type_named
from qvr_core.semantics.terms.written import DEEPEST
from qvr_core.semantics.types.density import EXACT
from qvr_core.semantics.types.diagnostics import Edit, Fix, Origin, Related
from qvr_core.semantics.types.model.arrows import Sort
from qvr_core.semantics.types.model.expressions import Apply, Expr, ValueType
from qvr_core.semantics.types.model.terms import Constructor, DataType, Decoder, DecoderCase, constructor_text
from qvr_core.semantics.types.program_codes import DECODER_CASE, SAMPLED_IN_LET
from qvr_core.semantics.types.spaces import Finite, Named, has_seq, is_real, is_unknown
from qvr_core.semantics.types.type_text import structure
from qvr_core.syntax.tree.arithmetic import Arith, ArithCall, ParenArith, TupleArith
from qvr_core.syntax.tree.declarations import CompositionRule, DecoderHeader
from qvr_core.syntax.tree.names import Name, Span
from qvr_core.syntax.tree.objects import ObjectExpr, ObjectRef, ParenObject
from qvr_core.syntax.tree.options import Number
from qvr_core.syntax.tree.units import Placed, Statement


def check_decoder(statement: Statement, scope: Scope) -> Decoder | None:
    """The declared decoder; None where what it makes is no data type.  Reports that, a depth that is none, and at its
    case each one that stands twice, has another number of places than its constructor, or does not fit at one of them;
    and what has no case: the choice of a constructor, and each constructor with something at its places."""
    header = statement.header.unit.node
    assert isinstance(header, DecoderHeader)
    state = _state(header.domain, scope)
    held = type_named(header.codomain, "a decoder makes", "makes", DECODER_CASE, scope)
    depth = _depth(header, scope)
    if held is None:
        return None
    reading = _Reading(held, _type_name(header.codomain), state, scope)
    for child in statement.header.children:
        scope.unit = child.uid
        reading.read(child)
    scope.unit = statement.uid
    # a line that cannot be read, or whose name is wrong, may be the case that is missing
    if not reading.damaged:
        if reading.chosen is None and len(held.constructors) > 1:
            _unchosen(header, held, scope)
        open_ = [one for one in held.constructors if one.arguments and one.name not in reading.seen]
        reading.constructors.missing(header.name, open_, "each constructor with arguments")
    return Decoder(
        name=header.name.text,
        domain=state,
        codomain=Named(held.terms(depth), written(header.codomain)),
        sort=Sort.SAMPLED,
        origin=scope.origin(header.name.span),
        density=EXACT,
        type=held.name,
        depth=depth,
        choice=reading.choice,
        order=reading.order,
        cases=tuple(reading.found[one.name] for one in held.constructors if one.name in reading.found),
    )


def _type_name(expr: ObjectExpr) -> str:
    """What the header calls the type, without the prefix of an import."""
    while isinstance(expr, ParenObject):
        expr = expr.inner
    return expr.name.text.rpartition(".")[2] if isinstance(expr, ObjectRef) else ""


def _state(expr: ObjectExpr, scope: Scope) -> Named:
    """What a term is made from: real numbers."""
    named = check_object_expr(expr, scope)
    if is_unknown(named.space) or (is_real(named.space) and not has_seq(named.space)):
        return named
    message = f"a term is made from real numbers, `Real d`, and `{named.written}` are none"
    scope.report(DECODER_CASE, message, expr.span)
    return UNKNOWN


def _depth(header: DecoderHeader, scope: Scope) -> int:
    """The most levels of a term; 1 (reported) where the header says none."""
    found: int | None = None
    options = header.options.items if header.options is not None else ()
    for option in options:
        value = option.value
        if option.key.text != "depth":
            near = closest(option.key.text, DECODER_KEYS)
            message = f"decoders have no option `{option.key.text}`; " + (f"did you mean `{near}`?" if near else "")
            message += "" if near else "they have `depth`, how many levels a term has at most"
            scope.report(DECODER_CASE, message, option.key.span, fixes=respelt(option.key, near, scope))
            found = found or 1
        elif isinstance(value, Number) and isinstance(value.value, int) and 1 <= value.value <= DEEPEST:
            found = value.value
        else:
            place = option.span if value is None else value.span
            message = f"`depth` is how many levels a term has at most, a whole number from 1 to {DEEPEST:,}"
            scope.report(DECODER_CASE, message, place)
            found = 1
    if found is None:
        end = header.codomain.span.end
        fix = Fix("Add `[depth=8]`", (Edit(scope.origin(Span(end, end)), " [depth=8]"),))
        message = f"`{header.name.text}` does not say how deep its terms may be: `[depth=8]` lets them have 8 levels"
        scope.report(DECODER_CASE, message, header.codomain.span, fixes=(fix,))
    return found or 1


def _unchosen(header: DecoderHeader, held: DataType, scope: Scope) -> None:
    count, own = len(held.constructors), _type_name(header.codomain)
    if held.constructor(own) is not None:
        message = f"`{own}` has a constructor of that name, so no line can say which one is chosen: rename it"
        scope.report(DECODER_CASE, message, header.codomain.span, (declared(held.name),))
        return
    message = (
        f"`{header.name.text}` does not say how a constructor is chosen: `{own}(h) = choose(h)` does, with a "
        f"kernel `choose : {written(header.domain)} -> FinSet {count}`"
    )
    scope.report(DECODER_CASE, message, header.name.span, (declared(held.name),))


class _Reading:
    """What the lines read so far say."""

    def __init__(self, held: DataType, own: str, state: Named, scope: Scope) -> None:
        self.held, self.own, self.state, self.scope = held, own, state, scope
        self.constructors = Constructors(held, DECODER_CASE, scope)
        self.found: dict[str, DecoderCase] = {}
        self.seen: dict[str, Origin] = {}
        self.chosen: Origin | None = None
        self.choice: DecoderCase | None = None
        self.order = tuple(range(len(held.constructors)))
        self.damaged = False

    def read(self, child: Placed[object]) -> None:
        """One line: a case, or what chooses among them."""
        case, scope = child.unit.node, self.scope
        if not isinstance(case, CompositionRule):
            self.damaged = True
            return
        name = case.name.text
        if name.rpartition(".")[2] == self.own and name not in self.constructors.known:
            if self._stands_twice(case.name, self.chosen):
                return
            self.chosen = scope.origin(case.name.span)
            self._choice(child, case)
            return
        constructor = self.constructors.known.get(name)
        if constructor is None:
            self.damaged = True
            self.constructors.unknown(case.name, self.seen)
        elif not self._stands_twice(case.name, self.seen.get(name)):
            self.seen[name] = scope.origin(case.name.span)
            self._case(child, case, constructor)

    def _stands_twice(self, name: Name, before: Origin | None) -> bool:
        if before is None:
            return False
        related = (Related(f"the first case of `{name.text}` stands here", before),)
        self.scope.report(DECODER_CASE, f"`{name.text}` has a case above", name.span, related)
        return True

    def _case(self, child: Placed[object], case: CompositionRule, constructor: Constructor) -> None:
        """The case of a constructor, kept where its places are those of the constructor."""
        scope, name = self.scope, case.name
        text = constructor_text(constructor, self.held.name)
        if not constructor.arguments:
            message = f"`{text}` has no arguments: nothing is made below it, and it has no case"
            scope.report(DECODER_CASE, message, name.span, (declared(self.held.name),))
            return
        ctx = self._context(child, case)
        trees = _items(case.body)
        if ctx is None:
            return
        if len(trees) != len(constructor.arguments):
            count = len(constructor.arguments)
            takes = "1 argument" if count == 1 else f"{count} arguments"
            gives = f"{len(trees)} are" if len(trees) > 1 else "1 is"
            message = f"`{text}` has {takes}, and {gives} made here"
            scope.report(DECODER_CASE, message, case.body.span, (declared(self.held.name),))
            return
        places: list[Expr] = []
        for number, (tree, argument) in enumerate(zip(trees, constructor.arguments, strict=True), 1):
            what = f"argument {number} of `{name.text}`" if len(trees) > 1 else f"the argument of `{name.text}`"
            places.append(self._tree(tree, what, ctx) if argument is None else self._drawn(tree, argument, what, ctx))
        refuse_batch_norm(places, DECODER_CASE, scope)
        if ctx.lifts:
            scope.report(DECODER_CASE, "a state has no sequence in it, and one is read here", case.body.span)
        assert case.parameters is not None
        self.found[constructor.name] = DecoderCase(
            constructor=constructor.name,
            state=case.parameters[0].text,
            places=tuple(places),
            origin=scope.origin(name.span),
        )

    def _choice(self, child: Placed[object], case: CompositionRule) -> None:
        """What chooses a constructor: a kernel to a set with an element for each."""
        ctx = self._context(child, case)
        if ctx is None:
            return
        held, scope = self.held, self.scope
        mistakes = Mistakes(scope)
        value = self._kernel(case.body, f"the choice of a `{held.name}`", "of the constructors", ctx)
        refuse_batch_norm([value], DECODER_CASE, scope)
        if mistakes.found() or not isinstance(value, Apply):
            return
        space, count = value.arrow.codomain.space, len(held.constructors)
        if is_unknown(space):
            return
        names = tuple(one.name for one in held.constructors)
        labels = space.labels if isinstance(space, Finite) else None
        if labels is not None and sorted(labels) == sorted(names):
            self.order = tuple(map(names.index, labels))
        elif labels is not None or not isinstance(space, Finite) or space.size != count:
            wanted = f"FinSet {count}, an element for each constructor of `{held.name}`"
            wanted += ", or a set of their names" if labels is not None else ""
            message = f"a constructor is chosen from {show(value.arrow.codomain)}, but `{scope.owner}` wants {wanted}"
            scope.report(DECODER_CASE, message, case.body.span, declarations(scope, value.arrow.codomain))
            return
        assert case.parameters is not None
        self.choice = DecoderCase(
            constructor=held.name,
            state=case.parameters[0].text,
            places=(value,),
            origin=scope.origin(case.name.span),
        )

    def _context(self, child: Placed[object], case: CompositionRule) -> StepContext | None:
        """The names that a case may use: the state; None (reported) where it names another number of things."""
        names, scope = case.parameters or (), self.scope
        if len(names) != 1:
            message = f"a case of a decoder names the state, `{case.name.text}(h)`, and this one names "
            scope.report(DECODER_CASE, message + (f"{len(names)} things" if names else "none"), case.name.span)
            return None
        kind = ValueType(self.state.space, rows=True)
        origin = scope.origin(names[0].span)
        bindings: Mapping[str, Binding] = {
            names[0].text: Binding("input", kind, self.state, origin, frozenset((names[0].text,)))
        }
        return StepContext(scope, dict(bindings), child.unit.text)

    def _tree(self, tree: Arith, what: str, ctx: StepContext) -> Expr:
        """The state that a term below is made from: computed."""
        scope = self.scope
        mistakes, reported = Mistakes(scope), len(scope.diagnostics)
        body = _checked(tree, ctx)
        self._refuse_draws(reported, f"{what} is a term: the state that it is made from is computed, and this is drawn")
        if mistakes.found():
            return body
        space = flattened(body.type)
        if space is not None and not is_unknown(space):
            self._fit(Named(space, structure(space)), self.state, tree, f"{what} is a term, made from")
        return body

    def _drawn(self, tree: Arith, argument: Named, what: str, ctx: StepContext) -> Expr:
        """An element of a set, or numbers: drawn from a kernel."""
        mistakes = Mistakes(self.scope)
        value = self._kernel(tree, what, f"of {argument.written}", ctx)
        if not mistakes.found() and isinstance(value, Apply) and not is_unknown(value.arrow.codomain.space):
            self._fit(value.arrow.codomain, argument, tree, f"{what} is drawn from")
        return value

    def _fit(self, given: Named, wanted: Named, tree: Arith, gives: str) -> None:
        related = declarations(self.scope, wanted)
        self.scope.require_fit(
            given, wanted, tree.span, DECODER_CASE, gives, f"`{self.scope.owner}` wants", related, local=True
        )

    def _kernel(self, tree: Arith, what: str, outcome: str, ctx: StepContext) -> Expr:
        """What a choice is drawn from: a kernel applied to arguments, whose density is exact."""
        scope = self.scope
        while isinstance(tree, ParenArith):
            tree = tree.inner
        reported, mistakes = len(scope.diagnostics), Mistakes(scope)
        value = _checked(tree, ctx)
        drawn = isinstance(value, Apply) and value.arrow.sort is Sort.SAMPLED and isinstance(tree, ArithCall)
        if drawn and isinstance(tree, ArithCall):
            # the one place in a block where a draw may stand
            own = scope.origin(tree.func.span)
            for at in range(len(scope.diagnostics) - 1, reported - 1, -1):
                if scope.diagnostics[at].code is SAMPLED_IN_LET and scope.diagnostics[at].place == own:
                    del scope.diagnostics[at]
        self._refuse_draws(reported, f"{what} is drawn from a declared kernel, `f(h)`, and from nothing else")
        if mistakes.found() or is_unknown(value.type.space if value.type.space is not None else UNKNOWN.space):
            return value
        if not drawn:
            message = f"{what} is drawn, and this is computed: a kernel {outcome} gives it a density"
            scope.report(DECODER_CASE, message, tree.span)
        elif isinstance(value, Apply) and (
            value.arrow.density.kind not in ("exact", "summed") or value.arrow.density.innovations
        ):
            message = f"{what} has no exact density: what is drawn on the way to it, or follows its draw, is not in it"
            scope.report(DECODER_CASE, message, tree.span)
        return value

    def _refuse_draws(self, reported: int, message: str) -> None:
        """Tell of draws that stand where none may, by `message`, and not as a `let` does."""
        scope = self.scope
        for at, one in enumerate(scope.diagnostics[reported:], reported):
            if one.code is SAMPLED_IN_LET:
                place = one.place
                del scope.diagnostics[at:]
                assert isinstance(place, Origin)
                scope.report(DECODER_CASE, message, place)
                return


def _items(body: Arith) -> Sequence[Arith]:
    while isinstance(body, ParenArith):
        body = body.inner
    return body.items if isinstance(body, TupleArith) else (body,)


def _checked(tree: Arith, ctx: StepContext) -> Expr:
    """Arithmetic over the state; reports the names that are none of it."""
    before = len(ctx.free)
    value = check_arith(tree, ctx)
    for free in ctx.free[before:]:
        ctx.scope.unknown(Name(free.name, free.origin.span), "variable", tuple(ctx.bindings))
    return value
