"""Means of a world that move with time: a clock, and what is added to the mean of an action.

    clock: time of the first round in seconds | seconds from round to round | rounds until an outcome is learned
    move:  kind | signal | action | amount | start | length | first of its values | number of values

    slope:  amount · min((t − start)/length, 1)₊            jump:  amount, from start on
    hill:   up by amount within length, then down again     season: amount · sin(2π (t − start)/length)
    path:   amount · values, linear between steps of length, and back again from the last one

Outcomes lie in [0, 1], and so do means: what moves beyond is cut.
"""

import math

from stagewise.engine.compile import Floats, kernel

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
