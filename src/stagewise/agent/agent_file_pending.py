"""The pending part of agent files: open decisions, buffered outcomes, deadlines and registered decisions."""

import math
from datetime import timedelta
from typing import Any, NamedTuple

import numpy as np

from stagewise.agent.deadlines import Deadlines, build_signal_windows
from stagewise.agent.observed_costs import ObservedCosts, build_observed_costs
from stagewise.agent.outcome_queue import BUFFERED, DONE, HEADS_DIFFER, OutcomeQueue, QueuedRow
from stagewise.agent.outcome_values import ABSENT, parse_values
from stagewise.agent.registered import IntervalSet, RegisteredDecisions
from stagewise.engine.layout import ELSEWHERE
from stagewise.policies.base_policy import BasePolicy
from stagewise.policies.policy import PlayedAction
from stagewise.problem.checks import check_integer, check_number
from stagewise.problem.errors import ErrorCode, InvalidProblem
from stagewise.problem.safe_action import decode_round_safe_action, encode_round_safe_action
from stagewise.problem.window import OutcomeWindow, check_windows


class PendingState(NamedTuple):
    """Open rounds and buffered outcomes, deadlines, registered decisions and reported costs."""

    queue: OutcomeQueue
    deadlines: Deadlines | None
    registered: RegisteredDecisions
    observed_costs: ObservedCosts | None


def encode_pending(policy: BasePolicy, pending: PendingState) -> dict[str, Any]:
    """Return the pending state as JSON holds it."""
    outcome_queue, registered = pending.queue, pending.registered
    return {
        "pending": {str(r): encode_played(played) for r, played in outcome_queue.open.items()},
        "buffered": {str(r): encode_row(policy, row) for r, row in outcome_queue.rows.items()},
        "deadlines": None if pending.deadlines is None else encode_deadlines(pending.deadlines, outcome_queue.names),
        "registered": {
            "rounds_by_id": registered.rounds_by_id,
            "seen_rounds": {prefix: rounds.pairs for prefix, rounds in registered.seen_rounds.items()},
            "registered_rounds": registered.registered_rounds.pairs,
        },
        "observed_costs": None if pending.observed_costs is None else pending.observed_costs.to_dict(),
    }


def encode_deadlines(deadlines: Deadlines, names: tuple[str, ...]) -> dict[str, Any]:
    """Return windows and dates as JSON holds them."""
    lengths = {name: (window.length, window.missing) for name, window in deadlines.windows.items()}
    return {
        "windows": {n: [x.total_seconds() if isinstance(x, timedelta) else x, y] for n, (x, y) in lengths.items()},
        "latest": deadlines.latest if deadlines.latest > -math.inf else None,
        "dates": {str(r): date for r, date in deadlines.dates.items()},
        "undated": deadlines.undated,
        "closed": {names[signal]: r for signal, r in deadlines.closed.items()},
        "late": {names[signal]: count_ for signal, count_ in deadlines.late.items()},
    }


def decode_pending(policy: BasePolicy, content: dict[str, Any], order: str, end: int) -> PendingState:
    """Return the pending state that `encode_pending` wrote, checked."""
    outcome_queue = OutcomeQueue(policy.signal_names, policy.separate_models, order == "arrival")
    outcome_queue.open = {
        parse_count(int(r), "round", end): parse_played(policy, *entry) for r, entry in content["pending"].items()
    }
    outcome_queue.rows = {
        parse_count(int(r), "round", end): decode_row(policy, *entry) for r, entry in content["buffered"].items()
    }
    for row in outcome_queue.rows.values():
        outcome_queue.count(row, +1)
    heads = [find_first_open(outcome_queue, signals, end) for signals in outcome_queue.queues]
    outcome_queue.heads, outcome_queue.oldest = heads, heads[0] if min(heads) == max(heads) else HEADS_DIFFER
    check_rows(outcome_queue)
    stored, registered = content["registered"], RegisteredDecisions()
    registered.rounds_by_id = {str(id_): parse_count(r, "round", end) for id_, r in stored["rounds_by_id"].items()}
    registered.seen_rounds = {str(prefix): IntervalSet(pairs) for prefix, pairs in stored["seen_rounds"].items()}
    registered.registered_rounds = IntervalSet(stored["registered_rounds"])
    deadlines = None if content["deadlines"] is None else decode_deadlines(policy, content["deadlines"], end)
    costs = build_observed_costs(policy, end)
    if costs is not None and content["observed_costs"] is not None:
        costs = ObservedCosts.from_dict(policy, content["observed_costs"], end)
    return PendingState(outcome_queue, deadlines, registered, costs)


def decode_deadlines(policy: BasePolicy, content: dict[str, Any], end: int) -> Deadlines:
    """Return the deadlines that `encode_deadlines` wrote, checked."""
    windows, names = {name: OutcomeWindow(*entry) for name, entry in content["windows"].items()}, policy.signal_names
    deadlines = Deadlines(check_windows(windows, names), build_signal_windows(policy, windows))
    deadlines.latest = -math.inf if content["latest"] is None else check_number(content["latest"], "latest")
    deadlines.dates = {
        parse_count(int(r), "round", end): check_number(date, "a date") for r, date in content["dates"].items()
    }
    deadlines.undated = [parse_count(r, "round", end) for r in content["undated"]]
    for window in deadlines.signal_windows:
        name = names[window.signal]
        deadlines.closed[window.signal] = parse_count(content["closed"][name], "round", end + 1)
        deadlines.late[window.signal] = parse_count(content["late"][name], "late")
    return deadlines


def find_first_open(queue: OutcomeQueue, signals: tuple[int, ...], end: int) -> int:
    """Return the first round of a queue that is not learned."""
    rows = [r for r, row in queue.rows.items() if any(row.status[k] != DONE for k in signals)]
    return min([*queue.open, *rows], default=end)


def check_rows(queue: OutcomeQueue) -> None:
    """Raise if a row would have been learned already, or if the status of a signal is impossible."""
    for round_, row in queue.rows.items():
        done = [[row.status[k] == DONE for k in signals] for signals in queue.queues]
        if all(map(all, done)) or any(any(signals) and not all(signals) for signals in done):
            raise InvalidProblem(
                ErrorCode.FILE_CORRUPT, "a stored pending outcome lists a closed signal that cannot be closed"
            )
        is_next = [queue.at_once or head == round_ for head in queue.heads]
        is_due = [row.is_ready(signals) and not all(one) for signals, one in zip(queue.queues, done, strict=True)]
        if round_ in queue.open or any(map(all, zip(is_next, is_due, strict=True))):
            raise InvalidProblem(ErrorCode.FILE_CORRUPT, "a stored pending outcome waits for no signal")


def parse_count(value: Any, name: str, end: int = 2**62) -> int:
    """Return an integer in [0, end)."""
    return check_integer(value, name, f"from 0 to {end - 1}", 0, end - 1)


def parse_played(policy: BasePolicy, action: Any, index: Any, step: Any, safe: Any = None) -> PlayedAction:
    """Return a played action, checked against the policy and the round's safe action."""
    row = policy.check_logged_actions([action])[0]
    ray = parse_count(index - ELSEWHERE, "index") + ELSEWHERE
    safe_action = policy.check_round_safe_action(decode_round_safe_action(safe))
    return PlayedAction(row if isinstance(action, list) else int(row), ray, check_number(step, "step"), safe_action)


def encode_played(played: PlayedAction) -> list[Any]:
    """Return a played action as `parse_played` reads it."""
    entry = [np.asarray(played.action).tolist(), int(played.ray), float(played.step)]
    return entry if played.safe is None else [*entry, encode_round_safe_action(played.safe)]


def encode_row(policy: BasePolicy, row: QueuedRow) -> list[Any]:
    """Return the played action and its outcome in the user's units, so that reading can check it."""
    outcome = policy.decode_outcome(np.array(row.values))
    values = [float(value) if status == BUFFERED else None for value, status in zip(outcome, row.status, strict=True)]
    return [encode_played(row.played), values[0], values[1:], list(row.status)]


def decode_row(policy: BasePolicy, played: Any, reward: Any, costs: Any, statuses: Any) -> QueuedRow:
    """Return the row that `encode_row` wrote, checked."""
    names = policy.signal_names
    status = bytearray(parse_count(one, "status", DONE + 1) for one in statuses)
    given = dict(zip(names, [reward, *costs], strict=True))
    buffered = {name: given[name] for name, one in zip(names, status, strict=True) if one == BUFFERED}
    return QueuedRow(parse_played(policy, *played), parse_buffered(policy, buffered), status)


def parse_buffered(policy: BasePolicy, values: dict[str, Any]) -> list[float]:
    """Return the values of buffered signals, NaN for the others."""
    names = policy.signal_names
    return parse_values(policy, names, ABSENT, ABSENT, values)[0] if values else [math.nan] * len(names)
