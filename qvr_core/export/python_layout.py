"""Lines of Python laid out as `ruff format` does, for what the printers write: simple statements and their brackets."""

from __future__ import annotations

import ast
from collections.abc import Sequence

WIDTH = 88
_OPERATORS: dict[type[ast.AST], tuple[str, int]] = {
    ast.Add: ("+", 5), ast.Sub: ("-", 5), ast.Mult: ("*", 6), ast.Div: ("/", 6), ast.MatMult: ("@", 6),
    ast.Mod: ("%", 6), ast.FloorDiv: ("//", 6), ast.Pow: ("**", 8), ast.BitAnd: ("&", 4), ast.BitOr: ("|", 3),
    ast.Eq: ("==", 2), ast.NotEq: ("!=", 2), ast.Lt: ("<", 2), ast.LtE: ("<=", 2), ast.Gt: (">", 2),
    ast.GtE: (">=", 2),
}  # fmt: skip
_UNARY = 7
_POWER = 8
_ATOM = 10


def laid_out(line: str, indent: int) -> list[str]:
    """A simple statement, in as many lines as it needs."""
    (statement,) = ast.parse(line).body
    match statement:
        case ast.Assign(targets=[target], value=value):
            return _behind(f"{_bare(target)} = ", value, indent)
        case ast.AugAssign(target=target, op=op, value=value):
            return _behind(f"{_flat(target)} {_OPERATORS[type(op)][0]}= ", value, indent)
        case ast.Return(value=value) if value is not None:
            return _behind("return ", value, indent)
        case ast.Expr(value=value):
            return _behind("", value, indent)
        case _:
            return [" " * indent + line]


def header(line: str, indent: int) -> list[str]:
    """The line that opens a function, in as many lines as it needs."""
    pad = " " * indent
    if len(pad) + len(line) <= WIDTH:
        return [pad + line]
    head, _, rest = line.partition("(")
    names = rest.rpartition(")")[0].split(", ")
    if indent + 4 + len(", ".join(names)) <= WIDTH:
        return [f"{pad}{head}(", f"{pad}    {', '.join(names)}", f"{pad}):"]
    return [f"{pad}{head}(", *(f"{pad}    {name}," for name in names), f"{pad}):"]


def _behind(prefix: str, value: ast.expr, indent: int) -> list[str]:
    """A value behind what opens its line."""
    pad = " " * indent
    flat = _bare(value)
    if len(pad) + len(prefix) + len(flat) <= WIDTH:
        return [f"{pad}{prefix}{flat}"]
    lines = _opened(value, indent, prefix) or _last_opened(value, indent, prefix)
    if lines is not None:
        return lines
    inner = _broken(value, indent + 4)
    return [f"{pad}{prefix}(", *inner, f"{pad})"]


def _bare(value: ast.expr) -> str:
    """In one line; a tuple without its brackets."""
    if isinstance(value, ast.Tuple) and len(value.elts) > 1:
        return ", ".join(map(_flat, value.elts))
    return _flat(value)


def _opened(value: ast.expr, indent: int, prefix: str, suffix: str = "") -> list[str] | None:
    """A value whose last bracket is opened; None where it has none, or its head is too long."""
    pad = " " * indent
    match value:
        case ast.Call(func=func, args=args, keywords=keywords):
            head = f"{prefix}{_flat(func, _ATOM)}("
            if len(pad) + len(head) > WIDTH:
                return None
            parts: list[tuple[str, ast.expr]] = [("", arg) for arg in args]
            parts += [(f"{keyword.arg}=", keyword.value) for keyword in keywords]
            return _bracketed(head, parts, f"){suffix}", indent) if parts else None
        case ast.List(elts=elements):
            return _bracketed(f"{prefix}[", [("", one) for one in elements], f"]{suffix}", indent)
        case ast.Tuple(elts=elements):
            return _bracketed(f"{prefix}(", [("", one) for one in elements], f"){suffix}", indent)
        case _:
            return None


def _last_opened(value: ast.expr, indent: int, prefix: str) -> list[str] | None:
    """A single operation that ends in a bracket, which is opened; None for others."""
    if not isinstance(value, ast.BinOp) or len(_operands(value, _OPERATORS[type(value.op)][1])) > 2:
        return None
    found = _ending(value)
    if found is None:
        return None
    if indent + len(prefix) + len(found[0]) > WIDTH:
        sign, own = _OPERATORS[type(value.op)]
        found, behind = _ending(value.left), f") {sign} {_flat(value.right, own + 1)}"
        if found is None or indent + max(len(prefix) + len(found[0]), len(behind)) > WIDTH:
            return None
        return _bracketed(prefix + found[0], found[1], behind, indent)
    head, parts = found
    return _bracketed(prefix + head, parts, ")", indent)


def _ending(value: ast.expr) -> tuple[str, list[tuple[str, ast.expr]]] | None:
    """What stands in front of the bracket that an expression ends in, and what is in it."""
    match value:
        case ast.Call(func=func, args=args, keywords=keywords) if args or keywords:
            parts: list[tuple[str, ast.expr]] = [("", arg) for arg in args]
            return f"{_flat(func, _ATOM)}(", [*parts, *((f"{one.arg}=", one.value) for one in keywords)]
        case ast.BinOp(left=left, op=op, right=right) if not isinstance(op, ast.Pow):
            sign, own = _OPERATORS[type(op)]
            front = f"{_flat(left, own)} {sign} "
            lower = isinstance(right, ast.BinOp) and _OPERATORS[type(right.op)][1] <= own
            if lower or isinstance(right, ast.Compare):
                return f"{front}(", [("", right)]
            found = _ending(right)
            return None if found is None else (front + found[0], found[1])
        case _:
            return None


def _bracketed(head: str, parts: Sequence[tuple[str, ast.expr]], tail: str, indent: int) -> list[str]:
    pad, inner = " " * indent, " " * (indent + 4)
    flat = ", ".join(f"{key}{_flat(value)}" for key, value in parts)
    if len(inner) + len(flat) <= WIDTH:
        return [f"{pad}{head}", f"{inner}{flat}", f"{pad}{tail}"]
    lines = [f"{pad}{head}"]
    if len(parts) == 1 and not parts[0][0] and not isinstance(parts[0][1], ast.Starred):
        return [*lines, *_broken(parts[0][1], indent + 4), f"{pad}{tail}"]
    for key, value in parts:
        lines += _item(key, value, indent + 4)
    return [*lines, f"{pad}{tail}"]


def _item(key: str, value: ast.expr, indent: int) -> list[str]:
    """An argument or element with a line of its own, its comma behind it."""
    pad = " " * indent
    flat = f"{key}{_flat(value)},"
    if len(pad) + len(flat) <= WIDTH:
        return [pad + flat]
    lines = _opened(value, indent, key, ",")
    if lines is not None:
        return lines
    if key:
        return [f"{pad}{key}(", *_broken(value, indent + 4), f"{pad}),"]
    lines = _broken(value, indent)
    return [*lines[:-1], lines[-1] + ","]


def _broken(value: ast.expr, indent: int, used: int = 0) -> list[str]:
    """A value within brackets: broken at its operators of lowest rank, else opened; `used` is taken of its first
    line."""
    pad = " " * indent
    flat = _flat(value)
    if len(pad) + used + len(flat) <= WIDTH:
        return [pad + flat]
    if isinstance(value, ast.BinOp):
        rank = _OPERATORS[type(value.op)][1]
        lines: list[str] = []
        for operator, operand in _operands(value, rank):
            lines += _operand(f"{operator} " if operator else "", operand, indent, rank)
        return lines
    return _opened(value, indent, "") or [pad + flat]


def _operand(prefix: str, value: ast.expr, indent: int, rank: int) -> list[str]:
    pad = " " * indent
    text = _flat(value, rank + 1)
    if len(pad) + len(prefix) + len(text) <= WIDTH:
        return [f"{pad}{prefix}{text}"]
    if isinstance(value, ast.BinOp):
        if _OPERATORS[type(value.op)][1] > rank:
            lines = _broken(value, indent, len(prefix))
            return [pad + prefix + lines[0].lstrip(), *lines[1:]]
        return [f"{pad}{prefix}(", *_broken(value, indent + 4), f"{pad})"]
    return _opened(value, indent, prefix) or [f"{pad}{prefix}{text}"]


def _operands(value: ast.expr, rank: int) -> list[tuple[str, ast.expr]]:
    """The operands of a run of operators of one rank, each with the operator in front of it."""
    if isinstance(value, ast.BinOp) and _OPERATORS[type(value.op)][1] == rank:
        return [*_operands(value.left, rank), (_OPERATORS[type(value.op)][0], value.right)]
    return [("", value)]


def _flat(node: ast.expr | None, rank: int = 0) -> str:
    """An expression in one line, in brackets where an operator around it binds more closely."""
    match node:
        case ast.BinOp(left=left, op=op, right=right):
            sign, own = _OPERATORS[type(op)]
            if isinstance(op, ast.Pow):
                tight = _plain(left) and _plain(right)
                between = sign if tight else f" {sign} "
                text = f"{_flat(left, own + 1)}{between}{_flat(right, _UNARY)}"
            else:
                text = f"{_flat(left, own)} {sign} {_flat(right, own + 1)}"
            return f"({text})" if own < rank else text
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            sign, own = _OPERATORS[type(op)]
            text = f"{_flat(left, own + 1)} {sign} {_flat(right, own + 1)}"
            return f"({text})" if own < rank else text
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            spaced = isinstance(operand, ast.BinOp) and not (_plain(operand.left) and _plain(operand.right))
            text = f"-{_flat(operand, _ATOM if spaced else _UNARY)}"
            return f"({text})" if rank > _UNARY else text
        case ast.UnaryOp(op=ast.Invert(), operand=operand):
            return f"~{_flat(operand, _ATOM)}"
        case ast.Call(func=func, args=args, keywords=keywords):
            given = [_flat(arg) for arg in args] + [f"{one.arg}={_flat(one.value)}" for one in keywords]
            return f"{_flat(func, _ATOM)}({', '.join(given)})"
        case ast.Attribute(value=value, attr=attr):
            return f"{_flat(value, _ATOM)}.{attr}"
        case ast.Subscript(value=value, slice=index):
            inner = ", ".join(map(_flat, index.elts)) if isinstance(index, ast.Tuple) and index.elts else _flat(index)
            return f"{_flat(value, _ATOM)}[{inner}]"
        case ast.Slice(lower=lower, upper=upper):
            low, high = _flat(lower), _flat(upper)
            spaced = any(isinstance(end, ast.BinOp | ast.Call) for end in (lower, upper))
            gap = " " if spaced else ""
            return f"{low}{gap if low else ''}:{gap if high else ''}{high}"
        case ast.Tuple(elts=elements):
            inner = ", ".join(map(_flat, elements))
            return f"({inner},)" if len(elements) == 1 else f"({inner})"
        case ast.Dict(keys=keys, values=values):
            pairs = [f"{_flat(key)}: {_flat(one)}" for key, one in zip(keys, values, strict=True)]
            return f"{{{', '.join(pairs)}}}"
        case ast.List(elts=elements):
            return f"[{', '.join(map(_flat, elements))}]"
        case ast.Constant(value=str() as text):
            return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
        case ast.Constant(value=value):
            return "..." if value is ... else repr(value)
        case ast.Name(id=name):
            return name
        case None:
            return ""
        case _:
            return ast.unparse(node)


def _plain(node: ast.expr) -> bool:
    """Whether an operand of `**` stands without spaces: a name, a number, or an attribute of a name."""
    match node:
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _plain(operand) and not isinstance(operand, ast.UnaryOp)
        case ast.Constant(value=value):
            return not isinstance(value, str)
        case ast.Name():
            return True
        case ast.Attribute(value=value):
            return _plain(value)
        case _:
            return False
