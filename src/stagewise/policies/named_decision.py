"""A decision in the words of its problem."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from stagewise.records.decision import Decision, plain


class Kept(NamedTuple):
    """A limit of a decision, in the user's own units."""

    dearest: float  # the largest plausible mean of what was drawn from; the lowest for an `AtLeast`
    threshold: float


class NamedDecision(Decision):
    """One round's decision: its action by name, the probabilities by name, and every limit by name."""

    _actions: Sequence[str] = ()
    _limits: Sequence[str] = ()

    @classmethod
    def of(cls, decision: Decision, actions: Sequence[str], limits: Sequence[str]) -> "NamedDecision":
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
        rows = zip(self._limits, self.dearest.tolist(), self.thresholds.tolist(), strict=True)
        return {name: Kept(dearest, threshold) for name, dearest, threshold in rows}

    def _replace(self, **changes: Any) -> "NamedDecision":
        """Return a changed copy."""
        return NamedDecision.of(super()._replace(**changes), self._actions, self._limits)

    def plain(self) -> dict[str, Any]:
        """Return the decision as values that JSON can hold, with names."""
        told = super().plain()
        limits = {name: kept._asdict() for name, kept in self.limits.items()}
        return {**told, "name": self.name, "probabilities": plain(list(self.probabilities.values())), "limits": limits}
