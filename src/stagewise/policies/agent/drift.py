"""Means that moved: what was seen before a mark against what was seen after it (docs/theory/watch.md, Proposition 3).

A mark is how sums stood at some time. What came before it and what came after give two confidence sets of the same
means, each for all times at once. Where they have no point in common, the means moved, but with probability a.
"""

import math
from typing import Any

import numpy as np

from stagewise.kernels.compile import Floats, Ints
from stagewise.models.answers import Moved, Sums, answers_of
from stagewise.models.part import parts_in
from stagewise.policies.agent.notes import Notes, Track
from stagewise.policies.settings import FALSE_ALARMS
from stagewise.problem.errors import InvalidProblem
from stagewise.problem.naming import name_of_segment
from stagewise.problem.words import several

MARKS = 4  # that are kept; each time twice as much was seen as at the last
FEWEST = 32  # outcomes, before the first mark


def sums_of(layout: Ints, settings: Floats, memory: Floats) -> Sums | None:
    """Return what a mark holds, part by part, such as the pulls and totals of arms; None: a model has no such sums."""
    held: Sums = {}
    for which, part in enumerate(parts_in(layout, memory)):
        sums = answers_of(part).sums(part, settings, memory, str(which))
        if sums is None:
            return None
        held |= sums
    return held


def between(earlier: Sums | None, later: Sums) -> Sums:
    """Return what came between two marks."""
    return later if earlier is None else {name: less(value, earlier[name]) for name, value in later.items()}


def less(later: Any, earlier: Any) -> Any:
    """Return the difference of sums; cells that were met in between had none before."""
    if later.ndim == 1 and later.size > earlier.size:
        earlier = np.concatenate([earlier, np.zeros(later.size - earlier.size)])
    return later - earlier


def seen_in(sums: Sums) -> float:
    """Return how many outcomes these are."""
    return max((float(value) for name, value in sums.items() if name.startswith("seen")), default=0.0)


def marked(notes: Notes, now: Sums) -> None:
    """Keep how sums stand now, where twice as much was seen as at the last mark."""
    for track in notes.tracks:
        last = seen_in(between(track.base, track.marks[-1])) if track.marks else 0.0
        if seen_in(between(track.base, now)) >= max(2.0 * last, FEWEST):
            track.marks = [*track.marks, now][-MARKS:]
            track.marked += 1


def check_marks(policy: Any, memory: Floats, notes: Notes) -> None:
    """Refuse marks of a file that are none of this policy's: they are held against its sums."""
    held = [sums for track in notes.tracks for sums in (*track.marks, *([track.base] if track.base else []))]
    now = sums_of(policy.layout, policy.settings, memory) if held else None
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


def moved(policy: Any, memory: Floats, notes: Notes, now: Sums) -> dict[int, str]:
    """Return which signals moved, 0 the reward, and in words between what."""
    names, found = (policy.reward_name, *policy.thresholds.names), dict[int, str]()
    for track in notes.tracks:
        its = {signal for signal, name in enumerate(names) if notes.track_of(name) is track}
        found |= {signal: words for signal, words in moved_in(policy, memory, track, now).items() if signal in its}
    return found


def moved_in(policy: Any, memory: Floats, track: Track, now: Sums) -> dict[int, str]:
    """Return which signals moved since the marks of one track."""
    found: dict[int, str] = {}
    for place, mark in enumerate(track.marks):
        number = track.marked - len(track.marks) + place + 1
        alarm = math.log(2.0 * number * (number + 1) / FALSE_ALARMS)  # of either side
        early, late = between(track.base, mark), between(mark, now)
        for which, part in enumerate(parts_in(policy.layout, memory)):
            told = part, policy.settings, memory, early, late, str(which), alarm
            for one in answers_of(part).moved(*told):
                signal = part.first + one.signal
                found.setdefault(signal, in_words(policy, signal, one))
    return found


def in_words(policy: Any, signal: int, moved: Moved) -> str:
    """Return between what a signal moved."""
    whose = "" if moved.place < 0 else f"of {policy.called(moved.place, moved.word)} "
    where = "" if moved.segment is None else f"in {name_of_segment(moved.segment)!r} "
    before, after = several(moved.early, moved.unit), f"the {moved.late:,.0f} after"
    if moved.means is None:
        return f"{whose}{where}no one parameter explains the first {before} and {after}"
    early, late = (policy.in_words(signal, mean) for mean in moved.means)
    return f"{whose}{where}it averaged {early} in the first {before} and {late} in {after}"
