"""True means of an action in a world, where they may move with time, and outcomes and users drawn around them.

A user is a constant 1, then numbers uniform on (0, 1), and where there are segments one of them, drawn by its share.
The means of K actions are

    mean_k(a, u) = <θ_ka, u> + offset_k(a, segment)

θ and the offsets of an action are adjacent, w = d + G numbers of each: `parameters` is (1 + m, K w). Crossed features:
row a is e_a ⊗ (u, 1{segment}), in which all means are linear. Plain features: a row is the action's number, then u,
then the segment's number where there are segments.

Logged users are the rows of a table, drawn uniformly: after the action's number comes the row, and the means are a
table too, (1 + m, n K).

Means of a world that move with time: a clock, and what is added to the mean of an action.

    clock: time of the first round in seconds | seconds from round to round | rounds until an outcome is learned
    move:  kind | signal | action | amount | start | length | first of its values | number of values

    slope:  amount · min((t − start)/length, 1)₊            jump:  amount, from start on
    hill:   up by amount within length, then down again     season: amount · sin(2π (t − start)/length)
    path:   amount · values, linear between steps of length, and back again from the last one

Outcomes lie in [0, 1], and so do means: what moves beyond is cut.
"""

import math

from stagewise.engine.compile import Floats, Ints, kernel
from stagewise.engine.random import ACTIONS, OUTCOME, fill_normal, normal, normal_pair, uniform, uniform_pair

SLOPE, HILL, SEASON, JUMP, PATH = 0, 1, 2, 3, 4
START, PER_ROUND, LAG = 0, 1, 2  # in the clock
KIND, SIGNAL, ACTION, AMOUNT, BEGIN, LENGTH, FIRST_VALUE, VALUES = 0, 1, 2, 3, 4, 5, 6, 7  # in a move


@kernel
def compute_time(clock: Floats, round_: int) -> float:
    return clock[START] + round_ * clock[PER_ROUND]


@kernel
def compute_offset(move: Floats, values: Floats, time: float) -> float:
    """Return what a move adds to a mean at a time."""
    kind, past = int(move[KIND]), (time - move[BEGIN]) / move[LENGTH]
    if kind == SEASON:
        return move[AMOUNT] * math.sin(2.0 * math.pi * past)
    if past < 0.0 and kind != PATH:
        return 0.0
    if kind == JUMP:
        return move[AMOUNT]
    if kind == SLOPE:
        return move[AMOUNT] * min(past, 1.0)
    if kind == HILL:
        return move[AMOUNT] * max(1.0 - abs(past - 1.0), 0.0)
    last = int(move[VALUES]) - 1
    if last == 0:
        return move[AMOUNT] * values[int(move[FIRST_VALUE])]
    past = abs(past) - 2.0 * last * math.floor(abs(past) / (2.0 * last))
    past = min(past, 2.0 * last - past)
    step = min(int(past), last - 1)
    at, rest = int(move[FIRST_VALUE]) + step, past - step
    return move[AMOUNT] * (values[at] * (1.0 - rest) + values[at + 1] * rest)


@kernel
def move_means(moves: Floats, values: Floats, signs: Floats, time: float, means: Floats) -> None:
    """Add all moves to the signed means (1 + m, K or more) at a time."""
    for i in range(moves.shape[0]):
        signal, action = int(moves[i, SIGNAL]), int(moves[i, ACTION])
        means[signal, action] += signs[signal] * compute_offset(moves[i], values, time)
    for i in range(moves.shape[0]):
        signal, action = int(moves[i, SIGNAL]), int(moves[i, ACTION])
        means[signal, action] = signs[signal] * min(max(signs[signal] * means[signal, action], 0.0), 1.0)


GAUSSIAN, UNIFORM, RADEMACHER, BERNOULLI, CLIPPED, SHRUNK = 0, 1, 2, 3, 4, 5


@kernel
def fill_means(parameters: Floats, action: Floats, means: Floats) -> None:
    """Write <x, θ*> and every <x, μ*_j>."""
    for signal in range(means.size):
        total = 0.0
        for i in range(action.size):
            total += parameters[signal, i] * action[i]
        means[signal] = total


@kernel
def noisy(kind: int, mean: float, scale: float, draw: float, chance: float) -> float:
    """Return an outcome with this mean, from a normal draw and the uniform number behind it.

    GAUSSIAN: mean + s N(0, 1).  UNIFORM on mean ± √3 s.  RADEMACHER: mean ± s.  Each has standard deviation s and is
    s-sub-Gaussian.  BERNOULLI: 1 with probability mean.  CLIPPED: GAUSSIAN cut to [0, 1].  SHRUNK: (1 − s) mean + s B
    for a BERNOULLI B, which stays in [0, 1] and has the variance s² mean (1 − mean).
    """
    if kind == GAUSSIAN:
        return mean + scale * draw
    if kind == UNIFORM:
        return mean + scale * math.sqrt(3.0) * (2.0 * chance - 1.0)
    if kind == RADEMACHER:
        return mean + (scale if chance < 0.5 else -scale)
    if kind == BERNOULLI:
        return 1.0 if chance < mean else 0.0
    if kind == SHRUNK:
        return min(max((1.0 - scale) * mean + (scale if chance < mean else 0.0), 0.0), 1.0)
    return min(max(mean + scale * draw, 0.0), 1.0)


@kernel
def fill_outcome(kind: int, means: Floats, noise: Floats, seed: int, run: int, round_: int, outcome: Floats) -> None:
    """Write the outcome of this round: signal k uses position k of the round's outcome stream."""
    for pair in range((means.size + 1) // 2):
        if kind in (GAUSSIAN, CLIPPED):
            draws, chances = normal_pair(seed, run, round_, OUTCOME, pair), (0.0, 0.0)
        else:
            draws, chances = (0.0, 0.0), uniform_pair(seed, run, round_, OUTCOME, pair)
        first = 2 * pair
        outcome[first] = noisy(kind, means[first], noise[first], draws[0], chances[0])
        if first + 1 < means.size:
            outcome[first + 1] = noisy(kind, means[first + 1], noise[first + 1], draws[1], chances[1])


@kernel
def fill_signed_outcome(
    kind: int, means: Floats, noise: Floats, signs: Floats, seed: int, run: int, round_: int, outcome: Floats
) -> None:
    """Do the same for signed costs: the outcome is drawn in the world's own sign and then signed."""
    for signal in range(means.size):
        means[signal] *= signs[signal]
    fill_outcome(kind, means, noise, seed, run, round_, outcome)
    for signal in range(means.size):
        outcome[signal] *= signs[signal]


@kernel
def fill_directions(features: Floats, seed: int, run: int, round_: int) -> None:
    """Write a new action set: every row uniform on the unit sphere."""
    fill_normal(features.reshape(features.size), seed, run, round_, ACTIONS)
    for row in range(features.shape[0]):
        size = 0.0
        for i in range(features.shape[1]):
            size += features[row, i] * features[row, i]
        size = 1.0 / math.sqrt(size)
        for i in range(features.shape[1]):
            features[row, i] *= size


@kernel
def fill_round_safe_action(safe: Floats, before: int, length: float, seed: int, run: int, round_: int) -> None:
    """Write a round's own safe action: of this length, in a uniform direction, from stream position `before` on."""
    size = 0.0
    for i in range(safe.size):
        safe[i] = normal(seed, run, round_, ACTIONS, before + i)
        size += safe[i] * safe[i]
    size = length / math.sqrt(size)
    for i in range(safe.size):
        safe[i] *= size


@kernel
def fill_user(user: Floats, seed: int, run: int, round_: int) -> None:
    """Write the numbers of a round's user."""
    user[0] = 1.0
    for i in range(1, user.size):
        user[i] = uniform(seed, run, round_, ACTIONS, i)


@kernel
def draw_segment(ends: Floats, numbers: int, seed: int, run: int, round_: int) -> int:
    """Return the segment of a round's user; `ends` (G,) are the cumulative shares."""
    chance, segment = uniform(seed, run, round_, ACTIONS, numbers), 0
    while segment < ends.size - 1 and chance >= ends[segment]:
        segment += 1
    return segment


@kernel
def fill_crossed_features(features: Floats, ends: Floats, seed: int, run: int, round_: int) -> int:
    """Write e_a ⊗ (u, 1{segment}) for every action; return the segment."""
    count = features.shape[0]
    width = features.shape[1] // count
    numbers, segment = width - ends.size, 0
    features[:] = 0.0
    fill_user(features[0, :numbers], seed, run, round_)
    if ends.size > 0:
        segment = draw_segment(ends, numbers, seed, run, round_)
        features[0, numbers + segment] = 1.0
    for action in range(1, count):
        for i in range(width):
            features[action, action * width + i] = features[0, i]
    return segment


@kernel
def fill_plain_features(features: Floats, ends: Floats, seed: int, run: int, round_: int) -> int:
    """Write a, u, and the segment's number where there are segments, for every action a; return the segment."""
    numbers, segment = features.shape[1] - (2 if ends.size > 0 else 1), 0
    fill_user(features[0, 1 : 1 + numbers], seed, run, round_)
    features[0, 0] = 0.0
    if ends.size > 0:
        segment = draw_segment(ends, numbers, seed, run, round_)
        features[0, 1 + numbers] = float(segment)
    for action in range(1, features.shape[0]):
        features[action, 0] = float(action)
        for i in range(1, features.shape[1]):
            features[action, i] = features[0, i]
    return segment


@kernel
def fill_user_means(
    parameters: Floats, action: int, width: int, segments: int, user: Floats, segment: int, means: Floats
) -> None:
    """Write <θ_ka, u> + offset_k(a, segment) of one action; `width` is w, and `user` holds the numbers first."""
    numbers, first = width - segments, action * width
    for signal in range(means.size):
        total = 0.0
        for i in range(numbers):
            total += parameters[signal, first + i] * user[i]
        if segments > 0:
            total += parameters[signal, first + numbers + segment]
        means[signal] = total


@kernel
def draw_row(count: int, seed: int, run: int, round_: int) -> int:
    """Return the index of the logged user of a round."""
    return min(int(uniform(seed, run, round_, ACTIONS, 0) * count), count - 1)


@kernel
def fill_row_indices(rows: Ints, count: int, seed: int, run: int, first: int) -> None:
    """Write the indices of the logged users of the rounds from `first` on."""
    for i in range(rows.size):
        rows[i] = draw_row(count, seed, run, first + i)


@kernel
def fill_logged_features(features: Floats, users: Floats, seed: int, run: int, round_: int) -> int:
    """Write a and a row of the table (n w,) for every action a; return the index of the row."""
    width = features.shape[1] - 1
    row = draw_row(users.size // width, seed, run, round_)
    for action in range(features.shape[0]):
        features[action, 0] = float(action)
        for i in range(width):
            features[action, 1 + i] = users[row * width + i]
    return row


@kernel
def fill_logged_means(table: Floats, row: int, truths: Floats) -> None:
    """Write the means of every action for a logged user; the last column, the safe action's, is unchanged."""
    count = truths.shape[1] - 1
    for signal in range(truths.shape[0]):
        for action in range(count):
            truths[signal, action] = table[signal, row * count + action]
