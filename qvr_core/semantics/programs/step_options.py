"""The options of steps (docs/reference.md#options-of-steps)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from qvr_core.semantics.arithmetic.arithmetic import check_arith
from qvr_core.semantics.arithmetic.elements.real_indices import check_index
from qvr_core.semantics.arrows.objects import check_object_expr
from qvr_core.semantics.arrows.options import removal
from qvr_core.semantics.language.families import FAMILIES
from qvr_core.semantics.language.family import Family
from qvr_core.semantics.language.options import FLAGS, LIMIT_KEYS, OBJECT_KEYS, STEP_KEYS, VALUE_KEYS, WORDS
from qvr_core.semantics.language.spelling import closest
from qvr_core.semantics.scope.environment import StepContext
from qvr_core.semantics.scope.scope import UNKNOWN, respelt
from qvr_core.semantics.types.diagnostics import Edit, Fix
from qvr_core.semantics.types.model.expressions import Expr
from qvr_core.semantics.types.program_codes import STEP_OPTION
from qvr_core.semantics.types.spaces import Named, Unknown, is_finite
from qvr_core.syntax.immutable import immutable
from qvr_core.syntax.tree.arithmetic import Arith, ListArith, Literal, Variable
from qvr_core.syntax.tree.names import Name, Span
from qvr_core.syntax.tree.objects import ObjectRef
from qvr_core.syntax.tree.options import ListValue, Number, Option, Options, Value, Word


@immutable
class Limit:
    """An option that censors or truncates: its value, and where it is written."""

    value: Expr
    key: Span
    tree: Span


@immutable
class StepOptions:
    """What the bracket after a draw says."""

    over: Named | None = None
    iid_over: Named | None = None
    via: Expr | None = None
    mask: Expr | None = None
    weight: Expr | None = None
    at: Expr | None = None
    limits: Mapping[str, Limit] = field(default_factory=dict[str, Limit])
    noncentred: Option | None = None
    auxiliary: Option | None = None
    missing: Option | None = None
    lengths: Expr | None = None
    damaged: bool = False
    """True where an option was not understood: it may be what is missing."""


def read_step_options(kind: str, options: Options | None, ctx: StepContext) -> StepOptions:
    """The options of a step of `kind`; reports unknown keys and impossible values."""
    objects: dict[str, Named] = {}
    damaged = False
    values: dict[str, Expr] = {}
    limits: dict[str, Limit] = {}
    flags: dict[str, Option] = {}
    missing: Option | None = None
    for option in options.items if options is not None else ():
        key = option.key.text
        if key not in STEP_KEYS[kind]:
            assert options is not None
            _unknown_key(kind, options, option, ctx)
            damaged = True
        elif key in objects or key in values or key in limits or key in flags:
            ctx.scope.report(STEP_OPTION, f"`{key}` is given twice", option.key.span)
        elif key in FLAGS:
            flags[key] = option
            _check_alone(option, ctx)
        elif key in WORDS:
            known = _check_word(option, ctx)
            missing = option if known and key == "missing" else missing
        elif key in OBJECT_KEYS:
            objects[key] = _axis(option, ctx)
            damaged = damaged or isinstance(objects[key].space, Unknown)
        elif (tree := _tree(option.value)) is not None:
            value = check_arith(tree, ctx)
            if key in LIMIT_KEYS:
                limits[key] = Limit(value, option.key.span, tree.span)
                continue
            values[key] = value
            if key in ("via", "at"):
                check_index(value, tree, ctx)
        else:
            ctx.scope.report(STEP_OPTION, f"`{key}` names {VALUE_KEYS[key]}: `{key}=name`", option.span)
    return StepOptions(
        objects.get("over"),
        objects.get("iid_over"),
        values.get("via"),
        values.get("mask"),
        values.get("weight"),
        values.get("at"),
        limits,
        flags.get("noncentred"),
        flags.get("auxiliary"),
        missing,
        values.get("lengths"),
        damaged,
    )


def _unknown_key(kind: str, options: Options, option: Option, ctx: StepContext) -> None:
    key = option.key
    if key.text in LIMIT_KEYS or key.text in FLAGS:
        what = "what a guide draws" if key.text == "auxiliary" else "what a sampler moves"
        flag = f"`{key.text}` is for {what}: a `sample` step, not `{kind}`"
        message = flag if key.text in FLAGS else _of_a_latent(kind, key.text)
        ctx.scope.report(STEP_OPTION, message, key.span, fixes=(removal(options, option, ctx.scope),))
        return
    near = closest(key.text, STEP_KEYS[kind])
    message = f"`{kind}` has no option `{key.text}`"
    message += f"; did you mean `{near}`?" if near else f"; it has {', '.join(f'`{k}`' for k in STEP_KEYS[kind])}"
    fixes = respelt(key, near, ctx.scope) or (removal(options, option, ctx.scope),)
    ctx.scope.report(STEP_OPTION, message, key.span, fixes=fixes)


def _of_a_latent(kind: str, key: str) -> str:
    """Why a latent is neither censored nor truncated."""
    if key.startswith("truncate_"):
        end = "low" if key == "truncate_lower" else "high"
        return (
            f"`{key}` is an option of `observe`; to `{kind}` between bounds, draw from a family that has them, such as "
            f"`TruncatedNormal(loc, scale, {end}=…)`"
        )
    return f"`{key}` is an option of `observe`: what `{kind}` draws is not data, so nothing is known of its value"


def _check_alone(option: Option, ctx: StepContext) -> None:
    if option.value is None:
        return
    key = option.key.text
    fix = Fix(f"Change to `{key}`", (Edit(ctx.scope.origin(option.span), key),), True)
    ctx.scope.report(STEP_OPTION, f"`{key}` stands alone, without a value", option.value.span, fixes=(fix,))


def check_noncentred(options: Options | None, chosen: Option | None, family: Family | None, ctx: StepContext) -> bool:
    """Whether a site is moved by its standardised value; reports where it cannot be."""
    if chosen is None or options is None:
        return False
    place = ctx.scope.origin(chosen.key.span)
    if any(one.code is STEP_OPTION and one.place == place for one in ctx.scope.diagnostics):
        return False  # reported: the draw has bounds
    if family is None:
        problem = "a draw from an arrow is moved by the arrow's own noise already; `noncentred` is for a family"
    elif ctx.scope.lookup(family.name) is not None and not family.noncentred:
        problem = (
            f"a draw of `{family.name}` cannot be non-centred: its formulas do not say what a standardised one is "
            "(`standard(z) = loc + scale * z`)"
        )
    elif not family.noncentred:
        able = ", ".join(one.name for one in FAMILIES.values() if one.noncentred)
        problem = f"a draw of `{family.name}` cannot be non-centred; one of {able} can"
    elif ctx.marginal:
        problem = "what is drawn inside `marginalize` cannot be non-centred: draw it above the block"
    else:
        return True
    ctx.scope.report(STEP_OPTION, problem, place, fixes=(removal(options, chosen, ctx.scope),))
    return False


def _check_word(option: Option, ctx: StepContext) -> bool:
    """Whether an option that takes one word of a list has one."""
    value, key = option.value, option.key.text
    if isinstance(value, Word) and value.text in WORDS[key]:
        return True
    place = option.span if value is None else value.span
    message = f"`{key}` is {' or '.join(f'`{word}`' for word in WORDS[key])}"
    near = closest(value.text, WORDS[key]) if isinstance(value, Word) else None
    fixes = () if near is None else (Fix(f"Change to `{near}`", (Edit(ctx.scope.origin(place), near),), True),)
    ctx.scope.report(STEP_OPTION, message, place, fixes=fixes)
    return False


def _axis(option: Option, ctx: StepContext) -> Named:
    value = option.value
    if not isinstance(value, Word):
        place = option.span if value is None else value.span
        ctx.scope.report(STEP_OPTION, f"`{option.key.text}` names a finite set: `{option.key.text}=Group`", place)
        return UNKNOWN
    named = check_object_expr(ObjectRef(Name(value.text, value.span)), ctx.scope)
    if not isinstance(named.space, Unknown) and not is_finite(named.space):
        message = f"`{option.key.text}` names a finite set, but `{value.text}` is not one"
        ctx.scope.report(STEP_OPTION, message, value.span)
        return UNKNOWN
    return named


def _tree(value: Value | None) -> Arith | None:
    match value:
        case Word(text=text, span=span):
            return Variable(Name(text, span))
        case Number(value=number, text=text, span=span):
            return Literal(number, text, span)
        case ListValue(items=items, span=span):
            parts = [_tree(item) for item in items]
            known = tuple(part for part in parts if part is not None)
            return ListArith(known, span) if len(known) == len(parts) else None
        case _:
            return None
