"""What runs come to: a row of a table, curves with bands, and how well what was said fits what was."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import starmap
from multiprocessing import get_context
from typing import Any

import numpy as np

from stagewise.kernels.compile import Floats, Ints
from stagewise.records.reason import Reason
from stagewise_studies.replay import Chooser, People, Track, over
from stagewise_studies.study import DRAWN, GUARDED, SAFE, TODAY

WINDOWS = 40  # points of a curve
LAST = 0.8  # the last fifth of the rounds
SHORT = 100_000  # rounds that are not worth a second process


def played(people: People, policies: Mapping[str, Chooser], seeds: int, rounds: int) -> dict[str, list[Track]]:
    """Play every policy once for each seed, with the same people in the same order; on all cores where that is long."""
    jobs = [(policy, people, rounds, seed) for policy in policies.values() for seed in range(seeds)]
    if len(jobs) * rounds < SHORT:
        tracks = list(starmap(played_once, jobs))
    else:
        with ProcessPoolExecutor(mp_context=get_context("spawn")) as workers:
            tracks = list(workers.map(played_once, *zip(*jobs, strict=True)))
    return {name: tracks[place * seeds : (place + 1) * seeds] for place, name in enumerate(policies)}


def played_once(policy: Chooser, people: People, rounds: int, seed: int) -> Track:
    """Play one run: a function of its own, so that processes can be given it."""
    return policy.play(people, rounds, seed)


def told(tracks: Mapping[str, list[Track]], way: str, limit: float, limits: Mapping[str, float]) -> dict[str, Any]:
    """Return what every study tells; `way` is how the limit's groups are made, `limits` are those of other policies."""
    curves = {name: curve(tracks[name], tracks[SAFE]) for name in DRAWN}
    return {
        "limit": limit,
        "rows": [row(name, runs, way, limits.get(name, limit)) for name, runs in tracks.items()],
        "curves": curves,
        "passes_today": passes(curves, GUARDED, TODAY, tracks[GUARDED][0].cost.size),
    }


def row(name: str, tracks: Sequence[Track], way: str, limit: float, window: int = 500) -> dict[str, Any]:
    """Return a policy's line of the table; `way` is how the limit's groups are made."""
    late = [slice(int(LAST * track.cost.size), None) for track in tracks]
    broken = [over(track, way, limit) for track in tracks]
    return {
        "policy": name,
        "reward": mean([track.reward.mean() for track in tracks]),
        "reward, last fifth": mean([t.reward[end].mean() for t, end in zip(tracks, late, strict=True)]),
        "cost": mean([track.cost.mean() for track in tracks]),
        "cost, last fifth": mean([t.cost[end].mean() for t, end in zip(tracks, late, strict=True)]),
        f"worst {window} rounds": max(float(windowed(track.cost, track.cost.size // window).max()) for track in tracks),
        "rounds over the limit": mean([flags.mean() for flags in broken]),
        "runs over the limit": int(sum(flags.any() for flags in broken)),
        "runs stopped": len(stopped(tracks)),
    }


def stopped(tracks: Sequence[Track]) -> list[int]:
    """Return the rounds in which agents found that the data contradict what was declared, of the runs where one did."""
    return [at for at, _ in contradictions(tracks)]


def contradictions(tracks: Sequence[Track]) -> list[tuple[int, str]]:
    """Return the first contradiction of each run where there was one: its round, and its sentence."""
    found = [(track.fallbacks or {}).get(Reason.CONTRADICTION) for track in tracks]
    return [one for one in found if one is not None]


def passes(curves: Mapping[str, Any], one: str, other: str, rounds: int) -> int | None:
    """Return from which round on the mean reward of one stays above that of the other; None: not at the end either."""
    above = np.array(curves[one]["gain"]["middle"]) > np.array(curves[other]["gain"]["middle"])
    if not above[-1]:
        return None
    return int(rounds * (above.size - np.argmin(above[::-1]) if not above.all() else 0) / above.size)


def curve(tracks: Sequence[Track], base: Sequence[Track]) -> dict[str, Any]:
    """Return reward against a baseline and cost, window by window: the mean over runs, and the middle four fifths."""
    gain = [windowed(t.reward - b.reward, WINDOWS) for t, b in zip(tracks, base, strict=True)]
    return {"gain": spread(np.array(gain)), "cost": spread(np.array([windowed(t.cost, WINDOWS) for t in tracks]))}


def spread(values: Floats) -> dict[str, list[float]]:
    """Return the mean of runs (runs, x) and where the middle four fifths of them lie."""
    low, high = np.quantile(values, [0.1, 0.9], axis=0)
    ends = {"low": low, "middle": values.mean(axis=0), "high": high}
    return {end: np.round(curve, 5).tolist() for end, curve in ends.items()}


def windowed(values: Floats, windows: int) -> Floats:
    """Return the means of so many equal stretches; what is left over at the end is dropped."""
    windows = max(windows, 1)
    length = values.size // windows
    return np.asarray(values[: windows * length].reshape(windows, length).mean(axis=1))


def by_group(people: People, tracks: Sequence[Track], way: str, signal: str = "cost") -> list[float]:
    """Return the mean cost, or reward, of what was done to each group's people in the last fifth of the rounds."""
    of = people.groups[way]
    sums, counts = np.zeros(int(of.max()) + 1), np.zeros(int(of.max()) + 1)
    for track in tracks:
        end = slice(int(LAST * track.cost.size), None)
        np.add.at(sums, of[track.people[end]], getattr(track, signal)[end])
        np.add.at(counts, of[track.people[end]], 1.0)
    return [round(float(value), 4) for value in sums / np.maximum(counts, 1.0)]


def worst_group(people: People, tracks: Sequence[Track], way: str, least: int = 100) -> dict[str, Any] | None:
    """Return the dearest group of at least so many people, by what was done to them in the last fifth."""
    sizes, costs = np.bincount(people.groups[way]).tolist(), by_group(people, tracks, way)
    names = people.labels.get(way, [str(place) for place in range(len(sizes))])
    large = [place for place, size in enumerate(sizes) if size >= least]
    worst = max(large, key=costs.__getitem__, default=None)
    return None if worst is None else {"group": names[worst], "people": sizes[worst], "cost": costs[worst]}


def shares_over(tracks: Sequence[Track], ways: Sequence[str], limit: float) -> dict[str, float]:
    """Return for each way of dividing people the share of rounds in which the group's expected cost was over."""
    return {way: mean([over(track, way, limit).mean() for track in tracks]) for way in ways}


def said_and_seen(tracks: Sequence[Track], bins: int = 10) -> list[dict[str, float]]:
    """Return, by decile of what an agent said that a round costs at most, what those rounds cost."""
    said = np.concatenate([track.feared for track in tracks if track.feared is not None])
    return deciles(said, np.concatenate([track.cost for track in tracks]), bins)


def linear_misfit(features: Floats, people: People) -> dict[str, Any]:
    """Fit every action's cost by least squares to everybody, and hold what is predicted against what is known.

    No agent can do better with this form: what the deciles are off by is the form's own fault, and stays.
    """
    rows, on = np.column_stack([np.ones(len(features)), features]), people.on_offer()
    fitted = np.zeros(people.cost.shape)
    for place in range(len(people.actions)):
        who = on[:, place]
        fitted[:, place] = rows @ np.linalg.lstsq(rows[who], people.cost[who, place], rcond=None)[0]
    table = [deciles(fitted[on[:, a], a], people.cost[on[:, a], a]) for a in range(len(people.actions))]
    gaps = [cell["seen"] - cell["said"] for cells in table for cell in cells]
    return {
        "deciles": dict(zip(people.actions, table, strict=True)),
        "largest gap": round(max(map(abs, gaps)), 4),
        "typical gap": round(float(np.sqrt(np.mean(np.square(gaps)))), 4),
    }


def deciles(said: Floats, seen: Floats, bins: int = 10) -> list[dict[str, float]]:
    """Return the means of what was said and seen in equal parts by what was said."""
    order = np.argsort(said, kind="stable")
    parts = [part for part in np.array_split(order, bins) if part.size]
    return [{"said": round(float(said[p].mean()), 4), "seen": round(float(seen[p].mean()), 4)} for p in parts]


def groups_of(labels: Sequence[str]) -> tuple[Ints, list[str]]:
    """Return for each label the number of its group, and the names of the groups in order.

    >>> groups_of(["b", "a", "b"])
    (array([1, 0, 1]), ['a', 'b'])
    """
    names, of = np.unique(np.array(labels), return_inverse=True)
    return of, [str(name) for name in names]


def mean(values: Sequence[Any]) -> float:
    """Return a mean as JSON holds it."""
    return round(float(np.mean(values)), 5)
