"""Validation of reported outcomes: names, ranges and windows."""

from typing import Any

from stagewise.policies.problem import Problem
from stagewise.problem.errors import ErrorCode, InvalidOutcome
from stagewise.problem.formatting import safe_repr, suggest_name
from stagewise.problem.signals import scale_outcome
from stagewise.server.event_log import SHOWN, AppendResult


def validate_outcome(problem: Problem, given: dict[str, Any]) -> dict[str, float]:
    """Return the validated signals of an outcome, and `shown` if it is given."""
    values: dict[str, float] = {}
    for name, value in given.items():
        if name == SHOWN:
            if not isinstance(value, bool):
                raise InvalidOutcome(
                    ErrorCode.WRONG_TYPE, "shown is {value}; it must be true or false", value=safe_repr(value)
                )
            values[SHOWN] = float(value)
            continue
        signal = problem.signals.get(name)
        if signal is None:
            names = [*problem.signals, SHOWN]
            raise InvalidOutcome(
                ErrorCode.UNKNOWN_SIGNAL,
                "the outcome names {name}; the signals are {names}{suggestion}",
                name=safe_repr(name),
                names=", ".join(names),
                suggestion=suggest_name(name, names),
            )
        scale_outcome(signal, name, value)
        values[name] = float(value)
    if not values:
        raise InvalidOutcome(
            ErrorCode.OUTCOME_MISSING,
            "no outcome is given; give at least one of {signals}",
            signals=", ".join(problem.signals),
        )
    return values


def get_late_signals(problem: Problem, result: AppendResult) -> list[str]:
    """Return the signals that arrived after their window closed."""
    if result.event is None:
        return []
    windows, age = problem.windows, (result.event.at - result.decided_at) / 1e6
    return [name for name in result.accepted if name in windows and age >= windows[name].seconds]
