"""Summary of pending outcomes, signal by signal."""

import math
from collections.abc import Callable

from stagewise.agent.deadlines import Deadlines
from stagewise.agent.outcome_queue import BUFFERED, MISSING, OutcomeQueue
from stagewise.records.pending import Pending, PendingSignal


def build_pending(outcome_queue: OutcomeQueue, deadlines: Deadlines | None, id_at: Callable[[int], str]) -> Pending:
    """Return how many outcomes of every signal are missing and buffered, since which decision, and why."""
    lines = []
    for signal, name in enumerate(outcome_queue.names):
        rows = [(round_, row.status[signal]) for round_, row in outcome_queue.rows.items()]
        missing = [*outcome_queue.open, *(round_ for round_, status in rows if status == MISSING)]
        buffered = sum(status == BUFFERED for _, status in rows)
        oldest = min(missing, default=None)
        late = 0 if deadlines is None else deadlines.late.get(signal, 0)
        why = explain_wait(outcome_queue, deadlines, signal, oldest, buffered, id_at)
        lines.append(PendingSignal(name, len(missing), None if oldest is None else id_at(oldest), buffered, late, why))
    return Pending(lines)


def explain_wait(
    outcome_queue: OutcomeQueue,
    deadlines: Deadlines | None,
    signal: int,
    oldest: int | None,
    buffered_count: int,
    id_at: Callable[[int], str],
) -> str:
    """Return what a signal waits for: an earlier decision's outcome, or its own oldest one."""
    if oldest is None and not buffered_count:
        return ""
    signals = next(queue for queue in outcome_queue.queues if signal in queue)
    if buffered_count and not outcome_queue.at_once:
        head = find_first_missing(outcome_queue, signals)
        missing = [outcome_queue.names[k] for k in signals if outcome_queue.is_missing(head, k)]
        until = describe_deadline(deadlines, head, missing, outcome_queue)
        return f"buffered until {id_at(head)} has {', '.join(missing)}{until}"
    if buffered_count:
        return "buffered until the other signals of the same decision arrive"
    name = outcome_queue.names[signal]
    return f"waits for {name}{describe_deadline(deadlines, oldest or 0, [name], outcome_queue)}"


def find_first_missing(outcome_queue: OutcomeQueue, signals: tuple[int, ...]) -> int:
    """Return the oldest round that lacks one of these signals."""
    rows = [round_ for round_, row in outcome_queue.rows.items() if not row.is_ready(signals)]
    return min([*outcome_queue.open, *rows])


def describe_deadline(deadlines: Deadlines | None, round_: int, missing: list[str], outcome_queue: OutcomeQueue) -> str:
    """Return when the windows of a round's missing signals close, if all of them have one."""
    if deadlines is None:
        return ""
    windows = {outcome_queue.names[window.signal]: window for window in deadlines.signal_windows}
    if not all(name in windows for name in missing):
        return ""
    closes = max(deadlines.closes(round_, windows[name]) for name in missing)
    return f" or its window closes at {closes:.0f}" if closes < math.inf else ""
