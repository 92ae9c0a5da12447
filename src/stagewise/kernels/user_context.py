"""Users drawn anew in every round, and the means of every action for them.

A user is a constant 1, then numbers uniform on (0, 1), and where there are segments one of them, drawn by its share.
The means of K actions are

    mean_k(a, u) = <θ_ka, u> + offset_k(a, segment)

θ and the offsets of an action are adjacent, w = d + G numbers of each: `parameters` is (1 + m, K w). Crossed features:
row a is e_a ⊗ (u, 1{segment}), in which all means are linear. Plain features: a row is the action's number, then u,
then the segment's number where there are segments.

Logged users are the rows of a table, drawn uniformly: after the action's number comes the row, and the means are a
table too, (1 + m, n K).
"""

from stagewise.kernels.compile import Floats, Ints, kernel
from stagewise.kernels.random_streams import ACTIONS, uniform


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
