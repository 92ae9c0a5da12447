"""Means that moved: what was seen before a mark against what was seen after it (docs/theory/watch.md, Proposition 3).

A mark is how the sums of a signal's model stood at some time. What came before it and what came after are two samples
of the same means. Where no means explain both, they moved, but with probability a. Every signal has marks of its own,
set and looked at by the number of its own outcomes, so that an agent and a server that learn the same find the same.
"""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from stagewise.kernels.compile import Floats
from stagewise.kernels.layout import Part
from stagewise.models.answers import Moved, Sums, answers_of, between, seen_in
from stagewise.models.part import parts_in
from stagewise.policies.agent.notes import LOOK_AFTER, NEVER, Notes, Track
from stagewise.policies.settings import FALSE_ALARMS
from stagewise.problem.errors import InvalidProblem
from stagewise.problem.naming import name_of_segment
from stagewise.records.reason import Cause, Contradiction, Reason

FEWEST = 32  # outcomes, before the first mark
SOON, OFTEN = 1024, 64  # outcomes between looks: half of all that were seen, up to so many, then this part of all


def tested(policy: Any, memory: Floats) -> Iterator[tuple[str, int, int, Part]]:
    """Yield every signal by name and number, with the number of its part and the part."""
    names = (policy.reward_name, *policy.thresholds.names)
    for which, part in enumerate(parts_in(policy.layout, memory)):
        for signal in range(part.first, part.first + part.signals):
            yield names[signal], signal, which, part


def look(policy: Any, memory: Floats, notes: Notes, at_once: bool = False) -> list[str]:
    """Hold the means of signals that are due against earlier ones, and return those that moved.

    `at_once` looks at all. A signal is due by the number of its own outcomes; `notes.rest` is set to how often
    something can be learned before one is.
    """
    found, notes.rest = list[str](), NEVER
    if not getattr(policy, "has_parts", False) or not policy.thresholds.names:
        return found
    held: dict[int, Sums | None] = {}
    for name, signal, which, part in tested(policy, memory):
        count = answers_of(part).count(part, policy.settings, memory)
        if count is None:
            continue
        track = notes.track_of(name)
        if at_once or count >= track.look_at:
            if which not in held:
                held[which] = sums_in(policy, memory, which, part)
            now = held[which]
            if now is not None:
                compare(policy, memory, track, signal, which, part, now)
                found += [name] * (track.moved is not None)
        notes.rest = min(notes.rest, max(int(track.look_at - count), 1))
    return found


def compare(policy: Any, memory: Floats, track: Track, signal: int, which: int, part: Part, now: Sums) -> None:
    """Hold the mean of a signal against every mark of it, set a mark where it is time, and say when to look next."""
    track.moved = moved_in(policy, memory, track, signal, which, part, now)
    start, seen = (0.0 if track.base is None else seen_in(track.base)), seen_in(now)
    last = seen_in(track.marks[-1]) if track.marks else start
    track.compared = (int(last - start), int(seen - last)) if track.marks else None
    kept, growth = answers_of(part).kept_marks, 2.0 ** (1.0 / answers_of(part).per_doubling)
    if seen - start >= max(growth * (last - start), FEWEST):
        track.marks = [*track.marks, now][-kept:]
        track.marked += 1
    since = int(seen - start)
    track.look_at = int(seen) + max(LOOK_AFTER, min(since // 2, SOON), since // OFTEN)


def moved_in(policy: Any, memory: Floats, track: Track, signal: int, which: int, part: Part, now: Sums) -> Cause | None:
    """Return between what a signal moved since one of its marks; None: no mark says so."""
    if not track.marks:
        return None
    answers = answers_of(part)
    marks = [between(track.base, sums) for sums in (*track.marks, now)]
    numbers = range(track.marked - len(track.marks), track.marked)
    alarms = [alarm_of(number, answers.per_doubling) for number in numbers]
    its = answers.moved(part, policy.settings, memory, marks, str(which), alarms)
    found = [one for one in its if part.first + one.signal == signal]
    return cause_of(policy, signal, max(found, key=Moved.distance)) if found else None


def alarm_of(number: int, per_doubling: int) -> float:
    """Return log 1/a' of a mark: those of the i-th doubling share a/i(i+1)."""
    doubling = 1 + number // per_doubling
    return math.log(per_doubling * doubling * (doubling + 1) / FALSE_ALARMS)


def sums_in(policy: Any, memory: Floats, which: int, part: Part) -> Sums | None:
    """Return what a mark holds of a part, such as the pulls and totals of arms; None: its model has no such sums."""
    return answers_of(part).sums(part, policy.settings, memory, str(which))


def sums_of(policy: Any, memory: Floats, name: str) -> Sums | None:
    """Return the same of a signal's part."""
    its = next((which, part) for one, _, which, part in tested(policy, memory) if one == name)
    return sums_in(policy, memory, *its)


def check_marks(policy: Any, memory: Floats, notes: Notes) -> None:
    """Refuse marks of a file that are none of this policy's: they are held against its sums."""
    for name, track in notes.tracks.items():
        held = [*track.marks, *([track.base] if track.base is not None else [])]
        known = {one for one, *_ in tested(policy, memory)} if held else set()
        now = sums_of(policy, memory, name) if name in known else None
        if held and (now is None or not all(comparable(sums, now) for sums in held)):
            raise InvalidProblem("its marks of earlier means have another form than this policy's sums")


def comparable(earlier: Sums, later: Sums) -> bool:
    """Say whether sums can be of an earlier time: as many, of the same shapes but where segments were met since."""
    if set(earlier) != set(later) or not all(np.isfinite(value).all() for value in earlier.values()):
        return False
    cells = {name for name in later if name.startswith("totals") and later[name].ndim == 1}
    cells |= {name.replace("totals", "pulls") for name in cells}
    return all(
        value.shape == later[name].shape or (name in cells and value.ndim == 1 and value.size <= later[name].size)
        for name, value in earlier.items()
    ) and all(earlier[name].size == earlier[name.replace("totals", "pulls")].size for name in cells)


def cause_of(policy: Any, signal: int, moved: Moved) -> Cause:
    """Return between what a signal moved, in the user's units."""
    names, several_means = (policy.reward_name, *policy.thresholds.names), moved.means is not None and moved.cells > 1
    early, late = moved.means or (math.nan, math.nan)
    return Cause.of(
        Reason.CONTRADICTION,
        found=Contradiction.DRIFT,
        limit=names[signal],
        action=None if moved.place < 0 else policy.called(moved.place, moved.word),
        segment=None if moved.segment is None else name_of_segment(moved.segment),
        early=moved.early,
        late=moved.late,
        unit=moved.unit,
        early_mean=policy.in_units(signal, early),
        late_mean=policy.in_units(signal, late),
        weighted_by=None if not several_means else moved.word if moved.place < 0 else "segment",
    )
