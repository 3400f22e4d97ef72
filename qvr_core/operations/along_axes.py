"""Functions along an axis: reductions, running sums, orders."""

from __future__ import annotations

import math
from dataclasses import replace

from qvr_core.operations import intervals as i
from qvr_core.operations.intervals import Interval
from qvr_core.operations.operation import Node, Operation, Targets, alike, along, words

ALONG_AN_AXIS: tuple[Operation, ...] = (
    along("logsumexp", "reduce", traits="itself, in turn", neutral=-math.inf,
        node=Node(group="reduction"),
        targets=alike("logsumexp", numpyro="jax.nn.logsumexp", stan="log_sum_exp")),
    along("argmax", "reduce", traits="jumps", interval=i.COUNT),
    along("argmin", "reduce", traits="jumps", interval=i.COUNT),
    along("amax", "reduce", traits="itself, in turn", interval=i.same,
        node=Node(group="reduction"),
        targets=Targets(torch="{0}.amax({axis})", numpyro="jnp.max", pymc="pt.max", stan="max")),
    along("amin", "reduce", traits="itself, in turn", interval=i.same,
        node=Node(group="reduction"),
        targets=Targets(torch="{0}.amin({axis})", numpyro="jnp.min", pymc="pt.min", stan="min")),
    along("nansum", "reduce", traits="itself, in turn"),
    along("sum", "reduce", free=True, traits="itself, in turn", neutral=0.0, interval=i.total,
        node=Node(group="reduction"),
        targets=alike("sum", torch="{0}.sum({axis})")),
    along("mean", "reduce", free=True, traits="itself, in turn", neutral=0.0,
        interval=lambda a: replace(a, whole=False),
        targets=alike("mean", torch="{0}.mean({axis})")),
    along("prod", "reduce", free=True, traits="itself, in turn", neutral=1.0, interval=i.repeated_product,
        node=Node(group="reduction"),
        targets=alike("prod", torch="{0}.prod({axis})")),
    along("std", "reduce", free=True, aliases=("sd",), interval=i.POSITIVE,
        targets=Targets(torch="{0}.std({axis})", numpyro="jnp.std({0}, {axis}, ddof=1)",
            pymc="pt.std({0}, {axis}, ddof=1)", stan="sd")),
    along("var", "reduce", free=True, interval=i.POSITIVE,
        targets=Targets(torch="{0}.var({axis})", numpyro="jnp.var({0}, {axis}, ddof=1)",
            pymc="pt.var({0}, {axis}, ddof=1)", stan="variance")),
    along("median", "reduce", free=True, traits="itself", interval=i.same),
    along("max", "reduce", free=True, traits="itself, in turn", neutral=-math.inf, interval=i.same,
        targets=alike("max", torch="{0}.amax({axis})")),
    along("min", "reduce", free=True, traits="itself, in turn", neutral=math.inf, interval=i.same,
        targets=alike("min", torch="{0}.amin({axis})")),
    along("norm", "reduce", free=True, traits="in turn", interval=i.POSITIVE),
    along("any", "reduce", free=True, traits="in turn", neutral=0.0, interval=i.TRUTH,
        targets=alike("any", torch="{0}.any({axis})", stan="")),
    along("all", "reduce", free=True, traits="in turn", neutral=1.0, interval=i.TRUTH,
        targets=alike("all", torch="{0}.all({axis})", stan="")),
    along("softmax", "keep", interval=i.UNIT,
        targets=alike("softmax", numpyro="jax.nn.softmax", pymc="pt.special.softmax")),
    along("log_softmax", "keep", interval=Interval(high=0.0),
        node=Node(group="structural"),
        targets=alike("log_softmax", numpyro="jax.nn.log_softmax", pymc="pt.special.log_softmax")),
    along("softmin", "keep", interval=i.UNIT),
    along("cumsum", "keep", traits="whole", interval=i.total,
        node=Node(group="structural"),
        targets=alike("cumsum", stan="cumulative_sum")),
    along("cumprod", "keep", traits="whole", interval=i.repeated_product,
        node=Node(group="structural"),
        targets=alike("cumprod", stan="")),
    along("logcumsumexp", "keep"),
    along("sort", "keep", free=True, traits="whole, jumps", interval=i.same),
    along("argsort", "keep", free=True, traits="whole, jumps", interval=i.COUNT),
    along("flip", "keep", free=True, traits="whole", interval=i.same,
        node=Node(group="structural", traits=words("cheap"))),
    along("normalize", "keep", free=True),
)  # fmt: skip
