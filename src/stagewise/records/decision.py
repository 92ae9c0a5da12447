"""What was decided, and why."""

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from stagewise.records.explanation import Basis, Estimates, Explanation, explained
from stagewise.records.identity import id_of
from stagewise.records.reason import Cause, Reason

Floats = npt.NDArray[np.float64]


def plain(value: Any) -> Any:
    """Return a value as JSON holds it; None for what is not finite."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list):
        return [plain(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


class Made(NamedTuple):
    """The fields of a decision."""

    action: Floats | int  # the vector played, or the arm
    index: int  # type: ignore[assignment]  # (a tuple has a method of that name) which listed action, or −1 for the safe action beside the list
    step: float  # how far along the ray, in [0, 1]; 1.0 off rays
    probabilities: Floats | None  # (K + 1,) of the listed actions, then of the safe action beside the list
    hoped: float  # optimistic reward
    dearest: Floats  # (m,) pessimistic costs; the lowest plausible value for an `AtLeast`
    thresholds: Floats  # (m,)
    cause: Cause | None  # why the safe action is played alone, if it is: `reason` is its code, `fallback` its sentence
    round: int
    gap: float = 0.0  # by how much `hoped` may fall short of its problem's maximum, certified; 0: solved in closed form


class Decision(Made):
    """One round's decision. Bounds are those of the whole decision: of the mixture where one was drawn from.

    `probabilities` of listed actions without names are an array, the last entry for a safe action beside the list; a
    decision on rays or a convex set is not drawn, and has None. A `Problem` names its actions: there they are a
    dictionary by name, whoever decides (an agent, one that was loaded, a replica, a server), as in `plain`.

    >>> import stagewise as sw
    >>> policy = sw.OPB(arms=2, safe_action=sw.SafeAction(arm=0, reward=0.1, cost=0.0), threshold=0.2)
    >>> decision = policy.decide(policy.start(), sw.Arms(2), sw.Draw(seed=1))
    >>> decision.probabilities.round(6), decision.dearest.round(6), decision.reason
    (array([0.8, 0.2, 0. ]), array([0.2]), None)
    """

    _table: Basis | None = None  # what `explain` shows
    _offered: Floats | None = None  # (M, d) the candidates that a memory may follow
    _unfollowed: bool = False  # the memory that decided did not follow them
    _seen: Any = None  # what was believed of the candidates, where they are few (see `policies.agent.report`)
    _safe: Any = None  # the safe action of the round, where it is the round's own
    _by: str = ""  # whose it is
    _told: Floats | None = None  # candidates that its learner has to be told of

    @property
    def name(self) -> str:
        """What is done, in words: its number where it has no name of its own."""
        return "safe action" if self.index < 0 else f"action {self.index}"

    @property
    def reason(self) -> Reason | None:
        """Why the safe action is played alone, as a code; None: it is not."""
        return None if self.cause is None else self.cause.reason

    @property
    def fallback(self) -> str | None:
        """The same as a sentence for people; programs go by `reason`, and by the data in `cause.details`."""
        return None if self.cause is None else self.cause.sentence

    @property
    def id(self) -> str:
        """Who made it and in which round: the same after a restart, and another for every agent and replica."""
        return id_of(self._by, self.round)

    def _with(self, table: Basis | None, offered: Floats | None = None, unfollowed: bool = False) -> "Decision":
        """Return this decision with what only the policy that made it needs."""
        self._table, self._offered, self._unfollowed = table, offered, unfollowed
        return self

    def _replace(self, **changes: Any) -> "Decision":
        """Return a changed copy; what only the policy needs stays with it."""
        told = dict(zip(self._fields, self, strict=True))
        other = type(self)(**{**told, **changes})._with(self._table, self._offered, self._unfollowed)
        other._safe, other._seen = self._safe, self._seen
        return other._made_by(self._by, self._told)

    def _made_by(self, mark: str, told: Floats | None = None) -> "Decision":
        """Return this decision with the mark of who made it."""
        self._by, self._told = mark, told
        return self

    def plain(self) -> dict[str, Any]:
        """Return the decision as values that JSON can hold, for a log; None where a number is not finite.

        >>> decision = Decision(np.array([0.5]), 0, 0.5, None, 0.9, np.array([0.2]), np.array([0.2]), None, 3)
        >>> decision.plain()["action"], decision.plain()["round"]
        ([0.5], 3)
        """
        offered = {} if self._told is None else {"offered": plain(self._told)}
        safe = {} if self._safe is None else {"safe": plain(list(self._safe))}
        fields = [*(name for name in self._fields if name != "cause"), "estimated_reward", "estimated_cost"]
        told = {name: plain(getattr(self, name)) for name in fields}
        why: dict[str, Any] = {"reason": None if self.reason is None else str(self.reason), "fallback": self.fallback}
        if self.cause is not None and self.cause.details:
            why["details"] = dict(self.cause.details)
        return {"id": self.id, **told, **why, **offered, **safe}

    @property
    def estimated_reward(self) -> float | None:
        """The estimated mean reward of what was decided: of the mixture, or of the point on a ray.

        It is what the model estimated at the time of the decision: for a `Problem` the fit of a regression or the
        mean of a rate, elsewhere the middle of the confidence interval. None: none is kept.

        >>> import stagewise as sw
        >>> policy = sw.OPB(arms=2, safe_action=sw.SafeAction(arm=0, reward=0.1, cost=0.0), threshold=0.2)
        >>> decision = policy.decide(policy.start(), sw.Arms(2), sw.Draw(seed=1))
        >>> round(decision.estimated_reward, 6), decision.estimated_cost.round(6)
        (0.18, array([0.1]))
        """
        found = self._estimates()
        return None if found is None else found.reward

    @property
    def estimated_cost(self) -> Any:
        """The estimated mean costs (m,) of what was decided, beside `dearest`; by name for a `Problem`."""
        found = self._estimates()
        return None if found is None else found.costs

    def _estimates(self) -> Estimates | None:
        """Return the estimates of what was decided."""
        return None if self._table is None else self._table.estimates()

    def explain(self) -> Explanation:
        """Return the leading candidates with their estimates and bounds, and why this one: text, in a notebook a table.

        `optimistic` and `pessimistic` are the bounds that the rule reads. With posterior sampling `sampled` is the
        reward that was sampled, by which the mixture or ray is proposed; `score` adds what a limit that binds is worth.
        """
        if self._table is None:
            return Explanation(f"round {self.round}: no table is kept for this decision")
        table = self._table()
        return Explanation.of(explained(self.round, self.fallback, table), table)

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the explanation."""
        return self.explain()._repr_html_()
