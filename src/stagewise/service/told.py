"""Outcomes as clients tell them: which signals, each in its range, and which came too late."""

from typing import Any

from stagewise.policies.problem import Problem
from stagewise.problem.checks import shown
from stagewise.problem.declared import scaled
from stagewise.problem.errors import InvalidOutcome
from stagewise.problem.words import nearest
from stagewise.service.records import SHOWN, Settled


def values_of(problem: Problem, given: dict[str, Any]) -> dict[str, float]:
    """Return the signals of an outcome, each in its declared range; and whether the action was carried out."""
    values: dict[str, float] = {}
    for name, value in given.items():
        if name == SHOWN:
            if not isinstance(value, bool):
                raise InvalidOutcome(f"shown is {shown(value)}; it must be true or false")
            values[SHOWN] = float(value)
            continue
        signal = problem.signals.get(name)
        if signal is None:
            known = [*problem.signals, SHOWN]
            raise InvalidOutcome(
                f"the outcome names {shown(name)}; the signals are {', '.join(known)}{nearest(name, known)}"
            )
        scaled(signal, name, value)
        values[name] = float(value)
    if not values:
        raise InvalidOutcome(f"no outcome is given; give at least one of {', '.join(problem.signals)}")
    return values


def late_in(problem: Problem, settled: Settled) -> list[str]:
    """Return the signals that came after their window had closed."""
    if settled.event is None:
        return []
    windows, age = problem.windows, (settled.event.at - settled.dated) / 1e6
    return [name for name in settled.taken if name in windows and age >= windows[name].seconds]
