"""A log that a desk is given: the doctor looks at it, and the rows that can be learned go to the desk."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from stagewise.files.tables import table_at
from stagewise.launch.doctor.doctor import doctor
from stagewise.launch.learnable import learnable
from stagewise.launch.log import Log
from stagewise.policies.problem import Problem
from stagewise.problem.errors import InvalidOutcome
from stagewise.service.offline import OfflineLog


def read_log(
    problem: Problem, source: Any, names: Mapping[str, str], accept: Sequence[str], now: Any = None
) -> OfflineLog:
    """Return the rows of a log that can be learned, or refuse it with what contradicts the problem.

    Args:
        problem: What the log is held against.
        source: A file, or columns by name.
        names: Which columns hold what the problem has another name for.
        accept: Checks whose contradictions are noted only.
        now: When the log was read; None: at its last row. Rows whose windows were open then are left out.
    """
    columns = table_at(source)
    told = rows_in_log(problem, columns, names, now)
    check_log(problem, columns, names, accept)
    return told


def rows_in_log(problem: Problem, source: Any, names: Mapping[str, str], now: Any = None) -> OfflineLog:
    """Return the rows of a log that can be learned, as a desk takes them."""
    log, notes = learnable(Log.of(source, problem, names=names), now)
    numbers = {name: (log.numbers[:, i] + 0.0).tolist() for i, name in enumerate(problem.context)}  # no -0.0
    segments = {name: log.segments[name].tolist() for name in problem.divisions}
    values = {name: (log.values[:, i] + 0.0).tolist() for i, name in enumerate(problem.signals)}
    at = None if log.at is None else [None if np.isnan(one) else float(one) for one in log.at]
    return OfflineLog([problem.actions[i] for i in log.actions], {**numbers, **segments}, values, at, tuple(notes))


def check_log(problem: Problem, source: Any, names: Mapping[str, str], accept: Sequence[str]) -> None:
    """Refuse a log of which the doctor says that it contradicts the problem."""
    found = doctor(source, problem, names=names, accept=accept)
    wrong = [finding for finding in found.findings if finding.verdict == "contradicts"]
    if wrong:
        first, others = wrong[0], len(wrong) - 1
        more = f" (and {others} more; `stagewise doctor` says all)" if others else ""
        raise InvalidOutcome(
            f"the log contradicts the problem, so nothing of it is learned: {first.name}: {first.sentence}{more}; "
            f"{first.remedy}; where you know better, accept {first.name!r}"
        )
