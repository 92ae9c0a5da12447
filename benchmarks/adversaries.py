"""Means moved by somebody who knows all data and bounds, as fast as a slope allows; runs that ever miss are counted."""

import math

import numpy as np

from stagewise.engine.compile import Floats, kernel
from stagewise.engine.random import OUTCOME, uniform
from stagewise.models.epochs import (
    CELL_SIZE,
    EPOCHS,
    FIRST_BEGIN,
    FIRST_EPOCH,
    HEADER_SIZE,
    NEWEST,
    NOISE,
    PULLS,
    advance_cell,
    advance_header,
    compute_high_now,
    compute_upper_end,
    find_epoch,
    get_begin,
    learn_in_epochs,
)
from stagewise.problem.timing import STEPS, Drift

LOWEST, HIGHEST, TIMES_NOISE = 0.005, 0.05, 10.0  # means of numbers with a noise are ten times as large
NEVER = 1e9  # in place of log 1/δ': an end that never moves
PROVED, NO_AGE, NO_SHARES = range(3)  # how bounds are made; the last two are controls that must fail
NEAR_BOUND, SAW, FEW_EVENTS = range(3)  # when the mean rises


@kernel
def play(
    rounds: int, slope: float, how: int, strategy: int, settings: Floats, high: float, header: Floats, cell: Floats,
    missed: Floats, seed: int, run: int,
) -> None:  # fmt: skip
    """Play every round; the mean rises when the bound is near, or as a saw, or after few events.

    After few events: the mean rises while the 500 rounds before had fewer events than expected, else it stays; from the
    top it falls to the bottom.
    """
    spread = 2.0 * settings[NOISE]  # between the two values of a number with a noise
    lowest, highest = (TIMES_NOISE * LOWEST, TIMES_NOISE * HIGHEST) if spread > 0.0 else (LOWEST, HIGHEST)
    mean, direction, recent, bound = lowest, 1.0, 0.0, 1.0
    for t in range(rounds):
        now = float(t)
        if how == NO_SHARES:
            bound = min(1.0, bound + slope)
            if t % 16 == 0:
                for i in range(EPOCHS):
                    at = FIRST_EPOCH + 3 * i
                    if header[FIRST_BEGIN + i] > 0.0 and cell[at] > 0.0:
                        middle = get_begin(header, settings, header[FIRST_BEGIN + i]) + cell[at + 2] / cell[at]
                        end = compute_upper_end(settings, cell[at], cell[at + 1], high)
                        bound = min(bound, end + slope * (now - middle))
        else:
            bound = compute_high_now(settings, now, cell)
        if mean > bound:
            missed[0] = 1.0
        if strategy == NEAR_BOUND:
            direction = 1.0 if bound - mean < 0.5 * bound else -1.0
        elif mean >= highest:
            direction = -1.0
        elif mean <= lowest and strategy == SAW:
            direction = 1.0
        elif strategy == FEW_EVENTS and t % 500 == 0:
            if mean <= lowest or direction >= 0.0:
                direction = 1.0 if recent < 500.0 * mean else 0.0
            recent = 0.0
        value = 1.0 if uniform(seed, run, t, OUTCOME, strategy) < mean else 0.0
        value = (1.0 - spread) * mean + spread * value if spread > 0.0 else value
        recent += value
        newest = find_epoch(header, settings, now)
        if newest > int(header[NEWEST]):
            advance_cell(header, newest, cell)
            advance_header(header, settings, newest, now)
        cell[PULLS] += 1.0
        learn_in_epochs(header, settings, now, value, NEVER, high, cell)
        mean = min(highest, max(lowest, mean + direction * slope))


def count_misses(
    runs: int, how: int, strategy: int, slope: float, rounds: int, delta: float, step: float, seed: int, first: int = 0,
    noise: float = 0.0,
) -> int:  # fmt: skip
    """Return how many runs ever have a mean above its bound, from run `first`; a step of epochs has `step` rounds."""
    settings = np.array(Drift(slope, 1.0).to_settings(0, STEPS * step * slope, noise))
    if how == NO_AGE:
        settings[2] = 1e-300
    missed = np.zeros((runs, 1))
    for run in range(runs):
        memory = np.zeros(HEADER_SIZE), np.zeros(CELL_SIZE)
        play(rounds, slope, how, strategy, settings, -math.log(delta), *memory, missed[run], seed, first + run)
    return int(missed.sum())
