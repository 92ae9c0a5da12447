"""Check `segments`: no group of users has other rates than all users."""

from typing import Any, NamedTuple

from stagewise.engine.compile import Ints
from stagewise.launch.decision_log import TIME_COLUMNS, to_texts
from stagewise.launch.doctor.binary_outcomes import find_events
from stagewise.launch.doctor.checks.model_form import SELECTION_LEVEL
from stagewise.launch.doctor.finding import Finding, select_most_severe
from stagewise.launch.doctor.finding_messages import FindingCode
from stagewise.launch.doctor.log_profile import LogProfile, encode_groups, get_threshold
from stagewise.launch.doctor.permutation_tests import find_extreme_group

MAX_GROUPS = 1_000  # a column with more groups identifies users
MAX_TESTED_SEGMENTS = 100


class BrokenSegment(NamedTuple):
    """A segment in which an action certainly breaks a limit that it keeps on average."""

    action: str
    limit: float
    segment: str
    bound: float


def check(profile: LogProfile, alpha: float) -> Finding:
    """Find columns that are not in the problem and in whose groups a rate differs from the rate of all."""
    columns, problem, findings = find_text_columns(profile), profile.log.problem, []
    signals = [index for index, name in enumerate(profile.names) if index and problem.choices[name].model == "rates"]
    tests = len(columns) * len(signals)
    for column, (groups, names) in columns.items():
        for signal in signals:
            rows = profile.observed(signal)
            extreme = find_extreme_group(
                find_events(profile, signal)[rows], groups[rows], profile.cells(signal)[rows], len(names)
            )
            p_value = extreme.p_value * tests
            if p_value > max(0.5 * alpha, 0.5 * SELECTION_LEVEL):  # the level at which a proposal divides users
                continue
            details: dict[str, Any] = {
                "name": profile.names[signal],
                "column": column,
                "segment": names[extreme.group],
                "difference": extreme.difference,
            }
            broken = find_broken_segment(profile, signal, groups, names, 0.5 * alpha / tests)
            if broken is not None:
                findings.append(
                    Finding.of(
                        FindingCode.SEGMENT_OVER_LIMIT,
                        **details,
                        action=broken.action,
                        limit=broken.limit,
                        broken_segment=broken.segment,
                        bound=broken.bound,
                    )
                )
            else:
                by_chance = p_value if p_value > 0.5 * alpha else None
                findings.append(Finding.of(FindingCode.SEGMENTS_DIFFER, **details, p_value=by_chance))
    return select_most_severe(findings, Finding.of(FindingCode.SEGMENTS_ALIKE))


def find_broken_segment(
    profile: LogProfile, signal: int, groups: Ints, names: list[str], p_value: float
) -> BrokenSegment | None:
    """Return a segment in which an action that keeps a limit on average certainly breaks it; None: there is none."""
    problem = profile.log.problem
    threshold, at_least = get_threshold(problem.limits[profile.names[signal]])
    for action, name in enumerate(problem.actions):
        has_action = profile.log.actions == action
        _, mean, _ = profile.rate(signal, has_action, 0.5)
        if not ((mean >= threshold) if at_least else (mean <= threshold)) or len(names) > MAX_TESTED_SEGMENTS:
            continue
        for index, group in enumerate(names):
            rows = has_action & (groups == index)
            _, _, interval = profile.rate(signal, rows, p_value / (len(names) * len(problem.actions)))
            if (interval.high < threshold) if at_least else (interval.low > threshold):
                return BrokenSegment(name, threshold, group, interval.high if at_least else interval.low)
    return None


def find_text_columns(profile: LogProfile) -> dict[str, tuple[Ints, list[str]]]:
    """Return the columns of text that are not in the problem, as group codes and the names of the groups."""
    used = {profile.columns.get(name, name) for name in (*profile.names, *profile.log.problem.context_names, "action")}
    columns = {}
    for name, array in profile.log.arrays.items():
        if isinstance(name, str) and name not in used and name not in TIME_COLUMNS and array.dtype.kind == "O":
            groups = encode_column(array)
            if groups is not None:
                columns[name] = groups
    return columns


def encode_column(array: Any) -> tuple[Ints, list[str]] | None:
    """Return a column of texts as codes and names; None if it holds something else, or a name for every row."""
    entries = array.tolist()
    kinds = {type(entry) for entry in entries}
    if str not in kinds or any(kind not in (str, bool, int, float, type(None)) for kind in kinds):
        return None
    distinct = set(entries)
    if not 2 <= len(distinct) <= min(MAX_GROUPS, len(entries) // 2):
        return None
    return encode_groups(to_texts(entries))
