"""Evidence against what a limit promises: bets on upper ends of users, and on halves of a cell.

A table has for each cell (0: all actions, then every action) and each subgroup of the users the rate q at which
outcomes came there until now. Where q is above a user's own end u, the wealth of the subgroup grows by the factor

    1 + (y − u)(q − u)/(u (1 − u)),        for y of 0 and 1 the likelihood ratio of q to u

whose mean is at most 1 if the mean of y is at most u. So wealth is a non-negative supermartingale that starts at 1, and
so is a weighted mean of all wealths (docs/theory/mismatch.md). Where q is not above u, nothing is bet.

Subgroups: all users; the four quarters of each column, cut at its running mean and one mean absolute deviation from it;
the quadrants of every pair of the first numbers. Columns are the numbers, the click score, and the upper end itself.

Halves of a cell's users by a column, and the evidence that the means of the halves differ.

A table of a limit has for each cell (an action, or an action in a segment) and each column (a number of the context,
the click score, the risk score) the number and the sum of outcomes of the lower and of the upper half, and the cut
between them: the running mean of the column in the cell, before the row. If both halves have one mean, then for fixed
tilts c in (0, 1) and k > 0

    Π_g exp(log(1 + k) S¹_g + log(1 − c) S⁰_g) min_p (1 + kp)^−n¹_g (1 − cp)^−n⁰_g

over the cells g is at most a non-negative supermartingale that starts at 1, and so is a mean over tilts
(docs/theory/mismatch.md).
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


LOW_COUNT, LOW_SUM, HIGH_COUNT, HIGH_SUM, CUT, HALF_FIELDS = 0, 1, 2, 3, 4, 5  # of a cell and a column
FALLS = (0.02, 0.04, 0.08, 0.15, 0.27, 0.45, 0.65, 0.85)  # c
RATIOS = (8.0, 4.0, 2.0, 1.4, 1.0, 0.7, 0.5, 0.25, 0.125)  # k/c: best at the lower half's size over the upper one's
WEIGHTS = (0.5, 0.5, 1.0, 1.5, 3.0, 1.5, 1.0, 0.5, 0.5)
LOG_WEIGHTS = tuple(math.log(weight / (len(FALLS) * sum(WEIGHTS))) for weight in WEIGHTS)
MOST_EVIDENCE, LEAST_EVIDENCE = 600.0, 1e-300  # of a cell and a tilt, so that exponentials and logarithms are finite
HELD_BACK = 0.1  # of the evidence of each cell, in products over cells


@kernel
def count_in_half(table: Floats, cell: int, column: int, position: float, value: float) -> None:
    """Count an outcome in the half of its user by a position in a column, then move the cut."""
    if position > table[cell, column, CUT]:
        table[cell, column, HIGH_COUNT] += 1.0
        table[cell, column, HIGH_SUM] += value
    else:
        table[cell, column, LOW_COUNT] += 1.0
        table[cell, column, LOW_SUM] += value
    count = table[cell, column, LOW_COUNT] + table[cell, column, HIGH_COUNT]
    table[cell, column, CUT] += (position - table[cell, column, CUT]) / min(count, MEMORY)


@kernel
def count_row(table: Floats, risk: Floats, cell: int, value: float, row: Floats, slopes: Floats) -> None:
    """Count an outcome of a row (action, 1, numbers, ...) by each number, by its click score and by its risk score.

    The click score is Σ slope × number with the slopes (K, d) of the action, if they are known. The risk score is
    Σ w × number, w = Σ (outcome − mean of its cell) × numbers / n over earlier rows: `risk` (d + 1) is n w, and n.
    """
    numbers, action, click, score = table.shape[1] - 2, int(row[0]), 0.0, 0.0
    entry, count = table[cell, numbers + 1], max(risk[numbers], 1.0)
    seen = entry[LOW_COUNT] + entry[HIGH_COUNT]
    excess = value - (entry[LOW_SUM] + entry[HIGH_SUM]) / seen if seen > 0.0 else 0.0
    for i in range(numbers):
        position = row[2 + i]
        score += risk[i] / count * position
        risk[i] += excess * position
        count_in_half(table, cell, i, position, value)
    risk[numbers] += 1.0
    count_in_half(table, cell, numbers + 1, score, value)
    if action < slopes.shape[0]:
        for i in range(numbers):
            click += slopes[action, i] * row[2 + i]
        count_in_half(table, cell, numbers, click, value)


@kernel
def count_rows(
    table: Floats, risk: Floats, cells: Ints, values: Floats, rows: Floats, indices: Ints, slopes: Floats, since: int,
    older: Floats, older_since: int, none: Floats,
) -> None:  # fmt: skip
    """Count rows (n, D) in order; `slopes` score decisions from index `since` on, `older` those before."""
    for i in range(values.size):
        if cells[i] >= 0:
            if indices[i] >= since:
                count_row(table, risk, cells[i], values[i], rows[i], slopes)
            elif indices[i] >= older_since:
                count_row(table, risk, cells[i], values[i], rows[i], older)
            else:
                count_row(table, risk, cells[i], values[i], rows[i], none)


@kernel
def add_logs(one: float, other: float) -> float:
    """Return log(e^one + e^other)."""
    high = max(one, other)
    if high == -math.inf:
        return high
    return high + math.log(math.exp(one - high) + math.exp(other - high))


@kernel
def compute_tilted(
    upper: float, upper_sum: float, lower: float, lower_sum: float, k: float, c: float, rise: float, fall: float
) -> float:
    """Return log of (1 + k)^S¹ (1 − c)^S⁰ min_p (1 + kp)^−n¹ (1 − cp)^−n⁰, p in [0, 1].

    The logarithm is convex in p, with its minimum at p = (n¹k − n⁰c)/(kc(n¹ + n⁰)); `rise` is log(1 + k), `fall`
    log(1 − c).
    """
    evidence = upper_sum * rise + lower_sum * fall
    p = min((upper * k - lower * c) / (k * c * (upper + lower)), 1.0)
    if p > 0.0:
        evidence -= upper * math.log1p(k * p) + lower * math.log1p(-c * p)
    return evidence


@kernel
def compute_evidence(table: Floats, cells: int, column: int, rises: int, single: Floats) -> float:
    """Return the log evidence that a cost rises (or falls) with a column in all cells alike; `single`: in each."""
    together, upper, lower = -math.inf, HIGH_COUNT, LOW_COUNT
    if rises == 0:
        upper, lower = LOW_COUNT, HIGH_COUNT
    for cell in range(cells):
        single[cell] = 0.0
    for c in FALLS:
        fall = math.log1p(-c)
        for r in range(len(RATIOS)):
            k, product, weight = c * RATIOS[r], 0.0, math.exp(LOG_WEIGHTS[r])
            rise = math.log1p(k)
            for cell in range(cells):
                entry, evidence = table[cell, column], 0.0
                if entry[upper] + entry[lower] > 0.0:
                    evidence = compute_tilted(
                        entry[upper], entry[upper + 1], entry[lower], entry[lower + 1], k, c, rise, fall
                    )
                wealth = math.exp(min(evidence, MOST_EVIDENCE))
                single[cell] += weight * wealth
                product += math.log(HELD_BACK + (1.0 - HELD_BACK) * wealth)
            together = add_logs(together, LOG_WEIGHTS[r] + product)
    for cell in range(cells):
        single[cell] = math.log(max(single[cell], LEAST_EVIDENCE))
    return together
