"""Whether a signal that used to come has stopped: one feed can die while another goes on, and its costs count as none.

A signal is heard of an action when its value is another than the one that counts where nothing is told, so a feed that
tells zeros is as silent as one that tells nothing. After m hearings in n decisions for an action and k more,

    (n/(n + k))^m ≤ a

ever comes true with probability a at most, whatever the rate is, as long as it stays the same (docs/theory/desk.md).
The run after the m-th hearing has a level of its own, 6α/(π²m²): all of them together alarm by chance with probability
α at most.
"""

import math
from typing import Any, NamedTuple

from stagewise.problem.declared import Limit, Reward


class Silence(NamedTuple):
    """What has stopped."""

    signal: int
    action: int
    decisions: int
    """Since it was last heard."""
    seconds: float
    every: float
    """How many decisions there were for one of them before."""


class Silences:
    """Decisions by action, and when each signal was last heard of each."""

    def __init__(self, signals: int, actions: int, level: float) -> None:
        self.level = level / (signals * actions)
        self.decisions = [0] * actions
        self.heard: list[list[list[int]]] = [[[0, 0, 0] for _ in range(actions)] for _ in range(signals)]

    def hear(self, signal: int, action: int, at: int) -> None:
        """Take in that a signal came of an action, and was no nothing."""
        told = self.heard[signal][action]
        told[:] = told[0] + 1, self.decisions[action], at

    def longest(self, now: int, seconds: float) -> Silence | None:
        """Return a silence of so many seconds that is beyond chance, if there is one."""
        for signal, by_action in enumerate(self.heard):
            for action, (times, before, at) in enumerate(by_action):
                since, silent = self.decisions[action] - before, (now - at) / 1e6
                if not times or not since or silent < seconds:
                    continue
                if times * math.log(before / (before + since)) <= math.log(6.0 * self.level / (math.pi * times) ** 2):
                    return Silence(signal, action, since, silent, before / times)
        return None

    def plain(self) -> dict[str, Any]:
        """Return it for a snapshot."""
        return {"decisions": self.decisions, "heard": self.heard}

    def restore(self, plain: dict[str, Any]) -> None:
        """Go on from what `plain` wrote down."""
        self.decisions, self.heard = plain["decisions"], plain["heard"]


def nothing_of(signal: Reward | Limit) -> float:
    """Return the value of a signal that says that nothing happened: what counts where none is told."""
    window = signal.waits
    return signal.low if window is None or window.drops else float(window.missing)
