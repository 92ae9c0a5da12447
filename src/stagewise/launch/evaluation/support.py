"""Overlap: the part of a candidate that the log never contains, whose outcome is unknown."""

from typing import Any, NamedTuple

from stagewise.launch.evaluation.weights import ROUNDING, Weights
from stagewise.launch.notes import Note, NoteCode


class Support(NamedTuple):
    """The part of a candidate that the log cannot evaluate.

    Attributes:
        by_action: The share of the candidate by action that the log could not have taken; those above 0.
        clipped: The share that is lost because weights are clipped.
    """

    by_action: dict[str, float]
    clipped: float

    @classmethod
    def of(cls, weights: Weights, actions: Any) -> "Support":
        """Return the support of a candidate from its weights."""
        shares = zip(actions, weights.unsupported.tolist(), strict=True)
        return cls({name: share for name, share in shares if share > ROUNDING}, weights.clipped)

    def make_note(self, policy: str) -> Note | None:
        """Return a note on what is not supported; None if everything is."""
        clipped = self.clipped if self.clipped > ROUNDING else 0.0
        if not self.by_action and not clipped:
            return None
        return Note.of(NoteCode.NO_SUPPORT, policy=policy, unsupported=self.by_action, clipped=clipped)

    def to_dict(self) -> dict[str, Any]:
        """Return the support as JSON values."""
        return {"unsupported": self.by_action, "clipped": self.clipped}
