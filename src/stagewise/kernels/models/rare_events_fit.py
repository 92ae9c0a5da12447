"""Learn rare events, and fit their ellipsoid (see `rare_events`)."""

import math

from stagewise.kernels.compile import Floats, kernel
from stagewise.kernels.layout import ModelBlock, count_feature_blocks, get_table_capacity
from stagewise.kernels.models.cholesky import invert_root, solve_root
from stagewise.kernels.models.rare_events import (
    CONSTANT,
    DUE_HITS,
    DUE_ROWS,
    FIRST_REFIT_ROWS,
    HITS,
    LOSS,
    ROWS,
    SQUARE,
    TOTAL,
    compute_forecast,
    compute_highest_mean,
    compute_rate,
    find_feature_block,
    get_event_table,
    get_feature_block,
    get_rare_events_assumptions,
)

SHRINKAGE = 100.0  # prior events that pull the forecast towards the rate
NEWTON, REFIT_ITERATIONS = 4, 8  # Newton steps of the forecast; iterations of set and curvatures
ROUNDING = 1e-9  # of sums that nearly cancel
SHARE = 8.0  # a block is refitted when its events have grown by this fraction


@kernel
def event_curvature(ratio: float) -> float:
    """Return κ with −log(m/q) ≥ 1 − m/q + κ(m/q − 1)²/2 for every m in (0, M], given M/q; at most 1.

    κ = 2 (r − 1 − log r)/(r − 1)²,    r = M/q ≥ 1        (the right side decreases in r)
    """
    excess = max(ratio, 1.0) - 1.0
    if excess < 1e-4:
        return 1.0 - 2.0 * excess / 3.0
    return 2.0 * (excess - math.log1p(excess)) / (excess * excess)


@kernel
def add_event(action: Floats, curvature: float, pull: float, matrix: Floats, vector: Floats) -> None:
    """Add curvature xxᵀ, its lower triangle, and pull x."""
    for i in range(vector.size):
        vector[i] += pull * action[i]
        scaled = curvature * action[i]
        for j in range(i + 1):
            matrix[i, j] += scaled * action[j]


@kernel
def start_sums(block: ModelBlock, settings: Floats, memory: Floats, index: int) -> None:
    """Write the terms that do not depend on the table: λI and the folded events' curvature, their pull less Σ x."""
    table, feature_block, bound = (
        get_event_table(block, memory),
        get_feature_block(block, memory, index),
        settings[block.settings],
    )
    for i in range(block.size):
        table.vectors[0, i] = feature_block.pull[i] - feature_block.total[i]
        for j in range(i + 1):
            table.matrix[i, j] = feature_block.folded[i, j]
        table.matrix[i, i] += 1.0 / (bound * bound)


@kernel
def refit_forecast(block: ModelBlock, settings: Floats, memory: Floats, index: int) -> None:
    """Take Newton steps towards the penalised maximum likelihood; any forecast is valid."""
    g, table, feature_block = block.size, get_event_table(block, memory), get_feature_block(block, memory, index)
    rate, used, events = (
        compute_rate(feature_block.sums, get_rare_events_assumptions(block, settings).guess),
        int(table.used[0]),
        0.0,
    )
    for event in range(used):
        events += 1.0 if table.rows[event, g + 1] == index else 0.0
    prior_weight = SHRINKAGE / max(events, 1.0)
    for _ in range(NEWTON):
        start_sums(block, settings, memory, index)
        for event in range(used):
            if table.rows[event, g + 1] == index:
                action, value = table.rows[event, :g], table.rows[event, g]
                point = compute_forecast(feature_block, rate, action)
                curvature, pull = (
                    value / (point * point) + prior_weight / (rate * rate),
                    2.0 * value / point + prior_weight / rate,
                )
                add_event(action, curvature, pull, table.matrix, table.vectors[0])
        invert_root(table.matrix)
        solve_root(table.matrix, table.vectors[0], table.vectors[1], feature_block.forecast)


@kernel
def add_parabolas(
    block: ModelBlock, settings: Floats, memory: Floats, index: int, matrix: Floats, vector: Floats
) -> float:
    """Add every event's parabola, at its forecast and below the largest plausible mean; return their constants.

    −y log m ≥ y (1 + κ/2 − log q) − (y/q)(1 + κ) m + (yκ/q²) m²/2
    """
    g, table, feature_block, constant = (
        block.size,
        get_event_table(block, memory),
        get_feature_block(block, memory, index),
        0.0,
    )
    rate = compute_rate(feature_block.sums, get_rare_events_assumptions(block, settings).guess)
    for event in range(int(table.used[0])):
        if table.rows[event, g + 1] == index:
            action, value = table.rows[event, :g], table.rows[event, g]
            point = compute_forecast(feature_block, rate, action)
            kappa = event_curvature(compute_highest_mean(block, settings, feature_block, action) / point)
            constant += value * (1.0 + 0.5 * kappa - math.log(point))
            add_event(action, value * kappa / (point * point), value * (1.0 + kappa) / point, matrix, vector)
    return constant


@kernel
def refit(block: ModelBlock, settings: Floats, memory: Floats, index: int) -> None:
    """Recompute a block's forecast and its ellipsoid.

        ½‖μ − fit‖²_V ≤ Σ (p − y log p) + log 1/δ + ½ − C + ½ cᵀV⁻¹c,    V = I/S² + Σ (yκ/q²) xxᵀ

    with c the events' pulls less Σ x, and C their constants. Every iteration's set is valid and bounds the next one's
    means.
    """
    g, table, feature_block = block.size, get_event_table(block, memory), get_feature_block(block, memory, index)
    sums, confidence = feature_block.sums, get_rare_events_assumptions(block, settings).confidence
    refit_forecast(block, settings, memory, index)
    for _ in range(REFIT_ITERATIONS):
        start_sums(block, settings, memory, index)
        constant = sums[CONSTANT] + add_parabolas(block, settings, memory, index, table.matrix, table.vectors[0])
        invert_root(table.matrix)
        form = solve_root(table.matrix, table.vectors[0], table.vectors[1], feature_block.fit)
        rounding = ROUNDING * (abs(sums[LOSS]) + abs(constant) + form)
        sums[SQUARE] = 2.0 * (sums[LOSS] + confidence + 0.5 - constant) + form + rounding
        for i in range(g):
            for j in range(i + 1):
                feature_block.root[i, j] = table.matrix[i, j]
    sums[DUE_HITS] = sums[HITS] + 1.0 + math.floor(sums[HITS] / SHARE)
    sums[DUE_ROWS] = 2.0 * max(sums[ROWS], FIRST_REFIT_ROWS)


@kernel
def fold_events(block: ModelBlock, settings: Floats, memory: Floats) -> None:
    """Fold the table's events into their parabolas permanently, and empty the table."""
    table = get_event_table(block, memory)
    for index in range(count_feature_blocks(block)):
        refit(block, settings, memory, index)
        feature_block = get_feature_block(block, memory, index)
        feature_block.sums[CONSTANT] += add_parabolas(
            block, settings, memory, index, feature_block.folded, feature_block.pull
        )
    table.used[0] = 0.0


@kernel
def record_event(block: ModelBlock, action: Floats, value: float, memory: Floats, index: int) -> None:
    """Count a row of a block, and store it if it has an event; the table must have room."""
    g, table, feature_block = block.size, get_event_table(block, memory), get_feature_block(block, memory, index)
    used_features, sums, total = action[index * g : (index + 1) * g], feature_block.sums, feature_block.total
    sums[ROWS] += 1.0
    for i in range(g):
        total[i] += used_features[i]
    if value > 0.0:
        sums[HITS] += 1.0
        sums[TOTAL] += value
        event = table.rows[int(table.used[0])]
        for i in range(g):
            event[i] = used_features[i]
        event[g], event[g + 1] = value, float(index)
        table.used[0] += 1.0


@kernel
def record_rows(block: ModelBlock, actions: Floats, values: Floats, memory: Floats) -> None:
    """Count the rows (n, d) of a log, without forecasts."""
    for row in range(values.size):
        index = find_feature_block(block, actions[row])
        if index >= 0:
            record_event(block, actions[row], values[row], memory, index)


@kernel
def learn_rare_events(block: ModelBlock, action: Floats, values: Floats, settings: Floats, memory: Floats) -> None:
    """Learn the outcome (1,) of the action x."""
    g, index = block.size, find_feature_block(block, action)
    if index < 0:
        return
    feature_block, table, value = get_feature_block(block, memory, index), get_event_table(block, memory), values[0]
    rate = compute_rate(feature_block.sums, get_rare_events_assumptions(block, settings).guess)
    forecast = compute_forecast(feature_block, rate, action[index * g : (index + 1) * g])
    feature_block.sums[LOSS] += forecast - value * math.log(forecast)
    record_event(block, action, value, memory, index)
    if int(table.used[0]) == get_table_capacity(block):
        fold_events(block, settings, memory)
    elif (
        feature_block.sums[HITS] >= feature_block.sums[DUE_HITS]
        or feature_block.sums[ROWS] >= feature_block.sums[DUE_ROWS]
    ):
        refit(block, settings, memory, index)
