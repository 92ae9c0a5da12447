"""Rates by action and segment whose means drift: they move as declared, or jump.

memory:   as in `models.segment_rates`; cells and what precedes the slots are those of `models.epochs`
"""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from stagewise.engine.compile import Floats, as_python, kernel
from stagewise.models.diagnostics import AgedBound, FoundChange, Marks, MeanChange, Sums, UpperForecast
from stagewise.models.epochs import (
    AT,
    BUDGET,
    CELL_SIZE,
    CHANGED,
    EARLIEST,
    EPOCHS,
    FIRST_BEGIN,
    FIRST_EPOCH,
    HEADER_SIZE,
    NEWEST,
    RESTARTS,
    SETTINGS_SIZE,
    SLOPE,
    STEP,
    TIME_COLUMN,
    WINDOW,
    YOUNG,
    advance_cell,
    advance_header,
    compute_high_now,
    compute_jump_spent,
    compute_log_share,
    compute_low_now,
    compute_upper_end,
    find_epoch,
    find_longest,
    forget_before,
    forget_jumping,
    get_begin,
    get_forgotten,
    learn_in_epochs,
    learn_jumping,
    update_ends,
    update_jumping,
)
from stagewise.models.rate_changes import find_pooled_shifts, restart_actions
from stagewise.models.segment_rates import (
    CELL_LEVELS,
    LEAST,
    NUMBERS,
    OFFSET,
    PULLS,
    SEGMENT_RATES,
    SLOT_HEADER_SIZE,
    SLOT_SIZE,
    SLOTS,
    CellReading,
    RatesBlock,
    SegmentRatesDiagnostics,
    build_rates,
    count_runs,
    count_slots,
    get_cell,
    get_slot_offset,
)


class EpochView(NamedTuple):
    """What the cells of a block share: views of the memory and of the settings."""

    header: Floats
    settings: Floats


@kernel
def get_epochs(block: RatesBlock, settings: Floats, memory: Floats) -> EpochView:
    at = block.settings + NUMBERS + 2 * block.size
    return EpochView(memory[block.memory + 1 : block.memory + 1 + HEADER_SIZE], settings[at : at + SETTINGS_SIZE])


@kernel
def get_time(view: EpochView, row: Floats) -> float:
    """Return the time of a row's decision."""
    return row[int(view.settings[TIME_COLUMN])]


@kernel
def begin_epochs(block: RatesBlock, view: EpochView, time: float, memory: Floats) -> None:
    """Begin the epochs up to a time, in every cell."""
    newest = find_epoch(view.header, view.settings, time)
    if newest <= int(view.header[NEWEST]):
        return
    for slot in range(count_slots(block, memory)):
        for action in range(block.size):
            at = get_cell(block, get_slot_offset(block, slot), action)
            if memory[at] > 0.0:
                advance_cell(view.header, newest, memory[at : at + CELL_SIZE])
    advance_header(view.header, view.settings, newest, time)


@kernel
def read_drifting(block: RatesBlock, row: Floats, settings: Floats, memory: Floats, cell: int) -> CellReading:
    """Return what is known of a mean at the time of a row; its estimate is that of the longest epoch that is kept."""
    view, kept = get_epochs(block, settings, memory), memory[cell : cell + CELL_SIZE]
    time, longest = get_time(view, row), find_longest(kept)
    least, most = compute_low_now(view.settings, time, kept), compute_high_now(view.settings, time, kept)
    if longest < 0:
        return CellReading(least, most, 0.0, 0.0)
    return CellReading(least, most, kept[longest], kept[longest + 1] / kept[longest])


@kernel
def learn_moving(
    block: RatesBlock, row: Floats, value: float, low: float, high: float, settings: Floats, memory: Floats, cell: int
) -> None:
    """Add an outcome to the epochs of a cell; `low` and `high` are log 1/δ' of either end."""
    view = get_epochs(block, settings, memory)
    begin_epochs(block, view, get_time(view, row), memory)
    kept = memory[cell : cell + CELL_SIZE]
    learn_in_epochs(view.header, view.settings, get_time(view, row), value, low, high, kept)


@kernel
def learn_jump(
    block: RatesBlock, row: Floats, value: float, low: float, high: float, settings: Floats, memory: Floats, cell: int
) -> None:
    """Add an outcome to a cell whose mean is constant between jumps."""
    time = get_time(get_epochs(block, settings, memory), row)
    learn_jumping(time, value, low, high, memory[cell : cell + CELL_SIZE])


FORGET_BEFORE, UPDATE_ENDS = as_python(forget_before), as_python(update_ends)
FORGET_JUMPING, UPDATE_JUMPING = as_python(forget_jumping), as_python(update_jumping)
BEGIN_OF, UPPER_END = as_python(get_begin), as_python(compute_upper_end)
COMPUTE_HIGH_NOW, LOG_SHARE = as_python(compute_high_now), as_python(compute_log_share)
JUMP_SPENT = as_python(compute_jump_spent)
FEW_OUTCOMES = 20  # before their rate is told
FORGOTTEN, FIND_LONGEST, EPOCHS_OF = as_python(get_forgotten), as_python(find_longest), as_python(get_epochs)
COUNT_RUNS = as_python(count_runs)


def order_cells(block: RatesBlock, memory: Floats) -> Floats:
    """Return a copy of all cells (S, K, length) that drift, segments in order of arrival; without segments S = 1."""
    slots, length, first = SLOTS(block, memory), SLOT_SIZE(block), OFFSET(block, 0)
    table = memory[first : first + slots * length].reshape(slots, length)
    if block.column >= 0:
        used = np.flatnonzero(table[:, 0])
        table = table[used[np.argsort(table[used, 1])]]
    return np.asarray(table[:, SLOT_HEADER_SIZE:].reshape(-1, block.size, CELL_SIZE))


def compute_recent_mean(cells: Floats) -> float:
    """Return the mean of cells (n, length) over the longest epochs that are kept; NaN: there is no outcome."""
    pairs = [cell[at : at + 2] for cell in cells if (at := FIND_LONGEST(cell)) >= 0]
    pulls, total = np.sum(pairs, axis=0) if pairs else (0.0, 0.0)
    return float(total / pulls) if pulls > 0.0 else math.nan


def predict_ends(
    low: float, count: float, total: float, at: float, now: float, age: "CellAge"
) -> Callable[[float], float] | None:
    """Return the upper bound of a mean that stays, by the seconds to come; None: too few outcomes for their rate.

    Outcomes come as often as in the longest epoch that is kept, which goes on.
    """
    span = at - age.begin
    if count < FEW_OUTCOMES or not span > 0.0:
        return None

    def predict(seconds: float) -> float:
        pulls = count * (1.0 + seconds / span)
        added = age.budget + age.slope * 0.5 * (now + seconds - age.begin) if age.slope > 0.0 else 0.0
        return low + min(float(UPPER_END(age.settings, pulls, total / count * pulls, age.confidence)) + added, 1.0)

    return predict


class CellAge(NamedTuple):
    """What the upper bound of a cell consists of."""

    term: float  # what the age of outcomes adds to it
    begin: float  # when the longest epoch that is kept began, in seconds
    confidence: float  # log 1/δ' of its upper end
    slope: float  # ρ, per second
    budget: float
    settings: Floats  # of the epochs


class MovingRatesDiagnostics(SegmentRatesDiagnostics):
    """Diagnostics of rates that move as declared; what exceeds that is found cell by cell."""

    read_cell = staticmethod(as_python(read_drifting))

    def get_sums(self, block: Any, settings: Floats, memory: Floats, key: str) -> Sums | None:
        return None

    def list_changes(self, block: Any, settings: Floats, memory: Floats) -> list[FoundChange]:
        cells, low, found = order_cells(block, memory), float(LEAST(block, settings)), list[FoundChange]()
        numbers = self.segments(block, memory)
        for action in range(block.size):
            known = cells[cells[:, action, PULLS] > 0.0, action]
            if len(known) > 1 and known[0, CHANGED] != 0.0 and np.ptp(known[:, CHANGED]) == 0.0:  # found together
                found.append(self.build_change(action, None, low, known))
                continue
            for position in np.flatnonzero(cells[:, action, CHANGED]).tolist():
                cell, segment = cells[position, action], None if numbers is None else int(numbers[0][position])
                found.append(self.build_change(action, segment, low, cell[None]))
        return found

    def build_change(self, action: int, segment: int | None, low: float, cells: Floats) -> FoundChange:
        """Return the change of cells (n, length) that changed together."""
        mean, fell = low + compute_recent_mean(cells), all(map(self.has_fallen, cells))
        return FoundChange(action, segment, float(cells[0, CHANGED]), mean, fell)

    def has_fallen(self, cell: Floats) -> bool:
        """Return whether the mean of a cell that changed fell; only rises beyond what is declared are found."""
        return False

    def forget(
        self, block: Any, settings: Floats, memory: Floats, index: int, since: float, changed: float = 0.0
    ) -> None:
        view = EPOCHS_OF(block, settings, memory)
        for number in range(SLOTS(block, memory)):
            slot = OFFSET(block, number)
            first = slot + SLOT_HEADER_SIZE + CELL_SIZE * index
            if memory[first] > 0.0:
                cell, levels = memory[first : first + CELL_SIZE], CELL_LEVELS(block, settings, index, memory[slot + 1])
                cell[CHANGED] = changed or cell[CHANGED]
                self.forget_cell(view, since, levels.low, levels.high, cell)

    def list_bounds(self, block: Any, settings: Floats, memory: Floats, time: float) -> list[AgedBound]:
        view, low, numbers = EPOCHS_OF(block, settings, memory), float(LEAST(block, settings)), None
        slots = [OFFSET(block, number) for number in range(SLOTS(block, memory))]
        if block.column >= 0:
            slots = sorted((slot for slot in slots if memory[slot] != 0.0), key=lambda slot: float(memory[slot + 1]))
            numbers = self.segments(block, memory)
        row = np.full(int(view.settings[TIME_COLUMN]) + 1, time)
        worst: dict[int, tuple[bool, float, int]] = {}  # by action: whether there is an outcome, upper end, position
        for position, slot in enumerate(slots):
            for action in range(block.size):
                cell = memory[slot + SLOT_HEADER_SIZE + CELL_SIZE * action :][:CELL_SIZE]
                at = slot + SLOT_HEADER_SIZE + CELL_SIZE * action
                upper = float(self.read_cell(block, row, settings, memory, at).most) if cell[PULLS] > 0.0 else 1.0
                worst[action] = max(worst.get(action, (False, 0.0, 0)), (FIND_LONGEST(cell) >= 0, upper, position))
        bounds = []
        for action, (is_known, upper, position) in worst.items():
            slot, segment = slots[position], None if numbers is None else int(numbers[0][position])
            cell = memory[slot + SLOT_HEADER_SIZE + CELL_SIZE * action :][:CELL_SIZE]
            has_forgotten = self.has_forgotten(cell)  # a person may have told it to
            if not is_known:
                changed = float(cell[CHANGED] or has_forgotten * cell[AT])
                bounds.append(AgedBound(action, segment, low + upper, 0.0, math.nan, 0, time, changed, None))
                continue
            longest = FIND_LONGEST(cell)
            count, total = cell[longest : longest + 2].tolist()
            high = CELL_LEVELS(block, settings, action, memory[slot + 1]).high
            age = self.measure_age(view, time, float(high), longest, cell)
            changed = float(cell[CHANGED] or has_forgotten * age.begin)
            ends = predict_ends(low, count, total, float(cell[AT]), time, age)
            known = low + total / count, int(count), age.begin, changed, ends
            bounds.append(AgedBound(action, segment, low + upper, age.term, *known))
        return bounds

    def has_forgotten(self, cell: Floats) -> bool:
        return bool(np.any(cell[FIRST_EPOCH::3] < 0.0))

    def get_newest_time(self, block: Any, settings: Floats, memory: Floats) -> float:
        return float(order_cells(block, memory)[:, :, AT].max(initial=0.0))

    def measure_age(self, view: EpochView, time: float, high: float, longest: int, cell: Floats) -> CellAge:
        """Return what a cell's upper bound consists of: the age term is that of the epoch with the least upper end."""
        slope, budget, best = float(view.settings[SLOPE] / view.settings[STEP]), float(view.settings[BUDGET]), math.inf
        term = 0.0
        for i in range(EPOCHS):
            at, epoch = FIRST_EPOCH + 3 * i, view.header[FIRST_BEGIN + i]
            if epoch > 0.0 and cell[at] > 0.0:
                middle = BEGIN_OF(view.header, view.settings, epoch) + cell[at + 2] / cell[at]
                added = budget + slope * (time - middle)
                end = added + UPPER_END(view.settings, cell[at], cell[at + 1], high + LOG_SHARE(int(epoch)))
                term, best = (added, end) if end < best else (term, best)
        if view.settings[WINDOW] > 0.0 and 1.0 - cell[YOUNG] == COMPUTE_HIGH_NOW(view.settings, time, cell):
            term = budget  # the bound is that of an epoch whose outcomes are all younger than the budget's window
        epoch = view.header[FIRST_BEGIN + (longest - FIRST_EPOCH) // 3]
        begin = float(BEGIN_OF(view.header, view.settings, epoch))
        return CellAge(float(term), begin, high + LOG_SHARE(int(epoch)), slope, budget, view.settings)

    def forget_cell(self, view: EpochView, since: float, low: float, high: float, cell: Floats) -> None:
        """Forget what a cell has learned in epochs that began before a time."""
        FORGET_BEFORE(view.header, view.settings, since, cell)
        UPDATE_ENDS(view.header, view.settings, low, high, cell)

    def forecast(
        self, block: Any, features: Floats, settings: Floats, memory: Floats, arm: int, signal: int
    ) -> UpperForecast | None:
        return None  # how fast bounds age depends on the times of outcomes to come


class JumpingRatesDiagnostics(MovingRatesDiagnostics):
    """Diagnostics of rates that jump; the segments of an action are also tested together."""

    def has_fallen(self, cell: Floats) -> bool:
        """Return whether the epoch that shows the change is kept; after a rise all are forgotten."""
        pulls, begins = cell[FIRST_EPOCH::3], cell[FIRST_EPOCH + 2 :: 3]
        return bool(((pulls > 0.0) & (begins == cell[CHANGED])).any())

    def get_sums(self, block: Any, settings: Floats, memory: Floats, key: str) -> Sums | None:
        if block.column < 0:
            return None
        result: Any = SegmentRatesDiagnostics.get_sums(self, block, settings, memory, key)
        last = result[f"pulls {key}"].size
        cells = order_cells(block, memory)[: last // block.size + 1].reshape(-1, CELL_SIZE)[:last]
        result[f"forgotten {key}"] = np.array([FORGOTTEN(cell) for cell in cells])
        return result | {f"time {key}": np.array(cells[:, AT].max(initial=0.0))}

    def get_false_alarms(self, block: Any, settings: Floats) -> float | None:
        """Return the error of the test of all segments together: as much as all lower ends of the cells may err.

        The cells of a score have what is left for its version, and only single buckets of its runs are used.
        """
        first, used = block.settings + NUMBERS, 1.0
        if block.buckets > 0:
            used = float(np.exp(-settings[first : first + block.size]).sum())
            used *= block.buckets / COUNT_RUNS(block.buckets) if block.pooled == 1 else 1.0
        return used * math.exp(-settings[block.settings + 2]) if block.column >= 0 else None

    def restart(self, block: Any, base: Sums | None, now: Sums, key: str) -> Sums | None:
        return restart_actions(base, now, key, block.size) if block.column >= 0 else base

    def moved(
        self, block: Any, settings: Floats, memory: Floats, marks: Marks, key: str, alarms: Sequence[float]
    ) -> Iterator[MeanChange]:
        """Yield the actions whose rates changed in all segments together."""
        pulls, totals = ([sums[f"{name} {key}"] for sums in marks] for name in ("pulls", "totals"))
        for mark, found in find_pooled_shifts(pulls, totals, block.size, alarms):
            since = float(marks[mark][f"time {key}"]) or EARLIEST
            action, means = found.cells[0] % block.size, (found.before, found.after)
            yield MeanChange(0, found.early, found.late, means, action, cells=len(found.cells), since=since)

    def measure_age(self, view: EpochView, time: float, high: float, longest: int, cell: Floats) -> CellAge:
        spent = JUMP_SPENT((longest - FIRST_EPOCH) // 3, cell)
        return CellAge(0.0, float(cell[longest + 2]), high + spent, 0.0, 0.0, view.settings)

    def has_forgotten(self, cell: Floats) -> bool:
        return bool(cell[RESTARTS] > 0.0)

    def forget_cell(self, view: EpochView, since: float, low: float, high: float, cell: Floats) -> None:
        FORGET_JUMPING(since, cell)
        UPDATE_JUMPING(low, high, cell)


MOVING_RATES = SEGMENT_RATES._replace(
    name="stagewise.models.drifting_rates:MOVING_RATES", diagnostics=MovingRatesDiagnostics(),
    **build_rates(read_drifting, learn_moving)._asdict(),
)  # fmt: skip
JUMPING_RATES = SEGMENT_RATES._replace(
    name="stagewise.models.drifting_rates:JUMPING_RATES", diagnostics=JumpingRatesDiagnostics(),
    **build_rates(read_drifting, learn_jump)._asdict(),
)  # fmt: skip
