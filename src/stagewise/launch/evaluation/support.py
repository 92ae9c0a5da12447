"""Where a candidate goes and the log never did: nothing in the log can tell what would have come of it."""

from typing import Any, NamedTuple

from stagewise.launch.evaluation.weights import ROUNDING, Weights


class Support(NamedTuple):
    """How much of a candidate the log speaks for."""

    by_action: dict[str, float]
    """The share of the candidate that goes to each action where the log could not have taken it; those above 0."""
    clipped: float
    """The share that is lost since weights are clipped."""

    @classmethod
    def of(cls, weights: Weights, actions: Any) -> "Support":
        """Return how much of a candidate the log speaks for, from its weights."""
        shares = zip(actions, weights.unsupported.tolist(), strict=True)
        return cls({name: share for name, share in shares if share > ROUNDING}, weights.clipped)

    @property
    def words(self) -> str:
        """What is wrong, in a sentence; empty: nothing is."""
        told = []
        if self.by_action:
            names = ", ".join(f"{name!r} ({share:.1%})" for name, share in self.by_action.items())
            told.append(f"the log never could have taken {names} where the candidate would")
        if self.clipped > ROUNDING:
            told.append(f"weights are clipped, and {self.clipped:.2%} of the candidate is lost by that")
        rest = "what would have come of that is not known, and intervals hold whatever it is"
        return f"{'; '.join(told)}; {rest}" if told else ""

    def plain(self) -> dict[str, Any]:
        """Return it as JSON holds it."""
        return {"unsupported": self.by_action, "clipped": self.clipped, "words": self.words}
