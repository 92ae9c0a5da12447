"""Halves of a cell's users by a column, and the evidence that the means of the halves differ.

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

LOW_COUNT, LOW_SUM, HIGH_COUNT, HIGH_SUM, CUT, FIELDS = 0, 1, 2, 3, 4, 5  # of a cell and a column
MEMORY = 1_024.0  # rows that a cut remembers
FALLS = (0.02, 0.04, 0.08, 0.15, 0.27, 0.45, 0.65, 0.85)  # c
RATIOS = (8.0, 4.0, 2.0, 1.4, 1.0, 0.7, 0.5, 0.25, 0.125)  # k/c: best at the lower half's size over the upper one's
WEIGHTS = (0.5, 0.5, 1.0, 1.5, 3.0, 1.5, 1.0, 0.5, 0.5)
LOG_WEIGHTS = tuple(math.log(weight / (len(FALLS) * sum(WEIGHTS))) for weight in WEIGHTS)
MOST_EVIDENCE, LEAST = 600.0, 1e-300  # of a cell and a tilt, so that exponentials and logarithms are finite
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
        single[cell] = math.log(max(single[cell], LEAST))
    return together
