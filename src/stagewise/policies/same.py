"""Whether the policy of a file is the one that is deployed: by what its settings mean, not by how they are spelled."""

from pathlib import Path

import numpy as np

from stagewise.files.paths import named
from stagewise.policies.policy import LoggingPolicy
from stagewise.policies.saved import check_kind, encoded
from stagewise.problem.checks import shown
from stagewise.problem.errors import InvalidFile


def check_same(path: Path, kept: LoggingPolicy, given: LoggingPolicy) -> None:
    """Refuse a file whose policy is not the one given, naming the first setting that differs."""
    check_kind(given)
    if type(kept) is not type(given):
        raise InvalidFile(
            f"{named(path)} was saved by {type(kept).__name__}, and the policy given is {type(given).__name__}"
        )
    one, other = encoded(kept)["settings"], encoded(given)["settings"]  # plain values: 0 is 0.0, and (1, 2) is [1, 2]
    for name in one:
        if one[name] != other[name] and not (name == "threshold" and same_limits(kept, given)):
            raise InvalidFile(
                f"{named(path)} was saved with {name} = {shown(getattr(kept, name))}, and the policy given has "
                f"{shown(getattr(given, name))}; what was learned does not carry over, so start a new agent and "
                "give it the log (learn_log)"
            )
    if kept.thresholds.names != given.thresholds.names:
        raise InvalidFile(
            f"{named(path)} was saved with limits in the order {shown(list(kept.thresholds.names))}, and the policy "
            f"given has {shown(list(given.thresholds.names))}; costs given by position would go to the wrong one, "
            "so keep the order"
        )


def same_limits(kept: LoggingPolicy, given: LoggingPolicy) -> bool:
    """Say whether the limits are the same numbers under the same names, in the same order."""
    one, other = kept.thresholds, given.thresholds
    return (
        one.names == other.names and np.array_equal(one.signs, other.signs) and np.array_equal(one.values, other.values)
    )
