"""Compare two certificates value by value, and test whether statements on all runs are possible."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from stagewise.engine.compile import Floats
from stagewise.reports.evidence import get_column
from stagewise.reports.result import Result

AGGREGATE_SECTIONS = (
    "first_violation",
    "optimism",
    "regret",
    "margins",
    "first_near_optimal_round",
)  # about all runs together
TOLERANCE = 1e-9


def find_differences(given: Any, expected: Any, near: float, more: bool = False, path: str = "it") -> Iterator[str]:
    """Yield the paths at which two JSON values differ: numbers by more than `near`, relative above 1.

    `more`: the expected value may have more keys than the given one.

    >>> list(find_differences({"a": [1.0, 2]}, {"a": [1.0 + 1e-12, 3]}, near=1e-9))
    ['it.a.1']
    """
    if isinstance(expected, dict) and isinstance(given, dict):
        if not given.keys() <= expected.keys() or (not more and given.keys() != expected.keys()):
            yield path
        for key in given.keys() & expected.keys():
            yield from find_differences(given[key], expected[key], near, more, f"{path}.{key}")
    elif isinstance(expected, list) and isinstance(given, list) and len(expected) == len(given):
        for i, (one, other) in enumerate(zip(given, expected, strict=True)):
            yield from find_differences(one, other, near, more, f"{path}.{i}")
    elif isinstance(expected, float) and isinstance(given, float | int) and not isinstance(given, bool):
        if not abs(given - expected) <= near * max(1.0, abs(expected)):
            yield path
    elif type(given) is not type(expected) or given != expected:
        yield path


def is_histogram_consistent(given: dict[str, Any], values: Floats, near: float) -> bool:
    """Say whether counts fit the values; a value within `near` of an edge may be on either side."""
    edges, below = np.array(given["edges"]), np.concatenate([[0], np.cumsum(given["counts"])])
    ordered = np.sort(values)
    least, most = np.searchsorted(ordered, edges - near, "left"), np.searchsorted(ordered, edges + near, "right")
    return bool(np.all((least <= below) & (below <= most)))


def find_impossible(content: dict[str, Any], played: Result, near: float) -> Iterator[str]:
    """Yield the sections that their own numbers, the totals of the batches or the played runs rule out."""
    runs, margins = content["violations"]["runs"], list(content["margins"].values())
    first, optimism, regret, first_near_optimal_round = (
        content[name] for name in ("first_violation", "optimism", "regret", "first_near_optimal_round")
    )
    worst = np.min([batch["margin"] for batch in content["batches"]], axis=0).tolist()
    lows = [one["quantiles"]["0"] for one in margins]
    possible_by_section = {
        "first_violation": (first is None) == (content["violations"]["occurrences"] == 0),
        "optimism": optimism is None or optimism["runs"] <= min(runs, optimism["rounds"]),
        "regret": (regret["above"] or 0) <= runs,
        "margins": all(sum(one["counts"]) == runs for one in margins) and not any(find_differences(lows, worst, near)),
        "first_near_optimal_round": first_near_optimal_round["never"] <= runs
        and (first_near_optimal_round["quantiles"] is None) == (first_near_optimal_round["never"] == runs),
    }
    yield from (name for name, possible in possible_by_section.items() if not possible)
    yield from (
        name for name, cuts, values in iterate_quantiles(content, played) if not covers_values(cuts, values, near)
    )


def iterate_quantiles(content: dict[str, Any], played: Result) -> Iterator[tuple[str, dict[str, float] | None, Floats]]:
    """Yield the quantiles of each section, with the values of the played runs."""
    for name, cuts in (
        ("first_violation", content["first_violation"]),
        ("first_near_optimal_round", content["first_near_optimal_round"]["quantiles"]),
    ):
        rounds = get_column(played, name)
        yield name, cuts, rounds[rounds > 0]
    for one, values in zip(content["margins"].values(), get_column(played, "margin").T, strict=False):
        yield "margins", one["quantiles"], values
    curves = content["regret"]["quantiles"]
    for row, values in zip(zip(*curves.values(), strict=True), played.regret.T, strict=False):
        yield "regret", dict(zip(curves, row, strict=True)), values


def covers_values(cuts: dict[str, float] | None, values: Floats, near: float) -> bool:
    """Say whether quantiles increase and contain all values; None: there are no values."""
    if cuts is None:
        return values.size == 0
    ordered = [cuts[level] for level in sorted(cuts, key=float)]
    grow = all(one <= other + TOLERANCE * max(1.0, abs(other)) for one, other in pairwise(ordered))
    room = near * max(1.0, abs(cuts["0"]), abs(cuts["1"]))
    return grow and bool(np.all((cuts["0"] - room <= values) & (values <= cuts["1"] + room)))
