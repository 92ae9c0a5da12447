"""Check `sample_size`: every action has enough rows to certify its limits."""

import math
from collections.abc import Iterator

import numpy as np

from stagewise.launch.doctor.finding import Finding, select_most_severe
from stagewise.launch.doctor.finding_messages import FindingCode
from stagewise.launch.doctor.log_profile import KL_INTERVAL, MISSING_GROUP, LogProfile, get_threshold

MAX_ROWS = 10_000_000


def check(profile: LogProfile, alpha: float) -> Finding:
    """Find actions with too few rows to certify a limit, even with no events; by segment if the limit is."""
    problem, findings = profile.log.problem, []
    for signal, (name, limit) in enumerate(problem.limits.items(), start=1):
        threshold, at_least = get_threshold(limit)
        low, high = profile.ends(signal)
        room = (high - threshold if at_least else threshold - low) / (high - low)
        needed = compute_rows_needed(room, problem.delta / (2 * len(problem.limits) * len(problem.actions)))
        few = sorted(
            (count, action, segment or "")
            for action, segment, count in count_outcomes(profile, signal)
            if count < needed
        )
        if few:
            count, action, segment = few[0]
            column = problem.choices[name].by
            findings.append(
                Finding.of(
                    FindingCode.TOO_FEW_ROWS,
                    name=name,
                    action=action,
                    column=column,
                    segment=None if column is None else segment,
                    count=count,
                    needed=needed,
                    other_cells=len(few) - 1,
                )
            )
    return select_most_severe(findings, Finding.of(FindingCode.ENOUGH_ROWS, rows=profile.log.rows))


def count_outcomes(profile: LogProfile, signal: int) -> Iterator[tuple[str, str | None, int]]:
    """Yield each action, its segment if the limit is by segment, and the number of its outcomes."""
    problem, observed = profile.log.problem, profile.observed(signal)
    by = problem.choices[profile.names[signal]].by
    groups, names = profile.segment_codes[by] if by is not None else (np.zeros(profile.log.rows, np.int64), [""])
    for index, action in enumerate(problem.actions):
        rows = observed & (profile.log.actions == index)
        for count, group in zip(np.bincount(groups[rows], minlength=len(names)).tolist(), names, strict=True):
            if group != MISSING_GROUP:
                yield action, None if by is None else group, count


def compute_rows_needed(room: float, p_value: float) -> int:
    """Return how many outcomes without an event show that a rate is below some room.

    >>> compute_rows_needed(0.02, 0.001), compute_rows_needed(0.005, 0.001)
    (526, 2263)
    """
    low, high = 1, MAX_ROWS
    while low < high:
        middle = (low + high) // 2
        if KL_INTERVAL(float(middle), 0.0, math.log(1.0 / p_value)).high <= room:
            high = middle
        else:
            low = middle + 1
    return low
