"""What was decided, and why."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from stagewise.records.explanation import Table, explained

Floats = npt.NDArray[np.float64]
HIDDEN = ("table", "offered", "news")


def plain(value: Any) -> Any:
    """Return a value as JSON holds it; None for what is not finite."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list):
        return [plain(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


class Decision(NamedTuple):
    """One round's decision. Bounds are those of the whole decision: of the mixture where one was drawn from.

    >>> import stagewise as sw
    >>> policy = sw.OPB(arms=2, safe_action=sw.SafeAction(arm=0, reward=0.1, cost=0.0), threshold=0.2)
    >>> decision = policy.decide(policy.start(), sw.Arms(2), sw.Draw(seed=1))
    >>> decision.probabilities.round(6), decision.dearest.round(6), decision.fallback
    (array([0.8, 0.2, 0. ]), array([0.2]), None)
    """

    action: Floats | int  # the vector played, or the arm
    index: int  # type: ignore[assignment]  # (a tuple has a method of that name) which listed action, or −1 for the safe action beside the list
    step: float  # how far along the ray, in [0, 1]; 1.0 off rays
    probabilities: Floats | None  # (K + 1,) of the listed actions, then of the safe action beside the list
    hoped: float  # optimistic reward
    dearest: Floats  # (m,) pessimistic costs; the lowest plausible value for an `AtLeast`
    thresholds: Floats  # (m,)
    fallback: str | None  # why the safe action is played alone, if it is
    round: int
    table: Callable[[], Table] | None = None  # what `explain` shows
    offered: Floats | None = None  # (M, d) the candidates' features
    news: bool = False  # the policy's memory did not follow these candidates
    gap: float = 0.0  # by how much `hoped` may fall short of its problem's maximum, certified; 0: solved in closed form

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in self._fields if name not in HIDDEN)
        return f"Decision({shown})"

    def plain(self) -> dict[str, Any]:
        """Return the decision as values that JSON can hold, for a log; None where a number is not finite.

        >>> decision = Decision(np.array([0.5]), 0, 0.5, None, 0.9, np.array([0.2]), np.array([0.2]), None, 3)
        >>> decision.plain()["action"], decision.plain()["round"]
        ([0.5], 3)
        """
        return {name: plain(getattr(self, name)) for name in self._fields if name not in HIDDEN}

    def explanation(self) -> str:
        """Return what `explain` prints."""
        if self.table is None:
            return f"round {self.round}: no table is kept for this decision"
        return explained(self.round, self.fallback, self.table())

    def explain(self) -> None:
        """Print the leading candidates with their bounds, and why this one."""
        print(self.explanation())
