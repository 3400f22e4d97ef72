"""`gates : Mor[X * H, H] = linear`: an arrow with weights of its own for each call of a template that gives none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from qvr_core.semantics.arrows.roles.morphisms import of_role
from qvr_core.semantics.arrows.template_arguments import written_number
from qvr_core.semantics.scope.inherited import extent_of
from qvr_core.semantics.scope.scope import ArrowEntry, Scope
from qvr_core.semantics.types.model.arrows import (
    Arrow,
    Attention,
    BatchNorm,
    Conv,
    Dropout,
    Embed,
    LinearMap,
    Norm,
    Pool,
    Position,
)
from qvr_core.semantics.types.program_codes import TEMPLATE_ARGUMENTS
from qvr_core.semantics.types.spaces import Named
from qvr_core.syntax.tree.arithmetic import Arith, ArithArg, ArithCall, Literal, ParenArith, Variable
from qvr_core.syntax.tree.declarations import MorphismDecl, Parameter
from qvr_core.syntax.tree.names import Name
from qvr_core.syntax.tree.options import Number, Option, Options, String, Value, Word

OWN_ROLES = ("linear", "conv", "pool", "norm", "batch_norm", "dropout", "attention", "position", "embed")
"""The roles that a default may name: deterministic arrows, which need no family."""

OwnArrow = Embed | LinearMap | Conv | Pool | Norm | BatchNorm | Dropout | Attention | Position


def own_arrow(
    parameter: Parameter,
    role: Name,
    mor: tuple[Named, Named],
    numbers: Mapping[str, int | float | None],
    scope: Scope,
) -> ArrowEntry | None:
    """The arrow that the default of a parameter makes between the spaces `mor`; None, reported, where it makes none.

    `numbers` are the parameters that stand for one in options, None for a symbol.
    """
    name = parameter.name
    if role.text not in OWN_ROLES:
        words = ", ".join(f"`{each}`" for each in OWN_ROLES)
        message = f"an arrow by default has one of the roles {words}; give `{name.text}` none, and each call an arrow"
        scope.report(TEMPLATE_ARGUMENTS, message, role.span)
        return None
    assert parameter.mor is not None and parameter.default is not None
    options = [Option(Name("role", role.span), Word(role.text, role.span), role.span)]
    for arg in _arguments(parameter.default):
        if (option := _option(arg, role, numbers, scope)) is not None:
            options.append(option)
    written = Options(tuple(options), parameter.default.span)
    decl = MorphismDecl((name,), *parameter.mor, written, None, parameter.span)
    inner = Scope(scope.globals, scope.unit, name.text, scope.algebra, scope.local, scope.local_sizes)
    arrow = of_role(decl, *mor, inner)
    scope.diagnostics += inner.diagnostics
    scope.equations += inner.equations
    if not isinstance(arrow, OwnArrow):
        return None
    return ArrowEntry(
        name.text,
        "parameter",
        arrow.domain,
        arrow.codomain,
        arrow.sort,
        arrow.density,
        role=role.text,
        extent=extent_of(arrow, scope),
        own=arrow,
    )


def own_arrows(entries: Sequence[object]) -> tuple[Arrow, ...]:
    """The arrows of a call that have weights of their own."""
    return tuple(entry.own for entry in entries if isinstance(entry, ArrowEntry) and entry.own is not None)


def _arguments(default: Arith) -> tuple[ArithArg, ...]:
    while isinstance(default, ParenArith):
        default = default.inner
    return default.args if isinstance(default, ArithCall) else ()


def _option(arg: ArithArg, role: Name, numbers: Mapping[str, int | float | None], scope: Scope) -> Option | None:
    """An argument as an option of the role; None where it is a symbol, or reported."""
    if arg.key is None:
        message = f"`{role.text}` takes its options by keyword: `{_example(role.text)}`"
        scope.report(TEMPLATE_ARGUMENTS, message, arg.span)
        return None
    if arg.key.text in ("role", "replicate", "prior"):
        scope.report(TEMPLATE_ARGUMENTS, f"an arrow by default takes no `{arg.key.text}`", arg.key.span)
        return None
    tree = arg.value
    while isinstance(tree, ParenArith):
        tree = tree.inner
    value: Value | None = None
    number = written_number(tree)
    if number is not None:
        value = Number(number, str(number), tree.span)
    elif isinstance(tree, Literal):
        value = String(str(tree.value), tree.text, tree.span)
    elif isinstance(tree, Variable) and tree.name.text in numbers:
        given = numbers[tree.name.text]
        if given is None:
            return None
        value = Number(given, str(given), tree.span)
    elif isinstance(tree, Variable):
        value = Word(tree.name.text, tree.span)
    if value is None:
        scope.report(TEMPLATE_ARGUMENTS, f"`{arg.key.text}` takes a number, a word or a parameter", tree.span)
        return None
    return Option(arg.key, value, arg.span)


def _example(role: str) -> str:
    examples = {"attention": "heads=4", "position": "max_length=64", "dropout": "p=0.1", "batch_norm": "momentum=0.1"}
    return "kernel=3" if role in ("conv", "pool") else examples.get(role, "bias=false")
