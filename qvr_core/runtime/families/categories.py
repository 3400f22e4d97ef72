"""Families of categories, as many as their parameters say.  Draws carry no gradient."""

from __future__ import annotations

from qvr_core.arrays.engine import Generator, Tensor, arrays, broadcasting
from qvr_core.arrays.engine import functional as F
from qvr_core.runtime.families.cumulative.tails import Tails
from qvr_core.runtime.families.densities import inside
from qvr_core.runtime.families.family import RuntimeFamily
from qvr_core.runtime.families.links import HeadPlan, Params, positive
from qvr_core.runtime.families.parameters import CATEGORIES, CLASS_PROBS, COUNT, TRIALS
from qvr_core.runtime.families.random_draws import Shape, open_uniforms
from qvr_core.semantics.language.family import Family, Parameter


def categorical_draw(shape: Shape, generator: Generator | None, logits: Tensor) -> Tensor:
    """Inverse cdf, one uniform per draw.  `shape` is without the class axis."""
    cdf = logits.detach().softmax(-1).cumsum(-1)
    u = open_uniforms((*shape, 1), cdf, generator) * cdf[..., -1:]
    return (u > cdf).sum(-1).clamp_(max=logits.shape[-1] - 1)


def categorical_log_prob(value: Tensor, logits: Tensor) -> Tensor:
    """`logits` (…, K) need not be normalised."""
    count = logits.shape[-1]
    if value.shape == logits.shape[:-1]:
        flat = F.cross_entropy(logits.reshape(-1, count), value.reshape(-1).long(), reduction="none")
        return -flat.view(value.shape)
    normalised = arrays.log_softmax(logits, -1)
    lead = broadcasting.broadcast_shapes(value.shape, logits.shape[:-1])
    index = value.long().expand(lead).unsqueeze(-1)
    return normalised.expand(*lead, count).gather(-1, index).squeeze(-1)


CATEGORICAL = RuntimeFamily(
    Family(
        "Categorical",
        (CLASS_PROBS,),
        CATEGORIES,
        "discrete",
        "one of k values with probabilities probs",
        common=True,
    ),
    categorical_log_prob,
    draw=categorical_draw,
    reparameterised=False,
    link=lambda head, raw: (raw,),
    categories=lambda logits: logits.shape[-1],
    log_table=lambda logits: arrays.log_softmax(logits, -1),
)


def multinomial_draw(shape: Shape, generator: Generator | None, total: Tensor, logits: Tensor) -> Tensor:
    """Category by category, the count among what is left.  `shape` includes the category axis."""
    probs = logits.detach().softmax(-1).expand(shape)
    left = total.to(probs.dtype).expand(shape[:-1]).contiguous()
    rest = arrays.flip(arrays.flip(probs, (-1,)).cumsum(-1), (-1,))
    share = (probs / rest.clamp(min=arrays.finfo(probs.dtype).tiny)).clamp(0.0, 1.0)
    counts: list[Tensor] = []
    for k in range(shape[-1] - 1):
        counts.append(arrays.binomial(left, share[..., k].contiguous(), generator=generator))
        left = left - counts[-1]
    return arrays.stack([*counts, left], -1)


def multinomial_log_prob(value: Tensor, total: Tensor, logits: Tensor) -> Tensor:
    """log n! − Σ log xₖ! + Σ xₖ log pₖ over the last axis."""
    y = value.to(logits.dtype)
    ok = ((y >= 0) & (y == y.round())).all(-1) & (y.sum(-1) == total)
    y = arrays.where(ok.unsqueeze(-1), y, 0.0)
    orders = arrays.lgamma(y.sum(-1) + 1.0) - arrays.lgamma(y + 1.0).sum(-1)
    log_probs = arrays.log_softmax(logits, -1)
    # a category that is impossible (−∞) and has no count says nothing
    return inside(ok, orders + arrays.where(y > 0, y * log_probs, 0.0).sum(-1))


MULTINOMIAL = RuntimeFamily(
    Family(
        "Multinomial",
        (TRIALS, CLASS_PROBS),
        COUNT,
        "discrete",
        "how many of total draws fall into each category",
        event=1,
        head_options={"total": 1},
    ),
    multinomial_log_prob,
    draw=multinomial_draw,
    reparameterised=False,
    link=lambda head, raw: (raw.new_full(raw.shape[:-1], float(head.trials)), raw),
    noise_event=lambda parameters, event: (parameters[1].shape[-1],),
)


def ordered_logistic_logits(predictor: Tensor, cutpoints: Tensor) -> Tensor:
    """Log-probabilities (…, K) of the categories: log(σ(c_k − η) − σ(c_{k−1} − η)), exact in both tails."""
    z = cutpoints - predictor.unsqueeze(-1)
    first, last = F.logsigmoid(z[..., :1]), F.logsigmoid(-z[..., -1:])
    upper, lower = z[..., 1:], z[..., :-1]
    # σ(u) − σ(l) = σ(u) σ(−l) (1 − e^{l−u})
    gap = (lower - upper).clamp(max=-arrays.finfo(z.dtype).eps)
    middle = F.logsigmoid(upper) + F.logsigmoid(-lower) + arrays.log(-arrays.expm1(gap))
    return arrays.cat([first, middle, last], dim=-1)


def _cut(index: Tensor, cutpoints: Tensor) -> Tensor:
    """Cutpoint number `index` of each element."""
    count = cutpoints.shape[-1]
    lead = broadcasting.broadcast_shapes(index.shape, cutpoints.shape[:-1])
    place = index.long().clamp(0, count - 1).expand(lead).unsqueeze(-1)
    return cutpoints.expand(*lead, count).gather(-1, place).squeeze(-1)


def ordered_logistic_draw(shape: Shape, generator: Generator | None, predictor: Tensor, cutpoints: Tensor) -> Tensor:
    return categorical_draw(shape, generator, ordered_logistic_logits(predictor, cutpoints))


def ordered_logistic_log_prob(value: Tensor, predictor: Tensor, cutpoints: Tensor) -> Tensor:
    """log(σ(u) − σ(l)) = log σ(u) + log σ(−l) + log(1 − e^(l−u)) of the two cutpoints around the one category."""
    upper, lower = _cut(value, cutpoints), _cut(value - 1, cutpoints)
    below, above = value > 0, value < cutpoints.shape[-1]
    between = (lower - upper).clamp(max=-arrays.finfo(upper.dtype).eps)
    # the first and the last category have one cutpoint: the other's part is 0, and has no gradient
    gap = arrays.where(below & above, between, -1.0)
    return (
        arrays.where(above, F.logsigmoid(upper - predictor), 0.0)
        + arrays.where(below, F.logsigmoid(predictor - lower), 0.0)
        + arrays.where(below & above, arrays.log(-arrays.expm1(gap)), 0.0)
    )


def ordered_logistic_tails(value: Tensor, predictor: Tensor, cutpoints: Tensor) -> Tails:
    z = _cut(value, cutpoints) - predictor
    return F.logsigmoid(z), F.logsigmoid(-z)


def _ordered_logistic_link(head: HeadPlan, raw: Tensor) -> Params:
    pieces = head.pieces(raw)
    first, steps = pieces["cutpoints"][..., :1], pieces["cutpoints"][..., 1:]
    return pieces["predictor"].squeeze(-1), arrays.cat([first, first + positive(steps).cumsum(-1)], dim=-1)


def _ordered_logistic_table(predictor: Tensor, cutpoints: Tensor) -> Tensor:
    index = arrays.arange(cutpoints.shape[-1] + 1, device=predictor.device)
    return ordered_logistic_log_prob(index, predictor.unsqueeze(-1), cutpoints.unsqueeze(-2))


ORDERED_LOGISTIC = RuntimeFamily(
    Family(
        "OrderedLogistic",
        (
            Parameter("predictor", aliases=("eta",), raw="one"),
            Parameter("cutpoints", "vector", "ordered", ("cuts",), fewer=1),
        ),
        CATEGORIES,
        "discrete",
        "an ordered category by the interval of cutpoints that predictor plus logistic noise falls into",
    ),
    ordered_logistic_log_prob,
    draw=ordered_logistic_draw,
    reparameterised=False,
    link=_ordered_logistic_link,
    categories=lambda predictor, cutpoints: cutpoints.shape[-1] + 1,
    log_table=_ordered_logistic_table,
    tails=ordered_logistic_tails,
)
