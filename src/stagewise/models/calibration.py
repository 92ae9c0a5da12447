"""Bets that outcomes of some users exceed the upper ends that a model gave for each of them.

A table has for each cell (0: all actions, then every action) and each subgroup of the users the rate q at which
outcomes came there until now. Where q is above a user's own end u, the wealth of the subgroup grows by the factor

    1 + (y − u)(q − u)/(u (1 − u)),        for y of 0 and 1 the likelihood ratio of q to u

whose mean is at most 1 if the mean of y is at most u. So wealth is a non-negative supermartingale that starts at 1, and
so is a weighted mean of all wealths (docs/theory/mismatch.md). Where q is not above u, nothing is bet.

Subgroups: all users; the four quarters of each column, cut at its running mean and one mean absolute deviation from it;
the quadrants of every pair of the first numbers. Columns are the numbers, the click score, and the upper end itself.
"""

import math

from stagewise.engine.compile import Floats, Ints, kernel

COUNT, SUM, LOG_WEALTH, BETS, BET_SUM, BET_ENDS, FIELDS = 0, 1, 2, 3, 4, 5, 6  # of a cell and a subgroup
SEEN, CENTRE, SPREAD, COLUMN_FIELDS = 0, 1, 2, 3  # of a column
SCORES = 2  # columns after the numbers: the click score and the upper end
MOST_PAIRED = 12  # numbers of which all pairs are looked at
LEAST = 1e-9  # the smallest upper end that is bet against
MEMORY = 1_024.0  # rows that a cut remembers


@kernel
def count_paired(numbers: int) -> int:
    """Return how many numbers are looked at in pairs."""
    return min(numbers, MOST_PAIRED)


@kernel
def count_subgroups(numbers: int) -> int:
    paired = count_paired(numbers)
    return 1 + 4 * (numbers + SCORES) + 2 * paired * (paired - 1)


@kernel
def add_to_subgroup(entry: Floats, value: float, end: float, guess: float) -> None:
    """Bet on an outcome, then count it; `guess` is the rate before the first event."""
    rate = (entry[SUM] + 1.0) / (entry[COUNT] + 1.0 / guess)
    if end < rate < 1.0:
        entry[LOG_WEALTH] += math.log1p((value - end) * (rate - end) / (end * (1.0 - end)))
        entry[BETS] += 1.0
        entry[BET_SUM] += value
        entry[BET_ENDS] += end
    entry[COUNT] += 1.0
    entry[SUM] += value


@kernel
def find_quarter(column: Floats, position: float) -> int:
    """Return the subgroup of a column in which a position is, and move its cuts."""
    distance, quarter = position - column[CENTRE], 2
    if distance <= 0.0:
        quarter = 0 if distance < -column[SPREAD] else 1
    elif distance > column[SPREAD]:
        quarter = 3
    column[SEEN] += 1.0
    share = 1.0 / min(column[SEEN], MEMORY)
    column[SPREAD] += (abs(distance) - column[SPREAD]) * share
    column[CENTRE] += distance * share
    return quarter


@kernel
def add_to_cells(table: Floats, cell: int, subgroup: int, value: float, end: float, guess: float) -> None:
    """Count an outcome in a subgroup of all actions, and of its action if that has a cell."""
    add_to_subgroup(table[0, subgroup], value, end, guess)
    if 0 < cell < table.shape[0]:
        add_to_subgroup(table[cell, subgroup], value, end, guess)


@kernel
def count_in_subgroups(
    table: Floats, columns: Floats, value: float, end: float, guess: float, row: Floats, slopes: Floats
) -> None:
    """Count an outcome of a row (action, 1, numbers, ...) and its upper end in all subgroups of its user.

    The click score is Σ slope × number with the slopes (K, d) of the action, if they are known.
    """
    numbers, action = columns.shape[0] - SCORES, int(row[0])
    paired, click, cell = count_paired(numbers), 0.0, action + 1
    subgroup = 1 + 4 * (numbers + SCORES)
    for i in range(1, paired):
        upper = row[2 + i] > columns[i, CENTRE]
        for j in range(i):
            quadrant = (2 if upper else 0) + (1 if row[2 + j] > columns[j, CENTRE] else 0)
            add_to_cells(table, cell, subgroup + quadrant, value, end, guess)
            subgroup += 4
    add_to_cells(table, cell, 0, value, end, guess)
    for i in range(numbers):
        add_to_cells(table, cell, 1 + 4 * i + find_quarter(columns[i], row[2 + i]), value, end, guess)
    if action < slopes.shape[0]:
        for i in range(numbers):
            click += slopes[action, i] * row[2 + i]
        add_to_cells(table, cell, 1 + 4 * numbers + find_quarter(columns[numbers], click), value, end, guess)
    if end < 1.0:
        add_to_cells(table, cell, 5 + 4 * numbers + find_quarter(columns[numbers + 1], end), value, end, guess)


@kernel
def count_rows_in_subgroups(
    table: Floats, columns: Floats, values: Floats, ends: Floats, guess: float, rows: Floats, slopes: Floats
) -> None:
    """Count rows (n, D) in order; nothing is bet on those whose end is 1."""
    for i in range(values.size):
        end = max(ends[i], LEAST)
        count_in_subgroups(table, columns, values[i], end, guess, rows[i], slopes)


@kernel
def compute_log_wealth(table: Floats, found: Ints) -> float:
    """Return the logarithm of the weighted mean wealth; the cell and the subgroup that add most are written to `found`.

    Half is for all actions, half for single ones, the i-th of which has 1/i(i + 1) of it; subgroups share alike.
    """
    subgroups, best, total = table.shape[1], -math.inf, 0.0
    for again in range(2):
        for cell in range(table.shape[0]):
            share = -math.log(2.0 * subgroups) - (math.log(cell * (cell + 1.0)) if cell > 0 else 0.0)
            for subgroup in range(subgroups):
                wealth = table[cell, subgroup, LOG_WEALTH] + share
                if again == 1:
                    total += math.exp(wealth - best)
                elif wealth > best:
                    best, found[0], found[1] = wealth, cell, subgroup
    return best + math.log(total)
