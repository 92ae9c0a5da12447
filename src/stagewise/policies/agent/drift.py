"""Means that moved: what was seen before a mark against what was seen after it (docs/theory/watch.md, Proposition 3).

A mark is how sums stood at some time. What came before it and what came after give two confidence sets of the same
means, each for all times at once. Where they have no point in common, the means moved, but with probability a.
"""

import math
from typing import Any

import numpy as np

from stagewise.kernels.compile import Floats, Ints, named
from stagewise.kernels.layout import APIECE, ARMS, CELLS, RIDGE, Part
from stagewise.kernels.signals.apiece import piece_of
from stagewise.kernels.signals.arms import KL, declared_of_arms, means_of
from stagewise.kernels.signals.cells import fill_tallies, least_of, slots_of
from stagewise.kernels.signals.interval import kl_interval
from stagewise.kernels.signals.ridge import declared_of_ridge, frame_of, summed
from stagewise.models.part import parts_in
from stagewise.policies.agent.by_segment import segments_in
from stagewise.policies.agent.notes import Notes, Track
from stagewise.policies.settings import FALSE_ALARMS
from stagewise.problem.errors import InvalidProblem
from stagewise.problem.naming import name_of_segment
from stagewise.problem.words import several

STATED, FRAME, SUMMED = named(declared_of_ridge), named(frame_of), named(summed)
MEANS_OF, STATED_OF_ARMS, INTERVAL = named(means_of), named(declared_of_arms), named(kl_interval)
PIECE, SLOTS, FILL, LEAST = named(piece_of), named(slots_of), named(fill_tallies), named(least_of)
MARKS = 4  # that are kept; each time twice as much was seen as at the last
FEWEST = 32  # outcomes, before the first mark
LARGEST = 200  # features of a regression that is held against its past
SHARES = np.linspace(0.1, 0.9, 9)


Sums = dict[str, Any]


def sums_of(layout: Ints, settings: Floats, memory: Floats) -> Sums | None:
    """Return what a mark holds: of arms pulls and totals, of regressions Σ zzᵀ and Σ yz; None: a model has neither."""
    held: Sums = {}
    for which, part in enumerate(parts_in(layout, memory)):
        if part.kind == ARMS:
            seen = MEANS_OF(part, memory)
            held[f"pulls {which}"], held[f"totals {which}"] = seen.pulls.copy(), seen.pulls * seen.means
            held[f"seen {which}"] = np.array(seen.pulls.sum())
        elif part.kind == RIDGE and part.size <= LARGEST:
            held |= regressed(part, settings, str(which))
        elif part.kind == APIECE and part.size <= LARGEST:
            for action in range(part.detail):
                held |= regressed(PIECE(part, memory, action), settings, f"{which}.{action}")
        elif part.kind == CELLS:
            pulls, totals = np.zeros((2, SLOTS(part, memory) * part.size))
            FILL(part, memory, pulls, totals)
            last = int(np.max(np.flatnonzero(pulls), initial=-1)) + 1  # cells stand in the order of their segments
            held[f"pulls {which}"], held[f"totals {which}"] = pulls[:last], totals[:last]
            held[f"seen {which}"] = np.array(pulls.sum())
        else:
            return None
    return held


def regressed(part: Part, settings: Floats, which: str) -> Sums:
    """Return what a mark holds of one regression."""
    seen = SUMMED(part)
    root = np.linalg.inv(np.tril(seen.root))
    matrix = root @ root.T  # V, as V⁻¹ = TᵀT
    return {
        f"squares {which}": matrix - FRAME(part, settings).ridge * np.eye(part.size),
        f"sums {which}": seen.fits @ matrix,
        f"seen {which}": np.array(seen.taken),
    }


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
            for signal, words in part_moved(policy, part, memory, early, late, which, alarm).items():
                found.setdefault(part.first + signal, words)
    return found


def part_moved(
    policy: Any, part: Part, memory: Floats, early: Sums, late: Sums, which: int, alarm: float
) -> dict[int, str]:
    """Return which signals of a part moved, and in words between what."""
    settings = policy.settings
    if part.kind == ARMS:
        return arms_moved(policy, part, early, late, which, alarm)
    if part.kind == CELLS:
        return cells_moved(policy, part, memory, early, late, which, alarm)
    if part.kind == RIDGE:
        return regression_moved(part, settings, early, late, str(which), alarm)
    found: dict[int, str] = {}
    for action in range(part.detail):
        piece, shared = PIECE(part, memory, action), alarm + math.log(part.detail)
        for signal, words in regression_moved(piece, settings, early, late, f"{which}.{action}", shared).items():
            found.setdefault(signal, f"of {policy.called(action)} {words}")
    return found


def segment_at(part: Part, memory: Floats, place: int) -> str:
    """Return the name of the segment that was met at a place."""
    return name_of_segment(int(segments_in(part, memory)[0][place]))


def cells_moved(
    policy: Any, part: Part, memory: Floats, early: Sums, late: Sums, which: int, alarm: float
) -> dict[int, str]:
    """Return whether an action's earlier and later rates in one segment have no value in common."""
    low = float(LEAST(part, policy.settings))
    first, second = early[f"pulls {which}"], late[f"pulls {which}"]
    for cell in np.flatnonzero((first > 0.0) & (second[: first.size] > 0.0)).tolist():
        segment = cell // part.size + 1
        confidence = alarm + math.log(part.size * segment * (segment + 1))
        n, m = float(first[cell]), float(second[cell])
        one, other = float(early[f"totals {which}"][cell]) / n, float(late[f"totals {which}"][cell]) / m
        if parted(n, one, m, other, confidence):
            before, after = (policy.in_words(part.first, low + mean) for mean in (one, other))
            where = "" if part.detail < 0 else f" in {segment_at(part, memory, segment - 1)!r}"
            what = f"{before} in the first {several(n)} and {after} in the {m:,.0f} after"
            return {0: f"of {policy.called(cell % part.size)}{where} it averaged {what}"}
    return {}


def arms_moved(policy: Any, part: Part, early: Sums, late: Sums, which: int, alarm: float) -> dict[int, str]:
    """Return the signals of which an arm's earlier and later means have no value in common."""
    declared, confidence = STATED_OF_ARMS(part, policy.settings), alarm + math.log(part.size)
    found: dict[int, str] = {}
    first, second = early[f"pulls {which}"], late[f"pulls {which}"]
    for arm in np.flatnonzero((first > 0.0) & (second > 0.0)).tolist():
        n, m = float(first[arm]), float(second[arm])
        for signal in range(part.signals):
            one, other = (
                float(early[f"totals {which}"][signal, arm]) / n,
                float(late[f"totals {which}"][signal, arm]) / m,
            )
            noise, low = float(declared.noise[signal]), float(declared.low[signal])
            if part.radius < KL:
                apart = abs(one - other) > radius(n, noise, confidence) + radius(m, noise, confidence)
            else:
                apart = parted(n, one - low, m, other - low, confidence)
            if apart:
                before, after = (policy.in_words(part.first + signal, mean) for mean in (one, other))
                what = f"{before} in the first {several(n, 'pull')} and {after} in the {m:,.0f} after"
                found.setdefault(signal, f"of {policy.called(arm, 'arm')} it averaged {what}")
    return found


def parted(n: float, one: float, m: float, other: float, confidence: float) -> bool:
    """Say whether means of numbers in [0, 1] have no value in common, by the intervals "kl"."""
    centre = min(max((n * one + m * other) / (n + m), 0.0), 1.0)
    if abs(one - other) <= 3.0 * math.sqrt(centre * (1.0 - centre) * (1.0 / n + 1.0 / m)):
        return False  # three standard errors, which the intervals at this level surely overlap at
    before, after = INTERVAL(n, one, confidence), INTERVAL(m, other, confidence)
    return before.high < after.low or after.high < before.low


def radius(count: float, noise: float, confidence: float) -> float:
    """Return the radius of the mean of n R-sub-Gaussian numbers, for all n at once (docs/theory/arms.md)."""
    return noise * math.sqrt((1.0 + 1.0 / count) * (math.log1p(count) + 2.0 * confidence) / count)


def regression_moved(part: Part, settings: Floats, early: Sums, late: Sums, which: str, alarm: float) -> dict[int, str]:
    """Return the signals whose earlier and later ellipsoids have no parameter in common.

    ‖θ − θ₁‖²_A ≤ 1 and ‖θ − θ₂‖²_B ≤ 1 have none where for some w in (0, 1) w‖θ − θ₁‖²_A + (1 − w)‖θ − θ₂‖²_B > 1 for
    all θ; its minimum is dᵀ((wA)⁻¹ + ((1 − w)B)⁻¹)⁻¹d, with d = θ₁ − θ₂.
    """
    declared, ridge, found = STATED(part, settings), FRAME(part, settings).ridge, {}
    matrices = [sums[f"squares {which}"] + ridge * np.eye(part.size) for sums in (early, late)]
    inverses = [np.linalg.inv(matrix) for matrix in matrices]
    spreads = [max(float(np.linalg.slogdet(matrix / ridge)[1]), 0.0) for matrix in matrices]
    for signal in range(part.signals):
        noise, bound = float(declared.noise[signal]), float(declared.bound[signal])
        radii = [noise * math.sqrt(spread + 2.0 * alarm) + bound * math.sqrt(ridge) for spread in spreads]
        apart = inverses[0] @ early[f"sums {which}"][signal] - inverses[1] @ late[f"sums {which}"][signal]
        one, other = radii[0] ** 2 * inverses[0], radii[1] ** 2 * inverses[1]
        if any(apart @ np.linalg.solve(one / w + other / (1.0 - w), apart) > 1.0 for w in SHARES):
            counts = [float(sums[f"seen {which}"]) for sums in (early, late)]
            found[signal] = f"no one parameter explains the first {several(counts[0])} and the {counts[1]:,.0f} after"
    return found
