"""Outcomes at the door of an agent: the signals given, the values that are learned, and what is still missing."""

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

import numpy as np

from stagewise.agent.outcome_queue import BUFFERED, MISSING, UNDATED, OutcomeQueue, SignalWindow
from stagewise.agent.policy_adapter import PolicyAdapter
from stagewise.policies.policy import BasePolicy
from stagewise.problem.checks import LARGEST, check_outcome
from stagewise.problem.errors import ErrorCode, InvalidOutcome, InvalidProblem
from stagewise.problem.timing import OutcomeWindow, check_windows
from stagewise.records.decision import Decision
from stagewise.records.outcome import Pending, PendingSignal

MICROSECONDS = 1e6


class Absent:
    """The type of a value that was not given; None is a value."""

    def __repr__(self) -> str:
        return "absent"


ABSENT = Absent()


def parse_values(
    policy: BasePolicy, reward: Any, cost: Any, signals: Mapping[str, Any]
) -> tuple[list[float], list[int]]:
    """Return the values (1 + m) that are learned, 0 for those not given, and the indices of those given; or raise."""
    if isinstance(policy, PolicyAdapter):
        if signals or reward is ABSENT:
            raise InvalidOutcome(
                ErrorCode.UNSUPPORTED,
                "this policy has only start, decide and learn, so its outcomes have no names; give reward= and cost=",
            )
        return policy.values(reward, None if cost is ABSENT else cost).tolist(), [0]
    names, given = policy.signal_names[policy.first_reported :], []
    complete = policy.placeholder_values  # valid values for the signals that are not given
    for name, value in signals.items():
        if name not in names:
            raise InvalidOutcome.must_be_one_of(ErrorCode.UNKNOWN_SIGNAL, "a signal of the outcome", name, names)
        index = names.index(name) + policy.first_reported
        if (cost if index else reward) is not ABSENT:
            template = "{name!r} is given twice, by name and as {argument}; give it once"
            raise InvalidOutcome(ErrorCode.DUPLICATE_NAME, template, name=name, argument="cost" if index else "reward")
        is_plain = type(value) is float and abs(value) < LARGEST
        complete[index] = value if is_plain else check_outcome(value, f"the {name!r}")
        given.append(index)
    if isinstance(reward, Mapping):
        rule = f"a number; give the signals by name, as learn(id, {names[0]}=...), or **outcome"
        raise InvalidOutcome.must_be(ErrorCode.WRONG_TYPE, "the reward", reward, rule)
    if reward is not ABSENT:
        complete[0] = check_outcome(reward, "the reward")
        given.append(0)
    if cost is not ABSENT:
        given.extend(range(1, len(complete)))
    if not given:
        raise InvalidOutcome(
            ErrorCode.OUTCOME_MISSING, "no outcome is given; give at least one of {names}", names=", ".join(names)
        )
    encoded = policy.values(complete[0], complete[1:] if cost is ABSENT else cost).tolist()
    return [encoded[k] if k in given else 0.0 for k in range(len(encoded))], given


def check_action(decision: Any, played: Any) -> None:
    """Raise if a decision is not the one that was played."""
    if decision[0] is not played[0] and not np.array_equal(decision[0], played[0]):  # a problem's `action` is a name
        template = "the decision of round {round} is not the one this agent made; the agent played another action"
        raise InvalidOutcome(ErrorCode.UNKNOWN_DECISION, template, round=decision.round)


def check_missing(
    queue: OutcomeQueue, decision: Any, index: int, given: Sequence[int], get_played: Callable[[int], Any]
) -> None:
    """Raise unless all given signals of a decision are missing, and the decision is the one that was played."""
    known = [queue.names[k] for k in given if not queue.is_missing(index, k)]
    whole = not queue.is_pending(index) or len(known) == len(queue.names)
    if not whole and isinstance(decision, Decision):
        check_action(decision, get_played(index))
    if whole or known:
        template = (
            "the outcome is for round {round}, whose {what} is already known, expired or forgotten; "
            "an outcome counts once"
        )
        data = {"round": index, "what": "outcome" if whole else repr(known[0])}
        raise InvalidOutcome(ErrorCode.OUTCOME_ALREADY_KNOWN, template, **data)


def reject_late(queue: OutcomeQueue, windows: Mapping[str, OutcomeWindow], index: int, late: Sequence[int]) -> None:
    """Count late signals, and raise."""
    for signal in late:
        queue.late[signal] += 1
    window = windows[queue.names[late[0]]]
    raise InvalidOutcome(
        ErrorCode.OUTCOME_TOO_LATE,
        "the {name!r} of round {round} arrived after its window of {length_text} closed; {counts} since, and it is "
        "counted as late, not learned",
        name=queue.names[late[0]],
        round=index,
        length_text=window.duration_text,
        counts="the row was left out" if window.drops else f"what was missing counts as {window.missing:g}",
    )


def parse_windows(policy: BasePolicy, windows: Any) -> tuple[dict[str, OutcomeWindow], list[SignalWindow]]:
    """Return the windows of a policy's signals by name, and as the queue uses them."""
    if windows is None:
        return {}, []
    if isinstance(policy, PolicyAdapter):
        raise InvalidProblem(
            ErrorCode.UNSUPPORTED, "this policy has only start, decide and learn; windows need a policy of stagewise"
        )
    names, spans = policy.signal_names, list[SignalWindow]()
    checked = check_windows(windows, names[policy.first_reported :])
    for name, window in checked.items():
        signal, value = names.index(name), math.nan
        if not window.drops:
            try:
                value = parse_values(policy, ABSENT, ABSENT, {name: window.missing})[0][signal]
            except InvalidOutcome as error:
                template = "the window of {name!r} has an invalid missing value: {error}"
                raise InvalidProblem(ErrorCode.OUTCOME_OUT_OF_RANGE, template, name=name, error=error) from None
        spans.append(SignalWindow(signal, to_microseconds(window.seconds), value))
    return checked, spans


def to_microseconds(seconds: float) -> int:
    """Return a time or a length of time as the queue counts it."""
    return round(seconds * MICROSECONDS)


def encode_windows(windows: Mapping[str, OutcomeWindow]) -> dict[str, Any]:
    lengths = {
        name: window.duration.total_seconds() if isinstance(window.duration, timedelta) else window.duration
        for name, window in windows.items()
    }
    return {name: [lengths[name], window.missing] for name, window in windows.items()}


def summarize_pending(queue: OutcomeQueue, id_at: Callable[[int], str]) -> Pending:
    """Return how many outcomes of every signal are missing and buffered, since which decision, and why."""
    lines, missing = [], {k: queue.find(k, MISSING) for k in queue.signals}
    lengths = {window.signal: window.length for window in queue.windows}

    def until(index: int, signals: Sequence[int]) -> str:
        """Return what is missing of a decision, and when its windows close, if all of these signals have one."""
        text = ", ".join(queue.names[k] for k in signals)
        if not all(k in lengths for k in signals) or queue.date(index) == UNDATED:
            return text
        return f"{text} or its window closes at {(queue.date(index) + max(lengths[k] for k in signals)) / 1e6:.0f}"

    for signal in queue.signals:
        name = queue.names[signal]
        buffered, oldest, why = len(queue.find(signal, BUFFERED)), min(missing[signal], default=None), ""
        group = next(group for group in queue.groups if signal in group)
        if buffered and queue.in_order:
            head = min(index for k in group for index in missing[k])
            why = f"buffered until {id_at(head)} has {until(head, [k for k in group if head in missing[k]])}"
        elif buffered:
            why = "buffered until the other signals of the same decision arrive"
        elif oldest is not None:
            why = f"waits for {until(oldest, [signal])}"
        first = None if oldest is None else id_at(oldest)
        lines.append(PendingSignal(name, len(missing[signal]), first, buffered, queue.late[signal], why))
    return Pending(lines)
