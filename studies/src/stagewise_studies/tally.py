"""Summaries of runs: table rows, curves with bands, and calibration."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import starmap
from multiprocessing import get_context
from typing import Any

import numpy as np

from stagewise.engine.compile import Floats, Ints
from stagewise.records.reason import FallbackReason
from stagewise_studies.replay import People, StudyPolicy, Track, is_over_limit
from stagewise_studies.study import DRAWN, GUARDED, SAFE, TODAY

WINDOWS = 40  # points of a curve
LAST = 0.8  # the last fifth of the rounds
SHORT = 100_000  # rounds below which one process is used


def simulate_policies(
    people: People, policies: Mapping[str, StudyPolicy], seeds: int, rounds: int
) -> dict[str, list[Track]]:
    """Simulate every policy once per seed, with the same people in the same order; on all cores if it is long."""
    jobs = [(policy, people, rounds, seed) for policy in policies.values() for seed in range(seeds)]
    if len(jobs) * rounds < SHORT:
        tracks = list(starmap(simulate_once, jobs))
    else:
        with ProcessPoolExecutor(mp_context=get_context("spawn")) as workers:
            tracks = list(workers.map(simulate_once, *zip(*jobs, strict=True)))
    return {name: tracks[index * seeds : (index + 1) * seeds] for index, name in enumerate(policies)}


def simulate_once(policy: StudyPolicy, people: People, rounds: int, seed: int) -> Track:
    """Simulate one run, in any process."""
    return policy.play(people, rounds, seed)


def build_result(
    tracks: Mapping[str, list[Track]], way: str, limit: float, limits: Mapping[str, float]
) -> dict[str, Any]:
    """Return the common part of a result; `way` is the division of the limit, `limits` are those of other policies."""
    curves = {name: compute_curve(tracks[name], tracks[SAFE]) for name in DRAWN}
    return {
        "limit": limit,
        "rows": [build_row(name, runs, way, limits.get(name, limit)) for name, runs in tracks.items()],
        "curves": curves,
        "passes_today": find_passing_round(curves, GUARDED, TODAY, tracks[GUARDED][0].cost.size),
    }


def build_row(name: str, tracks: Sequence[Track], way: str, limit: float, window: int = 500) -> dict[str, Any]:
    """Return a policy's row of the table; `way` is the division of the limit."""
    late = [slice(int(LAST * track.cost.size), None) for track in tracks]
    broken = [is_over_limit(track, way, limit) for track in tracks]
    return {
        "policy": name,
        "reward": mean([track.reward.mean() for track in tracks]),
        "reward, last fifth": mean([t.reward[end].mean() for t, end in zip(tracks, late, strict=True)]),
        "cost": mean([track.cost.mean() for track in tracks]),
        "cost, last fifth": mean([t.cost[end].mean() for t, end in zip(tracks, late, strict=True)]),
        f"worst {window} rounds": max(
            float(compute_window_means(track.cost, track.cost.size // window).max()) for track in tracks
        ),
        "rounds over the limit": mean([flags.mean() for flags in broken]),
        "runs over the limit": int(sum(flags.any() for flags in broken)),
        "runs stopped": len(list_stopped_rounds(tracks)),
    }


def list_stopped_rounds(tracks: Sequence[Track]) -> list[int]:
    """Return the rounds in which agents found a contradiction, of the runs with one."""
    return [at for at, _ in list_contradictions(tracks)]


def list_contradictions(tracks: Sequence[Track]) -> list[tuple[int, str]]:
    """Return the first contradiction of each run with one: its round and its message."""
    found = [(track.fallbacks or {}).get(FallbackReason.ASSUMPTION_CONTRADICTED) for track in tracks]
    return [one for one in found if one is not None]


def find_passing_round(curves: Mapping[str, Any], one: str, other: str, rounds: int) -> int | None:
    """Return the round from which the mean reward of one stays above that of the other; None: there is none."""
    above = np.array(curves[one]["gain"]["middle"]) > np.array(curves[other]["gain"]["middle"])
    if not above[-1]:
        return None
    return int(rounds * (above.size - np.argmin(above[::-1]) if not above.all() else 0) / above.size)


def compute_curve(tracks: Sequence[Track], base: Sequence[Track]) -> dict[str, Any]:
    """Return gain over a baseline and cost by window: the mean over runs, and the middle 80 %."""
    gain = [compute_window_means(t.reward - b.reward, WINDOWS) for t, b in zip(tracks, base, strict=True)]
    return {
        "gain": compute_band(np.array(gain)),
        "cost": compute_band(np.array([compute_window_means(t.cost, WINDOWS) for t in tracks])),
    }


def compute_band(values: Floats) -> dict[str, list[float]]:
    """Return the mean of runs (runs, x), and the ends of the middle 80 %."""
    low, high = np.quantile(values, [0.1, 0.9], axis=0)
    ends = {"low": low, "middle": values.mean(axis=0), "high": high}
    return {end: np.round(compute_curve, 5).tolist() for end, compute_curve in ends.items()}


def compute_window_means(values: Floats, windows: int) -> Floats:
    """Return the means of equal windows; the rest at the end is dropped."""
    windows = max(windows, 1)
    length = values.size // windows
    return np.asarray(values[: windows * length].reshape(windows, length).mean(axis=1))


def compute_costs_by_group(people: People, tracks: Sequence[Track], way: str, signal: str = "cost") -> list[float]:
    """Return the mean cost, or reward, of each group in the last fifth of the rounds."""
    groups = people.groups[way]
    sums, counts = np.zeros(int(groups.max()) + 1), np.zeros(int(groups.max()) + 1)
    for track in tracks:
        end = slice(int(LAST * track.cost.size), None)
        np.add.at(sums, groups[track.people[end]], getattr(track, signal)[end])
        np.add.at(counts, groups[track.people[end]], 1.0)
    return [round(float(value), 4) for value in sums / np.maximum(counts, 1.0)]


def find_worst_group(people: People, tracks: Sequence[Track], way: str, least: int = 100) -> dict[str, Any] | None:
    """Return the group with the largest cost in the last fifth, of those with at least `least` people."""
    sizes, costs = np.bincount(people.groups[way]).tolist(), compute_costs_by_group(people, tracks, way)
    names = people.labels.get(way, [str(index) for index in range(len(sizes))])
    large = [index for index, size in enumerate(sizes) if size >= least]
    worst = max(large, key=costs.__getitem__, default=None)
    return None if worst is None else {"group": names[worst], "people": sizes[worst], "cost": costs[worst]}


def compute_shares_over(tracks: Sequence[Track], ways: Sequence[str], limit: float) -> dict[str, float]:
    """Return by division the share of rounds in which the group's expected cost is over the limit."""
    return {way: mean([is_over_limit(track, way, limit).mean() for track in tracks]) for way in ways}


def compute_calibration(tracks: Sequence[Track], bins: int = 10) -> list[dict[str, float]]:
    """Return the mean cost by decile of the agent's upper bound."""
    predicted = np.concatenate([track.pessimistic_costs for track in tracks if track.pessimistic_costs is not None])
    return deciles(predicted, np.concatenate([track.cost for track in tracks]), bins)


def measure_linear_misfit(features: Floats, people: People) -> dict[str, Any]:
    """Fit every action's cost by least squares to everybody, and compare predictions with the truth by decile.

    The gaps are the bias of the linear form, which no agent can avoid.
    """
    rows, on = np.column_stack([np.ones(len(features)), features]), people.on_offer()
    fitted = np.zeros(people.cost.shape)
    for index in range(len(people.actions)):
        offered = on[:, index]
        fitted[:, index] = rows @ np.linalg.lstsq(rows[offered], people.cost[offered, index], rcond=None)[0]
    table = [deciles(fitted[on[:, a], a], people.cost[on[:, a], a]) for a in range(len(people.actions))]
    gaps = [cell["observed"] - cell["predicted"] for cells in table for cell in cells]
    return {
        "deciles": dict(zip(people.actions, table, strict=True)),
        "largest gap": round(max(map(abs, gaps)), 4),
        "typical gap": round(float(np.sqrt(np.mean(np.square(gaps)))), 4),
    }


def deciles(predicted: Floats, observed: Floats, bins: int = 10) -> list[dict[str, float]]:
    """Return predicted and observed means by decile of the prediction."""
    order = np.argsort(predicted, kind="stable")
    parts = [part for part in np.array_split(order, bins) if part.size]
    return [
        {"predicted": round(float(predicted[p].mean()), 4), "observed": round(float(observed[p].mean()), 4)}
        for p in parts
    ]


def encode_groups(labels: Sequence[str]) -> tuple[Ints, list[str]]:
    """Return the group code of each label, and the names of the groups in order.

    >>> encode_groups(["b", "a", "b"])
    (array([1, 0, 1]), ['a', 'b'])
    """
    names, groups = np.unique(np.array(labels), return_inverse=True)
    return groups, [str(name) for name in names]


def mean(values: Sequence[Any]) -> float:
    """Return a rounded mean for JSON."""
    return round(float(np.mean(values)), 5)
