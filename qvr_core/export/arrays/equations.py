"""`solve` in the array targets: a function of the right side, and the helpers that integrate it.

A target has a method where it has a kept library for it (diffrax beside NumPyro), or where its helper is a page that
one can read; it refuses the others, for a solution by another method is another density.
"""

from __future__ import annotations

import copy
from typing import Protocol

from qvr_core.export.arrays.dialect import Dialect
from qvr_core.export.names import Names
from qvr_core.export.refusals import Refused
from qvr_core.semantics.types.model.expressions import Arrange, Constant, Expr, Solve


class Writer(Protocol):
    """What writes expressions."""

    names: Names
    dialect: Dialect

    def text(self, expr: Expr) -> str: ...

    def template(self, template: str, *arguments: str, **named: str) -> str: ...


def solution(expressions: Writer, expr: Solve) -> str:
    """The call whose value has the axes of plates, times and state."""
    dialect = expressions.dialect
    template = dialect.equations.get(expr.method)
    if template is None:
        others = "Stan" if "stiff" in dialect.equations else "Stan or NumPyro"
        remedy = f"export to {others}" + (", or say `method=rk4`" if set(dialect.equations) == {"rk4"} else "")
        raise Refused(expr.origin, f"`solve` by `{expr.method}` is not exported to {dialect.target}", remedy)
    given = [_whole(expressions, one) for one in (expr.initial, *expr.arguments, expr.start, expr.at)]
    first, *arguments, start, at = given
    others = f"({', '.join(arguments)}{',' if len(arguments) == 1 else ''})"
    plates = f", plates={expr.plates}" if expr.plates else ""
    return expressions.template(
        template, _right_side(expressions, expr), first, others, start, at,
        plates=plates, steps=str(expr.steps), rtol=str(expr.rtol), atol=str(expr.atol), most=str(expr.max_steps),
    )  # fmt: skip


def _right_side(expressions: Writer, expr: Solve) -> str:
    """dz/dt as a function of the time, the state and the arguments, which are no names of the program."""
    inner = copy.copy(expressions)
    inner.names = expressions.names.beside({own: own.rpartition(":")[2] for own in expr.names})
    body = inner.text(expr.rate)
    if isinstance(expr.rate, Constant):
        body = expressions.dialect.number.format(body)
    return f"lambda {', '.join(inner.names[own] for own in expr.names)}: {body}"


def _whole(expressions: Writer, expr: Expr) -> str:
    """A value with all axes that it is said to have: a solution for each plate cannot leave them to broadcasting."""
    if not isinstance(expr, Arrange):
        return expressions.text(expr)
    text = expressions.text(expr.base)
    moved = [at for at in expr.axes if at is not None]
    if moved != sorted(moved):
        text = expressions.dialect.permute.format(text, ", ".join(map(str, moved)))
    if None not in expr.axes:
        return text
    if not moved:
        text = expressions.dialect.number.format(text) if text[0] in "-.0123456789" else text
    return (
        f"{expressions.dialect.as_array.format(text)}[{', '.join('None' if at is None else ':' for at in expr.axes)}]"
    )


_DORMAND_PRINCE = """\
    nodes = (1 / 5, 3 / 10, 4 / 5, 8 / 9, 1, 1)
    rows = (
        (1 / 5,),
        (3 / 40, 9 / 40),
        (44 / 45, -56 / 15, 32 / 9),
        (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
        (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
        (35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
    )
    apart = (71 / 57600, 0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40)
"""
_KENNEDY_CARPENTER = """\
    nodes = (1 / 2, 83 / 250, 31 / 50, 17 / 20, 1)
    rows = (
        (1 / 4,),
        (8611 / 62500, -1743 / 31250),
        (5012029 / 34652500, -654441 / 2922500, 174375 / 388108),
        (
            15267082809 / 155376265600,
            -71443401 / 120774400,
            730878875 / 902184768,
            2285395 / 8070912,
        ),
        (82889 / 524892, 0, 15625 / 83664, 69875 / 102672, -2260 / 8211),
    )
    apart = (
        82889 / 524892 - 4586570599 / 29645900160,
        0,
        15625 / 83664 - 178811875 / 945068544,
        69875 / 102672 - 814220225 / 1159782912,
        -2260 / 8211 + 3700637 / 11593932,
        1 / 4 - 61727 / 225920,
    )
"""
_SLOPES = """\
k1 = rate(t, z, *arguments)
k2 = rate(t + h / 2, z + h / 2 * k1, *arguments)
k3 = rate(t + h / 2, z + h / 2 * k2, *arguments)
k4 = rate(t + h, z + h * k3, *arguments)
"""


def _slopes(indent: int) -> str:
    """The slopes of a step of the classical method."""
    return "".join(f"{' ' * indent}{line}\n" for line in _SLOPES.splitlines())


TORCH = {
    "for_each_plate": '''def for_each_plate(solve, plates, first, arguments, start, at):
    """`solve` of the values of each plate; plates stand in front, of length 1 where one value is for all."""
    first, start, at, *arguments = map(torch.as_tensor, (first, start, at, *arguments))
    if not plates:
        if bool((at.detach() < torch.cat([start[None], at[:-1]]).detach()).any()):
            raise ValueError("the times of an equation must ascend from its start on")
        return solve(1.0 * first, arguments, 1.0 * start, 1.0 * at)
    given = (first, start, at, *arguments)
    count = max(one.shape[0] for one in given)
    each = zip(*(one.expand(count, *one.shape[1:]) for one in given))
    return torch.stack(
        [for_each_plate(solve, plates - 1, z, more, t, times) for z, t, times, *more in each]
    )
''',
    "adaptive": '''def adaptive(trial, order, z, start, at, rtol, atol, most):
    """States at the times `at` by steps `trial(t, z, h)` as long as their errors allow; ∞ where that ends nowhere."""
    t, h, states = start, float((at[-1] - start).detach()) / 100, []
    for time in at:
        tried = 0
        while bool(t < time):
            last = h >= float((time - t).detach())
            width = time - t if last else torch.as_tensor(h)
            new, error = trial(t, z, width)
            allowed = atol + rtol * torch.maximum(z.abs(), new.abs())
            size = float((error / allowed).detach().square().mean().sqrt())
            tried += 1
            if tried > most or h <= 1e-14 * abs(float(t.detach())):
                return torch.full((len(at), *z.shape), torch.inf)
            factor = min(5.0, max(0.2, 0.9 * max(size, 1e-9) ** (-1 / order))) if size < 1e9 else 0.2
            if size <= 1:
                t, z = (time, new) if last else (t + h, new)
                h = max(h, float(width.detach()) * factor) if last else h * factor
            else:
                h = float(width.detach()) * factor
        states.append(z)
    return torch.stack(states)
''',
    "implicit_slope": '''def implicit_slope(rate, base, reach, near, allowed):
    """k = rate(base + reach k) by Newton's method, with the derivative of the implicit function; NaN where it fails."""
    k, eye = near.detach(), torch.eye(base.numel())
    for _ in range(10):
        state = (base + reach * k).detach()
        slopes = torch.autograd.functional.jacobian(rate, state).reshape(eye.shape)
        off = (k - rate(base + reach * k)).reshape(-1)
        new = k - torch.linalg.solve(eye - reach.detach() * slopes, off).reshape(k.shape)
        moved = (reach * (new - k)).detach().abs()
        if bool((moved <= allowed).all()):
            return new
        k = new.detach()
    return torch.full_like(k, torch.nan)
''',
    "solve_rk4": f'''def solve_rk4(rate, first, arguments, start, at, steps, plates=0):
    """z at the times `at` where dz/dt = rate(t, z, *arguments), by `steps` of the classical method between two."""

    def solved(z, arguments, before, at):
        states = []
        for time in at:
            h = (time - before) / steps
            for n in range(steps):
                t = before + n * h
{_slopes(16)}                z = z + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
            states.append(z)
            before = time
        return torch.stack(states)

    return for_each_plate(solved, plates, first, arguments, start, at)
''',
    "solve_rk45": f'''def solve_rk45(rate, first, arguments, start, at, rtol, atol, most, plates=0):
    """z at the times `at` where dz/dt = rate(t, z, *arguments), by Dormand and Prince's pair of orders 5 and 4."""
{_DORMAND_PRINCE}
    def solved(z, arguments, start, at):
        def trial(t, z, h):
            k = [rate(t, z, *arguments)]
            for node, row in zip(nodes, rows):
                new = z + h * sum(a * one for a, one in zip(row, k))
                k.append(rate(t + node * h, new, *arguments))
            return new, h * sum(a * one for a, one in zip(apart, k))

        return adaptive(trial, 5, z, start, at, rtol, atol, most)

    return for_each_plate(solved, plates, first, arguments, start, at)
''',
    "solve_stiff": f'''def solve_stiff(rate, first, arguments, start, at, rtol, atol, most, plates=0):
    """z at the times `at` where dz/dt = rate(t, z, *arguments), by Kennedy and Carpenter's ESDIRK of orders 4 and 3."""
{_KENNEDY_CARPENTER}
    def solved(z, arguments, start, at):
        def trial(t, z, h):
            k, allowed = [rate(t, z, *arguments)], 1e-3 * (atol + rtol * z.detach().abs())
            for node, row in zip(nodes, rows):
                base = z + h * sum(a * one for a, one in zip(row, k))
                here = lambda state, time=t + node * h: rate(time, state, *arguments)
                k.append(implicit_slope(here, base, h / 4, k[-1], allowed))
            return base + h / 4 * k[-1], h * sum(a * one for a, one in zip(apart, k))

        return adaptive(trial, 4, z, start, at, rtol, atol, most)

    return for_each_plate(solved, plates, first, arguments, start, at)
''',
}
NUMPYRO = {
    "for_each_plate": '''def for_each_plate(solve, plates, first, arguments, start, at):
    """`solve` of the values of each plate; plates stand in front, of length 1 where one value is for all."""
    given = [jnp.asarray(one) for one in (first, start, at, *arguments)]
    if not plates:
        first, start, at, *arguments = given
        forward = jnp.all(at >= jnp.concatenate([start[None], at[:-1]]))
        states = solve(1.0 * first, arguments, 1.0 * start, 1.0 * at)
        return jnp.where(forward, states, jnp.inf)
    count = max(one.shape[0] for one in given)
    given = [jnp.broadcast_to(one, (count, *one.shape[1:])) for one in given]
    each = lambda z, t, times, *more: for_each_plate(solve, plates - 1, z, more, t, times)
    return jax.vmap(each)(*given)
''',
    "solve_rk4": f'''def solve_rk4(rate, first, arguments, start, at, steps, plates=0):
    """z at the times `at` where dz/dt = rate(t, z, *arguments), by `steps` of the classical method between two."""

    def solved(first, arguments, start, at):
        def between(before, time):
            h = (time - before[1]) / steps

            def step(n, z):
                t = before[1] + n * h
{_slopes(16)}                return z + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

            z = jax.lax.fori_loop(0, steps, step, before[0])
            return (z, time), z

        return jax.lax.scan(between, (first, start), at)[1]

    return for_each_plate(solved, plates, first, arguments, start, at)
''',
    "solve_by": '''def solve_by(solver, rate, first, arguments, start, at, rtol, atol, most, plates=0):
    """z at the times `at` where dz/dt = rate(t, z, *arguments); ∞ where `most` steps do not reach the last one."""

    def solved(first, arguments, start, at):
        found = diffrax.diffeqsolve(
            diffrax.ODETerm(lambda t, z, given: rate(t, z, *given)),
            solver,
            start,
            at[-1],
            None,
            first,
            arguments,
            saveat=diffrax.SaveAt(ts=at),
            stepsize_controller=diffrax.PIDController(rtol, atol),
            max_steps=most,
            throw=False,
        )
        return jnp.where(found.result == diffrax.RESULTS.successful, found.ys, jnp.inf)

    return for_each_plate(solved, plates, first, arguments, start, at)
''',
}
PYMC = {
    "solve_rk4": f'''def solve_rk4(rate, first, arguments, start, at, steps, plates=0):
    """z at the times `at` where dz/dt = rate(t, z, *arguments), by `steps` of the classical method between two."""
    given = [pt.as_tensor(one) for one in (first, start, at, *arguments)]
    if plates:
        count = given[0].shape[0]
        for one in given[1:]:
            count = pt.maximum(count, one.shape[0])

        def each(i, *given):
            first, start, at, *arguments = (one[pt.minimum(i, one.shape[0] - 1)] for one in given)
            return solve_rk4(rate, first, arguments, start, at, steps, plates - 1)

        return pytensor.scan(each, pt.arange(count), non_sequences=given, return_updates=False)
    first, start, at, *arguments = given
    before = pt.concatenate([start[None], at[:-1]])
    h = (at - before) / steps
    times = (before[:, None] + h[:, None] * pt.arange(steps)).flatten()

    def step(t, h, z, *arguments):
{_slopes(8)}        return z + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

    states = pytensor.scan(
        step, [times, pt.repeat(h, steps)], 1.0 * first, non_sequences=arguments, return_updates=False
    )
    return pt.switch(pt.all(h >= 0), states[steps - 1 :: steps], float("inf"))
''',
}
