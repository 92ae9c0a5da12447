"""Offline logs for a server: the doctor checks them, and the rows that can be learned are selected."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from stagewise.files.tables import read_table
from stagewise.launch.decision_log import Log, select_learnable
from stagewise.launch.doctor.doctor import doctor
from stagewise.policies.problem import Problem
from stagewise.problem.errors import ErrorCode, InvalidOutcome
from stagewise.server.offline_log import OfflineLog


def read_log(
    problem: Problem, source: Any, columns: Mapping[str, str], accept: Sequence[str], now: Any = None
) -> OfflineLog:
    """Return the rows of a log that can be learned; raise InvalidOutcome if the log contradicts the problem.

    Args:
        problem: The problem of the experiment.
        source: A file, or columns by name.
        columns: Column mapping: names of the problem to columns of the log.
        accept: Checks to report without failing.
        now: When the log was read; None: at its last row. Rows whose windows were open then are left out.
    """
    table = read_table(source)
    log = build_offline_log(problem, table, columns, now)
    check_log(problem, table, columns, accept)
    return log


def build_offline_log(problem: Problem, source: Any, columns: Mapping[str, str], now: Any = None) -> OfflineLog:
    """Return the rows of a log that can be learned, as the server stores them."""
    log, notes = select_learnable(Log.of(source, problem, columns=columns), now)
    numbers = {name: (log.numbers[:, i] + 0.0).tolist() for i, name in enumerate(problem.context)}  # no -0.0
    segments = {name: log.segments[name].tolist() for name in problem.divisions}
    values = {name: (log.values[:, i] + 0.0).tolist() for i, name in enumerate(problem.signals)}
    at = None if log.at is None else [None if np.isnan(time) else float(time) for time in log.at]
    return OfflineLog([problem.actions[i] for i in log.actions], {**numbers, **segments}, values, at, tuple(notes))


def check_log(problem: Problem, source: Any, columns: Mapping[str, str], accept: Sequence[str]) -> None:
    """Raise InvalidOutcome if a log contradicts the problem."""
    report = doctor(source, problem, columns=columns, ignore_checks=accept)
    contradictions = [finding for finding in report.findings if finding.verdict == "contradicts"]
    if contradictions:
        first, others = contradictions[0], len(contradictions) - 1
        more = f" (and {others} more; `stagewise doctor` lists all)" if others else ""
        raise InvalidOutcome(
            ErrorCode.LOG_CONTRADICTS_PROBLEM,
            "the log contradicts the problem, so no row is learned: {name}: {finding}{more}; {remedy}; "
            "to override this check, ignore {name!r}",
            name=str(first.check),
            finding=first.message,
            more=more,
            remedy=first.remedy,
        )
