"""What became of a proposal: how much of it is played, what is held back, and which limit binds."""

import math
from collections.abc import Mapping, Sequence
from itertools import compress
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from stagewise.problem.thresholds import Thresholds

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
BINDING = 1e-6  # of the threshold: a limit with less slack than this binds
LEAST_SCALE = 1e-3  # of the range of outcomes, where a threshold is near 0
ROUNDING = 1e-12  # probabilities that differ less are equal


class ProposalStatus(NamedTuple):
    """What became of what a caller proposed for one user.

    Attributes:
        weights: The proposed probability of every action that was proposed, by name; empty for scores.
        scores: The given scores, by name, in the units of the reward; empty for a proposal.
        overlap: The share of the proposal that is played, Σ min(π, q); None for scores.
        held_back: By action, how much of its proposed probability is not played.
        binding: The limits that hold the rest back.
    """

    weights: Mapping[str, float]
    scores: Mapping[str, float]
    overlap: float | None
    held_back: Mapping[str, float]
    binding: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the status as JSON holds it; scores, or weights with what became of them.

        Returns:
            A dictionary that `from_dict` reads.

        Example:
            >>> ProposalStatus({}, {"offer": 0.2}, None, {}, ()).to_dict()
            {'scores': {'offer': 0.2}, 'binding': []}
        """
        if self.overlap is None:
            return {"scores": dict(self.scores), "binding": list(self.binding)}
        return {
            "weights": dict(self.weights),
            "overlap": self.overlap,
            "held_back": dict(self.held_back),
            "binding": list(self.binding),
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> "ProposalStatus":
        """Read what `to_dict` returned.

        Args:
            content: The dictionary.

        Returns:
            The status.

        Example:
            >>> status = ProposalStatus({"offer": 1.0}, {}, 0.4, {"offer": 0.6}, ("opt_out",))
            >>> ProposalStatus.from_dict(status.to_dict()) == status
            True
        """
        overlap, by_name = content.get("overlap"), {}
        for field in ("weights", "scores", "held_back"):
            by_name[field] = {str(name): float(value) for name, value in content.get(field, {}).items()}
        return cls(
            by_name["weights"], by_name["scores"], None if overlap is None else float(overlap), by_name["held_back"],
            tuple(map(str, content["binding"])),
        )  # fmt: skip

    def __str__(self) -> str:
        binding = f"; {', '.join(self.binding)} binds" if self.binding else ""
        if self.overlap is None:
            return f"scores as given{binding}"
        held = ", ".join(f"{name} {weight:.4g}" for name, weight in self.held_back.items())
        return f"proposal: {self.overlap:.4g} of it is played" + (f"; held back: {held}" if held else "") + binding


def summarize_proposal(
    proposed: Mapping[str, float],
    is_scores: bool,
    probabilities: Mapping[str, float],
    safe: str,
    limits: Thresholds,
    costs: Sequence[float],
    lengths: Sequence[float],
) -> ProposalStatus:
    """Return the status of proposed weights or given scores by name, from the probabilities that are played.

    `costs` are the pessimistic costs of what is played and `lengths` the lengths of the ranges, in the user's units.
    """
    binding = tuple(compress(limits.names, find_binding(limits, np.array(costs), np.array(lengths))))
    if is_scores:
        return ProposalStatus({}, proposed, None, {}, binding)
    rest = {name: weight - probabilities[name] for name, weight in proposed.items() if name != safe}
    held_back = {name: weight for name, weight in rest.items() if weight > ROUNDING}
    overlap = 1.0 - math.fsum(held_back.values())
    return ProposalStatus(proposed, {}, max(overlap, 0.0), held_back, binding if held_back else ())


def find_binding(limits: Thresholds, costs: Floats, lengths: Floats) -> Flags:
    """Return which limits bind (..., m), from pessimistic costs (..., m) and lengths of ranges (m,) in user's units."""
    scale = np.maximum(np.abs(limits.values), LEAST_SCALE * lengths)
    return np.asarray(limits.signs * (limits.values - costs) <= BINDING * scale)
