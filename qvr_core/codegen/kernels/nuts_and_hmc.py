"""NUTS, HMC and their warm-up as machine code: what `mcmc.nuts`, `mcmc.hmc`, `mcmc.mass` and `mcmc.adaptation` do, for
one chain.

The draws are those of the sampler in numpy up to rounding: the same numbers of the same generator in the same order.
All that a chain is stands in its arrays and its generator, so it may stop after any transition and go on later.
"""

# pyright: reportMissingParameterType=false
from __future__ import annotations

import math

from qvr_core.codegen.intrinsics import call_density
from qvr_core.codegen.kernels.random_numbers import standard_normal, uniform

INLINE = False
MAX_ENERGY_ERROR = 1000.0
SHRINKAGE, SMALL_VARIANCE = 5.0, 1e-3
GAMMA, OFFSET, DECAY = 0.05, 10.0, 0.75

# a chain's numbers
LOG_DENSITY, STEP, CENTRE, LOG_AVERAGE, ERROR, UPDATES, SEEN = range(7)
NUMBERS = 7
# rows of a chain's room: states of the trajectory, and sums of momenta
(
    LEFT_Q, LEFT_P, LEFT_G, RIGHT_Q, RIGHT_P, RIGHT_G, HERE_Q, HERE_P, HERE_G,
    PROPOSAL_Q, PROPOSAL_G, SUB_Q, SUB_G, TOTAL, SUB_TOTAL, VELOCITY, WORK,
) = range(17)  # fmt: skip
# a whole state: three rows from here on
LEFT, RIGHT, HERE = LEFT_Q, RIGHT_Q, HERE_Q
WHOLE, PART = False, True
CHECKPOINTS = 17
"""Two rows a level follow: momentum, and the sum up to it."""
# columns of what a transition reports
ACCEPTANCE, DIVERGING, STEPS, DEPTH, VALUE, STEP_SIZE, ENERGY = range(7)
REPORTED = 7


def _velocity(inverse, dense, momentum, out):
    """M⁻¹ p."""
    if dense:
        for i in range(momentum.shape[0]):
            total = 0.0
            for j in range(momentum.shape[0]):
                total += inverse[i, j] * momentum[j]
            out[i] = total
    else:
        for i in range(momentum.shape[0]):
            out[i] = inverse[0, i] * momentum[i]


def _kinetic(inverse, dense, momentum, work):
    """½ pᵀ M⁻¹ p."""
    _velocity(inverse, dense, momentum, work)
    total = 0.0
    for i in range(momentum.shape[0]):
        total += momentum[i] * work[i]
    return 0.5 * total


def _momentum(inverse, root, dense, generator, out):
    """p ~ N(0, M): with M⁻¹ = L Lᵀ, p = L⁻ᵀ z."""
    size = out.shape[0]
    for i in range(size):
        out[i] = standard_normal(generator)
    if dense:
        for i in range(size - 1, -1, -1):
            total = out[i]
            for j in range(i + 1, size):
                total -= root[j, i] * out[j]
            out[i] = total / root[i, i]
    else:
        for i in range(size):
            out[i] *= 1.0 / math.sqrt(inverse[0, i])


def _turning(inverse, dense, left, right, total, first, sum_then, partial, room):
    """The generalised U-turn criterion, of a whole trajectory, or (`partial`) of what came since a checkpoint."""
    work, velocity = room[WORK], room[VELOCITY]
    for i in range(left.shape[0]):
        since = total[i] - sum_then[i] + first[i] if partial else total[i]
        work[i] = since - 0.5 * (left[i] + right[i])
    _velocity(inverse, dense, work, velocity)
    one, other = 0.0, 0.0
    for i in range(left.shape[0]):
        one += left[i] * velocity[i]
        other += right[i] * velocity[i]
    return one <= 0.0 or other <= 0.0


def _leapfrog(address, w, d, k, inverse, dense, q, p, g, step, velocity):
    """One step in place; the log density there."""
    for i in range(q.shape[0]):
        p[i] += 0.5 * step * g[i]
    _velocity(inverse, dense, p, velocity)
    for i in range(q.shape[0]):
        q[i] += step * velocity[i]
    value = call_density(address, q, g, w, d, k)
    for i in range(q.shape[0]):
        p[i] += 0.5 * step * g[i]
    return -math.inf if math.isnan(value) else value


def _joined(a, b):
    """log(eᵃ + eᵇ)."""
    if a == b:
        return a + math.log(2.0)
    high = a if a > b else b
    low = b if a > b else a
    return high + math.log1p(math.exp(low - high))


def _copied(room, new, old):
    """One state becomes another: position, momentum and gradient."""
    for row in range(3):
        for i in range(room.shape[1]):
            room[new + row, i] = room[old + row, i]


def _turned(inverse, dense, room, leaf):
    """Has any balanced subtree that ends at this leaf turned?  Even leaves begin subtrees, odd ones end some."""
    here = leaf >> 1
    top = 0
    while here:
        top += here & 1
        here >>= 1
    if leaf % 2 == 0:
        for i in range(room.shape[1]):
            room[CHECKPOINTS + 2 * top, i] = room[HERE_P, i]
            room[CHECKPOINTS + 2 * top + 1, i] = room[SUB_TOTAL, i]
        return False
    trailing = 0
    while (leaf >> trailing) & 1:
        trailing += 1
    for index in range(top, top - trailing, -1):
        first, sum_then = room[CHECKPOINTS + 2 * index], room[CHECKPOINTS + 2 * index + 1]
        if _turning(inverse, dense, first, room[HERE_P], room[SUB_TOTAL], first, sum_then, PART, room):
            return True
    return False


def _transition(address, w, d, k, q, g, numbers, inverse, root, dense, room, generator, most, report):
    """One draw, by trees of at most `most` doublings."""
    size = q.shape[0]
    _momentum(inverse, root, dense, generator, room[HERE_P])
    start = numbers[LOG_DENSITY] - _kinetic(inverse, dense, room[HERE_P], room[WORK])
    for i in range(size):
        room[HERE_Q, i], room[HERE_G, i] = q[i], g[i]
        room[TOTAL, i] = room[HERE_P, i]
        room[PROPOSAL_Q, i], room[PROPOSAL_G, i] = q[i], g[i]
    _copied(room, LEFT, HERE)
    _copied(room, RIGHT, HERE)
    value = numbers[LOG_DENSITY]
    log_weight, accepted, steps = 0.0, 0.0, 0
    diverging = False
    depth = 0
    going = True
    while going and depth < most:
        forward = uniform(generator) < 0.5
        if forward:
            _copied(room, HERE, RIGHT)
        else:
            _copied(room, HERE, LEFT)
        step = numbers[STEP] if forward else -numbers[STEP]
        weight, sub_value = -math.inf, 0.0
        for i in range(size):
            room[SUB_TOTAL, i] = 0.0
        alive = True
        leaf = 0
        while alive and leaf < 1 << depth:
            here = _leapfrog(
                address, w, d, k, inverse, dense, room[HERE_Q], room[HERE_P], room[HERE_G], step, room[VELOCITY]
            )
            change = here - _kinetic(inverse, dense, room[HERE_P], room[WORK]) - start
            if math.isnan(change):
                change = -math.inf
            accepted += math.exp(min(change, 0.0))
            steps += 1
            bad = change < -MAX_ENERGY_ERROR
            diverging = diverging or bad
            for i in range(size):
                room[SUB_TOTAL, i] += room[HERE_P, i]
            joint = _joined(weight, change)
            if math.log(uniform(generator)) < change - joint:
                sub_value = here
                for i in range(size):
                    room[SUB_Q, i], room[SUB_G, i] = room[HERE_Q, i], room[HERE_G, i]
            weight = joint
            alive = not bad and not _turned(inverse, dense, room, leaf)
            leaf += 1
        # biased progressive sampling between the old trajectory and the new half
        taken = math.log(uniform(generator)) < weight - log_weight
        if alive and taken:
            value = sub_value
            for i in range(size):
                room[PROPOSAL_Q, i], room[PROPOSAL_G, i] = room[SUB_Q, i], room[SUB_G, i]
        if forward:
            _copied(room, RIGHT, HERE)
        else:
            _copied(room, LEFT, HERE)
        depth += 1
        if alive:
            log_weight = _joined(log_weight, weight)
            for i in range(size):
                room[TOTAL, i] += room[SUB_TOTAL, i]
            left, right = room[LEFT_P], room[RIGHT_P]
            going = not _turning(inverse, dense, left, right, room[TOTAL], left, left, WHOLE, room)
        else:
            going = False
    for i in range(size):
        q[i], g[i] = room[PROPOSAL_Q, i], room[PROPOSAL_G, i]
    numbers[LOG_DENSITY] = value
    report[ACCEPTANCE] = accepted / max(steps, 1)
    report[DIVERGING] = 1.0 if diverging else 0.0
    report[STEPS], report[DEPTH], report[VALUE], report[ENERGY] = steps, depth, value, -start


def _fixed(address, w, d, k, q, g, numbers, inverse, root, dense, room, generator, steps, length, report):
    """One draw of HMC: `steps` leapfrog steps, or as many as fill a `length`."""
    # a step size that wavers a little keeps periodic trajectories apart
    step = numbers[STEP] * (0.9 + 0.2 * uniform(generator))
    here_q, here_p, here_g = room[HERE_Q], room[HERE_P], room[HERE_G]
    _momentum(inverse, root, dense, generator, here_p)
    start = numbers[LOG_DENSITY] - _kinetic(inverse, dense, here_p, room[WORK])
    for i in range(q.shape[0]):
        here_q[i], here_g[i] = q[i], g[i]
    count = steps if length <= 0.0 else int(min(max(math.ceil(length / numbers[STEP]), 1.0), 1000.0))
    value = numbers[LOG_DENSITY]
    for _ in range(count):
        value = _leapfrog(address, w, d, k, inverse, dense, here_q, here_p, here_g, step, room[VELOCITY])
    change = value - _kinetic(inverse, dense, here_p, room[WORK]) - start
    if math.isnan(change):
        change = -math.inf
    if math.log(uniform(generator)) < change:
        for i in range(q.shape[0]):
            q[i], g[i] = here_q[i], here_g[i]
        numbers[LOG_DENSITY] = value
    report[ACCEPTANCE], report[DIVERGING] = math.exp(min(change, 0.0)), 1.0 if change < -MAX_ENERGY_ERROR else 0.0
    report[STEPS], report[DEPTH], report[VALUE], report[ENERGY] = count, 0.0, numbers[LOG_DENSITY], -start


def _restart(numbers, step):
    """Dual averaging anew around ten times a step size."""
    numbers[STEP] = step
    numbers[CENTRE], numbers[LOG_AVERAGE] = math.log(10.0 * step), math.log(step)
    numbers[ERROR] = numbers[UPDATES] = 0.0


def _learn_step(numbers, acceptance, target):
    """One update of dual averaging (Hoffman & Gelman 2014, section 3.2)."""
    numbers[UPDATES] += 1.0
    count = numbers[UPDATES]
    weight = 1.0 / (count + OFFSET)
    numbers[ERROR] = (1.0 - weight) * numbers[ERROR] + weight * (target - acceptance)
    log_step = numbers[CENTRE] - math.sqrt(count) / GAMMA * numbers[ERROR]
    decay = count**-DECAY
    numbers[LOG_AVERAGE] = decay * log_step + (1.0 - decay) * numbers[LOG_AVERAGE]
    numbers[STEP] = math.exp(log_step)


def _first_step(address, w, d, k, q, g, numbers, inverse, root, dense, room, generator, target):
    """A step size whose single step is accepted about as often as wanted, by doubling or halving the one there is."""
    step = numbers[STEP]
    size = q.shape[0]
    _momentum(inverse, root, dense, generator, room[LEFT_P])
    start = numbers[LOG_DENSITY] - _kinetic(inverse, dense, room[LEFT_P], room[WORK])
    direction = 0
    for _ in range(50):
        for i in range(size):
            room[HERE_Q, i], room[HERE_P, i], room[HERE_G, i] = q[i], room[LEFT_P, i], g[i]
        here = _leapfrog(
            address, w, d, k, inverse, dense, room[HERE_Q], room[HERE_P], room[HERE_G], step, room[VELOCITY]
        )
        change = here - _kinetic(inverse, dense, room[HERE_P], room[WORK]) - start
        good = 1 if change > math.log(target) else -1
        if direction == 0:
            direction = good
        if good != direction:
            break
        step *= 2.0**direction
    return step


def _observe(q, numbers, mean, squares, dense, work):
    """One draw of the warm-up, by Welford's recurrence."""
    numbers[SEEN] += 1.0
    size = q.shape[0]
    for i in range(size):
        work[i] = q[i] - mean[i]
        mean[i] += work[i] / numbers[SEEN]
    for i in range(size):
        if dense:
            for j in range(size):
                squares[i, j] += work[i] * (q[j] - mean[j])
        else:
            squares[0, i] += work[i] * (q[i] - mean[i])


def _learn_mass(numbers, inverse, root, mean, squares, dense):
    """Take the window's variance, or covariance, as inverse mass and start a new window."""
    count = numbers[SEEN]
    size = mean.shape[0]
    if count > 1.0:
        weight = count / (count + SHRINKAGE)
        small = (1.0 - weight) * SMALL_VARIANCE
        for i in range(squares.shape[0]):
            for j in range(size):
                inverse[i, j] = weight * squares[i, j] / (count - 1.0)
                if not dense or i == j:
                    inverse[i, j] += small
        if dense:
            _factor(inverse, root)
    numbers[SEEN] = 0.0
    for i in range(size):
        mean[i] = 0.0
    for i in range(squares.shape[0]):
        for j in range(size):
            squares[i, j] = 0.0


def _factor(matrix, root):
    """The Cholesky factor."""
    for i in range(matrix.shape[0]):
        for j in range(i + 1):
            total = matrix[i, j]
            for at in range(j):
                total -= root[i, at] * root[j, at]
            root[i, j] = math.sqrt(total) if i == j else total / root[j, j]


def advance(
    address, w, d, k, q, g, numbers, inverse, root, mean, squares, room, generator,
    dense, draw, count, warmup, window_start, ends, early, early_depth, most, steps, length, target, adapt_step,
    adapt_mass, positions, reports,
):  # fmt: skip
    """Transitions `draw` to `draw + count` of a chain, by trees where `most` is not 0: its arrays are left as they are
    afterwards, positions and reports are filled."""
    # the search for a step size is called in one place: what is called in two is compiled into both
    for number in range(-1 if draw == 0 and warmup > 0 and adapt_step else 0, count):
        at = draw + number
        begins = number < 0
        if not begins:
            depth = min(most, early_depth) if at < early else most
            report = reports[number]
            if most:
                _transition(address, w, d, k, q, g, numbers, inverse, root, dense, room, generator, depth, report)
            else:
                _fixed(address, w, d, k, q, g, numbers, inverse, root, dense, room, generator, steps, length, report)
            if at < warmup:
                if adapt_step:
                    _learn_step(numbers, report[ACCEPTANCE], target)
                if adapt_mass and ends.shape[0] and window_start <= at < ends[-1]:
                    _observe(q, numbers, mean, squares, dense, room[WORK])
                    for end in ends:
                        begins = begins or at + 1 == end
                    if begins:
                        _learn_mass(numbers, inverse, root, mean, squares, dense)
        if begins and adapt_step:
            step = _first_step(address, w, d, k, q, g, numbers, inverse, root, dense, room, generator, target)
            _restart(numbers, step)
        if number < 0:
            continue
        if at + 1 == warmup and adapt_step and numbers[UPDATES] > 0.0:
            numbers[STEP] = math.exp(numbers[LOG_AVERAGE])
        reports[number, STEP_SIZE] = numbers[STEP]
        for i in range(q.shape[0]):
            positions[number, i] = q[i]
