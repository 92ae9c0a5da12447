"""The decision of a `Problem`: actions and limits by name."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from stagewise.problem.thresholds import NO_THRESHOLDS, Thresholds
from stagewise.records.decision import Decision, to_floats, to_json_value


class LimitStatus(NamedTuple):
    """One limit of a decision, in the user's units."""

    pessimistic_cost: float  # upper confidence bound of the mixture's mean; the lower bound for an `AtLeast`
    threshold: float
    estimate: float | None = None  # the estimated mean; None: no estimate is kept


class ProblemDecision(Decision):
    """One round's decision with the names of its problem: of the action, the probabilities and the limits."""

    _actions: Sequence[str] = ()
    _limits: Thresholds = NO_THRESHOLDS  # in the user's units

    @classmethod
    def of(cls, decision: Decision, actions: Sequence[str], limits: Thresholds) -> "ProblemDecision":
        """Return a decision with names."""
        self = cls(*decision)
        vars(self).update(vars(decision))
        self._actions, self._limits = actions, limits
        return self

    @classmethod
    def _read(cls, content: Mapping[str, Any]) -> "ProblemDecision":
        limits, probabilities = content["limits"], content["probabilities"]
        values = to_floats([limit["threshold"] for limit in limits.values()])
        signs = np.array([1.0 if limit["at_most"] else -1.0 for limit in limits.values()])
        costs = content["estimated_cost"]
        arrays = {
            "probabilities": [*probabilities.values(), 0.0],  # the safe action is listed
            "estimated_cost": None if costs is None else [costs[name] for name in limits],
        }
        decision = Decision._read({**content, **arrays})
        thresholds = Thresholds(tuple(limits), signs, values, None, np.full(values.size, np.nan))
        return cls.of(decision, tuple(probabilities), thresholds)

    @property
    def action_name(self) -> str:
        """The name of the action played."""
        return self._actions[self.action_index]

    @property
    def probabilities(self) -> dict[str, float]:  # type: ignore[override]
        """The probability of every action, by name."""
        shares: Any = self[3]
        return dict(zip(self._actions, shares[:-1].tolist(), strict=True))

    @property
    def limits(self) -> dict[str, LimitStatus]:
        """The estimate, the pessimistic cost and the threshold of every limit, by name."""
        estimates = self.estimated_cost or dict.fromkeys(self._limits.names)
        rows = zip(estimates.items(), self.pessimistic_cost.tolist(), self.thresholds.tolist(), strict=True)
        return {
            name: LimitStatus(pessimistic_cost, threshold, estimate)
            for (name, estimate), pessimistic_cost, threshold in rows
        }

    @property
    def estimated_cost(self) -> dict[str, float] | None:
        """The estimated mean of every cost, by name; None: no estimate is kept."""
        estimates = self._estimates()
        return None if estimates is None else dict(zip(self._limits.names, estimates.costs.tolist(), strict=True))

    def _asdict(self) -> dict[str, Any]:
        """Return the fields by name, probabilities as the attribute has them."""
        return {**super()._asdict(), "probabilities": self.probabilities}

    def _replace(self, **changes: Any) -> "ProblemDecision":
        """Return a changed copy."""
        return ProblemDecision.of(super()._replace(**changes), self._actions, self._limits)

    def to_dict(self) -> dict[str, Any]:
        """Return the decision as values that JSON can hold, with names."""
        signs = self._limits.signs.tolist()
        limits = {
            name: {**{key: to_json_value(value) for key, value in limit._asdict().items()}, "at_most": sign > 0.0}
            for (name, limit), sign in zip(self.limits.items(), signs, strict=True)
        }
        costs = self.estimated_cost
        return {
            **super().to_dict(),
            "action_name": self.action_name,
            "probabilities": self.probabilities,
            "estimated_cost": None if costs is None else {name: to_json_value(cost) for name, cost in costs.items()},
            "limits": limits,
        }

    def __repr__(self) -> str:
        """Return the action, its mixture, the estimates, the bounds and the limits in one line."""
        mixture = {name: round(share, 4) for name, share in self.probabilities.items() if share > 0.0}
        limits = [
            f"{name} {format_estimate(limit.estimate)} (pessimistic {limit.pessimistic_cost:.4g}) "
            f"{'≤' if sign > 0 else '≥'} {limit.threshold:.4g}"
            for (name, limit), sign in zip(self.limits.items(), self._limits.signs, strict=True)
        ]
        reason = "" if self.reason is None else f", reason={str(self.reason)!r}"
        reward = f"reward {format_estimate(self.estimated_reward)} (optimistic {self.optimistic_reward:.4g})"
        return (
            f"<{self.action_name!r} in round {self.round}, drawn from {mixture}, {reward}, {', '.join(limits)}{reason}"
            f", id {self.id!r}>"
        )


def format_estimate(value: float | None) -> str:
    """Return an estimate as text."""
    return "without estimate" if value is None else f"{value:.4g}"
