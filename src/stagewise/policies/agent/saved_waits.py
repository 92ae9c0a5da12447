"""All that waits, as a file holds it: open decisions, held outcomes, dates, and what was adopted."""

import math
from datetime import timedelta
from typing import Any, NamedTuple

import numpy as np

from stagewise.kernels.signals.ridge import ELSEWHERE
from stagewise.policies.agent.adopted import Adopted, Stretches
from stagewise.policies.agent.deadlines import Deadlines, spans_of
from stagewise.policies.agent.ledger import DONE, HELD, SEVERAL, Ledger, Row
from stagewise.policies.agent.outcomes import ABSENT, values_of
from stagewise.policies.agent.told import ToldCosts, costs_of
from stagewise.policies.learning import Learning
from stagewise.policies.policy import Played
from stagewise.problem.checks import number, whole
from stagewise.problem.errors import InvalidProblem
from stagewise.problem.round_safe import safe_entry, safe_from
from stagewise.problem.window import Window, windows_of


class Waits(NamedTuple):
    """What an agent waits for: open rounds and held outcomes, windows, adopted decisions."""

    ledger: Ledger
    deadlines: Deadlines | None
    adopted: Adopted
    told: ToldCosts | None  # costs as far as they are told


def waits_content(policy: Learning, waits: Waits) -> dict[str, Any]:
    """Return what an agent waits for as plain values."""
    ledger, adopted = waits.ledger, waits.adopted
    return {
        "waiting": {str(r): entry_of(played) for r, played in ledger.open.items()},
        "held": {str(r): row_entry(policy, row) for r, row in ledger.rows.items()},
        "deadlines": None if waits.deadlines is None else deadlines_content(waits.deadlines, ledger.names),
        "adopted": {
            "places": adopted.places,
            "met": {mark: met.pairs for mark, met in adopted.met.items()},
            "taken": adopted.taken.pairs,
        },
        "told": None if waits.told is None else waits.told.plain(),
    }


def deadlines_content(deadlines: Deadlines, names: tuple[str, ...]) -> dict[str, Any]:
    """Return windows and dates as plain values."""
    lengths = {name: (window.length, window.missing) for name, window in deadlines.windows.items()}
    return {
        "windows": {n: [x.total_seconds() if isinstance(x, timedelta) else x, y] for n, (x, y) in lengths.items()},
        "latest": deadlines.latest if deadlines.latest > -math.inf else None,
        "dates": {str(r): date for r, date in deadlines.dates.items()},
        "undated": deadlines.undated,
        "closed": {names[signal]: r for signal, r in deadlines.closed.items()},
        "late": {names[signal]: count_ for signal, count_ in deadlines.late.items()},
    }


def waits_from(policy: Learning, content: dict[str, Any], order: str, end: int) -> Waits:
    """Return what `waits_content` was given, checked; a file of the last version has whole outcomes only."""
    ledger = Ledger(policy.signal_names, policy.apart, order == "arrival")
    ledger.open = {count(int(r), "round", end): played(policy, *entry) for r, entry in content["waiting"].items()}
    ledger.rows = {count(int(r), "round", end): row_from(policy, *entry) for r, entry in content["held"].items()}
    for row in ledger.rows.values():
        ledger.count(row, +1)
    heads = [first_open(ledger, signals, end) for signals in ledger.queues]
    ledger.heads, ledger.oldest = heads, heads[0] if min(heads) == max(heads) else SEVERAL
    check_rows(ledger)
    if content["version"] < 4:
        return Waits(ledger, None, Adopted(), costs_of(policy, end))
    told, adopted = content["deadlines"], Adopted()
    adopted.places = {str(id_): count(place, "place", end) for id_, place in content["adopted"]["places"].items()}
    adopted.met = {str(mark): Stretches(pairs) for mark, pairs in content["adopted"]["met"].items()}
    adopted.taken = Stretches(content["adopted"]["taken"])
    deadlines = None if told is None else deadlines_from(policy, told, end)
    costs = costs_of(policy, end)  # a file that says nothing of what was told: it counts from here on
    if costs is not None and content.get("told") is not None:
        costs = ToldCosts.of(policy, content["told"], end)
    return Waits(ledger, deadlines, adopted, costs)


def deadlines_from(policy: Learning, told: dict[str, Any], end: int) -> Deadlines:
    """Return windows and dates, checked."""
    windows = {name: Window(*entry) for name, entry in told["windows"].items()}
    names = policy.signal_names
    deadlines = Deadlines(windows_of(windows, names), spans_of(policy, windows))
    deadlines.latest = -math.inf if told["latest"] is None else number(told["latest"], "latest")
    deadlines.dates = {count(int(r), "round", end): number(date, "a date") for r, date in told["dates"].items()}
    deadlines.undated = [count(r, "round", end) for r in told["undated"]]
    deadlines.closed = {
        span.signal: count(told["closed"][names[span.signal]], "round", end + 1) for span in deadlines.spans
    }
    deadlines.late = {span.signal: count(told["late"][names[span.signal]], "late") for span in deadlines.spans}
    return deadlines


def first_open(ledger: Ledger, signals: tuple[int, ...], end: int) -> int:
    """Return where a queue stands: at its first row that is not past."""
    rows = [r for r, row in ledger.rows.items() if any(row.standing[k] != DONE for k in signals)]
    return min([*ledger.open, *rows], default=end)


def check_rows(ledger: Ledger) -> None:
    """Refuse rows that would have been learned, or whose signals stand where they cannot."""
    for round_, row in ledger.rows.items():
        past = [[row.standing[k] == DONE for k in signals] for signals in ledger.queues]
        if all(map(all, past)) or any(any(queue) and not all(queue) for queue in past):
            raise InvalidProblem("an outcome in it is held of which a part is past that cannot be")
        stuck = [ledger.at_once or head == round_ for head in ledger.heads]
        free = [row.ready(signals) and not all(done) for signals, done in zip(ledger.queues, past, strict=True)]
        if round_ in ledger.open or any(map(all, zip(stuck, free, strict=True))):
            raise InvalidProblem("an outcome in it is held that waits for nothing")


def count(value: Any, name: str, end: int = 2**62) -> int:
    """Return a whole number from 0 to below the end."""
    return whole(value, name, f"from 0 to {end - 1}", 0, end - 1)


def played(policy: Learning, action: Any, index: Any, step: Any, safe: Any = None) -> Played:
    """Return an action that this policy can have played, in a round with this safe action of its own."""
    row = policy.logged([action])[0]
    place, began = count(index - ELSEWHERE, "index") + ELSEWHERE, policy.safe_played(safe_from(safe))
    return Played(row if isinstance(action, list) else int(row), place, number(step, "step"), began)


def entry_of(played: Played) -> list[Any]:
    """Return what was played as `played` reads it."""
    entry = [np.asarray(played.action).tolist(), int(played.ray), float(played.step)]
    return entry if played.safe is None else [*entry, safe_entry(played.safe)]


def row_entry(policy: Learning, row: Row) -> list[Any]:
    """Return what was played and seen, in the user's own direction, so that reading can check it again."""
    units = policy.given(np.array(row.values))
    told = [float(value) if standing == HELD else None for value, standing in zip(units, row.standing, strict=True)]
    return [entry_of(row.played), told[0], told[1:], list(row.standing)]


def row_from(policy: Learning, *entry: Any) -> Row:
    """Return a row, checked; a file of the last version holds whole outcomes, behind what was played."""
    names = policy.signal_names
    if len(entry) == 5:
        return Row(played(policy, *entry[:-2]), policy.values(*entry[-2:]).tolist(), bytearray([HELD] * len(names)))
    where, reward, costs, standing = entry
    stands = bytearray(count(stand, "standing", DONE + 1) for stand in standing)
    given = dict(zip(names, [reward, *costs], strict=True))
    held = {name: given[name] for name, stand in zip(names, stands, strict=True) if stand == HELD}
    return Row(played(policy, *where), seen(policy, held), stands)


def seen(policy: Learning, held: dict[str, Any]) -> list[float]:
    """Return the values of what is held."""
    names = policy.signal_names
    return values_of(policy, names, ABSENT, ABSENT, held)[0] if held else [math.nan] * len(names)
