"""What a ledger waits for, told signal by signal."""

import math
from collections.abc import Callable

from stagewise.policies.agent.deadlines import Deadlines
from stagewise.policies.agent.ledger import HELD, MISSING, Ledger
from stagewise.records.pending import Pending, Waiting


def pending_in(ledger: Ledger, deadlines: Deadlines | None, id_at: Callable[[int], str]) -> Pending:
    """Return how much of every signal is missing and held, since when, and why."""
    lines = []
    for signal, name in enumerate(ledger.names):
        rows = [(round_, row.standing[signal]) for round_, row in ledger.rows.items()]
        missing = [*ledger.open, *(round_ for round_, standing in rows if standing == MISSING)]
        held = sum(standing == HELD for _, standing in rows)
        oldest = min(missing, default=None)
        late = 0 if deadlines is None else deadlines.late.get(signal, 0)
        why = reason(ledger, deadlines, signal, oldest, held, id_at)
        lines.append(Waiting(name, len(missing), None if oldest is None else id_at(oldest), held, late, why))
    return Pending(lines)


def reason(
    ledger: Ledger, deadlines: Deadlines | None, signal: int, oldest: int | None, held: int, id_at: Callable[[int], str]
) -> str:
    """Return what a signal waits for: the outcome that holds it back, or its own oldest one."""
    if oldest is None and not held:
        return ""
    signals = next(queue for queue in ledger.queues if signal in queue)
    if held and not ledger.at_once:
        head = first_lacking(ledger, signals)
        lacks = [ledger.names[k] for k in signals if ledger.missing(head, k)]
        return f"held behind {id_at(head)}, which lacks {', '.join(lacks)}{until(deadlines, head, lacks, ledger)}"
    if held:
        return "held until the other signals of the same decision are in"
    return f"waits for {ledger.names[signal]}{until(deadlines, oldest or 0, [ledger.names[signal]], ledger)}"


def first_lacking(ledger: Ledger, signals: tuple[int, ...]) -> int:
    """Return the oldest round that lacks one of these signals."""
    rows = [round_ for round_, row in ledger.rows.items() if not row.ready(signals)]
    return min([*ledger.open, *rows])


def until(deadlines: Deadlines | None, round_: int, lacks: list[str], ledger: Ledger) -> str:
    """Return when the windows of what a round lacks are closed, where all of it has one."""
    spans = {} if deadlines is None else {ledger.names[span.signal]: span for span in deadlines.spans}
    if deadlines is None or not all(name in spans for name in lacks):
        return ""
    closes = max(deadlines.closes(round_, spans[name]) for name in lacks)
    return f" until its window closes at {closes:.0f}" if closes < math.inf else ""
