"""A decision in the words of its problem."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from stagewise.problem.thresholds import NO_THRESHOLDS, Thresholds
from stagewise.records.decision import Decision


class Kept(NamedTuple):
    """A limit of a decision, in the user's own units."""

    dearest: float  # the largest plausible mean of what was drawn from; the lowest for an `AtLeast`
    threshold: float
    estimate: float | None = None  # the estimated mean; None: none is kept


class NamedDecision(Decision):
    """One round's decision: its action by name, the probabilities by name, and every limit by name."""

    _actions: Sequence[str] = ()
    _limits: Thresholds = NO_THRESHOLDS  # in the user's own units

    @classmethod
    def of(cls, decision: Decision, actions: Sequence[str], limits: Thresholds) -> "NamedDecision":
        """Return a decision in words."""
        self = cls(*decision)
        vars(self).update(vars(decision))
        self._actions, self._limits = actions, limits
        return self

    @property
    def name(self) -> str:
        """What is done."""
        return self._actions[self.index]

    @property
    def probabilities(self) -> dict[str, float]:  # type: ignore[override]
        """With which probability each action was drawn."""
        drawn: Any = self[3]
        return dict(zip(self._actions, drawn[:-1].tolist(), strict=True))

    @property
    def limits(self) -> dict[str, Kept]:
        """What the costs are at most by what is known, and what they may be."""
        estimates = self.estimated_cost or dict.fromkeys(self._limits.names)
        rows = zip(estimates.items(), self.dearest.tolist(), self.thresholds.tolist(), strict=True)
        return {name: Kept(dearest, threshold, estimate) for (name, estimate), dearest, threshold in rows}

    @property
    def estimated_cost(self) -> dict[str, float] | None:
        """The estimated mean of every cost, by name; None: none is kept."""
        found = self._estimates()
        return None if found is None else dict(zip(self._limits.names, found.costs.tolist(), strict=True))

    def _asdict(self) -> dict[str, Any]:
        """Return the fields by name, probabilities as the attribute has them."""
        return {**super()._asdict(), "probabilities": self.probabilities}

    def _replace(self, **changes: Any) -> "NamedDecision":
        """Return a changed copy."""
        return NamedDecision.of(super()._replace(**changes), self._actions, self._limits)

    def plain(self) -> dict[str, Any]:
        """Return the decision as values that JSON can hold, with names."""
        told = super().plain()
        limits = {name: kept._asdict() for name, kept in self.limits.items()}
        return {**told, "name": self.name, "probabilities": self.probabilities, "limits": limits}

    def __repr__(self) -> str:
        """Return what is done, drawn from what, with the estimates, the bounds and the limits."""
        drawn = {name: round(share, 4) for name, share in self.probabilities.items() if share > 0.0}
        rows = zip(self.limits.items(), self._limits.signs, strict=True)
        limits = [
            f"{name} {told(one.estimate)} (pessimistic {one.dearest:.4g}) {'≤' if s > 0 else '≥'} {one.threshold:.4g}"
            for (name, one), s in rows
        ]
        why = "" if self.reason is None else f", reason={str(self.reason)!r}"
        return (
            f"<{self.name!r} in round {self.round}, drawn from {drawn}, reward {told(self.estimated_reward)} "
            f"(optimistic {self.hoped:.4g}), {', '.join(limits)}{why}, id {self.id!r}>"
        )


def told(value: float | None) -> str:
    """Return an estimate in a line of text."""
    return "without estimate" if value is None else f"{value:.4g}"
