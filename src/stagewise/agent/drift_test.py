"""Drift tests: outcomes before a mark against those after it (docs/theory/watch.md, Proposition 3).

A mark stores the sums of a signal's model at some time. The outcomes before and after it are two samples of the same
means; if no means explain both, they changed, except with probability a. Every signal has its own marks, set and tested
by the number of its outcomes, so that an agent and a server that learn the same outcomes find the same.
"""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from stagewise.agent.statistics import LOOK_AFTER, NEVER, DriftTrack, Statistics
from stagewise.engine.compile import Floats
from stagewise.engine.model import Model
from stagewise.models.diagnostics import MeanChange, Sums, count_outcomes, subtract_sums
from stagewise.policies.settings import FALSE_ALARMS
from stagewise.problem.context import get_segment_name
from stagewise.problem.errors import ErrorCode, InvalidProblem
from stagewise.records.reason import Contradiction, Reason, ReasonDetails

Part = tuple[Model, Any]  # a model, and its block
MIN_OUTCOMES = 32  # before the first mark
MAX_HALF_STEP, STEP_DIVISOR = 1024, 64  # outcomes between tests: half of all, up to the first, then all over the second


def iter_signals(policy: Any, memory: Floats) -> Iterator[tuple[str, int, int, Part]]:
    """Yield every signal: its name, its index, the index of its model block, and the model with the block."""
    names = (policy.reward_name, *policy.thresholds.names)
    for which, part in enumerate(policy.rounds.iter_blocks(memory)):
        for signal in range(part[1].first, part[1].first + part[1].signals):
            yield names[signal], signal, which, part


def find_drift(policy: Any, memory: Floats, statistics: Statistics, at_once: bool = False) -> list[str]:
    """Test the signals that are due for drift, and return the names of those that drifted.

    `at_once` tests all. A signal is due by the number of its outcomes; `updates_until_check` is set to the number of
    updates before the next one is due.
    """
    found, statistics.updates_until_check = list[str](), NEVER
    if not getattr(policy, "has_parts", False) or not policy.thresholds.names:
        return found
    sums_by_part: dict[int, Sums | None] = {}
    for name, signal, which, (model, block) in iter_signals(policy, memory):
        count = model.diagnostics.count(block, policy.settings, memory)
        if count is None:
            continue
        track = statistics.get_track(name)
        if at_once or count >= track.next_check:
            if which not in sums_by_part:
                sums_by_part[which] = model.diagnostics.get_sums(block, policy.settings, memory, str(which))
            now = sums_by_part[which]
            if now is not None:
                update_track(policy, memory, track, signal, which, (model, block), now)
                found += [name] * (track.moved is not None)
        statistics.updates_until_check = min(statistics.updates_until_check, max(int(track.next_check - count), 1))
    return found


def update_track(
    policy: Any, memory: Floats, track: DriftTrack, signal: int, which: int, part: Part, now: Sums
) -> None:
    """Test a signal against all its marks, set a mark if it is time, and schedule the next test."""
    track.moved = find_shift(policy, memory, track, signal, which, part, now)
    start, count = (0.0 if track.base is None else count_outcomes(track.base)), count_outcomes(now)
    last = count_outcomes(track.marks[-1]) if track.marks else start
    track.compared = (int(last - start), int(count - last)) if track.marks else None
    answers = part[0].diagnostics
    kept, growth = answers.kept_marks, 2.0 ** (1.0 / answers.per_doubling)
    if count - start >= max(growth * (last - start), MIN_OUTCOMES):
        track.marks = [*track.marks, now][-kept:]
        track.marked += 1
    since = int(count - start)
    track.next_check = int(count) + max(LOOK_AFTER, min(since // 2, MAX_HALF_STEP), since // STEP_DIVISOR)


def find_shift(
    policy: Any, memory: Floats, track: DriftTrack, signal: int, which: int, part: Part, now: Sums
) -> ReasonDetails | None:
    """Return the drift of a signal since one of its marks; None if there is none."""
    if not track.marks:
        return None
    answers, block = part[0].diagnostics, part[1]
    marks = [subtract_sums(track.base, sums) for sums in (*track.marks, now)]
    numbers = range(track.marked - len(track.marks), track.marked)
    alarms = [compute_alarm_level(number, answers.per_doubling) for number in numbers]
    its = answers.moved(block, policy.settings, memory, marks, str(which), alarms)
    found = [one for one in its if block.first + one.signal == signal]
    return build_drift_cause(policy, signal, max(found, key=MeanChange.distance)) if found else None


def compute_alarm_level(number: int, per_doubling: int) -> float:
    """Return log 1/a' of a mark: those of the i-th doubling share a/i(i+1)."""
    doubling = 1 + number // per_doubling
    return math.log(per_doubling * doubling * (doubling + 1) / FALSE_ALARMS)


def get_signal_sums(policy: Any, memory: Floats, name: str) -> Sums | None:
    """Return the sums of a signal's model block."""
    which, (model, block) = next((which, part) for one, _, which, part in iter_signals(policy, memory) if one == name)
    sums: Sums | None = model.diagnostics.get_sums(block, policy.settings, memory, str(which))
    return sums


def check_marks(policy: Any, memory: Floats, statistics: Statistics) -> None:
    """Raise if the marks of a file do not match this policy's sums."""
    for name, track in statistics.tracks.items():
        marks = [*track.marks, *([track.base] if track.base is not None else [])]
        signals = {one for one, *_ in iter_signals(policy, memory)} if marks else set()
        now = get_signal_sums(policy, memory, name) if name in signals else None
        if marks and (now is None or not all(is_comparable(sums, now) for sums in marks)):
            raise InvalidProblem(
                ErrorCode.STATE_MISMATCH, "the stored drift statistics do not match this policy's sums"
            )


def is_comparable(earlier: Sums, later: Sums) -> bool:
    """Return whether sums can be of an earlier time: the same shapes, except for segments that are new since."""
    if set(earlier) != set(later) or not all(np.isfinite(value).all() for value in earlier.values()):
        return False
    cells = {name for name in later if name.startswith("totals") and later[name].ndim == 1}
    cells |= {name.replace("totals", "pulls") for name in cells}
    return all(
        value.shape == later[name].shape or (name in cells and value.ndim == 1 and value.size <= later[name].size)
        for name, value in earlier.items()
    ) and all(earlier[name].size == earlier[name.replace("totals", "pulls")].size for name in cells)


def build_drift_cause(policy: Any, signal: int, moved: MeanChange) -> ReasonDetails:
    """Return the cause of a drift, in the user's units."""
    names, several_means = (policy.reward_name, *policy.thresholds.names), moved.means is not None and moved.cells > 1
    early, late = moved.means or (math.nan, math.nan)
    return ReasonDetails.of(
        Reason.ASSUMPTION_CONTRADICTED,
        found=Contradiction.DRIFT,
        limit=names[signal],
        action=None if moved.action < 0 else policy.describe_action(moved.action, moved.word),
        segment=None if moved.segment is None else get_segment_name(moved.segment),
        early=moved.early,
        late=moved.late,
        unit=moved.unit,
        early_mean=policy.to_user_units(signal, early),
        late_mean=policy.to_user_units(signal, late),
        weighted_by=None if not several_means else moved.word if moved.action < 0 else "segment",
    )
