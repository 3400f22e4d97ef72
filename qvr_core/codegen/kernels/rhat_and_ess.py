"""How well chains have mixed, of one number: what `inference.diagnostics.convergence` says, for a page.

Vehtari, Gelman, Simpson, Carpenter & Bürkner (2021); Geyer (1992) for where a sum of autocorrelations ends.
"""

# pyright: reportMissingParameterType=false
from __future__ import annotations

import math

from qvr_core.codegen.kernels.special import erfc

# what is told
MEAN, SD, LOW, MEDIAN, HIGH, R_HAT, BULK, TAIL, OF_MEAN = range(9)
TOLD = 9
LOWER, UPPER = 0.05, 0.95
RESOLUTION = 1e-15


def mixing(draws, out, values, order, scores, folded):
    """Mean, sd, the 5 %, 50 % and 95 % quantile, R-hat, and effective draws of the ranks, of the tails and of the mean,
    of draws (chains, draws), at least four of each chain.  The others are room for as many numbers."""
    chains, length = draws.shape
    half = length // 2
    every = chains * length
    mean = 0.0
    for c in range(chains):
        for i in range(length):
            values[c * length + i] = draws[c, i]
            mean += draws[c, i]
    mean /= every
    squares = 0.0
    for i in range(every):
        squares += (values[i] - mean) * (values[i] - mean)
    out[MEAN], out[SD] = mean, math.sqrt(squares / (every - 1))
    _sorted(values, order, every)
    out[LOW] = _quantile(values, order, every, LOWER)
    out[MEDIAN] = _quantile(values, order, every, 0.5)
    out[HIGH] = _quantile(values, order, every, UPPER)
    tail = math.inf
    for which in range(2):
        bound = out[HIGH] if which else out[LOW]
        _halved(draws, values, half)
        for i in range(2 * chains * half):
            values[i] = 1.0 if values[i] <= bound else 0.0
        tail = min(tail, _size(values, 2 * chains, half))
    out[TAIL] = tail
    _halved(draws, values, half)
    out[OF_MEAN] = _size(values, 2 * chains, half)
    _halved(draws, values, half)
    count = 2 * chains * half
    _sorted(values, order, count)
    middle = _quantile(values, order, count, 0.5)
    _scored(values, order, scores, count)
    for i in range(count):
        folded[i] = abs(values[i] - middle)
    one = _between_to_within(scores, 2 * chains, half)
    out[BULK] = _size(scores, 2 * chains, half)
    _sorted(folded, order, count)
    _scored(folded, order, scores, count)
    other = _between_to_within(scores, 2 * chains, half)
    larger = one if math.isnan(other) or one > other else other
    out[R_HAT] = larger if chains > 1 else math.nan


def _halved(draws, values, half):
    """First and second halves as chains of their own; the draw in the middle of an odd number is left out."""
    chains, length = draws.shape
    for c in range(chains):
        for i in range(half):
            values[c * half + i] = draws[c, i]
            values[(chains + c) * half + i] = draws[c, length - half + i]


def _sorted(values, order, count):
    """The places of numbers in ascending order (Williams' heap, 1964)."""
    for i in range(count):
        order[i] = i
    for start in range(count // 2 - 1, -1, -1):
        _sunk(values, order, start, count)
    for last in range(count - 1, 0, -1):
        order[0], order[last] = order[last], order[0]
        _sunk(values, order, 0, last)


def _sunk(values, order, start, count):
    root = start
    while 2 * root + 1 < count:
        child = 2 * root + 1
        if child + 1 < count and values[int(order[child])] < values[int(order[child + 1])]:
            child += 1
        if not values[int(order[root])] < values[int(order[child])]:
            break
        order[root], order[child] = order[child], order[root]
        root = child


def _quantile(values, order, count, probability):
    place = probability * (count - 1)
    below = int(place)
    above = min(below + 1, count - 1)
    low, high = values[int(order[below])], values[int(order[above])]
    return low + (place - below) * (high - low)


def _scored(values, order, scores, count):
    """Normal quantiles of ranks, which ties share (Blom 1958)."""
    first = 0
    while first < count:
        last = first
        here = values[int(order[first])]
        while last + 1 < count and values[int(order[last + 1])] == here:
            last += 1
        rank = 0.5 * (first + last) + 1.0
        score = _normal_quantile((rank - 0.375) / (count + 0.25))
        for i in range(first, last + 1):
            scores[int(order[i])] = score
        first = last + 1


def _normal_quantile(p):
    """By a rational start (Abramowitz & Stegun 26.2.23) and Newton's steps."""
    if p == 0.5:
        return 0.0
    q = p if p < 0.5 else 1.0 - p
    t = math.sqrt(-2.0 * math.log(q))
    x = (2.515517 + t * (0.802853 + t * 0.010328)) / (1.0 + t * (1.432788 + t * (0.189269 + t * 0.001308))) - t
    for _ in range(4):
        x -= (0.5 * erfc(-x * 0.7071067811865476) - q) / (0.3989422804014327 * math.exp(-0.5 * x * x))
    return x if p < 0.5 else -x


def _between_to_within(values, chains, draws):
    """R-hat of chains as they are."""
    within, sums, squares = 0.0, 0.0, 0.0
    for c in range(chains):
        mean = 0.0
        for i in range(draws):
            mean += values[c * draws + i]
        mean /= draws
        for i in range(draws):
            away = values[c * draws + i] - mean
            within += away * away
        sums += mean
    grand = sums / chains
    for c in range(chains):
        mean = 0.0
        for i in range(draws):
            mean += values[c * draws + i]
        squares += (mean / draws - grand) * (mean / draws - grand)
    between = squares / (chains - 1)
    within /= chains * (draws - 1)
    return math.sqrt((draws - 1.0) / draws + between / within)


def _covariance(values, chains, draws, lag):
    """At a lag, averaged over chains, each divided by all draws; the numbers of a chain have mean 0."""
    total = 0.0
    for c in range(chains):
        for i in range(draws - lag):
            total += values[c * draws + i] * values[c * draws + i + lag]
    return total / (draws * chains)


def _size(values, chains, draws):
    """Effective draws of chains as they are; they are centred in place."""
    every = chains * draws
    low, high = values[0], values[0]
    grand = 0.0
    for i in range(every):
        low, high = min(low, values[i]), max(high, values[i])
        grand += values[i]
    if high - low < RESOLUTION:
        return 1.0 * every
    grand /= every
    between = 0.0
    for c in range(chains):
        mean = 0.0
        for i in range(draws):
            mean += values[c * draws + i]
        mean /= draws
        between += (mean - grand) * (mean - grand)
        for i in range(draws):
            values[c * draws + i] -= mean
    first = _covariance(values, chains, draws, 0)
    within = first * draws / (draws - 1)
    over_all = first + between / (chains - 1)
    last = max((draws - 1) // 2 - 1, 0)
    before, least = 0.0, math.inf
    at = 0
    even, pair = 1.0, 1.0
    going = True
    while going:
        even = 1.0 if at == 0 else 1.0 - (within - _covariance(values, chains, draws, 2 * at)) / over_all
        pair = even + 1.0 - (within - _covariance(values, chains, draws, 2 * at + 1)) / over_all
        if pair > 0.0 and at < last:
            least = min(least, pair)
            before += least
            at += 1
        else:
            going = False
    end = even if even > 0.0 or pair >= 0.0 else 0.0
    tau = 2.0 * before - 1.0 + end
    return every / max(tau, 1.0 / math.log10(1.0 * every))
