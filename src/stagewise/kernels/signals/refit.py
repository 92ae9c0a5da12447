"""How events become an ellipsoid, and how they are learned (see `events`)."""

import math

from stagewise.kernels.compile import Floats, kernel
from stagewise.kernels.layout import Part, blocks_of, table_capacity
from stagewise.kernels.signals.cholesky import invert_root, solve_root
from stagewise.kernels.signals.events import (
    CONSTANT,
    DUE_HITS,
    DUE_ROWS,
    FEW_ROWS,
    HITS,
    LOSS,
    ROWS,
    SQUARE,
    TOTAL,
    block_of,
    block_used,
    declared_of_events,
    forecast_of,
    highest_event,
    rate_of,
    table_of,
)

SHRINKAGE = 100.0  # events' worth of belief that a forecast is the rate
NEWTON, TURNS = 4, 8  # steps towards the forecast; turns in which set and curvatures narrow each other
ROUNDING = 1e-9  # of what is added up and nearly cancels
SHARE = 8.0  # a block is fitted again when its events have grown by this share


@kernel
def event_curvature(ratio: float) -> float:
    """Return κ with −log(m/q) ≥ 1 − m/q + κ(m/q − 1)²/2 for every m in (0, M], given M/q; at most 1.

    κ = 2 (r − 1 − log r)/(r − 1)²,    r = M/q ≥ 1        (the right side falls in r)
    """
    excess = max(ratio, 1.0) - 1.0
    if excess < 1e-4:
        return 1.0 - 2.0 * excess / 3.0
    return 2.0 * (excess - math.log1p(excess)) / (excess * excess)


@kernel
def add_event(action: Floats, curvature: float, pull: float, matrix: Floats, vector: Floats) -> None:
    """Add curvature xxᵀ, its lower half, and pull x."""
    for i in range(vector.size):
        vector[i] += pull * action[i]
        scaled = curvature * action[i]
        for j in range(i + 1):
            matrix[i, j] += scaled * action[j]


@kernel
def begin_sums(part: Part, settings: Floats, memory: Floats, which: int) -> None:
    """Write what does not depend on the table: λI and the folded events' curvature, their pull less Σ x."""
    table, block, bound = table_of(part, memory), block_of(part, memory, which), settings[part.settings]
    for i in range(part.size):
        table.vectors[0, i] = block.pull[i] - block.total[i]
        for j in range(i + 1):
            table.matrix[i, j] = block.folded[i, j]
        table.matrix[i, i] += 1.0 / (bound * bound)


@kernel
def refit_forecast(part: Part, settings: Floats, memory: Floats, which: int) -> None:
    """Take Newton steps towards the likeliest parameters, drawn towards the rate; forecasts may be anything."""
    g, table, block = part.size, table_of(part, memory), block_of(part, memory, which)
    rate, used, own = rate_of(block.sums, declared_of_events(part, settings).guess), int(table.used[0]), 0.0
    for event in range(used):
        own += 1.0 if table.rows[event, g + 1] == which else 0.0
    drawn = SHRINKAGE / max(own, 1.0)
    for _ in range(NEWTON):
        begin_sums(part, settings, memory, which)
        for event in range(used):
            if table.rows[event, g + 1] == which:
                action, seen = table.rows[event, :g], table.rows[event, g]
                point = forecast_of(block, rate, action)
                curvature, pull = seen / (point * point) + drawn / (rate * rate), 2.0 * seen / point + drawn / rate
                add_event(action, curvature, pull, table.matrix, table.vectors[0])
        invert_root(table.matrix)
        solve_root(table.matrix, table.vectors[0], table.vectors[1], block.forecast)


@kernel
def add_parabolas(part: Part, settings: Floats, memory: Floats, which: int, matrix: Floats, vector: Floats) -> float:
    """Add every event's parabola, at its forecast and below what is plausible now; return their constants.

    −y log m ≥ y (1 + κ/2 − log q) − (y/q)(1 + κ) m + (yκ/q²) m²/2
    """
    g, table, block, constant = part.size, table_of(part, memory), block_of(part, memory, which), 0.0
    rate = rate_of(block.sums, declared_of_events(part, settings).guess)
    for event in range(int(table.used[0])):
        if table.rows[event, g + 1] == which:
            action, seen = table.rows[event, :g], table.rows[event, g]
            point = forecast_of(block, rate, action)
            kappa = event_curvature(highest_event(part, settings, block, action) / point)
            constant += seen * (1.0 + 0.5 * kappa - math.log(point))
            add_event(action, seen * kappa / (point * point), seen * (1.0 + kappa) / point, matrix, vector)
    return constant


@kernel
def refit(part: Part, settings: Floats, memory: Floats, which: int) -> None:
    """Make a block's forecast and its ellipsoid anew.

        ½‖μ − fit‖²_V ≤ Σ (p − y log p) + log 1/δ + ½ − C + ½ cᵀV⁻¹c,    V = I/S² + Σ (yκ/q²) xxᵀ

    with c the events' pulls less Σ x, and C their constants. Every turn's set holds, and bounds the means of the next.
    """
    g, table, block = part.size, table_of(part, memory), block_of(part, memory, which)
    sums, confidence = block.sums, declared_of_events(part, settings).confidence
    refit_forecast(part, settings, memory, which)
    for _ in range(TURNS):
        begin_sums(part, settings, memory, which)
        constant = sums[CONSTANT] + add_parabolas(part, settings, memory, which, table.matrix, table.vectors[0])
        invert_root(table.matrix)
        form = solve_root(table.matrix, table.vectors[0], table.vectors[1], block.fit)
        hidden = ROUNDING * (abs(sums[LOSS]) + abs(constant) + form)
        sums[SQUARE] = 2.0 * (sums[LOSS] + confidence + 0.5 - constant) + form + hidden
        for i in range(g):
            for j in range(i + 1):
                block.root[i, j] = table.matrix[i, j]
    sums[DUE_HITS] = sums[HITS] + 1.0 + math.floor(sums[HITS] / SHARE)
    sums[DUE_ROWS] = 2.0 * max(sums[ROWS], FEW_ROWS)


@kernel
def fold(part: Part, settings: Floats, memory: Floats) -> None:
    """Turn the table's events into their parabolas for good, and empty it."""
    table = table_of(part, memory)
    for which in range(blocks_of(part)):
        refit(part, settings, memory, which)
        block = block_of(part, memory, which)
        block.sums[CONSTANT] += add_parabolas(part, settings, memory, which, block.folded, block.pull)
    table.used[0] = 0.0


@kernel
def note_event(part: Part, action: Floats, seen: float, memory: Floats, which: int) -> None:
    """Count a row of a block, and keep it if it has an event, for which the table must have room."""
    g, table, block = part.size, table_of(part, memory), block_of(part, memory, which)
    own, sums, total = action[which * g : (which + 1) * g], block.sums, block.total
    sums[ROWS] += 1.0
    for i in range(g):
        total[i] += own[i]
    if seen > 0.0:
        sums[HITS] += 1.0
        sums[TOTAL] += seen
        event = table.rows[int(table.used[0])]
        for i in range(g):
            event[i] = own[i]
        event[g], event[g + 1] = seen, float(which)
        table.used[0] += 1.0


@kernel
def note_rows(part: Part, actions: Floats, seen: Floats, memory: Floats) -> None:
    """Count the rows (n, d) of a log, without a forecast."""
    for row in range(seen.size):
        which = block_used(part, actions[row])
        if which >= 0:
            note_event(part, actions[row], seen[row], memory, which)


@kernel
def learn_events(part: Part, action: Floats, values: Floats, settings: Floats, memory: Floats) -> None:
    """Take in what was seen (1,) when the action x was played."""
    g, which = part.size, block_used(part, action)
    if which < 0:
        return
    block, table, seen = block_of(part, memory, which), table_of(part, memory), values[0]
    rate = rate_of(block.sums, declared_of_events(part, settings).guess)
    forecast = forecast_of(block, rate, action[which * g : (which + 1) * g])
    block.sums[LOSS] += forecast - seen * math.log(forecast)
    note_event(part, action, seen, memory, which)
    if int(table.used[0]) == table_capacity(part):
        fold(part, settings, memory)
    elif block.sums[HITS] >= block.sums[DUE_HITS] or block.sums[ROWS] >= block.sums[DUE_ROWS]:
        refit(part, settings, memory, which)
